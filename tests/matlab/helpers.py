"""What several tests of the MATLAB interface share."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matlab_compat as mc

OCTAVE = Path(__file__).parents[1] / "data" / "octave"


def page_specs() -> tuple[list[Any], Any]:
    """The channels of the documentation's example: observations [2 1] and one of three values, actions [2 1]."""
    observation = [mc.rlNumericSpec([2, 1], LowerLimit=0, UpperLimit=[[1], [5]]), mc.rlFiniteSetSpec([1, 2, 3])]
    return observation, mc.rlNumericSpec([2, 1], LowerLimit=0, UpperLimit=[[5], [10]])


def page_buffer(max_length: int = 5000) -> mc.rlReplayMemory:
    return mc.rlReplayMemory(*page_specs(), max_length, Seed=0)


def page_experiences(count: int, seed: int = 0) -> mc.struct:
    rng = np.random.default_rng(seed)
    experience = mc.struct()
    for i in range(count):
        experience[i].Observation = [rng.random((2, 1)), float(rng.integers(1, 4))]
        experience[i].Action = [rng.random((2, 1))]
        experience[i].NextObservation = [rng.random((2, 1)), float(rng.integers(1, 4))]
        experience[i].Reward = 10 * rng.random()
        experience[i].IsDone = 0
    return experience


def filled(count: int, max_length: int = 5000) -> mc.rlReplayMemory:
    buffer = page_buffer(max_length)
    if count:
        mc.append(buffer, page_experiences(count))
    return buffer


def one(**changes: Any) -> mc.struct:
    """A good experience for `page_buffer`, with some fields changed."""
    e = page_experiences(1)
    for name, value in changes.items():
        setattr(e, name, value)
    return e


def reached(obs: Any, action: Any, after: Any) -> bool:
    """Whether the place, channel 1, is the goal, channel 2, after the step."""
    return bool((after[0] == after[1]).all())


def reward(obs: Any, action: Any, after: Any) -> float:
    return 0.0 if reached(obs, action, after) else -1.0


def goal_buffer(kind: Any = mc.rlHindsightReplayMemory, is_done: Any = reached, **options: Any) -> Any:
    """A place and a goal on a line, one number each."""
    place = mc.rlNumericSpec([1, 1])
    return kind([place, place], place, reward, is_done, [[1, 1, 2, 1]], Seed=0, **options)


def step(x: float, done: int = 0, goal: float = 99) -> mc.struct:
    """From x to x + 1, short of the goal."""
    return mc.struct(Observation=[x, goal], Action=[1], NextObservation=[x + 1, goal], Reward=-1, IsDone=done)


def walk(steps: int, last: int = 1, **options: Any) -> Any:
    """A memory of one episode 0, 1, 2, ... whose last step has that IsDone."""
    buffer = goal_buffer(**options)
    for x in range(steps):
        mc.append(buffer, step(x, last if x == steps - 1 else 0))
    return buffer


def everything(buffer: mc.rlReplayMemory) -> list[np.ndarray]:
    """Every array of the memory, to see that nothing changed."""
    x = buffer.memory.all()
    leaves = [*x.observation, x.action, *x.next_observation] if isinstance(x.observation, tuple) else [
        x.observation, x.action, x.next_observation
    ]  # fmt: skip
    return [*leaves, x.reward, x.terminated, x.truncated, x.source, x.id]


def saved_object(name: str) -> bytes:
    """A .mat file of version 6 with one object of a class, as MATLAB lays it out."""

    def element(kind: int, data: bytes) -> bytes:
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)

    flags = element(6, struct.pack("<II", 17, 0))
    texts = b"".join(element(1, text.encode()) for text in (name, "MCOS", "rl.replay.rlReplayMemory"))
    numbers = element(6, struct.pack("<II", 13, 0)) + element(5, struct.pack("<ii", 3, 1)) + element(1, b"")
    reference = element(14, numbers + element(6, struct.pack("<III", 0xDD000000, 2, 1)))
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + element(14, flags + texts + reference)


class unchanged:  # noqa: N801
    """Fails when the block changes the memory, or does not raise the error."""

    def __init__(self, buffer: mc.rlReplayMemory, error: type[Exception], match: str) -> None:
        self.buffer, self.before = buffer, everything(buffer)
        self.raises = pytest.raises(error, match=match)

    def __enter__(self) -> Any:
        return self.raises.__enter__()

    def __exit__(self, *details: Any) -> bool:
        suppressed = bool(self.raises.__exit__(*details))
        for before, after in zip(self.before, everything(self.buffer), strict=True):
            np.testing.assert_array_equal(before, after, strict=True)
        return suppressed
