"""Sums over several steps: which steps, and by which power of gamma."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import rlmemory as rlm

from .support import Spec, count, line


def sums(memory: rlm.ReplayMemory, n_step: int, discount: float) -> dict[int, rlm.Batch]:
    """The sum that begins at each row, by its id."""
    batch = memory.sample(len(memory), n_step=n_step, discount=discount, replace=False)
    names = ("reward", "discount", "steps", "next_observation", "terminated", "truncated", "observation", "is_first")
    return {i: {name: getattr(batch, name)[k] for name in names} for k, i in enumerate(batch.id.tolist())}


# ---- A3: across a time limit ----------------------------------------------------------------------------------------


def test_a_sum_stops_at_a_time_limit_and_keeps_the_bootstrap(backend):
    found = sums(line(10, [1.0, 2.0, 3.0, 10.0, 20.0], truncated=(2,)), 3, 0.9)
    for t, reward, discount, steps in ((0, 5.23, 0.729, 3), (1, 4.7, 0.81, 2), (2, 3.0, 0.9, 1)):
        assert found[t]["reward"] == pytest.approx(reward, rel=1e-15)
        assert found[t]["discount"] == pytest.approx(discount, rel=1e-15)
        assert found[t]["steps"] == steps
        assert found[t]["next_observation"] == 3.0
        assert not found[t]["terminated"]
        assert found[t]["truncated"]
        assert found[t]["observation"] == t


def test_a_sum_stops_at_a_terminal_step_and_has_no_bootstrap(backend):
    found = sums(line(10, [1.0, 2.0, 3.0, 10.0, 20.0], terminated=(2,)), 3, 0.9)
    for t, reward in ((0, 5.23), (1, 4.7), (2, 3.0)):
        assert found[t]["reward"] == pytest.approx(reward, rel=1e-15)
        assert found[t]["discount"] == 0.0
        assert found[t]["terminated"]


# ---- A4: a full ring, and the power of gamma ------------------------------------------------------------------------


def test_sums_in_a_full_ring_end_at_the_newest_row(backend):
    memory = line(4, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    found = sums(memory, 2, 0.5)
    assert [found[t]["reward"] for t in (2, 3, 4, 5)] == [5.0, 6.5, 8.0, 6.0]
    assert [found[t]["discount"] for t in (2, 3, 4, 5)] == [0.25, 0.25, 0.25, 0.5]
    assert [found[t]["steps"] for t in (2, 3, 4, 5)] == [2, 2, 2, 1]
    assert [found[t]["next_observation"] for t in (2, 3, 4, 5)] == [4.0, 5.0, 6.0, 6.0]


# ---- A5: interleaved sources ----------------------------------------------------------------------------------------


def test_sums_of_interleaved_sources_do_not_mix(backend):
    memory = line(10, [1.0, 10.0, 2.0, 20.0, 3.0, 30.0], source=np.array([1, 2, 1, 2, 1, 2]))
    found = sums(memory, 2, 0.5)
    assert found[0]["reward"] == 2.0
    assert found[1]["reward"] == 20.0
    assert found[2]["reward"] == 3.5
    assert found[0]["next_observation"] == 3.0


# ---- the kind of them all -------------------------------------------------------------------------------------------


@given(
    rows=st.lists(
        st.tuples(st.integers(-9, 9), st.sampled_from([0, 0, 0, 1, 2]), st.integers(0, 2)), min_size=1, max_size=20
    ),
    capacity=st.integers(1, 12),
    n_step=st.integers(2, 6),
    gamma=st.sampled_from([0.0, 0.5, 1.0]),  # powers of two: every sum is exact
)
def test_a_sum_is_over_the_steps_really_used_first_reward_undiscounted(rows, capacity, n_step, gamma):
    memory = rlm.ReplayMemory(Spec(()), Spec(()), capacity, seed=0)
    for reward, code, source in rows:
        count(memory, 1, source=source, terminated=code == 1, truncated=code == 2)
        memory.set(memory.next_id - 1, reward=reward)
    oldest = memory.next_id - len(memory)
    for t, found in sums(memory, n_step, gamma).items():
        used = [t]
        for later in range(t + 1, len(rows)):
            if rows[used[-1]][1] or len(used) == n_step:
                break
            if rows[later][2] == rows[t][2]:
                used.append(later)
        assert t >= oldest
        assert found["reward"] == sum(rows[i][0] * gamma**k for k, i in enumerate(used))
        assert found["steps"] == len(used)
        code = rows[used[-1]][1]
        assert found["discount"] == (0.0 if code == 1 else gamma ** len(used))
        assert (found["terminated"], found["truncated"]) == (code == 1, code == 2)
        assert found["next_observation"] == used[-1] + 1


# ---- kinds of rewards -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reward", "dtype", "values", "sums_to"),
    [
        (Spec((), "int8"), "float64", [100, 100, 100], 175.0),
        (Spec((), "bool"), "float64", [True, False, True], 1.25),
        (Spec((), "float32"), "float32", [1.0, 2.0, 4.0], 3.0),
        (Spec((), "complex64"), "complex64", [1 + 1j, 2j, 4.0], 2 + 2j),
        (Spec((2,), "uint8"), "float64", [[200, 1], [200, 2], [200, 4]], [350.0, 3.0]),
        (Spec((1, 2), "float64"), "float64", [[[1.0, 2.0]], [[4.0, 4.0]], [[8.0, 8.0]]], [[5.0, 6.0]]),
    ],
)
def test_sums_keep_the_shape_and_a_dtype_that_holds_them(backend, reward, dtype, values, sums_to):
    memory = rlm.ReplayMemory(Spec(()), Spec(()), 8, reward=reward, seed=0)
    zero = np.zeros(3)
    memory.extend(zero, zero, reward=np.array(values), next_observation=zero, terminated=False)
    batch = memory.sample(3, n_step=3, discount=0.5, replace=False)
    assert batch.reward.dtype == dtype
    assert batch.reward.shape == (3, *reward.shape)
    assert np.array_equal(batch.reward[batch.id == 0][0], sums_to)


def test_previous_of_a_sum_is_the_step_before_its_first(backend):
    batch = line(10, [1.0, 2.0, 3.0], terminated=(2,)).sample(3, n_step=2, previous=True, replace=False)
    order = np.argsort(batch.id)
    assert batch.previous_reward[order].tolist() == [0.0, 1.0, 2.0]
    assert batch.previous_action[order].tolist() == [0.0, -0.0, -1.0]
    assert batch.is_first[order].tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_length": 2}, "sequence_length must be 1 and burn_in 0"),
        ({"burn_in": 1}, "sequence_length must be 1 and burn_in 0"),
        ({"boundary": "cross"}, "ends with its episode"),
        ({"padding": "start"}, "padding='start' is for sequences"),
        ({"padding": "none"}, "padding='none' is for sequences"),
        ({"n_step": 0}, "n_step: expected a whole number from 1 up"),
    ],
)
def test_sums_refuse_what_contradicts_them(options, message):
    with pytest.raises(ValueError, match=message):
        line(4, [0.0] * 4).sample(2, **{"n_step": 2, **options})


def test_one_step_is_the_plain_sample(backend):
    memory, other = line(10, [1.0, 2.0, 3.0]), line(10, [1.0, 2.0, 3.0])
    assert np.array_equal(memory.sample(20, n_step=1).reward, other.sample(20).reward)


@pytest.mark.parametrize("n_step", [10, 10**9])
def test_sums_over_more_steps_than_there_are_take_no_room_for_them(backend, n_step):
    memory = line(10, [1.0, 2.0, 3.0])
    batch = memory.sample(3, n_step=n_step, discount=0.5, replace=False)
    by_id = dict(zip(batch.id.tolist(), batch.reward.tolist(), strict=True))
    assert by_id == {0: 1.0 + 1.0 + 0.75, 1: 2.0 + 1.5, 2: 3.0}
