"""A memory that wraps, shrinks, grows and is emptied."""

import numpy as np

from matlab_compat import allExperiences, append, reset, resize, rlNumericSpec, rlReplayMemory, struct

memory = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]), 6)

for number in range(10):
    e = struct(Observation=[[number, 0]], Action=[0.1], NextObservation=[[number + 1, 0]], Reward=number, IsDone=0)
    append(memory, e)


def rewards() -> list[float]:
    return allExperiences(memory, ConcatenateMode="batch").Reward.ravel().tolist()


print(memory)
assert rewards() == [4, 5, 6, 7, 8, 9]  # the oldest four were overwritten

resize(memory, 3)
assert rewards() == [7, 8, 9]  # the newest stay

resize(memory, 100)
append(memory, struct(Observation=[[10, 0]], Action=[0.1], NextObservation=[[11, 0]], Reward=10, IsDone=1))
assert rewards() == [7, 8, 9, 10]

# What allExperiences gave stays what it was, whatever happens to the memory.
before = allExperiences(memory)
reset(memory)
print(memory)
assert memory.Length == 0
assert memory.MaxLength == 100
assert [e.Reward for e in before] == [7, 8, 9, 10]
assert np.array_equal(before[3].NextObservation[0], [[11], [0]])
