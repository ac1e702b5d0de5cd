"""goalConditionInfo, which counts from 1, and the functions that judge an experience."""

from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import reached, reward, step, unchanged, walk


def matrices(indices: Any, seen: list[Any], goal_channel: int = 2) -> Any:
    """A 2-by-3 matrix that is measured, column by column, and goals of the numbers that were measured."""

    def judge(obs: Any, action: Any, after: Any) -> float:
        seen.append((obs, action, after))
        return 0.0

    measured, goal = mc.rlNumericSpec([2, 3]), mc.rlNumericSpec([np.size(indices), 1])
    condition = mc.Cell([1, indices, goal_channel, np.arange(np.size(indices)) + 1])
    buffer = mc.rlHindsightReplayMemory([measured, goal], mc.rlNumericSpec([1, 2]), judge, judge, [condition])
    e = mc.struct(Observation=[np.zeros((2, 3)), np.zeros((np.size(indices), 1))], Action=[[1, 2]], Reward=0, IsDone=0)
    e.NextObservation = [np.array([[11.0, 12, 13], [21, 22, 23]]), np.zeros((np.size(indices), 1))]
    mc.append(buffer, e)
    return buffer


@pytest.mark.parametrize(
    ("indices", "goal"),
    [
        ([1, 2, 3, 4, 5, 6], [11, 21, 12, 22, 13, 23]),
        (np.array([[6.0, 2.0]]), [23, 21]),
        ([3], [12]),
        (4, [22]),
        (mc.Cell([5, 1]), [13, 11]),
    ],
)
def test_indices_count_from_one_and_column_by_column(indices: Any, goal: list[float]) -> None:
    new = mc.generateHindsightExperiences(matrices(indices, []), 1)
    assert new[0].Observation[1].shape == (len(goal), 1)
    assert new[0].Observation[1].ravel().tolist() == new[0].NextObservation[1].ravel().tolist() == goal


def test_goals_are_written_column_by_column() -> None:
    column, matrix = mc.rlNumericSpec([4, 1]), mc.rlNumericSpec([2, 2])
    buffer = mc.rlHindsightReplayMemory(
        [matrix, column], column, lambda *e: 0, lambda *e: 0, [[2, [1, 2, 3, 4], 1, [1, 2, 3, 4]]]
    )
    e = mc.struct(Observation=[np.zeros((2, 2)), np.zeros(4)], Action=[np.zeros(4)], Reward=0, IsDone=0)
    e.NextObservation = [np.zeros((2, 2)), [1, 2, 3, 4]]
    mc.append(buffer, e)
    assert mc.generateHindsightExperiences(buffer, 1)[0].Observation[0].tolist() == [[1, 3], [2, 4]]


def test_several_conditions_in_one_channel() -> None:
    spec = mc.rlNumericSpec([6, 1])
    info = np.empty(2, object)
    info[:] = [[1, [1, 2], 1, [5, 6]], [1, 3, 1, 4]]
    buffer = mc.rlHindsightReplayMemory(spec, spec, lambda *e: 0, lambda *e: 0, info)
    e = mc.struct(Observation=[np.zeros(6)], Action=[np.zeros(6)], NextObservation=[np.arange(1, 7)])
    e.Reward, e.IsDone = 0, 0
    mc.append(buffer, e)
    assert mc.generateHindsightExperiences(buffer, 1)[0].NextObservation[0].ravel().tolist() == [1, 2, 3, 3, 1, 2]


@pytest.mark.parametrize(
    ("info", "match"),
    [
        (
            [[0, 1, 2, 1]],
            r"goalConditionInfo\[0\]: measurementChannel: whole numbers from 1 to 2.*as MATLAB counts; got 0",
        ),
        ([[1, 1, 3, 1]], "goalChannel: whole numbers from 1 to 2"),
        ([[1, 0, 2, 1]], "measurementIndices: whole numbers from 1 to 1"),
        ([[1, 1, 2, 2]], "goalIndices: whole numbers from 1 to 1"),
        ([[1, 1, 2, [1, 1]]], "goalIndices: a number is given twice"),
        ([[1, 1.5, 2, 1]], "measurementIndices: whole numbers"),
        ([[1, [], 2, 1]], "measurementIndices: whole numbers"),
        ([[1, "a", 2, 1]], "measurementIndices: whole numbers"),
        ([[[1, 2], 1, 2, 1]], "measurementChannel is one number; 2 came"),
        ([[1, 1, 1, 1]], r"goalConditionInfo\[0\]: the same entries are measured and are the goal"),
        ([[1, 1, 2]], r"goalConditionInfo\[0\]: 3 entries came"),
        ([1, 1, 2, 1], "also for a single one"),
        ([], "a cell of conditions was expected"),
        (None, "a cell of conditions was expected"),
    ],
)
def test_wrong_goals_are_answered_as_they_were_counted(info: Any, match: str) -> None:
    place = mc.rlNumericSpec([1, 1])
    with pytest.raises(rlm.SpecError, match=match):
        mc.rlHindsightReplayMemory([place, place], place, reward, reached, info)


def test_unlike_sides_are_answered() -> None:
    two, one_ = mc.rlNumericSpec([2, 1]), mc.rlNumericSpec([1, 1], DataType="single")
    for info, match in (([[1, [1, 2], 2, 1]], "2 numbers are measured, and the goal has 1"), ([[1, 1, 2, 1]], "dtype")):
        with pytest.raises(rlm.SpecError, match=rf"goalConditionInfo\[0\]: .*{match}"):
            mc.rlHindsightReplayMemory([two, one_], two, reward, reached, info)


# ---- functions -------------------------------------------------------------------------------------------------------


def test_functions_see_one_experience_in_cells_of_full_dimensions() -> None:
    seen: list[Any] = []
    buffer = matrices([1, 2], seen)
    mc.generateHindsightExperiences(buffer, 1)
    assert len(seen) == 2  # once each for RewardFcn and IsDoneFcn
    for obs, action, after in seen:
        assert all(isinstance(cell, mc.Cell) for cell in (obs, action, after))
        assert [x.shape for x in (*obs, *action, *after)] == [(2, 3), (2, 1), (1, 2), (2, 3), (2, 1)]
        assert obs[1].ravel().tolist() == after[1].ravel().tolist() == [11, 21]  # the new goal


def test_functions_can_do_what_they_want_with_their_arrays() -> None:
    def careless(obs: Any, action: Any, after: Any) -> float:
        for array in (*obs, *action, *after):
            array[...] = -7
        return 0.0

    place = mc.rlNumericSpec([2, 1])
    buffer = mc.rlHindsightReplayMemory([place, place], place, careless, careless, [[1, [1, 2], 2, [1, 2]]])
    e = mc.struct(Observation=[[4, 4], [9, 9]], Action=[[1, 1]], NextObservation=[[5, 5], [9, 9]], Reward=0, IsDone=0)
    mc.append(buffer, e)
    new = mc.generateHindsightExperiences(buffer, 1)
    cells = [*new[0].Observation, *new[0].Action, *new[0].NextObservation]
    assert [x.ravel().tolist() for x in cells] == [[4, 4], [5, 5], [1, 1], [5, 5], [5, 5]]


@pytest.mark.parametrize("scalar", [0.5, 1, True, np.float32(0.5), np.full((1, 1), 0.5), mc.dlarray(np.ones((1, 1)))])
def test_a_scalar_of_any_kind_is_a_reward(scalar: Any) -> None:
    place = mc.rlNumericSpec([1, 1])
    buffer = mc.rlHindsightReplayMemory([place, place], place, lambda *e: scalar, reached, [[1, 1, 2, 1]])
    mc.append(buffer, step(0))
    assert mc.generateHindsightExperiences(buffer, 1)[0].Reward == np.asarray(scalar).item()


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (np.zeros((2, 1)), rlm.ShapeError, "{}: 2×1 came, a scalar was expected"),
        (np.zeros(0), rlm.ShapeError, "{}: 1×0 came, a scalar"),
        (None, rlm.ShapeError, "{}: no number came"),
        ("a", rlm.ShapeError, "{}: no number came"),
        (1j, rlm.ShapeError, "{}: no number came"),
    ],
)
@pytest.mark.parametrize("name", ["RewardFcn", "IsDoneFcn"])
def test_a_wrong_answer_is_answered_and_changes_nothing(name: str, answer: Any, error: Any, match: str) -> None:
    place = mc.rlNumericSpec([1, 1])
    functions = [lambda *e: answer, reached] if name == "RewardFcn" else [reward, lambda *e: answer]
    buffer = mc.rlHindsightReplayMemory([place, place], place, *functions, [[1, 1, 2, 1]])
    mc.append(buffer, [step(0), step(1)])
    with unchanged(buffer, error, match.format(name)):
        mc.append(buffer, mc.generateHindsightExperiences(buffer, 2))


def test_an_error_of_a_function_comes_through_and_a_reward_too_large_is_named() -> None:
    def broken(obs: Any, action: Any, after: Any) -> float:
        return 1 / 0

    buffer = walk(2, is_done=broken)
    with unchanged(buffer, ZeroDivisionError, "division"):
        mc.generateHindsightExperiences(buffer, 2)
    place = mc.rlNumericSpec([1, 1])
    buffer = mc.rlHindsightReplayMemory(
        [place, place], place, lambda *e: 1e300, reached, [[1, 1, 2, 1]], RewardDataType="single"
    )
    mc.append(buffer, step(0))
    with unchanged(buffer, rlm.ValueNotRepresentableError, "RewardFcn"):
        mc.generateHindsightExperiences(buffer, 1)
