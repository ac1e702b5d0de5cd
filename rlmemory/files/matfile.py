"""Experiences into MATLAB's .mat files and out of them: versions 6 and 7 by scipy, 7.3 by h5py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..accept import one_source
from ..batch import Experience
from ..errors import MatFileError
from ..memory import ReplayMemory
from ..specs import NumericSpec
from . import mat73
from .matfound import Found, experiences_in, files_of
from .matlayout import BATCHED, SINGLE, Layout, Origin, file_order, memory_layout, stored
from .matvalues import check_size, checked_name, checked_version, opened, replacing, write_mat_values

FORMS = ("batch", "sequence", "struct", "cell")
_PIECE = 8 << 20


def write_mat(
    path: str | os.PathLike[str],
    data: ReplayMemory | Experience,
    *,
    form: str = "batch",
    version: str = "7",
    variable: str = "experience",
    dimensions: Any = None,
) -> None:
    """Write experiences to a .mat file, whole or not at all.

    Parameters
    ----------
    path : path-like
    data : ReplayMemory or Experience
        Arrays on a GPU are copied to the host.
    form : {"batch", "sequence", "struct", "cell"}, default "batch"
        "batch" and "sequence" are one struct, its channels D x N or D x 1 x N, Reward and IsDone 1 x N or 1 x 1 x N;
        "struct" is an N x 1 struct array and "cell" an N x 1 cell of structs, single experiences. These two take
        seconds for 10,000 experiences, and minutes in version 7.3.
    version : {"7", "6", "7.3"}, default "7"
        "6" is not compressed; "7.3" has no limit of size, and needs h5py (the extra ``hdf5``).
    variable : str, default "experience"
        Name of the variable.
    dimensions : (list of sizes, list of sizes), optional
        MATLAB's Dimension of each observation and of each action channel; default: the shapes, filled up to two sizes
        with ones, so that ``(2,)`` is 2-by-1.

    Raises
    ------
    MatFileError
        For a name that MATLAB does not take, an unknown form or version, or 2 GiB and more in version 6 or 7.
    DataTypeError
        For a dtype that MATLAB does not have.
    NotAvailableError
        For version 7.3 without h5py.

    See Also
    --------
    append_mat, read_mat : the way back.

    Notes
    -----
    IsDone is 0 (running), 1 (terminated) or 2 (truncated), a double; float16 becomes single. The sources follow as a
    variable ``dataSourceID`` (1 x N) unless all are 0, and the user's own fields as a struct ``extra``. Batches and
    sequences of version 7.3 are written piece by piece, with a few MiB of memory. Holds the memory's lock.

    Examples
    --------
    >>> memory = ReplayMemory(NumericSpec((2,)), NumericSpec(()), 100)
    >>> write_mat("experience.mat", memory)  # doctest: +SKIP
    """
    chosen, name = checked_version(version), checked_name(variable)
    if form not in FORMS:
        raise MatFileError(f"form={form!r}: expected one of {', '.join(FORMS)}")
    if not isinstance(data, ReplayMemory):
        _write(path, Origin(data, dimensions), form, chosen, name)
        return
    with data._lock:
        _write(path, Origin(data, dimensions), form, chosen, name)


def _write(path: Any, origin: Origin, form: str, version: str, variable: str) -> None:
    check_size(origin.count * origin.layout.row_bytes, variable, version)
    if version == "7.3" and form in ("batch", "sequence"):
        _write_in_pieces(path, origin, form, variable)
        return
    if form in ("batch", "sequence"):
        value: Any = _batched(origin, form)
    else:
        value = _singles(origin, as_cell=form == "cell")
    write_mat_values(path, {variable: value, **_beside(origin, form)}, version)


def _batched(origin: Origin, form: str) -> dict[str, Any]:
    """One struct of everything, in the fields' order of a batch."""
    layout, whole = origin.layout, origin.whole()
    arrays = [file_order(a, c, form) for a, c in zip(whole.arrays, layout.flat, strict=True)]
    first, second = len(layout.observation), len(layout.observation) + len(layout.action)
    done = file_order(whole.code.astype(np.float64), layout.reward._replace(shape=(), dimension=(1,)), form)
    return {
        "Observation": _cell(arrays[:first]),
        "Action": _cell(arrays[first:second]),
        "Reward": arrays[second],
        "NextObservation": _cell(arrays[second + 1 : second + 1 + first]),
        "IsDone": done,
    }


def _singles(origin: Origin, *, as_cell: bool) -> NDArray[Any]:
    """N x 1 experiences, as a struct array or as a cell of structs."""
    whole = _batched(origin, "batch")
    made = np.empty((origin.count, 1), object if as_cell else [(name, object) for name in SINGLE])
    for i in range(origin.count):
        single: dict[str, Any] = {}
        for name in SINGLE:
            value = whole[name]
            if value.dtype == object:
                single[name] = _cell([entry[..., i] for entry in value[0]])
            else:
                single[name] = value[..., i].reshape(-1, 1)
        made[i, 0] = single if as_cell else tuple(single.values())
    return made


def _beside(origin: Origin, form: str) -> dict[str, Any]:
    """What an experience of MATLAB has no field for, as variables of their own."""
    beside: dict[str, Any] = {}
    if not origin.one_source:
        beside["dataSourceID"] = origin.whole().source.astype(np.float64)[None]
    extra = origin.layout.extra
    if extra:
        arrays = origin.whole().arrays[-len(extra) :]
        pairs = zip(extra.items(), arrays, strict=True)
        beside["extra"] = {checked_name(n, "field"): file_order(a, c, "batch") for (n, c), a in pairs}
    return beside


def _cell(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    cell = np.empty((1, len(arrays)), object)
    for k, array in enumerate(arrays):
        cell[0, k] = array
    return cell


def _write_in_pieces(path: Any, origin: Origin, form: str, variable: str) -> None:
    """Batches and sequences of version 7.3: the arrays are made first, then filled some rows at a time."""
    layout, count = origin.layout, origin.count
    done = layout.reward._replace(shape=(), dimension=(1,), dtype=np.dtype(np.float64))
    with replacing(path) as temporary, mat73.writing(temporary) as writer:
        datasets = _reserved(writer, layout, count, form, variable)
        for first, piece in origin.pieces(max(1, _PIECE // layout.row_bytes)):
            arrays = [*piece.arrays[: len(layout.flat) - len(layout.extra)], piece.code.astype(np.float64)]
            channels = [*layout.flat[: len(arrays) - 1], done]
            for dataset, array, channel in zip(datasets, arrays, channels, strict=True):
                part = file_order(array, channel, form)
                if not part.size:
                    continue
                if count == 1:  # its size has no axis for the one row
                    dataset[...] = mat73.raw(part.T).reshape(dataset.shape)
                else:
                    dataset[first : first + len(array)] = mat73.raw(part.T)
        for name, value in _beside(origin, form).items():
            writer.put(writer.root, name, value)


def _reserved(writer: mat73.Writer, layout: Layout, count: int, form: str, variable: str) -> list[Any]:
    """The struct with arrays for `count` rows; they are returned as observation, action, reward, next, IsDone."""
    group = writer.group(writer.root, variable, BATCHED)
    behind = (1, count) if form == "sequence" else (count,)
    made: dict[str, list[Any]] = {}
    for field, channels in (
        ("Observation", layout.observation), ("Action", layout.action), ("NextObservation", layout.observation),
    ):  # fmt: skip
        made[field] = [writer.reserved(c.dimension + behind, stored(c.dtype)) for c in channels]
        writer.link(group, field, (1, len(channels)), made[field], "cell")
    reward = layout.reward
    made["Reward"] = [writer.reserve(group, "Reward", reward.dimension + behind, stored(reward.dtype))]
    made["IsDone"] = [writer.reserve(group, "IsDone", (1, *behind), np.dtype(np.float64))]
    return [array for name in ("Observation", "Action", "Reward", "NextObservation", "IsDone") for array in made[name]]


def append_mat(
    path: str | os.PathLike[str],
    memory: ReplayMemory,
    *,
    variable: str | None = None,
    source: int | None = None,
    dimensions: Any = None,
) -> range:
    """Put the experiences of a .mat file, or of a folder of them, into a memory.

    Parameters
    ----------
    path : path-like
        A file of version 6, 7 or 7.3, or a folder of ``loggedData*.mat``, read in the order of their numbers.
    memory : ReplayMemory
        Its specs say which shapes the arrays have: files do not keep trailing sizes of 1.
    variable : str, optional
        Which variable; default: every experience in the file, also as a field of a struct.
    source : int, optional
        Source of all of them; default: what ``dataSourceID`` in the file says, else 0.
    dimensions : (list of sizes, list of sizes), optional
        As for `write_mat`.

    Returns
    -------
    range
        The ids.

    Raises
    ------
    FileNotFoundError
    MatFileError
        When the file is damaged, holds no experiences, or holds objects of MATLAB (a saved buffer or agent).
    StructureError, ShapeError, DataTypeError
        When the experiences do not have the memory's channels. Nothing of that file is stored then.
    ValueNotRepresentableError
        When a value would change in the dtype of its spec. The rows before it stay: they are stored piece by piece.

    Notes
    -----
    Struct arrays, cells of structs, batches and sequences are recognised. No episode goes on from one variable or
    file into the next, nor from what was in the memory before. Arrays of version 7.3 are read piece by piece.
    """
    which = one_source(source)
    first = memory.next_id
    for file in files_of(Path(path)):
        with opened(file, None if variable is None else [variable], lazy=True) as contents:
            found = experiences_in(contents, memory_layout(memory, dimensions), file.name, variable)
            for experiences in found:
                _append(memory, experiences, which)
    return range(first, memory.next_id)


def _append(memory: ReplayMemory, found: Found, source: int | None) -> None:
    observation, action, _, _, extra = memory._groups
    split = len(observation.specs), len(observation.specs) + len(action.specs)
    memory.end_episode()
    for piece in found.pieces(_PIECE):
        arrays = piece.arrays
        memory.extend(
            observation.pack(arrays[: split[0]]),
            action.pack(arrays[split[0] : split[1]]),
            reward=arrays[split[1]],
            next_observation=observation.pack(arrays[split[1] + 1 : split[1] + 1 + split[0]]),
            terminated=piece.code == 1,
            truncated=piece.code == 2,
            source=piece.source if source is None else source,
            extra=extra.pack(arrays[split[1] + 1 + split[0] :]) if extra.specs else None,
        )
    memory.end_episode()


def read_mat(
    path: str | os.PathLike[str],
    observation: Any,
    action: Any,
    *,
    reward: DTypeLike | NumericSpec = "float64",
    extra: Any = None,
    variable: str | None = None,
    dimensions: Any = None,
) -> Experience:
    """The experiences of a .mat file, or of a folder of them.

    Parameters
    ----------
    path : path-like
        As for `append_mat`.
    observation, action : NumericSpec, tuple or dict of them
        What the channels look like.
    reward : dtype-like or NumericSpec, default "float64"
    extra : dict of NumericSpec, optional
        The user's own fields, read from a struct ``extra`` in the file.
    variable : str, optional
    dimensions : (list of sizes, list of sizes), optional
        As for `append_mat`.

    Returns
    -------
    Experience
        In the dtypes of the specs, in the order of the file.

    Raises
    ------
    FileNotFoundError, MatFileError, StructureError, ShapeError, DataTypeError, ValueNotRepresentableError
        As for `append_mat`.

    Notes
    -----
    Takes the room of the experiences twice while it reads; `append_mat` into a memory that is there takes none.
    """
    memory = ReplayMemory(observation, action, 1, reward=reward, extra=extra)
    for file in files_of(Path(path)):
        with opened(file, None if variable is None else [variable], lazy=True) as contents:
            for found in experiences_in(contents, memory_layout(memory, dimensions), file.name, variable):
                if len(memory) + found.count > memory.capacity:
                    memory.resize(len(memory) + found.count)
                _append(memory, found, None)
    return memory.all()
