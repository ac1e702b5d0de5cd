"""What generateHindsightExperiences gave, in the memory: it stands alone, and is checked as anything else."""

from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import filled, goal_buffer, step, unchanged, walk

KINDS = [mc.rlHindsightReplayMemory, mc.rlHindsightPrioritizedReplayMemory]
BOTH = pytest.mark.parametrize("kind", KINDS)


@BOTH
def test_sample_draws_what_is_stored(kind: Any) -> None:
    buffer = walk(3, kind=kind)
    assert set(mc.sample(buffer, 200).Observation[1].ravel()) == {99}
    mc.append(buffer, mc.generateHindsightExperiences(buffer, 3))
    batch, _, _, ids = mc.sample(buffer, 200, nargout=4)
    assert set(ids[0]) == set(range(6))
    assert (batch.Observation[1].ravel() == np.where(ids[0] < 3, 99, 3)).all()


@pytest.mark.parametrize("touch", [False, True])
@BOTH
def test_generated_experiences_join_nothing(kind: Any, touch: bool) -> None:
    buffer = walk(3, kind=kind)
    new = mc.generateHindsightExperiences(buffer, 3)
    if touch:
        new[1].Reward = -50
        new[0].Action[0] = 7
    mc.append(buffer, new, 4)
    batch, _, _, ids = mc.sample(buffer, 300, NStepHorizon=3, DiscountFactor=1, nargout=4)
    alone = ids[0] >= 3
    assert set(batch.Reward[0, ids[0] == 0]) == {-3}
    np.testing.assert_array_equal(batch.Reward[0, alone], buffer.memory.get(ids[0, alone]).reward)
    assert set(batch.Reward[0, ids[0] == 4]) == {-50 if touch else -1}
    assert set(batch.Action[0].ravel()[ids[0] == 3]) == {7 if touch else 1}
    assert set(mc.sample(buffer, 50, DataSourceID=4, nargout=4)[3][0]) == {3, 4, 5}
    assert buffer.memory.episodes().length.tolist() == [3]


def test_they_stand_alone_in_another_memory_too_and_element_by_element() -> None:
    place = mc.rlNumericSpec([1, 1])
    plain = mc.rlReplayMemory([place, place], place, Seed=0)
    for x in mc.generateHindsightExperiences(walk(3), 3):
        plain.append(x)
    assert plain.Length == 3
    assert mc.sample(plain, 50, SequenceLength=2, nargout=2)[1][..., 1].sum() == 0
    other = filled(2)
    with unchanged(other, rlm.ReplayMemoryError, "bservation"):
        mc.append(other, mc.generateHindsightExperiences(walk(3), 3))


def test_elements_that_the_user_added_are_ordinary_and_checked() -> None:
    buffer = walk(3)
    new = mc.generateHindsightExperiences(buffer, 2)
    new[2] = step(50)
    mc.append(buffer, new)
    assert buffer.Length == 6
    new[3].Reward = 1
    with unchanged(buffer, rlm.ReplayMemoryError, r"experience\[3\]"):
        mc.append(buffer, new)


def test_a_changed_field_of_the_wrong_size_is_refused() -> None:
    buffer = walk(3)
    new = mc.generateHindsightExperiences(buffer, 3)
    new[1].Observation = [np.zeros((2, 1)), 1]
    with unchanged(buffer, rlm.ShapeError, r"experience\[1\].Observation\[0\]: 2×1 came, 1×1 was expected"):
        mc.append(buffer, new)
    with unchanged(buffer, rlm.ShapeError, "dataSourceID: expected one number, or one for each of the 3"):
        mc.append(buffer, mc.generateHindsightExperiences(buffer, 3), [1, 2])


def test_what_was_read_earlier_stays_when_generated_ones_overwrite() -> None:
    buffer = goal_buffer(maxLength=3)
    for x in range(3):
        mc.append(buffer, step(x))
    before = mc.allExperiences(buffer)
    mc.append(buffer, mc.generateHindsightExperiences(buffer, 3))
    assert [x.Observation[1].item() for x in before] == [99, 99, 99]
    assert [x.Observation[1].item() for x in mc.allExperiences(buffer)] == [3, 3, 3]


@pytest.mark.parametrize("length", [0, -1, 1.5, "3", None])
def test_a_wrong_trajectory_length_is_answered(length: Any) -> None:
    with pytest.raises(ValueError, match="generateHindsightExperiences: trajectoryLength must be a whole number"):
        mc.generateHindsightExperiences(walk(3), length)


def test_memories_without_goals_and_empty_ones_are_answered() -> None:
    with pytest.raises(TypeError, match="a hindsight memory was expected; rlReplayMemory knows no goals"):
        mc.generateHindsightExperiences(filled(3), 3)
    with pytest.raises(TypeError, match="expects a replay memory as its first argument; got list"):
        mc.generateHindsightExperiences([], 3)
    with pytest.raises(rlm.EmptyMemoryError, match="generateHindsightExperiences: there are no experiences"):
        goal_buffer().generateHindsightExperiences(3)
