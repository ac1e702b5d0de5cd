"""unbatch, merge and toBatchFirst."""

from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import everything, filled, page_buffer, page_experiences, page_specs, unchanged


def assert_same_experiences(a: mc.struct, b: mc.struct) -> None:
    assert mc.numel(a) == mc.numel(b)
    for x, y in zip(a, b, strict=True):
        assert (x.Reward, x.IsDone) == (y.Reward, y.IsDone)
        for name in ("Observation", "Action", "NextObservation"):
            for p, q in zip(getattr(x, name), getattr(y, name), strict=True):
                np.testing.assert_array_equal(p, q, strict=True)


@pytest.mark.parametrize("mode", ["batch", "sequence"])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_unbatch_inverts_concatenation(mode: str, count: int) -> None:
    buffer = filled(count)
    single = mc.unbatch(mc.allExperiences(buffer, ConcatenateMode=mode))
    assert mc.fieldnames(single) == ["Observation", "Action", "NextObservation", "Reward", "IsDone"]
    assert_same_experiences(single, mc.allExperiences(buffer))
    other = page_buffer()
    mc.append(other, single)
    for x, y in zip(everything(other), everything(buffer), strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


def test_a_mini_batch_can_be_appended_to_another_memory() -> None:
    batch = mc.sample(filled(10), 6)
    other = page_buffer()
    mc.append(other, mc.unbatch(batch))
    np.testing.assert_array_equal(mc.allExperiences(other, mode="batch").Reward, batch.Reward)


def test_a_batch_appended_as_it_is_is_answered() -> None:
    for mode in ("batch", "sequence"):
        buffer = filled(3)
        with unchanged(buffer, rlm.ShapeError, r"append\(buffer, unbatch\(batch\)\)"):
            mc.append(buffer, mc.allExperiences(buffer, ConcatenateMode=mode))


def batch_dict(**changes: Any) -> dict[str, Any]:
    batch = mc.allExperiences(filled(4), ConcatenateMode="batch")
    return {name: getattr(batch, name) for name in mc.fieldnames(batch)} | changes


@pytest.mark.parametrize(
    ("batch", "error", "match"),
    [
        (page_experiences(2), rlm.StructureError, "expected one struct whose arrays hold all experiences; got 2"),
        ({"Reward": 1}, rlm.StructureError, "no field Observation, Action, NextObservation, IsDone"),
        (batch_dict(Reward=np.zeros((4, 2))), rlm.ShapeError, r"Reward is 4×2; expected a batch \(1×N\)"),
        (batch_dict(Reward=np.zeros((1, 2, 2))), rlm.ShapeError, "several sequences has padding"),
        (batch_dict(IsDone=np.zeros((1, 3))), rlm.ShapeError, "IsDone has 3 values, Reward 4"),
        (batch_dict(Action=[np.zeros((2, 1, 3))]), rlm.ShapeError, r"Action\[0\] is 2×1×3; expected …×4, as Reward"),
        (5, rlm.StructureError, "int came, a struct was expected"),
    ],
)
def test_what_is_no_batch_is_answered(batch: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        mc.unbatch(batch)


def test_a_sequence_needs_its_batch_dimension_of_one() -> None:
    sequence = mc.allExperiences(filled(4), ConcatenateMode="sequence")
    sequence.Action = [np.zeros((1, 2, 4))]
    with pytest.raises(rlm.ShapeError, match=r"Action\[0\] is 1×2×4; expected …×1×4"):
        mc.unbatch(sequence)


def test_merge_equals_appending_by_hand() -> None:
    a, b, by_hand = filled(3), page_buffer(), filled(3)
    for source in (0, 2, 1):
        e = page_experiences(2, seed=source)
        mc.append(b, e, source)
        mc.append(by_hand, e, source)
    assert mc.merge(a, b) is None
    for x, y in zip(everything(a), everything(by_hand), strict=True):
        np.testing.assert_array_equal(x, y, strict=True)
    assert b.Length == 6


def test_merge_into_itself_doubles() -> None:
    buffer = filled(3)
    buffer.merge(buffer)
    rewards = mc.allExperiences(buffer, mode="batch").Reward[0]
    np.testing.assert_array_equal(rewards[:3], rewards[3:])


def test_merge_overwrites_the_oldest() -> None:
    buffer = filled(3, max_length=4)
    mc.merge(buffer, filled(2))
    assert buffer.Length == 4


def test_merge_needs_the_same_specs_and_two_memories() -> None:
    buffer = filled(3)
    observation, action = page_specs()
    single = mc.rlNumericSpec([2, 1], DataType="single")
    for other, match in (
        (mc.rlReplayMemory(observation[0], action), "the observation channels differ: 2×1 double, 1×1 double here"),
        (mc.rlReplayMemory(observation, single), "the action channels differ: 2×1 double here, 2×1 single in"),
    ):
        with unchanged(buffer, rlm.SpecError, match):
            mc.merge(buffer, other)
    with pytest.raises(TypeError, match="merge expects a replay memory"):
        mc.merge(buffer, page_experiences(3))


def test_to_batch_first_gives_what_the_memory_underneath_gives() -> None:
    a, b = filled(10), filled(10)
    ours, core = mc.toBatchFirst(mc.sample(a, 16)), b.memory.sample(16)
    assert isinstance(ours, rlm.Batch)
    for mine, theirs in zip(ours, core, strict=True):
        for x, y in zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]:
            np.testing.assert_array_equal(x, y, strict=True)
    assert ours.observation[0].flags.c_contiguous


@pytest.mark.parametrize("mode", ["batch", "sequence"])
def test_to_batch_first_of_all_experiences(mode: str) -> None:
    buffer = filled(5)
    ours, core = mc.toBatchFirst(mc.allExperiences(buffer, mode=mode)), buffer.memory.all()
    assert isinstance(ours, rlm.Experience)
    lead = (5,) if mode == "batch" else (1, 5)
    assert ours.observation[0].shape == (*lead, 2)
    assert ours.observation[1].shape == ours.reward.shape == ours.terminated.shape == ours.id.shape == lead
    np.testing.assert_array_equal(ours.observation[0].reshape(5, 2), core.observation[0])
    np.testing.assert_array_equal(ours.reward.ravel(), core.reward)


def test_to_batch_first_takes_changes_along() -> None:
    batch = mc.sample(filled(5), 4)
    batch.Reward = batch.Reward * 0
    batch.IsDone[0, :2] = [1, 2]
    ours = mc.toBatchFirst(batch)
    assert not ours.reward.any()
    assert ours.terminated.tolist() == [True, False, False, False]
    assert ours.truncated.tolist() == [False, True, False, False]


def test_to_batch_first_of_a_struct_of_other_origin() -> None:
    ours = mc.toBatchFirst(batch_dict())
    assert ours.action.shape == (4, 2)
    assert (ours.source, ours.id, ours.extra) == (None, None, None)


def test_to_batch_first_takes_dlarrays_and_images() -> None:
    image = mc.rlNumericSpec([8, 6, 1], DataType="uint8")
    buffer = mc.rlReplayMemory(image, mc.rlNumericSpec([1, 4]))
    pixels = np.arange(48, dtype=np.uint8).reshape(8, 6)
    e = mc.struct(Observation=[pixels], Action=[[1, 2, 3, 4]], NextObservation=[pixels], Reward=1, IsDone=0)
    mc.append(buffer, [e, e])
    ours = mc.toBatchFirst(mc.sample(buffer, 3, ReturnDlarray=True))
    assert (ours.observation.shape, ours.action.shape) == ((3, 8, 6), (3, 1, 4))
    np.testing.assert_array_equal(ours.observation[1], pixels)


def test_one_by_b_against_b_by_one_broadcasts_without_a_word() -> None:
    batch, values = mc.sample(filled(5), 4), np.zeros((4, 1))
    assert (batch.Reward - values).shape == (4, 4)
    assert (mc.toBatchFirst(batch).reward[:, None] - values).shape == (4, 1)
