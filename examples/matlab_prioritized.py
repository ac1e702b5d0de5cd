"""A memory that shows the surprising experiences more often, and a training loop that tells it which they are.

A corridor of eight rooms: one action leads to the next room, the other back to the street, and only the last door pays,
now twice as much and now nothing. Who tries at random hardly ever gets there, so a few of two thousand experiences can
teach what lies behind it. Drawn by the error that they still make, these few come up far more often than others.
"""

import numpy as np

from matlab_compat import (
    allExperiences,
    append,
    rlFiniteSetSpec,
    rlNumericSpec,
    rlPrioritizedReplayMemory,
    sample,
    struct,
    updatePriorities,
)

ROOMS, GAMMA, SIZE = 8, 0.9, 2000
memory = rlPrioritizedReplayMemory(rlNumericSpec([1, 1], Name="room"), rlFiniteSetSpec([0, 1]), SIZE, Seed=0)
memory.PriorityExponent = 0.8
memory.InitialImportanceSamplingExponent = 0.4
memory.NumAnnealingSteps = 2000
print(memory)

rng = np.random.default_rng(1)
room = 0
for _ in range(SIZE):
    forward, last = int(rng.integers(2)), room == ROOMS - 1
    e = struct(Observation=[room], Action=[forward], NextObservation=[room + 1])
    e.Reward, e.IsDone = 2 * int(forward and last and rng.integers(2)), int(last or not forward)
    append(memory, e)
    room = 0 if e.IsDone else room + 1

# Every update says what the experiences in it still had to teach.
values, doors = np.zeros((ROOMS + 1, 2)), 0
for _ in range(2000):
    mb, _mask, weights, ids = sample(memory, 4, nargout=4)  # weights and ids are 1 x 4, as Reward is
    room, action, after = (x.ravel().astype(int) for x in (*mb.Observation, *mb.Action, *mb.NextObservation))
    error = mb.Reward[0] + GAMMA * values[after].max(axis=1) * (mb.IsDone[0] != 1) - values[room, action]
    values[room, action] += 0.1 * weights[0] * error
    updatePriorities(memory, ids, np.abs(error) + 0.001)
    doors += (after == ROOMS).sum()

assert memory.ImportanceSamplingExponent == 1
assert (values[:ROOMS, 1] > values[:ROOMS, 0]).all()  # forward, in every room

door = allExperiences(memory, ConcatenateMode="batch").NextObservation[0].ravel() == ROOMS
print(f"the last door: {door.mean():.2%} of the memory, {doors / 8000:.2%} of the draws")
assert doors / 8000 > 5 * door.mean()

# The weights make up for it: with them, an average over draws is one over the memory.
mb, _mask, weights, _ids = sample(memory, 50_000, nargout=4)
weighted = np.average(mb.NextObservation[0].ravel() == ROOMS, weights=weights[0])
print(f"weighted, {weighted:.2%} of the draws")
assert abs(weighted - door.mean()) < 0.001
