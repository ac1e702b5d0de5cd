"""append, allExperiences, resize and reset: what goes in comes out, in every mode."""

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import filled, one, page_buffer, page_experiences

MODES = ["none", "batch", "sequence"]


def rewards(buffer: mc.rlReplayMemory) -> list[float]:
    return mc.allExperiences(buffer, ConcatenateMode="batch").Reward[0].tolist()


def numbered(buffer: mc.rlReplayMemory, *numbers: float, source: Any = 0) -> None:
    e = page_experiences(len(numbers))
    for element, number in zip(e, numbers, strict=True):
        element.Reward = number
    mc.append(buffer, e, source)


@pytest.mark.parametrize("count", [0, 1, 10])
def test_shapes_follow_the_mode_and_never_the_data(count: int) -> None:
    batch = mc.allExperiences(filled(count), ConcatenateMode="batch")
    assert [x.shape for x in batch.Observation] == [(2, 1, count), (1, 1, count)]
    assert [x.shape for x in batch.NextObservation] == [(2, 1, count), (1, 1, count)]
    assert [x.shape for x in batch.Action] == [(2, 1, count)]
    assert batch.Reward.shape == batch.IsDone.shape == (1, count)
    sequence = mc.allExperiences(filled(count), ConcatenateMode="sequence")
    assert [x.shape for x in sequence.Observation] == [(2, 1, 1, count), (1, 1, 1, count)]
    assert [x.shape for x in sequence.Action] == [(2, 1, 1, count)]
    assert sequence.Reward.shape == sequence.IsDone.shape == (1, 1, count)
    single = mc.allExperiences(filled(count))
    assert mc.numel(single) == count
    for e in single:
        assert [x.shape for x in e.Observation] == [(2, 1), (1, 1)]
        assert [np.shape(e.Reward), np.shape(e.IsDone)] == [(), ()]


def test_field_orders() -> None:
    buffer = filled(3)
    single = ["Observation", "Action", "NextObservation", "Reward", "IsDone"]
    batched = ["Observation", "Action", "Reward", "NextObservation", "IsDone"]
    assert mc.fieldnames(mc.allExperiences(buffer)) == single
    assert mc.fieldnames(mc.allExperiences(buffer, mode="batch")) == batched
    assert mc.fieldnames(mc.allExperiences(buffer, mode="sequence")) == batched


def test_is_done_comes_back_as_a_double_code() -> None:
    buffer = page_buffer()
    mc.append(buffer, [one(IsDone=code) for code in (0, 1, 2, True, np.float64(2), np.array([[1]]), False)])
    batch = mc.allExperiences(buffer, ConcatenateMode="batch")
    np.testing.assert_array_equal(batch.IsDone, np.array([[0.0, 1, 2, 1, 2, 1, 0]]), strict=True)
    assert [e.IsDone for e in mc.allExperiences(buffer)] == [0, 1, 2, 1, 2, 1, 0]
    assert buffer.memory.all().truncated.tolist() == [False, False, True, False, True, False, False]


def test_reward_is_double_unless_single_was_asked_for() -> None:
    assert mc.allExperiences(filled(2), mode="batch").Reward.dtype == np.float64
    buffer = mc.rlReplayMemory(mc.rlNumericSpec([2, 1]), mc.rlNumericSpec([1, 1]), RewardDataType="single")
    mc.append(buffer, {"Observation": [[1, 2]], "Action": [0], "NextObservation": [[1, 2]], "Reward": 0.1, "IsDone": 0})
    assert mc.allExperiences(buffer, mode="batch").Reward.dtype == np.float32
    assert mc.allExperiences(buffer)[0].Reward == np.float32(0.1)


def test_the_oldest_is_overwritten_and_order_stays_oldest_first() -> None:
    buffer = page_buffer(3)
    numbered(buffer, 1, 2)
    assert rewards(buffer) == [1, 2]
    numbered(buffer, 3, 4)
    assert (rewards(buffer), buffer.Length, buffer.MaxLength) == ([2, 3, 4], 3, 3)
    numbered(buffer, 5, 6, 7, 8, 9)
    assert rewards(buffer) == [7, 8, 9]
    assert [e.Reward for e in mc.allExperiences(buffer)] == [7, 8, 9]


@pytest.mark.parametrize("form", ["function", "method"])
def test_both_call_forms_do_the_same(form: str) -> None:
    buffer, e = page_buffer(5), page_experiences(3)
    if form == "function":
        mc.append(buffer, e)
        mc.validateExperience(buffer, e)
        mc.resize(buffer, 2)
        length = mc.numel(mc.allExperiences(buffer))
        mc.reset(buffer)
    else:
        buffer.append(e)
        buffer.validateExperience(e)
        buffer.resize(2)
        length = mc.numel(buffer.allExperiences())
        buffer.reset()
    assert (length, buffer.MaxLength, buffer.Length) == (2, 2, 0)


def test_functions_and_methods_are_one_definition() -> None:
    for name in ("append", "sample", "allExperiences", "validateExperience", "resize", "reset", "merge"):
        assert getattr(mc.rlReplayMemory, name) is getattr(mc, name)
    assert mc.rlReplayMemory.getObservationInfo is mc.getObservationInfo


def forms(e: mc.struct) -> list[Any]:
    """The same experiences as every kind of input that append takes."""
    rows = [{name: getattr(x, name) for name in mc.fieldnames(e)} for x in e]
    loaded = np.empty((len(rows), 1), [(name, object) for name in mc.fieldnames(e)])
    objects = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        objects[i] = row
        for name, value in row.items():
            if isinstance(value, list):
                cell = np.empty((1, len(value)), object)
                for k, entry in enumerate(value):
                    cell[0, k] = np.atleast_2d(entry)
                loaded[i, 0][name] = cell
            else:
                loaded[i, 0][name] = np.atleast_2d(value)
    tuples = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    return [e, e[0:], rows, tuple(rows), list(e), loaded, loaded.T, objects, tuples, mc.Cell(rows)]


@pytest.mark.parametrize("form", range(10))
def test_every_form_of_input_stores_the_same(form: int) -> None:
    buffer, e = page_buffer(), page_experiences(4)
    mc.append(buffer, forms(e)[form])
    expected = filled(4)
    for a, b in zip(mc.allExperiences(buffer), mc.allExperiences(expected), strict=True):
        assert a.Reward == b.Reward
        np.testing.assert_array_equal(a.Observation[0], b.Observation[0])
        assert a.NextObservation[1] == b.NextObservation[1]


@pytest.mark.parametrize("value", [[1.0, 2.0], np.array([1.0, 2.0]), np.array([[1.0], [2.0]]), np.ones((2, 1, 1, 1))])
def test_a_column_can_be_given_without_its_second_dimension(value: Any) -> None:
    buffer = page_buffer()
    mc.append(buffer, one(Action=[value]))
    np.testing.assert_array_equal(mc.allExperiences(buffer)[0].Action[0].ravel(), np.ravel(value))


def test_dlarrays_can_be_appended() -> None:
    buffer, e = filled(2), mc.allExperiences(filled(2), ReturnDlarray=True)
    mc.append(buffer, e)
    first, second = rewards(buffer)[:2], rewards(buffer)[2:]
    assert first == second


def test_values_are_copied_in_both_directions() -> None:
    buffer = page_buffer()
    array = np.ones((2, 1))
    e = {"Observation": [array, 1], "Action": [array], "NextObservation": [array, 1], "Reward": 1.0, "IsDone": 0}
    mc.append(buffer, e)
    array[:] = 9
    for mode in MODES[1:]:
        given = mc.allExperiences(buffer, ConcatenateMode=mode)
        assert (given.Action[0] == 1).all()
        given.Action[0][:] = 8
    mc.allExperiences(buffer)[0].Action[0][:] = 7
    assert (mc.allExperiences(buffer, mode="batch").Action[0] == 1).all()


def test_batched_arrays_are_views_of_one_contiguous_copy() -> None:
    batch = mc.allExperiences(filled(5), ConcatenateMode="batch")
    x = np.moveaxis(batch.Observation[0], -1, 0)
    assert x.base is not None
    assert x.flags.c_contiguous


@pytest.mark.parametrize("sources", [3, [1, 2, 3], np.array([[1.0], [2.0], [3.0]])])
def test_data_sources_are_stored(sources: Any) -> None:
    buffer = page_buffer()
    mc.append(buffer, page_experiences(3), sources)
    assert buffer.memory.all().source.tolist() == np.broadcast_to(np.ravel(sources), 3).tolist()


def test_the_default_source_is_zero() -> None:
    buffer = filled(2)
    mc.append(buffer, one(), dataSourceID=4)
    mc.append(buffer, one(), 0)
    assert buffer.memory.all().source.tolist() == [0, 0, 4, 0]


def test_an_empty_list_appends_nothing() -> None:
    buffer = page_buffer()
    mc.append(buffer, [])
    mc.append(buffer, mc.allExperiences(buffer))
    mc.validateExperience(buffer, [])
    assert buffer.Length == 0


def test_resize_keeps_the_newest_and_reset_keeps_none() -> None:
    buffer = filled(0)
    numbered(buffer, 1, 2, 3, 4)
    mc.resize(buffer, 2.0)
    assert (rewards(buffer), buffer.MaxLength) == ([3, 4], 2)
    mc.resize(buffer, 3)
    numbered(buffer, 5)
    assert rewards(buffer) == [3, 4, 5]
    mc.reset(buffer)
    assert (buffer.Length, buffer.MaxLength) == (0, 3)


@pytest.mark.parametrize(("name", "match"), [("MaxLength", r"resize\(buffer, 3\)"), ("Length", "read-only")])
def test_properties_are_read_only(name: str, match: str) -> None:
    with pytest.raises(AttributeError, match=match):
        setattr(filled(1), name, 3)


def test_a_misspelt_property_is_not_made() -> None:
    with pytest.raises(AttributeError, match="Maxlength"):
        filled(1).Maxlength = 3


def test_memories_are_handles() -> None:
    buffer = filled(1)
    same = buffer
    mc.append(same, one())
    assert buffer.Length == 2


def test_memories_can_be_copied_and_pickled() -> None:
    buffer = filled(3)
    promised = mc.allExperiences(buffer)
    for twin in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert rewards(twin) == rewards(buffer)
        mc.append(twin, one())
        assert repr(mc.getObservationInfo(twin)) == repr(mc.getObservationInfo(buffer))
    assert (buffer.Length, mc.numel(promised)) == (3, 3)


def test_the_memory_underneath_is_the_one_a_python_user_would_make() -> None:
    buffer = mc.rlReplayMemory(mc.rlNumericSpec([4, 1]), mc.rlFiniteSetSpec([0, 1]), 10)
    assert buffer.memory.observation_spec == rlm.NumericSpec((4,))
    buffer.memory.append(np.ones(4), 1.0, reward=1.0, next_observation=np.ones(4), terminated=True)
    assert mc.allExperiences(buffer)[0].Observation[0].shape == (4, 1)
    assert buffer.Length == 1


# ---- individual experiences are read when they are needed ---------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda buffer: numbered(buffer, 10),
        lambda buffer: numbered(buffer, 10, 11, 12, 13, 14),
        lambda buffer: mc.reset(buffer),
        lambda buffer: mc.resize(buffer, 1),
        lambda buffer: mc.merge(buffer, filled(4)),
    ],
)
def test_what_all_experiences_gave_does_not_change_with_the_memory(change: Any) -> None:
    buffer = page_buffer(4)
    numbered(buffer, 1, 2, 3)
    before = mc.allExperiences(buffer)
    change(buffer)
    change(buffer)
    assert [e.Reward for e in before] == [1, 2, 3]


def test_a_struct_array_that_nobody_holds_is_not_read() -> None:
    buffer = filled(3)
    mc.allExperiences(buffer)
    gc.collect()
    mc.allExperiences(buffer)
    assert len(buffer._unread) == 1


def test_writing_underneath_is_seen_only_as_far_as_ids_live() -> None:
    buffer = page_buffer(4)
    numbered(buffer, 1, 2, 3)
    promised, lost = mc.allExperiences(buffer), mc.allExperiences(buffer)
    row = buffer.memory.get([0])
    buffer.memory.extend_from(row)
    assert [e.Reward for e in promised] == [1, 2, 3]
    buffer.memory.extend_from(row)
    with pytest.raises(rlm.StaleIdError, match=r"overwritten through buffer\.memory before the first of them was read"):
        _ = lost[0].Reward
