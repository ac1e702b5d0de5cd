"""Hindsight and priorities together."""

from __future__ import annotations

from .hindsight import HindsightReplayMemory
from .prioritized import PrioritizedReplayMemory


class PrioritizedHindsightReplayMemory(HindsightReplayMemory, PrioritizedReplayMemory):
    """A hindsight memory that draws by priority.

    Parameters
    ----------
    observation, action, capacity, reward_fn, is_done_fn, goals, strategy, goal_samples, relabel
        As for :class:`HindsightReplayMemory`; the functions get and give NumPy arrays, also for a memory on a GPU.
    **keywords
        As for :class:`PrioritizedReplayMemory`.

    Notes
    -----
    Rows are drawn by priority first, then some of them get new goals; the weights are those of the draw. With
    ``relabel="store"``, generated experiences begin with the largest priority, as new ones do. MATLAB:
    ``rlHindsightPrioritizedReplayMemory``.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> spec = {"achieved_goal": rlm.NumericSpec((1,)), "desired_goal": rlm.NumericSpec((1,))}
    >>> memory = rlm.PrioritizedHindsightReplayMemory(
    ...     spec, rlm.NumericSpec(()), 100, reward_fn=lambda observation, action, following: np.zeros(len(action)),
    ...     seed=0)
    >>> goal = {"achieved_goal": [0.0], "desired_goal": [1.0]}
    >>> memory.append(goal, 0.0, reward=-1.0, next_observation=goal, terminated=True)
    0
    >>> memory.sample(2).weight
    array([1., 1.])
    """
