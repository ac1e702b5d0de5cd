"""What a memory says of its content."""

from __future__ import annotations

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory import statistics

from .support import LAYOUTS, PLAIN, Spec, counted, unchanged


def of(values: np.ndarray, *, capacity: int | None = None) -> dict:
    """What is said of one channel that holds `values`."""
    memory = rlm.ReplayMemory(Spec(values.shape[1:], values.dtype), Spec(()), capacity or max(1, len(values)))
    zeros = np.zeros(len(values))
    memory.extend(values, zeros, reward=zeros, next_observation=values, terminated=False)
    return memory.statistics()["channels"]["observation"]


def test_counts_are_of_what_is_stored_and_not_of_what_was():
    memory = PLAIN.memory(6)
    counted(memory, 9, source=[5, 5, 5, 0, 0, 2, 2, 2, 0], terminated=np.arange(9) % 2 == 0, truncated=np.arange(9) < 5)
    said = memory.statistics()
    assert (said["length"], said["capacity"], said["next_id"], said["nbytes"]) == (6, 6, 9, memory.nbytes)
    assert said["sources"] == {0: 3, 2: 3}
    assert list(said["sources"]) == [0, 2]
    assert (said["terminated"], said["truncated"]) == (3, 1)
    assert (said["channels"]["action"]["min"], said["channels"]["action"]["max"]) == (3, 8)


def test_every_channel_is_named():
    memory = LAYOUTS["dict"].memory(4)
    assert list(memory.statistics()["channels"]) == [
        "observation['image']", "observation['none']", "action['steer']", "action['gear']", "reward",
        "next_observation['image']", "next_observation['none']", "extra['log_prob']", "extra['state']",
    ]  # fmt: skip


def test_of_an_empty_memory_nothing_is_said():
    said = PLAIN.memory(4).statistics()
    assert (said["length"], said["sources"], said["terminated"], said["truncated"]) == (0, {}, 0, 0)
    assert said["channels"]["reward"] == {"min": None, "max": None, "mean": None, "std": None, "nan": 0}
    assert of(np.zeros((3, 0)))["mean"] is None


@pytest.mark.parametrize("piece", [1, 100, 1 << 22])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
def test_range_mean_and_spread_are_numpys(dtype, piece, monkeypatch):
    monkeypatch.setattr(statistics, "_PIECE", piece)
    rng = np.random.default_rng(0)
    values = (rng.random((50, 3)) * 100).astype(dtype)
    said = of(values, capacity=37)
    kept = values[-37:].astype(np.float64)
    assert (said["min"], said["max"], said["nan"]) == (kept.min(), kept.max(), 0)
    assert said["mean"] == pytest.approx(kept.mean(), rel=1e-12)
    assert said["std"] == pytest.approx(kept.std(), rel=1e-12)
    assert type(said["min"]) is type(values[0, 0].item())


@pytest.mark.parametrize("piece", [1, 1 << 22])
def test_nan_is_counted_and_left_out(piece, monkeypatch):
    monkeypatch.setattr(statistics, "_PIECE", piece)
    said = of(np.array([np.nan, 1.0, 3.0, np.nan, np.nan]))
    assert said == {"min": 1, "max": 3, "mean": 2, "std": 1, "nan": 3}
    assert of(np.array([np.nan, np.nan])) == {"min": None, "max": None, "mean": None, "std": None, "nan": 2}


def test_complex_channels_have_a_mean_and_a_spread_and_no_range():
    values = np.array([1 + 1j, 3 - 1j, 2 + 6j], np.complex64)
    said = of(values)
    assert (said["min"], said["max"]) == (None, None)
    assert said["mean"] == pytest.approx(2 + 2j)
    assert said["std"] == pytest.approx(np.std(values))


def test_spreads_of_large_numbers_keep_their_digits():
    said = of(1e9 + np.array([4.0, 7.0, 13.0, 16.0]))
    assert said["std"] == pytest.approx(np.std([4.0, 7.0, 13.0, 16.0]), rel=1e-9)


def test_infinite_and_huge_values_warn_of_nothing():
    said = of(np.array([1.0, np.inf, 2.0]))
    assert (said["min"], said["max"], said["mean"]) == (1, np.inf, np.inf)
    assert of(np.array([1e308, -1e308, 1e308]))["max"] == 1e308
    assert of(np.array([1e200, 2e200]))["mean"] == pytest.approx(1.5e200)


def test_looking_changes_nothing():
    memory = PLAIN.memory(6, seed=0)
    counted(memory, 9)
    with unchanged(memory):
        memory.statistics()
