"""Files that are on the disk when the call returns, or not there at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import CheckpointError


def flush(file: BinaryIO) -> None:
    """Wait until the disk has the file's bytes."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Wait until the disk has the folder's names."""
    if os.name == "nt":  # Windows has no handle for that
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """One process at a time; a lock that a killed one held is free."""
    with suppress(ImportError):
        import fcntl

        with open(folder / ".lock", "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    yield


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A plain file to read; a link, a pipe or a folder in its place is an error."""
    with ExitStack() as stack:
        try:
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise CheckpointError(f"{path.name}: not a plain file")
            file = stack.enter_context(open(path, "rb"))
        except OSError as error:
            raise CheckpointError(f"{path.name}: {error.strerror}") from error
        yield file


def sizes(folder: Path) -> dict[str, int]:
    """The plain files of a folder, and their bytes."""
    try:
        with os.scandir(folder) as entries:
            return {e.name: e.stat(follow_symlinks=False).st_size for e in entries if e.is_file(follow_symlinks=False)}
    except OSError as error:
        raise CheckpointError(f"{folder.name}: {error.strerror}") from error
