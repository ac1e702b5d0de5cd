"""Where trajectories begin and end in nested data: read off an entry with ids, or off the ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .accept import as_flags, at_least
from .errors import DataTypeError, MissingKeyError, ShapeError, StructureError
from .nested import NestedKey, Path, find, path_of, required, shown
from .rawbytes import raw

Ints = NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


class Question(NamedTuple):
    """How a caller wants data to be cut: the options that all functions on trajectories share."""

    prefix: NestedKey | None
    trajectory_key: NestedKey | None
    done_key: NestedKey | list[NestedKey] | None
    batch_dims: int | None
    on_repeated_ids: str
    max_length: int | None


class Cuts(NamedTuple):
    """The pieces of a batch of steps, in their order, and what they were read off.

    Attributes
    ----------
    batch : tuple of int
        The batch shape; its last axis is time.
    start, length : int64 arrays (K,)
        Of each piece, in flat steps.
    run : int64 array (K,)
        The trajectory that a piece belongs to, counted from 0.
    ids : tuple of str
        Where the ids are.
    given : bool
        Whether they were there; else they are to be made of `run`.
    """

    batch: tuple[int, ...]
    start: Ints
    length: Ints
    run: Ints
    ids: Path
    given: bool

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return math.prod(self.batch)

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Whether a piece is the first of its trajectory."""
        first: NDArray[np.bool_] = np.diff(self.run, prepend=-1) != 0
        return first


def find_cuts(data: Mapping[str, Any], question: Question) -> Cuts:
    """Cut at changes of the ids if there are any, else after the ends; always at the end of a row."""
    if question.on_repeated_ids not in ("split", "raise"):
        raise ValueError(f'on_repeated_ids: expected "split" or "raise", got {question.on_repeated_ids!r}')
    limit = 0 if question.max_length is None else at_least("max_length", question.max_length, 1)
    path = _ids_path(data, question)
    given = find(data, path) is not None
    ids: NDArray[Any] = _NONE
    codes, ends = _NONE, _NONE.view(np.uint8)
    if given:
        ids = required(data, path)
        batch = _batch_shape(path, ids, question.batch_dims, exact=True)
        ids = _without_ones(path, ids, batch).reshape(-1)
        codes = _codes(path, ids)
    else:
        batch, ends = find_ends(data, question.done_key, question.batch_dims, ids=path)
    start, run = _pieces(batch, limit, codes, ends)
    if given and question.on_repeated_ids == "raise":
        _refuse_repeats(path, ids, start, run)
    return Cuts(batch, start, np.diff(start, append=math.prod(batch)), run, path, given)


def _ids_path(data: Mapping[str, Any], question: Question) -> Path:
    if question.trajectory_key is not None:
        path = path_of("trajectory_key", question.trajectory_key)
    else:
        prefix: NestedKey | None = question.prefix
        if prefix is None:
            prefix = ("collector",) if isinstance(data.get("collector"), Mapping) else ()
        path = (*path_of("prefix", prefix, empty=True), "traj_ids")
    if path[-1] == "mask":
        raise StructureError(f"trajectory_key: {shown(path)} is where the mask goes; give the ids another name")
    return path


def _batch_shape(path: Path, array: NDArray[Any], batch_dims: int | None, *, exact: bool) -> tuple[int, ...]:
    """The batch shape that an entry has; unless `exact`, a last axis of 1 is a feature."""
    if batch_dims is None:
        feature = not exact and array.ndim > 1 and array.shape[-1] == 1
        shape = array.shape[:-1] if feature else array.shape
        if not shape:
            raise ShapeError(f"{shown(path)}: expected at least an axis of time, got a scalar")
        return shape
    dims = at_least("batch_dims", batch_dims, 1)
    if array.ndim < dims:
        raise ShapeError(f"{shown(path)}: batch_dims={dims}, but its shape is {array.shape}")
    return array.shape[:dims]


def _without_ones(path: Path, array: NDArray[Any], batch: tuple[int, ...]) -> NDArray[Any]:
    lead = len(batch)
    if array.shape[:lead] != batch or any(size != 1 for size in array.shape[lead:]):
        raise ShapeError(
            f"{shown(path)}: expected the batch shape {batch}, with axes of 1 after it at most, got {array.shape}"
        )
    return array.reshape(batch)


def _codes(path: Path, ids: NDArray[Any]) -> Ints:
    """Numbers that differ between neighbours where the ids do."""
    kind = ids.dtype.kind
    if kind == "f" and np.isnan(ids).any():
        raise ValueError(f"{shown(path)}: NaN is not an id; NaNs are at {np.flatnonzero(np.isnan(ids))[:4].tolist()}")
    if kind in "biu" and ids.dtype.itemsize <= 8:
        return np.require(ids.astype(np.int64, copy=False), requirements=["C", "A"])  # uint64 wraps, and stays distinct
    codes = np.zeros(ids.size, np.int64)
    np.cumsum(ids[1:] != ids[:-1], out=codes[1:])
    return codes


def find_ends(
    data: Mapping[str, Any], done_key: NestedKey | list[NestedKey] | None, batch_dims: int | None, *, ids: Path = ()
) -> tuple[tuple[int, ...], NDArray[np.uint8]]:
    """The batch shape, and 1 at every step of the flat data that is the last of its trajectory."""
    entries = _end_entries(data, done_key, ids)
    path, first = entries[0]
    batch = _batch_shape(path, first, batch_dims, exact=False)
    ends = np.zeros(math.prod(batch), np.bool_)
    for path, array in entries:
        if array.dtype.kind not in "biuf":
            raise DataTypeError(f"{shown(path)}: expected flags, got dtype {array.dtype}")
        ends |= as_flags(shown(path), _without_ones(path, array, batch).reshape(-1))
    return batch, ends.view(np.uint8)


def _end_entries(
    data: Mapping[str, Any], done_key: NestedKey | list[NestedKey] | None, ids: Path
) -> list[tuple[Path, NDArray[Any]]]:
    keys = done_key if isinstance(done_key, list) else ["done" if done_key is None else done_key]
    found = [_below_next(data, path_of("done_key", key)) for key in keys]
    if done_key is None and found == [None]:
        found = [_below_next(data, ("terminated",)), _below_next(data, ("truncated",))]
    entries = [(path, required(data, path)) for path in found if path is not None]
    if entries and len(entries) == len(found):
        return entries
    wanted = ", ".join(f"{shown(('next', *p))} or {shown(p)}" for p in (path_of("done_key", key) for key in keys))
    also = f"neither ids at {shown(ids)} nor " if ids else "no "
    both = "; nor are there both terminated and truncated" if done_key is None else ""
    raise MissingKeyError(f"{also}ends at {wanted or 'any key'}{both}; there are {sorted(map(str, data))}")


def _below_next(data: Mapping[str, Any], path: Path) -> Path | None:
    places = (("next", *path), path)
    return next((place for place in places if find(data, place) is not None), None)


def _pieces(batch: tuple[int, ...], limit: int, codes: Ints, ends: NDArray[Any]) -> tuple[Ints, Ints]:
    steps = math.prod(batch)
    start, run, count = np.empty(steps, np.int64), np.empty(steps, np.int64), np.zeros(1, np.int64)
    kernels.active().run_starts(
        steps, max(batch[-1], 1), limit, raw(codes).view(np.int64), raw(ends), start, run, count
    )
    return start[: count[0]].copy(), run[: count[0]].copy()


def _refuse_repeats(path: Path, ids: NDArray[Any], start: Ints, run: Ints) -> None:
    begin = start[np.diff(run, prepend=-1) != 0]
    _, first, place = np.unique(ids[begin], return_index=True, return_inverse=True)
    again = np.flatnonzero(first[place.reshape(-1)] != np.arange(begin.size))
    if again.size:
        later = begin[again[0]]
        raise ValueError(
            f"{shown(path)}: id {ids[later].item()!r} begins at flat step {int(begin[first[place[again[0]]]])} and "
            f'again at {int(later)}; on_repeated_ids="split" makes a trajectory of each run'
        )
