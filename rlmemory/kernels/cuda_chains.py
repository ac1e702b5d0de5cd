"""The kernels that make chains of rows and follow them to their ends, for a GPU. What each does is in `reference`.

On the CPU these go through the rows in order, each result resting on the one before it. Here each row has a thread,
and each kernel says how the result comes out the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cpu_rows
from ._cuda import allocate, blocks_for, cuda, device, kernel, launch, lent

_link_distance = device(cpu_rows.link_distance)
_step_back = device(cpu_rows.step_back)
_step_ahead = device(cpu_rows.step_ahead)


# ---- link: each row looks for its neighbours ------------------------------------------------------------------------
#
# A row finds the nearest one before it and after it with its position; so all rows of a source together read
# `position` about twice, which is what a thread for each source would read, but with as many threads as rows.
#
# Going through the rows in order, what stands in a slot at the end comes from the last row of the call that lies
# there: one with ``row + capacity >= end``. Only such rows write to their slots, so no two threads meet there. Their
# successor cannot be `capacity` or more after them, since the call ends before that.
#
# The tails, rows from before the call, get a successor, too: the first row of their source, unless a row of the call
# lies in the tail's slot by then, and ``tail + capacity < end``. Of several sources with one tail, which a memory
# never has, the last row wins: that is the largest distance, and takes a pass of its own (`_join`).


@kernel
def _link(
    position: Any, begin: int, capacity: int, tail: Any, out_tail: Any, out_back: Any, out_ahead: Any
) -> None:  # fmt: skip
    count = position.size
    end = begin + count
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        row, place = begin + i, position[i]
        distance = following = 0
        if place >= 0:
            after = i + 1
            while after < count and position[after] != place:
                after += 1
            if after < count:
                following = after - i
            else:
                out_tail[place] = row
        if row + capacity < end:
            continue
        if place >= 0:
            reach = max(i - capacity, -1)
            before = i - 1
            while before > reach and position[before] != place:
                before -= 1
            if before > reach:
                distance = i - before
            elif reach < 0:
                distance = _link_distance(row, tail[place], capacity)
                if distance > 0 and row - distance + capacity >= end:
                    out_ahead[(row - distance) % capacity] = 0  # for `_join`
        out_back[row % capacity] = distance
        out_ahead[row % capacity] = following


@kernel
def _join(begin: int, end: int, capacity: int, out_back: Any, out_ahead: Any) -> None:
    first = max(begin, end - capacity)
    for row in range(first + cuda.grid(1), end, cuda.gridsize(1)):
        distance = int(out_back[row % capacity])
        last = row - distance
        if distance > 0 and last < begin and last + capacity >= end:
            cuda.atomic.max(out_ahead, last % capacity, distance)


def link(position: Any, begin: int, capacity: int, tail: Any, out_tail: Any, out_back: Any, out_ahead: Any) -> None:
    with lent((position, tail), (out_tail, out_back, out_ahead)) as (position, tail, out_tail, out_back, out_ahead):
        if tail.size:
            out_tail.copy_to_device(tail)
        count = position.size
        if count:
            launch(_link, blocks_for(count))(position, begin, capacity, tail, out_tail, out_back, out_ahead)
            launch(_join, blocks_for(min(count, capacity)))(begin, begin + count, capacity, out_back, out_ahead)


# ---- to the ends of chains ------------------------------------------------------------------------------------------
#
# Pointers are doubled: at first each row knows the next one, and 1 as the number of rows up to it; the last row of a
# chain knows itself, and 0. In each round a row adds the number that the row it points to has, and points to where
# that one points. After k rounds it has gone 2**k rows, so that log2(rows) rounds lead every row to its chain's end.


@kernel
def _leap(more: int, hop: Any, count: Any, out_hop: Any, out_count: Any) -> None:
    for i in range(cuda.grid(1), hop.size, cuda.gridsize(1)):
        out_count[i] = count[i] + count[hop[i]] + more
        out_hop[i] = hop[hop[i]]


def _longs(count: int) -> Any:
    return allocate(8 * count)[: 8 * count].view(np.int64)


def _rounds(count: int) -> int:
    return max(count - 1, 1).bit_length()


def _turns(array: Any, rounds: int) -> list[Any]:
    """What round k reads, at k, and writes, at k + 1: by turns another array and this one, which is the last."""
    pair = array, _longs(array.size)
    return [pair[(rounds - k) % 2] for k in range(rounds + 1)]


@kernel
def _point_ahead(
    oldest: int, end: int, capacity: int, stop: bool, is_done: Any, ahead: Any, out_hop: Any, out_count: Any
) -> None:
    for i in range(cuda.grid(1), end - oldest, cuda.gridsize(1)):
        row, slot = oldest + i, (oldest + i) % capacity
        following = _step_ahead(row, int(ahead[slot]) if ahead.size > 0 else 1, end)
        if following < 0 or (stop and is_done[slot] != 0):
            out_hop[i], out_count[i] = i, 0
        else:
            out_hop[i], out_count[i] = following - oldest, 1


def remaining(oldest: int, end: int, capacity: int, stop: bool, is_done: Any, ahead: Any, out_count: Any) -> None:
    count = end - oldest
    if not count:
        return
    with lent((is_done, ahead), (out_count,)) as (is_done, ahead, out_count):
        blocks, rounds = blocks_for(count), _rounds(count)
        hops, counts = _turns(_longs(count), rounds), _turns(out_count, rounds)
        launch(_point_ahead, blocks)(oldest, end, capacity, bool(stop), is_done, ahead, hops[0], counts[0])
        for k in range(rounds):  # the last one counts the row itself, too
            launch(_leap, blocks)(int(k == rounds - 1), hops[k], counts[k], hops[k + 1], counts[k + 1])


@kernel
def _point_back(
    oldest: int, end: int, capacity: int, is_done: Any, back: Any, out_hop: Any, out_step: Any, out_first: Any
) -> None:
    for i in range(cuda.grid(1), end - oldest, cuda.gridsize(1)):
        row, slot = oldest + i, (oldest + i) % capacity
        before = _step_back(row, int(back[slot]) if back.size > 0 else 1, oldest)
        if before < 0 or is_done[before % capacity] != 0:
            out_hop[i], out_step[i], out_first[i] = i, 0, 1
        else:
            out_hop[i], out_step[i], out_first[i] = before - oldest, 1, 0


@kernel
def _add_up(distance: int, number: Any, out_number: Any) -> None:
    # Twice as many rows summed as before: those up to this one, and as many that end where those begin.
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        out_number[i] = number[i] + (number[i - distance] if i >= distance else 0)


@kernel
def _number(first: Any, number: Any, out_episode: Any, out_count: Any) -> None:
    count = number.size
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        out_episode[i] = number[first[i]] - 1
    if cuda.grid(1) == 0:
        out_count[0] = number[count - 1] if count > 0 else 0


def number_episodes(
    oldest: int, end: int, capacity: int, is_done: Any, back: Any, out_episode: Any, out_step: Any, out_count: Any
) -> None:
    """Steps are counted, and first rows found, by doubled pointers; first rows are numbered by summing them up."""
    count = end - oldest
    outputs = out_episode, out_step, out_count
    with lent((is_done, back), outputs) as (is_done, back, out_episode, out_step, out_count):
        blocks, rounds = blocks_for(count), _rounds(count)
        hops, steps = _turns(_longs(count), rounds), _turns(out_step, rounds)
        numbers = _turns(_longs(count), rounds)
        launch(_point_back, blocks)(oldest, end, capacity, is_done, back, hops[0], steps[0], numbers[0])
        for k in range(rounds):
            launch(_leap, blocks)(0, hops[k], steps[k], hops[k + 1], steps[k + 1])
            launch(_add_up, blocks)(1 << k, numbers[k], numbers[k + 1])
        launch(_number, blocks)(hops[-1], numbers[-1], out_episode, out_count)
