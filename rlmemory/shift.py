"""Stored actions moved on by one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import as_numeric
from .device_array import DeviceArray
from .device_runs import shifted
from .errors import DataTypeError, ShapeError
from .fill import Fill
from .placing import common_device, lent, working_on


def shift_actions(actions: Any, starts: ArrayLike, default: Any = "zeros") -> Any:
    """The previous action of each row.

    Parameters
    ----------
    actions : array_like (N, *shape) or (..., T, *shape), or a tuple or dict of them
        In the order of time.
    starts : bool array_like (N,) or (..., T)
        True at the first row of an episode. The first row along the last of these axes always is one.
    default : "zeros", "nan", number or array_like, default "zeros"
        What the first rows get: an array is broadcast to the action's shape, or has a row for each of the leading axes
        (..., *shape).

    Returns
    -------
    array, tuple or dict of arrays
        Of the shape and dtype of `actions`; always fresh.

    Raises
    ------
    ShapeError
        When `actions` does not begin with the shape of `starts`, or `default` does not fit.
    SpecError, ValueNotRepresentableError
        When `default` cannot be held by the actions' dtype.
    DataTypeError
        When some of `actions` and `starts` are on a GPU and some are not.

    See Also
    --------
    LastAction : the same on nested dicts, step by step.

    Notes
    -----
    Copies each action once. Actions on a GPU, with starts there, give a `DeviceArray`; only the starts are copied to
    the host. Rows of several sources must be taken one source at a time, or laid out as (source, time).
    ``memory.sample(..., previous=True)`` gives previous actions of a memory directly.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> rlm.shift_actions(np.array([5, 6, 7, 8]), [True, False, True, False], -1)
    array([-1,  5, -1,  7])
    """
    number = common_device([*_named("actions", actions), ("starts", starts)])
    fill = Fill("default", default)
    if number is None:
        flags = as_flags("starts", starts)
        return _each("actions", actions, lambda name, part: shift(as_numeric(name, part), flags, fill, name))
    with working_on(number):
        flags = as_flags("starts", lent("starts", starts, number).copy_to_host())
        return _each("actions", actions, lambda name, part: shift(lent(name, part, number), flags, fill, name))


def _named(name: str, actions: Any) -> list[tuple[str, Any]]:
    """The arrays in tuples and dicts, by the names that errors give them."""
    found: list[tuple[str, Any]] = []
    _each(name, actions, lambda where, part: found.append((where, part)))
    return found


def _each(name: str, actions: Any, change: Callable[[str, Any], Any]) -> Any:
    if isinstance(actions, Mapping):
        return {key: _each(f"{name}[{key!r}]", part, change) for key, part in actions.items()}
    if isinstance(actions, tuple):
        return tuple(_each(f"{name}[{place}]", part, change) for place, part in enumerate(actions))
    return change(name, actions)


def shift(actions: Any, starts: NDArray[np.bool_], fill: Fill, name: str = "actions") -> Any:
    """`shift_actions` on one array, on the host or a device, with a default whose form was checked."""
    count = starts.ndim
    if count == 0 or actions.shape[:count] != starts.shape:
        raise ShapeError(f"{name}: expected the shape of starts, {starts.shape}, to come first, got {actions.shape}")
    shape = actions.shape[count:]
    first = fill.rows(starts.shape[:-1], shape, actions.dtype)
    at = starts.copy()
    at[..., :1] = True
    if isinstance(actions, DeviceArray):
        return shifted(actions, at, first)
    time = (slice(None),) * (count - 1)
    out = np.empty_like(actions)
    out[(*time, slice(1, None))] = actions[(*time, slice(None, -1))]
    if count == 1:  # one default for all
        out[at] = first
    else:
        out[at] = np.broadcast_to(np.expand_dims(first, count - 1), actions.shape)[at]
    return out


def as_flags(name: str, value: ArrayLike) -> NDArray[np.bool_]:
    """Bools, and nothing that only looks like them."""
    flags = np.asarray(value)
    if flags.dtype != np.bool_:
        raise DataTypeError(f"{name}: expected bools, got {flags.dtype}")
    return flags
