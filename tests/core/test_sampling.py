"""Draws: the contract about the generator, and CASES A15's second input."""

from __future__ import annotations

import numpy as np
import pytest

from .support import PLAIN, counted, equal_records


def test_a_draw_is_the_floor_of_a_uniform_times_the_length(backend):
    memory = PLAIN.memory(7, seed=11)
    counted(memory, 10)
    rng = np.random.default_rng(11)
    for size in (1, 5, 300):
        wanted = 3 + np.floor(rng.random(size) * 7).astype(int)
        assert memory.sample(size).id.tolist() == wanted.tolist()


def test_draws_of_a_source_count_its_rows_from_the_oldest(backend):
    memory = PLAIN.memory(7, seed=11)
    counted(memory, 10, source=[0, 1] * 5)
    rng = np.random.default_rng(11)
    wanted = np.array([3, 5, 7, 9])[np.floor(rng.random(50) * 4).astype(int)]
    assert memory.sample(50, source=1).id.tolist() == wanted.tolist()
    assert set(memory.sample(99, source=0).id.tolist()) == {4, 6, 8}
    counted(memory, 1, source=1)
    assert set(memory.sample(99, source=1).id.tolist()) == {5, 7, 9, 10}
    memory.set([5], source=0)
    assert set(memory.sample(99, source=1).id.tolist()) == {7, 9, 10}


class Largest:
    """A generator whose every uniform is the largest below 1."""

    bit_generator = None

    def random(self, size: int) -> np.ndarray:
        return np.full(size, np.nextafter(1.0, 0.0))


@pytest.mark.parametrize("capacity", [1, 3, 7, 8])
def test_the_largest_uniform_draws_the_newest_row(backend, capacity):
    memory = PLAIN.memory(capacity)
    counted(memory, 2 * capacity + 1)
    memory._rng = Largest()
    assert set(memory.sample(4).id.tolist()) == {2 * capacity}
    assert memory.sample(capacity, replace=False).id.tolist()[0] == 2 * capacity
    assert sorted(memory.sample(capacity, replace=False).id.tolist()) == memory.all().id.tolist()


def test_draws_without_replacement_are_all_different(backend):
    memory = PLAIN.memory(50, seed=0)
    counted(memory, 80)
    for size in (1, 10, 50):
        ids = memory.sample(size, replace=False).id.tolist()
        assert len(set(ids)) == size
        assert min(ids) >= 30
    orders = {tuple(memory.sample(50, replace=False).id.tolist()) for _ in range(5)}
    assert len(orders) == 5


def test_each_experience_is_equally_likely(backend):
    memory = PLAIN.memory(8, seed=0)
    counted(memory, 11)
    for options in ({}, {"replace": False}):
        ids = np.concatenate([memory.sample(4, **options).id for _ in range(2000)])
        counts = np.bincount(ids - 3, minlength=8)
        assert np.all(np.abs(counts - 1000) < 6 * np.sqrt(1000))


def test_equal_seeds_give_equal_batches_whatever_the_global_seed_is(backend):
    first, second, other = PLAIN.memory(50, seed=7), PLAIN.memory(50, seed=7), PLAIN.memory(50, seed=8)
    for memory in (first, second, other):
        counted(memory, 60)
    differ = False
    for i in range(5):
        np.random.seed(i)  # noqa: NPY002 - what the memory must not care about
        one = first.sample(16)
        three = other.sample(16)
        np.random.seed(99 - i)  # noqa: NPY002
        assert equal_records(one, second.sample(16))
        differ |= not equal_records(one, three)
    assert differ
    assert equal_records(next(first.epoch(9)), next(second.epoch(9)))
    assert equal_records(first.sample(9, replace=False), second.sample(9, replace=False))


def test_both_back_ends_draw_the_same_batches():
    from rlmemory import kernels

    batches = []
    for name in ("reference", "cpu"):
        with kernels.use(name):
            memory = PLAIN.memory(9, seed=3)
            counted(memory, 13, source=np.arange(13) % 3, terminated=np.arange(13) % 5 == 0)
            batches.append([memory.sample(20), memory.sample(9, replace=False), *memory.epoch(4)])
    assert all(equal_records(a, b) for a, b in zip(*batches, strict=True))


def test_a_seed_may_be_an_int_a_sequence_or_a_generator():
    ids = []
    for seed in (5, np.random.SeedSequence(5), np.random.default_rng(5), np.int64(5)):
        memory = PLAIN.memory(50, seed=seed)
        counted(memory, 50)
        ids.append(memory.sample(9).id.tolist())
    assert ids[0] == ids[1] == ids[2] == ids[3]
    memories = [PLAIN.memory(50) for _ in range(2)]
    for memory in memories:
        counted(memory, 50)
    assert memories[0].sample(20).id.tolist() != memories[1].sample(20).id.tolist()


def test_what_is_written_or_looked_at_draws_nothing(backend):
    memory, twin = PLAIN.memory(9, seed=3), PLAIN.memory(9, seed=3)
    for one in (memory, twin):
        counted(one, 9)
    memory.all(), memory.get([1, 2]), list(memory.chunks(2)), list(memory.epoch(3, shuffle=False))
    memory.statistics(), memory.set([1], reward=[9.0]), memory.end_episode(), repr(memory)
    memory.resize(20)
    memory.resize(9)
    assert memory.sample(20).id.tolist() == twin.sample(20).id.tolist()


def test_weights_are_one_and_steps_are_one(backend):
    memory = PLAIN.memory(9, seed=3)
    counted(memory, 9, terminated=np.arange(9) % 2 == 1)
    batch = memory.sample(30, discount=0.5)
    assert (set(batch.weight), set(batch.steps), set(batch.mask)) == ({1.0}, {1}, {True})
    assert batch.discount.tolist() == [0.0 if done else 0.5 for done in batch.terminated]
    assert batch.is_first.tolist() == [i % 2 == 0 for i in batch.id.tolist()]
