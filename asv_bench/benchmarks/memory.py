"""Into and out of `ReplayMemory`."""

from __future__ import annotations

from .scenes import pixels, transitions

_CAPACITIES = (10_000, 100_000, 1_000_000)


class Transitions:
    """Rows of 165 bytes, by capacity: small ones stay in the caches, large ones do not."""

    params = _CAPACITIES
    param_names = ("capacity",)
    warmup_time = 0.05

    def setup(self, capacity):
        self.memory, self.rows, _ = transitions(capacity)
        self.row = {key: column[0] for key, column in self.rows.items()}
        self.row["terminated"] = bool(self.row["terminated"])
        self.memory.sample(1)


class Append(Transitions):
    def time_one(self, capacity):
        self.memory.append(**self.row)


class Extend(Transitions):
    def time_4096(self, capacity):
        self.memory.extend(**self.rows)


class SampleUniform(Transitions):
    params = (_CAPACITIES, (256, 4096))
    param_names = ("capacity", "batch_size")

    def setup(self, capacity, batch_size):
        super().setup(capacity)
        self.batch = self.memory.sample(batch_size)

    def time_fresh(self, capacity, batch_size):
        self.memory.sample(batch_size)

    def time_out(self, capacity, batch_size):
        self.memory.sample(batch_size, out=self.batch)


class SampleOtherwise(Transitions):
    def setup(self, capacity):
        super().setup(capacity)
        self.memory.sample(1, replace=False)  # loads the kernel
        self.memory.sample(1, source=0)  # lists the rows of the source

    def time_256_without_replacement(self, capacity):
        self.memory.sample(256, replace=False)

    def time_256_of_a_source(self, capacity):
        self.memory.sample(256, source=0)


class SampleWindows(Transitions):
    def setup(self, capacity):
        super().setup(capacity)
        self.time_32_of_64_steps(capacity)  # load the kernels
        self.time_256_of_3_step_sums(capacity)

    def time_32_of_64_steps(self, capacity):
        self.memory.sample(32, sequence_length=64)

    def time_256_of_3_step_sums(self, capacity):
        self.memory.sample(256, n_step=3)


class All(Transitions):
    def setup(self, capacity):
        super().setup(capacity)
        self.everything = self.memory.all()

    def time_fresh(self, capacity):
        self.memory.all()

    def time_out(self, capacity):
        self.memory.all(out=self.everything)


class Resize(Transitions):
    number, repeat = 1, (3, 10, 5.0)

    def time_halve(self, capacity):
        self.memory.resize(capacity // 2)


class Pixels:
    """Observations of 84 x 84 x 4 bytes."""

    params = (32, 256)
    param_names = ("batch_size",)

    def setup(self, batch_size):
        self.memory = pixels(4_000).memory
        self.batch = self.memory.sample(batch_size)

    def time_sample_fresh(self, batch_size):
        self.memory.sample(batch_size)

    def time_sample_out(self, batch_size):
        self.memory.sample(batch_size, out=self.batch)
