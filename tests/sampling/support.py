"""Small memories for the exact cases."""

from __future__ import annotations

from typing import Any

import numpy as np

import rlmemory as rlm

Spec = rlm.NumericSpec


def line(
    capacity: int,
    rewards: list[float],
    *,
    terminated: tuple[int, ...] = (),
    truncated: tuple[int, ...] = (),
    source: Any = None,
    seed: int = 0,
    **keywords: Any,
) -> rlm.ReplayMemory:
    """A memory of these rewards; id t goes from observation t to t + 1, and the ids named are ends."""
    memory = rlm.ReplayMemory(Spec(()), Spec(()), capacity, seed=seed, **keywords)
    time = np.arange(len(rewards), dtype=float)
    memory.extend(
        time, -time, reward=np.array(rewards), next_observation=time + 1, terminated=np.isin(time, terminated),
        truncated=np.isin(time, truncated), source=source,
    )  # fmt: skip
    return memory


def count(memory: rlm.ReplayMemory, rows: int, **keywords: Any) -> rlm.ReplayMemory:
    """Append rows one at a time; each says its own id."""
    for _ in range(rows):
        t = float(memory.next_id)
        memory.append(t, -t, reward=t, next_observation=t + 1, **{"terminated": False, **keywords})
    return memory


def first_with(memory: rlm.ReplayMemory, start: int, *, at: int = 0, **options: Any) -> Any:
    """The window (or sum) that was drawn for one chosen row, and its number in the batch."""
    batch = memory.sample(256, **options)
    ids = batch.id if batch.id.ndim == 1 else batch.id[:, at]
    found = np.flatnonzero(ids == start)
    assert found.size, f"id {start} was never chosen in 256 draws"
    return batch, int(found[0])


def chi_square(counts: np.ndarray, expected: np.ndarray | float) -> float:
    """How many standard deviations the chi-square statistic lies above its mean.

    With k - 1 degrees of freedom the statistic has mean k - 1 and variance 2 (k - 1). The tests ask for less than 5:
    fair draws exceed that with a probability below 1e-4 even for a few cells, where the tail is the longest, and the
    seeds are fixed. A bias of 1 % in a cell of 1e5 draws adds 10 to the statistic.
    """
    wanted = np.broadcast_to(np.asarray(expected, float), counts.shape)
    freedom = counts.size - 1
    return float((((counts - wanted) ** 2 / wanted).sum() - freedom) / np.sqrt(2 * freedom))
