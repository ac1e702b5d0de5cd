"""Arrays on a GPU that other libraries bring, as they lie there."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .device_array import CUDA, DeviceArray, Shape, place_of
from .errors import DataTypeError


class Borrowed(NamedTuple):
    """Somebody's array on the device, contiguous, for as long as a call takes.

    Attributes
    ----------
    block : device array of bytes
    at : int
        Where the array begins in `block`.
    shape, dtype
    """

    block: Any
    at: int
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        """Bytes in an entry along the first axis."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def rows(self, first: int, end: int) -> Borrowed:
        """Some of the entries along the first axis."""
        return self._replace(at=self.at + first * self.width, shape=(end - first, *self.shape[1:]))

    def copy_to_host(self) -> NDArray[Any]:
        """A NumPy array of it."""
        from .kernels import _cuda

        raw = _cuda.download(self.block, self.at, self.nbytes)
        return raw.view(self.dtype).reshape(self.shape)


def is_on_device(value: Any) -> bool:
    """Whether something is an array in a GPU's memory."""
    if isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        return False
    try:
        if hasattr(value, "__cuda_array_interface__"):
            return True
    except RuntimeError:  # PyTorch's word for a tensor there that requires grad; `viewed` passes it on
        return True
    where = getattr(value, "__dlpack_device__", None)
    return where is not None and where()[0] in CUDA


def borrow(name: str, value: Any, number: int) -> Borrowed:
    """An array on device `number`, of any library, as it lies there; a copy of it where it has gaps.

    Raises
    ------
    DataTypeError
        When it is on another device.
    """
    seen = viewed(name, value, number)
    whole = seen if seen.contiguous else seen.copy()
    return Borrowed(whole._block, whole._at, whole.shape, whole.dtype)


def viewed(name: str, value: Any, number: int) -> DeviceArray:
    """An array on device `number`, of any library, with whichever strides; it keeps its owner alive.

    Raises
    ------
    DataTypeError
        When it is on another device, or of a dtype that NumPy does not know.
    """
    from .kernels import _cuda

    theirs = _number_of(value, number)
    if theirs != number:
        raise DataTypeError(f"{name}: the array is on cuda:{theirs}, and is needed on cuda:{number}")
    if isinstance(value, DeviceArray):
        return value
    found = _interface(name, value)
    dtype, strides = np.dtype(found["typestr"]), found.get("strides")
    if dtype.kind not in "biufc" or found.get("mask") is not None:
        what = f"dtype {found['typestr']}" if found.get("mask") is None else "a mask, which would be lost"
        raise DataTypeError(f"{name}: expected an array of numbers, got one with {what}")
    _cuda.wait_for(value, found)
    array = DeviceArray(None, 0, tuple(found["shape"]), dtype, number, None if strides is None else tuple(strides))
    first, end = array._extent()  # the first may be negative: the address is that of the first entry
    array._block = _cuda.at_address(found["data"][0] + first, end - first, (value, found))
    array._at = -first
    return array


def _number_of(value: Any, otherwise: int) -> int:
    """On which device an array is; one that does not say is taken to be where it is needed."""
    if isinstance(value, DeviceArray):
        return value._number
    where = getattr(value, "__dlpack_device__", None)
    kind, number = where() if where is not None else (None, otherwise)
    return int(number) if kind in CUDA else otherwise


def _interface(name: str, value: Any) -> dict[str, Any]:
    """What ``__cuda_array_interface__`` says, or would say for an array that knows DLPack only."""
    try:
        if hasattr(value, "__cuda_array_interface__"):
            described: dict[str, Any] = value.__cuda_array_interface__
            return described
        seen = np.from_dlpack(_AsIfOnHost(value))
    except (BufferError, RuntimeError, TypeError) as error:
        raise DataTypeError(
            f"{name}: the array cannot be taken as it is ({error}); convert it on the device"
        ) from error
    return {**seen.__array_interface__, "owner": seen}


class _AsIfOnHost:
    """An array that knows DLPack, for NumPy: NumPy takes the description, and nobody looks at the entries."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self.value.__dlpack__(stream=1)  # ready for the default stream, which is ours
        place_of(capsule)[:] = (1, 0)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0
