"""`gpuArray`, and what is on a GPU: one array at a time. `gather` is in gathering.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import rlmemory as rlm

from .arrays import dlarray
from .cells import Cell
from .structs import struct

_CUDA = (2, 13)  # DLPack's numbers for CUDA memory, plain and managed


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
    ``torch.from_dlpack(x)``; `gather` brings it back. Structs of arrays there come from ``ReturnGpuArray=True``.

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
        try:
            array = np.asarray(X)
        except (ValueError, TypeError) as error:  # unlike sizes, or entries that are on a GPU
            raise rlm.DataTypeError(f"{_EXPECTED} {what} that is no array ({error}); {_SINGLY}") from error
        if array.dtype.kind in "biufc":
            return array
        what += f" of {array.dtype}"
    raise rlm.DataTypeError(f"{_EXPECTED} {what}; {_SINGLY}")


_EXPECTED, _SINGLY = "gpuArray: expected an array of numbers, got a", "give its arrays, one by one"


def on_gpu(X: Any) -> bool:
    """Whether something is an array on a GPU, of any library, or a dlarray around one."""
    if isinstance(X, dlarray):
        X = X._data
    if isinstance(X, (np.ndarray, np.generic, int, float, str)):
        return False
    try:
        if hasattr(X, "__cuda_array_interface__"):
            return True
    except RuntimeError:  # PyTorch's word for a tensor there that requires grad; `fetched` passes it on
        return True
    where = getattr(X, "__dlpack_device__", None)
    return where is not None and where()[0] in _CUDA


def fetched(X: Any) -> Any:
    """An array on a GPU, or a dlarray around one, copied to the host; anything else as it is."""
    if not on_gpu(X):
        return X
    if isinstance(X, dlarray):
        return dlarray(fetched(X._data), X._labels)
    return X.copy_to_host() if hasattr(X, "copy_to_host") else rlm.to_host(X)
