"""HDF5 files: read with distrust, written whole or not at all.

What is read lies in the file itself: links and data sets that lead elsewhere are refused, as are references, text and
records. A data set that declares more than its file can hold is refused before anything is allocated for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batch import Channels
from ..errors import FileFormatError, ReplayMemoryError, StructureError
from .extras import extra

#: Bytes that a data set may have beyond those in its file: entries that were never written have a fill value.
_SLACK = 1 << 20
#: No byte of deflate stands for more than 1032 bytes.
_DEFLATE = 1032
_DEEPEST = 16
_TUPLE = "_index_"
_BROKEN = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, SystemError)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Group]:
    """The root of an HDF5 file; what HDF5 finds wrong with the file is a `FileFormatError`."""
    h5py = extra("h5py", "hdf5", "reading HDF5 files")
    where = Path(path)
    size = where.stat().st_size
    try:
        with h5py.File(where, "r") as file:
            yield Group(file, str(where), _Budget(size))
    except (ReplayMemoryError, MemoryError):
        raise
    except _BROKEN as error:
        raise FileFormatError(f"{where}: not an HDF5 file, or a damaged one ({error})") from error


class _Budget:
    """How many bytes may still be read from a file of `size` bytes, by how they are stored."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._left = {1: size + _SLACK, _DEFLATE: size * _DEFLATE + _SLACK}

    def spend(self, label: str, needed: int, ratio: int) -> None:
        self._left[ratio] -= needed
        if self._left[ratio] < 0:
            raise FileFormatError(
                f"{label}: declares {needed:,} bytes, more than a file of {self.size:,} bytes can hold; not read"
            )


class Group:
    """A group of an HDF5 file.

    Parameters
    ----------
    group : h5py.Group
    label : str
        For error messages.
    budget : _Budget
    depth : int
    """

    def __init__(self, group: Any, label: str, budget: _Budget, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise FileFormatError(f"{label}: nested deeper than {_DEEPEST} levels, or in itself")
        self._group, self.label, self._budget, self._depth = group, label, budget, depth

    def keys(self) -> list[str]:
        """The names in this group."""
        return list(self._group)

    def __contains__(self, name: str) -> bool:
        return name in self.keys()

    def is_group(self, name: str) -> bool:
        """Whether a group lies under a name, and not an array."""
        return isinstance(self._member(name), self._group_class())

    def group(self, name: str) -> Group:
        """The group under a name."""
        member = self._member(name)
        if not isinstance(member, self._group_class()):
            raise FileFormatError(f"{self.label}: {name} is an array, and should be a group")
        return Group(member, f"{self.label}: {name}", self._budget, self._depth + 1)

    def array(self, name: str) -> NDArray[Any]:
        """The numbers under a name, read whole."""
        dataset = self._member(name)
        label = f"{self.label}: {name}"
        if isinstance(dataset, self._group_class()) or not hasattr(dataset, "id") or not hasattr(dataset, "chunks"):
            raise FileFormatError(f"{label} is not an array")
        if dataset.dtype.kind not in "biufc" or dataset.dtype.subdtype is not None:
            raise FileFormatError(f"{label} has dtype {dataset.dtype}, and is not an array of numbers")
        if dataset.shape is None:
            raise FileFormatError(f"{label} is empty: it has no shape")
        if dataset.external or dataset.is_virtual:
            raise FileFormatError(f"{label} has its values in another file, which is not followed")
        self._check_size(label, dataset)
        array = np.asarray(dataset[()])
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    def channels(self, name: str) -> Channels:
        """An array, or what a group holds: a tuple where all names are ``_index_0`` and so on, else a dict."""
        if not self.is_group(name):
            return self.array(name)
        inner = self.group(name)
        keys = inner.keys()
        if not keys:
            raise FileFormatError(f"{inner.label}: an empty group, and should hold arrays")
        order = [f"{_TUPLE}{i}" for i in range(len(keys))]
        if set(keys) == set(order) and not any(inner.is_group(key) for key in keys):
            return tuple(inner.array(key) for key in order)
        return dict(inner._flat(""))

    def _flat(self, prefix: str) -> Iterator[tuple[str, NDArray[Any]]]:
        for key in self.keys():
            if self.is_group(key):
                yield from self.group(key)._flat(f"{prefix}{key}/")
            else:
                yield prefix + key, self.array(key)

    def _member(self, name: str) -> Any:
        if name not in self._group:
            raise FileFormatError(f"{self.label}: has no {name}; there are {self.keys()[:20]}")
        link = self._group.get(name, getlink=True)
        if type(link).__name__ != "HardLink":
            raise FileFormatError(f"{self.label}: {name} is a link to somewhere else, which is not followed")
        return self._group[name]

    def _group_class(self) -> Any:
        return extra("h5py", "hdf5", "reading HDF5 files").Group

    def _check_size(self, label: str, dataset: Any) -> None:
        """Declared sizes are read from the file like anything else, and may be anything."""
        ratio = 1 if dataset.id.get_create_plist().get_nfilters() == 0 else _DEFLATE
        chunk = dataset.dtype.itemsize
        for length in dataset.chunks or ():
            chunk *= int(length)
        needed = dataset.dtype.itemsize
        for length in dataset.shape:
            needed *= int(length)
        if dataset.chunks and chunk > needed:  # a chunk may be larger than its array; it is read whole
            self._budget.spend(f"{label} (a chunk)", chunk - needed, ratio)
        self._budget.spend(label, needed, ratio)


# ---- writing --------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path`, which takes its place when all went well and vanishes otherwise."""
    where = Path(path)
    temporary = where.with_name(f"{where.name}.{os.getpid()}.part")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(where)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """A folder with those above it; the ones that were not there are removed again when the block fails."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for one in new:
            with suppress(OSError):  # it could not be made, or somebody else has put something there
                one.rmdir()
        raise


@contextmanager
def created(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A new ``h5py.File`` that appears at `path` when it is complete."""
    h5py = extra("h5py", "hdf5", "writing HDF5 files")
    with replacing(path) as temporary, h5py.File(temporary, "x", libver=("earliest", "v110")) as file:
        yield file


def put(group: Any, name: str, value: Channels) -> None:
    """Write a structure of arrays as `Group.channels` reads it."""
    if not isinstance(value, (Mapping, tuple)):
        group.create_dataset(name, data=value)
        return
    inner = group.create_group(name)
    for key, part in value.items() if isinstance(value, Mapping) else enumerate(value):
        inner.create_dataset(key if isinstance(value, Mapping) else f"{_TUPLE}{key}", data=part)


def check_names(field: str, value: Channels) -> None:
    """Refuse the keys of a dict that an HDF5 file would not give back."""
    if not isinstance(value, Mapping):
        return
    keys = list(value)
    for key in keys:
        parts = key.split("/") if isinstance(key, str) else [""]
        if any(part in ("", ".", "..") or "\0" in part for part in parts) or not _is_text(key):
            raise StructureError(f"{field}: {key!r} cannot be the name of a data set; use a plain string")
        if any(isinstance(other, str) and other.startswith(f"{key}/") for other in keys):
            raise StructureError(f"{field}: {key!r} cannot be an array and a group at once")
    if keys and set(keys) == {f"{_TUPLE}{i}" for i in range(len(keys))}:
        raise StructureError(f"{field}: a dict with the keys {keys} would be read as a tuple")


def _is_text(key: str) -> bool:
    try:
        return bool(key.encode("utf-8"))
    except UnicodeEncodeError:
        return False
