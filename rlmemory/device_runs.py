"""Runs of steps that move on a GPU: a table for each array says which, and one kernel moves them all.

The tables are made by the host, which knows where trajectories end; no step of the data passes through it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device_array import DeviceArray, Shape
from .placing import fresh, uploaded
from .rawbytes import width_of

Ints = NDArray[np.int64]


def move_runs(flat: DeviceArray, table: Ints, out: DeviceArray) -> None:
    """Copy runs of steps; a row says from where in `flat` (-1: zeros), how many, and to which step of `out`."""
    from .kernels import cuda

    width = width_of(flat)
    if len(table) and width:
        runs = table * width
        runs[:, 0] = np.where(table[:, 0] < 0, -1, runs[:, 0] + flat._at)
        runs[:, 2] += out._at
        cuda.move(flat._block, runs, out._block)


def moved(flat: DeviceArray, table: Ints, shape: Shape) -> DeviceArray:
    """A fresh array of this shape, filled by `move_runs`."""
    out = fresh(shape, flat.dtype, flat._number)
    move_runs(flat, table, out)
    return out


def padded(flat: DeviceArray, length: Ints, longest: int, fill: NDArray[Any] | None) -> DeviceArray:
    """The steps as rows of `longest` steps, of which row k has ``length[k]``, and `fill` (None: zeros) after them."""
    shape = (length.size, longest, *flat.shape[1:])
    begin, (runs, holes) = np.cumsum(length) - length, _rows(length, longest)
    runs[:, 0] = begin
    if fill is None:  # the kernel writes zeros as it writes data: every byte once
        return moved(flat, np.concatenate((runs, holes)), shape)
    out = moved(flat, runs, shape)
    holes[:, 0] = 0
    if len(holes):
        move_runs(_repeated(fill, int(holes[:, 1].max()), flat._number), holes, out)
    return out


def mask_of(length: Ints, longest: int, number: int) -> DeviceArray:
    """True at the first ``length[k]`` steps of row k."""
    ones = uploaded(np.ones(longest, np.bool_), number)
    return moved(ones, np.concatenate(_rows(length, longest)), (length.size, longest))


def _rows(length: Ints, longest: int) -> tuple[Ints, Ints]:
    """Tables for data that begins at step 0, and for what comes after it: zeros."""
    at = np.arange(length.size) * longest
    runs = np.stack((np.zeros_like(at), length, at), axis=1)
    holes = np.stack((np.full_like(at, -1), longest - length, at + length), axis=1)
    return runs, holes[length < longest]


def _repeated(row: NDArray[Any], count: int, number: int) -> DeviceArray:
    from .kernels import cuda

    out = fresh((count, *row.shape), row.dtype, number)
    table = np.array([[0, row.nbytes, 0]], np.int64)
    if row.nbytes:
        cuda.gather(uploaded(row, number)._block, table, np.zeros(count, np.int64), out._block)
    return out


def shifted(actions: DeviceArray, begins: NDArray[np.bool_], first: NDArray[Any]) -> DeviceArray:
    """Each action one step later; where a step begins something, a row of `first` for its row of `begins`."""
    feature = actions.shape[begins.ndim :]
    flat = actions.reshape((begins.size, *feature))
    begin = np.flatnonzero(begins)
    length = np.diff(begin, append=begins.size)
    runs = np.stack((begin, length - 1, begin + 1), axis=1)[length > 1]
    fills = np.stack((np.full_like(begin, -1), np.ones_like(begin), begin), axis=1)
    if not any(first.tobytes()):
        return moved(flat, np.concatenate((runs, fills)), actions.shape)
    out = moved(flat, runs, actions.shape)
    rows = first.reshape((-1, *feature))
    fills[:, 0] = begin // begins.shape[-1] if begins.ndim > 1 else 0
    move_runs(uploaded(rows, actions._number), fills, out)
    return out
