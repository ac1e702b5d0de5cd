"""`rlReplayMemory`, and what the classes of memories share: MATLAB's functions as their methods."""

from __future__ import annotations

from typing import Any

import rlmemory as rlm

from . import extensions, functions, retrieval
from .buffers import Buffer
from .options import anything, name_value, one_of, whole

#: MATLAB's classes that rewards can have.
REWARD_TYPES = {"double": "float64", "single": "float32"}
#: Lets a constructor take the options that all have.
constructor = name_value(RewardDataType=one_of(*REWARD_TYPES), Seed=anything)


class Memory(Buffer):
    """A handle that has MATLAB's functions as methods."""

    __slots__ = ()

    append = functions.append
    sample = retrieval.sample
    allExperiences = retrieval.allExperiences
    validateExperience = functions.validateExperience
    resize = functions.resize
    reset = functions.reset
    getObservationInfo = functions.getObservationInfo
    getActionInfo = functions.getActionInfo
    merge = extensions.merge


class rlReplayMemory(Memory):
    """A replay memory that is sampled uniformly.

    Parameters
    ----------
    obsInfo, actInfo : rlNumericSpec, rlFiniteSetSpec, or a list of them
        One spec for each channel.
    maxLength : int, default 10000
        How many experiences fit; when it is full, the oldest are overwritten.
    RewardDataType : {"double", "single"}, default "double"
        Class of the rewards; an extension.
    Seed : None, int, numpy SeedSequence or Generator, default None
        Makes `sample` repeat; an extension, as MATLAB draws from its global generator.

    Returns
    -------
    rlReplayMemory
        A handle, passed by reference. ``MaxLength`` and ``Length`` are read-only; ``memory`` is the
        ``rlmemory.ReplayMemory`` underneath, where one channel is an array and several are a tuple. It is on the host,
        and one on a GPU cannot be assigned: `sample` with ReturnGpuArray copies there what was drawn.

    Raises
    ------
    rlmemory.SpecError
        When `obsInfo` or `actInfo` is not a spec or a list of specs.
    TypeError, ValueError
        For a maximum length that is not a whole number above 0, an unknown option, or a value that it does not take.

    Notes
    -----
    MATLAB counterpart: ``rlReplayMemory``. Changes made through ``memory`` are seen here at once.

    Examples
    --------
    >>> rlReplayMemory(rlNumericSpec([4, 1]), rlFiniteSetSpec([-10, 10]), 5000)
    rlReplayMemory with properties:
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
        length = max_length("rlReplayMemory: maxLength", maxLength)
        super().__init__(rlm.ReplayMemory, obsInfo, actInfo, length, reward=REWARD_TYPES[RewardDataType], seed=Seed)


max_length = whole(1)
