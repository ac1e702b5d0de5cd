"""Whole episodes: the table of them, all of them padded, some at random, and what looks wrong in a memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rlmemory as rlm

from .support import Spec, chi_square, count, line


def mixed() -> rlm.ReplayMemory:
    """Sources 0 and 4 in turn: 0 has an episode of three and one that runs, 4 a truncated one and one that was cut."""
    memory = line(12, [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0], terminated=(4,), truncated=(1,), source=[0, 4] * 3 + [0])
    memory.end_episode(4)
    return memory


def test_the_table_says_where_an_episode_begins_how_long_it_is_and_how_it_ended(backend):
    found = mixed().episodes()
    assert found.first_id.tolist() == [0, 1, 3, 6]
    assert found.length.tolist() == [3, 1, 2, 1]
    assert found.returns.tolist() == [6.0, 10.0, 50.0, 4.0]
    assert found.source.tolist() == [0, 4, 4, 0]
    assert found.ended.tolist() == ["terminated", "truncated", "cut", "running"]


def test_an_episode_whose_beginning_was_overwritten_counts_with_what_is_left(backend):
    memory = line(4, [1.0, 2.0, 3.0, 4.0, 5.0], terminated=(2,))
    assert memory.episodes().first_id.tolist() == [1, 3]
    assert memory.episodes().returns.tolist() == [5.0, 9.0]


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_an_episode_that_ends_with_the_newest_row_has_ended(backend, end):
    memory = line(4, [0.0, 0.0], **{end: (1,)})
    assert memory.episodes().ended.tolist() == [end]
    assert memory.sample_episodes(1).id.tolist() == [[0, 1]]


def test_returns_have_the_kind_of_the_reward(backend):
    for reward, dtype in (("int8", "float64"), ("float32", "float32"), ("complex64", "complex64")):
        memory = rlm.ReplayMemory(Spec(()), Spec(()), 300, reward=Spec((2,), reward))
        zero = np.zeros(200)
        memory.extend(zero, zero, reward=np.full((200, 2), 100), next_observation=zero, terminated=False)
        assert memory.episodes().returns.dtype == dtype
        assert memory.episodes().returns.tolist() == [[20_000, 20_000]]


def test_an_empty_memory_has_no_episodes(backend):
    memory = line(4, [])
    assert [len(column) for column in memory.episodes()] == [0] * 5
    assert memory.trajectories().observation.shape == (0, 0)
    assert memory.check().ok
    with pytest.raises(rlm.EmptyMemoryError, match="no episode in the memory has ended"):
        memory.sample_episodes(1)


def test_trajectories_are_padded_with_zeros_to_the_longest(backend):
    batch = mixed().trajectories()
    assert batch.id.tolist() == [[0, 2, 4], [1, -1, -1], [3, 5, -1], [6, -1, -1]]
    assert batch.reward.tolist() == [[1.0, 2.0, 3.0], [10.0, 0.0, 0.0], [20.0, 30.0, 0.0], [4.0, 0.0, 0.0]]
    assert (batch.mask == (batch.id >= 0)).all()
    assert batch.is_first.tolist() == [[True, False, False]] * 4
    assert batch.discount[0].tolist() == [0.99, 0.99, 0.0]
    assert batch.source.tolist() == [[0, 0, 0], [4, 0, 0], [4, 4, 0], [0, 0, 0]]


def test_trajectories_of_one_source_are_padded_to_its_longest(backend):
    assert mixed().trajectories(4).id.tolist() == [[1, -1], [3, 5]]
    assert mixed().trajectories(0, time_major=True).id.tolist() == [[0, 6], [2, -1], [4, -1]]
    assert mixed().trajectories(9).id.shape == (0, 0)


def test_sampled_episodes_have_ended_each_is_equally_likely(backend):
    drawn = mixed().sample_episodes(30_000)
    assert set(drawn.id[:, 0].tolist()) == {0, 1, 3}
    assert chi_square(np.bincount(drawn.id[:, 0], minlength=4)[[0, 1, 3]], 10_000) < 5
    assert {tuple(row) for row in drawn.id.tolist()} == {(0, 2, 4), (1, -1, -1), (3, 5, -1)}


def test_sampled_episodes_are_as_wide_as_the_longest_of_those_drawn(backend):
    memory = line(12, [0.0] * 6, terminated=(0, 2, 5))
    assert {memory.sample_episodes(1).id.shape[1] for _ in range(30)} == {1, 2, 3}


def test_a_cut_episode_has_ended_and_a_running_one_has_not(backend):
    memory = line(8, [0.0, 0.0])
    with pytest.raises(rlm.EmptyMemoryError):
        memory.sample_episodes(1)
    memory.end_episode()
    assert memory.sample_episodes(1).id.tolist() == [[0, 1]]
    count(memory, 1)
    assert memory.episodes().ended.tolist() == ["cut", "running"]


def test_ends_of_all_kinds_survive_resize_and_a_copy(backend):
    memory = mixed()
    before = memory.episodes()
    for again in (pickle.loads(pickle.dumps(memory)), memory):
        again.resize(9)
        for a, b in zip(before, again.episodes(), strict=True):
            assert np.array_equal(a, b)
        assert again.sample(60, sequence_length=2, source=4).id.max() == 5
        count(again, 1, source=4)
        assert again.episodes().ended.tolist()[-2:] == ["running", "running"]


def test_clear_forgets_what_came_before(backend):
    memory = count(line(8, []), 3)
    memory.clear()
    count(memory, 2)
    assert memory.episodes().first_id.tolist() == [3]
    batch = memory.sample(40, burn_in=2)
    assert {tuple(ids) for ids in batch.id.tolist()} == {(-1, -1, 3), (-1, 3, 4)}


# ---- check ----------------------------------------------------------------------------------------------------------


def test_check_finds_running_rows_that_do_not_lead_to_the_next(backend):
    memory = line(20, [float(t) for t in range(6)], terminated=(3,))
    assert memory.check().ok
    memory.set([1], next_observation=[99.0])
    memory.set([3], next_observation=[99.0])  # an end may lead anywhere
    found = memory.check()
    assert found.broken.tolist() == [1]
    assert not found.ok


def test_check_follows_each_source_and_takes_nan_for_nan(backend):
    memory = line(20, [0.0, 1.0] * 3, source=[0, 1] * 3)
    assert memory.check().broken.tolist() == [0, 1, 2, 3]
    ids = memory.all().id
    memory.set(ids, next_observation=ids + 2.0)
    assert memory.check().broken.size == 0
    memory.set([2, 0], observation=[np.nan, 0.0], next_observation=[4.0, np.nan])
    assert memory.check().broken.size == 0
    assert memory.check().nan == {"observation": 1, "next_observation": 1}


def test_check_names_constant_channels_and_counts_nans():
    memory = rlm.ReplayMemory({"a": Spec((2,)), "b": Spec((), "bool")}, (Spec((), "int8"),), 10, reward="complex64")
    a = np.arange(6.0).reshape(3, 2)
    a[1] = np.nan
    observation = {"a": a, "b": np.ones(3, bool)}
    memory.extend(
        observation, (np.zeros(3, np.int8),), reward=np.arange(3) * 1j, next_observation=observation,
        terminated=np.ones(3, bool),
    )  # fmt: skip
    found = memory.check()
    assert found.constant == ("observation['b']", "action[0]", "next_observation['b']")
    assert found.nan == {"observation['a']": 2, "next_observation['a']": 2}
