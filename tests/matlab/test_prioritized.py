"""rlPrioritizedReplayMemory: its properties, its draws and weights, updatePriorities."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import goal_buffer, one, page_experiences, page_specs, step, unchanged

KINDS = [mc.rlPrioritizedReplayMemory, mc.rlHindsightPrioritizedReplayMemory]


def prioritized(count: int = 0, kind: Any = mc.rlPrioritizedReplayMemory, max_length: int = 5000) -> Any:
    if kind is mc.rlPrioritizedReplayMemory:
        buffer = kind(*page_specs(), max_length, Seed=0)
        if count:
            mc.append(buffer, page_experiences(count))
        return buffer
    buffer = goal_buffer(kind)
    for x in range(count):
        mc.append(buffer, step(x))
    return buffer


@pytest.mark.parametrize("kind", KINDS)
def test_properties_begin_as_in_matlab(kind: Any) -> None:
    buffer = prioritized(kind=kind)
    assert buffer.PriorityExponent == 1
    assert buffer.InitialImportanceSamplingExponent == buffer.ImportanceSamplingExponent == 0.5
    assert buffer.NumAnnealingSteps == 1e6
    assert (buffer.MaxLength, buffer.Length) == (5000 if kind is KINDS[0] else 10_000, 0)
    assert kind is not KINDS[0] or mc.rlPrioritizedReplayMemory(*page_specs()).MaxLength == 10_000


def test_the_memory_shows_its_properties() -> None:
    assert repr(prioritized()) == (
        "rlPrioritizedReplayMemory with properties:\n"
        "                     PriorityExponent: 1\n"
        "    InitialImportanceSamplingExponent: 0.5000\n"
        "                    NumAnnealingSteps: 1000000\n"
        "           ImportanceSamplingExponent: 0.5000\n"
        "                            MaxLength: 5000\n"
        "                               Length: 0"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "value", "core"),
    [
        ("PriorityExponent", 0.6, "priority_exponent"),
        ("PriorityExponent", 0, "priority_exponent"),
        ("InitialImportanceSamplingExponent", 0.25, "importance_exponent"),
        ("NumAnnealingSteps", 2000.0, "annealing_steps"),
    ],
)
def test_a_property_is_that_of_the_memory_underneath(kind: Any, name: str, value: float, core: str) -> None:
    buffer = prioritized(2, kind)
    setattr(buffer, name, value)
    assert getattr(buffer, name) == getattr(buffer.memory, core) == value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["ImportanceSamplingExponent", "MaxLength", "Length"])
def test_the_others_are_read_only(kind: Any, name: str) -> None:
    buffer = prioritized(2, kind)
    before = getattr(buffer, name)
    with pytest.raises(AttributeError, match=f"{name} is read-only"):
        setattr(buffer, name, 1)
    assert getattr(buffer, name) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PriorityExponent", value) for value in (-1, np.nan, np.inf, "1", None, True)),
        *(("InitialImportanceSamplingExponent", value) for value in (-0.1, 1.1, np.nan, "a")),
        *(("NumAnnealingSteps", value) for value in (0, 1.5, -3, np.inf, np.nan, None)),
    ],
)
def test_a_wrong_value_is_refused_and_names_the_property(name: str, value: Any) -> None:
    buffer = prioritized(2)
    before = getattr(buffer, name)
    with pytest.raises(ValueError, match=name):
        setattr(buffer, name, value)
    assert getattr(buffer, name) == before


def test_a_misspelt_property_is_an_error() -> None:
    with pytest.raises(AttributeError, match="PriorityExponnent"):
        prioritized().PriorityExponnent = 1


def test_draws_are_in_proportion_to_priorities_and_weights_make_up_for_it() -> None:
    buffer = prioritized(4)
    mc.updatePriorities(buffer, [0, 1, 2, 3], [1, 2, 3, 4])
    buffer.InitialImportanceSamplingExponent = 1
    batch, mask, weights, ids = mc.sample(buffer, 10_000, nargout=4)
    assert batch.Reward.shape == mask.shape == weights.shape == ids.shape == (1, 10_000)
    assert mask.all()
    # One draw from each of 10,000 equal parts of the sum of priorities: each count is exact to one or two.
    np.testing.assert_allclose(np.bincount(ids[0], minlength=4), [1000, 2000, 3000, 4000], atol=2)
    np.testing.assert_allclose(weights[0], 1 / (ids[0] + 1))
    buffer.PriorityExponent = 0
    counts = np.bincount(mc.sample(buffer, 10_000, nargout=4)[3][0], minlength=4)
    np.testing.assert_allclose(counts, 2500, atol=2)


@pytest.mark.parametrize("exponents", [(0.6, 0.4), (1, 0.5), (2, 1)])
def test_weights_are_those_of_the_formula(exponents: tuple[float, float]) -> None:
    a, b = exponents
    buffer, p = prioritized(5), np.array([0.5, 1, 2, 3, 9])
    buffer.PriorityExponent, buffer.InitialImportanceSamplingExponent = a, b
    mc.updatePriorities(buffer, np.arange(5), p)
    b = buffer.ImportanceSamplingExponent
    _, _, weights, ids = mc.sample(buffer, 64, nargout=4)
    w = (5 * (p**a / (p**a).sum())[ids]) ** -b
    np.testing.assert_allclose(weights, w / w.max(), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"NStepHorizon": 3, "DiscountFactor": 0.5}, {"DataSourceID": 0}])
def test_the_facade_draws_what_the_memory_underneath_draws(kind: Any, options: dict[str, Any]) -> None:
    a, b = prioritized(20, kind), prioritized(20, kind)
    for buffer in (a, b):
        mc.updatePriorities(buffer, np.arange(20), np.linspace(0, 4, 20))
    batch, _, weights, ids = mc.sample(a, 16, nargout=4, **options)
    n_step, source = options.get("NStepHorizon", 1), options.get("DataSourceID")
    core = b.memory.sample(16, n_step=n_step, discount=options.get("DiscountFactor", 0.99), source=source)
    np.testing.assert_array_equal(batch.Reward[0], core.reward)
    np.testing.assert_array_equal(weights[0], core.weight)
    np.testing.assert_array_equal(ids[0], core.id)


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_are_refused_as_in_matlab(kind: Any) -> None:
    buffer = prioritized(5, kind)
    with unchanged(buffer, ValueError, f"{kind.__name__} gives single experiences.*as in MATLAB, recurrent agents"):
        mc.sample(buffer, 4, SequenceLength=2)
    assert mc.sample(buffer, 4, SequenceLength=1).Reward.shape == (1, 4)


@pytest.mark.parametrize("shape", [(1, 6), (6,), (6, 1)])
@pytest.mark.parametrize("wrap", [np.asarray, mc.dlarray, np.ndarray.tolist])
def test_priorities_come_as_rows_columns_lists_and_dlarrays(shape: tuple[int, ...], wrap: Any) -> None:
    buffer = prioritized(6)
    assert buffer.updatePriorities(np.arange(6)[None], wrap(np.arange(6.0).reshape(shape))) == 0
    assert buffer.memory.priorities().tolist() == [0, 1, 2, 3, 4, 5]


def test_ids_as_doubles_and_overwritten_ones_and_the_last_of_equal_ones() -> None:
    buffer = prioritized(6, max_length=4)
    assert mc.updatePriorities(buffer, np.array([[0.0, 1, 2, 3, 3]]), [9, 9, 2, 3, 5]) == 2
    assert buffer.memory.priorities().tolist() == [2, 5, 1, 1]


@pytest.mark.parametrize(
    ("ids", "priorities", "error", "match"),
    [
        ([0, 1], [np.nan, 1], ValueError, "nan at position 0"),
        ([0, 1], [1, np.inf], ValueError, "inf at position 1"),
        ([[0, 1]], [[1, -1]], ValueError, "-1.0 at position 1"),
        ([0, 1], [1, 2, 3], rlm.ShapeError, "updatePriorities: 3 priorities came for 2 ids"),
        ([0.5, 1], [1, 2], ValueError, "id"),
        ([0, 1], ["a", "b"], TypeError, "priority"),
    ],
)
def test_wrong_priorities_change_nothing(ids: Any, priorities: Any, error: Any, match: str) -> None:
    buffer = prioritized(3)
    mc.updatePriorities(buffer, [0, 1, 2], [1, 2, 3])
    before = buffer.ImportanceSamplingExponent
    with unchanged(buffer, error, match):
        mc.updatePriorities(buffer, ids, priorities)
    assert buffer.memory.priorities().tolist() == [1, 2, 3]
    assert buffer.ImportanceSamplingExponent == before


def test_memories_without_priorities_are_answered() -> None:
    for buffer in (mc.rlReplayMemory(*page_specs()), goal_buffer()):
        with pytest.raises(TypeError, match=f"a prioritized memory was expected; {type(buffer).__name__} draws"):
            mc.updatePriorities(buffer, [0], [1])
        assert not hasattr(buffer, "updatePriorities")
    with pytest.raises(TypeError, match="updatePriorities expects a replay memory as its first argument; got int"):
        mc.updatePriorities(5, [0], [1])


def test_the_exponent_grows_with_updates_and_not_with_draws() -> None:
    buffer = prioritized(3)
    buffer.NumAnnealingSteps = 4
    seen = []
    for _ in range(6):
        mc.sample(buffer, 2)
        mc.updatePriorities(buffer, [0], [1])
        seen.append(buffer.ImportanceSamplingExponent)
    assert seen == [0.625, 0.75, 0.875, 1, 1, 1]
    assert buffer.InitialImportanceSamplingExponent == 0.5


def test_priorities_stay_with_their_experiences_through_resize_copies_and_pickles() -> None:
    buffer = prioritized(6)
    mc.updatePriorities(buffer, np.arange(6), np.arange(6))
    buffer.PriorityExponent = 0.5
    mc.resize(buffer, 3)
    for same in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert type(same) is mc.rlPrioritizedReplayMemory
        assert same.PriorityExponent == 0.5
        assert same.memory.priorities().tolist() == [3, 4, 5]
        assert mc.sample(same, 9, nargout=4)[3].tolist() == mc.sample(copy.deepcopy(buffer), 9, nargout=4)[3].tolist()
    mc.reset(buffer)
    assert buffer.Length == 0
    mc.append(buffer, one())
    assert buffer.memory.priorities().tolist() == [1]


def test_other_functions_work_as_on_any_memory() -> None:
    buffer, plain = prioritized(5), mc.rlReplayMemory(*page_specs())
    mc.append(plain, page_experiences(5))
    mc.validateExperience(buffer, one())
    assert repr(mc.allExperiences(buffer, mode="batch")) == repr(mc.allExperiences(plain, mode="batch"))
    mc.merge(buffer, plain)
    assert buffer.Length == 10
    assert mc.getObservationInfo(buffer)[0].Dimension == (2, 1)
    with unchanged(buffer, rlm.StructureError, "Reward: this field is missing"):
        mc.append(buffer, {"Observation": 1, "Action": 1, "NextObservation": 1})


@pytest.mark.parametrize("single", [True, False])
def test_rewards_can_be_single(single: bool) -> None:
    buffer = mc.rlPrioritizedReplayMemory(*page_specs(), "RewardDataType", "single" if single else "double")
    mc.append(buffer, one())
    assert mc.sample(buffer, 2).Reward.dtype == (np.float32 if single else np.float64)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((5000,), rlm.SpecError, "obsInfo: expected rlNumericSpec"),
        ((*page_specs(), 0), ValueError, "rlPrioritizedReplayMemory: maxLength must be a whole number, 1 or more"),
        ((*page_specs(), 5, "Sed", 1), TypeError, "did you mean Seed"),
    ],
)
def test_a_wrong_memory_is_answered(arguments: tuple[Any, ...], error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        mc.rlPrioritizedReplayMemory(*arguments)
