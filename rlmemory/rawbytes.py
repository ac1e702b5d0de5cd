"""Arrays as kernels see them: bytes, and runs of bytes that move."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels


def width_of(leaf: Any) -> int:
    """Bytes in an entry along the first axis."""
    return int(math.prod(leaf.shape[1:]) * leaf.dtype.itemsize)


def move_runs(flat: NDArray[Any], table: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Copy runs of steps; a row of `table` says from where in `flat`, how many, and to which step of `out`."""
    if flat.size and flat.dtype.itemsize:
        kernels.active().move(raw(flat), table * width_of(flat), raw(out))


class _Lent:
    """An array's memory, described as one that may be written to."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.__array_interface__ = {
            "data": (array.ctypes.data, False), "shape": (array.nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of an array, copied if they are not contiguous, for a kernel.

    Kernels write to no input. Their bytes are of a writable type all the same: a kernel is compiled once more for an
    array that cannot be written to.
    """
    return np.asarray(_Lent(np.ascontiguousarray(array)))
