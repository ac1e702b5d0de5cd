"""What stands after the end of a trajectory: for each leaf a value of its own dtype, zero unless something is asked."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accept import cast_exactly, on_a_gpu
from .borrowed import is_on_device
from .errors import DataTypeError, MissingKeyError, ShapeError, ValueNotRepresentableError
from .nested import Nested, Path, find, shown

_NUMBERS = "biufc"


def fill_of(path: Path, array: NDArray[Any], padding: Any, ids: Path) -> NDArray[Any] | None:
    """The padding of a flat leaf, or None for zeros.

    A value for all leaves is one for numbers: ids stay 0, flags False, strings empty, unless a mapping names them.
    """
    named = isinstance(padding, Mapping)
    value = find(padding, path) if named else padding
    if value is None or (not named and (path == ids or array.dtype.kind not in "iufc")):
        return None
    if is_on_device(value):
        raise on_a_gpu(f"padding_value of {shown(path)}", value)
    fill = _as_dtype(f"padding_value of {shown(path)}", np.asarray(value), array.dtype)
    try:
        fill = np.broadcast_to(fill, array.shape[1:])
    except ValueError as error:
        raise ShapeError(
            f"padding_value of {shown(path)}: shape {fill.shape} does not fit a step's shape {array.shape[1:]}"
        ) from error
    return fill if any(fill.tobytes()) else None


def _as_dtype(name: str, value: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind in _NUMBERS and value.dtype.kind in _NUMBERS:
        try:
            return cast_exactly(name, value, dtype)
        except (ValueNotRepresentableError, DataTypeError) as error:
            raise _unfit(name, value, dtype) from error
    if dtype.kind in "USmM" and value.dtype.kind == dtype.kind:
        cast = value.astype(dtype)
        if np.any((cast != value) & (cast == cast)):  # a missing time differs from itself
            raise _unfit(name, value, dtype)
        return cast
    raise DataTypeError(f"{name}: {value.tolist()!r} is no value of dtype {dtype}")


def _unfit(name: str, value: NDArray[Any], dtype: np.dtype[Any]) -> ValueNotRepresentableError:
    return ValueNotRepresentableError(
        f"{name}: {value.tolist()!r} cannot be kept in dtype {dtype}; a mapping gives each leaf a value of its own"
    )


def check_padding(padding: Any, flat: Nested) -> None:
    """Refuse a padding for a leaf that is not there."""
    if isinstance(padding, Mapping):
        for path in _leaves(padding, ()):
            if find(flat, path) is None or isinstance(find(flat, path), dict):
                raise MissingKeyError(
                    f"padding_value: no array {shown(path)} to pad; there are {sorted(map(str, flat))}"
                )


def _leaves(data: Mapping[str, Any], path: Path) -> list[Path]:
    found = []
    for key, value in data.items():
        found += _leaves(value, (*path, key)) if isinstance(value, Mapping) else [(*path, key)]
    return found


def warn_of_much_padding(steps: int, pieces: int, longest: int, width: int) -> None:
    """Warn when padding exceeds four times the data; `width` is bytes in a step."""
    padded = pieces * longest - steps
    if padded > 4 * steps:
        warnings.warn(
            f"padding of {padded:,} steps ({padded * width:,} bytes) for {steps:,} steps of data: {pieces:,} "
            f"trajectories, the longest of {longest:,}, {steps / pieces:.1f} on average. max_length cuts long ones "
            "into segments; ragged_trajectories needs no padding",
            UserWarning,
            stacklevel=3,
        )
