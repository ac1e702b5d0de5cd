"""The arena: one block of bytes that holds every field of every experience, a column after another."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .blocks import ALIGNMENT, Field, lay_out
from .errors import ArenaError

Mode = Literal["x", "w", "r+"]


class Arena:
    """Columns for `capacity` rows, in RAM or in a file.

    Parameters
    ----------
    fields : sequence of (name, dtype, shape)
        The columns, in their order.
    capacity : int
        Rows, at least 1.
    path : path-like, optional
        Keep the bytes in this file instead of RAM.
    mode : {"x", "w", "r+"}
        "x" makes the file and refuses an existing one, "w" replaces it, "r+" uses the space of an existing one.

    Attributes
    ----------
    block : uint8 array
        All bytes.
    table : int64 array (fields, 2)
        Start and bytes of one row, for each column.
    views : list of arrays (capacity, *shape)
        The columns as NumPy sees them; they share the block's memory.
    """

    on_device = False

    def __init__(
        self, fields: Sequence[Field], capacity: int, path: str | os.PathLike[str] | None = None, mode: Mode = "x"
    ) -> None:
        self.columns, self.nbytes = lay_out(fields, capacity)
        self.path = None if path is None else Path(path)
        self.block = _in_ram(self.nbytes) if self.path is None else _in_file(self.path, self.nbytes, mode)
        self.table = np.array([(c.start, c.width) for c in self.columns], np.int64)
        self.views: list[NDArray[Any]] = [
            np.ndarray((capacity, *c.shape), c.dtype, self.block, c.start) for c in self.columns
        ]

    def write(self, first: int, end: int, columns: Sequence[NDArray[Any]], begin: int = 0) -> None:
        """The rows from `begin` on into the slots ``first <= slot < end``, for the first columns."""
        stop = begin + end - first
        for view, column in zip(self.views, columns, strict=False):
            view[first:end] = column[begin:stop]

    def forget_sources(self) -> None:
        """Let all rows be of source 0."""
        self.views[-1][:] = 0

    def copy_rows(self, first: int, end: int, old: Any, origin: int) -> None:
        """Rows of another arena of equal columns, from its slot `origin` on."""
        self.write(first, end, old.views, origin)


def _in_ram(size: int) -> NDArray[np.uint8]:
    try:
        raw = np.zeros(size + ALIGNMENT, np.uint8)  # pages come when they are first written
    except MemoryError as error:
        raise MemoryError(
            f"the memory needs {size / 2**30:.1f} GiB, which this machine does not give; "
            "take a smaller capacity or dtype, or keep it in a file with path="
        ) from error
    offset = -raw.ctypes.data % ALIGNMENT
    return raw[offset : offset + size]


def _in_file(path: Path, size: int, mode: Mode) -> NDArray[np.uint8]:
    if mode not in ("x", "w", "r+"):
        raise ValueError(f"mode: expected 'x', 'w' or 'r+', got {mode!r}")
    flags = {"x": os.O_CREAT | os.O_EXCL, "w": os.O_CREAT | os.O_TRUNC, "r+": 0}[mode]
    try:
        handle = os.open(path, os.O_RDWR | flags | getattr(os, "O_BINARY", 0), 0o666)
    except FileExistsError as error:
        raise FileExistsError(
            errno.EEXIST, "path: the file exists; mode='w' replaces it, mode='r+' uses its space again", str(path)
        ) from error
    try:
        if mode == "r+":
            found = os.fstat(handle).st_size
            if found != size:
                raise ArenaError(
                    f"path: {path} has {found} bytes, and a memory of this capacity and these specs needs {size}; "
                    "open it with the specs it was made with, or replace it with mode='w'"
                )
        else:
            _allocate(handle, path, size)
        return np.frombuffer(mmap.mmap(handle, size), np.uint8)
    finally:
        os.close(handle)


def _allocate(handle: int, path: Path, size: int) -> None:
    """Give a new file its bytes now, so that a full disk fails here and not at some later append."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:
            zeros = bytes(1 << 20)
            for start in range(0, size, len(zeros)):
                os.write(handle, zeros[: min(len(zeros), size - start)])
    except OSError as error:
        os.unlink(path)
        raise ArenaError(
            error.errno, f"path: cannot make {size / 2**30:.2f} GiB for the memory ({error.strerror})", str(path)
        ) from error
