"""rlNumericSpec, rlFiniteSetSpec, spec arrays, and the slips seen with them."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import page_specs


def test_the_page_line_reads_the_same() -> None:
    observation, _ = page_specs()
    assert (observation[0].UpperLimit * np.random.default_rng(0).random((2, 1))).shape == (2, 1)


def test_defaults() -> None:
    spec = mc.rlNumericSpec([4, 1])
    assert (spec.LowerLimit, spec.UpperLimit, spec.Name, spec.Description) == (-np.inf, np.inf, "", "")
    assert (spec.Dimension, spec.DataType) == ((4, 1), "double")
    spec = mc.rlFiniteSetSpec([1, 2])
    assert (spec.Dimension, spec.DataType, spec.Name, spec.Description) == ((1, 1), "double", "", "")
    assert spec.Elements.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("limit", "dimension", "kept"),
    [
        (5, [2, 1], 5),
        (np.float32(5), [2, 1], 5.0),
        ([[1], [5]], [2, 1], np.array([[1.0], [5.0]])),
        ([1, 5], [2, 1], np.array([[1.0], [5.0]])),
        ([1, 5], [1, 2], np.array([[1.0, 5.0]])),
        (np.ones((8, 6)), [8, 6, 1], np.ones((8, 6, 1))),
    ],
)
def test_limits_are_numbers_or_have_the_size_of_the_data(limit: Any, dimension: list[int], kept: Any) -> None:
    np.testing.assert_array_equal(mc.rlNumericSpec(dimension, UpperLimit=limit).UpperLimit, kept, strict=True)


def test_limits_are_copied_and_can_be_assigned() -> None:
    limit = np.array([[1.0], [5.0]])
    spec = mc.rlNumericSpec([2, 1], UpperLimit=limit)
    limit[:] = 0
    assert spec.UpperLimit.tolist() == [[1.0], [5.0]]
    spec.UpperLimit, spec.Name = 3, "speed"
    assert (spec.UpperLimit, spec.Name) == (3, "speed")
    with pytest.raises(ValueError, match="LowerLimit has size 1×3; expected a number, or an array of the size Dim"):
        spec.LowerLimit = [1, 2, 3]


@pytest.mark.parametrize("name", ["Dimension", "DataType"])
def test_dimension_and_class_are_read_only(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        setattr(mc.rlNumericSpec([2, 1]), name, [3, 1])


def test_a_misspelt_property_is_not_made() -> None:
    with pytest.raises(AttributeError, match="UperLimit"):
        mc.rlNumericSpec([2, 1]).UperLimit = 3


@pytest.mark.parametrize(
    ("dimension", "match"),
    [
        (4, r"two sizes or more; got 4: write \[4, 1\] for a column"),
        ([4], r"two sizes or more; got \[4\]"),
        ([], "whole numbers above 0"),
        ([2, 0], "whole numbers above 0"),
        ([2, 1.5], "whole numbers above 0"),
        ("21", "whole numbers above 0"),
    ],
)
def test_a_wrong_dimension_is_answered(dimension: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        mc.rlNumericSpec(dimension)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"DataType": "float64"}, 'must be one of "double", "single"'),
        ({"DataType": "Single"}, 'did you mean "single"'),
        ({"LowerLimit": 3, "UpperLimit": 2}, "LowerLimit or UpperLimit does not fit"),
        ({"UpperLimit": "a"}, "UpperLimit must be a number"),
        ({"UpperLimit": np.nan}, "does not fit"),
        ({"Name": 3}, "Name must be text; got 3"),
        ({"DataType": "uint8", "UpperLimit": 300}, "does not fit"),
    ],
)
def test_wrong_options_of_a_numeric_spec_are_answered(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=f"rlNumericSpec.*{match}"):
        mc.rlNumericSpec([2, 1], **options)


def test_limits_reach_the_memory_underneath() -> None:
    spec = mc.rlNumericSpec([2, 1], LowerLimit=0, UpperLimit=[1, 5])
    low = mc.rlNumericSpec([2, 1], DataType="int8", LowerLimit=[-np.inf, 0])
    buffer = mc.rlReplayMemory([spec, low], mc.rlFiniteSetSpec([0, 1]))
    assert buffer.memory.observation_spec[0] == rlm.NumericSpec((2,), low=0, high=[1, 5])
    assert buffer.memory.observation_spec[1] == rlm.NumericSpec((2,), "int8")
    assert buffer.memory.action_spec == rlm.FiniteSetSpec([0, 1], "float64")


@pytest.mark.parametrize(
    ("elements", "dimension"),
    [
        ([1, 2, 3], (1, 1)),
        (np.array([[1, 2, 3]]), (1, 1)),
        (range(3), (1, 1)),
        ([[0, 1], [1, 0]], (2, 1)),
        ([np.array([[0, 1]]), np.array([[1, 0]])], (1, 2)),
        (np.array([np.zeros((2, 2)), np.ones((2, 2)), None], dtype=object)[:2], (2, 2)),
    ],
)
def test_elements_are_numbers_or_arrays_of_one_size(elements: Any, dimension: tuple[int, ...]) -> None:
    spec = mc.rlFiniteSetSpec(elements)
    assert spec.Dimension == dimension
    assert len(spec.Elements) == len(np.ravel(elements) if dimension == (1, 1) else elements)
    assert all(np.shape(element) == (dimension if dimension != (1, 1) else ()) for element in spec.Elements)


@pytest.mark.parametrize(
    ("elements", "match"),
    [
        ([1, 1], r"must all be different.*a size such as \[1 1\] is not given here"),
        (3, r"for the choices 1 to 3 write list\(range\(1, 3 \+ 1\)\)"),
        ([], "one number or more"),
        (["a", "b"], "one number or more"),
        ([[1, 2], [1, 2, 3]], "all elements must have one size; got 2×1, 3×1"),
        (np.zeros((2, 3)), "size 2×3; give a vector of numbers, or a list of arrays"),
    ],
)
def test_wrong_elements_are_answered(elements: Any, match: str) -> None:
    with pytest.raises(ValueError, match=f"rlFiniteSetSpec.*{match}"):
        mc.rlFiniteSetSpec(elements)


def test_elements_must_fit_the_class() -> None:
    with pytest.raises(ValueError, match="fit the DataType 'uint8'"):
        mc.rlFiniteSetSpec([0, 300], DataType="uint8")
    assert mc.rlFiniteSetSpec([0, 1], DataType="logical").Elements.dtype == bool


def test_a_spec_is_its_own_first_element() -> None:
    spec = mc.rlNumericSpec([2, 1])
    assert spec[0] is spec
    assert mc.numel(spec) == 1
    assert list(spec) == [spec]
    with pytest.raises(IndexError):
        spec[1]


def test_hcat_and_brackets_make_spec_arrays() -> None:
    a, b = mc.rlNumericSpec([2, 1]), mc.rlFiniteSetSpec([1, 2])
    assert mc.hcat(a, b) == [a, b]
    assert mc.hcat([a, b], a) == [a, b, a]
    with pytest.raises(TypeError, match="hcat joins specs with specs or structs with structs; got rlNumericSpec, int"):
        mc.hcat(a, 3)
    with pytest.raises(TypeError, match=r"arrays: np\.hstack"):
        mc.hcat(np.zeros(2), np.zeros(2))


def test_the_specs_of_a_memory_are_those_given() -> None:
    observation, action = page_specs()
    buffer = mc.rlReplayMemory(observation, action)
    assert mc.getObservationInfo(buffer) == observation
    assert buffer.getActionInfo() is action
    mc.getObservationInfo(buffer).clear()
    assert mc.getObservationInfo(buffer) == observation
    assert mc.getActionInfo(mc.rlReplayMemory(tuple(observation), [action])) == [action]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((5000,), "obsInfo: .*got int; a memory is made as rlReplayMemory"),
        ((mc.rlNumericSpec([2, 1]),), "actInfo: .*got NoneType"),
        ((mc.rlNumericSpec([2, 1]), 5000), "actInfo: .*got int"),
        (([], mc.rlNumericSpec([2, 1])), "obsInfo: .*one for each channel"),
        (([2, 1], [1, 1]), "obsInfo: expected rlNumericSpec or rlFiniteSetSpec"),
        ((rlm.NumericSpec((2,)), rlm.NumericSpec((2,))), "specs of rlmemory .* have their own class"),
    ],
)
def test_a_memory_made_without_specs_is_answered(arguments: Any, match: str) -> None:
    with pytest.raises(rlm.SpecError, match=match):
        mc.rlReplayMemory(*arguments)


@pytest.mark.parametrize("spec", [mc.rlNumericSpec([2, 1], UpperLimit=[1, 5], Name="a"), mc.rlFiniteSetSpec([1, 2])])
def test_specs_can_be_copied_and_pickled(spec: Any) -> None:
    assert repr(pickle.loads(pickle.dumps(spec))) == repr(spec)
    assert repr(copy.deepcopy(spec)) == repr(spec)
