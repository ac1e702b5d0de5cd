"""Finds the experiences among the variables of a file, whatever form they have, and reads them by rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import MatFileError, StructureError, ValueNotRepresentableError
from .mat73read import Opaque, Stored
from .matlayout import SINGLE, Channel, FileRows, Layout, Piece, entries, rows_count
from .matvalues import RECIPE, Contents

_ONE = Channel((), (1,), np.dtype(np.float64))
_DEEPEST = 3


def files_of(path: Path) -> list[Path]:
    """The file, or the files ``loggedData*.mat`` of a folder in the order of their numbers."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("loggedData*.mat"), key=lambda file: int("0" + "".join(re.findall(r"\d", file.stem))))
    if not found:
        raise MatFileError(f"{path.name}: a folder without files loggedData*.mat; name a file")
    return found


class Part(NamedTuple):
    """One struct: a single experience, or a batch of them; its arrays checked."""

    columns: list[FileRows]
    done: FileRows
    rows: int


class Found:
    """Experiences that follow one another: a batch, a sequence, or an array of single ones.

    Parameters
    ----------
    parts : list of Part
    layout : Layout
    source : FileRows, optional
        Sources of all of them.
    extra : list of FileRows
    """

    def __init__(self, parts: list[Part], layout: Layout) -> None:
        self._parts, self._layout = parts, layout
        self.source: FileRows | None = None
        self.extra: list[FileRows] = []
        self.count = sum(part.rows for part in parts)

    def pieces(self, nbytes: int) -> Iterator[Piece]:
        """The rows, each piece of at most about `nbytes`."""
        rows, first, waiting, held = max(1, nbytes // self._layout.row_bytes), 0, [], 0
        for part in self._parts:
            for begin in range(0, part.rows, rows):
                end = min(begin + rows, part.rows)
                waiting.append((part, begin, end))
                held += end - begin
                if held >= rows:
                    yield self._piece(waiting, first, held)
                    first, waiting, held = first + held, [], 0
        if waiting:
            yield self._piece(waiting, first, held)

    def _piece(self, cuts: Sequence[tuple[Part, int, int]], first: int, count: int) -> Piece:
        columns = [[part.columns[k].take(a, b) for part, a, b in cuts] for k in range(len(cuts[0][0].columns))]
        done = np.concatenate([part.done.take(a, b) for part, a, b in cuts])
        if not np.isin(done, (0, 1, 2)).all():
            bad = done[~np.isin(done, (0, 1, 2))][0]
            raise ValueNotRepresentableError(f"IsDone: {bad} came; expected 0, 1 or 2")
        arrays = [column[0] if len(column) == 1 else np.concatenate(column) for column in columns]
        arrays += [column.take(first, first + count) for column in self.extra]
        if self.source is None:
            source = np.zeros(count, np.int64)
        else:
            source = self.source.take(first, first + count).astype(np.int64)
        return Piece(arrays, done.astype(np.uint8), source)


def experiences_in(contents: Contents, layout: Layout, file: str, variable: str | None) -> list[Found]:
    """All experiences among the variables, checked against the layout.

    Raises
    ------
    MatFileError
        When there are none; with the recipe where there are objects of MATLAB instead.
    StructureError, ShapeError, DataTypeError
        When they do not fit.
    """
    values = contents.values
    found = [
        Found([_part(one, layout, place) for one, place in group], layout)
        for name, value in values.items()
        for group in _groups(value, name, 0)
    ]
    if found:
        _add_the_rest(found, values, layout)
        return found
    if contents.objects:
        names = ", ".join(contents.objects)
        raise MatFileError(f"{file}: {names} is an object of a MATLAB class (a buffer or an agent): {RECIPE}")
    raise MatFileError(
        f"{file}: no experiences in {variable or ', '.join(values) or 'an empty file'}; they are structs with the "
        f"fields {', '.join(SINGLE)}"
    )


def _groups(value: Any, place: str, depth: int) -> Iterator[list[tuple[Any, str]]]:
    """Structs with an experience's fields; those of one array, or of one cell, belong together."""
    if isinstance(value, (Stored, Opaque)) or not isinstance(value, np.ndarray) or depth > _DEEPEST:
        return
    names = value.dtype.names or ()
    if "Observation" in names and "Action" in names:
        missing = [name for name in SINGLE if name not in names]
        if missing:
            raise StructureError(f"{place}: no field {', '.join(missing)}; the fields are {', '.join(names)}")
        several = value.size != 1
        yield [(one, f"{place}({k + 1})" if several else place) for k, one in enumerate(value.ravel(order="F"))]
    elif names:
        for one in value.ravel(order="F"):
            for name in names:
                yield from _groups(one[name], f"{place}.{name}", depth + 1)
    elif value.dtype == object:
        inside = [list(_groups(v, f"{place}{{{k + 1}}}", depth + 1)) for k, v in enumerate(value.ravel(order="F"))]
        if inside and all(len(groups) == 1 and len(groups[0]) == 1 for groups in inside):
            yield [groups[0][0] for groups in inside]
        else:
            for groups in inside:
                yield from groups


def _part(one: Any, layout: Layout, place: str) -> Part:
    """One struct, its arrays checked: the Reward says how many experiences it holds."""
    reward = one["Reward"]
    if not hasattr(reward, "shape"):
        raise StructureError(f"{place}.Reward: expected numbers, got {type(reward).__name__}")
    count = rows_count(reward, layout.reward, f"{place}.Reward")
    columns = []
    for field, channels in (
        ("Observation", layout.observation), ("Action", layout.action), ("Reward", (layout.reward,)),
        ("NextObservation", layout.observation),
    ):  # fmt: skip
        arrays = [reward] if field == "Reward" else entries(one[field], len(channels), f"{place}.{field}")
        for k, (array, channel) in enumerate(zip(arrays, channels, strict=True)):
            where = f"{place}.{field}" + ("" if field == "Reward" else f"{{{k + 1}}}")
            columns.append(FileRows(array, channel, count, where))
    return Part(columns, FileRows(one["IsDone"], _ONE, count, f"{place}.IsDone"), count)


def _add_the_rest(found: list[Found], values: dict[str, Any], layout: Layout) -> None:
    """Sources and the user's own fields, which stand beside an experience of ours."""
    source, extra = values.get("dataSourceID"), values.get("extra")
    one = found[0]
    if len(found) == 1 and source is not None:
        one.source = FileRows(source, _ONE, one.count, "dataSourceID")
    if not layout.extra:
        return
    given = extra.flat[0] if isinstance(extra, np.ndarray) and extra.size == 1 else None
    names = getattr(given, "dtype", np.dtype(float)).names or ()
    if given is None or len(found) != 1 or any(name not in names for name in layout.extra):
        raise StructureError(f"extra: expected one struct with the fields {', '.join(layout.extra)} in the file")
    for name, channel in layout.extra.items():
        one.extra.append(FileRows(given[name], channel, one.count, f"extra.{name}"))
