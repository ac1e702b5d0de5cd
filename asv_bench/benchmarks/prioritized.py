"""`PrioritizedReplayMemory`, by capacity: the curve should be flat but for cache misses.

``python -m asv_bench.benchmarks.prioritized`` prints the ratios to memcpy and to a plain memory.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np

import rlmemory as rlm

_CAPACITIES = (10_000, 100_000, 1_000_000)
_BATCH = 256
_ROW_BYTES = 165


def _full(kind, capacity):
    """A full memory of rows of 165 bytes with random priorities, and one row that fits it."""
    rng = np.random.default_rng(0)
    memory = kind(
        rlm.NumericSpec((17,), "float32"), rlm.NumericSpec((6,), "float32"), capacity, reward="float32", seed=0
    )
    rows = rng.random((10_000, 17), dtype=np.float32)
    given = {
        "observation": rows,
        "action": rows[:, :6].copy(),
        "reward": rows[:, 0].copy(),
        "next_observation": rows,
        "terminated": np.arange(10_000) % 200 == 199,
    }
    while len(memory) < capacity:
        memory.extend(**given)
    if kind is rlm.PrioritizedReplayMemory:
        memory.update_priorities(np.arange(memory.next_id - capacity, memory.next_id), rng.random(capacity))
    memory.sample(1)
    row = {name: column[0] for name, column in given.items()}
    row["terminated"] = bool(row["terminated"])
    return memory, row


class Prioritized:
    params = _CAPACITIES
    param_names = ("capacity",)
    warmup_time = 0.05

    def setup(self, capacity):
        self.memory, self.row = _full(rlm.PrioritizedReplayMemory, capacity)
        self.plain, _ = _full(rlm.ReplayMemory, capacity)
        self.errors = np.random.default_rng(1).random(_BATCH)
        self.ids = self.memory.sample(_BATCH).id

    def time_sample_and_update(self, capacity):
        self.memory.update_priorities(self.memory.sample(_BATCH).id, self.errors)

    def time_sample(self, capacity):
        self.memory.sample(_BATCH)

    def time_update(self, capacity):
        self.memory.update_priorities(self.ids, self.errors)

    def time_draw(self, capacity):
        self.memory._propose(_BATCH, None)

    def time_sample_plain(self, capacity):
        self.plain.sample(_BATCH)

    def time_append_then_sample(self, capacity):
        self.memory.append(**self.row)
        self.memory.sample(_BATCH)

    def time_append_then_sample_plain(self, capacity):
        self.plain.append(**self.row)
        self.plain.sample(_BATCH)

    def time_full_windows_of_8(self, capacity):
        self.memory.sample(32, sequence_length=8, padding="none")


def _operations(capacity):
    bench = Prioritized()
    bench.setup(capacity)
    names = [name for name in dir(bench) if name.startswith("time_")]
    operations = {name[5:]: partial(getattr(bench, name), capacity) for name in names}
    # Two memcpys of the bytes of a batch: from a random place of a block as large as the memory, as a sample finds its
    # rows, and from a place that is in the cache.
    block = np.ones(bench.memory.nbytes, np.uint8)
    target = np.zeros(_BATCH * _ROW_BYTES, np.uint8)
    places = np.random.default_rng(2)

    def cold():
        start = int(places.integers(0, block.size - target.size))
        piece = block[start : start + target.size]
        begin = perf_counter()
        np.copyto(target, piece)
        return perf_counter() - begin

    operations["memcpy, cold"] = cold
    operations["memcpy, cached"] = lambda: np.copyto(target, block[: target.size])
    return operations


def _medians(operations, rounds=400):
    taken = {name: np.empty(rounds) for name in operations}
    names = list(operations)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            begin = perf_counter()
            own = operations[name]()
            whole = perf_counter() - begin
            taken[name][i] = own if isinstance(own, float) else whole
    return {name: float(np.median(times)) for name, times in taken.items()}


def main():
    for capacity in _CAPACITIES:
        medians = _medians(_operations(capacity))
        print(f"{capacity:,} rows of {_ROW_BYTES} bytes, batches of {_BATCH}")
        for name, seconds in medians.items():
            cold, cached = seconds / medians["memcpy, cold"], seconds / medians["memcpy, cached"]
            print(f"  {name.replace('_', ' '):<28}{seconds * 1e6:8.1f} us {cold:7.1f} x cold {cached:7.1f} x cached")
        ratio = medians["append_then_sample"] / medians["append_then_sample_plain"]
        print(f"  append then sample, prioritized / plain: {ratio:.2f}")


if __name__ == "__main__":
    main()
