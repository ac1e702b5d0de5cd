"""Name-value options: two forms, any case, and an answer to every slip."""

from typing import Any

import numpy as np
import pytest

import matlab_compat as mc

from .helpers import filled, page_specs


def in_batch(*pairs: Any, **named: Any) -> tuple[int, ...]:
    return mc.allExperiences(filled(3), *pairs, **named).Reward.shape


@pytest.mark.parametrize("name", ["ConcatenateMode", "concatenatemode", "CONCATENATEMODE", "mode", "Mode"])
def test_both_forms_and_any_case(name: str) -> None:
    assert in_batch(name, "batch") == (1, 3)
    assert in_batch(**{name: "batch"}) == (1, 3)


def test_the_forms_can_be_mixed() -> None:
    buffer = filled(3)
    e = mc.allExperiences(buffer, "ConcatenateMode", "batch", returndlarray=True)
    assert isinstance(e.Reward, mc.dlarray)


def test_methods_take_options_as_functions_do() -> None:
    buffer = filled(3)
    assert buffer.allExperiences("ConcatenateMode", "batch").Reward.shape == (1, 3)
    assert buffer.sample(4, "nargout", 2)[1].shape == (1, 4)


def test_pairs_follow_an_optional_positional_argument_or_take_its_place() -> None:
    assert mc.rlReplayMemory(*page_specs(), 50, "Seed", 1).MaxLength == 50
    assert mc.rlReplayMemory(*page_specs(), "Seed", 1).MaxLength == 10_000
    assert mc.rlReplayMemory(*page_specs(), maxLength=50, seed=1).MaxLength == 50
    assert mc.rlNumericSpec([2, 1], "lowerlimit", 0, "Name", "speed").Name == "speed"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"ConcatenateMod": "batch"}, "no option 'ConcatenateMod'; did you mean ConcatenateMode?"),
        ({"ReturnDlarry": True}, "did you mean ReturnDlarray?"),
        ({"xyz": True}, r"no option 'xyz' \(options: ConcatenateMode, ReturnDlarray, ReturnGpuArray\)"),
        ({"ConcatenateMode": "batch", "mode": "batch"}, "ConcatenateMode was given twice"),
        ({"ConcatenateMode": "batch", "concatenatemode": "none"}, "ConcatenateMode was given twice"),
    ],
)
def test_a_wrong_name_is_answered(options: dict[str, Any], match: str) -> None:
    with pytest.raises(TypeError, match=f"allExperiences.*{match}"):
        mc.allExperiences(filled(1), **options)


@pytest.mark.parametrize(
    ("pairs", "match"),
    [
        (("ConcatenateMode",), "option 'ConcatenateMode' came without a value"),
        (("batch",), "option 'batch' came without a value"),
        (("ReturnDlarray", True, "mode"), "option 'mode' came without a value"),
        (("ConcatenateMode", "batch", "ConcatenateMode", "none"), "given twice"),
        (("ConcatenateMode", "batch", 3, 4), "expected the name of an option as text, got 3"),
        ((True,), "takes buffer, then name-value options; True is one argument too many"),
    ],
)
def test_wrong_pairs_are_answered(pairs: tuple[Any, ...], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        mc.allExperiences(filled(1), *pairs)


def test_a_name_as_pair_and_as_keyword_is_given_twice() -> None:
    with pytest.raises(TypeError, match="given twice"):
        mc.allExperiences(filled(1), "mode", "batch", ConcatenateMode="none")


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ("Batch", 'must be one of "none", "batch", "sequence"; got \'Batch\'; did you mean "batch"'),
        ("sequences", 'did you mean "sequence"'),
        (1, "got 1"),
        (None, "got None"),
    ],
)
def test_a_wrong_mode_is_answered(value: Any, match: str) -> None:
    with pytest.raises(ValueError, match=f"allExperiences: ConcatenateMode .*{match}"):
        mc.allExperiences(filled(1), ConcatenateMode=value)


@pytest.mark.parametrize("value", [2, "true", None, [True]])
def test_a_logical_option_takes_only_logicals(value: Any) -> None:
    with pytest.raises(ValueError, match="ReturnDlarray must be True or False"):
        mc.allExperiences(filled(1), ReturnDlarray=value)


@pytest.mark.parametrize("value", [True, 1, 1.0, np.True_, np.float64(1)])
def test_a_logical_option_takes_ones_as_matlab_does(value: Any) -> None:
    assert isinstance(mc.allExperiences(filled(1), mode="batch", ReturnDlarray=value).Reward, mc.dlarray)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"SequenceLength": 0}, "SequenceLength must be a whole number, 1 or more; got 0"),
        ({"SequenceLength": 1.5}, "SequenceLength must be a whole number"),
        ({"NStepHorizon": True}, "NStepHorizon must be a whole number"),
        ({"DiscountFactor": 1.5}, "DiscountFactor must be a number from 0.0 to 1.0; got 1.5"),
        ({"DiscountFactor": "a"}, "DiscountFactor must be a number"),
        ({"DataSourceID": -2}, "DataSourceID must be a whole number, -1 or more"),
        ({"nargout": 0}, "nargout must be a whole number, 1 or more"),
        ({"nargout": 5}, "nargout must be 1 to 4"),
        ({"SequenceLength": 2, "NStepHorizon": 2}, "NStepHorizon must be 1 when SequenceLength is above 1"),
    ],
)
def test_wrong_options_of_sample_are_answered(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        mc.sample(filled(3), 2, **options)


@pytest.mark.parametrize("size", [0, -1, 2.5, "a", None, True, np.zeros(2)])
def test_a_wrong_batch_size_is_answered(size: Any) -> None:
    with pytest.raises(ValueError, match="sample: batchSize must be a whole number, 1 or more"):
        mc.sample(filled(3), size)


@pytest.mark.parametrize("size", [4.0, np.int32(4), np.float64(4), np.array(4), np.array([[4.0]])])
def test_whole_numbers_of_any_class_are_numbers(size: Any) -> None:
    assert mc.sample(filled(3), size).Reward.shape == (1, 4)


def test_a_missing_positional_argument_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="batchSize"):
        mc.sample(filled(3))


@pytest.mark.parametrize("value", [0, -1, 1.5, "a", None, True])
def test_a_wrong_maximum_length_is_answered(value: Any) -> None:
    if not isinstance(value, str):
        with pytest.raises(ValueError, match="rlReplayMemory: maxLength must be a whole number, 1 or more"):
            mc.rlReplayMemory(*page_specs(), value)
    buffer = filled(3)
    with pytest.raises(ValueError, match="resize: maxLength must be a whole number, 1 or more"):
        mc.resize(buffer, value)
    assert buffer.MaxLength == 5000
