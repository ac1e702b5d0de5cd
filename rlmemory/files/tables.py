"""Simulation logs and historical tables: columns in memory, or a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accept import accept_flag, accept_source, as_numeric
from ..batch import Channels, Experience
from ..errors import DataTypeError, FileFormatError, MissingKeyError, ShapeError, SpecError, StructureError
from .assembled import Bools, check_rows, experience_of, mapped, named, numeric, rows_of, shifted, take

_TRUTH = {"true": 1.0, "false": 0.0}


def read_simulation_log(
    observation: Channels,
    action: Channels,
    reward: ArrayLike,
    *,
    terminated: ArrayLike = False,
    time_axis: int = 0,
    source: int = 0,
    extra: Mapping[str, ArrayLike] | None = None,
) -> Experience:
    """Transitions of one simulation, whose observations are logged once more than its actions.

    Parameters
    ----------
    observation : array_like, tuple or dict of array_like
        T + 1 entries: before each step, and after the last.
    action : array_like, tuple or dict of array_like
        T entries.
    reward : array_like
        T entries.
    terminated : bool or bool array_like (T,), keyword-only, default False
        Whether the last step reached an end. Otherwise the log was cut there, and the last row is truncated.
    time_axis : int, keyword-only, default 0
        Which axis counts the entries, in every array. MATLAB's logs have it last: -1.
    source : int, keyword-only, default 0
        Which simulation it was, where several go into one memory at the same time.
    extra : dict of array_like, optional, keyword-only
        The user's own fields, T entries each.

    Returns
    -------
    Experience
        T rows: row k has the observations k and k + 1. Shapes stay as they are, but for the axis of time, which
        becomes the first.

    Raises
    ------
    ShapeError
        When there is not one observation more than actions, or a flag in the middle says that the log holds more than
        one episode.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> log = rlm.files.read_simulation_log([0.0, 0.1, 0.3], [1, 2], [0.5, 0.25], terminated=True)
    >>> log.next_observation, log.terminated
    (array([0.1, 0.3]), array([False,  True]))
    """
    observations = _time_first("observation", observation, time_axis)
    actions = _time_first("action", action, time_axis)
    rewards = _time_first("reward", reward, time_axis)
    steps = rows_of("action", actions)
    found = rows_of("observation", observations)
    if found != steps + 1:
        hint = "; leave out the last action, which led nowhere" if found == steps else ""
        raise ShapeError(
            f"observation: {steps} actions need {steps + 1} entries, one before each step and one after the last; "
            f"got {found}{hint}"
        )
    check_rows("reward", rewards, steps, f"there are {steps} actions")
    ended = np.zeros(steps, np.bool_)
    if np.ndim(terminated) == 0:
        ended[-1:] = accept_flag("terminated", terminated)
    else:
        ended = accept_flag("terminated", terminated, (steps,))
    if ended[:-1].any():
        raise ShapeError(
            f"terminated: step {int(np.argmax(ended))} of {steps} ends an episode; a log with one observation more "
            "than actions holds one episode: cut it there, and read each by itself"
        )
    cut = np.zeros(steps, np.bool_)
    cut[-1:] = ~ended[-1:]
    return experience_of(
        mapped(lambda leaf: leaf[:-1], observations),
        actions,
        rewards,
        mapped(lambda leaf: leaf[1:], observations),
        ended,
        cut,
        source=source,
        extra={name: _time_first(name, value, time_axis) for name, value in (extra or {}).items()},
    )


def _time_first(name: str, value: Any, axis: int) -> Channels:
    arrays = numeric(name, value)
    for label, array in named(name, arrays):
        if not -array.ndim <= axis < array.ndim:
            raise ShapeError(f"{label}: shape {array.shape} has no axis {axis} (time_axis)")
    return mapped(lambda leaf: np.moveaxis(leaf, axis, 0), arrays)


def read_table(
    table: Any,
    *,
    observation: Any,
    action: Any,
    reward: Any,
    next_observation: Any = None,
    terminated: str | None = None,
    truncated: str | None = None,
    is_done: str | None = None,
    episode: str | None = None,
    source: str | int = 0,
    extra: Mapping[str, Any] | None = None,
    delimiter: str = ",",
) -> Experience:
    """Experiences of a table with one row for each step.

    Parameters
    ----------
    table : path-like, structured array, or mapping of columns
        A path is that of a CSV file in UTF-8 whose first line names the columns; its numbers are read as float64, true
        and false as 1 and 0. A mapping is anything with names and columns: a dict, a DataFrame, an open .npz file.
    observation, action, reward, next_observation : str, list of str, tuple or dict of them
        Which columns: one name is the column as it is; a list of names puts columns side by side, (N, k); a tuple or a
        dict has several channels. Without `next_observation`, that of a row is the observation of the next row.
    terminated, truncated : str, optional
        Columns of flags.
    is_done : str, optional
        A column with codes in place of them: 0 running, 1 terminated, 2 truncated.
    episode : str, optional
        A column whose value changes where another episode begins.
    source : str or int, default 0
        A column of source numbers, or the number of all.
    extra : dict, optional
        The user's own fields: names, and which columns.
    delimiter : str, default ","
        Between the columns of a CSV file.

    Returns
    -------
    Experience
        The last row of an episode that is not terminated is truncated. Without `next_observation` it has none: it is
        left out, and the row before it is the truncated one. Rows of several sources come source after source.

    Raises
    ------
    FileFormatError
        For a CSV file that is damaged or has something else than numbers in a column that is used.
    MissingKeyError
        For a column that is not there.
    SpecError, ShapeError, DataTypeError, ValueNotRepresentableError
        For columns that do not fit together or hold no numbers.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> table = {"x": [0.0, 0.5, 1.0], "v": [1.0, 1.0, 0.0], "u": [1, 0, 0], "r": [0, 0, 1], "end": [0, 0, 1]}
    >>> rows = rlm.files.read_table(table, observation=["x", "v"], action="u", reward="r", terminated="end")
    >>> rows.observation.shape, rows.next_observation[0].tolist()
    ((3, 2), [0.5, 1.0])
    """
    wanted = [observation, action, reward, next_observation, terminated, truncated, is_done, episode, extra]
    wanted += [source] if isinstance(source, str) else []
    columns = _columns(table, set(_names(wanted)), delimiter)
    picked = {
        "observation": _pick(columns, "observation", observation),
        "action": _pick(columns, "action", action),
        "reward": _pick(columns, "reward", reward),
        "extra": {name: _pick(columns, name, which) for name, which in (extra or {}).items()},
    }
    rows = rows_of("action", picked["action"])
    for name, column in picked.items():
        if name != "extra" or column:
            check_rows(name, column, rows, f"there are {rows} actions")
    ended, cut = _flags(columns, terminated, truncated, is_done, rows)
    number = np.broadcast_to(accept_source(columns[source] if isinstance(source, str) else source, (rows,)), (rows,))
    order = np.argsort(number, kind="stable")
    picked = {name: take(column, order) for name, column in picked.items()}
    number, ended, cut = number[order], ended[order], cut[order]
    breaks = _changes("source", number, rows)
    if episode is not None:
        breaks |= _changes("episode", _column("episode", columns[episode], rows)[order], rows)
    if next_observation is not None:
        kept, following = np.arange(rows), _pick(columns, "next_observation", next_observation)
        check_rows("next_observation", following, rows, f"there are {rows} actions")
        following = take(following, order)
        cut = cut | (breaks & ~ended)
    else:
        kept, following, cut = shifted(picked["observation"], ended, cut, breaks)
    parts = {name: take(column, kept) for name, column in picked.items()}
    return experience_of(
        **parts, next_observation=following, terminated=ended[kept], truncated=cut, source=number[kept]
    )


# ---- columns of a table ---------------------------------------------------------------------------------------------


def _names(which: Any) -> Iterator[str]:
    if isinstance(which, str):
        yield which
    elif which is not None:
        if not isinstance(which, (list, tuple, Mapping)):
            raise SpecError(f"expected the name of a column, or a list, tuple or dict of names, got {which!r}")
        for part in which.values() if isinstance(which, Mapping) else which:
            yield from _names(part)


def _columns(table: Any, names: set[str], delimiter: str) -> dict[str, NDArray[Any]]:
    """The columns that are used, as arrays."""
    if isinstance(table, (str, os.PathLike)):
        return _from_csv(Path(table), names, delimiter)
    if isinstance(table, np.ndarray) and table.dtype.names:
        there = list(table.dtype.names)
    elif hasattr(table, "keys") and hasattr(table, "__getitem__"):
        there = list(table.keys())
    else:
        raise StructureError(
            f"table: expected a path, a structured array or a mapping of columns, got {type(table).__name__}"
        )
    _check_there(names, there)
    columns = {name: as_numeric(name, np.asarray(table[name])) for name in names}
    for name, column in columns.items():
        if column.ndim == 0:
            raise ShapeError(f"{name}: expected a column, got the scalar {column!r}")
    return columns


def _check_there(names: set[str], there: list[str]) -> None:
    missing = sorted(names - set(there))
    if missing:
        raise MissingKeyError(f"table: no column {', '.join(map(repr, missing))}; there are {there[:50]}")


def _from_csv(path: Path, names: set[str], delimiter: str) -> dict[str, NDArray[Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = [name.strip() for name in next(csv.reader(file, delimiter=delimiter), [])]
            _check_there(names, header)
            order = sorted(names, key=header.index)
            twice = [name for name in order if header.count(name) > 1]
            if twice:
                raise FileFormatError(f"{path}: the column {twice[0]!r} is there {header.count(twice[0])} times")
            places = [header.index(name) for name in order]
            values = np.loadtxt(
                file, delimiter=delimiter, usecols=places, ndmin=2, quotechar='"', comments=None, converters=_number
            )
    except FileFormatError:
        raise
    except (ValueError, IndexError, csv.Error) as error:  # a UnicodeDecodeError is a ValueError
        raise FileFormatError(f"{path}: {error}") from error
    return dict(zip(order, np.ascontiguousarray(values.T), strict=True))


def _number(text: str) -> float:
    found = _TRUTH.get(text.strip().lower())
    return float(text) if found is None else found


def _pick(columns: dict[str, NDArray[Any]], name: str, which: Any) -> Channels:
    if isinstance(which, str):
        return columns[which]
    if isinstance(which, (tuple, Mapping)):
        return mapped(lambda part: _pick(columns, name, part), which)
    if not which or not all(isinstance(column, str) for column in which):
        raise SpecError(f"{name}: expected names of columns, got {which!r}")
    parts = [columns[column] for column in which]
    if any(part.ndim != 1 or len(part) != len(parts[0]) for part in parts):
        raise ShapeError(f"{name}: columns side by side need one number a row, and as many rows: {which}")
    if len({part.dtype.kind in "biu" for part in parts}) > 1:
        _check_whole(name, parts)
    return np.stack(parts, axis=1)


def _check_whole(name: str, parts: list[NDArray[Any]]) -> None:
    """Integers beside floats become floats: none may change."""
    for part in parts:
        if part.dtype.kind in "iu" and part.size and (int(part.max()) > 2**53 or int(part.min()) < -(2**53)):
            raise DataTypeError(f"{name}: integers beyond 2**53 would be rounded beside floats")


def _flags(
    columns: dict[str, NDArray[Any]], terminated: str | None, truncated: str | None, is_done: str | None, rows: int
) -> tuple[Bools, Bools]:
    if is_done is not None:
        if terminated is not None or truncated is not None:
            raise SpecError("is_done: has the codes of both flags; give it, or terminated and truncated")
        code = columns[is_done]
        if code.shape != (rows,) or not np.isin(code, (0, 1, 2)).all():
            raise ShapeError(f"is_done: expected {rows} codes of 0, 1 or 2 in the column {is_done!r}")
        return code == 1, code == 2
    none = np.zeros(rows, np.bool_)
    ended = none if terminated is None else accept_flag(terminated, columns[terminated], (rows,))
    cut = none if truncated is None else accept_flag(truncated, columns[truncated], (rows,))
    return ended, cut & ~ended


def _column(name: str, column: NDArray[Any], rows: int) -> NDArray[Any]:
    if column.shape != (rows,):
        raise ShapeError(f"{name}: expected one number for each of {rows} rows, got shape {column.shape}")
    return column


def _changes(name: str, column: NDArray[Any], rows: int) -> Bools:
    """True where the row after has another value, and in the last row."""
    last = np.ones(rows, np.bool_)
    last[:-1] = _column(name, column, rows)[1:] != column[:-1]
    return last
