"""Windows: what they may hold, where they may begin, and what is said of each step."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import rlmemory as rlm
from rlmemory import kernels

from .layouts import equal_records
from .support import chi_square, count, first_with, line

HISTORY = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 2]), st.integers(0, 2), st.sampled_from(["", "", "", "", "all", "one"])),
    min_size=1,
    max_size=25,
)


def through(history: list, capacity: int) -> tuple[rlm.ReplayMemory, list[tuple[int, int, int]]]:
    """A memory with this history of (end, source, cut before it), and the same as (source, episode, code) by id."""
    memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), capacity, seed=1)
    episode, facts = dict.fromkeys(range(3), 0), []
    for code, source, cut in history:
        if cut:
            memory.end_episode(source if cut == "one" else None)
            for which in [source] if cut == "one" else episode:
                episode[which] += 1
        count(memory, 1, terminated=code == 1, truncated=code == 2, source=source)
        facts.append((source, episode[source], code))
        episode[source] += code != 0
    return memory, facts


# ---- A1: the write head ---------------------------------------------------------------------------------------------


def test_no_window_runs_from_the_newest_row_on_into_the_oldest(backend):
    memory = count(line(8, []), 17)
    batch = memory.sample(1000, sequence_length=4, padding="none")
    assert set(batch.id[:, 0].tolist()) == {9, 10, 11, 12, 13}
    assert (np.diff(batch.id, axis=1) == 1).all()
    assert batch.mask.all()


def test_each_full_window_of_a_full_ring_is_equally_likely():
    memory = count(line(8, []), 17)
    starts = memory.sample(100_000, sequence_length=4, padding="none").id[:, 0]
    assert chi_square(np.bincount(starts - 9, minlength=5), 20_000) < 5


def test_a_padded_window_ends_at_the_newest_row(backend):
    batch, i = first_with(count(line(8, []), 17), 14, sequence_length=4)
    assert batch.id[i].tolist() == [14, 15, 16, -1]
    assert batch.mask[i].tolist() == [True, True, True, False]
    assert batch.observation[i].tolist() == [14.0, 15.0, 16.0, 0.0]
    assert batch.discount[i].tolist() == [0.99, 0.99, 0.99, 0.0]
    assert batch.steps[i].tolist() == [1, 1, 1, 0]


# ---- A2: a ring smaller than two episodes ---------------------------------------------------------------------------


def test_what_is_left_of_an_overwritten_episode_is_never_joined_with_the_next(backend):
    memory = count(line(10, []), 8)
    count(memory, 1, terminated=True)
    count(memory, 8)
    count(memory, 1, terminated=True)
    strict = memory.sample(1000, sequence_length=4, padding="none")
    assert set(strict.id[:, 0].tolist()) == {9, 10, 11, 12, 13, 14}
    assert (np.diff(strict.id, axis=1) == 1).all()
    batch, i = first_with(memory, 8, sequence_length=4)
    assert batch.id[i].tolist() == [8, -1, -1, -1]
    assert batch.is_first[i].tolist() == [True, False, False, False]


# ---- A5: interleaved sources ----------------------------------------------------------------------------------------


def test_no_window_joins_two_sources(backend):
    memory = line(100, [0.0] * 12, source=np.tile([1, 2, 7], 4))
    for boundary in ("stop", "cross"):
        batch = memory.sample(200, sequence_length=3, boundary=boundary)
        real = batch.source.min(axis=1, initial=99, where=batch.mask), batch.source.max(axis=1)
        assert (real[0] == real[1]).all()
        assert (np.diff(batch.id, axis=1)[batch.mask[:, 1:]] == 3).all()


# ---- the kind of them all -------------------------------------------------------------------------------------------


@given(
    history=HISTORY,
    capacity=st.integers(1, 12),
    length=st.integers(1, 6),
    burn_in=st.integers(0, 3),
    padding=st.sampled_from(["end", "start", "none"]),
    boundary=st.sampled_from(["stop", "cross"]),
)
def test_every_window_follows_one_source_within_its_bounds(history, capacity, length, burn_in, padding, boundary):
    memory, facts = through(history, capacity)
    options: dict[str, Any] = {"sequence_length": length, "burn_in": burn_in, "padding": padding, "boundary": boundary}
    with kernels.use("reference"):
        try:
            batch = memory.sample(20, **options)
        except rlm.EmptyMemoryError:
            assert padding == "none"
            return
    cut_before = {(i, source) for i, (_, source, cut) in enumerate(history) if cut}
    everyone = [i for i, (_, _, cut) in enumerate(history) if cut == "all"]
    for ids in batch.id.reshape(20, -1):
        real = ids[ids >= 0].tolist()
        assert real, "the chosen row is always there"
        assert real[0] >= memory.next_id - len(memory), "no window holds an overwritten row"
        sources = {facts[i][0] for i in real}
        assert len(sources) == 1, "no window joins two sources"
        source = sources.pop()
        assert np.array_equal(np.flatnonzero(ids >= 0), np.flatnonzero(ids >= 0)[0] + np.arange(len(real)))
        for a, b in itertools.pairwise(real):
            assert a < b, "time runs forward: nothing runs over the write cursor"
            assert all(facts[i][0] != source for i in range(a + 1, b)), "no row of the source is left out"
            assert boundary == "cross" or facts[a][2] == 0, "nothing runs past an end"
            cuts = [i for i in everyone if a < i <= b] + [i for i, s in cut_before if s == source and a < i <= b]
            assert not cuts, "nothing runs over end_episode"
        if padding == "none" and length > 1:
            assert (ids[burn_in:] >= 0).all(), "full windows only"


# ---- padding, burn-in, boundaries -----------------------------------------------------------------------------------


def test_start_padding_puts_the_chosen_row_last_and_zeros_before_it(backend):
    memory = line(10, [1.0, 2.0, 3.0], terminated=(2,))
    batch, i = first_with(memory, 1, at=-1, sequence_length=4, padding="start")
    assert batch.id[i].tolist() == [-1, -1, 0, 1]
    assert batch.reward[i].tolist() == [0.0, 0.0, 1.0, 2.0]
    assert batch.is_first[i].tolist() == [False, False, True, False]


def test_burn_in_steps_come_before_the_chosen_row_and_are_masked_where_there_are_none(backend):
    memory = line(10, [1.0, 2.0, 3.0, 4.0], truncated=(0,))
    batch, i = first_with(memory, 2, at=2, sequence_length=2, burn_in=2)
    assert batch.id[i].tolist() == [-1, 1, 2, 3]
    assert batch.mask[i].tolist() == [False, True, True, True]
    assert set(batch.id[:, 2].tolist()) == {0, 1, 2, 3}


def test_burn_in_does_not_ask_for_full_windows_before_the_chosen_row(backend):
    batch = line(10, [0.0] * 5).sample(200, sequence_length=3, burn_in=4, padding="none")
    assert set(batch.id[:, 4].tolist()) == {0, 1, 2}
    assert batch.mask[:, 4:].all()
    assert not batch.mask[:, :2].any()


def test_crossing_windows_run_on_into_the_next_episode_and_say_where(backend):
    memory = line(10, [0.0] * 6, terminated=(1,), truncated=(3,))
    batch, i = first_with(memory, 1, sequence_length=5, boundary="cross", discount=0.5)
    assert batch.id[i].tolist() == [1, 2, 3, 4, 5]
    assert batch.is_first[i].tolist() == [False, True, False, True, False]
    assert batch.discount[i].tolist() == [0.0, 0.5, 0.5, 0.5, 0.5]
    stopped, i = first_with(memory, 1, sequence_length=5)
    assert stopped.id[i].tolist() == [1, -1, -1, -1, -1]


def test_nothing_crosses_end_episode_not_even_crossing_windows(backend):
    memory = count(line(10, []), 3)
    memory.end_episode()
    count(memory, 3)
    batch, i = first_with(memory, 1, sequence_length=4, boundary="cross")
    assert batch.id[i].tolist() == [1, 2, -1, -1]
    single = memory.sample(50)
    assert (single.is_first == np.isin(single.id, [0, 3])).all()


def test_end_episode_of_one_source_leaves_the_others_as_they_are(backend):
    memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 10, seed=0)
    for source in (0, 1):
        count(memory, 1, source=source)
    memory.end_episode(0)
    for source in (0, 1):
        count(memory, 1, source=source)
    windows = memory.sample(50, sequence_length=2).id
    assert {tuple(w) for w in windows.tolist()} == {(0, -1), (1, 3), (2, -1), (3, -1)}


def test_previous_is_the_step_before_and_zeros_where_an_episode_begins(backend):
    memory = line(10, [1.0, 2.0, 3.0, 4.0], terminated=(1,))
    batch = memory.sample(50, previous=True)
    before = {0: (0.0, 0.0), 1: (0.0, 1.0), 2: (0.0, 0.0), 3: (-2.0, 3.0)}
    given = zip(batch.id.tolist(), batch.previous_action.tolist(), batch.previous_reward.tolist(), strict=True)
    for identity, action, reward in given:
        assert (action, reward) == before[identity]
    assert memory.sample(1).previous_action is memory.sample(1).previous_reward is None


def test_time_major_swaps_the_first_two_axes_and_nothing_else(backend):
    memory, other = (line(10, [0.0] * 7, terminated=(3,)) for _ in range(2))
    options: dict[str, Any] = {"sequence_length": 3, "burn_in": 1, "previous": True}
    batch, swapped = memory.sample(5, **options), other.sample(5, **options, time_major=True)
    assert swapped.weight.shape == (5,)
    pairs = zip(batch, swapped, strict=True)
    for a, b in ((a, b) for a, b in pairs if isinstance(a, np.ndarray) and a.ndim > 1):
        assert np.array_equal(np.swapaxes(a, 0, 1), b)
        assert b.flags.c_contiguous


def test_truncated_is_not_terminal(backend):
    batch = line(10, [1.0, 2.0], terminated=(0,), truncated=(1,)).sample(50)
    assert (batch.discount == np.where(batch.id == 0, 0.0, 0.99)).all()
    assert (batch.next_observation == batch.id + 1).all()
    assert (batch.truncated == (batch.id == 1)).all()


def test_a_change_of_ends_or_sources_moves_the_legal_starts(backend):
    memory = line(10, [0.0] * 6)
    options: dict[str, Any] = {"sequence_length": 4, "padding": "none"}
    assert set(memory.sample(100, **options, replace=True).id[:, 0].tolist()) == {0, 1, 2}
    assert memory.sample(3, **options, replace=False).id[:, 0].max() == 2
    memory.set([3], truncated=[True])
    assert set(memory.sample(100, **options).id[:, 0].tolist()) == {0}
    with pytest.raises(rlm.EmptyMemoryError, match="begin a full window"):
        memory.sample(2, **options, replace=False)
    memory.set([1], source=5)
    with pytest.raises(rlm.EmptyMemoryError, match="no episode in the memory has 4 steps"):
        memory.sample(1, **options)
    memory.set([3], truncated=[False])
    assert set(memory.sample(100, **options).id[:, 0].tolist()) == {0, 2}
    memory.set([1], source=[0])
    assert set(memory.sample(100, **options).id[:, 0].tolist()) == {0, 1, 2}


# ---- each legal start equally likely --------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 5, 9])
def test_full_windows_over_episodes_of_unequal_length_are_equally_likely(length):
    """At 5 and 9 most rows begin none: most draws come from the exact list, after the rejections."""
    ends = np.cumsum([1, 2, 9, 3, 5, 10, 1, 4]) - 1
    memory = line(64, [0.0] * 40, truncated=tuple(ends[::2].tolist()), terminated=tuple(ends[1::2].tolist()))
    legal = [t for t in range(40) if t + length <= next((e for e in ends if e >= t), 39) + 1]
    starts = memory.sample(200_000, sequence_length=length, padding="none").id[:, 0]
    counts = np.bincount(starts, minlength=40)
    assert counts[legal].sum() == 200_000
    assert chi_square(counts[legal], 200_000 / len(legal)) < 5


@pytest.mark.parametrize("capacity", [3, 64, 65])
def test_every_row_is_equally_likely(capacity):
    memory = count(line(capacity, []), capacity + 2)
    counts = np.bincount(memory.sample(1_000_000).id - 2, minlength=capacity)
    assert chi_square(counts, 1_000_000 / capacity) < 5


def test_every_row_of_a_source_is_equally_likely():
    memory = line(20, [0.0] * 20, source=np.tile([0, 1, 0, 0], 5))
    ids = memory.sample(200_000, source=1).id
    assert set((ids % 4).tolist()) == {1}
    assert chi_square(np.bincount(ids // 4, minlength=5), 40_000) < 5


def test_distinct_draws_are_equally_likely_and_distinct():
    memory = line(6, [0.0] * 6)
    pairs = np.array([memory.sample(2, replace=False).id for _ in range(6000)])
    assert (pairs[:, 0] != pairs[:, 1]).all()
    cells = np.bincount(pairs[:, 0] * 6 + pairs[:, 1], minlength=36).reshape(6, 6)
    assert chi_square(cells[~np.eye(6, dtype=bool)], 200) < 5


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_length": 0}, "sequence_length: expected a whole number from 1 up"),
        ({"sequence_length": 2.0}, "sequence_length: expected a whole number"),
        ({"burn_in": -1}, "burn_in: expected a whole number from 0 up"),
        ({"padding": "middle"}, "padding: expected 'end', 'start' or 'none', got 'middle'"),
        ({"boundary": "through"}, "boundary: expected 'stop' or 'cross'"),
        ({"discount": 1.5}, "discount: expected a number from 0 to 1"),
        ({"discount": np.nan}, "discount: expected a number from 0 to 1"),
    ],
)
def test_options_out_of_their_range_are_named_and_nothing_is_drawn(options, message):
    memory, other = line(4, [0.0] * 4), line(4, [0.0] * 4)
    with pytest.raises(ValueError, match=message):
        memory.sample(2, **options)
    assert equal_records(memory.sample(8), other.sample(8))


def test_no_rows_of_a_source_is_an_error_that_names_it():
    with pytest.raises(rlm.EmptyMemoryError, match="of source 3"):
        line(4, [0.0]).sample(1, source=3, sequence_length=2)


def test_out_must_come_from_the_same_call_and_nothing_is_drawn_otherwise():
    memory, other = line(4, [0.0] * 4), line(4, [0.0] * 4)
    single = memory.sample(3)
    other.sample(3)
    for options in ({"sequence_length": 2}, {"previous": True}):
        with pytest.raises(rlm.StructureError, match="the same call with the same options"):
            memory.sample(3, **options, out=single)
    assert equal_records(memory.sample(3, out=single), other.sample(3))
