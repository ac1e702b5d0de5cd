"""Writes .mat files of version 7.3, which are HDF5 files with some rules, on h5py.

Every array is a dataset with reversed dimensions; a cell is a dataset of references, a struct a group. `mat73read`
reads them.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MatFileError, NotAvailableError
from .matlayout import full_size, stripped

_CLASSES = {"float64": "double", "float32": "single", "bool": "logical", "complex128": "double", "complex64": "single"}
_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_BLOCK = 512


def h5py() -> Any:
    """The module, or an error that says how to install it."""
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise NotAvailableError("files of version 7.3 need h5py: pip install 'rlmemory[hdf5]'") from error


class Writer:
    """Puts values into a file.

    Parameters
    ----------
    file : h5py.File
    """

    def __init__(self, file: Any) -> None:
        self._h5, self.root, self._count = h5py(), file, 0

    def put(self, group: Any, name: str, value: Any) -> Any:
        """Write a number, text, array, cell (object array, list) or struct (dict, structured array)."""
        if isinstance(value, Mapping):
            return self.struct(group, name, value)
        if isinstance(value, str):
            codes = np.frombuffer(value.encode("utf-16-le"), np.uint16).reshape(1, -1)
            return self._data(group, name, codes, "char", MATLAB_int_decode=np.int32(2))
        array = value if isinstance(value, np.ndarray) else np.atleast_2d(np.asarray(value))
        array = array.reshape(1, -1) if array.ndim < 2 else array
        if array.dtype.names:
            return self._struct_array(group, name, array)
        if array.dtype == object:
            return self._cell(group, name, array)
        return self.numbers(group, name, array)

    def struct(self, group: Any, name: str, fields: Mapping[str, Any]) -> Any:
        """Write a struct of one element."""
        made = self.group(group, name, list(fields))
        for field, value in fields.items():
            self.put(made, field, value)
        return made

    def group(self, group: Any, name: str, fields: Sequence[str]) -> Any:
        """Make the group of a struct, whose fields are put into it afterwards."""
        made = group.create_group(name)
        made.attrs["MATLAB_class"] = np.bytes_("struct")
        self._note_fields(made, fields)
        return made

    def numbers(self, group: Any, name: str, array: NDArray[Any]) -> Any:
        """Write an array of numbers."""
        made = self.reserve(group, name, array.shape, array.dtype)
        if array.size:
            made[...] = raw(array.T).reshape(made.shape)
        return made

    def reserve(self, group: Any, name: str, size: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """Make an array of that size in MATLAB; the dataset has the dimensions reversed."""
        which = _CLASSES.get(dtype.name, dtype.name)
        if which not in ("double", "single", "logical", *_INTEGERS):
            raise MatFileError(f"a .mat file has no class for values of dtype {dtype}")
        if 0 in size:
            return self._empty(group, name, size, which)
        made = group.create_dataset(name, full_size(stripped(size))[::-1], _raw_dtype(dtype))
        made.attrs["MATLAB_class"] = np.bytes_(which)
        if dtype.kind == "b":
            made.attrs["MATLAB_int_decode"] = np.int32(1)
        return made

    def link(self, group: Any, name: str, size: Sequence[int], items: Sequence[Any], which: str | None) -> Any:
        """Make the array of references to what was put elsewhere; `items` in MATLAB's order."""
        if not items and which:
            return self._empty(group, name, size, which)
        refs = np.array([item.ref for item in items], self._h5.ref_dtype).reshape(tuple(size)[::-1])
        made = group.create_dataset(name, data=refs, dtype=self._h5.ref_dtype)
        if which:
            made.attrs["MATLAB_class"] = np.bytes_(which)
        return made

    def _place(self) -> tuple[Any, str]:
        self._count += 1
        return self.root.require_group("#refs#"), f"r{self._count}"

    def place(self, value: Any) -> Any:
        """Put a value among those that references lead to."""
        group, name = self._place()
        return self.put(group, name, value)

    def reserved(self, size: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """The same for an array that is filled later."""
        group, name = self._place()
        return self.reserve(group, name, size, dtype)

    def _cell(self, group: Any, name: str, cell: NDArray[Any]) -> Any:
        return self.link(group, name, cell.shape, [self.place(entry) for entry in cell.ravel(order="F")], "cell")

    def _struct_array(self, group: Any, name: str, array: NDArray[Any]) -> Any:
        fields = list(array.dtype.names or ())
        if array.size == 1:
            return self.struct(group, name, {field: array.flat[0][field] for field in fields})
        if array.size == 0:
            made = self._empty(group, name, array.shape, "struct")
            self._note_fields(made, fields)
            return made
        made = self.group(group, name, fields)
        for field in fields:
            items = [self.place(value) for value in array[field].ravel(order="F")]
            self.link(made, field, array.shape, items, None)
        return made

    def _empty(self, group: Any, name: str, size: Sequence[int], which: str) -> Any:
        return self._data(group, name, np.array(size, np.uint64), which, MATLAB_empty=np.uint8(1))

    def _data(self, group: Any, name: str, array: NDArray[Any], which: str, **attributes: Any) -> Any:
        if array.size == 0:
            return self._empty(group, name, (0, 0), which)
        made = group.create_dataset(name, data=array.T)
        made.attrs["MATLAB_class"] = np.bytes_(which)
        for key, value in attributes.items():
            made.attrs[key] = value
        return made

    def _note_fields(self, made: Any, fields: Sequence[str]) -> None:
        """HDF5 sorts by name; MATLAB finds the order of the fields here."""
        letters = np.empty(len(fields), object)
        for i, field in enumerate(fields):
            letters[i] = np.array(list(field.encode()), np.uint8).view("S1")
        if fields:
            made.attrs.create("MATLAB_fields", letters, dtype=self._h5.vlen_dtype(np.dtype("S1")))


def _raw_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "c":
        return np.dtype([("real", f"f{dtype.itemsize // 2}"), ("imag", f"f{dtype.itemsize // 2}")])
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype


def raw(array: NDArray[Any]) -> NDArray[Any]:
    """The numbers as they lie in the file: logical as bytes, complex as pairs; C-contiguous."""
    there: NDArray[Any] = np.ascontiguousarray(array).view(_raw_dtype(array.dtype))
    return there


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[Writer]:
    """A writer to a new file, with the block in front by which MATLAB knows it."""
    with h5py().File(path, "w", userblock_size=_BLOCK) as file:
        yield Writer(file)
    about = f"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: {time.asctime()} HDF5 schema 1.00 ."
    with open(path, "r+b") as block:
        block.write(about.encode().ljust(116) + bytes(8) + b"\x00\x02IM")
