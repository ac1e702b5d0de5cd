"""Columns of rows into an `Experience`, and an `Experience` into episodes: what every format shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..accept import accept_flag, accept_source, as_numeric
from ..batch import Channels, Experience, Generated
from ..devices import to_host
from ..errors import ShapeError, StructureError
from ..memory import ReplayMemory
from ..specs import NumericSpec

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


# ---- structures of arrays -------------------------------------------------------------------------------------------


def mapped(function: Callable[..., Any], value: Channels, *others: Channels) -> Channels:
    """The same structure, with a function applied to every array (and to those of others at its place)."""
    if isinstance(value, Mapping):
        return {key: function(part, *(other[key] for other in others)) for key, part in value.items()}
    return tuple(map(function, value, *others)) if isinstance(value, tuple) else function(value, *others)


def named(name: str, value: Channels) -> Iterator[tuple[str, Any]]:
    """The arrays of a structure with their names, as ``observation['camera']``."""
    if isinstance(value, (Mapping, tuple)):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in items:
            yield f"{name}[{key!r}]", part
    else:
        yield name, value


def numeric(name: str, value: Channels) -> Channels:
    """A structure whose leaves are arrays of numbers with at least one axis."""
    arrays = [as_numeric(label, part) for label, part in named(name, value)]
    if not arrays:
        raise StructureError(f"{name}: there must be at least one channel")
    for (label, _), array in zip(named(name, value), arrays, strict=True):
        if array.ndim == 0:
            raise ShapeError(f"{label}: expected an array with an axis of rows, got the scalar {array!r}")
    leaves = iter(arrays)
    return mapped(lambda _: next(leaves), value)


def rows_of(name: str, value: Channels) -> int:
    """How many rows a structure has, which is the same for all of its arrays."""
    counts = {label: len(part) for label, part in named(name, value)}
    if len(set(counts.values())) != 1:
        raise ShapeError(f"{name}: the channels have different numbers of rows: {counts}")
    return next(iter(counts.values()))


def check_rows(name: str, value: Channels, rows: int, why: str) -> None:
    """Refuse a structure with another number of rows; `why` says what they were compared with."""
    found = rows_of(name, value)
    if found != rows:
        raise ShapeError(f"{name}: expected {rows} entries, got {found}: {why}")


# ---- into an experience ---------------------------------------------------------------------------------------------


def experience_of(
    observation: Channels,
    action: Channels,
    reward: Any,
    next_observation: Channels,
    terminated: Any,
    truncated: Any,
    *,
    source: Any = 0,
    extra: Mapping[str, Any] | None = None,
) -> Experience:
    """An `Experience` of aligned columns: every leaf has one row for each action."""
    columns = {
        "observation": numeric("observation", observation),
        "action": numeric("action", action),
        "reward": numeric("reward", reward),
        "next_observation": numeric("next_observation", next_observation),
        "extra": {key: numeric(f"extra[{key!r}]", value) for key, value in (extra or {}).items()},
    }
    rows = rows_of("action", columns["action"])
    for name, column in columns.items():
        if name != "extra" or column:
            check_rows(name, column, rows, f"there are {rows} actions")
    ended = accept_flag("terminated", terminated, (rows,))
    cut = accept_flag("truncated", truncated, (rows,)) & ~ended
    sources = np.broadcast_to(accept_source(source, (rows,)), (rows,)).copy()
    return Experience(
        **columns, terminated=ended.copy(), truncated=cut, source=sources, id=np.arange(rows, dtype=np.int64)
    )


def shifted(observation: Channels, terminated: Bools, truncated: Bools, breaks: Bools) -> tuple[Ints, Channels, Bools]:
    """Next observations of rows that have only their own.

    The next observation is the observation of the row that follows in the episode. The last row of an episode has
    none: it stays when it was terminated, where nothing follows and its own observation stands in, and is left out
    otherwise; the row before it is then the last, as truncated.

    Parameters
    ----------
    observation : structure of arrays (N, *shape)
    terminated, truncated : bool arrays (N,)
    breaks : bool array (N,)
        Rows after which another episode begins for another reason.

    Returns
    -------
    kept : int64 array (M,)
        The rows that stay.
    next_observation : structure of arrays (M, *shape)
    truncated : bool array (M,)
    """
    rows = len(terminated)
    last = terminated | truncated | breaks
    last[-1:] = True
    kept = np.flatnonzero(~last | terminated)
    following = np.where(last, np.arange(rows), np.arange(1, rows + 1))
    before_a_gap = np.zeros(rows, np.bool_)
    before_a_gap[:-1] = (last & ~terminated)[1:] & ~last[:-1]
    return kept, mapped(lambda leaf: leaf[following[kept]], observation), before_a_gap[kept]


def take(value: Channels, rows: Ints) -> Channels:
    """Some rows of a structure."""
    return mapped(lambda leaf: leaf[rows], value)


# ---- out of an experience -------------------------------------------------------------------------------------------


def differs(following: Channels, observation: Channels) -> Bools:
    """True for each row in which two structures differ in any bit."""
    unequal = mapped(lambda a, b: (_bytes_of(a) != _bytes_of(b)).any(axis=1), observation, following)
    result: Bools = np.logical_or.reduce([rows for _, rows in named("", unequal)])
    return result


def matrix(array: NDArray[Any]) -> NDArray[Any]:
    """An array as (rows, numbers of a row)."""
    return np.ascontiguousarray(array).reshape(len(array), math.prod(array.shape[1:]))


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    rows = matrix(array)
    return rows.view(np.uint8) if rows.size else np.zeros((len(array), 0), np.uint8)


def episodes_of(experience: Experience) -> list[Ints]:
    """The rows of each episode, in the order of their ends within each source.

    An episode ends at an end that was stored, where the next observation is not the observation that follows in the
    source, and with the last row of the source. Generated rows have no neighbours: each is an episode. What is on a GPU
    is copied to the host.
    """
    experience = to_host(experience)
    order = np.argsort(experience.source, kind="stable")
    if not order.size:
        return []
    done = (np.asarray(experience.terminated) | experience.truncated)[order]
    source = np.asarray(experience.source)[order]
    last = np.ones(order.size, np.bool_)
    if not isinstance(experience, Generated):
        before, after = order[:-1], order[1:]
        moved = differs(take(experience.next_observation, before), take(experience.observation, after))
        last[:-1] = done[:-1] | (source[1:] != source[:-1]) | moved
    return np.split(order, np.flatnonzero(last)[:-1] + 1)


class Summary(NamedTuple):
    """What the episodes of an experience are like, one entry each."""

    length: Ints
    returns: NDArray[Any]
    ended: NDArray[np.str_]


def summary_of(experience: Experience) -> Summary:
    """Length, return (undiscounted; of a vector reward, the sum of all components) and end of each episode."""
    experience = to_host(experience)
    episodes = episodes_of(experience)
    last = np.array([rows[-1] for rows in episodes], np.int64)
    kind = np.select(
        [experience.terminated[last], experience.truncated[last]], ["terminated", "truncated"], "running"
    ).astype("<U10")
    reward = np.asarray(experience.reward)
    wide = matrix(reward.astype(np.complex128 if reward.dtype.kind == "c" else np.float64))
    returns = np.array([wide[rows].sum() for rows in episodes], wide.dtype)
    return Summary(np.array([rows.size for rows in episodes], np.int64), returns, kind)


def memory_from(experience: Experience, capacity: int | None = None, **keywords: Any) -> ReplayMemory:
    """A memory that holds an experience, with the specs of its arrays.

    Parameters
    ----------
    experience : Experience
        As the readers of `rlmemory.files` and ``memory.all()`` give it. Arrays on a GPU are copied to the host first.
    capacity : int, optional
        Default: as many as there are experiences.
    **keywords
        As in :class:`rlmemory.ReplayMemory`, such as `seed` and `device`; the memory is on the CPU unless that says
        otherwise.

    Returns
    -------
    ReplayMemory

    Raises
    ------
    ReplayMemoryError
        When the arrays do not fit each other.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> log = rlm.files.read_simulation_log(np.arange(4.0), np.zeros(3), np.ones(3))
    >>> len(rlm.files.memory_from(log, capacity=100))
    3
    """
    experience = to_host(experience)

    def spec(leaf: Any) -> NumericSpec:
        array = np.asarray(leaf)
        return NumericSpec(array.shape[1:], array.dtype)

    memory = ReplayMemory(
        mapped(spec, experience.observation),
        mapped(spec, experience.action),
        max(1, len(experience.terminated)) if capacity is None else capacity,
        reward=spec(experience.reward),
        extra=mapped(spec, experience.extra) or None,
        **keywords,
    )
    memory.extend_from(experience)
    return memory
