"""`rlPrioritizedReplayMemory`, and `updatePriorities`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import rlmemory as rlm

from .buffers import checked
from .device import fetched
from .memories import REWARD_TYPES, Memory, constructor, max_length
from .options import between, whole

#: MATLAB's defaults, in the words of rlmemory.
PRIORITIES = {"priority_exponent": 1.0, "importance_exponent": 0.5, "annealing_steps": 1_000_000, "priority_epsilon": 0}

_EXPONENT, _FRACTION, _STEPS = between(0.0, 100.0), between(0.0, 1.0), whole(1)


def updatePriorities(buffer: Prioritized, ids: Any, priorities: Any) -> int:
    """Set the priorities of drawn experiences, usually to their absolute TD errors.

    Parameters
    ----------
    buffer : rlPrioritizedReplayMemory or rlHindsightPrioritizedReplayMemory
    ids : int array (1, B) or of any other shape of B numbers
        The fourth output of `sample`. Of an id given twice, the last priority stays.
    priorities : array, dlarray or sequence of B numbers from 0 up
        In the order of `ids`, as a row or a column. Both may be on a GPU, as `sample` gives the ids with
        ReturnGpuArray: they are copied to the host.

    Returns
    -------
    int
        How many ids were ignored, because their experiences were overwritten since.

    Raises
    ------
    ValueError
        For a priority that is NaN, infinite or negative: take ``abs``. Nothing is changed then.
    rlmemory.ShapeError
        When there are not as many priorities as ids.
    TypeError
        When `buffer` has no priorities.

    Notes
    -----
    An extension: in MATLAB only agents do this. Each call is one step of ImportanceSamplingExponent on its way to 1.
    An experience of priority 0 is not drawn.

    Examples
    --------
    >>> buffer = rlPrioritizedReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]), Seed=0)
    >>> e = struct(Observation=[np.zeros(2)], Action=[0], NextObservation=[np.ones(2)], Reward=1, IsDone=0)
    >>> append(buffer, [e, e])
    >>> mb, mask, weights, ids = sample(buffer, 4, nargout=4)
    >>> updatePriorities(buffer, ids, [0.5, 0.5, 2, 2])
    0
    """
    if not isinstance(buffer, Prioritized):
        name = type(checked("updatePriorities", buffer)).__name__
        raise TypeError(f"updatePriorities: a prioritized memory was expected; {name} draws without priorities")
    rows, given = np.asarray(fetched(ids)), np.asarray(fetched(priorities))
    if rows.size != given.size:
        raise rlm.ShapeError(f"updatePriorities: {given.size} priorities came for {rows.size} ids")
    return buffer.memory.update_priorities(rows.ravel(), given.ravel())


class Prioritized(Memory):
    """What the two kinds of memories with priorities share."""

    __slots__ = ()

    memory: rlm.PrioritizedReplayMemory
    _sequences: ClassVar[bool] = False

    updatePriorities = updatePriorities

    @property
    def PriorityExponent(self) -> float:
        """To which power priorities are raised: 0 draws all alike, 1 in proportion."""
        return self.memory.priority_exponent

    @PriorityExponent.setter
    def PriorityExponent(self, value: Any) -> None:
        self.memory.priority_exponent = _EXPONENT("PriorityExponent", value)

    @property
    def InitialImportanceSamplingExponent(self) -> float:
        """The exponent of the importance weights to begin with."""
        return self.memory.importance_exponent

    @InitialImportanceSamplingExponent.setter
    def InitialImportanceSamplingExponent(self, value: Any) -> None:
        self.memory.importance_exponent = _FRACTION("InitialImportanceSamplingExponent", value)

    @property
    def NumAnnealingSteps(self) -> int:
        """Calls of `updatePriorities` until the exponent of the importance weights is 1."""
        return self.memory.annealing_steps

    @NumAnnealingSteps.setter
    def NumAnnealingSteps(self, value: Any) -> None:
        self.memory.annealing_steps = _STEPS("NumAnnealingSteps", value)

    @property
    def ImportanceSamplingExponent(self) -> float:
        """The exponent of the importance weights now; read-only."""
        return self.memory.current_importance_exponent

    @ImportanceSamplingExponent.setter
    def ImportanceSamplingExponent(self, value: Any) -> None:
        raise AttributeError(
            "ImportanceSamplingExponent is read-only: it grows from InitialImportanceSamplingExponent to 1 over "
            "NumAnnealingSteps calls of updatePriorities"
        )

    def _shown(self) -> list[tuple[str, Any]]:
        names = (
            "PriorityExponent", "InitialImportanceSamplingExponent", "NumAnnealingSteps", "ImportanceSamplingExponent",
        )  # fmt: skip
        return [*super()._shown(), *((name, getattr(self, name)) for name in names)]


class rlPrioritizedReplayMemory(Prioritized):
    """A replay memory that draws an experience the more often, the larger its priority is.

    Parameters
    ----------
    obsInfo, actInfo : rlNumericSpec, rlFiniteSetSpec, or a list of them
        One spec for each channel.
    maxLength : int, default 10000
        How many experiences fit; when it is full, the oldest are overwritten.
    RewardDataType : {"double", "single"}, default "double"
        Class of the rewards; an extension.
    Seed : None, int, numpy SeedSequence or Generator, default None
        Makes `sample` repeat; an extension.

    Returns
    -------
    rlPrioritizedReplayMemory
        A handle. ``PriorityExponent`` (a, 1), ``InitialImportanceSamplingExponent`` (0.5) and ``NumAnnealingSteps``
        (1e6) can be set; ``ImportanceSamplingExponent`` (b, the current value), ``MaxLength`` and ``Length`` are
        read-only; ``memory`` is the ``rlmemory.PrioritizedReplayMemory`` underneath.

    Raises
    ------
    rlmemory.SpecError
        When `obsInfo` or `actInfo` is not a spec or a list of specs.
    TypeError, ValueError
        For a maximum length that is not a whole number above 0, an unknown option, or a value that it does not take.

    Notes
    -----
    MATLAB counterpart: ``rlPrioritizedReplayMemory``. With priorities p of N experiences, one of them is drawn with
    P = p^a / sum of all p^a, and its weight is (N P)^-b, divided by the largest in the mini-batch. A new experience
    gets the largest priority of those stored, 1 to begin with. `sample` with SequenceLength above 1 is an error, as
    MATLAB has no prioritized sequences.

    Examples
    --------
    >>> rlPrioritizedReplayMemory(rlNumericSpec([4, 1]), rlFiniteSetSpec([-10, 10]), 5000)
    rlPrioritizedReplayMemory with properties:
                         PriorityExponent: 1
        InitialImportanceSamplingExponent: 0.5000
                        NumAnnealingSteps: 1000000
               ImportanceSamplingExponent: 0.5000
                                MaxLength: 5000
                                   Length: 0
    """

    __slots__ = ()

    @constructor
    def __init__(
        self,
        obsInfo: Any,
        actInfo: Any = None,
        maxLength: int = 10_000,
        *,
        RewardDataType: str = "double",
        Seed: Any = None,
    ) -> None:
        length = max_length("rlPrioritizedReplayMemory: maxLength", maxLength)
        reward = REWARD_TYPES[RewardDataType]
        super().__init__(rlm.PrioritizedReplayMemory, obsInfo, actInfo, length, reward=reward, seed=Seed, **PRIORITIES)
