"""Every way to sample, from 1e4 to 1e7 rows: flat but for cache misses."""

from __future__ import annotations

import numpy as np

from .sampling_scenes import hindsight, prioritized
from .scenes import transitions


class Windows:
    """Uniform, sums and sequences of a plain memory."""

    params = [10_000, 1_000_000, 10_000_000]  # noqa: RUF012
    param_names = ["capacity"]  # noqa: RUF012

    def setup(self, capacity):
        self.memory = transitions(capacity).memory
        self.memory.sample(256)

    def time_uniform_256(self, capacity):
        self.memory.sample(256)

    def time_three_steps_256(self, capacity):
        self.memory.sample(256, n_step=3)

    def time_sequences_32_of_64(self, capacity):
        self.memory.sample(32, sequence_length=64)

    def time_full_sequences_32_of_64(self, capacity):
        self.memory.sample(32, sequence_length=64, padding="none")


class Priorities:
    """Draw by priority, and give new priorities to what was drawn."""

    params = [10_000, 1_000_000, 10_000_000]  # noqa: RUF012
    param_names = ["capacity"]  # noqa: RUF012

    def setup(self, capacity):
        self.memory = prioritized(capacity)
        self.error = np.random.default_rng(1).random(256)
        self.ids = self.memory.sample(256).id
        self.row = {"observation": np.ones(17, np.float32), "action": np.ones(6, np.float32), "reward": np.float32(1)}

    def time_sample_and_update_256(self, capacity):
        self.memory.update_priorities(self.memory.sample(256).id, self.error)

    def time_update_256(self, capacity):
        self.memory.update_priorities(self.ids, self.error)

    def time_append_then_sample_256(self, capacity):
        self.memory.append(**self.row, next_observation=self.row["observation"], terminated=False)
        self.memory.sample(256)

    def time_full_windows_32_of_8(self, capacity):
        self.memory.sample(32, sequence_length=8, padding="none")


class Hindsight:
    """Draw with new goals for four of five."""

    params = [10_000, 1_000_000, 10_000_000]  # noqa: RUF012
    param_names = ["capacity"]  # noqa: RUF012

    def setup(self, capacity):
        self.memory = hindsight(capacity)
        self.memory.sample(256)

    def time_sample_256(self, capacity):
        self.memory.sample(256)
