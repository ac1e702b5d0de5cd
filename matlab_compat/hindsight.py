"""`rlHindsightReplayMemory`, the same with priorities, and `generateHindsightExperiences`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rlmemory as rlm

from .buffers import checked
from .generated import generated
from .judges import Judge, core_goals, named
from .memories import REWARD_TYPES, Memory, constructor, max_length
from .options import one_of, whole
from .prioritized import PRIORITIES, Prioritized
from .structs import own, struct

_STRATEGY, _COUNT = one_of("final", "episode", "future"), whole(1)


def generateHindsightExperiences(buffer: Hindsight, trajectoryLength: int) -> struct:
    """Make experiences with new goals out of the newest ones, without storing them.

    Parameters
    ----------
    buffer : rlHindsightReplayMemory or rlHindsightPrioritizedReplayMemory
    trajectoryLength : int
        L, how many of the newest experiences, usually the steps of the last episode; all of them when fewer are
        stored. Those that were generated do not count. They may be of several episodes, each with goals of its own.

    Returns
    -------
    struct
        N-by-1 struct array of Observation, Action, NextObservation, Reward and IsDone, in the order of the
        experiences: N = L with the Strategy "final", else L times NumGoalSamples. The goal of each in Observation and
        NextObservation is what was measured after a later step, and RewardFcn and IsDoneFcn have judged it again.

    Raises
    ------
    rlmemory.EmptyMemoryError
        When nothing is stored.
    rlmemory.ShapeError, rlmemory.ValueNotRepresentableError
        When RewardFcn or IsDoneFcn gives no scalar, or one that the reward's class cannot hold.
    TypeError, ValueError
        When `buffer` is no hindsight memory, or the length is not a whole number above 0.

    Notes
    -----
    MATLAB counterpart: ``generateHindsightExperiences``. ``append(buffer, e)`` stores them; there they stand alone: no
    sequence, sum over steps or trajectory joins them. So do elements, slices and changed fields of `e`; lists of
    them and copies made by ``hcat``, ``copy.deepcopy`` or pickle do not. IsDone 2 stays 2 unless the new goal is met.

    Examples
    --------
    >>> near = lambda obs, action, nextObs: nextObs[0] == nextObs[1]
    >>> place = rlNumericSpec([1, 1])
    >>> buffer = rlHindsightReplayMemory([place, place], place, near, near, [[1, 1, 2, 1]])
    >>> for x in range(3):
    ...     e = struct(Observation=[x, 9], Action=[1], NextObservation=[x + 1, 9], Reward=0, IsDone=0)
    ...     append(buffer, e)
    >>> e = generateHindsightExperiences(buffer, 3)
    >>> [(float(x.Observation[1].item()), float(x.Reward)) for x in e]
    [(3.0, 0.0), (3.0, 0.0), (3.0, 1.0)]
    """
    if not isinstance(buffer, Hindsight):
        name = type(checked("generateHindsightExperiences", buffer)).__name__
        raise TypeError(f"generateHindsightExperiences: a hindsight memory was expected; {name} knows no goals")
    length = _COUNT("generateHindsightExperiences: trajectoryLength", trajectoryLength)
    try:
        experience = buffer.memory.generate_hindsight(length)
    except rlm.ReplayMemoryError as error:
        raise named(error) from None
    return generated(experience, buffer)


class Hindsight(Memory):
    """What the two kinds of memories with goals share."""

    __slots__ = ("_conditions", "_is_done", "_reward")

    memory: rlm.HindsightReplayMemory

    generateHindsightExperiences = generateHindsightExperiences

    def _begin(
        self,
        kind: Callable[..., rlm.HindsightReplayMemory],
        channels: tuple[Any, Any],
        goals: tuple[Any, Any, Any],
        maxLength: Any,
        **options: Any,
    ) -> None:
        length = max_length(f"{type(self).__name__}: maxLength", maxLength)

        def make(observation: Any, action: Any) -> rlm.HindsightReplayMemory:
            self._reward = Judge("RewardFcn", goals[0], self._reader, logical=False)
            self._is_done = Judge("IsDoneFcn", goals[1], self._reader, logical=True)
            conditions = core_goals(goals[2], self._reader.observation)
            self._conditions = own(goals[2])
            try:
                return kind(
                    observation, action, length, reward_fn=self._reward, is_done_fn=self._is_done, goals=conditions,
                    relabel="none", **options,
                )  # fmt: skip
            except rlm.ReplayMemoryError as error:
                raise named(error) from None

        super().__init__(make, *channels)

    @property
    def RewardFcn(self) -> Callable[..., Any]:
        """The function of an experience that gives its reward; read-only."""
        return self._reward.function

    @RewardFcn.setter
    def RewardFcn(self, value: Any) -> None:
        raise AttributeError(_read_only("RewardFcn"))

    @property
    def IsDoneFcn(self) -> Callable[..., Any]:
        """The function of an experience that tells whether it ends the episode; read-only."""
        return self._is_done.function

    @IsDoneFcn.setter
    def IsDoneFcn(self, value: Any) -> None:
        raise AttributeError(_read_only("IsDoneFcn"))

    @property
    def GoalConditionInfo(self) -> Any:
        """Where goals stand and where they are measured, counted from 1; a copy, read-only."""
        return own(self._conditions)

    @GoalConditionInfo.setter
    def GoalConditionInfo(self, value: Any) -> None:
        raise AttributeError(_read_only("GoalConditionInfo"))

    @property
    def Strategy(self) -> str:
        """Which step a new goal is measured after: "final", any of the "episode", or any of the "future"."""
        return self.memory.strategy

    @Strategy.setter
    def Strategy(self, value: Any) -> None:
        self.memory.strategy = _STRATEGY("Strategy", value)

    @property
    def NumGoalSamples(self) -> int:
        """How many experiences are made of one; "final" makes one."""
        return self.memory.goal_samples

    @NumGoalSamples.setter
    def NumGoalSamples(self, value: Any) -> None:
        self.memory.goal_samples = _COUNT("NumGoalSamples", value)

    def _shown(self) -> list[tuple[str, Any]]:
        names = ("RewardFcn", "IsDoneFcn", "GoalConditionInfo", "Strategy", "NumGoalSamples")
        return [*((name, getattr(self, name)) for name in names), *super()._shown()]

    def __getstate__(self) -> dict[str, Any]:
        own_state = {"_conditions": self._conditions, "_is_done": self._is_done, "_reward": self._reward}
        return super().__getstate__() | own_state


def _read_only(name: str) -> str:
    return f"{name} is read-only: it is given when the memory is made"


class rlHindsightReplayMemory(Hindsight):
    """A replay memory that can make experiences with new goals: what was achieved, taken for what was wanted.

    Parameters
    ----------
    obsInfo, actInfo : rlNumericSpec, rlFiniteSetSpec, or a list of them
        One spec for each channel.
    rewardFcn : callable
        ``reward = rewardFcn(obs, action, nextObs)``: the reward of one experience, from cells of arrays in their full
        Dimensions. To survive pickle it must be a function of a module.
    isDoneFcn : callable
        ``isDone = isDoneFcn(obs, action, nextObs)``: whether it ends the episode, true or false.
    goalConditionInfo : cell of cells ``{measurementChannel, measurementIndices, goalChannel, goalIndices}``
        Where in the observation is measured what was achieved, and where the goal stands. **All numbers count from 1**,
        as in MATLAB, and in a matrix column by column. (`rlmemory` counts from 0, row by row.)
    maxLength : int, default 10000
        How many experiences fit; when it is full, the oldest are overwritten.
    RewardDataType : {"double", "single"}, default "double"
        Class of the rewards; an extension.
    Seed : None, int, numpy SeedSequence or Generator, default None
        Makes `sample` and `generateHindsightExperiences` repeat; an extension.

    Returns
    -------
    rlHindsightReplayMemory
        A handle. ``Strategy`` ("final", "episode" or "future") and ``NumGoalSamples`` (4) can be set; ``RewardFcn``,
        ``IsDoneFcn``, ``GoalConditionInfo``, ``MaxLength`` and ``Length`` are read-only; ``memory`` is the
        ``rlmemory.HindsightReplayMemory`` underneath.

    Raises
    ------
    rlmemory.SpecError
        When `obsInfo` or `actInfo` is not a spec or a list of specs, or the goals do not fit them.
    TypeError, ValueError
        When a function is none, for a maximum length that is not a whole number above 0, an unknown option, or a value
        that it does not take.

    Notes
    -----
    MATLAB counterpart: ``rlHindsightReplayMemory``. The memory stores what happened, and `sample` draws from what is
    stored, uniformly; new goals come from ``append(buffer, generateHindsightExperiences(buffer, steps))`` at the end of
    an episode. In `rlmemory` they can be given to what is sampled instead: ``relabel="sample"``.

    Examples
    --------
    >>> near = lambda obs, action, nextObs: abs(nextObs[0][0, 0] - nextObs[0][1, 0]) < 0.1
    >>> rlHindsightReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]), near, near, [[1, 1, 1, 2]], 500)
    rlHindsightReplayMemory with properties:
                RewardFcn: @<lambda>
                IsDoneFcn: @<lambda>
        GoalConditionInfo: {{1×4 cell}}
                 Strategy: "final"
           NumGoalSamples: 4
                MaxLength: 500
                   Length: 0
    """

    __slots__ = ()

    @constructor
    def __init__(
        self,
        obsInfo: Any,
        actInfo: Any,
        rewardFcn: Any,
        isDoneFcn: Any,
        goalConditionInfo: Any,
        maxLength: int = 10_000,
        *,
        RewardDataType: str = "double",
        Seed: Any = None,
    ) -> None:
        self._begin(
            rlm.HindsightReplayMemory, (obsInfo, actInfo), (rewardFcn, isDoneFcn, goalConditionInfo), maxLength,
            reward=REWARD_TYPES[RewardDataType], seed=Seed,
        )  # fmt: skip


class rlHindsightPrioritizedReplayMemory(Hindsight, Prioritized):
    """A hindsight memory that draws an experience the more often, the larger its priority is.

    Parameters
    ----------
    obsInfo, actInfo, rewardFcn, isDoneFcn, goalConditionInfo, maxLength, RewardDataType, Seed
        As for `rlHindsightReplayMemory`.

    Returns
    -------
    rlHindsightPrioritizedReplayMemory
        A handle with the properties of `rlHindsightReplayMemory` and of `rlPrioritizedReplayMemory`; ``memory`` is the
        ``rlmemory.PrioritizedHindsightReplayMemory`` underneath.

    Raises
    ------
    rlmemory.SpecError, TypeError, ValueError
        As for `rlHindsightReplayMemory`.

    Notes
    -----
    MATLAB counterpart: ``rlHindsightPrioritizedReplayMemory``. Generated experiences that are appended begin with the
    largest priority of those stored, as all new ones do.

    Examples
    --------
    >>> near = lambda obs, action, nextObs: abs(nextObs[0][0, 0] - nextObs[0][1, 0]) < 0.1
    >>> buffer = rlHindsightPrioritizedReplayMemory(
    ...     rlNumericSpec([2, 1]), rlNumericSpec([1, 1]), near, near, [[1, 1, 1, 2]])
    >>> buffer.PriorityExponent, buffer.NumGoalSamples
    (1.0, 4)
    """

    __slots__ = ()

    memory: rlm.PrioritizedHindsightReplayMemory

    @constructor
    def __init__(
        self,
        obsInfo: Any,
        actInfo: Any,
        rewardFcn: Any,
        isDoneFcn: Any,
        goalConditionInfo: Any,
        maxLength: int = 10_000,
        *,
        RewardDataType: str = "double",
        Seed: Any = None,
    ) -> None:
        self._begin(
            rlm.PrioritizedHindsightReplayMemory, (obsInfo, actInfo), (rewardFcn, isDoneFcn, goalConditionInfo),
            maxLength, reward=REWARD_TYPES[RewardDataType], seed=Seed, **PRIORITIES,
        )  # fmt: skip
