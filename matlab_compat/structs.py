"""Structs and struct arrays: ``experience[i].Observation = [...]`` grows an array, as in MATLAB."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .cells import Cell
from .display import properties, size_text
from .records import Records, empty_value

Kind = TypeVar("Kind", bound="struct")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


class struct:
    """A struct or a struct array, as MATLAB's ``struct``.

    Parameters
    ----------
    *pairs
        Field names and values in turn: ``struct("Reward", 1.0, "IsDone", 0)``.
    **fields
        The same as keywords: ``struct(Reward=1.0, IsDone=0)``.

    Returns
    -------
    struct
        One element with these fields. ``s.X`` reads and ``s.X = v`` assigns a field; arrays and cells are copied
        on assignment. ``s[i]`` is element i, from 0; ``s[i].X = v`` with i past the end makes the array longer,
        the gap filled with ``[]``. Negative indices count from the end and never make it longer. A slice, or an
        array of indices, selects elements. Elements and slices are views: changing them changes `s`.

    Raises
    ------
    AttributeError
        For a field that does not exist, or one that is read from an array of several elements.
    IndexError
        When an element past the end is read.

    Notes
    -----
    MATLAB counterpart: ``struct``. Indices start at 0. A cell as a value is one value; MATLAB would make one
    element of each of its entries. ``x = s[0]`` is a view where MATLAB copies: ``copy.deepcopy(s[0])`` copies.

    Examples
    --------
    >>> experience = struct()
    >>> for i in range(3):
    ...     experience[i].Reward = 0.5 * i
    >>> experience
    1×3 struct array with fields:
        Reward
    >>> experience[2]
    struct with fields:
        Reward: 1
    """

    __slots__ = ("_at", "_column", "_records")

    _records: Records
    _at: Sequence[int] | None  # None: the whole of the records, however many there will be
    _column: bool

    def __init__(self, *pairs: Any, **fields: Any) -> None:
        if len(pairs) % 2:
            raise TypeError(
                f"struct takes field names and values in turn, and {pairs[-1]!r} has no value; "
                'write struct("Reward", 1.0) or struct(Reward=1.0)'
            )
        self._records, self._at, self._column = Records((), [{}]), None, False
        for name, value in [*zip(pairs[::2], pairs[1::2], strict=True), *fields.items()]:
            setattr(self, _checked_name(name), value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        records = self._records
        row = self._single("read", name)
        if row >= len(records):
            raise IndexError(_past_the_end(row, len(records)))
        if name not in records.fields:
            raise AttributeError(_no_field(name, list(records.fields)))
        return records.get(row, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self._records.set(self._single("assign", name), _checked_name(name), own(value))

    def _single(self, verb: str, name: str) -> int:
        """The row of the one element there is."""
        at, count = self._at, len(self)
        if count == 1:
            return 0 if at is None else at[0]
        raise AttributeError(
            f"cannot {verb} .{name} of a struct array of {count} elements at once: name one element, as in s[0], "
            "or loop: [x.Reward for x in s]"
        )

    def __len__(self) -> int:
        return len(self._records if self._at is None else self._at)

    def __iter__(self) -> Iterator[struct]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, key: Any) -> struct:
        if isinstance(key, (int, np.integer)):
            return view(struct, self._records, [self._row(operator.index(key))], self._column)
        if isinstance(key, str):
            raise TypeError(f"an element has a number: fields are read as s.{key}, or getattr(s, {key!r})")
        rows = np.arange(len(self))[key]
        if rows.ndim != 1:
            raise TypeError(f"an element has one index, counted from 0; got {key!r}")
        at = range(len(self)) if self._at is None else self._at
        return view(struct, self._records, [at[row] for row in rows.tolist()], self._column)

    def _row(self, index: int) -> int:
        count = len(self)
        if index < -count or (index >= count and self._at is not None):
            raise IndexError(_past_the_end(index, count))
        index = index + count if index < 0 else index
        return index if self._at is None else self._at[index]

    def __setitem__(self, index: int, value: struct | Mapping[str, Any]) -> None:
        given = rows_of(value)
        if len(given) != 1:
            raise ValueError(f"one element takes a struct of one element, got {len(given)}")
        row = dict(given[0])  # read before anything is assigned: it may be an element of this array
        element = self[index]
        for name in [*self._records.fields, *row]:
            setattr(element, name, row.get(name, empty_value()))

    def __array__(self, *_arguments: Any, **_keywords: Any) -> Any:
        # An element is a struct again, so NumPy would look into it without end.
        raise TypeError("a struct is not an array: take one of its fields, as in s.Reward")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._records.fields]

    def __repr__(self) -> str:
        names, count = list(self._records.fields), len(self)
        if count != 1:
            size = self._size()
            kind = "struct array" if count else "empty struct array"
            return "\n    ".join([f"{size} {kind} with {'fields:' if names else 'no fields.'}", *names])
        row = self._single("show", "")
        if row >= len(self._records):
            return f"element {row}, not assigned yet, of a struct array of {len(self._records)}"
        if not names:
            return "struct with no fields."
        return properties("struct with fields:", self._records.row(row).items())

    def _size(self) -> str:
        return size_text((len(self), 1) if self._column else (1, len(self)))

    def _inline(self) -> str:
        return f"[{self._size()} struct]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (list(self._records.fields), [dict(row) for row in rows_of(self)], self._column)


def rows_of(value: struct | Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The elements of a struct array as mappings from field to value, each made when it is asked for."""
    if not isinstance(value, struct):
        return [value]
    if len(value) != 1:
        return _Rows(value)
    row = 0 if value._at is None else value._at[0]
    if row >= len(value._records):
        raise IndexError(_past_the_end(row, len(value._records)))
    return [value._records.row(row)]


class _Rows(Sequence[Mapping[str, Any]]):
    """A struct array as a sequence of mappings."""

    def __init__(self, array: struct) -> None:
        self._records = array._records
        self._at = range(len(array._records)) if array._at is None else array._at

    def __len__(self) -> int:
        return len(self._at)

    def __getitem__(self, index: Any) -> Any:
        row = self._at[index]
        if row >= len(self._records):
            raise IndexError(_past_the_end(row, len(self._records)))
        return self._records.row(row)


def own(value: Any) -> Any:
    """A value that shares nothing with the caller's: arrays copied, cells made anew from copies."""
    if isinstance(value, np.ndarray):
        return Cell(own(entry) for entry in value.ravel(order="F")) if value.dtype == object else value.copy()
    if isinstance(value, (list, tuple)):
        return Cell(own(entry) for entry in value)
    if isinstance(value, struct):
        return from_rows([{name: own(entry) for name, entry in row.items()} for row in rows_of(value)], value._column)
    return value


def from_records(records: Records, column: bool = True) -> struct:
    """A struct array, N-by-1 unless `column` is False, around records."""
    return view(struct, records, None, column)


def from_rows(rows: list[dict[str, Any]], column: bool = True) -> struct:
    """A struct array of these rows, kept as they are; their fields in order of appearance."""
    return from_records(Records((name for row in rows for name in row), rows), column)


def view(kind: type[Kind], records: Records, at: Sequence[int] | None, column: bool) -> Kind:
    """A struct array on some rows of records, or on all of them and those still to come (`at` None)."""
    result = kind.__new__(kind)
    _put(result, "_records", records)
    _put(result, "_at", at)
    _put(result, "_column", column)
    return result


_put = object.__setattr__


def _rebuild(fields: list[str], rows: list[dict[str, Any]], column: bool) -> struct:
    return from_records(Records(fields, rows), column)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise AttributeError(f"{name!r} cannot be the name of a field: a letter, then letters, digits and _")
    return name


def _past_the_end(index: int, count: int) -> str:
    if count == 0:
        return f"element {index} does not exist: the struct array is empty"
    return (
        f"element {index} does not exist: the struct array has {count} (indices 0 to {count - 1}); assign to it first"
    )


def _no_field(name: str, fields: list[str]) -> str:
    near = difflib.get_close_matches(name, fields, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no field {name!r}; the fields are {', '.join(fields) or 'none yet'}{hint}"
