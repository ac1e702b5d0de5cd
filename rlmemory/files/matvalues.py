"""Values of any kind into a .mat file and out of it, whatever its version."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..devices import to_host
from ..errors import MatFileError, NotAvailableError
from . import mat73, mat73read, matcheck
from .matlayout import full_size, stripped

VERSIONS = ("6", "7", "7.3")
#: What to do about a saved MATLAB object.
RECIPE = (
    "only MATLAB can read it. There, take the experiences out and save those: e = allExperiences(buf, "
    'ConcatenateMode="batch"); save x.mat e -v7 (for an agent, buf = agent.ExperienceBuffer, and save e with -v7.3 '
    "from 2 GiB up)"
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}\Z")
_LIMIT = 1 << 31


class Contents(NamedTuple):
    """What was read: the variables, and the names of those that are objects of a MATLAB class."""

    values: dict[str, Any]
    objects: list[str]


def checked_name(name: Any, what: str = "variable") -> str:
    """The name, when MATLAB takes it."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise MatFileError(
            f"{name!r} cannot be the name of a {what} in MATLAB: a letter, then up to 62 letters, digits and _"
        )
    return name


def checked_version(version: Any) -> str:
    """The version as one of `VERSIONS`: "v7.3", "-v7.3" and 7.3 do as well."""
    text = str(version).removeprefix("-").removeprefix("v")
    if text not in VERSIONS:
        raise MatFileError(f'version={version!r}: expected "6", "7" or "7.3"')
    return text


def check_size(nbytes: int, name: str, version: str) -> None:
    """Refuse what the older versions cannot hold."""
    if version != "7.3" and nbytes >= _LIMIT:
        raise MatFileError(
            f"{name}: {nbytes:,} bytes, and version {version} ends at {_LIMIT:,} a variable; write version 7.3"
        )


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path`, which takes its place when all went well and is removed otherwise."""
    final = Path(path)
    temporary = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        yield temporary
        with open(temporary, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


def write_mat_values(path: str | os.PathLike[str], values: Mapping[str, Any], version: Any = "7") -> None:
    """Write variables, whole or not at all.

    Parameters
    ----------
    path : path-like
    values : mapping from name to value
        Numbers, text, arrays, cells (object arrays), structs (dicts; structured arrays with object fields). Arrays on a
        GPU are copied to the host.
    version : {"6", "7", "7.3"}

    Raises
    ------
    MatFileError
        For a name that MATLAB does not take, or a variable of 2 GiB and more in version 6 or 7.
    NotAvailableError
        For version 7.3 without h5py.
    """
    chosen = checked_version(version)
    ready = {checked_name(name): _prepared(value, name) for name, value in values.items()}
    for name, value in ready.items():
        check_size(_nbytes(value), name, chosen)
    with replacing(path) as temporary:
        if chosen == "7.3":
            with mat73.writing(temporary) as writer:
                for name, value in ready.items():
                    writer.put(writer.root, name, value)
        else:
            save: Any = importlib.import_module("scipy.io").savemat
            with open(temporary, "wb") as file:
                save(file, ready, do_compression=chosen == "7", long_field_names=True, oned_as="row")


def _prepared(value: Any, place: str) -> Any:
    """The value with every array in a dtype that MATLAB has, and every name checked."""
    if isinstance(value, Mapping):
        return {checked_name(k, "field"): _prepared(v, f"{place}.{k}") for k, v in value.items()}
    if isinstance(value, (str, np.str_)):
        return str(value)
    if isinstance(value, (list, tuple)):
        cell = np.empty((1, len(value)), object)
        cell[0, :] = [None] * len(value)
        for k, entry in enumerate(value):
            cell[0, k] = entry
        value = cell
    if value is None:
        raise MatFileError(f"{place}: MATLAB has no None; leave it out, or give an empty array")
    array = np.asarray(to_host(value))
    if array.dtype.names or array.dtype == object:
        if array.ndim == 0:
            raise MatFileError(f"{place}: a {type(value).__name__} has no counterpart in a .mat file")
        return _prepared_parts(array, place)
    if array.dtype.kind in "SU":
        return array
    if type(value) is int:
        return float(value)
    if array.ndim > 2:  # no file of MATLAB has trailing ones
        array = array.reshape(full_size(stripped(array.shape)))
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8):
        raise MatFileError(f"{place}: a .mat file has no class for values of dtype {array.dtype}")
    return array


def _prepared_parts(array: Any, place: str) -> Any:
    """The same for a cell or a struct array."""
    names = array.dtype.names
    ready = np.empty(array.shape, [(checked_name(n, "field"), object) for n in names] if names else object)
    for at in np.ndindex(array.shape):
        where = place + "(" + ",".join(str(i + 1) for i in at) + ")"
        if names:
            for name in names:
                ready[at][name] = _prepared(array[at][name], f"{where}.{name}")
        else:
            ready[at] = _prepared(array[at], where)
    return ready


def _nbytes(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_nbytes(part) for part in value.values())
    if isinstance(value, np.ndarray) and value.dtype.names:
        return sum(_nbytes(value[name]) for name in value.dtype.names)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return 64 * value.size + sum(_nbytes(part) for part in value.flat)
    return int(np.asarray(value).nbytes)


def read_mat_values(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> dict[str, Any]:
    """The variables of a file of version 6, 7 or 7.3.

    Parameters
    ----------
    path : path-like
    names : sequence of str, optional
        Which ones; default: all. Objects of MATLAB classes are then left out with a warning.

    Returns
    -------
    dict of arrays
        As ``scipy.io.loadmat(path, mat_dtype=True)`` gives them: at least two axes, structs as structured arrays
        with object fields, cells as object arrays.

    Raises
    ------
    FileNotFoundError
    MatFileError
        When it is no .mat file, is damaged, lacks a variable, or an object is asked for.
    NotAvailableError
        For version 7.3 without h5py.
    """
    with opened(path, names) as contents:
        if contents.objects:
            which = ", ".join(contents.objects)
            if names is not None or not contents.values:
                raise MatFileError(
                    f"{Path(path).name}: {which} is an object of a MATLAB class (a buffer or an agent): {RECIPE}"
                )
            warnings.warn(f"left out {which}, objects of MATLAB classes", stacklevel=2)
        return contents.values


@contextmanager
def opened(
    path: str | os.PathLike[str], names: Sequence[str] | None = None, *, lazy: bool = False
) -> Iterator[Contents]:
    """Read variables of a file of any version; with `lazy`, arrays of version 7.3 stay in it while it is open.

    Parameters
    ----------
    path : path-like
    names : sequence of str, optional
        Which variables; default: all that can be read.
    lazy : bool, default False

    Raises
    ------
    FileNotFoundError
    MatFileError
        When it is no .mat file, is damaged, or lacks a variable.
    """
    with open(path, "rb") as file:
        head = file.read(520)
        if b"\x89HDF\r\n\x1a\n" not in (head[:8], head[512:]):
            with _explained(path):
                contents = _read_older(file, names)
            yield contents
            return
    with _explained(path):
        stored = mat73.h5py().File(path, "r")
    try:
        with _explained(path):
            contents = _read_newer(stored, os.path.getsize(path), names, lazy)
        yield contents
    finally:
        stored.close()


def _read_newer(file: Any, size: int, names: Sequence[str] | None, lazy: bool) -> Contents:
    reader = mat73read.Reader(file, size, lazy)
    values = {name: reader.get(name) for name in _wanted(reader.names(), names)}
    objects = [name for name, value in values.items() if isinstance(value, mat73read.Opaque)]
    return Contents({name: value for name, value in values.items() if name not in objects}, objects)


@contextmanager
def _explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever a damaged file makes the libraries raise, as one error with the file's name."""
    try:
        yield
    except MatFileError as error:
        raise MatFileError(f"{Path(path).name}: {error}") from error.__cause__
    except NotAvailableError:
        raise
    except Exception as error:  # scipy and h5py raise what happens to go wrong
        raise MatFileError(f"{Path(path).name}: damaged ({type(error).__name__}: {error})") from error


def _wanted(there: Sequence[str], names: Sequence[str] | None) -> list[str]:
    for name in names or ():
        if name not in there:
            raise MatFileError(f"no variable {name!r}; there are {', '.join(there) or 'none'}")
    return list(there if names is None else names)


def _read_older(file: BinaryIO, names: Sequence[str] | None) -> Contents:
    found = {variable.name: variable for variable in matcheck.variables(file) if variable.name}
    chosen = [found[name] for name in _wanted(list(found), names)]
    values: dict[str, Any] = {}
    # With mat_dtype, doubles that were stored as small integers are doubles again, but complex loses its second half.
    group = [v.name for v in chosen if not v.is_object]
    if group:
        values = _loadmat(file, group, True)
    group = [v.name for v in chosen if v.has_complex and v.name in values]
    if group:
        whole = _loadmat(file, group, False)
        values |= {name: _with_complex(values[name], whole[name]) for name in group}
    order = [v.name for v in chosen if v.name in values]
    return Contents({name: values[name] for name in order}, [v.name for v in chosen if v.is_object])


def _loadmat(file: BinaryIO, names: list[str], mat_dtype: bool) -> dict[str, Any]:
    load: Any = importlib.import_module("scipy.io").loadmat
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load(file, mat_dtype=mat_dtype, variable_names=names)
    for value in found.values():
        if hasattr(value, "check_format"):
            value.check_format(full_check=True)  # a sparse matrix with wrong indices would write past its end
    return {name: found[name] for name in names if name in found}


def _with_complex(value: Any, whole: Any) -> Any:
    """The value, its complex arrays taken from the other reading of the same file."""
    if not isinstance(value, np.ndarray):
        return whole if getattr(whole, "dtype", np.dtype(float)).kind == "c" else value
    for name in value.dtype.names or ():
        value[name] = _with_complex(value[name], whole[name])
    if value.dtype == object:
        for at in np.ndindex(value.shape):
            value[at] = _with_complex(value[at], whole[at])
    return whole if whole.dtype.kind == "c" else value
