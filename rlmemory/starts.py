"""Where trajectories begin in stored data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accept import as_flags, on_a_gpu
from .borrowed import is_on_device
from .errors import MissingKeyError, ShapeError
from .keys import Path, as_path, as_paths, find, leaves, need, shown


def batch_shape(flags: NDArray[Any]) -> tuple[int, ...]:
    """The shape of an end flag without one last axis of 1, when it has more than one axis."""
    return flags.shape[:-1] if flags.ndim > 1 and flags.shape[-1] == 1 else flags.shape


def find_starts(data: Mapping[str, Any], done_key: Any = None, trajectory_key: Any = None) -> NDArray[np.bool_]:
    """True at the first step of every trajectory, in the batch shape of the data."""
    ids = _ids(data, done_key, trajectory_key)
    told = _ends(data, done_key) if ids is None else ids
    starts = np.ones(told.shape, np.bool_)
    starts[..., 1:] = told[..., :-1] if ids is None else told[..., 1:] != told[..., :-1]
    return starts


def _ids(data: Mapping[str, Any], done_key: Any, trajectory_key: Any) -> NDArray[Any] | None:
    if trajectory_key is not None:
        path = as_path("trajectory_key", trajectory_key)
        return _with_time("trajectory_key", _array(path, need(data, path, "ids")))
    if done_key is None:
        for path in (("collector", "traj_ids"), ("traj_ids",)):
            entry = find(data, path)
            if entry is not None:
                return _with_time(str(shown(path)), _array(path, entry))
    return None


def _ends(data: Mapping[str, Any], done_key: Any) -> NDArray[np.bool_]:
    if done_key is not None:
        paths = as_paths("done_key", done_key)
    elif _look(data, ("done",)) is not None:
        paths = [("done",)]
    else:
        paths = [path for path in (("terminated",), ("truncated",)) if _look(data, path) is not None]
    found = [(path, _look(data, path)) for path in paths]
    missing = [shown(path) for path, entry in found if entry is None]
    if missing or not found:
        wanted = missing or ["done", "terminated", "truncated"]
        raise MissingKeyError(
            f"nothing says where trajectories end: no {wanted} under 'next' or at root, and no trajectory_key; "
            f"the data has {[shown(path) for path in leaves(data)]}"
        )
    flags = [as_flags(str(shown(path)), _array(path, entry)) for path, entry in found]
    ends = np.logical_or.reduce([flag.reshape(batch_shape(flag)) for flag in flags])
    return _with_time("done_key", np.asarray(ends))


def _array(path: Path, entry: Any) -> NDArray[Any]:
    if is_on_device(entry):
        raise on_a_gpu(str(shown(path)), entry)
    return np.asarray(entry)


def _look(data: Mapping[str, Any], path: Path) -> Any:
    under = find(data, ("next", *path))
    return find(data, path) if under is None else under


def _with_time(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim == 0:
        raise ShapeError(f"{name}: expected an axis of time, got a single value")
    return array
