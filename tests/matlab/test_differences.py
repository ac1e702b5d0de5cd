"""Each numbered difference of `matlab_compat.coverage`, shown."""

import copy
from pathlib import Path

import numpy as np
import pytest
from device.support import RUNS

import matlab_compat as mc
import rlmemory as rlm

from .helpers import filled, one, page_buffer, page_specs, saved_object, step, walk


def test_difference_1_indices_start_at_zero() -> None:
    e = mc.allExperiences(filled(3))
    assert e[0].Observation[0].shape == (2, 1)
    assert e[2].Reward == e[-1].Reward
    assert mc.finddim(mc.dlarray(np.zeros((3, 2)), "CB"), "C") == 1


def test_difference_2_nargout_is_said() -> None:
    mb, mask = mc.sample(filled(3), 4, nargout=2)
    assert mask.shape == mb.Reward.shape
    with pytest.raises(TypeError, match="nargout=2"):
        mb, mask = mc.sample(filled(3), 4)


def test_difference_3_trailing_ones_stay() -> None:
    batch = mc.allExperiences(filled(1), ConcatenateMode="batch")
    assert batch.Observation[0].shape == (2, 1, 1)
    assert "[2×1×1 double]" in repr(batch)


def test_difference_4_elements_are_views() -> None:
    e = mc.allExperiences(filled(3))
    x, y = e[0], copy.deepcopy(e[0])
    x.Reward = 5
    assert e[0].Reward == 5
    y.Reward = 6
    assert e[0].Reward == 5


def test_difference_5_values_never_change_without_a_word() -> None:
    buffer = mc.rlReplayMemory(mc.rlNumericSpec([1, 1], DataType="uint8"), mc.rlNumericSpec([1, 1], DataType="single"))
    good = {"Observation": [255], "Action": [0.1], "NextObservation": [0], "Reward": 0, "IsDone": 0}
    mc.append(buffer, good)
    assert mc.allExperiences(buffer)[0].Action[0] == np.float32(0.1)
    with pytest.raises(rlm.ValueNotRepresentableError, match=r"Observation\[0\]: .*300.* cannot be stored as uint8"):
        mc.append(buffer, good | {"Observation": [300]})


def test_difference_6_the_mask_has_the_layout_of_reward() -> None:
    mb, mask = mc.sample(filled(3), 4, nargout=2)
    assert mask.shape == mb.Reward.shape == (1, 4)


def test_difference_7_a_cell_is_one_value() -> None:
    s = mc.struct(Observation=[np.zeros((2, 1)), 1])
    assert mc.numel(s) == 1
    assert len(s.Observation) == 2


def test_difference_8_a_field_of_several_elements_is_read_in_a_loop() -> None:
    e = mc.allExperiences(filled(3))
    with pytest.raises(AttributeError, match=r"\[x\.Reward for x in s\]"):
        _ = e.Reward
    assert len([x.Reward for x in e]) == 3


def test_difference_9_dlarrays_have_no_labels_and_combine_only_with_their_like() -> None:
    batch = mc.allExperiences(filled(3), ConcatenateMode="batch", ReturnDlarray=True)
    assert mc.dims(batch.Observation[0]) == ""
    with pytest.raises(ValueError, match="differ"):
        mc.dlarray(np.zeros((3, 2)), "CB") + mc.dlarray(np.zeros(3), "C")


def test_difference_10_arrays_on_a_device_need_one_and_do_no_arithmetic() -> None:
    if RUNS:
        x = mc.gpuArray([1.0])
        with pytest.raises(TypeError):
            x + x
        return
    for call in (lambda: mc.gpuArray([1.0]), lambda: mc.allExperiences(filled(1), ReturnGpuArray=True)):
        with pytest.raises(rlm.NotAvailableError):
            call()


def test_difference_11_each_buffer_has_its_own_generator() -> None:
    def drawn() -> list[int]:
        buffer = mc.rlReplayMemory(*page_specs(), Seed=5)
        mc.append(buffer, [one()] * 20)
        np.random.default_rng(0)
        return mc.sample(buffer, 8, nargout=4)[3].tolist()

    assert drawn() == drawn()


def test_difference_12_an_option_is_given_once_and_mode_is_one() -> None:
    assert mc.allExperiences(filled(3), mode="batch").Reward.shape == (1, 3)
    with pytest.raises(TypeError, match="given twice"):
        mc.allExperiences(filled(3), "mode", "batch", "ConcatenateMode", "batch")


def test_difference_13_rows_without_orientation_fill_columns_and_rows() -> None:
    buffer = mc.rlReplayMemory(mc.rlNumericSpec([3, 1]), mc.rlNumericSpec([1, 3]))
    e = {"Observation": [[1, 2, 3]], "Action": [[1, 2, 3]], "NextObservation": [[1, 2, 3]], "Reward": 1, "IsDone": 0}
    mc.append(buffer, e)
    stored = mc.allExperiences(buffer)[0]
    assert (stored.Observation[0].shape, stored.Action[0].shape) == ((3, 1), (1, 3))


def test_difference_14_is_done_is_a_double_of_three_values() -> None:
    buffer = page_buffer()
    mc.append(buffer, one(IsDone=True))
    assert type(mc.allExperiences(buffer)[0].IsDone) is np.float64
    with pytest.raises(rlm.ValueNotRepresentableError, match="IsDone: 3 came"):
        mc.append(buffer, one(IsDone=3))


def test_difference_15_an_empty_buffer_is_not_sampled() -> None:
    with pytest.raises(rlm.EmptyMemoryError):
        mc.sample(page_buffer(), 1)


def test_difference_16_a_spec_array_is_a_list() -> None:
    observation, _ = page_specs()
    assert mc.hcat(*observation) == observation
    assert observation[0].Dimension == (2, 1)


def test_difference_17_the_first_reward_of_several_steps_is_not_discounted() -> None:
    buffer = page_buffer()
    mc.append(buffer, [one(Reward=1), one(Reward=10, IsDone=1)])
    batch, _, _, ids = mc.sample(buffer, 20, NStepHorizon=2, DiscountFactor=0.5, nargout=4)
    assert set(zip(ids[0].tolist(), batch.Reward[0].tolist(), strict=True)) <= {(0, 6.0), (1, 10.0)}


def test_difference_18_priorities_change_by_update_priorities_only() -> None:
    buffer = mc.rlPrioritizedReplayMemory(*page_specs(), Seed=0)
    mc.append(buffer, [one()] * 4)
    before = buffer.memory.priorities().tolist()
    ids = mc.sample(buffer, 8, nargout=4)[3]
    assert (buffer.memory.priorities().tolist(), buffer.ImportanceSamplingExponent) == (before, 0.5)
    buffer.NumAnnealingSteps = 2
    mc.updatePriorities(buffer, ids, np.full((1, 8), 3.0))
    assert buffer.ImportanceSamplingExponent == 0.75
    assert buffer.memory.priorities(ids[0]).tolist() == [3.0] * 8


def test_difference_19_new_experiences_get_the_largest_priority_and_zeros_are_not_drawn() -> None:
    buffer = mc.rlPrioritizedReplayMemory(*page_specs(), Seed=0)
    mc.append(buffer, [one()] * 2)
    mc.updatePriorities(buffer, [0, 1], [0, 7])
    mc.append(buffer, one())
    assert buffer.memory.priorities().tolist() == [0, 7, 7]
    assert set(mc.sample(buffer, 200, nargout=4)[3][0]) == {1, 2}
    mc.updatePriorities(buffer, [0, 1, 2], [0, 0, 0])
    with pytest.raises(rlm.EmptyMemoryError, match="all priorities to draw from are 0; updatePriorities sets some"):
        mc.sample(buffer, 1)


def test_difference_20_generated_experiences_stand_alone() -> None:
    buffer = walk(3)
    generated = mc.generateHindsightExperiences(buffer, 3)
    for part in (generated, generated[1:], generated[0]):
        mc.append(buffer, part)
    _, mask, _, ids = mc.sample(buffer, 100, SequenceLength=3, nargout=4)
    assert not mask[0, ids[0, :, 0] >= 3, 1:].any()
    assert mask[0, ids[0, :, 0] == 0].all()
    mc.append(buffer, copy.deepcopy(generated))
    _, mask, _, ids = mc.sample(buffer, 100, SequenceLength=3, nargout=4)
    assert mask[0, ids[0, :, 0] == 9].all()


@pytest.mark.parametrize("name", ["RewardFcn", "IsDoneFcn", "GoalConditionInfo"])
def test_difference_21_functions_and_goals_are_given_when_the_memory_is_made(name: str) -> None:
    buffer = walk(1)
    with pytest.raises(AttributeError, match=f"{name} is read-only: it is given when the memory is made"):
        setattr(buffer, name, getattr(buffer, name))


def test_difference_22_generated_experiences_end_where_the_goal_is_met_and_keep_time_limits() -> None:
    buffer = walk(2, last=2)
    mc.append(buffer, step(2, done=2))
    generated = mc.generateHindsightExperiences(buffer, 3)
    assert [x.IsDone for x in generated] == [0, 1, 1]  # both ends met their own goals: 2 became 1
    never = walk(2, last=2, is_done=lambda obs, action, after: False)
    assert [x.IsDone for x in mc.generateHindsightExperiences(never, 2)] == [0, 2]
    wrong = walk(1, is_done=lambda obs, action, after: 2)
    with pytest.raises(rlm.ValueNotRepresentableError, match=r"IsDoneFcn: 2 came, true or false"):
        mc.generateHindsightExperiences(wrong, 1)


def test_difference_23_save_takes_values_and_load_gives_a_struct(tmp_path: Path) -> None:
    mc.save(tmp_path / "x", experience=mc.allExperiences(filled(1), ConcatenateMode="batch"), n=3)
    loaded = mc.load(tmp_path / "x.mat")
    assert mc.fieldnames(loaded) == ["experience", "n"]
    assert loaded.experience.Observation[0].shape == (2, 1)
    buffer = page_buffer()
    mc.loadExperiences(tmp_path / "x.mat", buffer)
    assert mc.allExperiences(buffer, ConcatenateMode="batch").Observation[0].shape == (2, 1, 1)


def test_difference_24_objects_are_answered_with_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "buffer.mat").write_bytes(saved_object("buf"))
    for load in (mc.load, lambda file: mc.loadExperiences(file, page_buffer())):
        with pytest.raises(rlm.MatFileError, match=r"buf is an object .* allExperiences\(buf, ConcatenateMode"):
            load(tmp_path / "buffer.mat")
