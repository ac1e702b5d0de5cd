"""Gymnasium wrappers: the last action as part of the observation.

``rlmemory.wrappers.vector`` has the twin for vector environments. This is the one part of the package that imports
Gymnasium, which comes with the extra ``rlmemory[gym]``.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

try:
    import gymnasium as gym
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'rlmemory.wrappers needs gymnasium, which comes with the extra "gym": pip install "rlmemory[gym]"',
        name="gymnasium",
    ) from error

from ..autoreset import autoreset_mode
from ._arrange import Arrangement, checked_entry

__all__ = ["LastActionObservation", "vector"]


class LastActionObservation(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Makes the action of the step before part of the observation.

    Parameters
    ----------
    env : gymnasium.Env
        With an action space of Box, Discrete, MultiDiscrete or MultiBinary, or Tuple or Dict of these.
    key : str, keyword-only, default "last_action"
        A Dict observation gains this key. Any other becomes a Dict with the keys ``observation`` and this one.
    default : "zeros", "nan", number, array_like, or a tuple or dict of them, default "zeros"
        What stands there after a reset: broadcast to the entry's shape. Of a Tuple or Dict action, one for all parts
        or, arranged as the action, one for each.
    flatten : bool, default False
        Join observation and last action to one flat array instead, the last action at the end.
    encoding : {"raw", "one_hot"}, default "raw"
        "one_hot" writes Discrete and MultiDiscrete actions as zeros and ones, so that "no action yet", all zeros, is
        not action 0.

    Attributes
    ----------
    observation_space : gymnasium.Space
        The last action has the action's own space, widened to hold the default: with ``default=-1``, ``Discrete(3)``
        becomes ``Discrete(4, start=-1)``. No space of Gymnasium holds NaN, so ``check_env`` refuses ``default="nan"``.
        When flattened, a float observation keeps its dtype if that holds every whole-numbered action exactly.

    Raises
    ------
    SpecError, ShapeError, DataTypeError, ValueNotRepresentableError
        When the key is taken, the default does not fit the action, the encoding has nothing to encode, or a space has
        no fixed size.

    See Also
    --------
    rlmemory.wrappers.vector.LastActionObservation : for vector environments.
    rlmemory.LastAction : on dicts of arrays.

    Notes
    -----
    TorchRL's counterpart is the transform ``LastAction``; its entry has no limits, while this one keeps those of the
    action. The action is copied, so a caller may use its array again. An action of another shape, or one that would
    change in the space's dtype, raises before the environment takes a step; so does one on a GPU. Around Gymnasium's
    ``Autoreset``, the step that only resets gives the default. `env.action_space` and the inner environment stay as
    they are, and ``gymnasium.make(env.spec)`` builds it again.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from rlmemory.wrappers import LastActionObservation
    >>> env = LastActionObservation(gym.make("CartPole-v1"), default=-1)
    >>> env.observation_space["last_action"]
    Discrete(3, start=-1)
    >>> env.reset(seed=0)[0]["last_action"]
    np.int64(-1)
    >>> env.step(1)[0]["last_action"]
    np.int64(1)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        key: str = "last_action",
        default: Any = "zeros",
        flatten: bool = False,
        encoding: str = "raw",
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, key=key, default=default, flatten=flatten, encoding=encoding)
        gym.Wrapper.__init__(self, env)
        self._entry = checked_entry(env.action_space, key, default, encoding)
        self._arrangement = Arrangement(env.observation_space, self._entry, key, flatten)
        self.observation_space = self._arrangement.space
        self._resets_itself = autoreset_mode(env) == "next_step"
        self._ended = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; the last action is the default."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._ended = False
        return self._arrangement.join(observation, self._entry.begin()), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; the last action is this one, also beside the last observation of an episode."""
        last = self._entry.encode(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._resets_itself:
            if self._ended:
                last = self._entry.begin()
            self._ended = bool(np.logical_or(terminated, truncated))
        return self._arrangement.join(observation, last), reward, terminated, truncated, info


def __getattr__(name: str) -> Any:
    if name == "vector":
        return importlib.import_module(".vector", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
