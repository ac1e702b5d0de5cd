"""The example of MATLAB's allExperiences page, nearly line for line."""

import numpy as np

from matlab_compat import allExperiences, append, numel, rlFiniteSetSpec, rlNumericSpec, rlReplayMemory, struct

# Two observation channels: two continuous observations, and one of three values.
obsContinuous = rlNumericSpec([2, 1], LowerLimit=0, UpperLimit=[[1], [5]])
obsDiscrete = rlFiniteSetSpec([1, 2, 3])
obsInfo = [obsContinuous, obsDiscrete]

# One action channel with two continuous actions.
actInfo = rlNumericSpec([2, 1], LowerLimit=0, UpperLimit=[[5], [10]])

buffer = rlReplayMemory(obsInfo, actInfo, 5000)

experience = struct()
for i in range(10):
    experience[i].Observation = [obsInfo[0].UpperLimit * np.random.rand(2, 1), np.random.randint(1, 4)]
    experience[i].Action = [actInfo.UpperLimit * np.random.rand(2, 1)]
    experience[i].NextObservation = [obsInfo[0].UpperLimit * np.random.rand(2, 1), np.random.randint(1, 4)]
    experience[i].Reward = 10 * np.random.rand()
    experience[i].IsDone = 0

append(buffer, experience)

# As individual experiences.
experience = allExperiences(buffer)
print(experience)
assert numel(experience) == 10
assert [x.shape for x in experience[0].Observation] == [(2, 1), (1, 1)]

# As one batch.
expBatch = allExperiences(buffer, ConcatenateMode="batch")
print(expBatch)
assert [x.shape for x in expBatch.Observation] == [(2, 1, 10), (1, 1, 10)]
assert [x.shape for x in expBatch.NextObservation] == [(2, 1, 10), (1, 1, 10)]
assert expBatch.Action[0].shape == (2, 1, 10)
assert expBatch.Reward.shape == expBatch.IsDone.shape == (1, 10)

# As one sequence.
expSequence = allExperiences(buffer, ConcatenateMode="sequence")
print(expSequence)
assert [x.shape for x in expSequence.Observation] == [(2, 1, 1, 10), (1, 1, 1, 10)]
assert expSequence.Action[0].shape == (2, 1, 1, 10)
assert expSequence.Reward.shape == expSequence.IsDone.shape == (1, 1, 10)
