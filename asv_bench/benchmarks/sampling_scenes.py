"""Memories that choose in other ways than uniformly, filled like those of `scenes`."""

from __future__ import annotations

from typing import Any

import numpy as np

import rlmemory as rlm

EPISODE = 50


def prioritized(capacity: int) -> rlm.PrioritizedReplayMemory:
    """Rows of 165 bytes, with priorities from 0 to 1."""
    memory = rlm.PrioritizedReplayMemory(
        rlm.NumericSpec((17,), "float32"), rlm.NumericSpec((6,), "float32"), capacity, reward="float32", seed=0
    )
    rng = np.random.default_rng(0)
    rows = rng.random((4096, 17), np.float32)
    while len(memory) < capacity:
        memory.extend(
            rows, rows[:, :6].copy(), reward=rows[:, 0].copy(), next_observation=rows,
            terminated=np.arange(4096) % 200 == 199,
        )  # fmt: skip
    for first in range(0, capacity, 1 << 16):
        ids = np.array(memory.ids[first : first + (1 << 16)])
        memory.update_priorities(ids, rng.random(ids.size))
    return memory


def reached(observation: Any, action: Any, following: Any) -> Any:
    """Sparse reward: 0 where the goal is nearer than 0.05, else -1."""
    gap = following["achieved_goal"] - observation["desired_goal"]
    return np.where(np.einsum("ij,ij->i", gap, gap) < 0.05**2, np.float32(0), np.float32(-1))


def hindsight(capacity: int) -> rlm.HindsightReplayMemory:
    """Observations of 11 float32 with goals of 3 beside them: 165 bytes a row, in episodes of 50 steps."""
    spec = {
        "observation": rlm.NumericSpec((11,), "float32"),
        "achieved_goal": rlm.NumericSpec((3,), "float32"),
        "desired_goal": rlm.NumericSpec((3,), "float32"),
    }
    memory = rlm.HindsightReplayMemory(
        spec, rlm.NumericSpec((6,), "float32"), capacity, reward="float32", reward_fn=reached, strategy="future", seed=0
    )
    rng = np.random.default_rng(0)
    count = 80 * EPISODE
    rows = {name: rng.random((count, *part.shape), np.float32) for name, part in spec.items()}
    while len(memory) < capacity:
        memory.extend(
            rows, rng.random((count, 6), np.float32), reward=np.full(count, -1, np.float32), next_observation=rows,
            terminated=np.zeros(count, np.bool_), truncated=np.arange(count) % EPISODE == EPISODE - 1,
        )  # fmt: skip
    return memory
