"""Environments whose every value is known beforehand."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

DATA = Path(__file__).resolve().parent.parent / "data"
BOX = spaces.Box(-1, 1, (2,), np.float32)
MODES = list(AutoresetMode)


class Tiny(gym.Env):
    """Observes how many steps it has taken, plus `first`, and ends after `limit` of them; any action space."""

    def __init__(self, action_space: spaces.Space = BOX, limit: int = 3, first: int = 0, cut: bool = False) -> None:
        self.action_space, self.limit, self.first, self.cut = action_space, limit, first, cut
        self.observation_space = spaces.Box(-1000, 1000, (1,), np.float32)
        self.received: list[Any] = []

    def observe(self) -> np.ndarray:
        return np.full(1, self.first + self.t, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.t += 1
        self.received.append(action)
        end = self.t >= self.limit
        return self.observe(), 1.0, end and not self.cut, end and self.cut, {}


class TinyDict(Tiny):
    """The same with a Dict observation of two channels."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plain = self.observation_space
        self.observation_space = spaces.Dict({"count": plain, "odd": spaces.Discrete(2)})

    def observe(self):
        return {"count": super().observe(), "odd": np.int64(self.t % 2)}


def vector(limits, mode, action_space: spaces.Space = BOX, kind: type[Tiny] = Tiny, **keywords: Any) -> SyncVectorEnv:
    """One environment for each limit; the observations of the i-th begin at 100 * i."""
    makers = [
        lambda i=i, limit=limit: kind(action_space, limit, 100 * i, cut=i % 2 == 1) for i, limit in enumerate(limits)
    ]
    return SyncVectorEnv(makers, autoreset_mode=mode, **keywords)


def decoded(value: Any) -> Any:
    """A value of the recorded cases."""
    if isinstance(value, dict) and value.get("kind") == "array":
        return np.array(value["data"], dtype=value["dtype"]).reshape(value["shape"])
    if isinstance(value, dict) and value.get("kind") == "key":
        return tuple(value["data"])
    if isinstance(value, dict):
        return {key: decoded(part) for key, part in value.items()}
    return [decoded(part) for part in value] if isinstance(value, list) else value


def same(a: Any, b: Any) -> bool:
    """Equal dtypes, shapes and values, NaN equal to NaN."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def check_clean(env: gym.Env) -> None:
    """Gymnasium's own check, with every warning an error but the one that there is a wrapper."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r"[\s\S]*is different from the unwrapped version")
        check_env(env, skip_render_check=True)
