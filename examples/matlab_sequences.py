"""Mini-batches of sequences, for recurrent networks, and rewards over several steps."""

import numpy as np

from matlab_compat import append, rlFiniteSetSpec, rlNumericSpec, rlReplayMemory, sample, struct, toBatchFirst

memory = rlReplayMemory(rlNumericSpec([1, 1], Name="minute"), rlFiniteSetSpec([0, 1]), 100, Seed=3)

# Three episodes of four minutes; every minute is worth 1.
for _ in range(3):
    for minute in range(4):
        e = struct(Observation=[minute], Action=[1], NextObservation=[minute + 1], Reward=1, IsDone=int(minute == 3))
        append(memory, e)

miniBatch, mask = sample(memory, 8, SequenceLength=3, nargout=2)
print(miniBatch)
assert miniBatch.Observation[0].shape == (1, 1, 8, 3)
assert miniBatch.Reward.shape == mask.shape == (1, 8, 3)

# A sequence that starts in the last two minutes ends with its episode; zeros fill it up, and the mask says so.
starts = miniBatch.Observation[0][0, 0, :, 0]
assert np.array_equal(mask[0].sum(axis=-1), np.minimum(3, 4 - starts))
assert not miniBatch.Reward[~mask].any()

# The reward of up to three steps: 1 + 0.5 + 0.25 when there are so many.
folded = sample(memory, 8, NStepHorizon=3, DiscountFactor=0.5)
minutes = folded.Observation[0].ravel()
assert np.array_equal(folded.Reward[0], np.choose(np.minimum(4 - minutes, 3).astype(int) - 1, [1, 1.5, 1.75]))
assert np.array_equal(folded.IsDone[0] == 1, minutes >= 1)

# Batch first, then time: what recurrent layers in Python take.
batch = toBatchFirst(miniBatch)
print(batch.observation.shape, batch.mask.shape)
assert batch.observation.shape == batch.mask.shape == (8, 3)
