"""Mixture: fixed shares of several memories in one batch."""

from __future__ import annotations

import numpy as np
import pytest

import rlmemory as rlm

SPEC = rlm.NumericSpec((2,), "float32")
ACTION = rlm.NumericSpec(())


def filled(value, *, kind=rlm.ReplayMemory, observation=SPEC, count=10, seed=0, **keywords):
    memory = kind(observation, ACTION, 20, seed=seed, **keywords)
    rows = np.full((count, 2), value, np.float32)
    column = np.arange(count, dtype=float)
    given = (rows, rows) if isinstance(observation, tuple) else {"a": rows} if isinstance(observation, dict) else rows
    memory.extend(given, column, reward=column, next_observation=given, terminated=column == count - 1)
    return memory


@pytest.mark.parametrize(
    ("proportions", "size", "expected"),
    [
        ([1, 1], 8, [4, 4]),
        ([0.75, 0.25], 8, [6, 2]),
        ([1, 1, 1], 8, [3, 3, 2]),
        ([0.29, 0.71], 100, [29, 71]),
        ([0.1, 0.2, 0.7], 10, [1, 2, 7]),
        ([0.5, 0.3, 0.2], 3, [1, 1, 1]),
        ([5, 0], 3, [3, 0]),
        ([0.05, 0.95], 1, [0, 1]),
        ([1e-300, 1e300], 2, [0, 2]),
        ([0.05, 0.40, 0.55], 50, [3, 20, 27]),  # 2.5 and 27.5, which floats do not see as a tie
        ([1] * 40, 44, [2] * 4 + [1] * 36),
    ],
)
def test_counts_go_by_largest_remainder(proportions, size, expected):
    mixture = rlm.Mixture([filled(i) for i in range(len(proportions))], proportions)
    assert mixture.counts(size).tolist() == expected
    assert mixture.sample(size).member.tolist() == np.repeat(np.arange(len(expected)), expected).tolist()


def test_counts_add_up_and_are_within_one_of_the_share():
    rng = np.random.default_rng(0)
    memories = [filled(i) for i in range(7)]
    for _ in range(300):
        mixture = rlm.Mixture(memories, rng.random(7) ** 3)
        size = int(rng.integers(1, 500))
        counts = mixture.counts(size)
        assert counts.sum() == size
        assert (abs(counts - size * mixture.proportions) < 1 + 1e-9).all()


def test_rows_are_those_that_each_memory_would_have_given(backend):
    mixture = rlm.Mixture([filled(1.0, seed=3), filled(2.0, seed=4)], [0.6, 0.4])
    batch = mixture.sample(10)
    assert batch._fields == (*rlm.Batch._fields, "member")
    parts = [filled(1.0, seed=3).sample(6), filled(2.0, seed=4).sample(4)]
    for name in rlm.Batch._fields:
        if isinstance(getattr(batch, name), np.ndarray):
            assert getattr(batch, name).tobytes() == np.concatenate([getattr(p, name) for p in parts]).tobytes(), name
    assert batch.observation[:, 0].tolist() == [1.0] * 6 + [2.0] * 4
    assert (batch.member.dtype, batch.member.tolist()) == (np.dtype(np.int64), [0] * 6 + [1] * 4)
    assert "member=int64[10]" in repr(batch)


def test_priorities_keep_their_weights_and_are_updated_by_member(backend):
    by_priority = filled(1.0, kind=rlm.PrioritizedReplayMemory, priority_epsilon=0.0)
    by_priority.update_priorities(np.arange(10), np.arange(10.0))
    mixture = rlm.Mixture([filled(2.0), by_priority], [1, 3])
    batch = mixture.sample(40)
    assert (batch.weight[batch.member == 0] == 1).all()
    mine = batch.member == 1
    masses = by_priority._priorities.tree.mass[batch.id[mine]]
    np.testing.assert_allclose(
        batch.weight[mine], (masses / masses.min()) ** -by_priority.current_importance_exponent, rtol=1e-12
    )
    assert mixture.memories[1].update_priorities(batch.id[mine], np.ones(mine.sum())) == 0


@pytest.mark.parametrize("time_major", [False, True])
def test_windows_are_joined_along_the_batch(backend, time_major):
    mixture = rlm.Mixture([filled(1.0), filled(2.0)], [1, 2])
    batch = mixture.sample(6, sequence_length=3, previous=True, time_major=time_major)
    lead = (3, 6) if time_major else (6, 3)
    assert batch.observation.shape == (*lead, 2)
    assert batch.previous_action.shape == batch.previous_reward.shape == batch.mask.shape == lead
    assert batch.weight.shape == batch.member.shape == (6,)
    first = batch.observation[0] if time_major else batch.observation[:, 0]
    assert first[:, 0].tolist() == [1.0] * 2 + [2.0] * 4
    assert mixture.sample(6, time_major=True).observation.shape == (6, 2)  # single rows have no time


def test_structures_and_extra_fields_are_joined_leaf_by_leaf():
    two = rlm.Mixture([filled(1.0, observation=(SPEC, SPEC)), filled(2.0, observation=(SPEC, SPEC))], [1, 1]).sample(4)
    assert [leaf.shape for leaf in two.observation] == [(4, 2), (4, 2)]
    named = rlm.Mixture([filled(1.0, observation={"a": SPEC})] * 2, [1, 1]).sample(4)
    assert {key: leaf.shape for key, leaf in named.next_observation.items()} == {"a": (4, 2)}
    assert named.extra == {}


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("observation", lambda: rlm.ReplayMemory(rlm.NumericSpec((3,), "float32"), ACTION)),
        ("observation", lambda: rlm.ReplayMemory((SPEC,), ACTION)),
        ("action", lambda: rlm.ReplayMemory(SPEC, rlm.NumericSpec((), "int64"))),
        ("reward", lambda: rlm.ReplayMemory(SPEC, ACTION, reward="float32")),
        ("extra", lambda: rlm.ReplayMemory(SPEC, ACTION, extra={"cost": rlm.NumericSpec(())})),
    ],
)
def test_specs_that_differ_are_named(field, other):
    with pytest.raises(rlm.StructureError, match=rf"^{field}: .*memories\[1\]"):
        rlm.Mixture([filled(0.0), other()], [1, 1])


def test_limits_and_names_of_specs_may_differ():
    other = rlm.ReplayMemory(rlm.NumericSpec((2,), "float32", low=-9.0, high=9.0, name="x"), ACTION)
    rlm.Mixture([filled(0.0), other], [1, 0]).sample(3)  # and a share of 0 asks nothing of an empty memory


def test_what_is_refused():
    memory = filled(0.0)
    for proportions in ([-1, 2], [0, 0], [np.nan, 1], [np.inf, 1]):
        with pytest.raises(ValueError, match="proportions"):
            rlm.Mixture([memory, memory], proportions)
    with pytest.raises(rlm.ShapeError, match="proportions"):
        rlm.Mixture([memory, memory], [1, 1, 1])
    with pytest.raises(ValueError, match="memories"):
        rlm.Mixture([], [])
    with pytest.raises(rlm.StructureError, match="memories"):
        rlm.Mixture([memory, 3], [1, 1])
    mixture = rlm.Mixture([memory, rlm.ReplayMemory(SPEC, ACTION)], [1, 1])
    with pytest.raises(rlm.EmptyMemoryError, match=r"memories\[1\]"):
        mixture.sample(4)
    with pytest.raises(TypeError, match="out"):
        mixture.sample(4, out=None)
    with pytest.raises(ValueError, match="batch_size"):
        mixture.sample(0)
