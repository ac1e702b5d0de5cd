"""Minari: a folder whose HDF5 file has one group for each episode, with T + 1 observations for T actions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..accept import accept_flag
from ..batch import Channels, Experience
from ..devices import to_host
from ..errors import FileFormatError, ReplayMemoryError, ShapeError
from .assembled import Ints, check_rows, episodes_of, experience_of, mapped, named, rows_of, take
from .extras import shown
from .hdf5 import Group, check_names, created, made, opened, put, replacing

_FILE = "main_data.hdf5"
#: The version of Minari whose layout is written; later ones read it.
_VERSION = "0.5.0"
_EPISODE = re.compile(r"episode_(\d{1,18})")
_SUFFIXES = (".hdf5", ".h5")


def find_minari(path: str | os.PathLike[str]) -> Path:
    """The HDF5 file of a data set that is given by its folder, its data folder or the file itself."""
    where = Path(path)
    for candidate in (where / "data" / _FILE, where / _FILE):
        if candidate.is_file():
            return candidate
    if where.is_dir():
        raise FileFormatError(f"{where}: no Minari data set in HDF5: there is no data/{_FILE}")
    return where


def read_minari(
    path: str | os.PathLike[str], *, extra: Sequence[str] = (), source: int = 0, progress: bool = False
) -> Experience:
    """Read a Minari data set.

    Parameters
    ----------
    path : path-like
        The folder of the data set, its ``data`` folder, or the file ``main_data.hdf5``.
    extra : sequence of str, keyword-only
        Names under each episode's `infos` that become the user's own fields. Of T + 1 entries the first, which came
        with the reset, is left out.
    source : int, keyword-only, default 0
        The source of every row. One source is enough: the episodes follow each other, and each has an end.
    progress : bool, keyword-only, default False
        Show a bar while it reads, if the standard error is a terminal and tqdm is installed.

    Returns
    -------
    Experience
        The episodes in the order of their numbers. Dict and tuple spaces become dicts and tuples of arrays; those
        nested deeper become one dict, with keys such as "arm/joints". An episode of the file that ends with neither
        flag is truncated: what follows does not continue it.

    Raises
    ------
    FileFormatError
        For a file that is damaged or is no Minari data set, an episode that does not have one observation more than
        actions, or episodes that differ in their spaces.
    NotAvailableError
        Without h5py.
    """
    where = find_minari(path)
    with opened(where) as root:
        numbers = sorted((int(match[1]), key) for key in root.keys() if (match := _EPISODE.fullmatch(key)))  # noqa: SIM118
        if not numbers:
            raise FileFormatError(f"{where}: holds no episodes (groups named episode_0 and so on)")
        parts = [
            _episode(root.group(key), extra) for _, key in shown(numbers, progress, "reading episodes", len(numbers))
        ]
    try:
        joined = _joined(parts, [key for _, key in numbers])
        return experience_of(**joined, source=source)
    except ReplayMemoryError as error:
        raise FileFormatError(f"{where}: {error}") from error


def _episode(group: Group, extra: Sequence[str]) -> dict[str, Any]:
    """The columns of one episode, aligned."""
    observation, action = group.channels("observations"), group.channels("actions")
    reward, ended, cut = (group.array(name) for name in ("rewards", "terminations", "truncations"))
    infos = {name: _info(group, name) for name in extra}
    try:
        for name, column in (("observations", observation), ("actions", action), ("rewards", reward)):
            if any(array.ndim == 0 for _, array in named(name, column)):
                raise ShapeError(f"{name}: expected an axis of steps, got a scalar")
        steps = rows_of("actions", action)
        why = f"there are {steps} actions"
        check_rows("observations", observation, steps + 1, f"{why}, and one observation more than actions")
        check_rows("rewards", reward, steps, why)
        terminated = accept_flag("terminations", ended, (steps,))
        truncated = accept_flag("truncations", cut, (steps,)) & ~terminated
        truncated[-1:] |= ~terminated[-1:]
        infos = {name: _after_steps(name, array, steps) for name, array in infos.items()}
    except ReplayMemoryError as error:
        raise FileFormatError(f"{group.label}: {error}") from error
    return {
        "observation": mapped(lambda leaf: leaf[:-1], observation),
        "action": action,
        "reward": reward,
        "next_observation": mapped(lambda leaf: leaf[1:], observation),
        "terminated": terminated,
        "truncated": truncated,
        "extra": infos,
    }


def _info(group: Group, name: str) -> np.ndarray:
    *groups, last = name.split("/")
    place = group.group("infos")
    for inner in groups:
        place = place.group(inner)
    return place.array(last)


def _after_steps(name: str, array: np.ndarray, steps: int) -> np.ndarray:
    if array.ndim == 0 or len(array) not in (steps, steps + 1):
        raise ShapeError(f"infos/{name}: expected {steps} entries, or {steps + 1} with the reset; got {array.shape}")
    return array[len(array) - steps :]


def _joined(parts: list[dict[str, Any]], keys: list[str]) -> dict[str, Any]:
    """The episodes one after another."""
    layouts = [_layout(part) for part in parts]
    for key, layout in zip(keys, layouts, strict=True):
        if layout != layouts[0]:
            raise FileFormatError(f"{key} has other arrays than {keys[0]}: {layout}, and there {layouts[0]}")
    result: dict[str, Any] = {}
    for field, first in parts[0].items():
        columns = [[array for _, array in named(field, part[field])] for part in parts]
        result[field] = _filled(first, [np.concatenate(leaves) for leaves in zip(*columns, strict=True)])
    return result


def _filled(structure: Channels, arrays: list[np.ndarray]) -> Channels:
    following = iter(arrays)
    return mapped(lambda _: next(following), structure)


def _layout(part: dict[str, Any]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(label, array.dtype.name, array.shape[1:]) for field in part for label, array in named(field, part[field])]


def write_minari(path: str | os.PathLike[str], experience: Experience, *, progress: bool = False) -> None:
    """Write a Minari data set.

    Parameters
    ----------
    path : path-like
        A folder, in which ``data/main_data.hdf5`` and ``data/metadata.json`` are made or replaced; or the HDF5 file
        alone, by a name that ends in .hdf5 or .h5.
    experience : Experience
        Its rows are written source after source, one group for each episode. Arrays on a GPU are copied to the host
        first.
    progress : bool, keyword-only, default False
        Show a bar while it writes, if the standard error is a terminal and tqdm is installed.

    Raises
    ------
    StructureError
        For keys that an HDF5 file would not give back.
    NotAvailableError
        Without h5py.

    Notes
    -----
    The format keeps T + 1 observations for T actions, so an episode also ends where a next observation is not the
    observation that follows. The spaces in metadata.json are boxes without limits, of the arrays' shapes and dtypes.
    The user's own fields go under `infos`, with zeros for the reset. `source` and `id` have no place in the format.
    Each file is written under another name and then takes its place, when both are complete: a call that fails leaves
    no file and no folder that was not there before.
    """
    experience = to_host(experience)
    for field in ("observation", "action", "extra"):
        check_names(field, getattr(experience, field))
    where = Path(path)
    episodes = episodes_of(experience)
    if where.suffix in _SUFFIXES:
        with made(where.parent):
            _write(where, experience, episodes, progress)
        return
    folder = where / "data"
    target, fresh = folder / _FILE, not (folder / _FILE).exists()
    with made(folder):
        try:
            with replacing(folder / "metadata.json") as temporary:  # takes its place after the other file, at once
                temporary.write_text(json.dumps(_metadata(where.name, experience, len(episodes))), "utf-8")
                _write(target, experience, episodes, progress)
        except BaseException:
            if fresh:
                target.unlink(missing_ok=True)
            raise


def _write(path: Path, experience: Experience, episodes: list[Ints], progress: bool) -> None:
    """The HDF5 file."""
    with created(path) as file:
        for number, rows in enumerate(shown(episodes, progress, "writing episodes", len(episodes))):
            _put_episode(file.create_group(f"episode_{number}"), number, take_rows(experience, rows))


def take_rows(experience: Experience, rows: Ints) -> Experience:
    """Some rows of an experience."""
    return Experience(*(take(column, rows) for column in experience))


def _put_episode(group: Any, number: int, rows: Experience) -> None:
    group.attrs["id"] = number
    group.attrs["total_steps"] = len(rows.reward)
    observations: Channels = mapped(
        lambda before, after: np.concatenate([before, after[-1:]]), rows.observation, rows.next_observation
    )
    put(group, "observations", observations)
    put(group, "actions", rows.action)
    put(group, "rewards", rows.reward)
    put(group, "terminations", rows.terminated)
    put(group, "truncations", rows.truncated & ~rows.terminated)
    if rows.extra:
        put(group, "infos", mapped(lambda leaf: np.concatenate([np.zeros_like(leaf[:1]), leaf]), rows.extra))


def _metadata(name: str, experience: Experience, episodes: int) -> dict[str, Any]:
    return {
        "dataset_id": name if re.search(r"-v\d+$", name) else f"{name}-v0",
        "minari_version": _VERSION,
        "total_episodes": episodes,
        "total_steps": len(experience.reward),
        "data_format": "hdf5",
        "observation_space": json.dumps(_space(experience.observation)),
        "action_space": json.dumps(_space(experience.action)),
    }


def _space(value: Channels) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"type": "Dict", "subspaces": {key: _space(part) for key, part in _nested(value).items()}}
    if isinstance(value, tuple):
        return {"type": "Tuple", "subspaces": [_space(part) for part in value]}
    shape, dtype = value.shape[1:], value.dtype
    low, high = (-np.inf, np.inf)
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    elif dtype.kind == "b":
        low, high = 0, 1
    limits = {name: np.full(shape, bound).tolist() for name, bound in (("low", low), ("high", high))}
    return {"type": "Box", "dtype": dtype.name, "shape": list(shape), **limits}


def _nested(value: Mapping[str, Any]) -> dict[str, Any]:
    """Keys such as "arm/joints" as the groups that HDF5 makes of them."""
    result: dict[str, Any] = {}
    for key, part in value.items():
        first, _, rest = key.partition("/")
        if rest:
            result.setdefault(first, {})[rest] = part
        else:
            result[first] = part
    return result
