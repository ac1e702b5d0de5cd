"""Questions to structs and arrays, and MATLAB's ``[a b]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .cells import Cell
from .specs import RLDataSpec
from .structs import from_rows, own, rows_of, struct


def fieldnames(s: struct) -> Cell:
    """Names of the fields of a struct array.

    Parameters
    ----------
    s : struct

    Returns
    -------
    Cell of str
        In the order in which they are shown.

    Raises
    ------
    TypeError
        When `s` is not a struct.

    Notes
    -----
    MATLAB counterpart: ``fieldnames``, which gives a column.

    Examples
    --------
    >>> fieldnames(struct(Reward=1.0, IsDone=0))
    {"Reward"  "IsDone"}
    """
    if not isinstance(s, struct):
        raise TypeError(f"fieldnames expects a struct, got {type(s).__name__}")
    return Cell(s._records.fields)


def isfield(s: Any, name: str | Sequence[str]) -> Any:
    """Whether a struct has a field of that name.

    Parameters
    ----------
    s : struct
        Anything else has no fields.
    name : str or cell of str

    Returns
    -------
    bool, or bool array (n,) for a cell of n names

    Notes
    -----
    MATLAB counterpart: ``isfield``.

    Examples
    --------
    >>> isfield(struct(Reward=1.0), "Reward")
    True
    """
    fields = s._records.fields if isinstance(s, struct) else {}
    return name in fields if isinstance(name, str) else np.array([entry in fields for entry in name], np.bool_)


def numel(x: Any) -> int:
    """Number of elements.

    Parameters
    ----------
    x : struct, array, dlarray, Cell, spec, spec array or number

    Returns
    -------
    int

    Notes
    -----
    MATLAB counterpart: ``numel``.

    Examples
    --------
    >>> numel(np.zeros((2, 1, 10)))
    20
    """
    if isinstance(x, str):
        return len(x)
    size = getattr(x, "size", None) if not isinstance(x, struct) else None
    if isinstance(size, (int, np.integer)):
        return int(size)
    return len(x) if hasattr(x, "__len__") else 1


def hcat(*parts: Any) -> Any:
    """Join specs into a spec array, or struct arrays into one, as MATLAB's ``[a b]``.

    Parameters
    ----------
    *parts
        All specs or spec arrays (lists of specs), or all structs.

    Returns
    -------
    list of specs, or struct
        New containers; the specs are the ones given, the structs' values are copies.

    Raises
    ------
    TypeError
        When the parts are neither all specs nor all structs.

    Notes
    -----
    MATLAB counterpart: ``[a b]`` and ``horzcat``, for these two kinds only; arrays are joined by ``np.hstack``.

    Examples
    --------
    >>> [spec.Dimension for spec in hcat(rlNumericSpec([2, 1]), rlFiniteSetSpec([1, 2, 3]))]
    [(2, 1), (1, 1)]
    """
    if parts and all(isinstance(part, struct) for part in parts):
        rows = [dict(row) for part in parts for row in rows_of(part)]
        return own(from_rows(rows, column=False))
    specs = [spec for part in parts if isinstance(part, (RLDataSpec, list, tuple)) for spec in part]
    counted = all(isinstance(part, (RLDataSpec, list, tuple)) for part in parts)
    if counted and all(isinstance(spec, RLDataSpec) for spec in specs):
        return specs
    kinds = ", ".join(type(part).__name__ for part in parts)
    raise TypeError(f"hcat joins specs with specs or structs with structs; got {kinds} (arrays: np.hstack)")
