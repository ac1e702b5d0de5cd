"""Every check of an experience, by `validateExperience` and by `append`, which stores nothing then."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matlab_compat as mc
import rlmemory as rlm

from .helpers import filled, one, page_buffer, page_experiences, unchanged

COLUMN = np.zeros((2, 1))


def without(field: str) -> dict[str, Any]:
    e = one()
    return {name: getattr(e, name) for name in mc.fieldnames(e) if name != field}


WRONG = [
    (without("NextObservation"), rlm.StructureError, r"NextObservation: this field is missing.*Reward, IsDone"),
    (without("Reward"), rlm.StructureError, r"Reward: this field is missing"),
    (one(Observation=COLUMN), rlm.StructureError, r"Observation: 2×1 double came, a cell was.*\[observation\]"),
    (one(Action=COLUMN), rlm.StructureError, r"Action: 2×1 double came, a cell was expected.*even for one channel"),
    (one(NextObservation="text"), rlm.StructureError, r"NextObservation: str came, a cell was expected"),
    (one(Action=mc.struct(X=1)), rlm.StructureError, r"Action: struct came, a cell was expected"),
    (one(Action=[mc.struct(X=1)]), rlm.ShapeError, r"Action\[0\]: cannot be read .*a struct is not an array"),
    (one(Reward=mc.struct(X=1)), rlm.ShapeError, r"Reward: cannot be read .*a struct is not an array"),
    (one(Observation=[COLUMN]), rlm.StructureError, r"Observation: 1 entries came, 2 expected"),
    (one(Observation=[COLUMN, 1, 1]), rlm.StructureError, r"Observation: 3 entries came, 2 expected"),
    (one(Action=[0.5, 0.5]), rlm.StructureError, r"Action: 2 entries came, 1 expected.*write \[np\.array"),
    (one(Observation=[np.zeros((3, 1)), 1]), rlm.ShapeError, r"Observation\[0\]: 3×1 came, 2×1 was expected"),
    (one(Observation=[np.zeros((1, 2)), 1]), rlm.ShapeError, r"Observation\[0\]: 1×2 came, 2×1.*transpose it"),
    (one(Observation=[np.zeros(3), 1]), rlm.ShapeError, r"Observation\[0\]: 3 numbers came, 2×1 was expected"),
    (one(Observation=[COLUMN, np.zeros(2)]), rlm.ShapeError, r"Observation\[1\]: 2 numbers came, 1×1 was expected"),
    (one(Action=[5.0]), rlm.ShapeError, r"Action\[0\]: 1×1 came, 2×1 was expected"),
    (one(NextObservation=[COLUMN, []]), rlm.ShapeError, r"NextObservation\[1\]: 0 numbers came.*nothing was assigned"),
    (one(Action=[[[1.0], [2.0, 3.0]]]), rlm.ShapeError, r"Action\[0\]: cannot be read as one array"),
    (one(Observation=[np.zeros((2, 1, 32)), 1]), rlm.ShapeError, r"Observation\[0\]: 2×1×32 came.*unbatch\(batch\)"),
    (one(Reward=np.zeros((1, 2))), rlm.ShapeError, r"Reward: 1×2 came, a scalar was expected.*unbatch"),
    (one(Reward=[]), rlm.ShapeError, r"Reward: .*a scalar was expected.*nothing was assigned"),
    (one(Action=[np.ma.masked_equal([1.0, 2.0], 2.0)]), rlm.DataTypeError, r"Action\[0\]: a masked array"),
    (one(Reward=np.ma.masked), rlm.DataTypeError, r"Reward: a masked array"),
    (one(Reward=None), rlm.ShapeError, r"Reward: NoneType came, a scalar was expected"),
    (one(IsDone=[0, 1]), rlm.ShapeError, r"IsDone: 1×2 came, a scalar was expected"),
    (one(IsDone=3), rlm.ValueNotRepresentableError, r"IsDone: 3 came; expected 0 \(running\), 1 .* or 2 "),
    (one(IsDone=np.nan), rlm.ValueNotRepresentableError, r"IsDone: nan came; expected 0"),
    (one(IsDone=0.5), rlm.ValueNotRepresentableError, r"IsDone: 0.5 came; expected 0"),
]


@pytest.mark.parametrize(("experience", "error", "match"), WRONG)
def test_a_wrong_experience_is_refused_and_nothing_is_stored(experience: Any, error: Any, match: str) -> None:
    buffer = filled(3)
    with unchanged(buffer, error, "^" + match):
        mc.validateExperience(buffer, experience)
    with unchanged(buffer, error, "^" + match):
        mc.append(buffer, experience)


@pytest.mark.parametrize(("experience", "error", "match"), WRONG)
def test_in_an_array_the_message_has_the_number_of_the_experience(experience: Any, error: Any, match: str) -> None:
    buffer = filled(3)
    rows = [*page_experiences(4), experience, page_experiences(1)]
    for function in (mc.validateExperience, mc.append):
        with unchanged(buffer, error, r"^experience\[4\]\." + match):
            function(buffer, rows)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ([COLUMN, 1], r"a cell of 2 came, a struct \(or a list of structs or dicts\) was expected"),
        (mc.Cell([one(), 5]), "a cell of 2 came"),
        (COLUMN, "ndarray came, a struct was expected, with the fields Observation, Action"),
        (5, "int came, a struct was expected"),
        (None, "NoneType came"),
        ("text", "str came"),
    ],
)
def test_what_is_not_a_struct_is_refused(value: Any, match: str) -> None:
    buffer = filled(3)
    for function in (mc.validateExperience, mc.append):
        with unchanged(buffer, rlm.StructureError, f"^experience: {match}"):
            function(buffer, value)


def test_a_loop_that_starts_at_one_is_recognised() -> None:
    buffer, good, e = filled(3), page_experiences(1), mc.struct()
    for i in range(1, 4):
        for name in mc.fieldnames(good):
            setattr(e[i], name, getattr(good, name))
    for function in (mc.validateExperience, mc.append):
        with unchanged(buffer, rlm.StructureError, r"^experience\[0\]\.Observation.*indices start at 0"):
            function(buffer, e)


def test_a_gap_within_the_array_is_recognised() -> None:
    e = page_experiences(2)
    e[3] = one()
    buffer = filled(3)
    with unchanged(buffer, rlm.StructureError, r"^experience\[2\]\.Observation: 0×0 double.*assigned there$"):
        mc.append(buffer, e)


def test_an_element_past_the_end_is_not_appended() -> None:
    e = page_experiences(2)
    buffer = page_buffer()
    with pytest.raises(IndexError, match="element 2 does not exist"):
        mc.append(buffer, e[2])


@pytest.mark.parametrize("function", [mc.append, mc.validateExperience])
def test_the_first_argument_must_be_a_memory(function: Any) -> None:
    with pytest.raises(TypeError, match="expects a replay memory as its first argument; got struct"):
        function(one(), page_buffer())


def test_a_good_experience_passes_and_is_not_stored() -> None:
    buffer = page_buffer()
    assert mc.validateExperience(buffer, page_experiences(5)) is None
    assert buffer.Length == 0


def test_limits_and_elements_are_not_checked() -> None:
    mc.append(page_buffer(), one(Observation=[COLUMN - 100, 99]))


# ---- values that the DataType cannot hold: the rules are rlmemory's, the words are these ------------------------


def bytes_buffer() -> mc.rlReplayMemory:
    pixels = mc.rlNumericSpec([2, 1], DataType="uint8")
    buffer = mc.rlReplayMemory([mc.rlNumericSpec([1, 1]), pixels], mc.rlNumericSpec([1, 1], DataType="int32"))
    mc.append(buffer, byte_experience())
    return buffer


def byte_experience(**changes: Any) -> mc.struct:
    e = mc.struct(Observation=[0, [1, 2]], Action=[3], NextObservation=[0, [1, 2]], Reward=1.0, IsDone=0)
    for name, value in changes.items():
        setattr(e, name, value)
    return e


UNFIT = [
    (byte_experience(Observation=[0, [1, 300]]), rlm.ValueNotRepresentableError, r"Observation\[1\]", 1, "300"),
    (byte_experience(NextObservation=[0, [-1, 2]]), rlm.ValueNotRepresentableError, r"NextObservation\[1\]", 0, "-1"),
    (byte_experience(Action=[0.5]), rlm.ValueNotRepresentableError, r"Action\[0\]", None, "0.5"),
    (byte_experience(Observation=[2**53 + 1, [1, 2]]), rlm.ValueNotRepresentableError, r"Observation\[0\]", None, "2"),
    (byte_experience(Action=[1j]), rlm.DataTypeError, r"Action\[0\]", None, "complex"),
    (byte_experience(Reward="a"), rlm.DataTypeError, "Reward", None, "expected numbers"),
    (byte_experience(Reward=1j), rlm.DataTypeError, "Reward", None, "complex"),
]


@pytest.mark.parametrize(("experience", "error", "place", "position", "value"), UNFIT)
def test_a_value_that_would_change_is_refused(
    experience: Any, error: Any, place: str, position: int | None, value: str
) -> None:
    within = "" if position is None else rf" at position \[{position}\]"
    buffer = bytes_buffer()
    with unchanged(buffer, error, rf"^{place}: .*{value}.*{within}"):
        mc.append(buffer, experience)


@pytest.mark.parametrize(("experience", "error", "place", "position", "value"), UNFIT[:4])
def test_in_an_array_such_a_value_is_found_by_its_number(
    experience: Any, error: Any, place: str, position: int | None, value: str
) -> None:
    within = "" if position is None else rf" at position \[{position}\]"
    rows = [byte_experience(), byte_experience(), experience, byte_experience()]
    buffer = bytes_buffer()
    with unchanged(buffer, error, rf"^experience\[2\]\.{place}: .*{value}.*{within}"):
        mc.append(buffer, rows)


def test_unlike_classes_in_one_array_keep_their_values_or_are_refused() -> None:
    buffer = bytes_buffer()
    mixed = [byte_experience(Action=[1]), byte_experience(Action=[np.float64(2.0)]), byte_experience(Action=[True])]
    mc.append(buffer, mixed)
    assert mc.allExperiences(buffer, ConcatenateMode="batch").Action[0].ravel().tolist() == [3, 1, 2, 1]
    with unchanged(buffer, rlm.ValueNotRepresentableError, r"^experience\[0\]\.Reward: int64 values that change"):
        mc.append(buffer, [byte_experience(Reward=2**53 + 1), byte_experience(Reward=0.5)])


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (-1, rlm.ValueNotRepresentableError, "whole numbers from 0 up, got -1"),
        (0.5, rlm.ValueNotRepresentableError, "whole numbers from 0 up, got 0.5"),
        ("a", rlm.ValueNotRepresentableError, "whole numbers from 0 up"),
        ([1, 2], rlm.ShapeError, r"one for each of the 3 experiences; got 2"),
        (2**40, rlm.ValueNotRepresentableError, "cannot be stored as int32"),
    ],
)
def test_a_wrong_data_source_is_refused(value: Any, error: Any, match: str) -> None:
    buffer = filled(3)
    with unchanged(buffer, error, f"^dataSourceID: .*{match}"):
        mc.append(buffer, page_experiences(3), value)


@given(
    st.sampled_from(["Observation", "Action", "NextObservation"]),
    st.lists(st.integers(0, 3), max_size=4).map(tuple),
    st.integers(0, 1),
)
def test_an_entry_passes_when_its_size_is_the_dimension(field: str, shape: tuple[int, ...], channel: int) -> None:
    buffer, dimension = page_buffer(), (2, 1) if field == "Action" or channel == 0 else (1, 1)
    e = one()
    cell = getattr(e, field)
    cell[channel % len(cell)] = np.zeros(shape)
    bare = shape
    while bare and bare[-1] == 1:
        bare = bare[:-1]
    fits = bare == ((2,) if dimension == (2, 1) else ())
    if fits:
        mc.validateExperience(buffer, e)
    else:
        with pytest.raises(rlm.ShapeError, match=rf"^{field}\[{channel % len(cell)}\]"):
            mc.validateExperience(buffer, e)
