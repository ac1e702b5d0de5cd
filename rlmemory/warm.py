"""Compile every kernel ahead of the first call that needs it."""

from __future__ import annotations

import numpy as np

from . import kernels


def warmup() -> None:
    """Load numba and compile every kernel, or load them from the cache on disk.

    The first sample of a process does this for the kernels that it needs; call `warmup` to have it over before
    something is timed, or before a process forks. One compilation serves every spec. These are the kernels of the CPU:
    those of a GPU are compiled when they are first used.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> rlm.warmup()
    """
    from .memory import ReplayMemory
    from .prioritized import PrioritizedReplayMemory
    from .returns import returns_to_go
    from .specs import NumericSpec
    from .trajectories import split_trajectories

    memory = ReplayMemory(NumericSpec(()), NumericSpec(()), 4, seed=0)
    row = np.zeros(2)
    memory.extend(row, row, reward=row, next_observation=row, terminated=row, source=np.arange(2))
    memory.sample(1)
    memory.sample(1, replace=False)
    memory.set([0], reward=[0.0])
    kernels.active().move(row.view(np.uint8), np.zeros((1, 3), np.int64), np.zeros(1, np.uint8))
    by_priority = PrioritizedReplayMemory(NumericSpec(()), NumericSpec(()), 4, seed=0)
    by_priority.extend_from(memory.all())
    by_priority.update_priorities(by_priority.sample(1).id, [1.0])
    flags = np.zeros((1, 1), np.bool_)
    returns_to_go(flags, flags)
    split_trajectories({"done": flags})
