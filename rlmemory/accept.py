"""What is accepted for storage: the right shape, and values that survive the dtype.

The rule for another dtype than the spec's: cast, cast back, compare in the source dtype. Equal: stored.
A float may also round to a narrower float, as long as a finite value stays finite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .borrowed import Borrowed, is_on_device
from .errors import DataTypeError, ShapeError, ValueNotRepresentableError
from .specs import NumericSpec


def accept(name: str, value: Any, spec: NumericSpec, lead: tuple[int, ...] = ()) -> NDArray[Any]:
    """`value` as an array of shape ``lead + spec.shape`` and the spec's dtype, or an error naming `name`.

    The result may share memory with `value`: the caller copies it into its own.
    """
    if value.__class__ is np.ndarray and value.dtype is spec.dtype and value.shape == lead + spec.shape:
        return value
    if isinstance(value, float) and lead == () == spec.shape and spec.dtype.kind == "f":
        # The usual reward, a Python float or float64 for a narrower float: it fits unless it becomes infinite.
        with np.errstate(over="ignore"):
            array = np.asarray(value, spec.dtype)
        return (
            array
            if math.isfinite(array) or not math.isfinite(value)
            else cast_exactly(name, np.asarray(value), spec.dtype)
        )
    array = as_numeric(name, value)
    if array.shape != lead + spec.shape:
        raise ShapeError(_shape_message(name, array.shape, spec, lead))
    return array if array.dtype == spec.dtype else cast_exactly(name, array, spec.dtype)


def accept_on_device(name: str, value: Borrowed, spec: NumericSpec, lead: tuple[int, ...]) -> Borrowed:
    """An array on a device, of shape ``lead + spec.shape`` and the spec's dtype; nothing is cast there."""
    if value.shape != lead + spec.shape:
        raise ShapeError(_shape_message(name, value.shape, spec, lead))
    if value.dtype != spec.dtype:
        raise DataTypeError(
            f"{name}: expected {spec.dtype}, got {value.dtype}; arrays on a device are stored as they are: cast it "
            "there, with x.to(...) or x.astype(...), or give the spec its dtype"
        )
    return value


def as_numeric(name: str, value: Any) -> NDArray[Any]:
    """`value` as an array of numbers with native byte order."""
    if isinstance(value, np.ma.MaskedArray):
        raise DataTypeError(f"{name}: a masked array would lose its mask; give an array, for example with .filled(...)")
    if is_on_device(value):
        raise on_a_gpu(name, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"{name}: cannot be read as one array ({error})") from error
    if array.dtype.kind not in "biufc":
        hint = "nested lists of unequal lengths, objects and integers beyond 64 bits are not arrays of numbers"
        what = hint if array.dtype == object and array.ndim else repr(value)
        raise DataTypeError(f"{name}: expected numbers, got dtype {array.dtype} ({what})")
    if array.dtype.kind in "fc" and isinstance(value, (list, tuple)):
        _check_whole_numbers(name, value, array)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def on_a_gpu(name: str, value: Any) -> DataTypeError:
    """The error for an array on a GPU where NumPy has to look into it."""
    return DataTypeError(
        f"{name}: expected an array on the host, got one on a GPU ({type(value).__name__}); rlmemory.to_host(x) "
        "copies it"
    )


def _check_whole_numbers(name: str, value: Any, array: NDArray[Any]) -> None:
    """Refuse lists such as ``[0.5, 2**53 + 1]``, whose whole numbers NumPy rounds while it reads them as floats."""
    far = np.argwhere(np.abs(array) >= 2.0**53)
    given = np.asarray(value, object) if far.size else array
    for position in map(tuple, far.tolist()):
        number = given[position]
        number = number.item() if isinstance(number, (np.generic, np.ndarray)) else number
        if isinstance(number, int) and number != int(array[position].real):
            raise ValueNotRepresentableError(
                f"{name}: {number} at position {list(position)} would become {array[position]!r}, since NumPy reads "
                "such a list as floats; give an array of an integer dtype"
            )


def _shape_message(name: str, got: tuple[int, ...], spec: NumericSpec, lead: tuple[int, ...]) -> str:
    wanted = lead + spec.shape
    message = f"{name}: expected shape {wanted}, got {got}"
    if lead:
        message += f" ({lead[0]} rows of shape {spec.shape})" if len(lead) == 1 else ""
        return message + "; every field needs the same number of rows"
    if got == (1, *spec.shape):
        return message + "; this is a batch of one: use extend(), or drop the first axis"
    if got[1:] == spec.shape and len(got) == len(spec.shape) + 1:
        return message + f"; for {got[0]} experiences at once use extend()"
    return message + "; shapes are compared, never broadcast"


def cast_exactly(name: str, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """`array` in `dtype`, when no value changes but by the rounding of floats."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise DataTypeError(
            f"{name}: complex numbers ({array.dtype}) do not fit the real dtype {dtype}; store .real and .imag, "
            "or give the spec a complex dtype"
        )
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        wrong = _changed(array, cast)
    if wrong.any():
        position = tuple(int(i) for i in np.argwhere(wrong)[0])
        value = array[position]
        where = f" at position {list(position)}" if position else ""
        raise ValueNotRepresentableError(
            f"{name}: {value!r}{where} ({array.dtype}) cannot be stored as {dtype}: it would become "
            f"{cast[position]!r}; convert it yourself, or give the spec a wider dtype"
        )
    return cast


def _changed(array: NDArray[Any], cast: NDArray[Any]) -> NDArray[np.bool_]:
    """True where `cast` does not stand for the same value as `array`."""
    source, target = array.dtype.kind, cast.dtype.kind
    if target in "fc" and source in "fc":
        return _bools(np.isfinite(array) & ~np.isfinite(cast))
    if target in "iu" and source in "iuf":
        # Out of range, a cast wraps, saturates or does as the processor likes: compare with the range, not with
        # what came back. The bounds are exact in every type: powers of two.
        bits = np.iinfo(cast.dtype).bits
        low, high = (0, 2**bits) if target == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        # ... but for float16, where they are infinite.
        outside = ~np.isfinite(array) | _below(array, low) | ~_below(array, high)
        return _bools(outside | (cast.astype(array.dtype) != array))
    if target in "fc" and source in "iu":
        bits = np.iinfo(array.dtype).bits
        top = 2.0**bits if source == "u" else 2.0 ** (bits - 1)
        back = np.where(cast.real < top, cast.real, 0).astype(array.dtype)
        return _bools(~np.isfinite(cast) | (cast.real >= top) | (back != array))
    return _bools(cast.astype(array.dtype) != array)


def _bools(array: Any) -> NDArray[np.bool_]:
    return np.asarray(array, np.bool_)


def _below(array: NDArray[Any], bound: int) -> NDArray[np.bool_]:
    """``array < bound`` (False for NaN) for a bound that may lie outside the integers of the array's dtype."""
    if array.dtype.kind == "f":
        # A bound above the largest float16 is infinite there, and every finite value is below it.
        return np.asarray(array < array.dtype.type(bound))
    info = np.iinfo(array.dtype)
    if bound > info.max:
        return np.ones(array.shape, np.bool_)
    return np.zeros(array.shape, np.bool_) if bound <= info.min else np.asarray(array < bound)


def accept_flag(name: str, value: Any, lead: tuple[int, ...] = ()) -> NDArray[np.bool_]:
    """A bool flag, or `lead` of them."""
    if isinstance(value, (bool, np.bool_)) and lead == ():
        return np.asarray(value)
    if value.__class__ is np.ndarray and value.dtype is FLAG.dtype and value.shape == lead:
        return value
    array = as_numeric(name, value)
    if array.shape != lead:
        raise ShapeError(_shape_message(name, array.shape, FLAG, lead))
    if array.dtype != np.bool_ and bool(np.any((array != 0) & (array != 1))):
        raise ValueNotRepresentableError(
            f"{name}: expected bools, got {array.dtype} {array.ravel()[:4]}; "
            "an is_done code of 2 is truncated=True here"
        )
    return array.astype(np.bool_, copy=False)


FLAG = NumericSpec((), "bool", name="flag")
SOURCE = NumericSpec((), "int32", name="source")
_LAST_SOURCE = np.iinfo(np.int32).max


def accept_source(value: Any, lead: tuple[int, ...] = ()) -> NDArray[np.int32]:
    """Source numbers: whole, from 0 up; a scalar stands for all rows."""
    if value.__class__ is int and 0 <= value <= _LAST_SOURCE:
        return np.asarray(value, np.int32)
    array = as_numeric("source", value)
    if array.shape not in ((), lead):
        raise ShapeError(f"source: expected a whole number or an array of shape {lead}, got shape {array.shape}")
    if array.dtype.kind == "b":
        raise DataTypeError("source: expected the number of an environment or worker, got a bool")
    array = cast_exactly("source", array, SOURCE.dtype)
    if array.size and int(array.min()) < 0:
        raise ValueNotRepresentableError(f"source: {int(array.min())} is negative; sources count from 0")
    return array


def as_flags(name: str, array: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a number is not 0; a NaN is neither a yes nor a no."""
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise DataTypeError(f"{name}: expected flags, got a NaN")
    return np.asarray(array != 0, np.bool_)


def one_source(value: Any) -> int | None:
    """The number of one source, or None."""
    return None if value is None else int(accept_source(value))


def at_least(name: str, value: Any, least: int) -> int:
    """A whole number from `least` up."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}: expected a whole number from {least} up, got {value!r}")
    return int(value)
