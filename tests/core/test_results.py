"""What a memory hands out: fresh, or the caller's own `out`; never a window into the memory."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory import kernels
from rlmemory.blocks import ALIGNMENT

from .support import LAYOUTS, PLAIN, Spec, channels, counted, equal_records, fields_of, leaves, pick, same, unchanged


def filled(layout: str, backend: str | None = None) -> rlm.ReplayMemory:
    memory = LAYOUTS[layout].memory(5, seed=0)
    memory.extend(**LAYOUTS[layout].rows(np.random.default_rng(1), 7), terminated=False, source=np.arange(7) % 2)
    return memory


def every_result(memory: rlm.ReplayMemory) -> list:
    ids = memory.all().id[:2]
    return [
        memory.all(), memory.get(ids), memory.get(ids[1]), next(memory.chunks(3)), memory.sample(4),
        memory.sample(3, replace=False), memory.sample(3, source=1), next(memory.epoch(3)),
    ]  # fmt: skip


# ---- what is taken is copied, what is given is fresh ----------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_caller_who_reuses_its_arrays_does_not_change_the_memory(layout):
    memory = LAYOUTS[layout].memory(5, seed=0)
    rows = LAYOUTS[layout].rows(np.random.default_rng(1), 4)
    one = pick(LAYOUTS[layout].rows(np.random.default_rng(2), 2), 1)
    flags, sources = np.zeros(4, bool), np.zeros(4, np.int32)
    memory.extend(**rows, terminated=flags, truncated=flags, source=sources)
    memory.append(**one, terminated=flags[0])
    memory.set([0, 1], observation=pick(rows, slice(0, 2))["observation"], source=sources[:2])
    with unchanged(memory):
        flags[:], sources[:] = True, 7
        for given in (rows, one):
            for leaf in [part for value in given.values() for part in leaves(value)]:
                if isinstance(leaf, np.ndarray):  # scalars cannot change
                    leaf.reshape(-1).view(np.uint8)[...] = 255


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_caller_who_changes_what_it_was_given_does_not_change_the_memory(backend, layout):
    memory = filled(layout)
    results = every_result(memory)
    with unchanged(memory):
        for record in results:
            for leaf in fields_of(record):
                assert leaf.flags.writeable
                leaf.reshape(-1).view(np.uint8)[...] = 255


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_share_no_memory_with_each_other_or_the_arena(backend, layout):
    memory = filled(layout)
    results = every_result(memory)
    for i, record in enumerate(results):
        for leaf in fields_of(record):
            assert not np.shares_memory(leaf, memory._arena.block)
        for other in results[i + 1 :]:
            assert not any(np.may_share_memory(a, b) for a, b in zip(fields_of(record), fields_of(other), strict=False))


def test_what_was_given_stays_when_the_memory_goes_on(backend):
    memory = filled("dict")
    results = every_result(memory)
    before = [[leaf.tobytes() for leaf in fields_of(record)] for record in results]
    memory.extend(**LAYOUTS["dict"].rows(np.random.default_rng(9), 11), terminated=np.ones(11, bool))
    memory.resize(3)
    memory.sample(4)
    memory.clear()
    assert [[leaf.tobytes() for leaf in fields_of(record)] for record in results] == before


def test_arrays_of_a_result_do_not_overlap_and_start_on_64_bytes(backend):
    for layout in LAYOUTS:
        for record in every_result(filled(layout)):
            arrays = [leaf for leaf in fields_of(record) if leaf.size]
            assert all(leaf.ctypes.data % ALIGNMENT == 0 for leaf in arrays)
            assert all(leaf.flags.c_contiguous and leaf.flags.aligned for leaf in arrays)
            spans = sorted((leaf.ctypes.data, leaf.ctypes.data + leaf.nbytes) for leaf in arrays)
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))


# ---- out= -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_is_filled_again_and_its_block_is_used(backend, layout):
    memory, twin = filled(layout), filled(layout)
    whole, batch = memory.all(), memory.sample(6)
    assert equal_records(batch, twin.sample(6))
    addresses = [leaf.ctypes.data for leaf in fields_of(batch)]
    for _ in range(3):
        again = memory.sample(6, out=batch)
        assert equal_records(again, twin.sample(6))
        assert [leaf.ctypes.data for leaf in fields_of(again)] == addresses
        assert equal_records(again, batch)
    rows = LAYOUTS[layout].rows(np.random.default_rng(5), 3)
    for one in (memory, twin):
        one.extend(**rows, terminated=np.ones(3, bool))
    again = memory.all(out=whole)
    assert equal_records(again, twin.all())
    assert [leaf.ctypes.data for leaf in fields_of(again)] == [leaf.ctypes.data for leaf in fields_of(whole)]


def test_out_with_leaves_swapped_or_replaced_still_gives_the_right_data(backend):
    memory, twin = filled("single"), filled("single")
    batch = memory.sample(6)
    twin.sample(6)
    swapped = batch._replace(observation=batch.next_observation, next_observation=batch.observation)
    assert equal_records(memory.sample(6, out=swapped), twin.sample(6))
    replaced = batch._replace(observation=np.zeros(3), reward=None, extra={"x": 1}, mask="no")
    assert equal_records(memory.sample(6, out=replaced), twin.sample(6))
    whole = memory.all()
    assert equal_records(memory.all(out=whole._replace(action=whole.reward, reward=whole.action)), twin.all())


def test_out_of_another_memory_with_equal_specs_is_used():
    memory, twin = filled("dict"), filled("dict")
    out = twin.all()
    assert equal_records(memory.all(out=out), twin.all())
    assert equal_records(memory.all(out=pickle.loads(pickle.dumps(memory)).all()), twin.all())


def wrong_outs(memory: rlm.ReplayMemory) -> list:
    whole, batch = memory.all(), memory.sample(6)
    return [
        memory.get(whole.id[:2]), memory.sample(5), memory.sample(12), memory.sample(3, sequence_length=2),
        memory.get(whole.id[0]), whole.id, "out", 5, tuple(batch), np.zeros(6), batch._replace(id=np.zeros(6, int)),
        batch._replace(id=None), pickle.loads(pickle.dumps(batch)), filled("tuple").sample(6), filled("tuple").all(),
    ]  # fmt: skip


def test_out_of_another_call_or_size_is_refused_and_nothing_is_written():
    memory = filled("single")
    whole, batch = memory.all(), memory.sample(6)
    bad = [*wrong_outs(memory), batch]
    for out in bad:
        content = [leaf.tobytes() for leaf in fields_of(out)] if isinstance(out, (rlm.Batch, rlm.Experience)) else []
        with unchanged(memory), pytest.raises(rlm.StructureError, match="out: expected the result of the same call"):
            memory.all(out=out)
        if content:
            assert [leaf.tobytes() for leaf in fields_of(out)] == content
    for out in [*wrong_outs(memory), whole]:
        with pytest.raises(rlm.StructureError, match="out: expected the result of the same call"):
            memory.sample(6, out=out)
    assert equal_records(memory.all(), whole)


def test_a_refused_out_draws_no_uniform():
    memory = filled("single")
    with unchanged(memory), pytest.raises(rlm.StructureError):
        memory.sample(6, out=memory.all())


@pytest.mark.parametrize("extra_rows", [0, 1, 7])
def test_a_large_memory_comes_back_whole_with_and_without_a_back_end(backend, extra_rows, monkeypatch):
    rows, rng = 6, np.random.default_rng(0)
    memory = rlm.ReplayMemory(Spec((300_001,)), Spec((3,), "int8"), rows, seed=0)
    data = rng.random((rows + extra_rows, 300_001))
    action = rng.integers(-9, 9, (rows + extra_rows, 3)).astype("int8")
    reward = np.arange(rows + extra_rows, dtype=float)
    memory.extend(data, action, reward=reward, next_observation=-data, terminated=False)
    results = [memory.all(), memory.all(out=memory.all()), memory.get(np.arange(extra_rows, extra_rows + rows))]
    monkeypatch.setattr(kernels, "_chosen", None)
    results.append(memory.all())
    for record in results:
        assert same(record.observation, data[extra_rows:])
        assert same(record.next_observation, -data[extra_rows:])
        assert same(record.action, action[extra_rows:])
        assert same(record.reward, reward[extra_rows:])


def test_results_of_more_than_two_gigabytes_would_be_cut_without_a_record():
    from rlmemory.blocks import Plan

    fields = [("a", np.dtype(np.uint8), (2**31,)), ("b", np.dtype(np.int32), (3,))]
    plan = Plan(fields)
    assert plan._split is None
    block, (a, b) = plan.make()  # untouched pages cost nothing
    assert (a.shape, a.dtype, b.shape, b.dtype) == ((2**31,), np.uint8, (3,), np.int32)
    b[:] = 7
    assert block[2**31 : 2**31 + 12].view(np.int32).tolist() == [7, 7, 7]
    assert plan.again(b) is not None


# ---- records --------------------------------------------------------------------------------------------------------


def test_records_show_shapes_and_not_numbers():
    memory = filled("dict")
    text = repr(memory.all())
    assert text.startswith("Experience(observation={'image': uint8[5, 2, 3], 'none': float32[5, 0]}, action={")
    assert "extra={'log_prob': float64[5], 'state': complex64[5, 2, 3]}" in text
    text = repr(filled("tuple").sample(4))
    assert text.startswith("Batch(observation=(uint8[4, 2, 3], float64[4]), action=(bool[4], complex64[4, 3])")
    assert "previous_action=None" in text
    assert len(text) < 700


def test_a_tuple_of_one_channel_stays_a_tuple():
    memory = rlm.ReplayMemory((Spec((2,)),), (Spec(()),), 3)
    memory.append((np.zeros(2),), (0.0,), reward=0.0, next_observation=(np.zeros(2),), terminated=False)
    assert repr(memory.all()).startswith("Experience(observation=(float64[1, 2],), action=(float64[1],)")


def test_records_are_tuples_with_the_fields_of_the_interface():
    fields = ["observation", "action", "reward", "next_observation", "terminated", "truncated", "source", "id", "extra"]
    more = ["mask", "is_first", "steps", "discount", "weight", "previous_action", "previous_reward"]
    assert list(rlm.Experience._fields) == fields
    assert list(rlm.Batch._fields) == fields + more
    memory = filled("single")
    assert all(hasattr(memory.sample(2), name) for name in fields + more)


def test_a_record_survives_pickling():
    for record in (filled("dict").all(), filled("tuple").sample(3)):
        assert equal_records(pickle.loads(pickle.dumps(record)), record)


def test_a_memory_says_what_it_is():
    memory = PLAIN.memory(2000)
    counted(memory, 1234)
    assert repr(memory) == "<ReplayMemory 1,234 of 2,000 experiences, 0.1 MiB>"
    layout = LAYOUTS["dict"]
    memory = layout.memory(3)
    assert memory.observation_spec == layout.observation
    assert memory.action_spec == layout.action
    assert memory.reward_spec.same_layout(layout.reward)
    assert memory.extra_spec == layout.extra
    assert LAYOUTS["tuple"].memory(3).observation_spec == LAYOUTS["tuple"].observation
    assert not PLAIN.memory(3).extra_spec


@pytest.mark.parametrize("name", ["capacity", "next_id", "nbytes", "observation_spec", "reward_spec"])
def test_properties_cannot_be_set(name):
    with pytest.raises(AttributeError):
        setattr(PLAIN.memory(3), name, 1)


@pytest.mark.parametrize("capacity", [1, 7, 1000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_arena_is_no_larger_than_its_columns_and_64_bytes_a_column(layout, capacity):
    memory = LAYOUTS[layout].memory(capacity)
    columns = [*memory._views, memory._is_done, memory._source]
    assert sum(c.nbytes for c in columns) <= memory.nbytes <= sum(c.nbytes + 64 for c in columns)
    assert all(c.ctypes.data % 64 == 0 for c in columns if c.size)
    per_row = sum(leaf.nbytes for leaf in channels(memory.get([])))
    assert per_row == 0
    assert same(memory._arena.table[:, 1], np.array([c[:1].nbytes for c in columns], np.int64))
