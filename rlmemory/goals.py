"""Where in an observation the goal stands, and where what was achieved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import SpecError
from .structures import Structure

#: (measurement channel, indices, goal channel, indices)
GoalCondition = tuple[Any, Any, Any, Any]


class Goal(NamedTuple):
    """One pair: the leaf and the flat indices that are measured, and the leaf and the indices of the goal."""

    measured: int
    measured_at: NDArray[np.int64]
    goal: int
    goal_at: NDArray[np.int64]


def parse_goals(goals: Sequence[GoalCondition] | None, observation: Structure) -> tuple[Goal, ...]:
    """What the user said of goals, checked against the observation's channels.

    Parameters
    ----------
    goals : sequence of (measurement channel, indices, goal channel, indices), or None
        A channel is a key of the dict or a place in the tuple of observations; 0 where there is one channel only.
        Indices count the channel's entries in C order, from 0; None means all. None instead of the list: the dict keys
        ``achieved_goal`` and ``desired_goal``.
    observation : Structure

    Raises
    ------
    SpecError
        When a channel does not exist, an index is out of range, or the two sides do not fit.
    """
    if goals is None:
        if not {"achieved_goal", "desired_goal"} <= set(observation.keys):
            raise SpecError(
                f"goals: the observation has the channels {list(observation.keys)}, not achieved_goal and "
                "desired_goal; give goals=[(measurement channel, indices, goal channel, indices)]"
            )
        goals = [("achieved_goal", None, "desired_goal", None)]
    if not goals:
        raise SpecError("goals: expected at least one (measurement channel, indices, goal channel, indices)")
    return tuple(_parse(i, goal, observation) for i, goal in enumerate(goals))


def _parse(number: int, goal: GoalCondition, observation: Structure) -> Goal:
    where = f"goals[{number}]"
    if not isinstance(goal, (tuple, list)) or len(goal) != 4:
        raise SpecError(f"{where}: expected (measurement channel, indices, goal channel, indices), got {goal!r}")
    measured, goal_leaf = (_leaf(where, channel, observation) for channel in (goal[0], goal[2]))
    a, b = observation.specs[measured], observation.specs[goal_leaf]
    measured_at = _indices(where, goal[1], a.shape)
    goal_at = _indices(where, goal[3], b.shape)
    if measured_at.size != goal_at.size:
        raise SpecError(f"{where}: {measured_at.size} numbers are measured, and the goal has {goal_at.size}")
    if a.dtype != b.dtype:
        raise SpecError(f"{where}: what is measured is {a.dtype} and the goal {b.dtype}; give both one dtype")
    if measured == goal_leaf and np.intersect1d(measured_at, goal_at).size:
        raise SpecError(f"{where}: the same entries are measured and are the goal")
    return Goal(measured, measured_at, goal_leaf, goal_at)


def _leaf(where: str, channel: Any, observation: Structure) -> int:
    if observation.form == "single" and channel in (0, None):
        return 0
    if channel not in observation.keys:
        raise SpecError(f"{where}: no observation channel {channel!r}; there are {list(observation.keys)}")
    return observation.keys.index(channel)


def _indices(where: str, given: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
    size = int(np.prod(shape))
    if given is None:
        return np.arange(size)
    indices = np.arange(size)[given] if isinstance(given, slice) else np.atleast_1d(np.asarray(given))
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not indices.size:
        raise SpecError(f"{where}: expected whole numbers, a slice or None as indices, got {given!r}")
    if int(indices.min()) < 0 or int(indices.max()) >= size:
        raise SpecError(f"{where}: indices count from 0 to {size - 1} here, got {given!r}")
    if np.unique(indices).size != indices.size:
        raise SpecError(f"{where}: an index is given twice in {given!r}")
    return indices.astype(np.int64)
