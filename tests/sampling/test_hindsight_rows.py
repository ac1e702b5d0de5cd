"""Experiences with new goals, generated for the user or stored when an episode ends."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm

from .layouts import equal_records
from .reaching import GOAL, OPTIONS, WANTED, episode, memory_of, step
from .support import Spec

# ---- generated for the user -----------------------------------------------------------------------------------------


def test_the_newest_episode_is_taken_or_so_many_rows_each_with_goals_of_its_own_episode(backend):
    memory = episode(episode(memory_of(), 3), 4, first=10.0)
    assert memory.generate_hindsight().id.tolist() == [3, 4, 5, 6]
    new = memory.generate_hindsight(6)
    assert new.id.tolist() == [1, 2, 3, 4, 5, 6]
    assert new.observation["desired_goal"].tolist() == [3.0, 3.0, 14.0, 14.0, 14.0, 14.0]
    assert memory.generate_hindsight(99).id.tolist() == list(range(7))


def test_no_goal_is_older_than_the_rows_that_were_asked_for(backend):
    memory = episode(memory_of("episode", goal_samples=50), 6)
    goals = memory.generate_hindsight(2).observation["desired_goal"]
    assert set(goals.tolist()) == {5.0, 6.0}


def test_each_row_is_repeated_for_each_of_its_goals():
    memory = episode(memory_of("future", goal_samples=3), 2)
    assert memory.generate_hindsight().id.tolist() == [0, 0, 0, 1, 1, 1]


def test_one_source_can_be_asked_for(backend):
    memory = episode(episode(memory_of(), 2, source=5), 3, first=10.0, source=1)
    assert memory.generate_hindsight(source=5).id.tolist() == [0, 1]
    assert memory.generate_hindsight(source=5).source.tolist() == [5, 5]
    assert memory.generate_hindsight(1, source=5).id.tolist() == [1]
    with pytest.raises(rlm.EmptyMemoryError):
        memory.generate_hindsight(source=2)
    with pytest.raises(ValueError, match="length: expected a whole number from 1 up"):
        memory.generate_hindsight(0)


def test_a_long_episode_is_taken_whole(backend):
    memory = episode(episode(memory_of(capacity=2000), 5), 700)
    assert memory.generate_hindsight().id.tolist() == list(range(5, 705))


def test_what_was_generated_stands_alone_wherever_it_is_stored(backend):
    memory = episode(memory_of(), 3, end="")
    new = pickle.loads(pickle.dumps(memory.generate_hindsight()))
    plain = rlm.ReplayMemory(GOAL, Spec(()), 100, seed=0)
    for other in (memory, copy.deepcopy(memory), plain):
        ids = list(other.extend_from(new))
        step(other, 3.0)
        windows = other.sample(100, sequence_length=3, padding="start").id.tolist()
        assert {tuple(w) for w in windows if w[-1] in ids} <= {(-1, -1, i) for i in ids}
        assert other.get(ids).source.tolist() == [0, 0, 0]
        joined = other.episodes()
        assert not np.isin(ids, joined.first_id).any()
        assert joined.length.sum() == len(other) - 3


# ---- stored when an episode ends ------------------------------------------------------------------------------------


def stored(strategy: str = "final", **keywords: Any) -> rlm.HindsightReplayMemory:
    return memory_of(strategy, relabel="store", **keywords)


def test_rows_with_new_goals_are_stored_behind_an_episode_that_ends(backend):
    memory = episode(stored(), 3, end="")
    assert len(memory) == 3
    step(memory, 3.0, truncated=True)
    rows = memory.all()
    assert len(memory) == 8
    assert rows.observation["desired_goal"].tolist() == [WANTED] * 4 + [4.0] * 4
    assert rows.observation["achieved_goal"].tolist() == [0.0, 1.0, 2.0, 3.0] * 2
    assert rows.terminated.tolist() == [False] * 7 + [True]
    assert rows.truncated.tolist() == [False] * 3 + [True] + [False] * 4


def test_extend_stores_them_for_each_end_and_not_for_what_still_runs(backend):
    memory = stored("future", goal_samples=2)
    t = np.arange(6.0)
    seen, after = ({"achieved_goal": v, "desired_goal": np.full(6, WANTED)} for v in (t, t + 1))
    ids = memory.extend(seen, t, reward=t, next_observation=after, terminated=t == 1, truncated=t == 3)
    assert list(ids) == list(range(6))
    assert len(memory) == 6 + 2 * 4
    assert memory.all().observation["achieved_goal"][6:].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    step(memory, 6.0, truncated=True)
    assert memory.all().observation["achieved_goal"][-6:].tolist() == [4, 4, 5, 5, 6, 6]


def test_end_episode_stores_them_for_what_was_cut_once(backend):
    memory = stored()
    episode(memory, 2, source=0, end="")
    episode(memory, 3, first=10.0, source=4, end="")
    memory.end_episode(4)
    assert memory.all().source.tolist() == [0, 0, 4, 4, 4, 4, 4, 4]
    memory.end_episode()
    assert memory.all().source.tolist()[8:] == [0, 0]
    memory.end_episode()
    assert len(memory) == 10
    assert memory.episodes().ended.tolist() == ["cut", "cut"]


def test_stored_rows_stand_alone_and_show_the_source_of_what_they_were_made_of(backend):
    memory = episode(stored(), 3, source=4, end="truncated")
    episode(memory, 2, first=20.0, source=4, end="")
    generated = [3, 4, 5]
    assert memory.get(generated).source.tolist() == [4, 4, 4]
    assert memory.statistics()["sources"] == {4: 8}
    batch = memory.sample(300, sequence_length=3, boundary="cross", burn_in=1, previous=True)
    for ids in batch.id.tolist():
        assert not set(ids) & set(generated) or set(ids) - {-1} <= set(generated)
        assert sum(i in generated for i in ids) <= 1
    assert (3, 4) not in {tuple(ids) for ids in memory.sample(100, sequence_length=2).id.tolist()}
    alone = np.isin(batch.id, generated)
    assert batch.is_first[alone].all()
    assert not batch.previous_reward[alone].any()
    sums = memory.sample(200, n_step=3)
    assert (sums.steps[np.isin(sums.id, generated)] == 1).all()
    assert memory.episodes().first_id.tolist() == [0, 6]
    assert memory.trajectories().id.tolist() == [[0, 1, 2], [6, 7, -1]]
    assert set(memory.sample(200, source=4).id.tolist()) == set(range(8))
    assert (2, 6) in {tuple(i) for i in memory.sample(99, sequence_length=2, boundary="cross").id.tolist()}


def test_another_source_for_stored_rows_gives_them_no_neighbours(backend):
    memory = episode(stored(), 3)
    memory.set([3, 4, 5], source=[7, 7, 7])
    assert memory.get([3, 4, 5]).source.tolist() == [7, 7, 7]
    assert memory.sample(99, sequence_length=2, source=7).id[:, 1].tolist() == [-1] * 99
    assert memory.episodes().first_id.tolist() == [0]


def test_rows_stand_alone_after_resize_and_a_copy(backend):
    memory = episode(stored(), 3)
    for again in (pickle.loads(pickle.dumps(memory)), memory):
        again.resize(50)
        assert again.episodes().length.tolist() == [3]
        assert set(again.sample(99, sequence_length=2, padding="none").id[:, 0].tolist()) == {0, 1}
        assert equal_records(again.all(), memory.all())


def test_a_ring_smaller_than_what_is_generated_keeps_the_newest(backend):
    memory = episode(stored("future", capacity=5, goal_samples=3), 4)
    assert len(memory) == 5
    assert memory.next_id == 4 + 12
    assert memory.all().observation["achieved_goal"].tolist() == [2.0, 2.0, 3.0, 3.0, 3.0]
    assert not memory.sample(50, sequence_length=2).mask[:, 1].any()


def test_samples_of_a_storing_memory_are_not_relabelled_again(backend):
    memory = episode(stored(), 3)
    batch, rows = memory.sample(200), memory.all()
    assert np.array_equal(batch.observation["desired_goal"], rows.observation["desired_goal"][batch.id])
    assert np.array_equal(batch.terminated, rows.terminated[batch.id])


# ---- pickle ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relabel", ["sample", "store"])
def test_a_memory_with_functions_of_a_module_survives_pickle(relabel):
    memory = episode(episode(memory_of("future", relabel=relabel)), 5)
    again = pickle.loads(pickle.dumps(memory))
    for options in OPTIONS.values():
        assert equal_records(again.sample(7, **options), memory.sample(7, **options))
    assert equal_records(episode(again, 2).all(), episode(memory, 2).all())
