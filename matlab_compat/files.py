"""`save` and `load` for .mat files, `saveExperiences` and `loadExperiences` for whole buffers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rlmemory as rlm

from .arrays import dlarray
from .buffers import Buffer, checked
from .cells import Cell
from .gathering import gather
from .options import anything, name_value, one_of
from .reading import translated
from .structs import from_rows, rows_of, struct

_VERSIONS = ("v7", "-v7", "v6", "-v6", "v7.3", "-v7.3")
_FORMS = {"batch": "batch", "sequence": "sequence", "none": "struct"}


def save(filename: str | os.PathLike[str], *version: str, **variables: Any) -> None:
    """Save variables to a .mat file, which MATLAB and Octave load.

    Parameters
    ----------
    filename : path-like
        Without a suffix, ``.mat`` is added.
    *version : str, default "-v7"
        "-v6" (not compressed), "-v7" or "-v7.3" (HDF5, for variables of 2 GiB and more; needs h5py).
    **variables
        By the names that they get: structs, struct arrays, cells, arrays, numbers, text. Arrays on a GPU are
        copied to the host, also those within structs and cells.

    Returns
    -------
    None
        The file is there whole, or as it was before.

    Raises
    ------
    rlmemory.MatFileError
        For a name that MATLAB does not take, a value that has no counterpart in MATLAB, or 2 GiB and more.
    TypeError
        For a replay memory: `saveExperiences` saves what is in it.

    Notes
    -----
    MATLAB counterpart: ``save``. Python passes values, not names: ``save("x.mat", experience=experience)``. A struct
    array of 10,000 experiences takes seconds, in version 7.3 minutes; a batch takes next to nothing. Files do not
    keep trailing sizes of 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "x.mat")
    >>> save(file, experience=struct(Reward=1.5, IsDone=0))
    >>> load(file).experience.Reward
    array([[1.5]])
    >>> folder.cleanup()
    """
    if len(version) > 1 or (version and version[0] not in _VERSIONS):
        given = ", ".join(map(repr, version))
        raise ValueError(f'save: expected "-v6", "-v7" or "-v7.3" behind the file name, got {given}')
    if not variables:
        raise ValueError('save: nothing to save; name the variables, as in save("x.mat", experience=experience)')
    values = {name: _outward(gather(value), name) for name, value in variables.items()}
    rlm.files.write_mat_values(_with_suffix(filename), values, version[0] if version else "7")


def load(filename: str | os.PathLike[str], *variables: str) -> struct:
    """Load the variables of a .mat file.

    Parameters
    ----------
    filename : path-like
        Without a suffix, ``.mat`` is added when there is no file of that name.
    *variables : str
        Which ones; default: all.

    Returns
    -------
    struct
        A field for each variable. Structs and struct arrays are structs, cells of one row or column are `Cell`, text
        is str, everything else an array with MATLAB's sizes and classes.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    rlmemory.MatFileError
        When the file is damaged, lacks a variable, or holds nothing but objects of MATLAB (a saved buffer or agent).

    Notes
    -----
    MATLAB counterpart: ``s = load(filename)``. Objects of MATLAB classes cannot be read: they are left out with a
    warning. Files do not keep trailing sizes of 1: a batch of one 2-by-1 channel is (2, 1). `loadExperiences` puts
    them back.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "x.mat")
    >>> save(file, c=[np.zeros((2, 1)), "text"], n=3)
    >>> load(file)
    struct with fields:
        c: {[2×1 double]  "text"}
        n: 3
    >>> folder.cleanup()
    """
    values = rlm.files.read_mat_values(_found(filename), variables or None)
    return from_rows([{name: _inward(value) for name, value in values.items()}])


@name_value(ConcatenateMode=one_of(*_FORMS), Version=one_of(*_VERSIONS), Variable=anything)
def saveExperiences(
    filename: str | os.PathLike[str],
    buffer: Buffer,
    *,
    ConcatenateMode: str = "batch",
    Version: str = "v7",
    Variable: str = "experience",
) -> None:
    """Save everything in a replay memory to a .mat file, as `allExperiences` gives it.

    Parameters
    ----------
    filename : path-like
        Without a suffix, ``.mat`` is added.
    buffer : rlReplayMemory
    ConcatenateMode : {"batch", "sequence", "none"}, default "batch"
        "none" writes an N-by-1 struct array, which takes seconds for 10,000 experiences.
    Version : {"v7", "v6", "v7.3"}, default "v7"
        "v7.3" has no limit of size and is written with little memory; it needs h5py.
    Variable : str, default "experience"
        Name of the variable.

    Returns
    -------
    None
        The file is there whole, or as it was before.

    Raises
    ------
    rlmemory.MatFileError
        For a name that MATLAB does not take, or 2 GiB and more in another version than v7.3.
    rlmemory.NotAvailableError
        For v7.3 without h5py.

    Notes
    -----
    An extension: MATLAB would save the object. Data sources other than 0 follow as the variable ``dataSourceID``,
    1-by-N. There, ``load x.mat; experience.Observation{1}`` is D-by-N.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "x.mat")
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]))
    >>> append(buffer, struct(Observation=[np.zeros(2)], Action=[0], NextObservation=[np.ones(2)], Reward=1, IsDone=0))
    >>> saveExperiences(file, buffer)
    >>> loadExperiences(file, buffer)
    >>> buffer.Length
    2
    >>> folder.cleanup()
    """
    memory = checked("saveExperiences", buffer).memory
    rlm.files.write_mat(
        _with_suffix(filename),
        memory,
        form=_FORMS[ConcatenateMode],
        version=Version,
        variable=Variable,
        dimensions=_dimensions(buffer),
    )


def loadExperiences(filename: str | os.PathLike[str], buffer: Buffer, dataSourceID: int | None = None) -> None:
    """Append the experiences of a .mat file to a replay memory.

    Parameters
    ----------
    filename : path-like
        A file that MATLAB, Octave or `saveExperiences` wrote, of any version from 6 up, or a folder with the files
        ``loggedData*.mat`` of a data logger.
    buffer : rlReplayMemory
        Receives the experiences, as `append` would. Its specs say which sizes they have.
    dataSourceID : int, optional
        Where they come from; default: what the file says, else 0.

    Returns
    -------
    None

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    rlmemory.MatFileError
        When the file is damaged, or holds no experiences; for a saved buffer or agent with the way to get at them.
    rlmemory.StructureError, rlmemory.ShapeError, rlmemory.DataTypeError, rlmemory.ValueNotRepresentableError
        When the experiences do not fit.

    Notes
    -----
    An extension: MATLAB has no counterpart. Struct arrays, batches and sequences are recognised, also as fields of
    other structs. No episode goes on from one file into the next.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "x.mat")
    >>> e = struct(Observation=[np.zeros((2, 1))], Action=[0.5], NextObservation=[np.ones((2, 1))], Reward=1, IsDone=0)
    >>> save(file, e=hcat(e, e, e))
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]))
    >>> loadExperiences(file, buffer)
    >>> buffer.Length
    3
    >>> folder.cleanup()
    """
    memory = checked("loadExperiences", buffer).memory
    if buffer._unread:
        buffer._settle()
    try:
        rlm.files.append_mat(_found(filename), memory, source=dataSourceID, dimensions=_dimensions(buffer))
    except rlm.ReplayMemoryError as error:
        raise translated(error) from error.__cause__


def _dimensions(buffer: Buffer) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    reader = buffer._reader
    return [c.dimension for c in reader.observation], [c.dimension for c in reader.action]


def _with_suffix(filename: str | os.PathLike[str]) -> Path:
    path = Path(filename)
    return path if path.suffix else path.with_name(path.name + ".mat")


def _found(filename: str | os.PathLike[str]) -> Path:
    path = Path(filename)
    return path if path.exists() else _with_suffix(path)


def _outward(value: Any, place: str) -> Any:
    """A value of this interface as the writers of files know it."""
    if isinstance(value, Buffer):
        raise TypeError(f"save: {place} is a replay memory; saveExperiences(filename, buffer) saves what is in it")
    if isinstance(value, struct):
        return _struct_array(value, place)
    if isinstance(value, Mapping):
        return {name: _outward(entry, f"{place}.{name}") for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        cell = np.empty((1, len(value)), object)
        for k, entry in enumerate(value):
            cell[0, k] = _outward(entry, f"{place}{{{k + 1}}}")
        return cell
    return np.asarray(value) if isinstance(value, dlarray) else value


def _struct_array(array: struct, place: str) -> Any:
    names, rows = list(array._records.fields), rows_of(array)
    if len(rows) == 1:
        return {name: _outward(rows[0][name], f"{place}.{name}") for name in names}
    made = np.empty(len(rows), [(name, object) for name in names])
    for i, row in enumerate(rows):
        made[i] = tuple(_outward(row[name], f"{place}({i + 1}).{name}") for name in names)
    return made.reshape((-1, 1) if array._column else (1, -1))


def _inward(value: Any) -> Any:
    """A value of a file as this interface knows it."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.names:
        rows = [{name: _inward(one[name]) for name in value.dtype.names} for one in value.ravel(order="F")]
        made = from_rows(rows, value.shape[-1] == 1)
        made._records.fields.update(dict.fromkeys(value.dtype.names))
        return made
    if value.dtype == object:
        if (value.ndim == 2 and 1 in value.shape) or value.size == 0:
            return Cell(_inward(entry) for entry in value.ravel(order="F"))
        inside = np.empty(value.shape, object)
        for at in np.ndindex(value.shape):
            inside[at] = _inward(value[at])
        return inside
    if value.dtype.kind == "U" and value.size <= 1:
        return str(value.flat[0]) if value.size else ""
    return value
