"""How experiences lie in a .mat file: channels of a Dimension, with the batch behind it, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..batch import Experience
from ..devices import to_host
from ..errors import DataTypeError, ShapeError, SpecError, StructureError
from ..specs import NumericSpec
from ..store import Store
from ..structures import Structure

#: Fields of a batch or a sequence, and of a single experience, in MATLAB's orders.
BATCHED = ("Observation", "Action", "Reward", "NextObservation", "IsDone")
SINGLE = ("Observation", "Action", "NextObservation", "Reward", "IsDone")
_CELLS = ("Observation", "Action", "NextObservation")


class Channel(NamedTuple):
    """One array of an experience: as rlmemory stores it, and the size that MATLAB gives it."""

    shape: tuple[int, ...]
    dimension: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: np.dtype[Any], dimension: Sequence[int] | None) -> Channel:
        """The channel; without a `dimension`, a shape is filled up to two sizes: (2,) is 2-by-1."""
        full = full_size(shape) if dimension is None else tuple(map(int, dimension))
        if stripped(full) != stripped(shape):
            raise SpecError(f"dimensions: {full} does not fit a channel of shape {shape}")
        return cls(shape, full, dtype)


class Layout(NamedTuple):
    """All channels. A scalar reward has the dimension (1,), so that a batch of it is 1-by-N."""

    observation: tuple[Channel, ...]
    action: tuple[Channel, ...]
    reward: Channel
    extra: Mapping[str, Channel]

    @property
    def flat(self) -> list[Channel]:
        """The channels in the order of a piece's arrays: observation, action, reward, next observation, extra."""
        return [*self.observation, *self.action, self.reward, *self.observation, *self.extra.values()]

    @property
    def row_bytes(self) -> int:
        """What one experience takes in a file."""
        return 8 + sum(stored(c.dtype).itemsize * int(np.prod(c.dimension)) for c in self.flat)


def stripped(size: Sequence[int]) -> tuple[int, ...]:
    """A size without the trailing ones, which MATLAB ignores."""
    count = len(size)
    while count and size[count - 1] == 1:
        count -= 1
    return tuple(size[:count])


def full_size(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with two sizes or more, as every array of MATLAB has."""
    return (*shape, *(1,) * (2 - len(shape)))


def stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a file for values of `dtype`: MATLAB has no half and no long double."""
    if dtype == np.float16:
        return np.dtype(np.float32)
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise DataTypeError(f"a .mat file has no class for values of dtype {dtype}; float64 is the widest")
    return dtype


class Piece(NamedTuple):
    """Some rows, in time order: arrays (n, *shape) as `Layout.flat` lists them, IsDone codes, sources."""

    arrays: list[NDArray[Any]]
    code: NDArray[Any]
    source: NDArray[Any]


class Origin:
    """What is written: a memory, whose rows are read where they lie, or an Experience.

    Parameters
    ----------
    data : ReplayMemory or Experience
    dimensions : (list of sizes, list of sizes), optional
        MATLAB's Dimension of each observation and each action channel.
    """

    def __init__(self, data: Store | Experience, dimensions: Any = None) -> None:
        self._runs: list[Piece]
        if isinstance(data, Store):
            self.layout = memory_layout(data, dimensions)
            spans = [slice(first, last) for first, last, _ in data._spans(data._oldest, data._next_id)]
            self._runs = [
                Piece([view[s] for view in data._views], data._is_done[s], data._plain_sources(data._source[s]))
                for s in spans
            ]
        elif isinstance(data, Experience):
            given: Experience = to_host(data)
            channels = [_parts(getattr(given, name)) for name in Experience._fields[:4]]
            extra = {} if given.extra is None else given.extra
            specs = [[NumericSpec(a.shape[1:], a.dtype) for a in group] for group in channels]
            self.layout = layout_of(specs, {k: NumericSpec(a.shape[1:], a.dtype) for k, a in extra.items()}, dimensions)
            code = np.where(given.terminated, 1, np.where(given.truncated, 2, 0))
            source = np.zeros(code.size, np.int32) if given.source is None else given.source
            self._runs = [Piece([a for group in channels for a in group] + list(extra.values()), code, source)]
        else:
            raise TypeError(f"expected a ReplayMemory or an Experience; got {type(data).__name__}")
        self.count = sum(run.code.size for run in self._runs)

    @property
    def one_source(self) -> bool:
        """Whether every row has source 0."""
        return not any(run.source.any() for run in self._runs)

    def pieces(self, rows: int) -> Iterator[tuple[int, Piece]]:
        """The rows, at most `rows` at a time, each piece with the number of its first row; views where they can be."""
        done = 0
        for run in self._runs:
            for first in range(0, run.code.size, rows):
                part = slice(first, min(first + rows, run.code.size))
                yield done + first, Piece([a[part] for a in run.arrays], run.code[part], run.source[part])
            done += run.code.size

    def whole(self) -> Piece:
        """All rows as one piece."""
        if len(self._runs) == 1:
            return self._runs[0]
        channels = self.layout.flat
        empty = [np.empty((0, *c.shape), c.dtype) for c in channels]
        columns = zip(*(run.arrays for run in self._runs), strict=True) if self._runs else [()] * len(channels)
        return Piece(
            [np.concatenate([start, *column]) for start, column in zip(empty, columns, strict=True)],
            np.concatenate([np.empty(0, np.uint8), *(run.code for run in self._runs)]),
            np.concatenate([np.empty(0, np.int32), *(run.source for run in self._runs)]),
        )


def _parts(channels: Any) -> list[NDArray[Any]]:
    if isinstance(channels, Mapping):
        return list(channels.values())
    return list(channels) if isinstance(channels, tuple) else [channels]


def layout_of(
    groups: Sequence[Sequence[NumericSpec]], extra: Mapping[str, NumericSpec], dimensions: Any = None
) -> Layout:
    """The layout for specs of observation, action and reward."""
    sizes = dimensions or ([None] * len(groups[0]), [None] * len(groups[1]))
    observation, action = (
        tuple(Channel.of(spec.shape, spec.dtype, size) for spec, size in zip(group, chosen, strict=True))
        for group, chosen in zip(groups[:2], sizes, strict=True)
    )
    reward = groups[2][0]
    return Layout(
        observation,
        action,
        Channel(reward.shape, reward.shape or (1,), reward.dtype),
        {name: Channel.of(spec.shape, spec.dtype, None) for name, spec in extra.items()},
    )


def memory_layout(memory: Store, dimensions: Any = None) -> Layout:
    """The layout of a memory's channels."""
    groups: Sequence[Structure] = memory._groups
    return layout_of([group.specs for group in groups], dict(groups[4].pack(groups[4].specs)), dimensions)


def file_order(array: NDArray[Any], channel: Channel, form: str) -> NDArray[Any]:
    """Rows ``(n, *shape)`` as MATLAB's D-by-n, or D-by-1-by-n in a sequence."""
    rows = len(array)
    full = array.astype(stored(array.dtype), copy=False).reshape(rows, *channel.dimension)
    behind = (*range(1, full.ndim), 0)
    turned: NDArray[Any] = full.transpose(behind)
    return turned[..., None, :] if form == "sequence" else turned


def rows_count(entry: Any, channel: Channel, place: str) -> int:
    """How many experiences a Reward holds."""
    size, width = int(np.prod(entry.shape)), int(np.prod(channel.dimension))
    if size % width:
        raise ShapeError(f"{place}: {text(entry.shape)} came; expected {text(channel.dimension)} for each experience")
    return size // width


class FileRows:
    """The rows of one array of a file, checked against its channel, read some at a time.

    Parameters
    ----------
    entry : array, or something with `shape`, `dtype` and `rows(first, last)` that reads it on demand
    channel : Channel
    count : int
        Experiences that it must hold.
    place : str
        For messages.
    """

    def __init__(self, entry: Any, channel: Channel, count: int, place: str) -> None:
        shape = getattr(entry, "shape", None)
        if shape is None or getattr(entry, "dtype", np.dtype(object)).kind not in "biufc":
            raise DataTypeError(f"{place}: expected a full array of numbers; got {_kind(entry)}")
        wanted = [(*channel.dimension, count), (*channel.dimension, 1, count)]
        if stripped(shape) not in [stripped(size) for size in wanted] and not (count == 0 and 0 in shape):
            raise ShapeError(f"{place}: {text(shape)} came; expected {text(wanted[0])}, or {text(wanted[1])}")
        self._entry, self._channel, self._count = entry, channel, count

    def take(self, first: int, last: int) -> NDArray[Any]:
        """Rows as rlmemory stores them: ``(n, *shape)``."""
        size = self._channel.dimension
        if isinstance(self._entry, np.ndarray):
            full = self._entry.reshape((*size, self._count), order="F")[..., first:last]
            part = full.transpose(-1, *range(len(size)))
        else:
            part = self._entry.rows(first, last, size)
        return part.reshape(last - first, *self._channel.shape)


def entries(cell: Any, channels: int, place: str) -> list[Any]:
    """The arrays of a cell, one a channel; a bare array stands for a cell of one."""
    if not (isinstance(cell, np.ndarray) and cell.dtype == object):
        cell = np.array([None]) if cell is None else _boxed(cell)
    found = list(cell.ravel(order="F"))
    if len(found) != channels:
        raise StructureError(f"{place}: a cell of {len(found)} came; expected {channels}, one for each channel")
    return found


def _boxed(value: Any) -> NDArray[Any]:
    box = np.empty(1, object)
    box[0] = value
    return box


def text(size: Sequence[int]) -> str:
    """A size as MATLAB shows it."""
    return "x".join(map(str, full_size(size)))


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "text" if value.dtype.kind in "SU" else "a struct" if value.dtype.names else "a cell"
    return type(value).__name__
