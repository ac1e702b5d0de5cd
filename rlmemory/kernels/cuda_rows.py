"""The kernels that choose rows and describe them, for a GPU by numba.cuda. What each does is in `reference`.

The arithmetic is `cpu_rows`', compiled for the device; a grid shares out the rows. What is exported are the functions
that launch: they take arrays of the host, too, and wait for the device only if some of the outputs lie there.
Numba's cache on disk sees edits of this file alone; after those of `cpu_rows` run with ``RLMEMORY_NUMBA_CACHE=0``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cpu_rows
from ._cuda import blocks_for, cuda, device, kernel, launch, lent, product

_uniform_rows = device(cpu_rows.uniform_rows)
_distinct_row = device(cpu_rows.distinct_row)
_window_rows = device(cpu_rows.window_rows)
_annotate_rows = device(cpu_rows.annotate_rows)
_nstep_row = device(cpu_rows.nstep_row)
_goal_rows = device(cpu_rows.goal_rows)


# ---- draws ----------------------------------------------------------------------------------------------------------


@kernel
def _uniform(u: Any, oldest: int, length: int, capacity: int, out_id: Any, out_slot: Any) -> None:
    _uniform_rows(cuda.grid(1), cuda.gridsize(1), u, oldest, length, capacity, out_id, out_slot)


def uniform(u: Any, oldest: int, length: int, capacity: int, out_id: Any, out_slot: Any) -> None:
    if not u.size:
        return
    with lent((u,), (out_id, out_slot)) as (u, out_id, out_slot):
        launch(_uniform, blocks_for(u.size))(u, oldest, length, capacity, out_id, out_slot)


@kernel
def _distinct(u: Any, length: int, out_keys: Any, out_values: Any, out_index: Any) -> None:
    # The table is cleared by one block. Each draw depends on the swaps of all before it: one thread makes them.
    for place in range(cuda.grid(1), out_keys.size, cuda.gridsize(1)):
        out_keys[place] = -1
    cuda.syncthreads()
    if cuda.grid(1) == 0:
        for i in range(u.size):
            _distinct_row(i, u, length, out_keys, out_values, out_index)


def distinct(u: Any, length: int, out_keys: Any, out_values: Any, out_index: Any) -> None:
    if not u.size:
        return
    with lent((u,), (out_keys, out_values, out_index)) as (u, out_keys, out_values, out_index):
        launch(_distinct, 1)(u, length, out_keys, out_values, out_index)


# ---- what lies around rows, and what is said of them ----------------------------------------------------------------


@kernel
def _window(
    chosen: Any, oldest: int, end: int, capacity: int, before: int, stop: bool, is_done: Any, back: Any, ahead: Any,
    out_id: Any, out_slot: Any,
) -> None:  # fmt: skip
    _window_rows(
        cuda.grid(1), cuda.gridsize(1), chosen, oldest, end, capacity, before, stop, is_done, back, ahead,
        out_id, out_slot,
    )  # fmt: skip


def window(
    chosen: Any, oldest: int, end: int, capacity: int, before: int, stop: bool, is_done: Any, back: Any, ahead: Any,
    out_id: Any, out_slot: Any,
) -> None:  # fmt: skip
    if not chosen.size:
        return
    with lent((chosen, is_done, back, ahead), (out_id, out_slot)) as (chosen, is_done, back, ahead, out_id, out_slot):
        launch(_window, blocks_for(chosen.size))(
            chosen, oldest, end, capacity, before, bool(stop), is_done, back, ahead, out_id, out_slot
        )


@kernel
def _annotate(
    ids: Any, slots: Any, oldest: int, capacity: int, discount: float, is_done: Any, back: Any, out_terminated: Any,
    out_truncated: Any, out_mask: Any, out_first: Any, out_steps: Any, out_discount: Any, out_before: Any,
) -> None:  # fmt: skip
    _annotate_rows(
        cuda.grid(1), cuda.gridsize(1), ids, slots, oldest, capacity, discount, is_done, back,
        out_terminated, out_truncated, out_mask, out_first, out_steps, out_discount, out_before,
    )  # fmt: skip


def annotate(
    ids: Any, slots: Any, oldest: int, capacity: int, discount: float, is_done: Any, back: Any, out_terminated: Any,
    out_truncated: Any, out_mask: Any, out_first: Any, out_steps: Any, out_discount: Any, out_before: Any,
) -> None:  # fmt: skip
    if not ids.size:
        return
    outputs = (out_terminated, out_truncated, out_mask, out_first, out_steps, out_discount, out_before)
    with lent((ids, slots, is_done, back), outputs) as (ids, slots, is_done, back, *outs):
        launch(_annotate, blocks_for(ids.size))(
            ids, slots, oldest, capacity, float(discount), is_done, back, *outs
        )  # fmt: skip


@kernel
def _nstep(
    slots: Any, rewards: Any, discount: float, is_done: Any, out_reward: Any, out_last: Any, out_steps: Any,
    out_discount: Any, out_terminated: Any, out_truncated: Any,
) -> None:  # fmt: skip
    for b in range(cuda.grid(1), slots.shape[0], cuda.gridsize(1)):
        _nstep_row(b, slots, discount, is_done, out_last, out_steps, out_discount, out_terminated, out_truncated)
        for c in range(rewards.shape[1]):
            total, factor = 0.0, 1.0
            for t in range(out_steps[b]):
                total += product(factor, np.float64(rewards[slots[b, t], c]))
                factor *= discount
            out_reward[b, c] = total


def nstep(
    slots: Any, rewards: Any, discount: float, is_done: Any, out_reward: Any, out_last: Any, out_steps: Any,
    out_discount: Any, out_terminated: Any, out_truncated: Any,
) -> None:  # fmt: skip
    if not slots.shape[0]:
        return
    outputs = (out_reward, out_last, out_steps, out_discount, out_terminated, out_truncated)
    with lent((slots, rewards, is_done), outputs) as (slots, rewards, is_done, *outs):
        launch(_nstep, blocks_for(slots.shape[0]))(slots, rewards, float(discount), is_done, *outs)


@kernel
def _goal_row(
    ids: Any, u: Any, strategy: int, oldest: int, end: int, capacity: int, is_done: Any, back: Any, ahead: Any,
    out_id: Any,
) -> None:  # fmt: skip
    _goal_rows(
        cuda.grid(1), cuda.gridsize(1), ids, u, strategy, oldest, end, capacity, is_done, back, ahead, out_id
    )  # fmt: skip


def goal_row(
    ids: Any, u: Any, strategy: int, oldest: int, end: int, capacity: int, is_done: Any, back: Any, ahead: Any,
    out_id: Any,
) -> None:  # fmt: skip
    if not ids.size:
        return
    with lent((ids, u, is_done, back, ahead), (out_id,)) as (ids, u, is_done, back, ahead, out_id):
        launch(_goal_row, blocks_for(ids.size))(
            ids, u, strategy, oldest, end, capacity, is_done, back, ahead, out_id
        )  # fmt: skip
