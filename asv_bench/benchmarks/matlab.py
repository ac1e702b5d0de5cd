"""What MATLAB's names and shapes cost: the same calls through `matlab_compat`."""

from __future__ import annotations

import numpy as np

import matlab_compat as mc

from .matlab_scene import matlab_transitions


class _Transitions:
    """Rows of 165 bytes, as in the suite of the core."""

    params = (10_000, 1_000_000)
    param_names = ("capacity",)
    warmup_time = 0.05

    def setup(self, capacity):
        self.buffer, self.experience = matlab_transitions(capacity)
        mc.sample(self.buffer, 1)


class Append(_Transitions):
    def time_one_struct(self, capacity):
        mc.append(self.buffer, self.experience)

    def time_one_dict(self, capacity):
        mc.append(self.buffer, self.as_dict)

    def setup(self, capacity):
        super().setup(capacity)
        self.as_dict = {name: getattr(self.experience, name) for name in mc.fieldnames(self.experience)}


class AppendArray(_Transitions):
    def setup(self, capacity):
        super().setup(capacity)
        self.array = mc.allExperiences(self.buffer)[:200]

    def time_200_structs(self, capacity):
        mc.append(self.buffer, self.array)


class Sample(_Transitions):
    def time_256(self, capacity):
        mc.sample(self.buffer, 256)

    def time_256_with_options(self, capacity):
        mc.sample(self.buffer, 256, "DataSourceID", -1, nargout=2)

    def time_256_and_read_all_fields(self, capacity):
        batch = mc.sample(self.buffer, 256)
        return batch.Observation, batch.Action, batch.Reward, batch.NextObservation, batch.IsDone

    def time_256_batch_first(self, capacity):
        mc.toBatchFirst(mc.sample(self.buffer, 256))


class AllExperiences(_Transitions):
    def time_none(self, capacity):
        mc.allExperiences(self.buffer)

    def time_none_and_the_first_element(self, capacity):
        mc.allExperiences(self.buffer)[0].Reward  # noqa: B018

    def time_batch(self, capacity):
        mc.allExperiences(self.buffer, ConcatenateMode="batch")

    def time_sequence(self, capacity):
        mc.allExperiences(self.buffer, ConcatenateMode="sequence")


class GrowAStruct:
    def time_100_elements(self):
        e = mc.struct()
        entry = np.zeros((17, 1))
        for i in range(100):
            e[i].Observation = [entry]
            e[i].Reward = 1.0
