"""Make a replay memory, append one experience and then many, and draw a mini-batch from it."""

import numpy as np

from matlab_compat import append, rlNumericSpec, rlReplayMemory, sample, struct

rng = np.random.default_rng(0)

# A cart with four measurements, pushed by one force between -10 and 10.
measurements = rlNumericSpec([4, 1], Name="measurements")
force = rlNumericSpec([1, 1], LowerLimit=-10, UpperLimit=10, Name="force")

memory = rlReplayMemory(measurements, force, 20_000, Seed=0)
print(memory)

step = struct()
step.Observation = [rng.random((4, 1))]
step.Action = [force.UpperLimit * rng.random()]
step.NextObservation = [rng.random((4, 1))]
step.Reward = 10 * rng.random()
step.IsDone = 0
append(memory, step)
assert memory.Length == 1

# A hundred at once, as a struct array that grows while it is filled.
steps = struct()
for i in range(100):
    steps[i].Observation = [rng.random((4, 1))]
    steps[i].Action = [force.UpperLimit * rng.random()]
    steps[i].NextObservation = [rng.random((4, 1))]
    steps[i].Reward = 10 * rng.random()
    steps[i].IsDone = 0
steps[99].IsDone = 1
append(memory, steps)
assert memory.Length == 101

miniBatch = sample(memory, 32)
print(miniBatch)
assert miniBatch.Observation[0].shape == (4, 1, 32)
assert miniBatch.Reward.shape == (1, 32)

miniBatch, mask = sample(memory, 32, nargout=2)
assert mask.all()
