"""Entries of nested dicts, by a string or by a tuple of strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from .errors import MissingKeyError, SpecError

#: The way to an entry, from the outermost dict in.
Path: TypeAlias = tuple[str, ...]
#: What a user writes for it.
Key: TypeAlias = str | tuple[Any, ...]


def as_path(name: str, key: Any) -> Path:
    """A key as the tuple of its parts; tuples in tuples are joined."""
    if isinstance(key, str):
        return (key,)
    if isinstance(key, tuple) and key:
        return tuple(part for inner in key for part in as_path(name, inner))
    raise SpecError(f"{name}: expected a key, which is a string or a tuple of strings, got {key!r}")


def as_paths(name: str, keys: Any) -> list[Path]:
    """One key (a string or a tuple), or a list of them, as a list of paths."""
    if not isinstance(keys, list):
        return [as_path(name, keys)]
    if not keys:
        raise SpecError(f"{name}: expected at least one key, got an empty list")
    return [as_path(name, key) for key in keys]


def shown(path: Path) -> Key:
    """A path as a user writes it."""
    return path[0] if len(path) == 1 else path


def find(data: Mapping[str, Any], path: Path) -> Any:
    """The entry at a path, or None when there is none."""
    entry: Any = data
    for part in path:
        # Not `part in entry`: for a Gymnasium Dict space that asks whether it contains a sample.
        entry = entry.get(part) if isinstance(entry, Mapping) else None
    return entry


def need(data: Mapping[str, Any], path: Path, what: str) -> Any:
    """The entry at a path, or an error that says what was looked for and what there is."""
    entry = find(data, path)
    if entry is None:
        raise MissingKeyError(f"{what}: no entry {shown(path)!r}; the data has {[shown(p) for p in leaves(data)]}")
    return entry


def put(data: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A new dict with one entry more, or another one; dicts that the path does not touch are shared."""
    new = dict(data)
    if len(path) == 1:
        new[path[0]] = value
        return new
    inner = new.get(path[0], {})
    if not isinstance(inner, Mapping):
        raise SpecError(f"{shown(path)!r}: the entry {path[0]!r} is an array, and holds no entries of its own")
    new[path[0]] = put(inner, path[1:], value)
    return new


def leaves(data: Mapping[str, Any]) -> list[Path]:
    """The paths of all entries that are not dicts."""
    found: list[Path] = []
    for key, value in data.items():
        if isinstance(value, Mapping):
            found += [(key, *rest) for rest in leaves(value)]
        else:
            found.append((key,))
    return found


def check_pairs(sources: list[Path], targets: list[Path]) -> None:
    """Each source has a target of its own, which is no source and lies in none."""
    if len(sources) != len(targets):
        raise SpecError(f"{len(sources)} in_keys and {len(targets)} out_keys: each action needs one place to go")
    for i, target in enumerate(targets):
        for other in [*targets[:i], *sources]:
            shorter = min(len(target), len(other))
            if target[:shorter] == other[:shorter]:
                raise SpecError(f"out_keys: {shown(target)!r} would write over {shown(other)!r}; give other out_keys")
