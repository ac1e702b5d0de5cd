"""Read the specs of one memory to make another like it, and copy a batch over; dlarrays on the way."""

from itertools import pairwise

import numpy as np

from matlab_compat import (
    allExperiences,
    append,
    dims,
    dlarray,
    extractdata,
    getActionInfo,
    getObservationInfo,
    rlFiniteSetSpec,
    rlNumericSpec,
    rlReplayMemory,
    struct,
    toBatchFirst,
    unbatch,
)

first = rlReplayMemory(rlNumericSpec([3, 1], Name="tank levels"), rlFiniteSetSpec([0, 1], Name="valve"), 50)
levels = np.linspace(0, 1, 11)
for now, then in pairwise(levels):
    e = struct(
        Observation=[[now, 0, 1]], Action=[1], NextObservation=[[then, 0, 1]], Reward=then, IsDone=float(then == 1)
    )
    append(first, e)

obsInfo = getObservationInfo(first)
actInfo = getActionInfo(first)
print(obsInfo)
assert obsInfo.Name == "tank levels"
assert actInfo.Elements.tolist() == [0, 1]

second = rlReplayMemory(obsInfo, actInfo, 200)
append(second, unbatch(allExperiences(first, ConcatenateMode="batch")))
assert second.Length == 10

# The fields as dlarrays: without labels, until you give them.
expBatch = allExperiences(second, ConcatenateMode="batch", ReturnDlarray=True)
assert dims(expBatch.Observation[0]) == ""
level = dlarray(extractdata(expBatch.Observation[0])[:, 0, :], "CB")
print(2 * level[:1])
assert dims(level) == "CB"
assert level.shape == (3, 10)

# And for a network in Python.
batch = toBatchFirst(expBatch)
assert batch.observation.shape == (10, 3)
assert batch.terminated.tolist() == [False] * 9 + [True]
