"""Moving bytes on the device. What each kernel does is said in `reference`.

A device reads and writes fast when neighbouring threads handle neighbouring words, wide ones, and when each thread
has several reads under way: one takes as long as hundreds of instructions. So bytes move in the widest word that all
offsets are multiples of, a row or run is shared by as many threads as it has words, and a thread reads four words
before it writes the first.

Functions that threads call and that name `cuda` must be in one module with the kernels that call them: the simulator
replaces that name in a module for as long as a kernel of it runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._cuda import BLOCKS, THREADS, address, blocks_for, cuda, device, kernel, launch, lent

#: So many threads keep a device busy; from there on each gets more work instead.
_FULL = BLOCKS * THREADS // 4
#: Rows of a grid at most.
_ROWS = 65_535
#: For indices: a signed one is looked at each time, whether it counts from the end.
_unsigned = np.uint64


def word_of(bits: int) -> int:
    """The widest word, of 8, 4, 2 or 1 bytes, that divides all the numbers that are or-ed together in `bits`."""
    return (bits | 8) & -(bits | 8)


_word_of = device(word_of)


@device
def _four(origin: Any, to: Any, source: int, target: int, left: int, step: int, real: bool, zero: Any) -> None:
    """Copy up to four of the `left` words from here on, each `step` after the one before; zeros if not `real`."""
    second, third = 2 * step, 3 * step
    a = origin[_unsigned(source)] if real and left > 0 else zero
    b = origin[_unsigned(source + step)] if real and left > step else zero
    c = origin[_unsigned(source + second)] if real and left > second else zero
    d = origin[_unsigned(source + third)] if real and left > third else zero
    if left > 0:
        to[_unsigned(target)] = a
    if left > step:
        to[_unsigned(target + step)] = b
    if left > second:
        to[_unsigned(target + second)] = c
    if left > third:
        to[_unsigned(target + third)] = d


# ---- rows -----------------------------------------------------------------------------------------------------------


@device
def _slot(slots: Any, i: int) -> int:
    """Slot i, -1 for padding, -2 after the last."""
    return max(slots[_unsigned(i)], -1) if i < slots.size else -2


@device
def _read(origin: Any, start: int, words: int, row: int, real: bool, zero: Any) -> Any:
    return origin[_unsigned(start + row * words)] if real else zero


@device
def _narrow(origin: Any, to: Any, start: int, at: int, words: int, slots: Any, put: bool, zero: Any) -> None:
    """Rows of no more words than a block has threads: a power of 2 of threads for each, and four rows at a time."""
    shift = 0
    while 1 << shift < words:
        shift += 1
    lane = cuda.grid(1) & ((1 << shift) - 1)
    if lane >= words:
        return
    step = cuda.gridsize(1) >> shift
    start += lane
    at += lane
    lowest = 0 if put else -1
    i = cuda.grid(1) >> shift
    while i < slots.size:  # a `range` divides to know how many turns there are, which takes as long as a row
        j, k, n = i + step, i + 2 * step, i + 3 * step
        s, t, u, v = _slot(slots, i), _slot(slots, j), _slot(slots, k), _slot(slots, n)
        a = _read(origin, start, words, i if put else s, s >= 0, zero)
        b = _read(origin, start, words, j if put else t, t >= 0, zero)
        c = _read(origin, start, words, k if put else u, u >= 0, zero)
        d = _read(origin, start, words, n if put else v, v >= 0, zero)
        if s >= lowest:
            to[_unsigned(at + (s if put else i) * words)] = a
        if t >= lowest:
            to[_unsigned(at + (t if put else j) * words)] = b
        if u >= lowest:
            to[_unsigned(at + (u if put else k) * words)] = c
        if v >= lowest:
            to[_unsigned(at + (v if put else n) * words)] = d
        i += 4 * step


@device
def _wide(origin: Any, to: Any, start: int, at: int, words: int, slots: Any, put: bool, zero: Any) -> None:
    """Longer rows: a block takes a part of one at a time, four words for each thread."""
    threads = cuda.blockDim.x
    parts = (words + 4 * threads - 1) // (4 * threads)
    tile = cuda.blockIdx.x
    while tile < slots.size * parts:
        i = tile // parts
        here = (tile - i * parts) * 4 * threads + cuda.threadIdx.x
        slot = _slot(slots, i)
        if slot >= 0 or not put:
            source = start + (i if put else slot) * words + here
            target = at + (slot if put else i) * words + here
            _four(origin, to, source, target, words - here, threads, slot >= 0, zero)
        tile += cuda.gridDim.x


@device
def _rows(origin: Any, to: Any, start: int, at: int, words: int, slots: Any, put: bool, zero: Any) -> None:
    if words > cuda.blockDim.x:
        _wide(origin, to, start, at, words, slots, put, zero)
    else:
        _narrow(origin, to, start, at, words, slots, put, zero)


@kernel
def _rows_of_fields(origin: Any, table: Any, slots: Any, to: Any, base: int, put: bool) -> None:
    """Both ways: row ``slots[i]`` of `origin` becomes row i of `to`; with `put` row i becomes row ``slots[i]``."""
    for field in range(cuda.blockIdx.y, table.shape[0], cuda.gridDim.y):
        start, width, at = table[field, 0], table[field, 1], table[field, 2]
        word = _word_of(start | width | at | base)
        if word == 8:
            a, b = origin[: origin.size >> 3 << 3].view(np.uint64), to[: to.size >> 3 << 3].view(np.uint64)
            _rows(a, b, start >> 3, at >> 3, width >> 3, slots, put, np.uint64(0))
        elif word == 4:
            a, b = origin[: origin.size >> 2 << 2].view(np.uint32), to[: to.size >> 2 << 2].view(np.uint32)
            _rows(a, b, start >> 2, at >> 2, width >> 2, slots, put, np.uint32(0))
        elif word == 2:
            a, b = origin[: origin.size >> 1 << 1].view(np.uint16), to[: to.size >> 1 << 1].view(np.uint16)
            _rows(a, b, start >> 1, at >> 1, width >> 1, slots, put, np.uint16(0))
        else:
            _rows(origin, to, start, at, width, slots, put, np.uint8(0))


def gather(block: Any, table: Any, slots: Any, out: Any) -> None:
    if slots.size and table.shape[0] and out.size:
        with lent((block, table, slots), (out,)) as arrays:
            _launch_rows(out.size, False, *arrays)


def scatter(rows: Any, table: Any, slots: Any, out: Any) -> None:
    if slots.size and table.shape[0] and rows.size:
        # Threads come in any order: which of equal slots is the last is settled before.
        last = last_of_each(slots if isinstance(slots, np.ndarray) else slots.copy_to_host())
        with lent((rows, table, last), (out,)) as arrays:
            _launch_rows(rows.size, True, *arrays)


def last_of_each(slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """The slots with all but the last of equal ones set to -1."""
    if (slots[1:] > slots[:-1]).all():
        return slots
    _, place = np.unique(slots[::-1], return_index=True)
    place = slots.size - 1 - place
    last = np.full_like(slots, -1)
    last[place] = slots[place]
    return last


def _launch_rows(moved: int, put: bool, origin: Any, table: Any, slots: Any, to: Any) -> None:
    words = moved >> 3
    blocks = blocks_for(max(slots.size, min(words, _FULL), words >> 2))
    base = word_of(address(origin) | address(to))
    launch(_rows_of_fields, (blocks, min(table.shape[0], _ROWS)))(origin, table, slots, to, base, put)


# ---- runs -----------------------------------------------------------------------------------------------------------


@device
def _share(
    origin: Any, to: Any, source: int, target: int, count: int, lane: int, lanes: int, real: bool, zero: Any
) -> None:
    """One thread's share of a run of words."""
    k = lane
    while k < count:
        _four(origin, to, source + k, target + k, count - k, lanes, real, zero)
        k += 4 * lanes


@device
def _run(
    origin: Any, to: Any, words_from: Any, words_to: Any, shift: int, start: int, count: int, at: int, lane: int,
    lanes: int, zero: Any,
) -> None:  # fmt: skip
    """A run in words of ``1 << shift`` bytes, its ragged ends in bytes."""
    real, byte = start >= 0, np.uint8(0)
    head = min(-at & ((1 << shift) - 1), count)
    words = (count - head) >> shift
    done = head + (words << shift)
    _share(origin, to, start, at, head, lane, lanes, real, byte)
    _share(words_from, words_to, (start + head) >> shift, (at + head) >> shift, words, lane, lanes, real, zero)
    _share(origin, to, start + done, at + done, count - done, lane, lanes, real, byte)


@kernel
def _runs(origin: Any, table: Any, to: Any, base: int, shift: int) -> None:
    """``1 << shift`` threads share a run, if need be all of the grid."""
    lane, lanes = cuda.grid(1) & ((1 << shift) - 1), 1 << shift
    groups = cuda.gridsize(1) >> shift
    if cuda.grid(1) >> shift >= groups:  # the last group is not whole
        return
    for run in range(cuda.grid(1) >> shift, table.shape[0], groups):
        start, count, at = table[run, 0], table[run, 1], table[run, 2]
        word = _word_of(base | (start - at if start >= 0 else 0))
        if word == 8:
            a, b = origin[: origin.size >> 3 << 3].view(np.uint64), to[: to.size >> 3 << 3].view(np.uint64)
            _run(origin, to, a, b, 3, start, count, at, lane, lanes, np.uint64(0))
        elif word == 4:
            a, b = origin[: origin.size >> 2 << 2].view(np.uint32), to[: to.size >> 2 << 2].view(np.uint32)
            _run(origin, to, a, b, 2, start, count, at, lane, lanes, np.uint32(0))
        elif word == 2:
            a, b = origin[: origin.size >> 1 << 1].view(np.uint16), to[: to.size >> 1 << 1].view(np.uint16)
            _run(origin, to, a, b, 1, start, count, at, lane, lanes, np.uint16(0))
        else:
            _share(origin, to, start, at, count, lane, lanes, start >= 0, np.uint8(0))


def move(block: Any, table: Any, out: Any) -> None:
    runs = table.shape[0]
    if runs and out.size:
        # A table on the device is not looked at for that. Of what it may say, this is the most, but for repetitions.
        moved = int(table[:, 1].sum()) if isinstance(table, np.ndarray) else min(block.size, out.size)
        shift = shift_for(moved, runs)
        with lent((block, table), (out,)) as (origin, runs_there, to):
            base = word_of(address(origin) | address(to))
            launch(_runs, blocks_for(runs << shift))(origin, runs_there, to, base, shift)


def shift_for(moved: int, runs: int) -> int:
    """How many threads share a run, as a power of 2: one for each four words of 8 bytes that a run has on average.

    Few rows into a large memory would else be moved by a whole grid, whose threads only find that nothing is left.
    """
    return min((moved // (8 * 4 * runs)).bit_length(), (BLOCKS * THREADS).bit_length() - 1)
