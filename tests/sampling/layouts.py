"""Layouts of channels, and random values for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rlmemory as rlm

Spec = rlm.NumericSpec


# ---- layouts of channels --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The specs of a memory."""

    observation: Any
    action: Any
    reward: rlm.NumericSpec = field(default_factory=lambda: Spec(()))
    extra: dict[str, rlm.NumericSpec] = field(default_factory=dict)

    @property
    def sum_dtype(self) -> np.dtype:
        return self.reward.dtype if self.reward.dtype.kind in "fc" else np.dtype(np.float64)

    def memory(self, capacity: int, kind: Any = rlm.ReplayMemory, **keywords: Any) -> Any:
        extra = self.extra or None
        return kind(self.observation, self.action, capacity, reward=self.reward, extra=extra, **keywords)

    def specs(self) -> dict[str, Any]:
        channels = {"observation": self.observation, "action": self.action, "reward": self.reward}
        return {**channels, "next_observation": self.observation, "extra": self.extra}

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """Values for one row. Channels have few different values, so that rows agree by chance; rewards have many."""
        values = {name: mapped(spec, lambda part: few(rng, part)) for name, spec in self.specs().items()}
        return {**values, "reward": many(rng, self.reward)}


def few(rng: np.random.Generator, spec: rlm.NumericSpec) -> np.ndarray:
    values = rng.integers(0, 2, spec.shape).astype(spec.dtype)
    if spec.dtype.kind == "f" and rng.random() < 0.05:
        return np.full(spec.shape, np.nan, spec.dtype)
    return values


def many(rng: np.random.Generator, spec: rlm.NumericSpec) -> np.ndarray:
    if spec.dtype.kind in "iu":
        return rng.integers(0, 100, spec.shape).astype(spec.dtype)
    real = rng.normal(size=spec.shape)
    return np.asarray(real + 1j * rng.normal(size=spec.shape) if spec.dtype.kind == "c" else real).astype(spec.dtype)


LAYOUTS = {
    "one array": Layout(Spec((2,)), Spec((), "int64")),
    "integer reward": Layout(Spec((), "uint8"), Spec((2,), "float32"), Spec((), "int32")),
    "tuple, complex reward": Layout((Spec((1,), "bool"), Spec(())), Spec((), "uint8"), Spec((), "complex64")),
    "dict, vector reward, extra": Layout(
        {"image": Spec((2, 1), "uint8"), "speed": Spec((1,), "float32")},
        (Spec(()), Spec((2,), "int16")),
        Spec((3,), "float32"),
        {"log_prob": Spec((), "float64")},
    ),
}
PLAIN = LAYOUTS["one array"]


def leaves(structure: Any) -> list[Any]:
    if isinstance(structure, dict):
        return list(structure.values())
    return list(structure) if isinstance(structure, (tuple, list)) else [structure]


def mapped(structure: Any, function: Callable[..., Any], *others: Any) -> Any:
    """The same structure with a function applied to every leaf."""
    if isinstance(structure, dict):
        return {key: function(part, *(other[key] for other in others)) for key, part in structure.items()}
    if isinstance(structure, (tuple, list)):
        return tuple(function(part, *(other[i] for other in others)) for i, part in enumerate(structure))
    return function(structure, *others)


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a row (or rows) as `append` (or `extend`) takes them."""
    return {name: value for name, value in values.items() if name != "extra" or value}


def same(a: Any, b: Any) -> bool:
    """Equal dtype, shape and bytes (so NaN equals NaN)."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def arrays_of(record: Any) -> dict[str, np.ndarray]:
    """Every array of an Experience or a Batch, by a name that says where it stands."""
    fields = zip(record._fields, record, strict=True)
    return {f"{name} {i}": leaf for name, value in fields if value is not None for i, leaf in enumerate(leaves(value))}


def equal_records(a: Any, b: Any) -> bool:
    ours, theirs = arrays_of(a), arrays_of(b)
    return ours.keys() == theirs.keys() and all(same(ours[name], theirs[name]) for name in ours)


def zeros(spec: rlm.NumericSpec) -> np.ndarray:
    return np.zeros(spec.shape, spec.dtype)


def components(reward: np.ndarray) -> np.ndarray:
    """A reward as float64 numbers, a complex one as two of them."""
    wide = np.asarray(reward).astype(np.complex128 if reward.dtype.kind == "c" else np.float64).reshape(-1)
    return wide.view(np.float64)
