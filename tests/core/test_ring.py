"""The ring: what stays, in which order, for every cursor, dtype, shape and kind of input."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory.ring import spans

from .support import (
    DTYPES,
    LAYOUTS,
    PLAIN,
    SHAPES,
    Spec,
    channels,
    counted,
    equal_records,
    leaves,
    mapped,
    pick,
    random_array,
    same,
)

CURSORS = [(capacity, first) for capacity in (1, 2, 3, 5, 8) for first in range(capacity)]


def wanted(first: int, last: int) -> list[int]:
    return list(range(first, last))


# ---- order and wraparound -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("capacity", "first"), CURSORS)
def test_extend_wraps_at_every_cursor(capacity, first):
    for count in range(2 * capacity + 3):
        memory = PLAIN.memory(capacity)
        counted(memory, first)
        ids = counted(memory, count, first=first)
        assert ids == range(first, first + count)
        assert memory.all().action.tolist() == wanted(max(0, first + count - capacity), first + count)
        assert memory.all().id.tolist() == memory.all().action.tolist()
        assert memory.all().reward.tolist() == memory.all().action.tolist()


@pytest.mark.parametrize(("capacity", "first"), CURSORS)
def test_append_wraps_at_every_cursor(capacity, first):
    memory = PLAIN.memory(capacity)
    counted(memory, first)
    for number in range(first, first + 2 * capacity + 1):
        row = np.full(2, float(number))
        given = memory.append(row, number, reward=float(number), next_observation=row + 1, terminated=False)
        assert given == number
        assert memory.all().action.tolist() == wanted(max(0, number + 1 - capacity), number + 1)
        assert memory.all().next_observation[:, 1].tolist() == [i + 1 for i in memory.all().action.tolist()]


@pytest.mark.parametrize(("capacity", "first"), CURSORS)
def test_resize_keeps_the_newest_rows_and_their_ids_at_every_cursor(capacity, first):
    for size in range(1, 10):
        memory = PLAIN.memory(capacity)
        counted(memory, capacity + first)
        memory.resize(size)
        kept = min(capacity, size)
        assert (memory.capacity, len(memory), memory.next_id) == (size, kept, capacity + first)
        assert memory.all().id.tolist() == wanted(capacity + first - kept, capacity + first)
        assert memory.all().action.tolist() == memory.all().id.tolist()
        counted(memory, 1, first=capacity + first)
        assert memory.get(capacity + first).action == capacity + first


def test_append_past_capacity_drops_the_oldest(backend):
    memory = PLAIN.memory(3)
    counted(memory, 4)
    assert memory.all().id.tolist() == [1, 2, 3]
    with pytest.raises(rlm.StaleIdError, match="0 was overwritten; the live ids are 1 to 3"):
        memory.get([0])


def test_extend_with_more_rows_than_the_capacity_keeps_the_last():
    memory = PLAIN.memory(3)
    assert counted(memory, 8) == range(8)
    assert memory.all().id.tolist() == [5, 6, 7]
    assert len(memory) == memory.capacity == 3


def test_extend_with_no_rows_changes_nothing():
    memory = PLAIN.memory(3)
    assert counted(memory, 0) == range(0)
    counted(memory, 2)
    assert counted(memory, 0) == range(2, 2)
    assert (len(memory), memory.next_id) == (2, 2)


def test_an_empty_memory_gives_arrays_without_rows():
    for layout in LAYOUTS.values():
        memory = layout.memory(4)
        assert len(memory) == 0
        for record in (memory.all(), memory.get([])):
            assert [len(leaf) for leaf in channels(record)] == [0] * len(channels(record))
        assert list(memory.chunks(3)) == list(memory.epoch(3)) == []


def test_clear_forgets_the_rows_and_counts_the_ids_on():
    memory = PLAIN.memory(3)
    counted(memory, 5)
    memory.clear()
    assert (len(memory), memory.next_id, memory.all().id.size) == (0, 5, 0)
    with pytest.raises(rlm.StaleIdError, match="4 was overwritten; the memory is empty"):
        memory.get(4)
    assert counted(memory, 1) == range(5, 6)
    assert memory.sample(1).is_first.tolist() == [True]


@pytest.mark.parametrize("capacity", range(1, 9))
def test_spans_cover_each_id_once_and_in_order(capacity):
    for begin in range(2 * capacity):
        for count in range(capacity + 1):
            runs = spans(begin, begin + count, capacity)
            slots = [slot for first, last, _ in runs for slot in range(first, last)]
            assert slots == [i % capacity for i in range(begin, begin + count)]
            assert [done for _, _, done in runs] == [0, runs[0][1] - runs[0][0]][: len(runs)] if runs else True


# ---- dtypes and shapes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape_comes_back_as_it_went_in(backend, dtype, shape):
    rng = np.random.default_rng(0)
    spec = Spec(shape, dtype)
    memory = rlm.ReplayMemory(spec, spec, 5, reward=spec, extra={"own": spec}, seed=3)
    data = [random_array(rng, (9, *shape), dtype) for _ in range(5)]
    for i in range(4):
        memory.append(
            data[0][i], data[1][i], reward=data[2][i], next_observation=data[3][i], terminated=False,
            extra={"own": data[4][i]},
        )  # fmt: skip
    memory.extend(
        data[0][4:], data[1][4:], reward=data[2][4:], next_observation=data[3][4:], terminated=False,
        extra={"own": data[4][4:]},
    )  # fmt: skip
    ids = [8, 4, 4, 6]
    batch = memory.sample(20)
    for k in range(5):
        assert same(channels(memory.all())[k], data[k][4:])
        assert same(channels(memory.get(ids))[k], data[k][ids])
        assert same(channels(memory.get(7))[k], data[k][7])
        assert same(channels(batch)[k], data[k][batch.id])
    memory.set([5, 7], observation=data[0][[0, 1]], extra={"own": data[4][[2, 3]]})
    assert same(memory.get([5, 7]).observation, data[0][[0, 1]])
    assert same(memory.get([5, 7]).extra["own"], data[4][[2, 3]])
    assert same(memory.get([5, 7]).action, data[1][[5, 7]])


def as_list(array):
    return array.tolist()


def strided(array):
    wide = np.zeros((*array.shape[:1], *(2 * size for size in array.shape[1:])), array.dtype)
    view = wide[(slice(None), *(slice(None, None, 2) for _ in array.shape[1:]))]
    view[...] = array
    return view


def backwards(array):
    return array[::-1].copy()[::-1]


def fortran(array):
    return np.asfortranarray(array)


def swapped(array):
    return array.astype(array.dtype.newbyteorder())


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def unaligned(array):
    raw = np.empty(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def subclass(array):
    return array.view(np.ndarray if array.ndim == 0 else type("Mine", (np.ndarray,), {}))


FORMS = [as_list, strided, backwards, fortran, swapped, read_only, unaligned, subclass]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_form_of_array_is_stored_like_a_plain_one(backend, form, dtype):
    rng = np.random.default_rng(1)
    spec = Spec((2, 3), dtype)
    plain, formed = (rlm.ReplayMemory(spec, Spec((), dtype), 4, reward=dtype, seed=0) for _ in range(2))
    rows = [random_array(rng, (6, *shape), dtype) for shape in ((2, 3), (), (), (2, 3))]
    for memory, shaped in ((plain, lambda array: array), (formed, form)):
        give = [shaped(array) for array in rows]
        memory.extend(give[0], give[1], reward=give[2], next_observation=give[3], terminated=shaped(np.eye(6)[0] > 0))
        give = [shaped(array[:1])[0] for array in rows]
        memory.append(give[0], give[1], reward=give[2], next_observation=give[3], terminated=False)
        give = [shaped(array[:2]) for array in rows]
        memory.set(shaped(np.array([4, 5])), observation=give[3], action=give[1][::-1], reward=give[2])
        memory.set(shaped(np.array([4, 5])), truncated=shaped(np.array([True, False])))
    assert equal_records(plain.all(), formed.all())
    assert equal_records(plain.get([5, 3]), formed.get(form(np.array([5, 3]))))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_comes_out_has_the_structure_of_what_went_in(backend, layout):
    layout = LAYOUTS[layout]
    memory = layout.memory(4, seed=0)
    rows = layout.rows(np.random.default_rng(0), 6)
    memory.extend(**rows, terminated=False)
    memory.append(**pick(rows, 0), terminated=True)
    for record in (memory.all(), memory.sample(3), memory.get([4, 5]), next(memory.chunks(2)), next(memory.epoch(2))):
        for name, given in rows.items():
            got = getattr(record, name)
            assert type(got) is type(given)
            assert not isinstance(given, dict) or list(got) == list(given)
            assert not isinstance(given, tuple) or len(got) == len(given)
        assert record.extra == {} or layout.extra
    assert all(
        same(a, b) for a, b in zip(leaves(memory.get(5).observation), leaves(pick(rows, 5)["observation"]), strict=True)
    )
    back = layout.memory(4)
    back.extend_from(memory.all())
    assert all(same(a, b) for a, b in zip(channels(back.all()), channels(memory.all()), strict=True))


def test_lists_of_channels_are_taken_for_tuples():
    layout = LAYOUTS["tuple"]
    memory = rlm.ReplayMemory(list(layout.observation), list(layout.action), 4, reward=layout.reward)
    rows = layout.rows(np.random.default_rng(0), 3)
    rows["observation"] = list(rows["observation"])
    memory.extend(**rows, terminated=False)
    assert isinstance(memory.all().observation, tuple)
    assert same(memory.all().observation[1], rows["observation"][1])


# ---- ids ------------------------------------------------------------------------------------------------------------


def test_get_keeps_the_shape_of_its_ids(backend):
    memory = PLAIN.memory(5)
    counted(memory, 7)
    record = memory.get([[2, 6, 3], [3, 3, 4]])
    assert record.observation.shape == (2, 3, 2)
    assert record.action.tolist() == record.id.tolist() == [[2, 6, 3], [3, 3, 4]]
    one = memory.get(6)
    assert (one.observation.shape, one.action.shape, one.id.shape) == ((2,), (), ())
    assert (one.action, one.terminated, one.source) == (6, False, 0)
    assert memory.get(np.empty((0, 3), np.int64)).observation.shape == (0, 3, 2)


def test_set_changes_the_named_fields_of_the_named_rows_only(backend):
    memory = PLAIN.memory(5)
    counted(memory, 7)
    before = memory.all()
    memory.set([3, 5], reward=[30.0, 50.0])
    after = memory.all()
    assert after.reward.tolist() == [2, 30, 4, 50, 6]
    assert equal_records(after._replace(reward=before.reward), before)


def test_set_with_an_id_given_twice_keeps_the_last(backend):
    memory = PLAIN.memory(5)
    counted(memory, 7)
    memory.set([3, 5, 3], action=[1, 2, 9])
    assert memory.all().action.tolist() == [2, 9, 4, 2, 6]


def test_set_of_one_row_takes_values_without_a_batch_axis(backend):
    memory = PLAIN.memory(5)
    counted(memory, 7)
    memory.set(4, observation=[7.0, 8.0], truncated=True, source=2)
    one = memory.get(4)
    assert (one.observation.tolist(), bool(one.truncated), int(one.source)) == ([7, 8], True, 2)
    memory.set(4, terminated=True)
    assert (bool(memory.get(4).terminated), bool(memory.get(4).truncated)) == (True, False)


def test_set_and_get_of_no_ids_do_nothing(backend):
    memory = PLAIN.memory(5)
    counted(memory, 7)
    before = memory.all()
    memory.set([], reward=[], observation=np.empty((0, 2)), source=[], terminated=[])
    assert equal_records(before, memory.all())


def test_set_may_name_some_of_the_users_own_fields(backend):
    layout = LAYOUTS["dict"]
    memory = layout.memory(4)
    rows = layout.rows(np.random.default_rng(0), 4)
    memory.extend(**rows, terminated=False)
    memory.set([1, 2], extra={"log_prob": [0.25, 0.5]})
    assert memory.all().extra["log_prob"][1:3].tolist() == [0.25, 0.5]
    assert same(memory.all().extra["state"], rows["extra"]["state"])


def test_set_of_a_source_changes_what_follows_what(backend):
    memory = PLAIN.memory(4)
    counted(memory, 4)
    assert next(memory.epoch(4, shuffle=False)).is_first.tolist() == [True, False, False, False]
    memory.set([1, 3], source=1)
    assert next(memory.epoch(4, shuffle=False)).is_first.tolist() == [True, True, False, False]
    memory.set([1], terminated=[True])
    assert next(memory.epoch(4, shuffle=False)).is_first.tolist() == [True, True, False, True]


# ---- flags and sources ----------------------------------------------------------------------------------------------


def test_an_experience_with_both_ends_counts_as_terminated():
    memory = PLAIN.memory(4)
    flags = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], bool)
    counted(memory, 4, terminated=flags[:, 0], truncated=flags[:, 1])
    assert memory.all().terminated.tolist() == [False, True, False, True]
    assert memory.all().truncated.tolist() == [False, False, True, False]


def test_truncated_keeps_the_bootstrap_and_terminated_does_not(backend):
    memory = PLAIN.memory(4)
    counted(memory, 3, terminated=[False, True, False], truncated=[False, False, True])
    batch = next(memory.epoch(3, shuffle=False))
    assert batch.discount.tolist() == [0.99, 0.0, 0.99]
    assert batch.is_first.tolist() == [True, False, True]


def test_rows_follow_those_of_their_own_source(backend):
    memory = PLAIN.memory(6)
    counted(memory, 6, source=[0, 1, 0, 1, 1, 2], terminated=[False, True, False, False, False, False])
    batch = next(memory.epoch(6, shuffle=False))
    assert batch.is_first.tolist() == [True, True, False, True, False, True]
    assert batch.source.tolist() == [0, 1, 0, 1, 1, 2]
    counted(memory, 1, source=0)  # id 0 is gone, so id 2 has nothing before it
    assert next(memory.epoch(6, shuffle=False)).is_first.tolist() == [True, True, True, False, True, False]


def test_end_episode_begins_a_new_one_for_its_source_only(backend):
    memory = PLAIN.memory(8)
    counted(memory, 4, source=[0, 1, 0, 1])
    memory.end_episode(1)
    counted(memory, 4, source=[0, 1, 0, 1])
    assert next(memory.epoch(8, shuffle=False)).is_first.tolist() == [True, True, *[False] * 3, True, False, False]
    memory.end_episode()
    memory.end_episode()
    counted(memory, 2, source=[0, 1])
    assert next(memory.epoch(8, shuffle=False)).is_first.tolist()[-2:] == [True, True]


def test_end_episode_survives_resize_and_the_first_look(backend):
    for look in (False, True):
        memory = PLAIN.memory(4)
        counted(memory, 3)
        if look:
            memory.sample(1)
        memory.end_episode()
        memory.resize(6)
        counted(memory, 2)
        assert next(memory.epoch(9, shuffle=False)).is_first.tolist() == [True, False, False, True, False]


def test_extend_from_another_memory_gives_new_ids_and_keeps_the_rest():
    one, two = PLAIN.memory(4), PLAIN.memory(9)
    counted(one, 6, source=[0, 1, 0, 1, 0, 1], truncated=[False, False, True, False, True, False])
    counted(two, 1)
    assert two.extend_from(one.all()) == range(1, 5)
    both = two.all()
    assert both.action.tolist() == [0, 2, 3, 4, 5]
    assert both.source.tolist() == [0, 0, 1, 0, 1]
    assert both.truncated.tolist() == [False, True, False, True, False]


def test_extend_from_itself_repeats_the_rows():
    memory = PLAIN.memory(5)
    counted(memory, 3)
    memory.extend_from(memory.all())
    assert memory.all().action.tolist() == [1, 2, 0, 1, 2]


# ---- views of everything --------------------------------------------------------------------------------------------


def test_chunks_show_what_was_stored_when_they_were_asked_for():
    memory = PLAIN.memory(6)
    counted(memory, 5)
    pieces = memory.chunks(2)
    assert next(pieces).id.tolist() == [0, 1]
    counted(memory, 3, first=5)
    assert [piece.id.tolist() for piece in pieces] == [[2, 3], [4]]
    pieces = memory.chunks(4)
    counted(memory, 1, first=8)
    with pytest.raises(rlm.StaleIdError, match="overwritten"):
        next(pieces)


def test_an_epoch_gives_every_experience_once(backend):
    memory = PLAIN.memory(10, seed=1)
    counted(memory, 13)
    for shuffle in (True, False):
        ids = [i for batch in memory.epoch(4, shuffle=shuffle) for i in batch.id.tolist()]
        assert sorted(ids) == list(range(3, 13))
        assert (ids == sorted(ids)) is not shuffle
    assert [len(batch.id) for batch in memory.epoch(4)] == [4, 4, 2]
    assert [len(batch.id) for batch in memory.epoch(4, drop_last=True)] == [4, 4]
    assert [len(batch.id) for batch in memory.epoch(99, drop_last=True)] == []


def test_mapped_keeps_structures():  # the helper that the other tests lean on
    assert mapped({"a": 1}, str) == {"a": "1"}
    assert mapped((1, 2), str) == ("1", "2")


# ---- interrupts -----------------------------------------------------------------------------------------------------


def interrupted(call, at):
    """Run `call`, with a KeyboardInterrupt before line `at` of the package; how many lines were passed."""
    passed = 0

    def trace(frame, event, _):
        nonlocal passed
        if "rlmemory" not in frame.f_code.co_filename:
            return None
        if event == "line":
            passed += 1
            if passed == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return passed


def stamped(kind, capacity, rows):
    memory = kind(rlm.NumericSpec((2,)), rlm.NumericSpec(()), capacity, seed=0)
    number = np.arange(float(rows))
    memory.extend(
        np.stack([number, number], 1), number, reward=number, next_observation=np.stack([number, number], 1),
        terminated=number % 5 == 4,
    )  # fmt: skip
    return memory


def whole(memory):
    """No row is torn, in what is drawn and in all."""
    for record in (memory.all(), memory.sample(8) if len(memory) else memory.all()):
        assert (record.observation == record.id[:, None]).all()
        assert (record.reward == record.id).all()
        assert (record.next_observation == record.id[:, None]).all()


@pytest.mark.parametrize("kind", [rlm.ReplayMemory, rlm.PrioritizedReplayMemory])
@pytest.mark.parametrize("capacity", [5, 20])
def test_an_interrupted_resize_leaves_the_old_memory_or_the_new(kind, capacity):
    at = passed = 0
    while passed >= at:
        at += 1
        memory = stamped(kind, 12, 17)
        passed = interrupted(lambda memory=memory: memory.resize(capacity), at)
        assert memory.capacity in (12, capacity)
        assert memory.ids == range(17 - min(12, memory.capacity), 17)
        whole(memory)
    assert memory.capacity == capacity


@pytest.mark.parametrize("rows", [1, 3])
def test_an_interrupted_write_leaves_no_row_half_overwritten(rows):
    at = passed = 0
    while passed >= at:
        at += 1
        memory = stamped(rlm.ReplayMemory, 12, 17)
        number = np.arange(17.0, 17.0 + rows)
        wide = np.stack([number, number], 1)

        def write(memory=memory, number=number, wide=wide):
            if rows == 1:
                memory.append(wide[0], number[0], reward=number[0], next_observation=wide[0], terminated=False)
            else:
                memory.extend(wide, number, reward=number, next_observation=wide, terminated=number < 0)

        passed = interrupted(write, at)
        assert memory.next_id in (17, 17 + rows)
        whole(memory)


def test_an_interrupted_first_sample_does_not_spoil_the_next():
    at = passed = 0
    while passed >= at:
        at += 1
        memory = stamped(rlm.ReplayMemory, 12, 17)
        passed = interrupted(lambda memory=memory: memory.sample(8), at)
        whole(memory)
