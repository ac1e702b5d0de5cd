"""What the tests of the core share: layouts of channels, random values for them, and a memory made of a Python list."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import rlmemory as rlm

ROOT = Path(__file__).resolve().parent.parent.parent
DTYPES = ("bool", "uint8", "int64", "float32", "float64", "complex64")
SHAPES = ((), (0,), (3,), (2, 3))


# ---- values ---------------------------------------------------------------------------------------------------------


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Any values of a dtype, the odd ones too: extremes, NaN, infinities, minus zero."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).tiny, np.finfo(dtype).max])
    real = np.where(rng.random(shape) < 0.3, rng.choice(odd, shape), rng.normal(size=shape))
    if dtype.kind == "f":
        return real.astype(dtype)
    result = np.empty(shape, dtype)
    result.real, result.imag = real, rng.normal(size=shape)
    return result


def same(a: Any, b: Any) -> bool:
    """Equal dtype, shape and bytes (so NaN equals NaN, and 0.0 is not -0.0)."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def leaves(structure: Any) -> list[np.ndarray]:
    """The arrays of a channel structure, in order."""
    if isinstance(structure, dict):
        return list(structure.values())
    return list(structure) if isinstance(structure, (tuple, list)) else [structure]


def mapped(structure: Any, function: Any) -> Any:
    """The same structure with a function applied to every array."""
    if isinstance(structure, dict):
        return {key: function(part) for key, part in structure.items()}
    if isinstance(structure, (tuple, list)):
        return tuple(function(part) for part in structure)
    return function(structure)


def channels(record: Any) -> list[np.ndarray]:
    """The arrays that a caller gives for an experience, in the order of the arena."""
    groups = (record.observation, record.action, record.reward, record.next_observation, record.extra)
    return [leaf for group in groups for leaf in leaves(group)]


def fields_of(record: Any) -> list[np.ndarray]:
    """Every array of an Experience or a Batch."""
    return [leaf for value in record if value is not None for leaf in leaves(value)]


def equal_records(a: Any, b: Any) -> bool:
    return type(a) is type(b) and all(same(x, y) for x, y in zip(fields_of(a), fields_of(b), strict=True))


# ---- layouts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The specs of a memory, and experiences for it."""

    observation: Any
    action: Any
    reward: Any = "float64"
    extra: dict[str, rlm.NumericSpec] = field(default_factory=dict)

    def memory(self, capacity: int, **keywords: Any) -> rlm.ReplayMemory:
        extra = self.extra or None
        return rlm.ReplayMemory(self.observation, self.action, capacity, reward=self.reward, extra=extra, **keywords)

    def rows(self, rng: np.random.Generator, count: int) -> dict[str, Any]:
        """The channel arguments of `extend` for `count` random experiences."""
        reward = self.reward if isinstance(self.reward, rlm.NumericSpec) else rlm.NumericSpec((), self.reward)

        def draw(spec: Any) -> Any:
            return mapped(spec, lambda part: random_array(rng, (count, *part.shape), part.dtype))

        given = {
            "observation": draw(self.observation),
            "action": draw(self.action),
            "reward": draw(reward),
            "next_observation": draw(self.observation),
        }
        return {**given, "extra": draw(self.extra)} if self.extra else given


def pick(rows: dict[str, Any], i: Any) -> dict[str, Any]:
    """Row or rows `i` of the arguments of `extend`."""
    return {key: mapped(value, lambda part: part[i]) for key, value in rows.items()}


Spec = rlm.NumericSpec
LAYOUTS = {
    "single": Layout(Spec((3,), "float32"), Spec((), "int64")),
    "tuple": Layout(
        (Spec((2, 3), "uint8"), Spec(())), (Spec((), "bool"), Spec((3,), "complex64")), Spec((2,), "float32")
    ),
    "dict": Layout(
        {"image": Spec((2, 3), "uint8"), "none": Spec((0,), "float32")},
        {"steer": Spec((3,), "float64"), "gear": Spec((), "int64")},
        Spec((), "float32"),
        {"log_prob": Spec((), "float64"), "state": Spec((2, 3), "complex64")},
    ),
}
PLAIN = Layout(Spec((2,), "float64"), Spec((), "int64"))


def counted(memory: rlm.ReplayMemory, count: int, *, first: int = 0, **keywords: Any) -> range:
    """Extend a memory of the PLAIN layout with rows that say their own number in every field."""
    number = np.arange(first, first + count)
    observation = np.stack([number, number], -1).astype(float)
    keywords.setdefault("terminated", False)
    return memory.extend(observation, number, reward=number.astype(float), next_observation=observation + 1, **keywords)


@contextmanager
def unchanged(memory: rlm.ReplayMemory):
    """Check that a block leaves a memory as it was, down to the bytes of its arena and its next draw."""
    before = memory.all(), len(memory), memory.next_id, memory.capacity
    arena, draws = memory._arena.block.tobytes(), memory._rng.bit_generator.state
    yield
    after = memory.all(), len(memory), memory.next_id, memory.capacity
    assert equal_records(before[0], after[0])
    assert before[1:] == after[1:]
    assert memory._arena.block.tobytes() == arena
    assert memory._rng.bit_generator.state == draws


# ---- other processes ------------------------------------------------------------------------------------------------


def python(code: str, *, timeout: float = 120, executable: str = sys.executable, **keywords: Any) -> str:
    """What a new interpreter prints when it runs `code`."""
    keywords.setdefault("env", dict(os.environ, PYTHONPATH=str(ROOT)))
    done = subprocess.run(
        [executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False, **keywords
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- the naive memory -----------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One experience as the naive memory keeps it."""

    id: int
    source: int
    code: int
    values: list[np.ndarray]


class Naive:
    """A replay memory as one would write it in a minute: a list, and the definitions word for word."""

    def __init__(self, capacity: int, seed: int) -> None:
        self.capacity, self.next_id = capacity, 0
        self.rows: list[Row] = []
        self.cuts: list[tuple[int, int | None]] = []
        self.rng = np.random.default_rng(seed)

    def append(self, values: list[np.ndarray], code: int, source: int) -> int:
        self.rows.append(Row(self.next_id, source, code, values))
        self.next_id += 1
        self.rows = self.rows[-self.capacity :]
        return self.next_id - 1

    def resize(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows = self.rows[-capacity:]

    def by_id(self, identity: int) -> Row:
        return next(row for row in self.rows if row.id == identity)

    def of(self, source: int | None) -> list[Row]:
        return [row for row in self.rows if source is None or row.source == source]

    def is_first(self, row: Row) -> bool:
        """True where the row before it, in its source, ended an episode or is not in the memory."""
        before = [other for other in self.rows if other.source == row.source and other.id < row.id]
        if not before or before[-1].code:
            return True
        last = before[-1].id
        return any(last < at <= row.id and which in (None, row.source) for at, which in self.cuts)

    def sample(self, count: int, replace: bool, source: int | None) -> list[Row] | None:
        rows = self.of(source)
        if len(rows) < (1 if replace else count):
            return None
        uniforms = self.rng.random(count)
        if replace:
            return [rows[min(int(np.floor(u * len(rows))), len(rows) - 1)] for u in uniforms]
        return self.shuffled(rows, uniforms)

    @staticmethod
    def shuffled(rows: list[Row], uniforms: np.ndarray) -> list[Row]:
        """Fisher and Yates, from the front."""
        rows = list(rows)
        for i, u in enumerate(uniforms):
            j = i + min(int(np.floor(u * (len(rows) - i))), len(rows) - i - 1)
            rows[i], rows[j] = rows[j], rows[i]
        return rows[: len(uniforms)]

    def check(self, record: Any, rows: list[Row], *, discount: float = 0.99) -> None:
        """Compare an Experience or a Batch with what it should hold."""
        for k, array in enumerate(channels(record)):
            assert array.shape[0] == len(rows)
            for i, row in enumerate(rows):
                assert same(array[i], row.values[k]), (k, i)
        assert record.id.tolist() == [row.id for row in rows]
        assert record.source.tolist() == [row.source for row in rows]
        assert record.terminated.tolist() == [row.code == 1 for row in rows]
        assert record.truncated.tolist() == [row.code == 2 for row in rows]
        types = (record.id.dtype, record.source.dtype, record.terminated.dtype, record.truncated.dtype)
        assert types == (np.int64, np.int32, np.bool_, np.bool_)
        if isinstance(record, rlm.Batch):
            assert record.is_first.tolist() == [self.is_first(row) for row in rows]
            assert same(record.mask, np.ones(len(rows), bool))
            assert same(record.steps, np.ones(len(rows), np.int64))
            assert same(record.weight, np.ones(len(rows)))
            assert same(record.discount, np.array([0.0 if row.code == 1 else discount for row in rows], float))
            assert record.previous_action is record.previous_reward is None
