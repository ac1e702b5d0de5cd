"""`gpuArray` and `gather`: to a GPU and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import rlmemory as rlm

from .arrays import dlarray
from .cells import Cell
from .structs import struct


def gpuArray(X: Any) -> Any:
    """An array in the memory of a GPU.

    Parameters
    ----------
    X : array_like or dlarray
        Numbers or logicals. An array that is on a GPU already is taken as it lies there.

    Returns
    -------
    rlmemory.DeviceArray, a copy; a dlarray around one, with its labels, for a dlarray

    Raises
    ------
    rlmemory.NotAvailableError
        Without a CUDA device, or without its driver. A host array is never given instead.
    rlmemory.DataTypeError
        For structs, cells and what else is no array of numbers.
    MemoryError
        When the device has no room.

    Notes
    -----
    MATLAB counterpart: ``gpuArray``. There is no arithmetic on it: CuPy, PyTorch and JAX take it without a copy, as in
    ``torch.from_dlpack(x)``; `gather` brings it back.

    Examples
    --------
    >>> x = gpuArray(np.zeros((2, 3)))    # doctest: +SKIP
    >>> x                                 # doctest: +SKIP
    DeviceArray(shape=(2, 3), dtype=float64, device='cuda:0')
    """
    if isinstance(X, dlarray):
        return dlarray(gpuArray(X._data), X._labels)
    data = X if on_gpu(X) else _numbers(X)
    try:
        return rlm.to_device(data)
    except rlm.NotAvailableError as error:
        raise rlm.NotAvailableError(
            f"gpuArray (ReturnGpuArray) needs a CUDA device: {error}; leave ReturnGpuArray false to have the arrays on "
            "the host"
        ) from error


def _numbers(X: Any) -> Any:
    what = type(X).__name__
    if not isinstance(X, (struct, Cell, Mapping)):
        array = np.asarray(X)
        if array.dtype.kind in "biufc":
            return array
        what += f" of {array.dtype}"
    raise rlm.DataTypeError(f"gpuArray: expected an array of numbers, got a {what}; give its arrays, one by one")


def on_gpu(X: Any) -> bool:
    """Whether something is an array on a GPU, or a dlarray around one."""
    return hasattr(X._data if isinstance(X, dlarray) else X, "__cuda_array_interface__")


def gather(X: Any) -> Any:
    """Bring an array from a GPU to the host.

    Parameters
    ----------
    X : dlarray, array on a GPU of any library, or anything else

    Returns
    -------
    ndarray, a copy, for an array on a GPU; a dlarray of it, with its labels, for a dlarray around one; whatever is on
    the host already, as it is

    Notes
    -----
    MATLAB counterpart: ``gather``.

    Examples
    --------
    >>> gather(np.arange(3.0))
    array([0., 1., 2.])
    """
    if isinstance(X, dlarray):
        return dlarray(gather(X._data), X._labels) if on_gpu(X) else X
    if hasattr(X, "copy_to_host"):
        return X.copy_to_host()
    return X if isinstance(X, (Mapping, tuple)) else rlm.to_host(X)
