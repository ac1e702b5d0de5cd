"""The memories that are measured, and rows for them. Used by the asv suite and by the scripts that print ratios."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import rlmemory as rlm


class Scene(NamedTuple):
    """A full memory and rows that fit it."""

    memory: rlm.ReplayMemory
    rows: dict[str, Any]  # as `extend` takes them
    row_bytes: int  # of one experience: observation, action, reward, next observation and one byte of is_done


def scene(
    capacity: int,
    rows: int,
    *,
    observation: rlm.NumericSpec,
    action: rlm.NumericSpec,
    episode: int = 200,
) -> Scene:
    """A memory with float32 rewards, filled to the brim from `rows` random rows; an episode ends every `episode`."""
    rng = np.random.default_rng(0)

    def block(spec: rlm.NumericSpec) -> np.ndarray[Any, Any]:
        numbers = rng.integers(0, 256, (rows, *spec.shape), dtype=np.uint8)
        return numbers if spec.dtype == np.uint8 else numbers.astype(spec.dtype)

    given = {
        "observation": block(observation),
        "action": block(action),
        "reward": rng.random(rows, dtype=np.float32),
        "next_observation": block(observation),
        "terminated": np.arange(rows) % episode == episode - 1,
    }
    memory = rlm.ReplayMemory(observation, action, capacity, reward="float32", seed=0)
    while len(memory) < capacity:
        memory.extend(**given)
    return Scene(memory, given, sum(array.nbytes for array in given.values()) // rows)


def transitions(capacity: int = 1_000_000, rows: int = 4096) -> Scene:
    """Rows of 165 bytes: observations of 17 float32, actions of 6, a reward, an end."""
    return scene(capacity, rows, observation=rlm.NumericSpec((17,), "float32"), action=rlm.NumericSpec((6,), "float32"))


def pixels(capacity: int = 10_000, rows: int = 256) -> Scene:
    """Four stacked grey frames of 84 x 84, and one of a few actions."""
    return scene(capacity, rows, observation=rlm.NumericSpec((84, 84, 4), "uint8"), action=rlm.NumericSpec((), "uint8"))
