"""The last action as part of the observation of a vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from ..autoreset import autoreset_mode
from ._arrange import Arrangement, checked_entry
from ._entry import Entry, mapped

__all__ = ["LastActionObservation"]


class LastActionObservation(gym.vector.VectorWrapper, gym.utils.RecordConstructorArgs):
    """Makes the actions of the step before part of the observations of a vector environment.

    Parameters
    ----------
    envs : gymnasium.vector.VectorEnv
        Of n environments, in any autoreset mode.
    key, flatten, encoding
        As in `rlmemory.wrappers.LastActionObservation`.
    default : "zeros", "nan", number, array_like, or a tuple or dict of them, default "zeros"
        As there; an array may also have a row for each environment, (n, ...).

    Raises
    ------
    SpecError, ShapeError, DataTypeError, ValueNotRepresentableError
        As there.
    ValueError
        For an autoreset mode that Gymnasium does not have.

    See Also
    --------
    rlmemory.wrappers.LastActionObservation : for one environment.

    Notes
    -----
    By ``envs.metadata["autoreset_mode"]``: in NEXT_STEP the step after an end ignores its action and gives the reset
    observation, beside which stands the default, for that row only. In SAME_STEP the returned row is the reset
    observation already and has the default, and each of ``info["final_obs"]`` gets the action that led to it. In
    DISABLED, and in ``reset`` anywhere, ``options["reset_mask"]`` says which rows get the default; the others keep
    theirs, and the caller's dict stays as it is. TorchRL's transform does the same with its ``_reset`` mask. Actions
    and ends are needed on the host.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np
    >>> from rlmemory.wrappers.vector import LastActionObservation
    >>> envs = LastActionObservation(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), encoding="one_hot")
    >>> observation, info = envs.reset(seed=0)
    >>> observation["last_action"]
    array([[0, 0],
           [0, 0]])
    >>> envs.step(np.array([0, 1]))[0]["last_action"]
    array([[1, 0],
           [0, 1]])
    """

    def __init__(
        self,
        envs: gym.vector.VectorEnv[Any, Any, Any],
        *,
        key: str = "last_action",
        default: Any = "zeros",
        flatten: bool = False,
        encoding: str = "raw",
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, key=key, default=default, flatten=flatten, encoding=encoding)
        gym.vector.VectorWrapper.__init__(self, envs)
        count = envs.num_envs
        self._mode = autoreset_mode(envs)
        self._entry = checked_entry(envs.single_action_space, key, default, encoding, (count,))
        self._arrangement = Arrangement(envs.single_observation_space, self._entry, key, flatten)
        self.single_observation_space = self._arrangement.space
        self.observation_space = (
            batch_space(self._arrangement.space, count)
            if flatten
            else self._arrangement.keyed(envs.observation_space, batch_space(self._entry.space, count))
        )
        self._ended = np.zeros(count, np.bool_)
        self._last: Entry = self._entry.begin()

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those in ``options["reset_mask"]``; their last actions are the default."""
        given = None if options is None else options.get("reset_mask")
        rows = np.ones(self.num_envs, np.bool_) if given is None else np.array(given)
        observation, info = self.env.reset(seed=seed, options=None if options is None else dict(options))
        self._last = self._with_default(self._last, rows)
        self._ended &= ~rows
        return self._join(observation), info

    def step(self, actions: Any) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take a step in each environment."""
        last = self._entry.encode(actions)
        observation, reward, terminated, truncated, info = self.env.step(actions)
        ended = np.logical_or(terminated, truncated)
        if self._mode == "next_step":
            last = self._with_default(last, self._ended)
        elif self._mode == "same_step" and ended.any():
            info = self._with_final(info, last, ended)
            last = self._with_default(last, ended)
        self._ended, self._last = ended, last
        return self._join(observation), reward, terminated, truncated, info

    # ---- details ----------------------------------------------------------------------------------------------------

    def _join(self, observation: Any) -> Any:
        last = mapped(np.copy, self._last)  # the caller may write into what it gets
        return self._arrangement.join_rows(observation, last, self.env.observation_space)

    def _with_default(self, last: Entry, rows: NDArray[np.bool_]) -> Entry:
        if not rows.any():
            return last

        def chosen(default: NDArray[Any], kept: NDArray[Any]) -> NDArray[Any]:
            return np.where(rows.reshape(-1, *(1,) * (default.ndim - 1)), default, kept)

        return mapped(chosen, self._entry.begin(), last)

    def _with_final(self, info: dict[str, Any], last: Entry, ended: NDArray[np.bool_]) -> dict[str, Any]:
        """The info with the last actions beside the observations that ended the episodes; the inner one stays."""
        final = info.get("final_obs")
        if final is None:
            return info
        if isinstance(final, (Mapping, tuple)) or np.asarray(final).dtype != object:
            final = list(iterate(self.env.observation_space, final))
        joined = np.full(self.num_envs, None, dtype=object)
        for row in np.flatnonzero(ended):
            joined[row] = self._arrangement.join(final[row], mapped(lambda part, row=row: part[row].copy(), last))
        return {**info, "final_obs": joined}
