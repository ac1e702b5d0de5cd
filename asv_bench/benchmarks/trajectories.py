"""Trajectories: split, put together again, and summed along."""

from __future__ import annotations

import rlmemory as rlm

from .trajectory_scenes import frames, steps


class Split:
    """A million steps of 165 bytes in 5,000 trajectories, of unequal lengths or all of 200."""

    params = ("unequal", "equal")
    param_names = ("lengths",)
    timeout = 240

    def setup(self, lengths):
        self.data = steps(1_000_000, equal=lengths == "equal")
        self.parts = rlm.split_trajectories(self.data)
        self.done = self.data["next"]["done"]
        self.reward = self.data["next"]["reward"]
        self.value = self.reward.copy()
        rlm.returns_to_go(self.reward, self.done, 0.99)

    def time_split(self, lengths):
        rlm.split_trajectories(self.data)

    def time_ragged(self, lengths):
        rlm.ragged_trajectories(self.data)

    def time_unsplit(self, lengths):
        rlm.unsplit_trajectories(self.parts)

    def time_returns_to_go(self, lengths):
        rlm.returns_to_go(self.reward, self.done, 0.99)

    def time_gae(self, lengths):
        rlm.gae(self.reward, self.value, next_value=self.value, terminated=self.done)


class Frames:
    """20,000 frames of 84x84x4 uint8."""

    timeout = 240

    def setup(self):
        self.data = frames(20_000)
        rlm.split_trajectories(frames(100))

    def time_split(self):
        rlm.split_trajectories(self.data)
