"""Stored actions moved on by one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import as_numeric
from .errors import DataTypeError, ShapeError
from .fill import Fill


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

    See Also
    --------
    LastAction : the same on nested dicts, step by step.

    Notes
    -----
    Copies each action once. Rows of several sources must be taken one source at a time, or laid out as (source, time).
    ``memory.sample(..., previous=True)`` gives previous actions of a memory directly.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> rlm.shift_actions(np.array([5, 6, 7, 8]), [True, False, True, False], -1)
    array([-1,  5, -1,  7])
    """
    if isinstance(actions, Mapping):
        return {key: shift_actions(part, starts, default) for key, part in actions.items()}
    if isinstance(actions, tuple):
        return tuple(shift_actions(part, starts, default) for part in actions)
    return shift(as_numeric("actions", actions), as_flags("starts", starts), Fill("default", default))


def shift(actions: NDArray[Any], starts: NDArray[np.bool_], fill: Fill) -> NDArray[Any]:
    """`shift_actions` on one array, with a default whose form was checked."""
    count = starts.ndim
    if count == 0 or actions.shape[:count] != starts.shape:
        raise ShapeError(f"actions: expected the shape of starts, {starts.shape}, to come first, got {actions.shape}")
    shape = actions.shape[count:]
    first = fill.rows(starts.shape[:-1], shape, actions.dtype)
    time = (slice(None),) * (count - 1)
    out = np.empty_like(actions)
    out[(*time, slice(1, None))] = actions[(*time, slice(None, -1))]
    at = starts.copy()
    at[..., :1] = True
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
