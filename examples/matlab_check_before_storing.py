"""Look at experiences before they go into a memory, and keep the good ones."""

import numpy as np

from matlab_compat import append, rlFiniteSetSpec, rlNumericSpec, rlReplayMemory, struct, validateExperience

angles = rlNumericSpec([3, 1])
switch = rlFiniteSetSpec([-1, 0, 1])
memory = rlReplayMemory(angles, switch)


def pendulum_step(**changes: object) -> struct:
    e = struct(Observation=[np.zeros((3, 1))], Action=[1], NextObservation=[np.ones((3, 1))], Reward=-0.5, IsDone=0)
    for name, value in changes.items():
        setattr(e, name, value)
    return e


candidates = [
    pendulum_step(),
    pendulum_step(Observation=np.zeros((3, 1))),  # not in a cell
    pendulum_step(NextObservation=[np.zeros((1, 3))]),  # a row for a column
    pendulum_step(Action=[1, 0]),  # two actions for one channel
    pendulum_step(Reward=[1, 2]),  # two rewards
    pendulum_step(IsDone=2),  # ended by the maximum length: fine
]

problems = []
for e in candidates:
    try:
        validateExperience(memory, e)
    except (TypeError, ValueError) as problem:
        problems.append(str(problem))
        print(problem)
    else:
        append(memory, e)

assert memory.Length == 2
assert len(problems) == 4
assert problems[1].startswith("NextObservation[0]: 1×3 came, 3×1 was expected")

# Many at once: one bad experience keeps all of them out.
try:
    append(memory, candidates)
except TypeError as problem:
    problems.append(str(problem))
assert problems[-1].startswith("experience[1].Observation")
assert memory.Length == 2
