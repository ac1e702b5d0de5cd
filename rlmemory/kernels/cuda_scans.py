"""What stands before and after a scan on the device: numbers as float64, one-step advantages, and back.

Products and the sums that they go into are kernels of their own: within one kernel the compiler would make a fused
operation of them, which rounds once, and the last bit would differ from the host's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._cuda import address, allocate, blocks_for, cuda, device, kernel, launch, lent, transfer


def elements(block: Any, at: int, dtype: np.dtype[Any], count: int) -> Any:
    """The numbers that begin at byte `at` of a block; a copy of those that no thread could read where they are."""
    if not count:
        return np.empty(0, dtype)  # nothing is launched for it
    size = count * dtype.itemsize
    if (address(block) + at) % dtype.alignment:
        block, there = allocate(size), block
        transfer(there, at, size, block, 0)
        at = 0
    return block[at : at + size].view(dtype)


def real_or_zero(x: Any, real: bool) -> Any:
    """Padding may be anything, NaN too: it is not read."""
    return x if real else 0.0


def weighted(weight: Any, x: Any) -> Any:
    """What does not count may be anything, infinite too: it is left out, not multiplied by 0."""
    return 0.0 if weight == 0.0 else weight * x


def one_step(reward: Any, following: Any, value: Any) -> Any:
    """Of a step: what it gave and what is expected from there on, less what was expected before."""
    return reward + following - value


_real_or_zero, _weighted, _one_step = device(real_or_zero), device(weighted), device(one_step)


@kernel
def _widen(x: Any, real: Any, width: int, out: Any) -> None:
    constant, masked = x.size == 1, real.size > 0
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = _real_or_zero(np.float64(x[0 if constant else i]), not masked or real[i // width] != 0)


def widen(x: Any, real: Any, width: int, out: Any) -> None:
    """Any numbers as float64, 0 for padding; one stands for all. A step has `width` of them."""
    _each(_widen, (x, real), width, out)


@kernel
def _narrow(x: Any, width: int, out: Any) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = x[i]


def narrow(x: Any, out: Any) -> None:
    """Float64 as another float."""
    _each(_narrow, (x,), 1, out)


@kernel
def _scale(x: Any, by: Any, width: int, out: Any) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = x[i] * by[0]


def scale(x: Any, by: Any, out: Any) -> None:
    """All numbers times one."""
    _each(_scale, (x, by), 1, out)


@kernel
def _follow(then: Any, factor: Any, dead: Any, width: int, out: Any) -> None:
    constant = factor.size == 1
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        step = i // width
        out[i] = _weighted(_real_or_zero(factor[0 if constant else step], dead[step] == 0), then[i])


def follow(then: Any, factor: Any, dead: Any, width: int, out: Any) -> None:
    """The discounted value of the next state, 0 after a dead one."""
    _each(_follow, (then, factor, dead), width, out)


@kernel
def _delta(reward: Any, following: Any, value: Any, real: Any, width: int, out: Any) -> None:
    masked = real.size > 0
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        there = not masked or real[i // width] != 0
        out[i] = _real_or_zero(_one_step(reward[i], following[i], value[i]), there)


def delta(reward: Any, following: Any, value: Any, real: Any, width: int, out: Any) -> None:
    """One-step advantages, 0 for padding."""
    _each(_delta, (reward, following, value, real), width, out)


@kernel
def _target(advantage: Any, value: Any, real: Any, width: int, out: Any) -> None:
    masked = real.size > 0
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = _real_or_zero(advantage[i] + value[i], not masked or real[i // width] != 0)


def target(advantage: Any, value: Any, real: Any, width: int, out: Any) -> None:
    """Advantages and values, 0 for padding."""
    _each(_target, (advantage, value, real), width, out)


def _each(function: Any, inputs: tuple[Any, ...], width: int, out: Any) -> None:
    if out.size:
        with lent(inputs, (out,)) as arrays:
            launch(function, blocks_for(out.size))(*arrays[:-1], width, arrays[-1])
