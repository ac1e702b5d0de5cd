"""Generation folders: written beside the ones that are there, and renamed when they are complete."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ..errors import CheckpointError, NotAvailableError
from . import durable, manifest
from .columns import Column, Part, parts, segment_rows
from .manifest import Manifest
from .state import Meta

_NAME = re.compile(r"gen-(\d{6,12})")
_UNFINISHED = ".unfinished-"
#: Generations that are kept of each tag, and of those without one.
KEPT = 2


def generations(root: Path) -> list[Path]:
    """The generation folders, oldest first."""
    found = [(int(match[1]), root / name) for name in os.listdir(root) if (match := _NAME.fullmatch(name))]
    return [path for _, path in sorted(found) if path.is_dir() and not path.is_symlink()]


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a generation, checked."""
    with durable.opened(folder / manifest.FILE) as file:
        return manifest.from_bytes(file.read())


def save(root: Path, state: Meta, columns: list[Column], tag: str | None) -> None:
    """Write a generation; all or nothing."""
    durable.make_folder(root)
    with durable.only_writer(root):
        _sweep(root)
        there = generations(root)
        number = int(there[-1].name[4:]) + 1 if there else 1
        unfinished = root / f"{_UNFINISHED}{number:06d}"
        unfinished.mkdir()
        try:
            _write(unfinished, _before(there), state, columns, tag)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        os.replace(unfinished, root / f"gen-{number:06d}")
        durable.flush_folder(root)
        _prune(root)


def _write(
    folder: Path,
    before: tuple[Path, Manifest] | None,
    state: Meta,
    columns: list[Column],
    tag: str | None,
) -> None:
    segment = segment_rows(columns, state["capacity"])
    files: dict[str, int] = {}
    for part in parts(columns, state["next_id"] - state["length"], state["next_id"], segment):
        if before is not None and _taken_over(part, folder, *before):
            files[part.file] = before[1].files[part.file]
            continue
        with open(folder / part.file, "xb") as file:
            files[part.file] = part.write(file)
            durable.flush(file)
    with open(folder / manifest.FILE, "xb") as file:
        file.write(manifest.to_bytes(manifest.make(state, tag, segment, files)))
        durable.flush(file)
    durable.flush_folder(folder)


def _before(there: list[Path]) -> tuple[Path, Manifest] | None:
    """The newest generation, if its manifest can be read."""
    try:
        return (there[-1], read_manifest(there[-1])) if there else None
    except (CheckpointError, NotAvailableError):
        return None


def _taken_over(part: Part, folder: Path, before: Path, its: Manifest) -> bool:
    """Link a file of the generation before, if its bytes are those that would be written now."""
    if part.file not in its.files:
        return False
    old = before / part.file
    try:
        with durable.opened(old) as file:
            if os.fstat(file.fileno()).st_size != part.size or not part.is_in(file):
                return False
        os.link(old, folder / part.file)
    except (CheckpointError, OSError):  # it is gone, or there are no links on this file system
        return False
    return True


def _sweep(root: Path) -> None:
    """Remove what saves that were killed left behind."""
    for name in os.listdir(root):
        if name.startswith(_UNFINISHED):
            shutil.rmtree(root / name, ignore_errors=True)


def _prune(root: Path) -> None:
    """Remove generations of which there are newer ones. First the name goes, so that none is ever half there."""
    count: dict[str | None, int] = {}
    for folder in reversed(generations(root)):
        try:
            tag = read_manifest(folder).tag
        except (CheckpointError, NotAvailableError):
            tag = None
        count[tag] = count.get(tag, 0) + 1
        if count[tag] > KEPT:
            old = root / f"{_UNFINISHED}{folder.name}"
            os.replace(folder, old)
            shutil.rmtree(old, ignore_errors=True)
