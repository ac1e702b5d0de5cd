"""Returns and advantages on a GPU: the same sums, of numbers that stay there.

Ends and masks, a byte a step, are prepared by the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .borrowed import is_on_device
from .device_array import DeviceArray
from .placing import common_device, fresh, lent, uploaded, working_on
from .steps import FLOAT, Bools, factor, flags, last_steps, like, numbers, result_dtype

_NOTHING = np.zeros(0, np.uint8)
_NONE = np.zeros((0, 0))


def device_of(**given: Any) -> int | None:
    """The device that all arrays of a call are on, or None for the host; numbers and None are anywhere."""
    if not any(map(is_on_device, given.values())):
        return None
    return common_device((name, value) for name, value in given.items() if is_on_device(value) or np.ndim(value))


class Sums:
    """Float64 arrays ``[N * C]`` on a device, for N steps of C components, and what is done to them.

    Parameters
    ----------
    x : DeviceArray
        Of the shape that all of them have.
    last : bool array
        At which steps sums end.
    real : bool array, optional
        Which steps are no padding.
    """

    def __init__(self, x: DeviceArray, last: Bools, real: Bools | None) -> None:
        from .kernels import cuda, cuda_scans

        self.kernels, self.scan_kernel = cuda_scans, cuda.scan
        self.x, self.number, self.batch = x, x._number, last.shape
        self.steps, self.width = last.size, math.prod(x.shape[last.ndim :])
        self.last = self.bytes_of(last)
        self.real = _NOTHING if real is None else self.bytes_of(real)

    def bytes_of(self, some: Bools) -> Any:
        """A flag for each step, on the device."""
        return self.elements(uploaded(some.view(np.uint8), self.number))

    def elements(self, array: DeviceArray) -> Any:
        """The numbers of an array, for a kernel."""
        return self.kernels.elements(array._block, array._at, array.dtype, array.size)

    def room(self, count: int) -> Any:
        """So many float64."""
        return self.elements(fresh((count,), FLOAT, self.number))

    def wide(self, array: Any, *, masked: bool = True) -> Any:
        """Numbers of x's shape as float64; those of an array that is float64 already are not copied."""
        real = self.real if masked else _NOTHING
        if isinstance(array, DeviceArray):
            found = self.elements(array)
            if array.dtype == FLOAT and not real.size:
                return found
        else:  # one number for all, as `like` has spread it
            found = np.ascontiguousarray(array.reshape(-1)[:1])
        out = self.room(self.x.size)
        self.kernels.widen(found, real, self.width, out)
        return out

    def factors(self, array: Any) -> Any:
        """One factor, or one for each step, as float64."""
        if not isinstance(array, DeviceArray):
            return np.require(array.reshape(-1), FLOAT, ["C", "A", "W"])
        out = self.room(array.size)
        self.kernels.widen(self.elements(array), _NOTHING, 1, out)
        return out

    def made(self, function: Any, *inputs: Any) -> Any:
        """The result of one of the kernels."""
        out = self.room(self.x.size)
        function(*inputs, self.width, out)
        return out

    def scan(self, x: Any, factors: Any, after: Any) -> Any:
        """The sums themselves."""
        out, shape = self.room(self.x.size), (self.steps, self.width)
        if self.x.size:
            following = _NONE if after is None else after.reshape(shape)
            self.scan_kernel(x.reshape(shape), factors, self.last, following, out.reshape(shape))
        return out

    def result(self, total: Any) -> DeviceArray:
        """As it is handed out: of x's shape, and of its dtype if that is a float."""
        dtype = result_dtype(self.x.dtype)
        if dtype == FLOAT and total.size:
            return DeviceArray(total.view(np.uint8), 0, self.x.shape, dtype, self.number)
        out = fresh(self.x.shape, dtype, self.number)
        self.kernels.narrow(total, self.elements(out))
        return out


@contextmanager
def _arguments(number: int, **given: Any) -> Iterator[list[Any]]:
    """The arrays of a call as arrays of ours, everything else as it is; what was given lives until all is done."""
    with working_on(number):
        yield [lent(name, value, number) if is_on_device(value) else value for name, value in given.items()]


def _on_host(value: Any) -> NDArray[Any] | Any:
    return value.copy_to_host() if isinstance(value, DeviceArray) else value


def discounted_scan(number: int, x: Any, ends: Any, discount: Any, bootstrap: Any, mask: Any) -> DeviceArray:
    """`rlmemory.discounted_scan` of arrays on a device."""
    given = {"x": x, "ends": ends, "discount": discount, "bootstrap": bootstrap, "mask": mask}
    with _arguments(number, **given) as (x, ends, discount, bootstrap, mask):
        array = numbers("x", x)
        last, real = last_steps(array, _on_host(ends), _on_host(mask))
        after = None if bootstrap is None else like("bootstrap", bootstrap, array.shape)
        weight = factor("discount", discount, last.shape)
        sums = Sums(array, last, real)
        following = None if after is None else sums.wide(after)
        return sums.result(sums.scan(sums.wide(array), sums.factors(weight), following))


def gae(
    number: int, reward: Any, value: Any, next_value: Any, terminated: Any, truncated: Any, discount: Any,
    decay: float, mask: Any,
) -> tuple[DeviceArray, DeviceArray]:  # fmt: skip
    """`rlmemory.gae` of arrays on a device."""
    given = {
        "reward": reward, "value": value, "next_value": next_value, "terminated": terminated, "truncated": truncated,
        "discount": discount, "mask": mask,
    }  # fmt: skip
    with _arguments(number, **given) as (reward, value, next_value, terminated, truncated, discount, mask):
        array = numbers("reward", reward)
        dead = flags("terminated", _on_host(terminated), array)
        ends = dead if truncated is None else dead | flags("truncated", _on_host(truncated), array)
        last, real = last_steps(array, ends, _on_host(mask))
        value, then = like("value", value, array.shape), like("next_value", next_value, array.shape)
        weight = factor("discount", discount, last.shape)
        sums = Sums(array, last, real)
        kernels, gamma = sums.kernels, sums.factors(weight)
        now = sums.wide(value, masked=False)
        following = sums.made(kernels.follow, sums.wide(then, masked=False), gamma, sums.bytes_of(dead))
        delta = sums.made(kernels.delta, sums.wide(array, masked=False), following, now, sums.real)
        advantage = sums.scan(delta, _decayed(sums, gamma, decay), None)
        target = sums.made(kernels.target, advantage, now, sums.real)
        return sums.result(advantage), sums.result(target)


def _decayed(sums: Sums, gamma: Any, decay: float) -> Any:
    if isinstance(gamma, np.ndarray):
        return gamma * decay
    out = sums.room(gamma.size)
    sums.kernels.scale(gamma, np.array([decay], FLOAT), out)
    return out
