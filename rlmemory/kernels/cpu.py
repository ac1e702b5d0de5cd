"""The kernels, compiled by Numba for the CPU. What each does is said in `reference`."""

from __future__ import annotations

from typing import Any

from ._bytes import copy, prefetch, stream, zero
from ._jit import inline, kernel
from .cpu_rows import annotate as annotate
from .cpu_rows import distinct as distinct
from .cpu_rows import goal_row as goal_row
from .cpu_rows import link as link
from .cpu_rows import nstep as nstep
from .cpu_rows import number_episodes as number_episodes
from .cpu_rows import remaining as remaining
from .cpu_rows import uniform as uniform
from .cpu_rows import window as window
from .cpu_runs import run_starts as run_starts
from .cpu_runs import scan as scan
from .cpu_tree import tree_draw as tree_draw
from .cpu_tree import tree_span as tree_span
from .cpu_tree import tree_update as tree_update

#: How many rows ahead to ask for. Random rows of a large memory miss every cache, and one miss takes as long as
#: copying several rows. Medians for 4,096 rows of 165 bytes: 8 ahead 286 us, 16: 222, 32: 193, 64: 190.
_AHEAD = 32
_LINE = 64
#: Results from this size on leave the caches anyway and are written past them: 13 against 9 GB/s at 24 MB.
_LARGE = 1 << 22
#: Runs below this size are not worth their ragged ends.
_LONG = 1 << 12


@inline
def _ask_for(row: int, width: int) -> None:
    prefetch(row)
    if width > 8:  # longer rows may lie across two lines; the processor follows by itself from there
        prefetch(row + min(width - 1, _LINE))


@inline
def _copy_row(to: int, row: int, width: int) -> None:
    """One row: moves of a known size where the size is a usual one, since a call costs as much as the row."""
    if width == 1:
        copy(to, row, 1)
    elif width == 4:
        copy(to, row, 4)
    elif width == 8:
        copy(to, row, 8)
    elif 16 <= width <= 32:  # two overlapping moves cover every size in between
        copy(to, row, 16)
        copy(to + width - 16, row + width - 16, 16)
    elif 64 <= width <= 128:
        copy(to, row, 64)
        copy(to + width - 64, row + width - 64, 64)
    else:
        copy(to, row, width)


@inline
def _copy_run(to: int, origin: int, count: int, large: bool) -> None:
    """Many bytes; past the caches where the whole result is large."""
    if not large or count < _LONG:
        copy(to, origin, count)
        return
    head = -to % _LINE
    copy(to, origin, head)
    at = head
    while at + _LINE <= count:
        stream(to + at, origin + at)
        at += _LINE
    copy(to + at, origin + at, count - at)


@kernel
def move(block: Any, table: Any, out: Any) -> None:
    total = 0
    for k in range(table.shape[0]):
        total += table[k, 1]
    for k in range(table.shape[0]):
        to = out.ctypes.data + table[k, 2]
        if table[k, 0] < 0:
            zero(to, table[k, 1])
        else:
            _copy_run(to, block.ctypes.data + table[k, 0], table[k, 1], total >= _LARGE)


@kernel
def gather(block: Any, table: Any, slots: Any, out: Any) -> None:
    count = slots.size
    large = out.size >= _LARGE
    for field in range(table.shape[0]):
        start, width = block.ctypes.data + table[field, 0], table[field, 1]
        to = out.ctypes.data + table[field, 2]
        for i in range(min(_AHEAD, count)):
            _ask_for(start + max(slots[i], 0) * width, width)
        i = 0
        while i < count and width > 0:
            if i + _AHEAD < count:
                _ask_for(start + max(slots[i + _AHEAD], 0) * width, width)
            # How many rows from here on are neighbours, or all -1: they move as one.
            step = 1 if slots[i] >= 0 else 0
            run = 1
            while i + run < count and slots[i + run] == slots[i + run - 1] + step:
                run += 1
            if slots[i] < 0:
                zero(to, run * width)
            elif run == 1 and width < _LONG:
                _copy_row(to, start + slots[i] * width, width)
            else:
                _copy_run(to, start + slots[i] * width, run * width, large)
            to += run * width
            i += run


@kernel
def scatter(rows: Any, table: Any, slots: Any, out: Any) -> None:
    for field in range(table.shape[0]):
        row, width = rows.ctypes.data + table[field, 0], table[field, 1]
        start = out.ctypes.data + table[field, 2]
        for i in range(slots.size):
            if slots[i] >= 0:
                _copy_row(start + slots[i] * width, row, width)
            row += width
