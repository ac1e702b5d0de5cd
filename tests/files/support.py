"""Memories of every kind, used in every way, for the tests of what is saved."""

from __future__ import annotations

from typing import Any

import numpy as np
from core.support import equal_records

import rlmemory as rlm

GOALS = {
    "observation": rlm.NumericSpec((3,), "float32"),
    "achieved_goal": rlm.NumericSpec((2,)),
    "desired_goal": rlm.NumericSpec((2,)),
}
ACTION = rlm.FiniteSetSpec([-1, 0, 1], name="step")
EXTRA = {"log_prob": rlm.NumericSpec((), "float32"), "state": rlm.NumericSpec((2, 2), "complex64")}
CAPACITY = 40


def reward_fn(observation: Any, action: Any, following: Any) -> np.ndarray:
    return -np.abs(following["achieved_goal"] - observation["desired_goal"]).sum(axis=1) + 0 * action


def is_done_fn(observation: Any, action: Any, following: Any) -> np.ndarray:
    return (following["achieved_goal"] == observation["desired_goal"]).all(axis=1)


FUNCTIONS = {"reward_fn": reward_fn, "is_done_fn": is_done_fn}
RANKED = {"annealing_steps": 7, "importance_exponent": 0.5}
KINDS: dict[str, tuple[type[rlm.ReplayMemory], dict[str, Any]]] = {
    "plain": (rlm.ReplayMemory, {}),
    "prioritized": (rlm.PrioritizedReplayMemory, RANKED),
    "prioritized by the memory": (
        rlm.PrioritizedReplayMemory,
        {"weight_normalization": "memory", "stratified": False, "priority_epsilon": 0.0},
    ),
    "hindsight": (rlm.HindsightReplayMemory, FUNCTIONS),
    "hindsight, future": (rlm.HindsightReplayMemory, {"reward_fn": reward_fn, "strategy": "future", "goal_samples": 2}),
    "hindsight, stored": (rlm.HindsightReplayMemory, {**FUNCTIONS, "relabel": "store", "goal_samples": 1}),
    "both": (rlm.PrioritizedHindsightReplayMemory, {**FUNCTIONS, **RANKED, "strategy": "episode"}),
    "both, stored": (rlm.PrioritizedHindsightReplayMemory, {**FUNCTIONS, "relabel": "store"}),
}


def functions_of(kind: str) -> dict[str, Any]:
    """The functions that `load` needs."""
    return {name: value for name, value in KINDS[kind][1].items() if name in FUNCTIONS}


def make(kind: str, capacity: int = CAPACITY, seed: Any = 5, **keywords: Any) -> rlm.ReplayMemory:
    cls, options = KINDS[kind]
    return cls(GOALS, ACTION, capacity, reward="float32", extra=EXTRA, seed=seed, **options, **keywords)


def rows(first: int, count: int, **keywords: Any) -> dict[str, Any]:
    """Arguments of `extend`: episodes of 7 steps; every field says which row it is."""
    number = np.arange(first, first + count)

    def seen(at: np.ndarray) -> dict[str, np.ndarray]:
        goal = np.stack([at % 5, at % 3], 1).astype(float)
        return {
            "observation": np.repeat(at[:, None], 3, 1).astype(np.float32),
            "achieved_goal": goal,
            "desired_goal": np.full((len(at), 2), 2.0),
        }

    return {
        "observation": seen(number),
        "action": number % 3 - 1,
        "reward": number.astype(np.float32),
        "next_observation": seen(number + 1),
        "terminated": number % 7 == 6,
        "truncated": number % 14 == 6,
        "extra": {"log_prob": number.astype(np.float32), "state": np.ones((count, 2, 2), np.complex64) * 1j},
        **keywords,
    }


def use(memory: rlm.ReplayMemory, steps: int, sources: int = 2, first: int = 0) -> None:
    """What a training loop does."""
    for at in range(first, first + steps, 5):
        number = np.arange(at, min(at + 5, first + steps))
        memory.extend(**rows(at, number.size, source=number % sources))
        if at % 15 == 10:
            memory.end_episode(at % sources)
        batch = memory.sample(4)
        if isinstance(memory, rlm.PrioritizedReplayMemory):
            memory.update_priorities(batch.id, np.abs(batch.reward) % 4)


OPTIONS = (
    {},
    {"sequence_length": 4, "burn_in": 1},
    {"n_step": 3},
    {"sequence_length": 3, "padding": "start", "previous": True},
)


def next_batches(memory: rlm.ReplayMemory) -> list[Any]:
    """Three rounds of batches, with new priorities in between."""
    found = []
    for _ in range(3):
        found += [memory.sample(6, **options) for options in OPTIONS]
        if isinstance(memory, rlm.PrioritizedReplayMemory):
            memory.update_priorities(found[-4].id, np.linspace(0.5, 9.0, 6))
    return found


def assert_same_future(memory: rlm.ReplayMemory, other: rlm.ReplayMemory) -> None:
    assert type(memory) is type(other)
    assert (memory.capacity, memory.next_id, len(memory)) == (other.capacity, other.next_id, len(other))
    assert equal_records(memory.all(), other.all())
    for a, b in zip(next_batches(memory), next_batches(other), strict=True):
        assert equal_records(a, b)
