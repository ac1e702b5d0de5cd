"""Compile every kernel ahead of the first call that needs it."""

from __future__ import annotations

import numpy as np


def warmup() -> None:
    """Load numba and compile every kernel, or load them from the cache on disk.

    The first sample of a process does this for the kernels that it needs; call `warmup` to have it over before
    something is timed, or before a process forks. One compilation serves every spec.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> rlm.warmup()
    """
    from .memory import ReplayMemory
    from .returns import returns_to_go
    from .specs import NumericSpec
    from .trajectories import split_trajectories

    memory = ReplayMemory(NumericSpec(()), NumericSpec(()), 4, seed=0)
    row = np.zeros(2)
    memory.extend(row, row, reward=row, next_observation=row, terminated=row, source=np.arange(2))
    memory.sample(1)
    memory.sample(1, replace=False)
    memory.set([0], reward=[0.0])
    flags = np.zeros((1, 1), np.bool_)
    returns_to_go(flags, flags)
    split_trajectories({"done": flags})
