"""`gather`: back from a GPU, also what is within structs and cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .device import fetched
from .records import LazyRecords
from .results import MiniBatch
from .structs import from_rows, rows_of, struct, view


def gather(X: Any, *more: Any) -> Any:
    """Bring arrays from a GPU to the host.

    Parameters
    ----------
    X : array on a GPU of any library, dlarray, struct, struct array, Cell, list, tuple, dict, or anything else
        What is within structs and cells is brought as well, however deep.
    *more
        The same.

    Returns
    -------
    The same on the host; with several arguments a tuple, in their order
        An ndarray, a copy, for an array on a GPU; a dlarray of it, with its labels, for a dlarray around one; a new
        struct, struct array, cell, list, tuple or dict for one with arrays on a GPU in it, which shares what was on the
        host already. Whatever has nothing on a GPU is returned itself, not a copy.

    Raises
    ------
    rlmemory.DataTypeError
        For an array of another library that cannot be taken as it is, such as a tensor that requires grad.

    Notes
    -----
    MATLAB counterpart: ``gather``, which takes arrays; structs and cells are an extension. Python needs no ``nargout``
    here: ``a, b = gather(a, b)``. Of a struct array that `allExperiences` gave, each channel is copied as a whole.

    Examples
    --------
    >>> gather(np.arange(3.0))
    array([0., 1., 2.])
    >>> mb = gather(sample(buffer, 32, ReturnGpuArray=True))    # doctest: +SKIP
    """
    return tuple(gathered(value) for value in (X, *more)) if more else gathered(X)


def gathered(X: Any) -> Any:
    """What `gather` gives for one argument."""
    if isinstance(X, struct):
        return _struct(X)
    if isinstance(X, Mapping):
        given = dict(X)
        brought = _row(given)
        return brought if _differs(given, brought) else X
    if isinstance(X, np.ndarray):
        return _object_array(X) if X.dtype == object else X
    if not isinstance(X, (list, tuple)):
        return fetched(X)
    parts = [gathered(part) for part in X]
    if all(part is own for part, own in zip(parts, X, strict=True)):
        return X
    return type(X)(*parts) if hasattr(X, "_fields") else type(X)(parts)


def in_columns(experience: Any) -> Any:
    """A long struct array brought to the host a channel at a time, not an element at a time; anything else as it is."""
    if isinstance(experience, struct) and isinstance(experience._records, LazyRecords) and len(experience) > 1:
        return _struct(experience)
    return experience


def _struct(array: struct) -> struct:
    records, at = array._records, array._at
    if isinstance(records, LazyRecords) and len(array) > 1:
        there = records.changed(gathered)
        return array if there is records else view(struct, there, at, array._column)
    rows = [dict(row) for row in rows_of(array)]
    brought = [_row(row) for row in rows]
    if not any(_differs(row, new) for row, new in zip(rows, brought, strict=True)):
        return array
    made = from_rows(brought, array._column)
    if not isinstance(array, MiniBatch):
        return made
    batch = view(MiniBatch, made._records, None, array._column)
    object.__setattr__(batch, "_origin", array._origin)
    return batch


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: gathered(value) for name, value in row.items()}


def _differs(row: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return any(new[name] is not value for name, value in row.items())


def _object_array(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    brought = np.empty(X.shape, object)
    for at in np.ndindex(X.shape):
        brought[at] = gathered(X[at])
    return brought if any(new is not own for new, own in zip(brought.flat, X.flat, strict=True)) else X
