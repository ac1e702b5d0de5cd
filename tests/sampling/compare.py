"""A batch beside the cells that it should hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm

from .layouts import Layout, leaves, same, zeros
from .model import Ask, Cell, Model, Row


def compare(batch: rlm.Batch, windows: list[list[Cell]], layout: Layout, ask: Ask, *, wide: bool | None = None) -> None:
    """Every array of a batch, its dtype, shape and bytes, against the cells that it should hold."""
    wide = ask.windows if wide is None else wide

    def stacked(values: list[list[Any]], dtype: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        array = np.empty((len(values), len(values[0]) if values else 0, *shape), dtype)
        for b, window in enumerate(values):
            for t, value in enumerate(window):
                array[b, t] = value
        array = array if wide else array[:, 0]
        return array.swapaxes(0, 1) if wide and ask.time_major else array

    def check(name: str, given: np.ndarray, function: Callable[[Cell], Any], dtype: Any, shape: tuple = ()) -> None:
        wanted = stacked([[function(cell) for cell in window] for window in windows], dtype, shape)
        assert same(given, wanted), f"{name}:\n{given!r}\nexpected\n{wanted!r}"

    specs = layout.specs()
    for name in specs:
        given = leaves(getattr(batch, name))
        assert isinstance(getattr(batch, name), type(specs[name])) or not isinstance(specs[name], (dict, tuple))
        for i, spec in enumerate(leaves(specs[name])):
            dtype = layout.sum_dtype if name == "reward" and ask.n_step > 1 else spec.dtype
            check(name, given[i], lambda cell, name=name, i=i: leaves(cell.values[name])[i], dtype, spec.shape)
    check("id", batch.id, lambda cell: -1 if cell.row is None else cell.row.id, np.int64)
    check("source", batch.source, lambda cell: 0 if cell.row is None else cell.row.source, np.int32)
    check("mask", batch.mask, lambda cell: cell.row is not None, bool)
    check("terminated", batch.terminated, lambda cell: cell.code == 1, bool)
    check("truncated", batch.truncated, lambda cell: cell.code == 2, bool)
    check("is_first", batch.is_first, lambda cell: cell.is_first, bool)
    check("steps", batch.steps, lambda cell: cell.steps, np.int64)
    check("discount", batch.discount, lambda cell: cell.discount, np.float64)
    assert same(batch.weight, np.ones(len(windows)))
    if not ask.previous:
        assert batch.previous_action is batch.previous_reward is None
        return
    earlier = {"action": leaves(batch.previous_action), "reward": [batch.previous_reward]}
    for name, given in earlier.items():
        for i, spec in enumerate(leaves(specs[name])):

            def value(cell: Cell, name: str = name, i: int = i, spec: Any = spec) -> Any:
                return leaves(cell.before.values[name])[i] if cell.before else zeros(spec)

            check(f"previous {name}", given[i], value, spec.dtype, spec.shape)


def compare_sample(memory: rlm.ReplayMemory, model: Model, ask: Ask) -> rlm.Batch | None:
    """Draw from both. Where there is too little to draw from, the memory says so and draws nothing."""
    windows, batch = model.sample(ask), None
    if windows is None:
        with pytest.raises(rlm.EmptyMemoryError):
            memory.sample(ask.size, **ask.keywords())
    else:
        batch = memory.sample(ask.size, **ask.keywords())
        compare(batch, windows, model.layout, ask)
    assert memory._rng.bit_generator.state == model.rng.bit_generator.state
    return batch


def compare_experience(record: rlm.Experience, rows: list[Row]) -> None:
    """An Experience against the rows that it should hold."""
    for k, row in enumerate(rows):
        for name, value in row.values.items():
            for given, wanted in zip(leaves(getattr(record, name)), leaves(value), strict=True):
                assert same(given[k], wanted), f"{name} of row {k}: {given[k]!r}, expected {wanted!r}"
    assert record.id.tolist() == [row.id for row in rows]
    assert record.source.tolist() == [row.source for row in rows]
    assert record.terminated.tolist() == [row.code == 1 for row in rows]
    assert record.truncated.tolist() == [row.code == 2 for row in rows]


def compare_episodes(found: rlm.Episodes, model: Model) -> None:
    """The table of episodes against those of the model."""
    episodes, layout = model.episodes(), model.layout
    assert found.first_id.tolist() == [e[0].id for e in episodes]
    assert found.length.tolist() == [len(e) for e in episodes]
    assert found.source.tolist() == [e[0].source for e in episodes]
    assert found.ended.tolist() == [model.ending(e) for e in episodes]
    wide = np.complex128 if layout.reward.dtype.kind == "c" else np.float64
    returns = np.zeros((len(episodes), *layout.reward.shape), wide)
    for i, episode in enumerate(episodes):
        for row in episode:
            returns[i] += row.values["reward"]
    assert same(found.returns, returns.astype(layout.sum_dtype))
