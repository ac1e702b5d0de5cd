"""Where the arrays of one call are, all on the host or all on one GPU, and fresh ones beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .borrowed import _number_of, borrow, is_on_device
from .device_array import DeviceArray, Shape
from .errors import DataTypeError


def common_device(named: Iterable[tuple[str, Any]]) -> int | None:
    """The number of the GPU that these arrays are on, None for those of the host; `borrow` compares the numbers.

    Raises
    ------
    DataTypeError
        When only some of them are on a GPU.
    """
    host, there = None, None
    for name, value in named:
        if is_on_device(value):
            there = there or (name, value)
        else:
            host = host or (name, value)
    if there is None:
        return None
    if host is not None:
        raise DataTypeError(
            f"{host[0]}: this {type(host[1]).__name__} is on the host, and is needed on the GPU that {there[0]} is on: "
            "rlmemory.to_device(x) copies it there (and rlmemory.to_host(x) an array of the GPU to the host)"
        )
    return number_of(there[1])


def number_of(value: Any) -> int:
    """On which device an array there is; the thread's current one when it does not say."""
    from .kernels import _cuda

    number = _number_of(value, -1)
    return _cuda.device_number("cuda") if number < 0 else number


@contextmanager
def working_on(number: int) -> Iterator[None]:
    """Work on a device, and wait at the end: what is handed out then is there, and what was lent can change."""
    from .kernels import _cuda

    with _cuda.using(number):
        yield
        _cuda.synchronize()


def lent(name: str, value: Any, number: int) -> DeviceArray:
    """An array of any library on device `number`, as it lies there; errors as of `borrow`."""
    there = borrow(name, value, number)
    return DeviceArray(there.block, there.at, there.shape, there.dtype, number)


def fresh(shape: Shape, dtype: np.dtype[Any], number: int) -> DeviceArray:
    """Room for an array on the device that is worked on; what is in it is anything."""
    from .kernels import _cuda

    return DeviceArray(_cuda.allocate(math.prod(shape) * dtype.itemsize), 0, shape, dtype, number)


def uploaded(array: NDArray[Any], number: int) -> DeviceArray:
    """A copy of a host array on the device that is worked on."""
    from .kernels import _cuda

    there = fresh(array.shape, array.dtype, number)
    _cuda.upload(np.ascontiguousarray(array).reshape(-1).view(np.uint8), there._block)
    return there
