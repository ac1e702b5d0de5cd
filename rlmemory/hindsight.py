"""Hindsight experience replay: what was achieved, taken for what was wanted.

Andrychowicz et al. (2017), "Hindsight Experience Replay". The new goal is what was achieved *after* the chosen step,
both observations get it, and reward and end are found again by the user's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from .accept import at_least, one_source
from .batch import Batch, Channels, Experience, Generated
from .borrowed import is_on_device
from .errors import EmptyMemoryError
from .goals import GoalCondition, parse_goals
from .options import Options
from .relabel import STRATEGIES, Ints, Judge, Relabelling
from .results import Target
from .specs import SpecStructure

RELABEL = ("sample", "store", "none")


class HindsightReplayMemory(Relabelling):
    """A replay memory for environments with goals that also learns from goals that were reached by chance.

    Parameters
    ----------
    observation, action : NumericSpec, tuple or dict of them
    capacity : int, default 10_000
    reward_fn : callable (observation, action, next_observation) -> (N,)
        The reward of N experiences at once, arranged as the specs, each array with a first axis of N. It must not keep
        or change the arrays. They are NumPy arrays, and one is needed back, also for a memory on a GPU.
    is_done_fn : callable (observation, action, next_observation) -> (N,) bool, optional
        Whether the goal is met, so that the episode ends. Without it the stored flags stay, which with sparse rewards
        lets values grow past the goal: give it when the environment ends at the goal.
    goals : list of (measurement channel, indices, goal channel, indices), optional
        Where in the observation is measured what was achieved, and where the goal stands. Channels are keys or places;
        indices count in C order **from 0** (MATLAB's count from 1, column by column), None means all. Default: the dict
        keys ``achieved_goal`` and ``desired_goal``.
    strategy : {"final", "episode", "future"}
        Where a new goal comes from: the last step of the episode, any of its steps, or any from the step itself on.
    goal_samples : int, default 4
        k: of k + 1 samples, k get a new goal (with "final" one of two does).
    relabel : {"sample", "store", "none"}
        "sample": goals are changed in what `sample` gives, and the memory keeps what happened. "store": when an episode
        ends, experiences with new goals are stored behind it, k for each step ("final": one). "none": only
        `generate_hindsight` gives new goals, and what it made is sampled where the user stores it.
    **keywords
        As in `ReplayMemory`.

    Raises
    ------
    SpecError
        When the goals do not fit the observation.
    ValueError
        For an unknown strategy or way to relabel.

    Notes
    -----
    Generated experiences have no neighbours: no window, n-step sum or episode joins them. With windows and n-step sums,
    all steps of a window get the goal of its chosen row and every reward in it is found again; a window ends where the
    new goal is met. ``previous_reward`` stays what was earned. `epoch` gives what is stored, with no new goals.

    When a function of the user's raises, `sample` and `generate_hindsight` change nothing but the generator; with
    ``relabel="store"`` the experience that ended the episode has been stored by then, and must not be stored again.

    Draws: those of `ReplayMemory`, then 2 B uniforms: which rows get a new goal, and which one. MATLAB:
    ``rlHindsightReplayMemory``, whose functions judge one experience at a time.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> spec = {"achieved_goal": rlm.NumericSpec((1,)), "desired_goal": rlm.NumericSpec((1,))}
    >>> def reward(observation, action, next_observation):
    ...     met = (next_observation["achieved_goal"] == observation["desired_goal"]).all(axis=1)
    ...     return np.where(met, 0.0, -1.0)
    >>> memory = rlm.HindsightReplayMemory(spec, rlm.NumericSpec(()), 100, reward_fn=reward, seed=0)
    >>> for t in range(3):
    ...     seen = {"achieved_goal": [float(t)], "desired_goal": [9.0]}
    ...     after = {"achieved_goal": [t + 1.0], "desired_goal": [9.0]}
    ...     _ = memory.append(seen, 0.0, reward=-1.0, next_observation=after, terminated=False, truncated=t == 2)
    >>> memory.generate_hindsight().reward
    array([-1., -1.,  0.])
    """

    def __init__(
        self,
        observation: SpecStructure,
        action: SpecStructure,
        capacity: int = 10_000,
        *,
        reward_fn: Judge,
        is_done_fn: Judge | None = None,
        goals: Sequence[GoalCondition] | None = None,
        strategy: str = "final",
        goal_samples: int = 4,
        relabel: str = "sample",
        **keywords: Any,
    ) -> None:
        for name, function in (("reward_fn", reward_fn), ("is_done_fn", is_done_fn)):
            if not callable(function) and not (function is None and name == "is_done_fn"):
                raise TypeError(f"{name}: expected a function, got {type(function).__name__}")
        _checked_strategy(strategy)
        if relabel not in RELABEL:
            raise ValueError(f"relabel: expected 'sample' or 'store', or 'none', got {relabel!r}")
        super().__init__(observation, action, capacity, **keywords)
        self._goals = parse_goals(goals, self._groups[0])
        self._judges = (reward_fn, is_done_fn)
        self._strategy, self._relabel = strategy, relabel
        self._goal_samples = at_least("goal_samples", goal_samples, 1)
        self._direct, self._watches_ends = relabel != "sample", relabel == "store"

    @property
    def strategy(self) -> str:
        """Where a new goal comes from: "final", "episode" or "future". May be set, for what is relabelled from then."""
        return self._strategy

    @strategy.setter
    def strategy(self, value: str) -> None:
        self._strategy = _checked_strategy(value)

    @property
    def goal_samples(self) -> int:
        """Samples or generated experiences with a new goal, for each one without. May be set."""
        return self._goal_samples

    @goal_samples.setter
    def goal_samples(self, value: int) -> None:
        self._goal_samples = at_least("goal_samples", value, 1)

    @classmethod
    def from_goal_env(cls, env: Any, capacity: int = 10_000, **keywords: Any) -> Self:
        """A memory for a Gymnasium environment with goals.

        Parameters
        ----------
        env : gymnasium.Env
            Its observations are a Dict with ``achieved_goal`` and ``desired_goal``, and it has
            ``compute_reward(achieved_goal, desired_goal, info)`` for many goals at once (info is an empty dict). A
            ``compute_terminated`` of the same form finds the ends again. A function that gives one answer for many
            goals is asked for each of them. Both get and give NumPy arrays.
        capacity : int, default 10_000
        **keywords
            As in the constructor and in `ReplayMemory.from_env`; ``reward_fn`` and ``is_done_fn`` replace the
            environment's own.

        Returns
        -------
        HindsightReplayMemory

        Raises
        ------
        TypeError
            When the environment has no ``compute_reward`` and no ``reward_fn`` is given.
        """
        base = env.unwrapped
        if "reward_fn" not in keywords:
            if not hasattr(base, "compute_reward"):
                raise TypeError(
                    f"{type(base).__name__} has no compute_reward(achieved_goal, desired_goal, info); give reward_fn="
                )
            keywords["reward_fn"] = _GoalJudge(base.compute_reward)
        if "is_done_fn" not in keywords and hasattr(base, "compute_terminated"):
            keywords["is_done_fn"] = _GoalJudge(base.compute_terminated)
        return cls.from_env(env, capacity, **keywords)

    def _prepared(self, windows: int, options: Options, out: Batch | None, pinned: bool) -> Target:
        if self._relabel == "sample" and not options.stop:
            raise ValueError(
                "boundary='cross': a window with a new goal ends with its episode; "
                "use boundary='stop', or relabel='store'"
            )
        return super()._prepared(windows, options, out, pinned)

    def _batch(self, chosen: Ints, options: Options, target: Target) -> Batch:
        if self._relabel != "sample":
            return super()._batch(chosen, options, target)
        sums = options.n_step > 1
        after = min(options.n_step, max(self._length, 2)) if sums else options.after
        window = options._replace(n_step=1, after=after, time_major=False)
        apart = sums or options.time_major  # relabelled as windows, then brought into the form that was asked for
        # The functions that judge work on the host, also for a memory on a GPU.
        final = self._on_host(target.plan) if self._arena.on_device else target
        here = self._on_host(self._plan_of(chosen.size, window)) if apart else final
        batch = super()._batch(chosen, window, here)
        self._relabel_batch(batch, self._rng.random(2 * chosen.size), window)
        if sums:
            batch = self._folded(batch, options, final)
        elif options.time_major:
            batch = self._swapped(batch, final)
        return self._as_batch(self._lifted(final, target)) if self._arena.on_device else batch

    def generate_hindsight(self, length: int | None = None, *, source: int | None = None) -> Experience:
        """Experiences with new goals, made of the newest ones and not stored.

        Parameters
        ----------
        length : int, optional
            How many of the newest experiences; they may be of several episodes, each with goals of its own. Default:
            the newest episode.
        source : int, optional
            Those of this source only.

        Returns
        -------
        Experience
            With ``goal_samples`` rows for each experience ("final": one), in the order of the experiences. ``id`` is
            that of the experience a row was made of. Fresh arrays; `extend_from` stores them.

        Raises
        ------
        EmptyMemoryError
            When there are none.

        Notes
        -----
        Draws a uniform for each row. MATLAB: ``generateHindsightExperiences(buffer, trajectoryLength)``.
        """
        which = one_source(source)
        with self._lock:
            rows, *_ = self._numbered()
            if which is not None:
                rows = rows[self._is_from(which, rows % self._capacity)]
            if not rows.size:
                raise EmptyMemoryError("generate_hindsight: there are no experiences to make new ones of")
            if length is None:
                newest = self._episode_of(int(rows[-1]))
            else:
                newest = rows[-at_least("length", length, 1) :]
            record, filled = self._generated(newest)
            if not self._arena.on_device:
                return record
            target = self._target(filled.plan, None)
            return Generated(*self._as_experience(self._lifted(filled, target)))


def _checked_strategy(value: str) -> str:
    if value not in STRATEGIES:
        raise ValueError(f"strategy: expected one of {', '.join(STRATEGIES)}, got {value!r}")
    return value


class _GoalJudge:
    """A GoalEnv's function of (achieved, desired, info) as a function of experiences. A class, so that it pickles."""

    def __init__(self, function: Callable[[Any, Any, dict[str, Any]], Any]) -> None:
        self.function = function

    def __call__(self, observation: Channels, action: Channels, next_observation: Channels) -> Any:
        achieved, desired = next_observation["achieved_goal"], next_observation["desired_goal"]
        given = self.function(achieved, desired, {})
        if is_on_device(given):  # an error of the memory's, which knows the argument
            return given
        judged = np.asarray(given)
        if judged.ndim:
            return judged
        # One answer for all: gymnasium-robotics' compute_terminated takes one goal at a time.
        return np.array([self.function(a, d, {}) for a, d in zip(achieved, desired, strict=True)])
