"""D4RL: one HDF5 file of flat columns, in which episodes end at terminals or at timeouts."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ..accept import accept_flag
from ..batch import Experience
from ..devices import to_host
from ..errors import FileFormatError, ReplayMemoryError, StructureError
from .assembled import Bools, check_rows, differs, experience_of, shifted, take
from .hdf5 import Group, check_names, created, opened

_COLUMNS = ("observations", "actions", "rewards", "terminals")


def read_d4rl(path: str | os.PathLike[str], *, extra: Sequence[str] = (), source: int = 0) -> Experience:
    """Read a data set in the format of D4RL.

    Parameters
    ----------
    path : path-like
        An HDF5 file with `observations`, `actions`, `rewards` and `terminals`, and mostly `timeouts`, each with N
        rows; perhaps `next_observations`.
    extra : sequence of str, keyword-only
        Names under `infos` that become the user's own fields, such as "action_log_probs".
    source : int, keyword-only, default 0
        The source of every row. One source is enough: the episodes follow each other, and each has an end.

    Returns
    -------
    Experience
        `terminals` are `terminated`, `timeouts` are `truncated`. Where a file ends, or where `next_observations` show
        that something else follows, the row is truncated too.

    Raises
    ------
    FileFormatError
        For a file that is damaged, that lacks columns, or whose columns have different lengths.
    NotAvailableError
        Without h5py.

    Notes
    -----
    Without `next_observations`, the last row of an episode that was not terminated has no next observation in the
    file: it is left out, as in D4RL's own ``qlearning_dataset``, and the row before it is the truncated one. A
    terminated row stays, with its own observation in place of the next, whose value counts for nothing. Rewards and
    flags of shape (N, 1) are read as (N,).
    """
    with opened(path) as root:
        columns = {name: root.array(name) for name in _COLUMNS}
        for name in ("timeouts", "next_observations"):
            if name in root:
                columns[name] = root.array(name)
        infos = {name: _info(root, name) for name in extra}
    where = os.fspath(path)
    try:
        columns = {name: _flat(name, array) for name, array in columns.items()}
        rows = len(columns["actions"])
        for name, array in [*columns.items(), *((f"infos/{name}", array) for name, array in infos.items())]:
            check_rows(name, array, rows, f"there are {rows} actions")
        return _experience(columns, infos, rows, source)
    except ReplayMemoryError as error:
        raise FileFormatError(f"{where}: {error}") from error


def _info(root: Group, name: str) -> np.ndarray:
    *groups, last = name.split("/")
    place = root.group("infos")
    for group in groups:
        place = place.group(group)
    return place.array(last)


def _flat(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim == 0:
        raise FileFormatError(f"{name}: expected an array with an axis of rows, got a scalar")
    scalar = name in ("rewards", "terminals", "timeouts")
    return array[:, 0] if scalar and array.ndim == 2 and array.shape[1] == 1 else array


def _experience(columns: dict[str, np.ndarray], infos: dict[str, np.ndarray], rows: int, source: int) -> Experience:
    observation, action, reward = (columns[name] for name in _COLUMNS[:3])
    terminated = accept_flag("terminals", columns["terminals"], (rows,))
    truncated = accept_flag("timeouts", columns.get("timeouts", np.zeros(rows, np.bool_)), (rows,)) & ~terminated
    following = columns.get("next_observations")
    if following is None:
        kept, following, truncated = shifted(observation, terminated, truncated, np.zeros(rows, np.bool_))
    else:
        if following.shape != observation.shape or following.dtype != observation.dtype:
            raise FileFormatError(
                f"next_observations: expected {observation.dtype}{observation.shape} like the observations, "
                f"got {following.dtype}{following.shape}"
            )
        kept = np.arange(rows)
        truncated = truncated | (_breaks(observation, following) & ~terminated)
    return experience_of(
        observation[kept],
        action[kept],
        reward[kept],
        following,
        terminated[kept],
        truncated,
        source=source,
        extra=take(infos, kept),
    )


def _breaks(observation: np.ndarray, following: np.ndarray) -> Bools:
    """Rows after which something else follows than their next observation."""
    result = np.ones(len(observation), np.bool_)
    if len(observation):
        result[:-1] = differs(following[:-1], observation[1:])
    return result


def write_d4rl(path: str | os.PathLike[str], experience: Experience) -> None:
    """Write a data set in the format of D4RL.

    Parameters
    ----------
    path : path-like
        The file, replaced when all is written.
    experience : Experience
        With one observation and one action channel. Its rows are written source after source. Arrays on a GPU are
        copied to the host first.

    Raises
    ------
    StructureError
        For dict or tuple channels, which the format has no place for: `write_minari` has.
    NotAvailableError
        Without h5py.

    Notes
    -----
    `next_observations` are written, so nothing is left out when the file is read again; the user's own fields go
    under `infos`. `source` and `id` have no place in the format.
    """
    experience = to_host(experience)
    for name in ("observation", "action"):
        if not isinstance(getattr(experience, name), np.ndarray):
            raise StructureError(f"{name}: D4RL has one array for it, not several channels; use write_minari")
    check_names("extra", experience.extra)
    order = np.argsort(experience.source, kind="stable")
    with created(path) as file:
        columns = {
            "observations": experience.observation,
            "actions": experience.action,
            "rewards": experience.reward,
            "next_observations": experience.next_observation,
            "terminals": experience.terminated,
            "timeouts": experience.truncated & ~experience.terminated,
            **{f"infos/{name}": array for name, array in experience.extra.items()},
        }
        for name, array in columns.items():
            file.create_dataset(name, data=array[order])
