"""Two simulations write into one memory; mini-batches come from both, or from one of them."""

import numpy as np

from matlab_compat import allExperiences, append, merge, rlFiniteSetSpec, rlNumericSpec, rlReplayMemory, sample, struct

rng = np.random.default_rng(1)
camera = rlNumericSpec([8, 6], DataType="uint8", Name="camera")
speed = rlNumericSpec([1, 1], Name="speed")
steering = rlFiniteSetSpec([-1, 0, 1], Name="steering")


def drive(steps: int) -> struct:
    e = struct()
    for i in range(steps):
        e[i].Observation = [rng.integers(0, 256, (8, 6), dtype=np.uint8), rng.random()]
        e[i].Action = [rng.integers(-1, 2)]
        e[i].NextObservation = [rng.integers(0, 256, (8, 6), dtype=np.uint8), rng.random()]
        e[i].Reward = rng.random()
        e[i].IsDone = 0
    e[steps - 1].IsDone = 2  # the maximum episode length
    return e


town = rlReplayMemory([camera, speed], steering, 1000, Seed=2)
append(town, drive(20), 1)
append(town, drive(30), 2)

both = sample(town, 64)
assert both.Observation[0].shape == (8, 6, 64)
assert both.Observation[0].dtype == np.uint8
_, _, _, ids = sample(town, 64, DataSourceID=2, nargout=4)
assert ids.min() >= 20

# A third simulation kept a memory of its own: put it in, with its source number.
country = rlReplayMemory([camera, speed], steering, 1000)
append(country, drive(10), 3)
merge(town, country)
expBatch = allExperiences(town, ConcatenateMode="batch")
print(expBatch)
assert expBatch.IsDone.sum() == 6
assert town.memory.all().source.tolist() == [1] * 20 + [2] * 30 + [3] * 10
