"""Trajectories put together again: padding taken away, and the steps in the order that they had."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .device_array import DeviceArray
from .device_runs import moved
from .errors import MissingKeyError, ShapeError, StructureError
from .nested import (
    Nested,
    NestedKey,
    Path,
    check_mapping,
    lent_mapping,
    mapped,
    named,
    path_of,
    required,
    shown,
    without,
)  # fmt: skip
from .placing import common_device, lent, working_on
from .rawbytes import move_runs

Ints = NDArray[np.int64]


def unsplit_trajectories(
    data: Mapping[str, Any], *, batch_shape: int | tuple[int, ...] | None = None, mask_key: NestedKey | None = None
) -> Nested:
    """Take the padding away and put the steps back in the order that they had before they were split.

    Parameters
    ----------
    data : mapping
        What `split_trajectories` returned, possibly with other leaves ``[K, T, *feature]``.
    batch_shape : int or tuple of int, optional
        The batch shape before splitting, such as ``(B, T)``; one entry may be -1. Default: ``(N,)``, flat.
    mask_key : str or tuple of str, optional
        Where the mask is. Default: the one entry called ``mask`` that is bool ``[K, T]`` with padding at the end.

    Returns
    -------
    dict
        The same nesting with arrays ``[*batch_shape, *feature]`` in fresh memory, every byte as it was. The mask is
        left out; ids that splitting made stay, as does what it wrote at `start_key`.

    Raises
    ------
    MissingKeyError
        When there is no mask.
    StructureError
        When several entries could be the mask.
    ShapeError
        When a leaf does not begin with the mask's shape, or the steps do not fill `batch_shape`.

    Notes
    -----
    Trajectories lie in the rows in the order in which they came, so the real steps, row by row, are the flat data: the
    mask and the batch shape are all that is needed. TorchRL has no way back.

    Leaves on a GPU, all of them, stay there: the mask is copied to the host, and the result is a dict of `DeviceArray`.

    Examples
    --------
    >>> import numpy as np
    >>> import rlmemory as rlm
    >>> data = {"obs": np.arange(6).reshape(2, 3), "next": {"done": np.eye(2, 3) > 0}}
    >>> parts = rlm.split_trajectories(data)
    >>> parts["obs"].shape
    (4, 2)
    >>> rlm.unsplit_trajectories(parts, batch_shape=(2, 3))["obs"]
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    check_mapping("data", data)
    number = common_device(named(data))
    if number is not None:
        with working_on(number):
            return _unsplit(lent_mapping(data, number), batch_shape, mask_key)
    return _unsplit(data, batch_shape, mask_key)


def _unsplit(data: Mapping[str, Any], batch_shape: int | tuple[int, ...] | None, mask_key: NestedKey | None) -> Nested:
    path = _find_mask(data) if mask_key is None else path_of("mask_key", mask_key)
    mask = required(data, path)
    if mask.ndim != 2:
        raise ShapeError(f"{shown(path)}: expected a mask of shape [trajectories, steps], got {mask.shape}")
    length = trajectory_lengths(mask)
    steps = int(length.sum())
    shape = _whole_shape(batch_shape, steps)
    table = np.stack((np.arange(len(mask)) * mask.shape[1], length, np.cumsum(length) - length), axis=1)

    def join(where: Path, leaf: NDArray[Any]) -> Any:
        if leaf.shape[:2] != mask.shape:
            raise ShapeError(f"{shown(where)}: expected the mask's shape {mask.shape} first, got {leaf.shape}")
        flat = leaf.reshape((mask.size, *leaf.shape[2:]))
        if isinstance(flat, DeviceArray):
            return moved(flat, table, (*shape, *leaf.shape[2:]))
        joined = np.empty((*shape, *leaf.shape[2:]), leaf.dtype)
        move_runs(flat, table, joined)
        return joined

    result = mapped(data, join)
    without(result, path)
    return result


def trajectory_lengths(mask: ArrayLike) -> Ints:
    """How many real steps each row has.

    Parameters
    ----------
    mask : bool array_like [..., T]
        True at real steps, which come before all padding.

    Returns
    -------
    int64 array [...]
        On the host, also for a mask on a GPU, which is copied.

    Raises
    ------
    ShapeError
        When there is no axis of time, or padding before a real step.

    Notes
    -----
    TorchRL has no counterpart.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> rlm.trajectory_lengths([[True, True], [True, False]])
    array([2, 1])
    """
    number = common_device([("mask", mask)])
    if number is not None:
        with working_on(number):
            mask = lent("mask", mask, number).copy_to_host()
    array = np.asarray(mask)
    if array.ndim == 0 or array.dtype != np.bool_:
        raise ShapeError(f"mask: expected bools [..., steps], got {array.dtype}{list(array.shape)}")
    length = np.count_nonzero(array, axis=-1)
    if (array[..., 1:] & ~array[..., :-1]).any():
        raise ShapeError("mask: there is padding before a real step; it must all come after a trajectory's end")
    return np.asarray(length, np.int64)


def _find_mask(data: Mapping[str, Any]) -> Path:
    found: list[Path] = []

    def look(path: Path, leaf: NDArray[Any]) -> None:
        if path[-1] == "mask" and leaf.dtype == np.bool_ and leaf.ndim == 2:
            mask = required(data, path)
            if not (mask[:, 1:] & ~mask[:, :-1]).any():
                found.append(path)

    mapped(data, look)
    if not found:
        raise MissingKeyError("no entry called 'mask' that is bool [trajectories, steps] with all padding at the end")
    if len(found) > 1:
        raise StructureError(f"several entries could be the mask: {', '.join(map(shown, found))}; give mask_key")
    return found[0]


def _whole_shape(batch_shape: int | tuple[int, ...] | None, steps: int) -> tuple[int, ...]:
    if batch_shape is None:
        return (steps,)
    shape = (batch_shape,) if isinstance(batch_shape, int) else tuple(batch_shape)
    known = math.prod(size for size in shape if size != -1)
    if shape.count(-1) == 1 and known > 0:
        shape = tuple(steps // known if size == -1 else size for size in shape)
    if math.prod(shape) != steps or any(size < 0 for size in shape):
        raise ShapeError(f"batch_shape: {batch_shape} does not hold exactly {steps} steps")
    return shape
