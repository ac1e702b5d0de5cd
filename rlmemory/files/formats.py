"""Which formats there are, how a file of each is recognised, and what reads and writes it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..batch import Experience
from ..errors import FileFormatError, NotAvailableError
from .assembled import memory_from

_HDF5 = b"\x89HDF\r\n\x1a\n"
_MATLAB = b"MATLAB "
_ZIP = b"PK\x03\x04"


class Format(NamedTuple):
    """One kind of file.

    Attributes
    ----------
    name : str
        What the command line calls it.
    title : str
    holds : callable
        Whether a path that exists looks like this format, from its first bytes and names. Formats are asked in order.
    suffixes : tuple of str
        Of new files; "" is a folder.
    reader, writer : str
        ``module:function`` of this package, or "" where there is none: ``reader(path) -> Experience`` (or a memory),
        ``writer(path, experience)``. The writer "save" is ``memory.save(path)``.
    bars : bool
        Whether both take ``progress=``.
    """

    name: str
    title: str
    holds: Callable[[Path], bool]
    suffixes: tuple[str, ...]
    reader: str = ""
    writer: str = ""
    bars: bool = False


def _begins(path: Path, text: bytes, size: int = 512) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(size).startswith(text)


def _is_matlab(path: Path) -> bool:
    return _begins(path, _MATLAB) or (path.suffix == ".mat" and path.is_file())


def _is_npz(path: Path) -> bool:
    return path.suffix == ".npz" and _begins(path, _ZIP)


def _is_checkpoint(path: Path) -> bool:
    return path.is_dir() and any(any(path.glob(pattern)) for pattern in ("manifest*", "*/manifest*"))


def _is_minari(path: Path) -> bool:
    if path.is_dir():
        return (path / "data" / "main_data.hdf5").is_file() or (path / "main_data.hdf5").is_file()
    if not _begins(path, _HDF5):
        return False
    from .hdf5 import opened

    with opened(path) as root:
        return any(key.startswith("episode_") for key in root.keys())  # noqa: SIM118


def _is_d4rl(path: Path) -> bool:
    return _begins(path, _HDF5)


#: A new format is one more line here.
FORMATS: tuple[Format, ...] = (
    Format("mat", "MATLAB file", _is_matlab, (".mat",), "files.matguess:read_mat_by_looks", "files.matfile:write_mat"),
    Format(
        "minari",
        "Minari data set",
        _is_minari,
        ("",),
        "files.minari:read_minari",
        "files.minari:write_minari",
        bars=True,
    ),
    Format("d4rl", "D4RL data set", _is_d4rl, (".hdf5", ".h5"), "files.d4rl:read_d4rl", "files.d4rl:write_d4rl"),
    Format("npz", "checkpoint in one file", _is_npz, (".npz",), "files.checkpoint:load", "save"),
    Format("checkpoint", "checkpoint folder", _is_checkpoint, (".checkpoint",), "files.checkpoint:load", "save"),
)


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format of a file or folder that exists.

    Raises
    ------
    FileNotFoundError
        When there is nothing at `path`.
    FileFormatError
        When it is none that is known.
    """
    where = Path(path)
    where.stat()
    for one in FORMATS:
        if one.holds(where):
            return one
    known = ", ".join(one.title for one in FORMATS)
    raise FileFormatError(f"{where}: none of the known formats ({known}); read_table reads a CSV file by its columns")


def format_for(path: str | os.PathLike[str], name: str | None = None) -> Format:
    """The format of a new file, by its name or by that of the format.

    Raises
    ------
    FileFormatError
        When no format has such a name or suffix.
    """
    suffix = Path(path).suffix
    for one in FORMATS:
        if one.name == name or (name is None and suffix in one.suffixes):
            return one
    names = ", ".join(f"{one.name} ({' '.join(one.suffixes) or 'a folder'})" for one in FORMATS)
    raise FileFormatError(f"{path}: no format has the suffix {suffix!r}; there are {names}")


def read_any(path: str | os.PathLike[str], *, progress: bool = False) -> tuple[Format, Experience]:
    """What a file holds, whatever its format.

    Raises
    ------
    FileFormatError, OSError
        When it cannot be read.
    NotAvailableError
        When the reader of its format, or a package that the reader needs, is not there.
    """
    one = format_of(path)
    bars = {"progress": progress} if one.bars else {}
    found = _function(path, one, one.reader, "read")(path, **bars)
    if isinstance(found, Experience):
        return one, found
    if hasattr(found, "all"):
        return one, found.all()
    raise FileFormatError(f"{path}: a {one.title} that holds {type(found).__name__}, and no experiences")


def write_any(
    path: str | os.PathLike[str], experience: Experience, name: str | None = None, *, progress: bool = False
) -> Format:
    """Write an experience in the format that its name or suffix says.

    Raises
    ------
    ReplayMemoryError, OSError
        As `read_any`.
    """
    one = format_for(path, name)
    if one.writer == "save":
        memory: Any = memory_from(experience)
        if not hasattr(memory, "save"):
            raise _not_here(path, one, "write")
        memory.save(path)
    else:
        bars = {"progress": progress} if one.bars else {}
        _function(path, one, one.writer, "write")(path, experience, **bars)
    return one


def _function(path: Any, one: Format, where: str, verb: str) -> Callable[..., Any]:
    module, _, name = where.partition(":")
    package = __name__.split(".")[0]
    try:
        found = getattr(importlib.import_module(f"{package}.{module}"), name, None)
    except ModuleNotFoundError as error:
        if error.name != f"{package}.{module}":
            raise
        found = None
    if found is None:
        raise _not_here(path, one, verb)
    function: Callable[..., Any] = found
    return function


def _not_here(path: Any, one: Format, verb: str) -> NotAvailableError:
    return NotAvailableError(f"{path}: a {one.title}, which this version of rlmemory cannot {verb}")
