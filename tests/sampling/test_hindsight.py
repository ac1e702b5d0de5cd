"""Goals that were reached by chance, in what is sampled: which, where they are written, what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rlmemory as rlm

from .layouts import arrays_of, equal_records
from .reaching import OPTIONS, WANTED, episode, memory_of, relabelled, step
from .support import chi_square

# ---- A6: the goal is what was achieved after the step ---------------------------------------------------------------


def test_the_final_goal_is_what_was_achieved_after_the_last_step(backend):
    memory = episode(memory_of())
    new = memory.generate_hindsight()
    assert new.id.tolist() == [0, 1, 2]
    assert new.observation["desired_goal"].tolist() == [3.0, 3.0, 3.0]
    assert new.next_observation["desired_goal"].tolist() == [3.0, 3.0, 3.0]
    assert new.observation["achieved_goal"].tolist() == [0.0, 1.0, 2.0]
    assert new.reward.tolist() == [-1.0, -1.0, 0.0]


@pytest.mark.parametrize(
    ("strategy", "goals"),
    [
        ("final", [{3.0}] * 3),
        ("future", [{1.0, 2.0, 3.0}, {2.0, 3.0}, {3.0}]),
        ("episode", [{1.0, 2.0, 3.0}] * 3),
    ],
)
def test_each_strategy_has_its_goals(backend, strategy, goals):
    memory = episode(episode(memory_of(strategy), first=50.0), first=0.0)
    episode(memory, 2, first=70.0)
    batch = memory.sample(3000)
    mine = relabelled(batch)
    for t, expected in enumerate(goals):
        assert set(batch.observation["desired_goal"][mine & (batch.id == 3 + t)].tolist()) == expected


def test_goals_of_interleaved_sources_come_from_the_row_s_own_source(backend):
    memory = memory_of("episode")
    for t in range(4):
        for source in (0, 3):
            step(memory, 10.0 * source + t, source=source, truncated=t == 3)
    batch = memory.sample(2000)
    mine = relabelled(batch)
    for source in (0, 3):
        goals = batch.observation["desired_goal"][mine & (batch.source == source)]
        assert set(goals.tolist()) == {10.0 * source + t for t in (1, 2, 3, 4)}


def test_future_goals_are_equally_likely_from_the_row_itself_on():
    memory = episode(memory_of("future"), 6)
    batch = memory.sample(300_000)
    mine = relabelled(batch)
    for t in range(5):
        goals = batch.observation["desired_goal"][mine & (batch.id == t)].astype(int)
        counts = np.bincount(goals, minlength=7)[t + 1 :]
        assert counts.sum() == goals.size
        assert chi_square(counts, goals.size / counts.size) < 5


@pytest.mark.parametrize(
    ("strategy", "k", "share"), [("final", 4, 0.5), ("future", 4, 0.8), ("future", 1, 0.5), ("episode", 3, 0.75)]
)
def test_of_k_and_one_samples_k_get_a_new_goal(strategy, k, share):
    batch = episode(memory_of(strategy, goal_samples=k)).sample(100_000)
    changed = int(relabelled(batch).sum())
    assert chi_square(np.array([changed, 100_000 - changed]), np.array([share, 1 - share]) * 100_000) < 5


# ---- A7: the end is found again -------------------------------------------------------------------------------------


def test_ends_are_found_again_and_what_is_stored_stays(backend):
    memory = episode(memory_of(), end="")
    before = memory.all()
    batch = memory.sample(200)
    mine = relabelled(batch)
    assert 0 < mine.sum() < 200
    assert (batch.terminated == (mine & (batch.id == 2))).all()
    assert (batch.discount == np.where(batch.terminated, 0.0, 0.99)).all()
    assert (batch.reward == np.where(mine & (batch.id == 2), 0.0, -1.0)).all()
    memory.generate_hindsight()
    assert equal_records(memory.all(), before)


def test_a_truncation_stays_one_unless_the_goal_is_met(backend):
    memory = memory_of("episode")
    episode(memory, 2)
    new = [memory.generate_hindsight() for _ in range(20)]
    for record in new:
        met = record.observation["desired_goal"] == record.next_observation["achieved_goal"]
        assert (record.terminated == met).all()
        assert (record.truncated == ((record.id == 1) & ~met)).all()
    assert {bool(r.truncated[-1]) for r in new} == {True, False}
    batch = memory.sample(200)
    met = relabelled(batch) & (batch.observation["desired_goal"] == batch.next_observation["achieved_goal"])
    assert (batch.terminated == met).all()
    assert (batch.truncated == ((batch.id == 1) & ~met)).all()
    assert len(set(zip(batch.id.tolist(), met.tolist(), strict=True))) == 4


def test_an_end_at_the_old_goal_is_none_at_a_new_one_that_is_not_met(backend):
    memory = memory_of("episode")
    episode(memory, 2, end="terminated")
    batch = memory.sample(300)
    mine = relabelled(batch) & (batch.id == 1)
    missed = mine & (batch.observation["desired_goal"] == 1.0)
    assert missed.any()
    assert not (batch.terminated | batch.truncated)[missed].any()
    assert (batch.discount[missed] == 0.99).all()


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_without_a_function_the_flags_stay(backend, end):
    memory = episode(memory_of(is_done_fn=None), end=end)
    new = memory.generate_hindsight()
    assert getattr(new, end).tolist() == [False, False, True]
    assert new.reward.tolist() == [-1.0, -1.0, 0.0]
    batch = memory.sample(200)
    assert (getattr(batch, end) == (batch.id == 2)).all()
    assert (batch.discount == np.where((batch.id == 2) & (end == "terminated"), 0.0, 0.99)).all()


# ---- windows and sums with new goals --------------------------------------------------------------------------------


def achieving(goals: list[float], **keywords: Any) -> rlm.HindsightReplayMemory:
    """One episode in which these goals are achieved, one after each step."""
    memory = memory_of(**keywords)
    for t, goal in enumerate(goals):
        step(memory, float(t), after=goal, truncated=t == len(goals) - 1)
    return memory


def test_all_steps_of_a_window_get_one_goal_and_it_ends_where_that_is_met(backend):
    memory = achieving([5.0, 7.0, 6.0, 7.0])
    batch = memory.sample(100, sequence_length=4)
    mine = (batch.observation["desired_goal"][:, 0] == 7.0) & (batch.id[:, 0] == 0)
    kept = (batch.observation["desired_goal"][:, 0] == WANTED) & (batch.id[:, 0] == 0)
    assert batch.id[mine].tolist() == [[0, 1, -1, -1]] * mine.sum()
    assert batch.reward[mine].tolist() == [[-1.0, 0.0, 0.0, 0.0]] * mine.sum()
    assert batch.terminated[mine].tolist() == [[False, True, False, False]] * mine.sum()
    assert batch.discount[mine].tolist() == [[0.99, 0.0, 0.0, 0.0]] * mine.sum()
    assert batch.mask[mine].tolist() == [[True, True, False, False]] * mine.sum()
    assert batch.observation["desired_goal"][mine].tolist() == [[7.0, 7.0, 0.0, 0.0]] * mine.sum()
    assert batch.id[kept].tolist() == [[0, 1, 2, 3]] * kept.sum()
    assert mine.any()
    assert kept.any()


def test_burn_in_steps_get_the_goal_too_but_end_nothing(backend):
    memory = achieving([7.0, 5.0, 6.0, 7.0])
    batch = memory.sample(200, sequence_length=3, burn_in=2)
    mine = (batch.id[:, 2] == 1) & (batch.observation["desired_goal"][:, 2] == 7.0)
    assert mine.any()
    assert batch.id[mine].tolist() == [[-1, 0, 1, 2, 3]] * mine.sum()
    assert batch.observation["desired_goal"][mine].tolist() == [[0.0, 7.0, 7.0, 7.0, 7.0]] * mine.sum()
    assert batch.reward[mine].tolist() == [[0.0, 0.0, -1.0, -1.0, 0.0]] * mine.sum()
    assert batch.terminated[mine].tolist() == [[False, False, False, False, True]] * mine.sum()


def test_sums_are_of_the_new_rewards_and_stop_where_the_goal_is_met(backend):
    memory = achieving([5.0, 7.0, 6.0, 7.0])
    batch = memory.sample(200, n_step=3, discount=0.5)
    goal = batch.observation["desired_goal"]
    mine, kept = (goal == 7.0) & (batch.id == 0), (goal == WANTED) & (batch.id == 0)
    assert mine.any()
    assert kept.any()
    for rows, reward, steps, discount, after in ((mine, -1.0, 2, 0.0, 7.0), (kept, -1.75, 3, 0.125, 6.0)):
        assert set(batch.reward[rows].tolist()) == {reward}
        assert set(batch.steps[rows].tolist()) == {steps}
        assert set(batch.discount[rows].tolist()) == {discount}
        assert set(batch.next_observation["achieved_goal"][rows].tolist()) == {after}
    assert np.array_equal(goal, batch.next_observation["desired_goal"])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_out_is_filled_again_with_what_a_fresh_result_holds(backend, options):
    memory, other = (episode(episode(memory_of("future")), 5) for _ in range(2))
    memory.sample(6, **options)
    first = other.sample(6, **options)
    second = other.sample(6, **options, out=first)
    assert equal_records(second, memory.sample(6, **options))
    for name, array in arrays_of(second).items():
        assert np.shares_memory(array, arrays_of(first)[name])


def test_time_major_windows_are_the_same_windows(backend):
    memory, other = (episode(episode(memory_of("future")), 5) for _ in range(2))
    a, b = memory.sample(30, **OPTIONS["window"]), other.sample(30, **OPTIONS["time major"])
    swapped = arrays_of(b)
    for name, array in arrays_of(a).items():
        assert np.array_equal(swapped[name], array.swapaxes(0, 1) if array.ndim > 1 else array)


def test_crossing_windows_are_refused_and_nothing_is_drawn():
    memory, other = episode(memory_of()), episode(memory_of())
    with pytest.raises(ValueError, match="a window with a new goal ends with its episode"):
        memory.sample(3, sequence_length=2, boundary="cross")
    assert equal_records(memory.sample(5), other.sample(5))
    stored = episode(episode(memory_of(relabel="store")))
    assert stored.sample(3, sequence_length=2, boundary="cross").id.shape == (3, 2)
