"""Looks through a .mat file of version 6 or 7 before scipy reads it: what is in it, and whether its sizes are true.

scipy takes the sizes that a file declares at their word and goes as deep as cells are nested; a file of a few bytes can
ask for more memory than there is. This walk allocates nothing by declared size.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from ..errors import MatFileError

_MATRIX, _COMPRESSED = 14, 15
_WIDTH = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE, _FUNCTION, _OPAQUE = 1, 2, 3, 4, 5, 16, 17
_PIECE, _DEEPEST, _SPACES = 1 << 16, 60, 1 << 16


class Variable(NamedTuple):
    """A variable of a file."""

    name: str
    is_object: bool  # of a class, or a function: nothing that can be read
    has_complex: bool


class _Stream:
    """Bytes that are read forward, never more of them than there are."""

    def __init__(self, more: Callable[[], bytes]) -> None:
        self._more, self._buffer, self._at, self.position = more, b"", 0, 0

    def take(self, count: int) -> bytes:
        while len(self._buffer) - self._at < count:
            self._buffer, self._at = self._buffer[self._at :] + self._next(), 0
        piece = self._buffer[self._at : self._at + count]
        self._at += count
        self.position += count
        return piece

    def skip(self, count: int) -> None:
        self.position += count
        while len(self._buffer) - self._at < count:
            count -= len(self._buffer) - self._at
            self._buffer, self._at = self._next(), 0
        self._at += count

    def _next(self) -> bytes:
        piece = self._more()
        if not piece:
            raise MatFileError("the file ends in the middle of a variable: it was cut off, or is not a .mat file")
        return piece


class _Walk:
    """One variable: its name, and what its parts say of themselves."""

    def __init__(self, stream: _Stream, order: str) -> None:
        self._stream, self._order = stream, order
        self.has_complex = False

    def _numbers(self, count: int, code: str = "I") -> tuple[int, ...]:
        return struct.unpack(f"{self._order}{count}{code}", self._stream.take(4 * count))

    def _tag(self, end: int) -> tuple[int, int, int]:
        """Kind and bytes of the next element, and the bytes that it takes with its padding."""
        (word,) = self._numbers(1)
        if word >> 16:
            kind, count, room = word & 0xFFFF, word >> 16, 4
        else:
            (count,) = self._numbers(1)
            kind, room = word, count + -count % 8
        if self._stream.position + count > end or (word >> 16 and count > 4):
            raise MatFileError(f"an element of {count:,} bytes does not fit into what is around it; it is damaged")
        return kind, count, min(room, end - self._stream.position)

    def _skip_element(self, end: int, items: int | None = None) -> int:
        """Pass over numbers or text; `items`: how many there must be."""
        kind, count, room = self._tag(end)
        if kind not in _WIDTH or (items is not None and items * _WIDTH[kind] != count):
            raise MatFileError("an array's size and its bytes do not agree; the file is damaged")
        self._stream.skip(room)
        return count

    def top(self) -> tuple[str, int]:
        """Name and class of the variable, which is walked through to its end."""
        kind, count, _ = self._tag(1 << 33)
        if kind != _MATRIX:
            raise MatFileError(f"expected a variable, found an element of type {kind}; the file is damaged")
        return self._matrix(count, 0)

    def _matrix(self, size: int, depth: int) -> tuple[str, int]:
        if depth > _DEEPEST:
            raise MatFileError(f"cells are nested more than {_DEEPEST} deep; this is no file of experiences")
        if size == 0:
            return "", 0
        end = self._stream.position + size
        kind, count, _ = self._tag(end)
        if (kind, count) != (6, 8):
            raise MatFileError("an array has no flags; the file is damaged")
        flags, _ = self._numbers(2)
        which = flags & 0xFF
        self.has_complex |= bool(flags & 0x800)
        dims = () if which == _OPAQUE else self._dims(end)
        _, count, room = self._tag(end)
        name = self._stream.take(min(room, 64))[:count].decode("ascii", "replace")
        self._stream.skip(room - min(room, 64))
        if which in (_OPAQUE, _OBJECT, _FUNCTION):
            self._stream.skip(max(0, end - self._stream.position))
        else:  # not to the end that it declares: Octave declares four bytes too many for short texts
            self._contents(which, dims, end, depth, bool(flags & 0x800))
        if self._stream.position > end:
            raise MatFileError("an array is longer than it says; the file is damaged")
        return name, which

    def _dims(self, end: int) -> tuple[int, ...]:
        kind, count, room = self._tag(end)
        if kind not in (5, 6) or count % 4 or not 8 <= count <= 4 * 32:
            raise MatFileError("an array has no size; the file is damaged")
        dims = self._numbers(count // 4, "i")
        self._stream.skip(room - count)
        if min(dims) < 0:
            raise MatFileError("an array has a negative size; the file is damaged")
        return dims

    def _contents(self, which: int, dims: tuple[int, ...], end: int, depth: int, is_complex: bool) -> None:
        items = 1
        for size in dims:
            items *= size
        if which in (_CELL, _STRUCT):
            if which == _STRUCT:
                items *= self._fields(end)
            if items * 8 > end - self._stream.position:
                raise MatFileError(f"an array of {items:,} parts is in too few bytes; the file is damaged")
            for _ in range(items):
                kind, count, _ = self._tag(end)
                if kind != _MATRIX:
                    raise MatFileError("a part of a cell or struct is no array; the file is damaged")
                self._matrix(count, depth + 1)
        elif which == _CHAR:
            count = self._skip_element(end)
            if items > (count or _SPACES):
                raise MatFileError("a text's size and its bytes do not agree; the file is damaged")
        elif which == _SPARSE:
            for _ in range(4 if is_complex else 3):
                self._skip_element(end)
        elif 6 <= which <= 15:
            for _ in range(2 if is_complex else 1):
                self._skip_element(end, items)
        else:
            raise MatFileError(f"an array is of class {which}, which MATLAB does not have; the file is damaged")

    def _fields(self, end: int) -> int:
        kind, count, room = self._tag(end)
        if (kind, count) != (5, 4):
            raise MatFileError("a struct has no names; the file is damaged")
        (length,) = self._numbers(1, "i")
        self._stream.skip(room - count)
        count = self._skip_element(end)
        if length < 1 or count % length:
            raise MatFileError("the names of a struct's fields do not fit their bytes; the file is damaged")
        return count // length


def variables(file: BinaryIO) -> list[Variable]:
    """The variables of an open file of version 6 or 7, each walked through.

    Raises
    ------
    MatFileError
        When it is no such file, or is damaged.
    """
    file.seek(0)
    header = file.read(128)
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    if order is None or 0 in header[:4] or header[124:126] not in (b"\x00\x01", b"\x01\x00"):
        raise MatFileError(
            "not a .mat file of version 6, 7 or 7.3 (version 4 holds no structs): in MATLAB, save with -v7 or -v7.3"
        )
    end = os.fstat(file.fileno()).st_size
    found = []
    at = 128
    while at < end:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            break
        kind, count = struct.unpack(f"{order}II", head)
        if kind not in (_MATRIX, _COMPRESSED) or (kind == _COMPRESSED and at + 8 + count > end):
            raise MatFileError(
                "the file ends in the middle of a variable, or is damaged (Octave's -v6 miscounts short texts: use -v7)"
            )
        found.append(_variable(file, at, kind, count, order))
        at += 8 + count
    return found


def _variable(file: BinaryIO, at: int, kind: int, count: int, order: str) -> Variable:
    if kind == _COMPRESSED:
        file.seek(at + 8)
        walk = _Walk(_Stream(_inflated(file, count)), order)
    else:
        file.seek(at)
        walk = _Walk(_Stream(_limited(file, count + 8)), order)
    name, which = walk.top()
    return Variable(name, which in (_OBJECT, _FUNCTION, _OPAQUE), walk.has_complex)


def _limited(file: BinaryIO, count: int) -> Callable[[], bytes]:
    left = count

    def more() -> bytes:
        nonlocal left
        piece = file.read(min(left, _PIECE))
        left -= len(piece)
        return piece

    return more


def _inflated(file: BinaryIO, count: int) -> Callable[[], bytes]:
    raw, inflate = _limited(file, count), zlib.decompressobj()

    def more() -> bytes:
        try:
            while not inflate.eof:
                piece = inflate.decompress(inflate.unconsumed_tail or raw(), _PIECE)
                if piece:
                    return piece
                if not inflate.unconsumed_tail and file.tell() >= end:
                    break
        except zlib.error as error:
            raise MatFileError(f"compressed data is damaged ({error})") from error
        return b""

    end = file.tell() + count
    return more
