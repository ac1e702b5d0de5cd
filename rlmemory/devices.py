"""To a GPU and back: arrays, what a memory gave, and memories themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from .accept import as_numeric
from .borrowed import is_on_device, viewed
from .device_array import DeviceArray
from .errors import NotPickleableError
from .placing import fresh, number_of, uploaded, working_on
from .store import Store, checked_device


def to_device(value: Any, device: str = "cuda") -> Any:
    """Copies on a GPU.

    Parameters
    ----------
    value : array_like, or a (nested) mapping, tuple, Batch or Experience of them
        Numbers of any dtype. What is on a GPU already is taken as it lies there; None stays None.
    device : {"cuda", "cuda:N"}, default "cuda"
        "cuda" is the current device of the thread.

    Returns
    -------
    DeviceArray, or what was given with one in the place of each array
        The nesting is kept; a view of the same memory for what was on that device, else a copy.

    Raises
    ------
    NotAvailableError
        Without a driver, a device, or this device.
    MemoryError
        When the device has no room; it says how much was asked for and how much is free.
    DataTypeError
        For what is no array of numbers, and for an array on another device.

    Notes
    -----
    MATLAB: ``gpuArray``.
    """
    name = checked_device(device)
    if name == "cpu":
        return to_host(value)
    number = int(name.partition(":")[2])
    return _mapped(value, lambda leaf: _lifted(leaf, number))


def to_host(value: Any) -> Any:
    """Copies on the host of what is on a GPU.

    Parameters
    ----------
    value : array of any library, or a (nested) mapping, tuple, list, Batch or Experience of them
        NumPy arrays, numbers and None stay as they are.

    Returns
    -------
    ndarray, or what was given with one in the place of each array on a GPU

    Notes
    -----
    Waits for the device. MATLAB: ``gather``.
    """
    return _mapped(value, _lowered)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _mapped(part, change) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = [_mapped(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return None if value is None else change(value)


def _lifted(leaf: Any, number: int) -> DeviceArray:
    from .kernels import _cuda

    with _cuda.using(number):
        return viewed("value", leaf, number) if is_on_device(leaf) else uploaded(as_numeric("value", leaf), number)


def joined(values: list[DeviceArray], axis: int) -> DeviceArray:
    """What ``np.concatenate`` gives, on the device that all of them are on."""
    from .kernels import _cuda

    first = values[0]
    with working_on(first._number):
        if axis:
            return uploaded(np.concatenate([value.copy_to_host() for value in values], axis), first._number)
        whole, at = fresh((sum(map(len, values)), *first.shape[1:]), first.dtype, first._number), 0
        for value in values:
            _cuda.transfer(value._block, value._at, value.nbytes, whole._block, at)
            at += value.nbytes
        return whole


def _lowered(leaf: Any) -> Any:
    if isinstance(leaf, list):  # of arrays; one of numbers comes out as it was
        return [_mapped(part, _lowered) for part in leaf]
    if not is_on_device(leaf):
        return leaf
    from .kernels import _cuda

    number = number_of(leaf)
    with _cuda.using(number):
        return viewed("value", leaf, number).copy_to_host()


class Placed(Store):
    """The methods of `ReplayMemory` about where it is."""

    @property
    def device(self) -> str:
        """Where the experiences are: "cpu", or "cuda:0", "cuda:1", ..."""
        return self._device

    def to(self, device: str) -> Self:
        """The memory on another device: everything that makes the next batch the same goes along.

        Parameters
        ----------
        device : {"cpu", "cuda", "cuda:N"}

        Returns
        -------
        ReplayMemory
            Of the same class; this memory itself when it is there already, else a copy that has nothing in common with
            it but the user's functions.

        Raises
        ------
        NotAvailableError
            Without a driver, a device, or this device.
        MemoryError
            When there is no room; this memory is unchanged then.
        NotPickleableError
            For a memory with a `path`.

        Notes
        -----
        Rows, ids, sources, ends of episodes, priorities and the generator's state are copied; the rows pass through the
        host. MATLAB has no counterpart: a MATLAB buffer is on the host.
        """
        name = checked_device(device)
        with self._lock:
            if name == self._device:
                return self
            if self._arena.path is not None:
                raise NotPickleableError(
                    f"to: a memory whose arena is a file ({self._arena.path}) has no copy elsewhere; make a memory "
                    "there, and extend_from the chunks of this one"
                )
            state = self.__getstate__()
            state["_device"], state["_rng"] = name, copy.deepcopy(self._rng)
        twin = object.__new__(type(self))
        twin.__setstate__(state)
        return twin
