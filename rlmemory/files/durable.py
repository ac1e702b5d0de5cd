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
    """One process at a time, where folders can be locked; the lock of a process that was killed is free."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks on folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):  # said, since a child that was forked meanwhile has the handle too
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder that is there after a power cut too, unless it exists."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        flush_folder(folder.parent)


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
