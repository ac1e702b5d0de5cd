"""Blocks of bytes, and the columns that are cut from them.

A block is one run of bytes that starts on a 64-byte boundary; each of its columns does too. The arena of a memory is
a block, and so is every result: one allocation, one kernel call to fill it, and typed views that copy nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
_BYTE = np.dtype(np.uint8)

#: Name, dtype and shape of one entry.
Field = tuple[str, np.dtype[Any], tuple[int, ...]]


class Column(NamedTuple):
    """One array of a block: entries of `shape` and `dtype`, from byte `start` on, `width` bytes each."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    width: int


def lay_out(fields: Sequence[Field], rows: int) -> tuple[list[Column], int]:
    """Columns for `rows` entries of each field, one after another, and the bytes that they need together.

    Raises
    ------
    MemoryError
        When the size does not fit a signed 64-bit integer.
    """
    columns, end = [], 0
    for name, dtype, shape in fields:
        start = -(-end // ALIGNMENT) * ALIGNMENT
        width = dtype.itemsize
        for size in shape:
            width *= size
        columns.append(Column(name, dtype, shape, start, width))
        end = start + width * rows
    if end >= 2**63 - ALIGNMENT:
        raise MemoryError(f"{rows} rows of {sum(c.width for c in columns)} bytes are more than a machine can address")
    return columns, end


class Owner(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """The bytes behind a result. They know the plan they were laid out by, and so can be used for another one."""

    plan: Plan
    offset: int
    pinned: bool


class Plan:
    """How the arrays of one kind of result lie in one block.

    Parameters
    ----------
    fields : sequence of (name, dtype, shape)
        The arrays, each with its whole shape.

    Attributes
    ----------
    tables : dict of int64 arrays (channels, 3)
        What `gather` reads to fill parts of the block: start in the arena, bytes of a row, start in the block. Set by
        the memory.
    by_host : list of (int, int)
        Which columns, from first to last, a memory on a GPU fills on the host. Set by the memory.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self.columns, self.size = lay_out(fields, 1)
        self.tables: dict[str, NDArray[np.int64]] = {}
        self.by_host: list[tuple[int, int]] = []
        self._split: Callable[[NDArray[Any]], tuple[NDArray[Any], ...]] | None = None
        if self.size < 2**31 and len(fields) > 1:
            # Cutting views one at a time costs 260 ns each; as fields of one record, 75 ns. NumPy's records end
            # at 2 GiB, and the views of an itemgetter come as a tuple from two fields on.
            self._record = np.dtype(
                {
                    "names": [str(i) for i in range(len(fields))],
                    "formats": [(c.dtype, c.shape) for c in self.columns],
                    "offsets": [c.start for c in self.columns],
                    "itemsize": max(self.size, 1),
                }
            )
            self._split = itemgetter(*self._record.names or ())

    def make(
        self, allocate: Callable[[int], NDArray[np.uint8]] | None = None
    ) -> tuple[NDArray[np.uint8], tuple[NDArray[Any], ...]]:
        """A fresh block as (its bytes, its arrays); not cleared. `allocate`: page-locked memory instead of other."""
        size = self.size + ALIGNMENT
        # Of a view, NumPy takes the base's base where that is a plain array: the second view keeps it from doing so.
        owner = Owner(size, _BYTE) if allocate is None else allocate(size)[:size].view(Owner).view(Owner)
        owner.plan = self
        owner.pinned = allocate is not None
        owner.offset = -addressof(c_char.from_buffer(owner.data)) % ALIGNMENT
        return self._open(owner)

    def again(self, array: Any, *, pinned: bool = False) -> tuple[NDArray[np.uint8], tuple[NDArray[Any], ...]] | None:
        """The block that `array` was cut from, as `make` gives it, if it was laid out by such a plan; else None."""
        owner = _owner(array)
        if owner is None or (pinned and not owner.pinned):
            return None
        plan = owner.plan
        if plan is not self and plan.columns != self.columns:
            return None
        return self._open(owner)

    def _open(self, owner: Owner) -> tuple[NDArray[np.uint8], tuple[NDArray[Any], ...]]:
        offset = owner.offset
        if self._split is not None:
            arrays = self._split(np.ndarray((), self._record, owner, offset))
        else:
            arrays = tuple(np.ndarray(c.shape, c.dtype, owner, offset + c.start) for c in self.columns)
        return np.ndarray(self.size, _BYTE, owner, offset), arrays


def _owner(array: Any) -> Owner | None:
    base = getattr(array, "base", None)
    if not isinstance(base, Owner):  # a field of a record: its base is the record
        base = getattr(base, "base", None)
    return base if isinstance(base, Owner) else None
