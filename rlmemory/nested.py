"""Nested mappings of arrays: finding, writing and mapping their leaves, and naming them in errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .device_array import DeviceArray
from .errors import DataTypeError, MissingKeyError, ShapeError, StructureError
from .placing import lent

#: A leaf or a branch: a string, or a tuple of strings that leads through nested mappings.
NestedKey: TypeAlias = str | tuple[str, ...]
Path: TypeAlias = tuple[str, ...]
Nested: TypeAlias = dict[str, Any]


def path_of(name: str, key: Any, *, empty: bool = False) -> Path:
    """A key as a tuple of strings; `name` is the parameter that it was given for."""
    parts = (key,) if isinstance(key, str) else key
    if isinstance(parts, tuple) and all(isinstance(part, str) for part in parts) and (parts or empty):
        return parts
    raise StructureError(f"{name}: expected a string or a tuple of strings, got {key!r}")


def shown(path: Path) -> str:
    """A key as its user would write it."""
    return repr(path[0] if len(path) == 1 else path)


def check_mapping(name: str, data: Any) -> None:
    """Refuse what is no mapping."""
    if not isinstance(data, Mapping):
        raise StructureError(f"{name}: expected a mapping of arrays, got {type(data).__name__}")


def find(data: Any, path: Path) -> Any:
    """What lies at `path`, or None."""
    for part in path:
        if not isinstance(data, Mapping) or part not in data:
            return None
        data = data[part]
    return data


def put(data: Nested, path: Path, value: Any) -> None:
    """Write into nested dicts that are the caller's own, making those that are missing."""
    for depth, part in enumerate(path[:-1], start=1):
        inner = data.setdefault(part, {})
        if not isinstance(inner, dict):
            raise StructureError(f"{shown(path)}: cannot be written, as {shown(path[:depth])} is an array")
        data = inner
    data[path[-1]] = value


def named(data: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[str, Any]]:
    """The leaves, and how errors name them."""
    for key, value in data.items():
        here = (*path, key)
        if isinstance(value, Mapping):
            yield from named(value, here)
        else:
            yield shown(here), value


def lent_mapping(data: Mapping[str, Any], number: int, path: Path = ()) -> Nested:
    """New nested dicts of the same arrays on a device, whatever library they are of."""
    result: Nested = {}
    for key, value in data.items():
        here = (*path, key)
        inner = isinstance(value, Mapping)
        result[key] = lent_mapping(value, number, here) if inner else lent(shown(here), value, number)
    return result


def mapped(data: Mapping[str, Any], change: Callable[[Path, Any], Any], path: Path = ()) -> Nested:
    """New nested dicts with every leaf changed; ``change(path, array)`` gives the new ones."""
    result: Nested = {}
    for key, value in data.items():
        here = (*path, key)
        result[key] = mapped(value, change, here) if isinstance(value, Mapping) else change(here, as_array(here, value))
    return result


def without(data: Nested, path: Path) -> None:
    """Take away the leaf at `path`, and the branches that are empty then."""
    branch = find(data, path[:-1])
    del branch[path[-1]]
    if not branch and len(path) > 1:
        without(data, path[:-1])


def as_array(path: Path, value: Any) -> NDArray[Any]:
    """A leaf as an array of any dtype whose values are its bytes; one on a device as it is."""
    if isinstance(value, DeviceArray):
        return value  # type: ignore[return-value]  # shape, dtype, reshape: all that is asked of it before it is moved
    if isinstance(value, tuple):
        raise StructureError(f"{shown(path)}: expected an array or a mapping of arrays, got a tuple; name its parts")
    if isinstance(value, np.ma.MaskedArray):
        raise DataTypeError(f"{shown(path)}: a masked array would lose its mask; give an array, as of .filled(...)")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"{shown(path)}: cannot be read as one array ({error})") from error
    if array.dtype.hasobject or array.dtype.kind == "T":
        raise DataTypeError(
            f"{shown(path)}: an array of dtype {array.dtype} holds references, not values; give numbers, or strings of "
            "a fixed length as np.array(..., dtype=str) makes them"
        )
    return array


def required(data: Mapping[str, Any], path: Path) -> NDArray[Any]:
    """The array at `path`, copied to the host if it is on a device, or an error that names it."""
    value = find(data, path)
    if value is None:
        raise MissingKeyError(f"no entry {shown(path)}; there are {sorted(map(str, data))}")
    if isinstance(value, Mapping):
        raise StructureError(f"{shown(path)}: expected an array, got a mapping with keys {list(value)}")
    return as_array(path, value.copy_to_host() if isinstance(value, DeviceArray) else value)
