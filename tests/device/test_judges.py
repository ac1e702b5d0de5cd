"""The functions of hindsight memories work on the host: an array on a GPU is an error that names the function."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm

from .pairs import GOALS, story
from .support import WRAPPERS, needs_device

pytestmark = needs_device


def zeros(observation: Any, action: Any, following: Any) -> np.ndarray:
    assert isinstance(action, np.ndarray)
    return np.zeros(len(action), np.float32)


def nowhere(observation: Any, action: Any, following: Any) -> np.ndarray:
    return np.zeros(len(action), np.bool_)


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("kind", [rlm.HindsightReplayMemory, rlm.PrioritizedHindsightReplayMemory])
@pytest.mark.parametrize("name", ["reward_fn", "is_done_fn"])
def test_a_function_that_gives_an_array_on_the_device_is_named(name, kind, device, wrap):
    functions = {"reward_fn": zeros, "is_done_fn": nowhere}
    usual = functions[name]
    functions[name] = lambda *given: wrap(usual(*given))
    memory = GOALS.memory(20, kind, seed=0, device=device, **functions)
    memory.extend(**story(GOALS, np.random.default_rng(0), 15))
    wanted = rf"{name}: the function gave back an array on a GPU \({type(wrap(np.ones(1))).__name__}\).*to_host"
    for ask in (lambda: memory.sample(16), memory.generate_hindsight):
        with pytest.raises(rlm.DataTypeError, match=wanted):
            ask()


@pytest.mark.parametrize("name", ["reward_fn", "is_done_fn"])
def test_so_is_one_of_an_environment(name):
    class Env:
        observation_space = action_space = None
        unwrapped = SimpleNamespace(
            compute_reward=lambda achieved, desired, info: lift("reward_fn", np.zeros(len(achieved), np.float32)),
            compute_terminated=lambda achieved, desired, info: lift("is_done_fn", np.zeros(len(achieved), np.bool_)),
        )

    def lift(which: str, value: np.ndarray) -> Any:
        return rlm.to_device(value) if which == name else value

    class Memory(rlm.HindsightReplayMemory):
        @classmethod
        def from_env(cls, env: Any, capacity: int = 10, **keywords: Any) -> Any:
            return GOALS.memory(capacity, rlm.HindsightReplayMemory, seed=0, **keywords)

    memory = Memory.from_goal_env(Env(), 20)
    memory.extend(**story(GOALS, np.random.default_rng(0), 15))
    with pytest.raises(rlm.DataTypeError, match=f"{name}: .*on a GPU"):
        memory.sample(16)


def test_the_last_action_asks_for_arrays_of_the_host():
    last = rlm.LastAction(action_spec=rlm.NumericSpec((2,)))
    lifted = rlm.to_device(np.zeros((3, 2)))
    for data in ({"action": lifted}, {"action": np.zeros((3, 2)), "done": rlm.to_device(np.zeros(3, np.bool_))}):
        with pytest.raises(rlm.DataTypeError, match=r"(action|done).*to_host"):
            last.step(data, {})
    with pytest.raises(rlm.DataTypeError, match=r"last_action.*to_host"):
        last.reset({"last_action": lifted})
