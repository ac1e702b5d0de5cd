"""`RLMEMORY_BACKEND=cuda`: memories on the CPU, served by the device's kernels, which are lent the host's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory import kernels

from .support import agree, needs_device

CALLS = {
    "uniform": lambda memory: memory.sample(6),
    "windows": lambda memory: memory.sample(5, sequence_length=4, burn_in=1, previous=True),
    "full windows": lambda memory: memory.sample(5, sequence_length=3, padding="none"),
    "sums": lambda memory: memory.sample(6, n_step=3),
    "episodes": lambda memory: memory.trajectories(),
    "table": lambda memory: memory.episodes(),
    "by id": lambda memory: memory.get(memory.ids[3:6]),
    "all": lambda memory: memory.all(),
}


def filled(kind: Any, **keywords: Any) -> Any:
    memory = kind(rlm.NumericSpec((3,)), rlm.NumericSpec((), "int64"), 37, seed=3, **keywords)
    rng = np.random.default_rng(1)
    for rows in (20, 1, 30, 5):
        seen, ends = rng.random((rows, 3)), rng.random(rows) < 0.2
        memory.extend(
            seen, rng.integers(0, 5, rows), reward=rng.random(rows), next_observation=seen + 1, terminated=ends,
            source=rng.integers(0, 2, rows),
        )  # fmt: skip
    return memory


@needs_device
@pytest.mark.parametrize("kind", [rlm.ReplayMemory, rlm.PrioritizedReplayMemory])
def test_memories_on_the_cpu_draw_alike_with_the_kernels_of_the_device(kind):
    here, there = filled(kind), filled(kind)
    if kind is rlm.PrioritizedReplayMemory:
        with kernels.use("cuda"):
            assert there.update_priorities([0, 30, 31, 31], [1.0, 2.0, 9.0, 3.0]) == 1
        here.update_priorities([0, 30, 31, 31], [1.0, 2.0, 9.0, 3.0])
    for call in CALLS.values():
        expected = call(here)
        with kernels.use("cuda"):
            agree(expected, call(there))


@needs_device
def test_draws_without_replacement_are_alike_with_the_kernels_of_the_device():
    expected = filled(rlm.ReplayMemory).sample(9, replace=False)
    with kernels.use("cuda"):
        agree(expected, filled(rlm.ReplayMemory).sample(9, replace=False))
