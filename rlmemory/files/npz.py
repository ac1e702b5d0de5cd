"""A checkpoint as one .npz file, which NumPy can open too."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import CheckpointError, NotAvailableError
from . import durable, manifest
from .columns import Column, parts
from .manifest import Manifest
from .state import Meta

_BROKEN = (
    zipfile.BadZipFile, struct.error, zlib.error, EOFError, RuntimeError, ValueError, OverflowError, KeyError,
    MemoryError, OSError, IndexError, NotImplementedError,
)  # fmt: skip


def save(path: Path, state: Meta, columns: list[Column], tag: str | None) -> None:
    """Write the file; all or nothing."""
    durable.make_folder(path.parent)
    with durable.only_writer(path.parent):
        unfinished = path.with_name(f".{path.name}.unfinished")  # what a killed save left is replaced
        try:
            with open(unfinished, "wb") as raw:
                _write(raw, state, columns, tag)
                durable.flush(raw)
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        durable.flush_folder(path.parent)


def _write(raw: BinaryIO, state: Meta, columns: list[Column], tag: str | None) -> None:
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
        files = {}
        for part in parts(columns, state["next_id"] - state["length"], state["next_id"], 0):
            with archive.open(zipfile.ZipInfo(part.file), "w", force_zip64=True) as file:
                files[part.file] = part.write(cast("BinaryIO", file))
        archive.writestr(zipfile.ZipInfo(manifest.FILE), manifest.to_bytes(manifest.make(state, tag, 0, files)))


class Archive:
    """A .npz file to read."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive = archive
        self.sizes: dict[str, int] = {}
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
                raise CheckpointError(f"{info.filename!r:.60}: compressed or encrypted; checkpoints are neither")
            if info.filename in self.sizes:
                raise CheckpointError(f"{info.filename!r:.60}: there twice")
            self.sizes[info.filename] = info.file_size
        if sum(self.sizes.values()) > size:
            raise CheckpointError("its entries are larger than the file")

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """An entry to read."""
        if name not in self.sizes:
            raise CheckpointError(f"{name}: missing")
        with self._archive.open(name) as file:
            yield cast("BinaryIO", file)

    def manifest(self) -> Manifest:
        """Its manifest, checked."""
        with self.opened(manifest.FILE) as file:
            found = manifest.from_bytes(file.read())
        if found.segment:
            raise CheckpointError(f"{manifest.FILE}: that of a folder")
        return found


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open a file; whatever is wrong with it is a CheckpointError."""
    if not path.is_file():
        raise CheckpointError(f"{path.name}: not a file")
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            yield Archive(archive, size)
    except (CheckpointError, NotAvailableError):
        raise
    except _BROKEN as error:
        raise CheckpointError(f"{path.name}: not a .npz file as it was written ({error!r:.100})") from error
