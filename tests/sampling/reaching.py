"""Small hindsight memories: one number is achieved, and the goal is one that never is."""

from __future__ import annotations

from typing import Any

import numpy as np

import rlmemory as rlm

from .support import Spec

GOAL = {"achieved_goal": Spec(()), "desired_goal": Spec(())}
WANTED = 99.0  # a goal that is never achieved


def reward_fn(observation: Any, action: Any, next_observation: Any) -> np.ndarray:
    return np.where(next_observation["achieved_goal"] == observation["desired_goal"], 0.0, -1.0)


def is_done_fn(observation: Any, action: Any, next_observation: Any) -> np.ndarray:
    met: np.ndarray = next_observation["achieved_goal"] == next_observation["desired_goal"]
    return met


def memory_of(strategy: str = "final", capacity: int = 100, **keywords: Any) -> rlm.HindsightReplayMemory:
    keywords = {"reward_fn": reward_fn, "is_done_fn": is_done_fn, "seed": 0, **keywords}
    return rlm.HindsightReplayMemory(GOAL, Spec(()), capacity, strategy=strategy, **keywords)


def step(memory: Any, t: float, *, after: float | None = None, **keywords: Any) -> int:
    """From achieved goal t to t + 1."""
    seen = {"achieved_goal": t, "desired_goal": WANTED}
    following = {"achieved_goal": t + 1.0 if after is None else after, "desired_goal": WANTED}
    keywords = {"terminated": False, **keywords}
    identity: int = memory.append(seen, t, reward=-1.0, next_observation=following, **keywords)
    return identity


def episode(memory: Any, length: int = 3, *, first: float = 0.0, source: int = 0, end: str = "truncated") -> Any:
    for t in range(length):
        flags = {end: True} if end and t == length - 1 else {}
        step(memory, first + t, source=source, **flags)
    return memory


def relabelled(batch: Any) -> np.ndarray:
    goal = batch.observation["desired_goal"]
    assert np.array_equal(goal, batch.next_observation["desired_goal"])
    return goal != WANTED


# Every way in which `sample` gives what it relabelled.
OPTIONS: dict[str, dict[str, Any]] = {
    "single": {"previous": True},
    "window": {"sequence_length": 3, "burn_in": 1, "previous": True},
    "time major": {"sequence_length": 3, "burn_in": 1, "previous": True, "time_major": True},
    "start": {"sequence_length": 3, "padding": "start"},
    "sums": {"n_step": 3, "previous": True},
}
