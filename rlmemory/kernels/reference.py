"""The kernels in plain NumPy: slow and obvious, the oracle of the others.

A kernel is a pure function on arrays and scalars. Outputs are arguments, last, named ``out...``. It allocates
nothing that it returns, draws nothing (uniforms come in), raises nothing and knows no class.

A *block* is a 1-D uint8 array. A *table* has one int64 row per field: where the field starts in the block that
holds the memory, how many bytes one of its rows has, and where it starts in the other block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .reference_runs import run_starts as run_starts
from .reference_runs import scan as scan
from .reference_tree import tree_draw as tree_draw
from .reference_tree import tree_span as tree_span
from .reference_tree import tree_update as tree_update

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def gather(block: Bytes, table: Ints, slots: Ints, out: Bytes) -> None:
    """Take the rows at `slots`, in this order; a slot of -1 is a row of zeros."""
    for start, width, at in table.tolist():
        rows = np.zeros((slots.size, width), np.uint8)
        real = slots >= 0
        rows[real] = block[start + slots[real, None] * width + np.arange(width)]
        out[at : at + rows.size] = rows.ravel()


def move(block: Bytes, table: Ints, out: Bytes) -> None:
    """Copy runs of bytes; a row of `table` is where one starts in `block`, its length, and where it goes in `out`.

    A start of -1 is a run of zeros.
    """
    for start, count, at in table.tolist():
        out[at : at + count] = block[start : start + count] if start >= 0 else 0


def scatter(rows: Bytes, table: Ints, slots: Ints, out: Bytes) -> None:
    """Put row i of `rows` into slot ``slots[i]`` of `out`; the last of equal slots wins, -1 is left out."""
    for at, width, start in table.tolist():
        for i, slot in enumerate(slots.tolist()):
            if slot >= 0:
                source = at + i * width
                target = start + slot * width
                out[target : target + width] = rows[source : source + width]


def uniform(u: Floats, oldest: int, length: int, capacity: int, out_id: Ints, out_slot: Ints) -> None:
    """Ids drawn with replacement from the `length` rows that begin with id `oldest`, and their slots."""
    out_id[:] = oldest + np.minimum(np.floor(u * length).astype(np.int64), length - 1)
    out_slot[:] = out_id % capacity


def distinct(u: Floats, length: int, out_keys: Ints, out_values: Ints, out_index: Ints) -> None:
    """Distinct indices below `length`, one for each of `u`, all orders equally likely.

    Fisher and Yates' shuffle, stopped early: draw i swaps position i with one at or after it. Only positions that
    were swapped differ from their own number; the compiled version keeps those in a hash table, for which
    `out_keys` and `out_values` (scratch, a power of 2 and at least twice as long as `u`) have the room.
    """
    moved: dict[int, int] = {}
    for i, x in enumerate(u.tolist()):
        j = i + min(int(x * (length - i)), length - i - 1)
        out_index[i] = moved.get(j, j)
        moved[j] = moved.get(i, i)


def link(
    position: Ints, begin: int, capacity: int, tail: Ints, out_tail: Ints, out_back: NDArray[np.int32],
    out_ahead: NDArray[np.int32],
) -> None:  # fmt: skip
    """Chain the rows from id `begin` on, each to the one before it of its own source.

    ``position[i]`` is the place of row i's source in `tail`, which holds each source's last id so far (-1: none); a
    position of -1 is a row that stands alone.
    ``out_back[slot]`` is how many ids before a row its predecessor lies, ``out_ahead[slot]`` how many after it its
    successor; 0 where there is none.
    """
    out_tail[:] = tail
    for i, k in enumerate(position.tolist()):
        row = begin + i
        if k < 0:
            out_back[row % capacity] = out_ahead[row % capacity] = 0
            continue
        last = int(out_tail[k])
        distance = row - last if last >= 0 and row - last < capacity else 0
        out_back[row % capacity] = distance
        out_ahead[row % capacity] = 0
        if distance:
            out_ahead[last % capacity] = distance
        out_tail[k] = row


def window(
    chosen: Ints, oldest: int, end: int, capacity: int, before: int, stop: bool, is_done: Bytes,
    back: NDArray[np.int32], ahead: NDArray[np.int32], out_id: Ints, out_slot: Ints,
) -> None:  # fmt: skip
    """The rows around each chosen one, of its own source: `before` rows that lead to it, itself, and what follows.

    ``out_id[b]`` has the chosen id at position `before`; where the chain has no row, or with `stop` the episode has
    none, id and slot are -1. The live ids are ``oldest <= id < end``. Empty `back` and `ahead` stand for one chain of
    all rows.
    """
    out_id[:] = -1
    out_slot[:] = -1
    for b, middle in enumerate(chosen.tolist()):
        row = middle
        for t in range(before, -1, -1):
            out_id[b, t] = row
            row = _previous(row, oldest, capacity, back)
            if row < 0 or (stop and is_done[row % capacity] != 0):
                break
        row = middle
        for t in range(before, out_id.shape[1]):
            out_id[b, t] = row
            last = stop and is_done[row % capacity] != 0
            row = _next(row, end, capacity, ahead)
            if row < 0 or last:
                break
    out_slot[:] = np.where(out_id < 0, -1, out_id % capacity)


def _previous(row: int, oldest: int, capacity: int, back: NDArray[np.int32]) -> int:
    """The id before `row` in its chain, or -1."""
    distance = int(back[row % capacity]) if back.size else 1
    return row - distance if distance > 0 and row - distance >= oldest else -1


def _next(row: int, end: int, capacity: int, ahead: NDArray[np.int32]) -> int:
    """The id after `row` in its chain, or -1."""
    distance = int(ahead[row % capacity]) if ahead.size else 1
    return row + distance if distance > 0 and row + distance < end else -1


def remaining(
    oldest: int, end: int, capacity: int, stop: bool, is_done: Bytes, ahead: NDArray[np.int32], out_count: Ints
) -> None:
    """How many rows a window can have that begins at each live id, itself included; with `stop`, in its episode."""
    for row in range(end - 1, oldest - 1, -1):
        following = _next(row, end, capacity, ahead)
        if following < 0 or (stop and is_done[row % capacity] != 0):
            out_count[row - oldest] = 1
        else:
            out_count[row - oldest] = 1 + out_count[following - oldest]


def annotate(
    ids: Ints, slots: Ints, oldest: int, capacity: int, discount: float, is_done: Bytes, back: NDArray[np.int32],
    out_terminated: Bools, out_truncated: Bools, out_mask: Bools, out_first: Bools, out_steps: Ints,
    out_discount: Floats, out_before: Ints,
) -> None:  # fmt: skip
    """What a batch of steps says beside its channels; nothing at padding, where the id is -1.

    `back` is empty when all rows are of one source and follow each other: then every distance is 1. `out_before`, if
    it is not empty, gets the slot of the row before each one in its episode, or -1.
    """
    real = ids >= 0
    code = np.where(real, is_done[slots], 0)
    distance = back[slots] if back.size else np.ones(ids.size, np.int64)
    before = ids - distance
    has_before = real & (distance > 0) & (before >= oldest)
    starts = ~has_before | (is_done[before % capacity] != 0)
    out_terminated[:] = code == 1
    out_truncated[:] = code == 2
    out_mask[:] = real
    out_first[:] = real & starts
    out_steps[:] = real
    out_discount[:] = np.where(real & (code != 1), discount, 0.0)
    if out_before.size:
        out_before[:] = np.where(starts, -1, before % capacity)


def nstep(
    slots: Ints, rewards: NDArray[Any], discount: float, is_done: Bytes, out_reward: NDArray[Any], out_last: Ints,
    out_steps: Ints, out_discount: Floats, out_terminated: Bools, out_truncated: Bools,
) -> None:  # fmt: skip
    """Sums over windows of up to n steps: ``sum of discount**k * reward[k]`` over the steps that are there.

    `slots` are (B, n) from `window`; `rewards` and `out_reward` are float32 or float64 (slots, components). The sum is
    taken in float64 and in time order, the first reward undiscounted, and rounded once, where it is stored. `out_last`
    is the slot of the last step, `out_discount` is ``discount**steps``, and 0 where that step terminated.
    """
    for b in range(slots.shape[0]):
        total, factor, steps = np.zeros(rewards.shape[1]), 1.0, 0
        while steps < slots.shape[1] and slots[b, steps] >= 0:
            total += factor * rewards[slots[b, steps]].astype(np.float64)
            factor *= discount
            steps += 1
        out_reward[b] = total
        out_last[b] = slots[b, steps - 1]
        code = is_done[out_last[b]]
        out_steps[b] = steps
        out_discount[b] = 0.0 if code == 1 else factor
        out_terminated[b] = code == 1
        out_truncated[b] = code == 2


def number_episodes(
    oldest: int, end: int, capacity: int, is_done: Bytes, back: NDArray[np.int32], out_episode: Ints, out_step: Ints,
    out_count: Ints,
) -> None:  # fmt: skip
    """Number the episodes in the order of their first rows, and the steps in each.

    ``out_episode[i]`` and ``out_step[i]`` belong to id ``oldest + i``; ``out_count[0]`` is how many episodes there are.
    """
    count = 0
    for row in range(oldest, end):
        before = _previous(row, oldest, capacity, back)
        if before < 0 or is_done[before % capacity] != 0:
            out_episode[row - oldest], out_step[row - oldest] = count, 0
            count += 1
        else:
            out_episode[row - oldest] = out_episode[before - oldest]
            out_step[row - oldest] = out_step[before - oldest] + 1
    out_count[0] = count


def goal_row(
    ids: Ints, u: Floats, strategy: int, oldest: int, end: int, capacity: int, is_done: Bytes, back: NDArray[np.int32],
    ahead: NDArray[np.int32], out_id: Ints,
) -> None:  # fmt: skip
    """For each row the one, in its episode, after which its new goal was achieved.

    Strategy 0 is the episode's last row, 1 any of its rows, 2 any from the row itself on; the `u` choose.
    """
    for i, row in enumerate(ids.tolist()):
        episode = [row]
        while is_done[episode[-1] % capacity] == 0 and (row := _next(episode[-1], end, capacity, ahead)) >= 0:
            episode.append(row)
        if strategy == 1:
            while (row := _previous(episode[0], oldest, capacity, back)) >= 0 and is_done[row % capacity] == 0:
                episode.insert(0, row)
        at = len(episode) - 1 if strategy == 0 else min(int(u[i] * len(episode)), len(episode) - 1)
        out_id[i] = episode[at]
