"""Layouts of channels and memories of every class, made on either device."""

from __future__ import annotations

from typing import Any

import numpy as np
from sampling.goals_model import GOALS, is_done_fn, reward_fn
from sampling.layouts import LAYOUTS as USUAL
from sampling.layouts import Layout, mapped

import rlmemory as rlm

Spec = rlm.NumericSpec

#: Widths of a row of 1, 2, 3, 5, 7 and more bytes, no bytes, and every kind of reward.
LAYOUTS = {
    **USUAL,
    "odd widths": Layout((Spec((3,), "uint8"), Spec((5,), "int8")), Spec((7,), "uint8"), Spec((), "float16")),
    "one byte, bool reward": Layout(Spec((), "bool"), Spec((), "uint8"), Spec((), "bool")),
    "no bytes": Layout({"none": Spec((0,)), "some": Spec((3, 0, 2), "float32")}, Spec((2, 3), "float16")),
    "matrix, complex vector reward": Layout(
        Spec((2, 3), "complex64"), (Spec((1, 1), "int16"),), Spec((2,), "complex128"), {"state": Spec((3, 1), "bool")}
    ),
    "int64 vector reward": Layout(Spec((9,), "float32"), Spec((), "int32"), Spec((3,), "int64")),
}


def judge(layout: Layout) -> dict[str, Any]:
    return {"reward_fn": reward_fn, "is_done_fn": is_done_fn} if layout is GOALS else {}


def makers() -> dict[str, tuple[Layout, Any, dict[str, Any]]]:
    """A layout, a class and its options, by name."""
    plain = {name: (layout, rlm.ReplayMemory, {}) for name, layout in LAYOUTS.items()}
    ranked = {
        f"prioritized, {norm}": (
            LAYOUTS["dict, vector reward, extra"],
            rlm.PrioritizedReplayMemory,
            {"weight_normalization": norm, "stratified": norm == "batch"},
        )
        for norm in ("batch", "memory")
    }
    goals = {
        f"{kind.__name__}, {strategy}, {relabel}": (
            GOALS,
            kind,
            {**judge(GOALS), "strategy": strategy, "relabel": relabel, "goal_samples": 2},
        )
        for kind, strategy, relabel in (
            (rlm.HindsightReplayMemory, "final", "sample"),
            (rlm.HindsightReplayMemory, "future", "sample"),
            (rlm.HindsightReplayMemory, "episode", "store"),
            (rlm.HindsightReplayMemory, "final", "none"),
            (rlm.PrioritizedHindsightReplayMemory, "future", "sample"),
            (rlm.PrioritizedHindsightReplayMemory, "final", "store"),
        )
    }
    return {**plain, **ranked, **goals}


MAKERS = makers()


def make(name: str, capacity: int, device: str, seed: int = 3) -> Any:
    layout, kind, options = MAKERS[name]
    return layout.memory(capacity, kind, seed=seed, device=device, **options)


def drawn(layout: Layout, rng: np.random.Generator, count: int) -> dict[str, Any]:
    """The channels of `count` rows, as `extend` takes them."""
    rows = [layout.draw(rng) for _ in range(count)]
    stacked = {
        name: mapped(rows[0][name], lambda *parts: np.stack(parts), *(row[name] for row in rows[1:]))
        for name in rows[0]
    }
    return {name: value for name, value in stacked.items() if name != "extra" or value}


def story(layout: Layout, rng: np.random.Generator, count: int, first: int = 0) -> dict[str, Any]:
    """`count` rows of two sources with ends, as `extend` takes them."""
    t = np.arange(first, first + count)
    return {**drawn(layout, rng, count), "terminated": t % 7 == 6, "truncated": t % 11 == 10, "source": t % 2}


def row_of(rows: dict[str, Any], i: int) -> dict[str, Any]:
    """One of those rows, as `append` takes it."""
    return {name: mapped(value, lambda part: part[i]) for name, value in rows.items()}
