"""Reads .mat files of version 7.3, on h5py.

What is read lies as scipy gives it for the older versions: structs are structured arrays with object fields, cells are
object arrays. Arrays of numbers can be left in the file and read by rows. Nothing is followed out of the file, and
nothing is allocated because a file says that it has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MatFileError
from .mat73 import h5py

_DTYPES = {"double": "float64", "single": "float32", "logical": "bool"}
_DTYPES |= {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_DEEPEST = 60
#: zlib packs at most about 1 to 1032.
_PACKED = 1100


class Opaque:
    """Stands for an object of a MATLAB class, which cannot be read."""


class Stored:
    """An array of numbers that is still in the file.

    Attributes
    ----------
    shape : tuple of int
        In MATLAB's order.
    dtype : numpy.dtype
    """

    def __init__(self, dataset: Any, dtype: np.dtype[Any]) -> None:
        self._dataset, self.dtype = dataset, dtype
        self.shape: tuple[int, ...] = tuple(dataset.shape[::-1])

    def rows(self, first: int, last: int, dimension: Sequence[int]) -> NDArray[Any]:
        """Rows `first` to `last` as ``(n, *dimension)``: the last axis that is not 1 counts them."""
        sizes = self._dataset.shape
        ones = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))
        # The one row of a file of one has no axis, as MATLAB drops trailing ones.
        alone = math.prod(sizes) == math.prod(dimension)
        try:
            part = self._dataset[()] if alone else self._dataset[(0,) * ones + (slice(first, last),)]
        except (OSError, RuntimeError, ValueError) as error:
            raise MatFileError(f"damaged ({error})") from error
        reverse = decoded(part, self.dtype).reshape(last - first, *dimension[::-1])
        return reverse.transpose(0, *range(reverse.ndim - 1, 0, -1))

    def read(self) -> NDArray[Any]:
        """All of it, in MATLAB's order of axes."""
        return decoded(self._dataset[()], self.dtype).T


def decoded(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers of a file as NumPy has them."""
    if dtype.kind == "c":
        real, imaginary = array.dtype.names or ("", "")
        whole: NDArray[Any] = np.empty(array.shape, dtype)
        whole.real, whole.imag = array[real], array[imaginary]
        return whole
    return array != 0 if dtype.kind == "b" else array.astype(dtype, copy=False)


class Reader:
    """The variables of an open file.

    Parameters
    ----------
    file : h5py.File
    size : int
        Bytes of the file.
    lazy : bool
        Leave arrays of numbers in the file, as `Stored`.
    """

    def __init__(self, file: Any, size: int, lazy: bool) -> None:
        self._h5, self._file, self._lazy = h5py(), file, lazy
        # Each value is reached once by a link or a reference, and those have bytes of their own in the file.
        self._left = size // 8 + 100

    def names(self) -> list[str]:
        """Names of the variables."""
        return [name for name in self._file if not name.startswith("#")]

    def get(self, name: str) -> Any:
        """The value of a variable; an `Opaque` where it is an object."""
        return self._value(self._child(self._file, name), 0)

    def _child(self, group: Any, name: str) -> Any:
        if not isinstance(group.get(name, getlink=True), self._h5.HardLink):
            raise MatFileError(f"{name!r} is a link to elsewhere, which a .mat file has no use for; it is not followed")
        return group[name]

    def _value(self, item: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise MatFileError("values refer to one another without end; the file is damaged")
        which = _text(item.attrs.get("MATLAB_class"))
        if "MATLAB_object_decode" in item.attrs or which == "function_handle":
            return Opaque()
        if isinstance(item, self._h5.Group):
            return self._struct(item, depth) if which in ("struct", "") else Opaque()
        if not isinstance(item, self._h5.Dataset):
            raise MatFileError("a value is neither an array nor a struct; the file is damaged")
        return self._array(item, which, depth)

    def _array(self, item: Any, which: str, depth: int) -> Any:
        if item.attrs.get("MATLAB_empty"):
            return self._empty(item, which)
        if which == "cell":
            return self._references(item, depth)
        _check_storage(item)
        if which == "char":
            codes = item[()].astype("<u2", copy=False).T
            lines = [np.ascontiguousarray(line).tobytes().decode("utf-16-le", "replace") for line in codes]
            return np.array(lines)
        if which not in _DTYPES:
            return Opaque()
        dtype = np.dtype(_DTYPES[which])
        if item.dtype.names:
            dtype = np.dtype(np.complex64 if dtype == np.float32 else np.complex128)
        elif item.dtype.kind not in "iuf":
            raise MatFileError(f"an array of class {which} holds {item.dtype}; the file is damaged")
        stored = Stored(item, dtype)
        return stored if self._lazy else stored.read()

    def _empty(self, item: Any, which: str) -> Any:
        if item.size > 32 or item.dtype.kind not in "iu":
            raise MatFileError("an empty array without a size; the file is damaged")
        size = tuple(int(n) for n in item[()].ravel())
        if 0 not in size:
            raise MatFileError("an empty array that is not empty; the file is damaged")
        if which == "struct":
            return np.empty(size, [(name, object) for name in self._fields(item)])
        if which == "char":
            return np.array([""] * min(size[0], 1))
        return np.empty(size, object if which == "cell" else _DTYPES.get(which, "float64"))

    def _references(self, item: Any, depth: int) -> NDArray[Any]:
        if self._h5.check_ref_dtype(item.dtype) is not self._h5.Reference:
            raise MatFileError("a cell holds no references; the file is damaged")
        _check_storage(item)
        refs = np.asarray(item[()], object).T
        cell = np.empty(refs.shape, object)
        for place in np.ndindex(refs.shape):
            if not refs[place]:
                raise MatFileError("a cell refers to nothing; the file is damaged")
            cell[place] = self._value(self._file[refs[place]], depth + 1)
        return cell

    def _struct(self, group: Any, depth: int) -> NDArray[Any]:
        names = self._fields(group)
        children = {name: self._child(group, name) for name in names}
        if children and all(self._is_part(child) for child in children.values()):
            columns = {name: self._references(child, depth) for name, child in children.items()}
            shapes = {column.shape for column in columns.values()}
            if len(shapes) != 1:
                raise MatFileError("the fields of a struct array have different sizes; the file is damaged")
            shape = shapes.pop()
        else:
            columns = {name: _boxed(self._value(child, depth + 1)) for name, child in children.items()}
            shape = (1, 1)
        array = np.empty(shape, [(name, object) for name in names])
        for name, column in columns.items():
            array[name] = column
        return array

    def _is_part(self, child: Any) -> bool:
        """Whether it is a field of a struct array: references, without a class."""
        return (
            isinstance(child, self._h5.Dataset)
            and "MATLAB_class" not in child.attrs
            and self._h5.check_ref_dtype(child.dtype) is self._h5.Reference
        )

    def _fields(self, item: Any) -> list[str]:
        there = list(item) if isinstance(item, self._h5.Group) else None
        if "MATLAB_fields" not in item.attrs:
            return there or []
        noted = [b"".join(np.asarray(letters).ravel().tolist()).decode() for letters in item.attrs["MATLAB_fields"]]
        if there is not None and sorted(noted) != sorted(there):
            raise MatFileError("a struct has other fields than it says; the file is damaged")
        return noted


def _boxed(value: Any) -> NDArray[Any]:
    box = np.empty((1, 1), object)
    box[0, 0] = value
    return box


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value or "")


def _check_storage(item: Any) -> None:
    """Refuse an array whose bytes are not in this file."""
    if item.is_virtual or item.external:
        raise MatFileError("an array lies in another file, which a .mat file has no use for; it is not followed")
    there = item.id.get_storage_size()
    if item.size * item.dtype.itemsize > (_PACKED * there if item.chunks else there):
        raise MatFileError(
            f"an array says that it has {item.size:,} elements, and the file has {there:,} bytes of it; it is damaged"
        )
