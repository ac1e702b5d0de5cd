"""A policy in an environment, recorded."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .accept import at_least
from .autoreset import is_vector
from .devices import to_host
from .memory import ReplayMemory
from .recorder import Recorder


def record_rollout(
    env: Any,
    policy: Callable[[Any], Any] | None,
    steps: int,
    memory: ReplayMemory,
    *,
    progress: bool = True,
    seed: int | None = None,
) -> range:
    """Run a policy in an environment and store what happens.

    Parameters
    ----------
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        It is reset first, and again after every episode where it does not do so itself.
    policy : callable of an observation that returns an action, or None
        Of a vector environment, it gets and gives batches. None: random actions of the action space.
    steps : int
        Calls of ``env.step``. A vector environment gives up to ``num_envs`` experiences in each.
    memory : ReplayMemory
    progress : bool, keyword-only, default True
        Show a bar while it runs, if the standard error is a terminal and tqdm is installed.
    seed : int, optional
        For the first ``env.reset``, and for the action space when `policy` is None.

    Returns
    -------
    range
        The ids of the new experiences. When there are more than the capacity, only the last are live.

    Raises
    ------
    ValueError
        For a negative number of steps.

    See Also
    --------
    Recorder : for a loop of your own.

    Notes
    -----
    When it stops in the middle of an episode, also by an exception, ``memory.end_episode`` says so: what is stored
    next does not continue it. Other threads may store in the meantime, and then some of the ids are theirs. The bar is
    switched off by ``progress=False``. Environments and policies may work on a GPU: `Recorder` says what is copied.

    Examples
    --------
    >>> import gymnasium as gym, rlmemory as rlm
    >>> env = gym.make("Pendulum-v1")
    >>> memory = rlm.ReplayMemory.from_env(env)
    >>> rlm.record_rollout(env, None, 250, memory, seed=0)
    range(0, 250)
    >>> memory.episodes().length
    array([200,  50])
    """
    count = at_least("steps", steps, 0)
    if policy is None and seed is not None:
        env.action_space.seed(seed)
    begin = memory.next_id
    with Recorder(memory, env) as recorder, _Bar(count, progress) as bar:
        observation, _ = env.reset(seed=seed)
        recorder.reset(observation)
        for number in range(count):
            action = env.action_space.sample() if policy is None else policy(observation)
            observation, reward, terminated, truncated, info = env.step(action)
            recorder.step(action, observation, reward, terminated, truncated, info)
            bar.update(1)
            if recorder.waits and number + 1 < count:
                observation = _reset_ended(env, recorder, np.logical_or(to_host(terminated), to_host(truncated)))
    return range(begin, memory.next_id)


def _reset_ended(env: Any, recorder: Recorder, ends: NDArray[np.bool_]) -> Any:
    if not is_vector(env):
        observation, _ = env.reset()
        recorder.reset(observation)
    else:
        observation, _ = env.reset(options={"reset_mask": np.array(ends)})
        recorder.reset(observation, mask=ends)
    return observation


class _Bar:
    """A progress bar on a terminal, or nothing."""

    def __init__(self, total: int, wanted: bool) -> None:
        self._bar: Any = None
        if wanted:
            try:
                tqdm = importlib.import_module("tqdm")
            except ModuleNotFoundError:  # the bar is no reason to fail
                return
            # disable=None: tqdm asks whether the standard error is a terminal.
            self._bar = tqdm.tqdm(total=total, desc="recording", unit="step", disable=None, leave=False)

    def update(self, steps: int) -> None:
        if self._bar is not None:
            self._bar.update(steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
