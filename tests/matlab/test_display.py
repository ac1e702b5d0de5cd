"""What is printed is what MATLAB prints."""

import re

import numpy as np
import pytest

import matlab_compat as mc

from .helpers import filled, page_buffer, page_specs

FIELDS = ["Observation", "Action", "NextObservation", "Reward", "IsDone"]


def with_zeros(text: str) -> str:
    """The same text with every number of a row replaced, so that only the form is compared."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]\d+)?(?=[ \]\n])", "0", text)


def test_individual_experiences_read_as_on_the_page() -> None:
    assert repr(mc.allExperiences(filled(10))) == (
        "10×1 struct array with fields:\n    Observation\n    Action\n    NextObservation\n    Reward\n    IsDone"
    )


def test_a_batch_reads_as_on_the_page() -> None:
    page = (
        "struct with fields:\n"
        "        Observation: {[2x1x10 double]  [1x1x10 double]}\n"
        "             Action: {[2x1x10 double]}\n"
        "             Reward: [9.5751 9.1574 7.4313 8.2346 1.8687 1.6261 5.0596 2.5428 3.5166 5.6782]\n"
        "    NextObservation: {[2x1x10 double]  [1x1x10 double]}\n"
        "             IsDone: [0 0 0 0 0 0 0 0 0 0]"
    )
    ours = repr(mc.allExperiences(filled(10), ConcatenateMode="batch"))
    assert with_zeros(ours.replace("×", "x")) == with_zeros(page)
    assert re.search(r"Reward: \[(\d\.\d{4} ){9}\d\.\d{4}\]", ours)


@pytest.mark.parametrize(
    ("count", "title"), [(0, "0×1 empty struct array with fields:"), (11, "11×1 struct array with fields:")]
)
def test_other_numbers_of_individual_experiences(count: int, title: str) -> None:
    assert repr(mc.allExperiences(filled(count))).split("\n    ") == [title, *FIELDS]


def test_a_single_experience_shows_its_values() -> None:
    lines = repr(mc.allExperiences(filled(1))).splitlines()
    assert lines[0] == "struct with fields:"
    assert re.fullmatch(r"        Observation: \{\[2×1 double\]  \[[123]\]\}", lines[1])
    assert lines[2] == "             Action: {[2×1 double]}"
    assert re.fullmatch(r"             Reward: \d\.\d{4}", lines[4])
    assert lines[5] == "             IsDone: 0"


def test_a_batch_of_one_shows_the_sizes_of_its_arrays() -> None:
    lines = repr(mc.allExperiences(filled(1), ConcatenateMode="batch")).splitlines()
    assert lines[1] == "        Observation: {[2×1×1 double]  [1×1×1 double]}"
    assert re.fullmatch(r"             Reward: \d\.\d{4}", lines[3])
    assert lines[5] == "             IsDone: 0"


def test_a_batch_of_eleven_shows_sizes_instead_of_numbers() -> None:
    lines = repr(mc.allExperiences(filled(11), ConcatenateMode="batch")).splitlines()
    assert lines[3] == "             Reward: [1×11 double]"
    assert lines[5] == "             IsDone: [1×11 double]"


def test_an_empty_batch_and_an_empty_sequence() -> None:
    buffer = page_buffer()
    assert "Observation: {[2×1×0 double]  [1×1×0 double]}" in repr(mc.allExperiences(buffer, ConcatenateMode="batch"))
    assert "Reward: [1×1×0 double]" in repr(mc.allExperiences(buffer, ConcatenateMode="sequence"))


def test_a_sequence_shows_four_sizes() -> None:
    text = repr(mc.allExperiences(filled(10), ConcatenateMode="sequence"))
    assert "Observation: {[2×1×1×10 double]  [1×1×1×10 double]}" in text
    assert "Reward: [1×1×10 double]" in text


def test_dlarrays_in_a_struct() -> None:
    text = repr(mc.allExperiences(filled(10), ConcatenateMode="batch", ReturnDlarray=True))
    assert "Action: {[2×1×10 dlarray]}" in text
    assert "Reward: [1×10 dlarray]" in text


def test_a_memory_shows_its_properties() -> None:
    assert repr(filled(10)) == "rlReplayMemory with properties:\n    MaxLength: 5000\n       Length: 10"


def test_specs_show_their_properties() -> None:
    observation, _ = page_specs()
    assert repr(observation[0]) == (
        "rlNumericSpec with properties:\n"
        "     LowerLimit: 0\n"
        "     UpperLimit: [2×1 double]\n"
        '           Name: ""\n'
        '    Description: ""\n'
        "      Dimension: [2 1]\n"
        '       DataType: "double"'
    )
    assert "Elements: [1 2 3]" in repr(observation[1])


def test_a_dlarray_shows_its_labels() -> None:
    assert repr(mc.dlarray(np.zeros((3, 2), np.float32), "CB")).startswith("3(C)×2(B) single dlarray\n")
    assert repr(mc.dlarray(np.zeros((3, 2)))).startswith("3×2 double dlarray\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (-2.0, "-2"),
        (0.5, "0.5000"),
        (123.45678, "123.4568"),
        (12345.678, "1.2346e+04"),
        (1e-5, "1.0000e-05"),
        (np.nan, "NaN"),
        (-np.inf, "-Inf"),
        (True, "1"),
        (1 + 2j, "1 + 2i"),
        ("text", '"text"'),
        (np.zeros((0, 0)), "[]"),
        (np.array([[1.0, 0.25]]), "[1 0.2500]"),
        (np.array([[True, False]]), "[1 0]"),
        (np.zeros((3, 1), np.uint8), "[3×1 uint8]"),
        (np.zeros((2, 2), bool), "[2×2 logical]"),
        ([], "{}"),
        ([[1, 2], "a", 0.5], '{{1×2 cell}  "a"  [0.5000]}'),
        ([0] * 11, "{1×11 cell}"),
        (np.sin, "@sin"),
        (None, "None"),
    ],
)
def test_a_value_in_a_field(value: object, text: str) -> None:
    assert repr(mc.struct(X=value)) == f"struct with fields:\n    X: {text}"


def test_structs_in_fields_and_structs_without_fields() -> None:
    assert repr(mc.struct()) == "struct with no fields."
    assert repr(mc.struct(S=mc.struct(X=1))) == "struct with fields:\n    S: [1×1 struct]"
