"""What TorchRL's split_trajectories gave, recorded: the same here, or else the difference by name."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import rlmemory as rlm

from .recorded import FILES, copied, equal, leaves, load

#: Cases whose subject does not exist without torch. What is left of them, plain data, is compared all the same.
NOT_APPLICABLE = {
    78: "a leaf that needs a gradient: NumPy's arrays have none",
    79: "a lazily stacked TensorDict: there is one kind of nested dict",
}
#: Cases where TorchRL and we differ on purpose; each has a test below with its number.
DIFFERENT = {30, 31, 33, 39, 40, 42, 43, 45, 46, 58, 60, 64, 66, 67, 69, 70, 75, 76, 81}
SAME = sorted(set(FILES) - DIFFERENT)

pytestmark = pytest.mark.usefixtures("backend")


def test_all_recorded_cases_are_there():
    assert len(FILES) == 57
    assert set(FILES) >= DIFFERENT | set(NOT_APPLICABLE)
    assert len(SAME) == 38


@pytest.mark.parametrize("explicit", [False, True], ids=["", "batch_dims"])
@pytest.mark.parametrize("number", SAME, ids=lambda number: FILES[number].stem[19:])
def test_equal_to_torchrl(number, explicit):
    case = load(number)
    before = copied(case["input"])
    options = {"batch_dims": case["batch_dims"]} if explicit else {}
    result = rlm.split_trajectories(case["input"], **case["kwargs"], **options)
    equal(result, case["output"])
    equal(case["input"], before)
    assert not any(np.shares_memory(a, b) for a in leaves(result) for b in leaves(case["input"]))


def split(number, **options):
    """The input of a case, and what we make of it; TorchRL's result is in the third place."""
    case = load(number)
    return case["input"], rlm.split_trajectories(case["input"], **case["kwargs"], **options), case["output"]


@pytest.mark.parametrize("options", [{}, {"batch_dims": 3}], ids=["", "batch_dims"])
def test_030_three_axes_with_a_done_are_split_where_torchrl_raises(options):
    data, ours, theirs = split(30, **options)
    assert theirs is None
    assert ours["mask"].sum(axis=1).tolist() == [2, 1, 3, 3, 3]
    assert np.array_equal(ours["obs"][ours["mask"]], data["obs"].ravel())


@pytest.mark.parametrize("options", [{}, {"batch_dims": 3}], ids=["", "batch_dims"])
def test_031_rows_of_one_outer_index_are_not_joined(options):
    data, ours, theirs = split(31, **options)
    assert theirs["mask"].sum(axis=1).max() == 6
    assert ours["mask"].sum(axis=1).tolist() == [3, 1, 2, 3, 3]
    assert np.array_equal(ours["obs"][ours["mask"]], data["obs"].ravel())


@pytest.mark.parametrize("options", [{}, {"batch_dims": 3}], ids=["", "batch_dims"])
def test_033_full_rows_of_three_axes_become_rows_of_two(options):
    data, ours, theirs = split(33, **options)
    assert theirs["obs"].shape == (2, 2, 3)
    assert ours["obs"].shape == (4, 3)
    assert ours["mask"].all()
    assert not np.shares_memory(ours["obs"], data["obs"])
    equal(ours["obs"], theirs["obs"].reshape(4, 3))


@pytest.mark.parametrize("number", [39, 40, 43])
def test_039_040_043_an_id_that_comes_back_is_another_trajectory(number):
    ids = load(number)["input"]["traj_ids"]
    runs = [len(run) for row in np.atleast_2d(ids) for run in np.split(row, np.flatnonzero(np.diff(row)) + 1)]
    for options in ({}, {"batch_dims": ids.ndim}):
        data, ours, theirs = split(number, **options)
        assert theirs is None or theirs["mask"].all()  # an error, or the input unsplit
        assert ours["mask"].sum(axis=1).tolist() == runs
        assert np.array_equal(ours["obs"][ours["mask"]], data["obs"].ravel())
    with pytest.raises(ValueError, match="'traj_ids': id 0 begins at flat step 0 and again at"):
        split(number, on_repeated_ids="raise")


def test_042_a_trajectory_with_an_id_ends_with_its_row():
    _, ours, theirs = split(42)
    assert theirs["obs"].shape == (1, 6)
    assert ours["obs"].shape == (2, 3)
    equal(ours["obs"].reshape(1, 6), theirs["obs"])


def test_045_ids_with_an_axis_of_one_need_batch_dims_and_are_not_taken_for_a_row():
    with pytest.raises(rlm.ShapeError, match=r"'obs': expected the batch shape \(3, 1\) first, got \(3,\)"):
        split(45)
    _, ours, theirs = split(45, batch_dims=1)
    assert theirs["obs"].shape == (1, 3)
    assert ours["obs"].shape == (3, 1)
    assert ours["traj_ids"].shape == (3, 1, 1)


def test_046_ids_that_are_nan_are_an_error_that_says_so():
    with pytest.raises(ValueError, match="'traj_ids': NaN is not an id"):
        split(46)


def test_058_a_done_key_is_also_looked_for_at_root():
    _, ours, theirs = split(58)
    assert theirs is None
    data = load(58)["input"]
    equal(ours, rlm.split_trajectories(data))
    assert ours["mask"].sum() == 4


def test_060_terminated_and_truncated_stand_for_a_missing_done():
    for options in ({}, {"batch_dims": 1}):
        _, ours, theirs = split(60, **options)
        assert theirs is None
        assert ours["obs"].tolist() == [[0, 1], [2, 0], [3, 0]]


def test_064_made_ids_count_trajectories_also_when_an_end_is_a_two():
    for options in ({}, {"batch_dims": 1}):
        _, ours, theirs = split(64, **options)
        assert theirs["traj_ids"].tolist() == [[0, 0], [2, 2]]  # a running sum of done
        assert ours["traj_ids"].tolist() == [[0, 0], [1, 1]]
        equal({**ours, "traj_ids": theirs["traj_ids"]}, theirs)


def test_066_ends_in_two_columns_are_an_error_that_names_a_leaf():
    with pytest.raises(rlm.ShapeError, match=r"'obs': expected the batch shape \(4, 2\) first"):
        split(66)
    with pytest.raises(rlm.ShapeError, match=r"\('next', 'done'\): expected the batch shape \(4,\), with axes of 1"):
        split(66, batch_dims=1)


def test_067_made_ids_have_the_batch_shape_whatever_axes_of_one_the_ends_have():
    with pytest.raises(rlm.ShapeError, match=r"'obs': expected the batch shape \(4, 1\) first"):
        split(67)
    _, ours, theirs = split(67, batch_dims=1)
    theirs["traj_ids"] = theirs["traj_ids"][..., 0]
    equal(ours, theirs)


def test_069_no_steps_are_no_trajectories():
    for options in ({}, {"batch_dims": 1}):
        _, ours, theirs = split(69, **options)
        assert theirs is None
        assert {name: leaf.shape for name, leaf in ours.items()} == dict.fromkeys(("obs", "traj_ids", "mask"), (0, 0))


def test_070_a_batch_needs_an_axis_of_time():
    _, ours, theirs = split(70)  # a dict has no batch size () to be wrong: done says (4,)
    assert theirs is None
    assert ours["mask"].sum() == 4
    with pytest.raises(ValueError, match="batch_dims: expected a whole number from 1 up, got 0"):
        split(70, batch_dims=0)


@pytest.mark.parametrize("number", [75, 76])
def test_075_076_nested_tensors_are_flat_arrays_and_offsets(number):
    case = load(number)
    flat, offsets = rlm.split_trajectories(case["input"], **case["kwargs"])
    for name, theirs in case["output"].items():
        if name != "next":
            for (begin, end), row in zip(pairwise(offsets), theirs, strict=True):
                equal(flat[name][begin:end], row)
    equal(flat["next"]["done"], np.concatenate(case["output"]["next"]["done"]))


def test_081_a_leaf_called_collector_is_a_leaf():
    _, ours, theirs = split(81)
    assert theirs is None
    assert ours["collector"].tolist() == [[0, 1], [2, 3]]
    assert ours["traj_ids"].tolist() == [[0, 0], [1, 1]]


def test_072_strings_are_padded_with_the_empty_string():
    _, ours, _ = split(72)
    assert ours["s"].tolist() == [["a", ""], ["a", "a"]]  # TorchRL: None
