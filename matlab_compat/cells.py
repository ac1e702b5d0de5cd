"""`Cell`: a list that shows itself as MATLAB shows a cell array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .display import inline


class Cell(list[Any]):
    """A row of values of any kind, as MATLAB's ``{a, b}``.

    Parameters
    ----------
    entries : iterable, default empty
        The values, kept as they are.

    Returns
    -------
    Cell
        A list: ``c[0]`` is the first entry, which MATLAB writes ``c{1}``.

    Notes
    -----
    MATLAB counterpart: cell arrays, of which this is the 1-by-n kind. Wherever a cell is expected, a plain list,
    a tuple or a NumPy array of dtype object does as well.

    Examples
    --------
    >>> Cell([np.zeros((2, 1)), 3])
    {[2×1 double]  [3]}
    """

    #: Called before the first change of a cell that was made on demand, so that it is the one read next time.
    _keep: Callable[[Cell], None] | None = None

    def __repr__(self) -> str:
        return inline(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Cell, (list(self),)


def _keeping(name: str) -> Callable[..., Any]:
    change = getattr(list, name)

    def method(self: Cell, *args: Any, **named: Any) -> Any:
        if self._keep is not None:
            self._keep(self)
            self._keep = None
        return change(self, *args, **named)

    method.__name__, method.__doc__ = name, change.__doc__
    return method


# A cell from a struct array that makes its elements on demand must be kept once it is changed.
for _name in (
    "__setitem__",
    "__delitem__",
    "__iadd__",
    "__imul__",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
):
    setattr(Cell, _name, _keeping(_name))
for _name in ("remove", "reverse", "sort"):
    setattr(Cell, _name, _keeping(_name))
