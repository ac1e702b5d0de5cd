"""Checkpoints of a memory: saved whole or not at all, and loaded so that the next batch is the same."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..errors import CheckpointError, CheckpointWarning, NotAvailableError, ReplayMemoryError
from ..memory import ReplayMemory
from . import durable, folder, npz
from .columns import Column, parts
from .manifest import Manifest, expected
from .state import (
    FUNCTIONS,
    RANKS,
    all_columns,
    build,
    check_columns,
    check_functions,
    columns_of,
    describe,
    generator_of,
    settle,
)

Open = Callable[[str], AbstractContextManager[BinaryIO]]


class Checkpoint(NamedTuple):
    """What `checkpoints` says of one of them.

    Attributes
    ----------
    path : pathlib.Path
        Its folder or file.
    tag : str or None
        The name it was given.
    saved : str
        When: ISO 8601, UTC.
    kind : str
        Class of the memory.
    length, capacity, next_id : int
        Of the memory.
    nbytes : int
        Of its files; what generations share is counted in each.
    problem : str
        Empty, or why it cannot be read; then the entries above but for `path` and `nbytes` mean nothing.
    """

    path: Path
    tag: str | None
    saved: str
    kind: str
    length: int
    capacity: int
    next_id: int
    nbytes: int
    problem: str


def save(memory: ReplayMemory, path: str | os.PathLike[str], tag: str | None) -> None:
    """What `ReplayMemory.save` does."""
    if tag is not None and (not isinstance(tag, str) or not tag):
        raise ValueError(f"tag: expected a string that is not empty, or None, got {tag!r}")
    target = Path(path)
    with memory._lock:
        state, columns = describe(memory), all_columns(memory)
        if _is_file(target):
            npz.save(target, state, columns, tag)
        else:
            folder.save(target, state, columns, tag)


def _is_file(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


# ---- load -----------------------------------------------------------------------------------------------------------


def load(
    path: str | os.PathLike[str],
    *,
    tag: str | None = None,
    map: str | os.PathLike[str] | None = None,
    **functions: Callable[..., Any],
) -> ReplayMemory:
    """The memory that `ReplayMemory.save` wrote.

    Parameters
    ----------
    path : path-like
        The folder of the generations, or the ``.npz`` file.
    tag : str, optional
        The newest checkpoint of this name. Default: the newest of all.
    map : path-like, optional
        Keep the rows in a new file of this name instead of RAM, as ``ReplayMemory(path=...)`` does. The modes of
        `numpy.load`, "r" and "c", are not there: the rows of a checkpoint lie in many files.
    **functions
        ``reward_fn`` and ``is_done_fn`` of a hindsight memory. Functions are not saved.

    Returns
    -------
    ReplayMemory
        Or whichever of its relatives was saved.

    Raises
    ------
    CheckpointError
        When every generation (or the file) is damaged, when there is none of this tag, or when a function is lacking.
    FileNotFoundError
        When there is nothing at `path`.
    FileExistsError
        When the file `map` exists.
    NotAvailableError
        For what a newer version of the package wrote, and for ``map="r"``.
    TypeError
        For a function that the saved memory did not have.

    Warns
    -----
    CheckpointWarning
        When the newest generation is damaged and the one before is taken instead; it says what is wrong.

    See Also
    --------
    ReplayMemory.save : what is kept, and what is not.
    checkpoints : what is there.

    Notes
    -----
    Every CRC-32 is checked, and nothing in a file is run or believed: nothing is unpickled, files have to have the
    sizes that the specs ask for before room is made for them, and no name of a file is taken from a file. The RAM that
    is used is that of the rows.

    What is sampled next is what the saved memory would have given. An episode that was running is closed as cut: what
    is appended next begins an episode, as after `end_episode` (a hindsight memory that stores new goals stores none
    for the part that it has). The memory is on the CPU, wherever the saved one was: ``load(path).to("cuda")`` has it on
    a GPU. MATLAB: ``load``.

    Examples
    --------
    >>> import tempfile, rlmemory as rlm
    >>> memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 100, seed=0)
    >>> _ = memory.append(1.0, 2.0, reward=3.0, next_observation=4.0, terminated=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     memory.save(folder)
    ...     twin = rlm.load(folder)
    >>> twin.all().reward
    array([3.])
    """
    source = Path(path)
    _check_map(map)
    for name in functions:
        if name not in FUNCTIONS:
            raise TypeError(f"load: no argument {name!r}; functions are {' and '.join(FUNCTIONS)}")
    if not source.exists():
        raise FileNotFoundError(f"load: nothing at {source}")
    if _is_file(source):
        return _load_file(source, tag, map, functions)
    if not source.is_dir():
        raise CheckpointError(f"load: {source} is neither a folder nor a .npz file")
    return _load_newest(source, tag, map, functions)


def _check_map(where: Any) -> None:
    if where in ("r", "r+", "c", "w+"):
        raise NotAvailableError(
            f"map={where!r}: the rows of a checkpoint lie in many files, and cannot be mapped as they are; give the "
            "name of a new file to keep them there instead of in RAM"
        )
    if where is not None and os.path.lexists(where):
        raise FileExistsError(f"map: {os.fspath(where)} exists; give the name of a new file")


def _load_file(path: Path, tag: str | None, where: Any, functions: dict[str, Any]) -> ReplayMemory:
    with npz.opened(path) as archive:
        manifest = archive.manifest()
        if tag is not None and manifest.tag != tag:
            raise CheckpointError(f"load: {path} has the tag {manifest.tag!r}, not {tag!r}")
        check_functions(manifest.state, functions)
        return _read(manifest, archive.sizes, archive.opened, where, functions)


def _load_newest(root: Path, tag: str | None, where: Any, functions: dict[str, Any]) -> ReplayMemory:
    problems: list[str] = []
    tags: list[str | None] = []
    for generation in reversed(folder.generations(root)):
        try:
            manifest = folder.read_manifest(generation)
        except CheckpointError as error:
            problems.append(f"{generation.name}: {error}")
            continue
        tags.append(manifest.tag)
        if tag is not None and manifest.tag != tag:
            continue
        check_functions(manifest.state, functions)
        try:
            memory = _read_generation(generation, manifest, where, functions)
        except NotAvailableError:
            raise
        except ReplayMemoryError as error:
            problems.append(f"{generation.name}: {error}")
            continue
        if problems:
            what = f"{generation.name} of {manifest.saved} was loaded instead"
            warnings.warn(f"{root}: {'; '.join(problems)}; {what}", CheckpointWarning, stacklevel=3)
        return memory
    if problems:
        raise CheckpointError(f"load: no checkpoint in {root} is sound: {'; '.join(problems)}")
    if tag is not None and tags:
        raise CheckpointError(
            f"load: no checkpoint in {root} has the tag {tag!r}; there are {sorted(set(map(str, tags)))}"
        )
    raise CheckpointError(f"load: no checkpoint in {root}")


def _read_generation(generation: Path, manifest: Manifest, where: Any, functions: dict[str, Any]) -> ReplayMemory:
    def opened(name: str) -> AbstractContextManager[BinaryIO]:
        return durable.opened(generation / name)

    return _read(manifest, durable.sizes(generation), opened, where, functions)


def _read(manifest: Manifest, sizes: dict[str, int], opened: Open, where: Any, functions: Any) -> ReplayMemory:
    """The memory, from files that are checked before room is made, and while they are read."""
    state = manifest.state
    made = expected(manifest, sizes)
    generator = generator_of(state)
    length, end = state["length"], state["next_id"]
    memory = build(state, made, functions, where)
    try:
        columns = columns_of(memory)
        ranks = [Column(name, np.empty(length), end - length) for name in RANKS if _has_ranks(memory)]
        for part in parts([*columns, *ranks], end - length, end, manifest.segment):
            with opened(part.file) as file:
                part.read(file, manifest.files[part.file])
        check_columns(state, [*columns, *ranks])
    except BaseException:
        if where is not None:
            Path(where).unlink(missing_ok=True)
        raise
    settle(memory, state, ranks, generator)
    return memory


def _has_ranks(memory: ReplayMemory) -> bool:
    from ..ranked import Ranked

    return isinstance(memory, Ranked)


# ---- what is there --------------------------------------------------------------------------------------------------


def checkpoints(path: str | os.PathLike[str]) -> list[Checkpoint]:
    """The checkpoints in a folder, oldest first, or the one in a ``.npz`` file.

    Parameters
    ----------
    path : path-like
        What `ReplayMemory.save` was given.

    Returns
    -------
    list of Checkpoint

    Raises
    ------
    FileNotFoundError
        When there is nothing at `path`.

    Notes
    -----
    Manifests are read and sizes compared, which finds files that are cut short or gone. The CRC-32 of the rows is
    checked by `load`. MATLAB: ``whos("-file", name)``.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"checkpoints: nothing at {source}")
    if _is_file(source):
        return [_look(source)]
    return [_look(one) for one in folder.generations(source)] if source.is_dir() else []


def _look(path: Path) -> Checkpoint:
    nbytes = 0
    try:
        if _is_file(path):
            nbytes = path.stat().st_size
            with npz.opened(path) as archive:
                manifest, sizes = archive.manifest(), archive.sizes
                expected(manifest, sizes)
        else:
            sizes = durable.sizes(path)
            nbytes = sum(sizes.values())
            manifest = folder.read_manifest(path)
            expected(manifest, sizes)
    except ReplayMemoryError as error:
        return Checkpoint(path, None, "", "", 0, 0, 0, nbytes, str(error))
    state = manifest.state
    numbers = (state["length"], state["capacity"], state["next_id"])
    return Checkpoint(path, manifest.tag, manifest.saved, state["class"], *numbers, nbytes, "")
