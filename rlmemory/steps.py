"""What returns and advantages are computed of, checked: numbers, flags and factors of a batch of steps.

Arrays on a device pass as they are, where only their shape and dtype are looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import as_flags, as_numeric
from .device_array import DeviceArray
from .errors import DataTypeError, ShapeError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
FLOAT = np.dtype(np.float64)


def last_steps(x: Any, ends: ArrayLike | None, mask: ArrayLike | None) -> tuple[Bools, Bools | None]:
    """Where trajectories end, and which steps are real (None: all)."""
    real = None if mask is None else flags("mask", mask, x)
    if ends is None and real is None:
        raise ShapeError("ends: say where trajectories end, or give a mask whose rows are trajectories")
    last = np.zeros(real.shape, np.bool_) if ends is None and real is not None else flags("ends", ends, x).copy()
    last[..., -1:] = True
    if real is not None:
        if real.shape != last.shape:
            raise ShapeError(f"mask: expected the shape of ends, {last.shape}, got {real.shape}")
        last |= ~real
        last[..., :-1] |= ~real[..., 1:]
    return last, real


def numbers(name: str, value: Any) -> Any:
    """Real numbers, at least one axis of them."""
    array = value if isinstance(value, DeviceArray) else as_numeric(name, value)
    if array.dtype.kind == "c":
        raise DataTypeError(f"{name}: expected real numbers, got {array.dtype}; take .real and .imag apart")
    if array.dtype.kind not in "biuf":
        raise DataTypeError(f"{name}: expected numbers, got dtype {array.dtype}")
    if array.ndim == 0:
        raise ShapeError(f"{name}: expected at least an axis of time, got a scalar")
    return array


def flags(name: str, value: Any, x: Any) -> Bools:
    """A flag for each step of `x`."""
    array = as_numeric(name, value)
    if array.ndim == 0 or x.shape[: array.ndim] != array.shape:
        raise ShapeError(f"{name}: expected the first axes of {x.shape}, got {array.shape}")
    return as_flags(name, array)


def like(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Real numbers of this very shape; a scalar of the host stands for all."""
    plain = not isinstance(value, DeviceArray) and np.ndim(value) == 0
    array = numbers(name, np.broadcast_to(value, shape) if plain else value)
    if array.shape != shape:
        raise ShapeError(f"{name}: expected shape {shape}, got {array.shape}; shapes are compared, never broadcast")
    return array


def factor(name: str, value: Any, batch: tuple[int, ...]) -> Any:
    """One factor, or one for each step."""
    array = value if isinstance(value, DeviceArray) else as_numeric(name, value)
    if array.shape not in ((), batch):
        raise ShapeError(f"{name}: expected a number or shape {batch}, got {array.shape}")
    return array


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Sums of floats are such floats, others float64."""
    return dtype if dtype.kind == "f" else FLOAT
