"""The columns of a checkpoint, cut into parts by id, and the .npy files that hold them.

The names, sizes and headers of all files follow from the specs and the ids. So a reader knows each of them before it
opens a file: it takes no name, shape or dtype from a file's word, and there is nothing in a file to be interpreted.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import CheckpointError
from ..ring import spans
from ..structures import Structure

#: Bytes that are read, written or compared at a time.
CHUNK = 1 << 20
#: A part has at least this many bytes of all columns together, and a 64th of the capacity.
SMALLEST = 1 << 20


class Column(NamedTuple):
    """One value for each live id: that of an id is in row ``(id - first) % len(rows)``."""

    name: str
    rows: NDArray[Any]
    first: int = 0

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return self.rows.dtype.itemsize * math.prod(self.rows.shape[1:])

    def pieces(self, begin: int, end: int) -> list[NDArray[Any]]:
        """The rows of these ids, as one or two contiguous views."""
        runs = spans(begin - self.first, end - self.first, max(len(self.rows), 1))
        return [self.rows[a:b] for a, b, _ in runs]

    def header(self, count: int) -> bytes:
        """What a .npy file of this many rows begins with: format 1.0."""
        shape = (count, *self.rows.shape[1:])
        text = f"{{'descr': {self.rows.dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
        size = -(-(10 + len(text) + 1) // 64) * 64
        return b"\x93NUMPY\x01\x00" + (size - 10).to_bytes(2, "little") + text.encode().ljust(size - 11) + b"\n"


class Part(NamedTuple):
    """The rows ``begin <= id < end`` of a column, and the file that holds them."""

    column: Column
    begin: int
    end: int
    file: str

    @property
    def size(self) -> int:
        """Bytes of the file."""
        count = self.end - self.begin
        return len(self.column.header(count)) + count * self.column.width

    def chunks(self) -> Iterator[NDArray[np.uint8]]:
        """The bytes of the rows, as views that can be written through."""
        for piece in self.column.pieces(self.begin, self.end):
            flat = piece.reshape(-1).view(np.uint8)
            for start in range(0, flat.size, CHUNK):
                yield flat[start : start + CHUNK]

    def write(self, file: BinaryIO) -> int:
        """Write the file's bytes; returns their CRC-32."""
        head = self.column.header(self.end - self.begin)
        file.write(head)
        crc = zlib.crc32(head)
        for chunk in self.chunks():
            file.write(chunk.data)
            crc = zlib.crc32(chunk.data, crc)
        return crc

    def read(self, file: BinaryIO, crc: int) -> None:
        """Fill the column from a file, or say what is wrong with it."""
        head = self.column.header(self.end - self.begin)
        if file.read(len(head)) != head:
            raise CheckpointError(f"{self.file}: the header is not that of {self.column.name} as the manifest has it")
        found = zlib.crc32(head)
        for chunk in self.chunks():
            _fill(file, chunk, self.file)
            found = zlib.crc32(chunk.data, found)
        if file.read(1):
            raise CheckpointError(f"{self.file}: longer than the manifest says")
        if found != crc:
            raise CheckpointError(f"{self.file}: damaged (its CRC-32 is {found:08x}, the manifest has {crc:08x})")

    def is_in(self, file: BinaryIO) -> bool:
        """Whether a file holds exactly these bytes."""
        head = self.column.header(self.end - self.begin)
        if file.read(len(head)) != head:
            return False
        return all(file.read(chunk.size) == chunk.tobytes() for chunk in self.chunks()) and not file.read(1)


def _fill(file: BinaryIO, chunk: NDArray[np.uint8], name: str) -> None:
    done = 0
    while done < chunk.size:
        data = file.read(chunk.size - done)
        if not data:
            raise CheckpointError(f"{name}: cut short")
        chunk[done : done + len(data)] = np.frombuffer(data, np.uint8)
        done += len(data)


def channel_names(groups: tuple[Structure, ...]) -> list[str]:
    """A name for the files of each channel: that of its field, and its place where there are several."""
    return [
        group.field if group.form == "single" else f"{group.field}-{place}"
        for group in groups
        for place in range(len(group.specs))
    ]


def segment_rows(columns: list[Column], capacity: int) -> int:
    """How many ids a part spans, a power of two."""
    width = max(1, sum(column.width for column in columns))
    wanted = max(capacity // 64, SMALLEST // width, 1)
    return 1 << (wanted - 1).bit_length()


def parts(columns: list[Column], begin: int, end: int, segment: int) -> list[Part]:
    """All files of a checkpoint of the ids from `begin` to `end`; a segment of 0: one file for each column."""
    if not segment:
        return [Part(column, begin, end, f"{column.name}.npy") for column in columns]
    found, at = [], begin
    while at < end:
        stop = min(end, (at // segment + 1) * segment)
        found += [Part(column, at, stop, f"{column.name}.{at:012d}-{stop:012d}.npy") for column in columns]
        at = stop
    return found
