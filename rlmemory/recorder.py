"""From a Gymnasium loop into a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import at_least
from .arena import Arena
from .autoreset import autoreset_mode, is_vector
from .borrowed import is_on_device, viewed
from .devices import to_host
from .errors import MissingKeyError, ShapeError, StructureError
from .memory import ReplayMemory
from .placing import working_on

Bools = NDArray[np.bool_]


class Recorder:
    """Stores the steps of an environment, single or vector, as experiences.

    Parameters
    ----------
    memory : ReplayMemory
        As ``ReplayMemory.from_env(env)`` makes one.
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        Asked for how many environments it has and when they reset, never stepped.
    source : int, keyword-only, default 0
        The source of the first environment; those of a vector environment count on from it. Recorders that share a
        memory need sources of their own.

    Raises
    ------
    ValueError
        For a negative source, or an autoreset mode that Gymnasium does not have.

    See Also
    --------
    record_rollout : the whole loop.

    Notes
    -----
    The step after an end that only resets (a vector environment in NEXT_STEP mode, or one inside ``Autoreset``) is no
    experience and is left out. In SAME_STEP mode the observation that ended an episode is taken from
    ``info["final_obs"]``. Observations are copied, since environments may use their arrays again. TorchRL's collectors
    do this inside; MATLAB's ``train`` as well. Not thread-safe; the memory is.

    Environments on a GPU: a memory there stores their observations and actions without a way through the host. Rewards,
    ends and masks are copied to the host, which waits for the device. So is everything of a step in which some rows are
    left out, final observations with those beside them, and all that goes into a memory on the CPU.

    Examples
    --------
    >>> import gymnasium as gym, rlmemory as rlm
    >>> env = gym.make("CartPole-v1")
    >>> memory = rlm.ReplayMemory.from_env(env)
    >>> with rlm.Recorder(memory, env) as recorder:
    ...     observation, info = env.reset(seed=0)
    ...     recorder.reset(observation)
    ...     for action in (0, 1, 0):
    ...         _ = recorder.step(action, *env.step(action))
    >>> len(memory)
    3
    """

    def __init__(self, memory: ReplayMemory, env: Any, *, source: int = 0) -> None:
        self.memory = memory
        self._vector = is_vector(env)
        self._mode = autoreset_mode(env)
        self._count = int(env.num_envs) if self._vector else 1
        self._sources = np.arange(self._count, dtype=np.int32) + at_least("source", source, 0)
        # The common case leaves it out, and then the memory has less to look at.
        first = int(self._sources[0])
        self._source = first if first or memory._environments > 1 else None
        self._by_hand = self._mode in ("manual", "disabled")
        self._resets_itself = self._mode == "next_step"
        self._waits = False  # for a reset, since an episode ended
        self._before: Any = None
        self._started = False
        self._ended = np.zeros(self._count, np.bool_)  # in their last step
        self._open = np.zeros(self._count, np.bool_)  # in the middle of an episode that has experiences

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def waits(self) -> bool:
        """Whether an episode has ended and its environment must be reset before the next step."""
        return self._waits

    def reset(self, observation: Any, *, mask: ArrayLike | None = None) -> None:
        """After ``env.reset``: what follows begins an episode.

        Parameters
        ----------
        observation : array_like, tuple or dict of array_like
            What ``env.reset`` returned.
        mask : bool array_like (num_envs,), optional
            Which environments of a vector environment were reset, when ``options["reset_mask"]`` said so. Default:
            all; an episode that was running is then closed with ``memory.end_episode``.

        Raises
        ------
        ShapeError
            When the mask does not have one bool for each environment.
        """
        rows = np.ones(self._count, np.bool_) if mask is None else np.array(to_host(mask))
        if rows.shape != (self._count,) or rows.dtype != np.bool_:
            raise ShapeError(f"mask: expected {self._count} bools, got {rows.dtype} of shape {rows.shape}")
        before = self._copied(observation)
        self._close(rows)
        self._ended &= ~rows
        self._waits = self._by_hand and bool(self._ended.any())
        self._before = before
        self._started = True

    def step(
        self,
        action: Any,
        observation: Any,
        reward: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        info: Mapping[str, Any] | None = None,
    ) -> range:
        """After ``env.step``: store what happened.

        Parameters
        ----------
        action : array_like, tuple or dict of array_like
            What was given to ``env.step``.
        observation, reward, terminated, truncated, info
            What it returned.

        Returns
        -------
        range
            The ids of the new experiences: at most one for each environment.

        Raises
        ------
        StructureError
            Before the first `reset`, and when an environment goes on after its episode's end without a reset.
        MissingKeyError
            When a SAME_STEP environment ended and `info` has no ``final_obs``.
        ShapeError, StructureError, DataTypeError, ValueNotRepresentableError
            As `ReplayMemory.append` raises them. Nothing is stored then.
        """
        self._check_ready()
        reward, terminated, truncated = _on_host(reward), _on_host(terminated), _on_host(truncated)
        if not self._vector:
            return self._step_one(action, observation, reward, bool(terminated), bool(truncated))
        ends = np.logical_or(terminated, truncated)
        real = ~self._ended if self._mode == "next_step" else np.ones(self._count, np.bool_)
        following = observation
        if self._mode == "same_step" and ends.any():
            following = _with_final(observation, _final_of(info), np.flatnonzero(ends))
        rows: Any = slice(None) if real.all() else real
        stays = rows is not real and self.memory.device != "cpu"  # what is on the GPU, there

        def taken(value: Any) -> Any:
            return _mapped(
                lambda leaf: leaf if stays and is_on_device(leaf) else np.asarray(_on_host(leaf))[rows], value
            )

        ids = self.memory.extend(
            taken(self._before), taken(action), reward=taken(reward), next_observation=taken(following),
            terminated=taken(terminated), truncated=taken(truncated), source=self._sources[rows],
        )  # fmt: skip
        self._before, self._ended, self._open = self._copied(observation), np.array(ends), real & ~ends
        self._waits = self._by_hand and bool(ends.any())
        return ids

    def close(self) -> None:
        """Recording stops: episodes that are still running are closed with ``memory.end_episode``.

        Notes
        -----
        Also done at the end of a ``with`` block. To go on, call `reset` again.
        """
        self._close(np.ones(self._count, np.bool_))
        self._started = False

    # ---- details ----------------------------------------------------------------------------------------------------

    def _copied(self, observation: Any) -> Any:
        return _mapped(self._copy, observation)

    def _copy(self, leaf: Any) -> Any:
        """A copy of an array: on the host, or on the memory's GPU for one that is there."""
        if not is_on_device(leaf):
            return np.array(leaf)
        arena = self.memory._arena
        if isinstance(arena, Arena):
            return to_host(leaf)
        with working_on(arena.number):
            return viewed("observation", leaf, arena.number).copy()

    def _close(self, rows: Bools) -> None:
        for source in self._sources[rows & self._open]:
            self.memory.end_episode(int(source))
        self._open &= ~rows

    def _check_ready(self) -> None:
        if not self._started:
            raise StructureError("Recorder: call reset(observation) with what env.reset() gave before the first step")
        if self._waits:
            which = f"environment {int(np.flatnonzero(self._ended)[0])}" if self._vector else "the environment"
            raise StructureError(
                f"Recorder: the episode of {which} has ended; call reset(observation) after env.reset()"
            )

    def _step_one(self, action: Any, observation: Any, reward: Any, terminated: bool, truncated: bool) -> range:
        first, over = self.memory.next_id, terminated or truncated
        if self._resets_itself and self._ended[0]:  # this step only reset
            ids = range(first, first)
        else:
            if self.memory.device == "cpu":
                action, observation = _mapped(_on_host, action), _mapped(_on_host, observation)
            first = self.memory.append(
                self._before, action, reward=reward, next_observation=observation, terminated=terminated,
                truncated=truncated, source=self._source,
            )  # fmt: skip
            ids = range(first, first + 1)
        self._before = self._copied(observation)
        self._ended[0], self._open[0], self._waits = over, bool(ids) and not over, over and self._by_hand
        return ids


def _final_of(info: Mapping[str, Any] | None) -> Any:
    if info is None or info.get("final_obs") is None:
        raise MissingKeyError('info: an episode ended in SAME_STEP mode, and info["final_obs"] is missing')
    return to_host(info["final_obs"])


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply to each array of a tuple or dict of arrays."""
    if isinstance(value, Mapping):
        return {key: _mapped(function, part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(function, part) for part in value)
    return function(value)


def _on_host(leaf: Any) -> Any:
    return to_host(leaf) if is_on_device(leaf) else leaf


def _with_final(observation: Any, final: Any, rows: NDArray[np.int64]) -> Any:
    """A copy of the observations, with the final ones in the rows that ended."""
    if isinstance(observation, Mapping):
        return {key: _with_final(part, _part(final, key), rows) for key, part in observation.items()}
    if isinstance(observation, tuple):
        return tuple(_with_final(part, _part(final, i), rows) for i, part in enumerate(observation))
    result = np.array(_on_host(observation))
    for row in rows:
        result[row] = _on_host(final[row])
    return result


def _part(final: Any, key: Any) -> Any:
    """One channel of the final observations, which come as one array of objects, or arranged as the observations."""
    if isinstance(final, (Mapping, tuple)):
        return final[key]
    return [None if one is None else one[key] for one in final]
