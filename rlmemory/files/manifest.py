"""The manifest of a checkpoint: what it holds, and the CRC-32 of each of its files and of itself."""

from __future__ import annotations

import datetime
import json
import zlib
from typing import Any, NamedTuple

from ..errors import CheckpointError
from .columns import parts
from .plain import member, whole
from .state import Meta, checked, skeleton, specs_of

FILE = "manifest.json"


class Manifest(NamedTuple):
    """What stands in ``manifest.json``."""

    state: Meta
    tag: str | None
    saved: str
    segment: int
    files: dict[str, int]  # CRC-32, by name


def make(state: Meta, tag: str | None, segment: int, files: dict[str, int]) -> Manifest:
    """A manifest of now."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Manifest(state, tag, now, segment, files)


def to_bytes(manifest: Manifest) -> bytes:
    """The text of the file."""
    body = manifest._asdict()
    text = {"manifest": body, "crc32": zlib.crc32(_canonical(body))}
    return json.dumps(text, indent=1, allow_nan=False).encode()


def _canonical(body: Any) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def from_bytes(data: bytes) -> Manifest:
    """The manifest in a file, checked; its names are those of its own parts and of nothing else."""
    try:
        text = json.loads(data.decode())
        body = member(text, "manifest", dict, FILE)
        sound = zlib.crc32(_canonical(body)) == member(text, "crc32", int, FILE)
    except (ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{FILE}: not the text that was written ({type(error).__name__})") from error
    if not sound:
        raise CheckpointError(f"{FILE}: damaged (its CRC-32 does not hold)")
    state = checked(member(body, "state", dict))
    files = member(body, "files", dict)
    if not all(type(crc) is int for crc in files.values()):
        raise CheckpointError(f"{FILE}: a CRC-32 is not a number")
    return Manifest(
        state,
        member(body, "tag", (str, type(None))),
        member(body, "saved", str),
        whole(body, "segment", 0, 2**48),
        files,
    )


def expected(manifest: Manifest, sizes: dict[str, int]) -> dict[str, Any]:
    """The specs, once it is certain that all files are there and have the sizes that these ask for.

    `sizes`: bytes of the files that are there.
    """
    state = manifest.state
    made = specs_of(state, sum(sizes.values()))
    length = state["length"]
    columns = skeleton(state, made)
    _check_count(manifest, len(columns))
    for part in parts(columns, state["next_id"] - length, state["next_id"], manifest.segment):
        if part.file not in manifest.files:
            raise CheckpointError(f"{FILE}: does not know {part.file}")
        if part.file not in sizes:
            raise CheckpointError(f"{part.file}: missing")
        if sizes[part.file] != part.size:
            raise CheckpointError(f"{part.file}: {sizes[part.file]} bytes, the manifest says {part.size}")
    return made


def _check_count(manifest: Manifest, columns: int) -> None:
    """Before a list is made of parts: as many as the manifest names."""
    begin = manifest.state["next_id"] - manifest.state["length"]
    each = 1
    if manifest.segment:
        each = -(-manifest.state["next_id"] // manifest.segment) - begin // manifest.segment
        each = each if manifest.state["length"] else 0
    if each * columns != len(manifest.files):
        raise CheckpointError(f"{FILE}: {len(manifest.files)} files, and there should be {each * columns}")
