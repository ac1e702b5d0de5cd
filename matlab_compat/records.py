"""What stands behind a struct array: rows of fields, held or made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .cells import Cell


def empty_value() -> NDArray[np.float64]:
    """MATLAB's ``[]``: what a field holds before anything was assigned to it."""
    return np.zeros((0, 0))


class Records:
    """Rows with the same fields. A struct array, its elements and its slices share one of these.

    Parameters
    ----------
    fields : iterable of str
        Names in the order in which they are shown.
    rows : list of dict
        One dict an element; a field that is missing in a row reads as ``[]``.
    """

    __slots__ = ("__weakref__", "fields", "rows")

    def __init__(self, fields: Any = (), rows: list[dict[str, Any]] | None = None) -> None:
        self.fields: dict[str, None] = dict.fromkeys(fields)
        self.rows: list[dict[str, Any]] = [] if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, row: int, name: str) -> Any:
        """One field of one row; a field never assigned is filled in, so that it can be changed in place."""
        record = self.rows[row]
        if name not in record:
            record[name] = empty_value()
        return record[name]

    def set(self, row: int, name: str, value: Any) -> None:
        """Assign one field of one row, adding rows up to it."""
        while len(self.rows) <= row:
            self.rows.append({})
        self.fields.setdefault(name)
        self.rows[row][name] = value

    def row(self, row: int) -> Mapping[str, Any]:
        """All fields of one row."""
        record = self.rows[row]
        if len(record) == len(self.fields):
            return record
        return {name: record.get(name, empty_value()) for name in self.fields}


class MadeRecord(Records):
    """One row, each field of which is made when it is first read, and kept.

    Parameters
    ----------
    fields : iterable of str
    make : callable
        Gives the value of a field.
    """

    __slots__ = ("_make", "_makes")

    def __init__(self, fields: tuple[str, ...], make: Callable[[str], Any]) -> None:
        self.fields, self.rows = dict.fromkeys(fields), [{}]
        self._makes, self._make = fields, make

    def get(self, row: int, name: str) -> Any:
        """One field, made now unless it was made or assigned before."""
        record = self.rows[row]
        if name in record:
            return record[name]
        if row == 0 and name in self._makes:
            record[name] = self._make(name)
        return super().get(row, name)

    def row(self, row: int) -> Mapping[str, Any]:
        """All fields."""
        return {name: self.get(row, name) for name in self.fields}


class Column(NamedTuple):
    """One field of many experiences: gives the value of a row.

    Attributes
    ----------
    arrays : sequence of arrays
        What the values are cut from; one for Reward and IsDone, one a channel for the others.
    cut : callable
        Takes `arrays` and a row, and gives the value.
    """

    arrays: Sequence[Any]
    cut: Callable[[Sequence[Any], int], Any]

    def __call__(self, row: int, /) -> Any:
        """The value in that row."""
        return self.cut(self.arrays, row)


class LazyRecords(Records):
    """Rows cut from columns when they are asked for, so that a million of them cost nothing to return.

    Parameters
    ----------
    fields : iterable of str
    count : int
        Number of rows.
    load : callable
        Gives the columns; called once, when the first value is read.
    """

    __slots__ = ("_changed", "_columns", "_count", "_load")

    def __init__(self, fields: Any, count: int, load: Callable[[], Mapping[str, Column]]) -> None:
        super().__init__(fields)
        self._count = count
        self._load: Callable[[], Mapping[str, Column]] | None = load
        self._columns: Mapping[str, Column] = {}
        self._changed: dict[tuple[int, str], Any] = {}

    def __len__(self) -> int:
        return self._count + len(self.rows)

    @property
    def loaded(self) -> bool:
        """Whether the columns are here, so that later changes of their origin cannot be seen."""
        return self._load is None

    def load(self) -> Mapping[str, Column]:
        """Fetch the columns, if that was not done before."""
        load = self._load
        if load is not None:
            self._columns = load()
            self._load = None  # and with it goes the hold on the memory
        return self._columns

    def changed(self, change: Callable[[Any], Any]) -> LazyRecords:
        """The same rows with `change` made to each array, and to what was assigned; these ones if it changes nothing.

        It must give an array back itself where there is nothing to change.
        """
        columns = {name: column._replace(arrays=[*map(change, column.arrays)]) for name, column in self.load().items()}
        result = LazyRecords(self.fields, self._count, lambda: columns)
        result._changed = {key: change(value) for key, value in self._changed.items()}
        result.rows = [{name: change(value) for name, value in row.items()} for row in self.rows]
        before, after = self._values(), result._values()
        return self if all(a is b for a, b in zip(before, after, strict=True)) else result

    def _values(self) -> list[Any]:
        """Every array, and every value that was assigned."""
        arrays = [array for column in self.load().values() for array in column.arrays]
        return [*arrays, *self._changed.values(), *(value for row in self.rows for value in row.values())]

    def get(self, row: int, name: str) -> Any:
        """One field of one row, made now unless it was assigned."""
        if row >= self._count:
            return super().get(row - self._count, name)
        if (row, name) in self._changed:
            return self._changed[row, name]
        columns = self.load()
        value = columns[name](row) if name in columns else empty_value()
        if isinstance(value, Cell):
            # The cell is made anew at each reading; one that the user changes must be the one read next time.
            value._keep = partial(self._changed.__setitem__, (row, name))
        return value

    def set(self, row: int, name: str, value: Any) -> None:
        """Assign one field of one row."""
        if row >= self._count:
            super().set(row - self._count, name, value)
        else:
            self.fields.setdefault(name)
            self._changed[row, name] = value

    def row(self, row: int) -> Mapping[str, Any]:
        """All fields of one row."""
        return {name: self.get(row, name) for name in self.fields}
