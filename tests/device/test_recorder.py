"""Environments on a GPU, recorded: what is stored is what the same environment on the host gives."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rlmemory as rlm
from rlmemory import devices
from rlmemory.kernels import _cuda

from .support import WRAPPERS, Foreign, agree, needs_device

pytestmark = needs_device


class Counter(gym.Env):
    """Observes how many steps were taken, and ends after `limit` of them."""

    def __init__(self, limit: int = 3, nested: bool = False) -> None:
        self.limit, self.nested, self.t = limit, nested, 0
        box = spaces.Box(0, 1e6, (2,))
        self.observation_space = spaces.Dict({"a": box, "b": spaces.Box(0, 9, (), np.float32)}) if nested else box
        self.action_space = spaces.Box(-1, 1, (1,))

    def observe(self) -> Any:
        a = np.full(2, self.t, np.float32)
        return {"a": a, "b": np.float32(self.t)} if self.nested else a

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.t += 1
        return self.observe(), float(np.ravel(action)[0]), self.t >= self.limit, False, {}


def lifted(value: Any, wrap: Any) -> Any:
    if isinstance(value, dict):
        return {key: lifted(part, wrap) for key, part in value.items()}
    return wrap(np.asarray(value))


class OnDevice:
    """An environment whose arrays are on the device, all of them."""

    def __init__(self, env: Any, wrap: Any) -> None:
        self.env, self.wrap = env, wrap

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, **keywords: Any) -> tuple[Any, Any]:
        observation, info = self.env.reset(**keywords)
        return lifted(observation, self.wrap), info

    def step(self, action: Any) -> tuple[Any, ...]:
        *given, info = self.env.step(rlm.to_host(action))
        final = info.get("final_obs")
        if final is not None:
            boxed = np.full(len(final), None, object)
            for i, one in enumerate(final):
                boxed[i] = None if one is None else lifted(one, rlm.to_device)
            info = {**info, "final_obs": boxed}
        return (*(lifted(value, self.wrap) for value in given), info)


def action(rng: np.random.Generator, count: int | None) -> np.ndarray:
    return rng.uniform(-1, 1, (1,) if count is None else (count, 1)).astype(np.float32)


def recorded(env: Any, device: str, wrap: Any = None, steps: int = 8) -> rlm.ReplayMemory:
    """A memory of some steps of a policy that acts on the device too."""
    rng, memory = np.random.default_rng(0), rlm.ReplayMemory.from_env(env, 100, device=device)
    count = getattr(env, "num_envs", None)
    used = env if wrap is None else OnDevice(env, wrap)
    rlm.record_rollout(
        used, lambda _: action(rng, count) if wrap is None else wrap(action(rng, count)), steps, memory,
        progress=False, seed=0,
    )  # fmt: skip
    return memory


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_single_environment_on_the_device(wrap, device, nested):
    here, there = recorded(Counter(nested=nested), "cpu"), recorded(Counter(nested=nested), device, wrap)
    assert len(here) == 8
    agree(here.all(), there.all())
    agree(here.episodes(), there.episodes())


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("nested", [False, True])
def test_a_vector_environment_on_the_device(wrap, device, mode, nested):
    def made() -> Any:
        return SyncVectorEnv([lambda n=n: Counter(n, nested) for n in (2, 3)], autoreset_mode=mode)

    here, there = recorded(made(), "cpu"), recorded(made(), device, wrap)
    agree(here.all(), there.all())
    assert here.check().broken.size == there.check().broken.size == 0


@pytest.mark.parametrize("count", [None, 2])
def test_observations_and_actions_do_not_pass_through_the_host(count, monkeypatch):
    """Only rewards and flags do, as long as no row is left out."""
    seen: list[tuple[int, ...]] = []
    usual = devices._lowered
    monkeypatch.setattr(devices, "_lowered", lambda leaf: seen.append(getattr(leaf, "shape", ())) or usual(leaf))
    env: Any = Counter(99) if count is None else SyncVectorEnv([lambda: Counter(99)] * 2)
    memory = rlm.ReplayMemory.from_env(env, 100, device="cuda")
    recorder = rlm.Recorder(memory, env)
    shape = () if count is None else (count,)
    recorder.reset(rlm.to_device(np.zeros((*shape, 2), np.float32)))
    for _ in range(3):
        recorder.step(
            rlm.to_device(np.zeros((*shape, 1), np.float32)), rlm.to_device(np.ones((*shape, 2), np.float32)),
            *(rlm.to_device(np.zeros(shape, dtype)) for dtype in ("float32", "bool", "bool")),
        )  # fmt: skip
    assert seen
    assert set(seen) == {shape}
    assert len(memory) == 3 * (count or 1)


def test_an_array_that_is_used_again_was_copied():
    env = Counter()
    memory = rlm.ReplayMemory.from_env(env, 100, device="cuda")
    shown = rlm.to_device(np.zeros(2, np.float32))
    recorder = rlm.Recorder(memory, env)
    for t in range(3):
        with _cuda.using(0):
            _cuda.upload(np.full(2, t, np.float32).view(np.uint8), shown._block)
        if not t:
            recorder.reset(shown)
        else:
            recorder.step(rlm.to_device(np.zeros(1, np.float32)), shown, 0.0, False, False)
    whole = rlm.to_host(memory.all())
    assert whole.observation[:, 0].tolist() == [0, 1]
    assert whole.next_observation[:, 0].tolist() == [1, 2]


def test_errors_name_the_argument_and_leave_the_recorder_as_it_was():
    env = Counter()
    memory = rlm.ReplayMemory.from_env(env, 100, device="cuda")
    recorder = rlm.Recorder(memory, env)
    with pytest.raises(rlm.DataTypeError, match=r"observation: .*cuda:7"):
        recorder.reset(Foreign(np.zeros(2, np.float32), number=7))
    with pytest.raises(rlm.StructureError, match="before the first step"):
        recorder.step(np.zeros(1, np.float32), np.zeros(2, np.float32), 0.0, False, False)
    recorder.reset(rlm.to_device(np.zeros(2, np.float32)))
    with pytest.raises(rlm.DataTypeError, match="action: expected float32"):
        recorder.step(rlm.to_device(np.zeros(1)), np.zeros(2, np.float32), 0.0, False, False)
    assert len(memory) == 0
