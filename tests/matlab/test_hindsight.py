"""rlHindsightReplayMemory, alone and with priorities: goals, properties, generateHindsightExperiences."""

import copy
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import goal_buffer, reached, reward, step, walk

KINDS = [mc.rlHindsightReplayMemory, mc.rlHindsightPrioritizedReplayMemory]
BOTH = pytest.mark.parametrize("kind", KINDS)


def goals_of(experience: mc.struct) -> list[float]:
    """The goals in Observation, which must also stand in NextObservation."""
    before = [x.Observation[1].item() for x in experience]
    assert before == [x.NextObservation[1].item() for x in experience]
    return before


@BOTH
def test_the_goal_is_what_was_achieved_after_the_last_step(kind: Any) -> None:
    buffer = walk(3, kind=kind)
    new = mc.generateHindsightExperiences(buffer, 3)
    assert repr(new).startswith("3×1 struct array with fields:")
    assert mc.fieldnames(new) == ["Observation", "Action", "NextObservation", "Reward", "IsDone"]
    assert goals_of(new) == [3, 3, 3]
    assert [x.Reward for x in new] == [-1, -1, 0]
    assert [x.IsDone for x in new] == [0, 0, 1]
    assert [x.Observation[0].item() for x in new] == [0, 1, 2]
    assert new[0].Observation[0].shape == new[0].Action[0].shape == (1, 1)


@BOTH
def test_nothing_is_stored_and_the_originals_stay(kind: Any) -> None:
    buffer = walk(3, kind=kind, last=2)
    mc.generateHindsightExperiences(buffer, 3)
    assert buffer.Length == 3
    stored = mc.allExperiences(buffer)
    assert goals_of(stored) == [99, 99, 99]
    assert [(x.Reward, x.IsDone) for x in stored] == [(-1, 0), (-1, 0), (-1, 2)]


@pytest.mark.parametrize(
    ("strategy", "possible"),
    [("future", [{1, 2, 3}, {2, 3}, {3}]), ("episode", [{1, 2, 3}] * 3), ("final", [{3}] * 3)],
)
@BOTH
def test_goals_of_each_strategy(kind: Any, strategy: str, possible: list[set[int]]) -> None:
    buffer = walk(3, kind=kind)
    buffer.Strategy, buffer.NumGoalSamples = strategy, 100
    each = 1 if strategy == "final" else 100
    goals = goals_of(mc.generateHindsightExperiences(buffer, 3))
    assert len(goals) == 3 * each
    assert [set(goals[i * each : (i + 1) * each]) for i in range(3)] == possible
    if strategy == "final":
        return
    for i, those in enumerate(possible):  # 100 draws of two or three goals: none below 15 but once in 1e6
        counts = Counter(goals[i * each : (i + 1) * each])
        assert min(counts.values()) > 15 or len(those) == 1


@BOTH
def test_the_same_is_generated_as_by_the_memory_underneath(kind: Any) -> None:
    a, b = walk(6, kind=kind), walk(6, kind=kind)
    for buffer in (a, b):
        buffer.Strategy = "future"
    new, core = mc.generateHindsightExperiences(a, 4), b.memory.generate_hindsight(4)
    assert goals_of(new) == core.observation[1].tolist()
    assert [x.Reward for x in new] == core.reward.tolist()
    assert [x.IsDone == 1 for x in new] == core.terminated.tolist()


def test_the_newest_experiences_are_taken_and_generated_ones_do_not_count() -> None:
    buffer = walk(5)
    mc.append(buffer, mc.generateHindsightExperiences(buffer, 2))
    assert buffer.Length == 7
    new = mc.generateHindsightExperiences(buffer, 2)
    assert [x.Observation[0].item() for x in new] == [3, 4]
    assert mc.numel(mc.generateHindsightExperiences(buffer, 50)) == 5


def test_episodes_have_goals_of_their_own() -> None:
    buffer = walk(2)
    for x in (10, 11, 12):
        mc.append(buffer, step(x))
    assert goals_of(mc.generateHindsightExperiences(buffer, 5)) == [2, 2, 13, 13, 13]


@BOTH
def test_properties_begin_as_in_matlab_and_can_be_set(kind: Any) -> None:
    buffer = goal_buffer(kind)
    assert (buffer.Strategy, buffer.NumGoalSamples, buffer.MaxLength, buffer.Length) == ("final", 4, 10_000, 0)
    assert (buffer.RewardFcn, buffer.IsDoneFcn) == (reward, reached)
    assert buffer.GoalConditionInfo == [[1, 1, 2, 1]]
    buffer.GoalConditionInfo[0][0] = 5  # a copy
    assert buffer.GoalConditionInfo == [[1, 1, 2, 1]]
    buffer.Strategy, buffer.NumGoalSamples = "episode", 7.0
    assert (buffer.Strategy, buffer.NumGoalSamples) == ("episode", 7)
    assert (buffer.memory.strategy, buffer.memory.goal_samples) == ("episode", 7)


@BOTH
@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("Strategy", "futur", 'did you mean "future"'),
        ("Strategy", None, "Strategy must be one of"),
        *(("NumGoalSamples", value, "NumGoalSamples must be a whole number") for value in (0, 1.5, "4", np.nan)),
    ],
)
def test_a_wrong_value_is_refused(kind: Any, name: str, value: Any, match: str) -> None:
    buffer = goal_buffer(kind)
    with pytest.raises(ValueError, match=match):
        setattr(buffer, name, value)
    assert (buffer.Strategy, buffer.NumGoalSamples) == ("final", 4)


@BOTH
def test_the_memory_underneath_refuses_them_as_well(kind: Any) -> None:
    memory = goal_buffer(kind).memory
    with pytest.raises(ValueError, match="strategy: expected one of final, episode, future, got 'futur'"):
        memory.strategy = "futur"
    with pytest.raises(ValueError, match="goal_samples"):
        memory.goal_samples = 0
    assert (memory.strategy, memory.goal_samples) == ("final", 4)


def test_a_hindsight_memory_shows_its_properties() -> None:
    assert repr(goal_buffer()) == (
        "rlHindsightReplayMemory with properties:\n"
        "            RewardFcn: @reward\n"
        "            IsDoneFcn: @reached\n"
        "    GoalConditionInfo: {{1×4 cell}}\n"
        '             Strategy: "final"\n'
        "       NumGoalSamples: 4\n"
        "            MaxLength: 10000\n"
        "               Length: 0"
    )
    shown = [line.split(":")[0].strip() for line in repr(goal_buffer(KINDS[1])).splitlines()[1:]]
    assert shown[4:7] == ["NumGoalSamples", "PriorityExponent", "InitialImportanceSamplingExponent"]


@BOTH
def test_copies_and_pickles_keep_functions_goals_and_strategy(kind: Any) -> None:
    buffer = walk(3, kind=kind)
    buffer.Strategy = "future"
    for same in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert type(same) is kind
        assert (same.RewardFcn, same.IsDoneFcn, same.Strategy) == (reward, reached, "future")
        assert same.GoalConditionInfo == buffer.GoalConditionInfo
        twin = copy.deepcopy(buffer)
        assert goals_of(mc.generateHindsightExperiences(same, 3)) == goals_of(mc.generateHindsightExperiences(twin, 3))


@BOTH
@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({0: 5000}, rlm.SpecError, "obsInfo"),
        ({2: 5}, TypeError, "RewardFcn: a function of .* was expected; int came"),
        ({3: None}, TypeError, "IsDoneFcn: a function"),
        ({5: 0}, ValueError, "maxLength must be a whole number"),
    ],
)
def test_a_wrong_memory_is_answered(kind: Any, change: dict[int, Any], error: Any, match: str) -> None:
    place = mc.rlNumericSpec([1, 1])
    arguments = [[place, place], place, reward, reached, [[1, 1, 2, 1]], 10]
    with pytest.raises(error, match=match):
        kind(*(change.get(i, value) for i, value in enumerate(arguments)))
