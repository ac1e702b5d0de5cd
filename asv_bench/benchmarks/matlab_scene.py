"""A memory of `matlab_compat` with the same rows as the core's."""

from __future__ import annotations

import numpy as np

import matlab_compat as mc

from .scenes import transitions


def matlab_transitions(capacity: int = 1_000_000) -> tuple[mc.rlReplayMemory, mc.struct]:
    """A full memory of rows of 165 bytes, and one experience that fits it."""
    rows = transitions(1).rows
    observation = mc.rlNumericSpec([17, 1], DataType="single")
    action = mc.rlNumericSpec([6, 1], DataType="single")
    buffer = mc.rlReplayMemory(observation, action, capacity, RewardDataType="single", Seed=0)
    while buffer.Length < capacity:
        buffer.memory.extend(**rows)
    experience = mc.struct(
        Observation=[rows["observation"][0][:, None]],
        Action=[rows["action"][0][:, None]],
        NextObservation=[rows["next_observation"][0][:, None]],
        Reward=np.float32(rows["reward"][0]),
        IsDone=0,
    )
    return buffer, experience
