"""A memory for goals that are hardly ever met: what an episode reached is taken for what it wanted.

A cursor moves on a strip of nine places and should stop at a given one; the reward is 0 there and -1 elsewhere. The
goal that was asked for is far off, so no episode meets it, and yet the experiences with new goals teach the way.
"""

import numpy as np

from matlab_compat import (
    append,
    generateHindsightExperiences,
    rlFiniteSetSpec,
    rlHindsightReplayMemory,
    rlNumericSpec,
    sample,
    struct,
)

# Channel 1 holds the place and a clock, channel 2 the place to reach.
obsInfo = [rlNumericSpec([2, 1], Name="place and time"), rlNumericSpec([1, 1], Name="goal")]
actInfo = rlFiniteSetSpec([-1, 1])


def is_done(obs, action, after):
    return after[0][0, 0] == after[1][0, 0]


def reward(obs, action, after):
    return 0 if is_done(obs, action, after) else -1


# The first number of channel 1 is what the only number of channel 2 asks for. These count from 1, also in Python.
goalConditionInfo = [[1, 1, 2, 1]]
memory = rlHindsightReplayMemory(obsInfo, actInfo, reward, is_done, goalConditionInfo, 20_000, Seed=1)
memory.Strategy = "future"
memory.NumGoalSamples = 4
print(memory)

PLACES, STEPS, FAR = 9, 30, 100
rng = np.random.default_rng(0)
for _ in range(60):
    place = int(rng.integers(PLACES))
    for t in range(STEPS):
        action = int(rng.choice([-1, 1]))
        after = int(np.clip(place + action, 0, PLACES - 1))
        e = struct(Observation=[[place, t], FAR], Action=[action], NextObservation=[[after, t + 1], FAR])
        e.Reward, e.IsDone = -1, 2 * int(t == STEPS - 1)
        append(memory, e)
        place = after
    append(memory, generateHindsightExperiences(memory, STEPS))  # of the episode that has just ended

assert memory.Length == 60 * STEPS * (1 + memory.NumGoalSamples)

# One table of values for all goals, learnt from what the memory gives.
values = np.full((PLACES, PLACES, 2), -10.0)  # as bad as never getting there
for _ in range(1500):
    mb = sample(memory, 32)
    known = mb.Observation[1].ravel() < PLACES  # the table has no row for the goal that was never met
    place, goal = (x.ravel()[known].astype(int) for x in (mb.Observation[0][0], mb.Observation[1]))
    move, after = (mb.Action[0].ravel()[known] > 0).astype(int), mb.NextObservation[0][0].ravel()[known].astype(int)
    target = mb.Reward[0, known] + 0.9 * values[goal, after].max(axis=1) * (mb.IsDone[0, known] != 1)
    values[goal, place, move] += 0.5 * (target - values[goal, place, move])

reached = 0
for goal in range(PLACES):
    for start in range(PLACES):
        place = start
        for _ in range(STEPS):
            if place == goal:
                break
            place = int(np.clip(place + (1 if values[goal, place, 1] > values[goal, place, 0] else -1), 0, PLACES - 1))
        reached += place == goal
print(f"{reached} of {PLACES**2} tasks are solved, with no success ever seen")
assert reached >= 0.95 * PLACES**2
