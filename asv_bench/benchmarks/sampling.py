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
        self.memory.sample(256)

    def time_sample_and_update_256(self, capacity):
        self.memory.update_priorities(self.memory.sample(256).id, self.error)


class Hindsight:
    """Draw with new goals for four of five."""

    params = [10_000, 1_000_000, 10_000_000]  # noqa: RUF012
    param_names = ["capacity"]  # noqa: RUF012

    def setup(self, capacity):
        self.memory = hindsight(capacity)
        self.memory.sample(256)

    def time_sample_256(self, capacity):
        self.memory.sample(256)
