"""Structs, struct arrays and cells."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matlab_compat as mc

from .helpers import filled


def numbered(count: int) -> mc.struct:
    e = mc.struct()
    for i in range(count):
        e[i].X = i
    return e


def test_a_new_struct_has_one_element_and_no_fields() -> None:
    s = mc.struct()
    assert mc.numel(s) == 1
    assert mc.fieldnames(s) == []


def test_fields_can_be_given_as_pairs_and_as_keywords() -> None:
    for s in (mc.struct("A", 1, "B", [2]), mc.struct(A=1, B=[2])):
        assert mc.fieldnames(s) == ["A", "B"]
        assert s.A == 1
        assert s.B == [2]


def test_a_name_without_a_value_is_an_error() -> None:
    with pytest.raises(TypeError, match="'B' has no value"):
        mc.struct("A", 1, "B")


def test_assigning_past_the_end_grows_a_row_and_fills_the_gap() -> None:
    e = mc.struct()
    e[3].X = 5
    assert mc.numel(e) == 4
    assert repr(e) == "1×4 struct array with fields:\n    X"
    assert [x.X.shape for x in e[:3]] == [(0, 0)] * 3
    assert e[3].X == 5


def test_a_new_field_appears_in_every_element() -> None:
    e = numbered(3)
    e[1].Y = "here"
    assert mc.fieldnames(e) == ["X", "Y"]
    assert e[0].Y.shape == (0, 0)
    assert e[1].Y == "here"


def test_an_empty_field_read_once_can_be_changed_in_place() -> None:
    e = numbered(2)
    e[1].Y = 1
    assert e[0].Y is e[0].Y


@pytest.mark.parametrize("index", [3, 10])
def test_reading_past_the_end_raises(index: int) -> None:
    e = numbered(3)
    with pytest.raises(IndexError, match=rf"element {index} does not exist.*has 3 \(indices 0 to 2\)"):
        _ = e[index].X
    assert mc.numel(e) == 3
    assert repr(e[index]) == f"element {index}, not assigned yet, of a struct array of 3"


def test_negative_indices_count_from_the_end_and_never_grow() -> None:
    e = numbered(3)
    e[-1].X = 20
    assert e[2].X == 20
    with pytest.raises(IndexError, match="element -4 does not exist"):
        e[-4].X = 1
    assert mc.numel(e) == 3


def test_a_slice_and_an_array_of_indices_select() -> None:
    e = numbered(5)
    assert [x.X for x in e[1:4:2]] == [1, 3]
    assert [x.X for x in e[[4, 0]]] == [4, 0]
    assert [x.X for x in e[np.array([True, False, False, False, True])]] == [0, 4]


def test_a_slice_is_a_view_that_cannot_grow() -> None:
    e = numbered(5)
    part = e[1:3]
    part[0].X = 10
    assert e[1].X == 10
    with pytest.raises(IndexError, match="element 2 does not exist"):
        part[2].X = 1


def test_elements_have_one_index_and_fields_are_attributes() -> None:
    e = numbered(5)
    with pytest.raises(TypeError, match="one index"):
        _ = e[np.zeros((2, 2), int)]
    with pytest.raises(TypeError, match=r"read as s\.X"):
        _ = e["X"]


def test_structs_and_specs_are_not_arrays() -> None:
    with pytest.raises(TypeError, match="a struct is not an array"):
        np.asarray(numbered(3))
    with pytest.raises(TypeError, match="a spec is not an array"):
        np.asarray(mc.rlNumericSpec([2, 1]))


def test_a_misspelt_field_is_answered_with_the_nearest() -> None:
    s = mc.struct(Reward=1, IsDone=0)
    with pytest.raises(AttributeError, match="did you mean 'Reward'"):
        _ = s.Rewrad
    with pytest.raises(AttributeError, match="the fields are none yet"):
        _ = mc.struct().Reward


@pytest.mark.parametrize("name", ["1a", "a b", "é", ""])
def test_a_name_that_matlab_does_not_allow_is_refused(name: str) -> None:
    with pytest.raises(AttributeError, match="cannot be the name of a field"):
        mc.struct(name, 1)


def test_several_elements_are_not_read_or_assigned_at_once() -> None:
    e = numbered(3)
    with pytest.raises(AttributeError, match=r"read \.X of a struct array of 3"):
        _ = e.X
    with pytest.raises(AttributeError, match=r"assign \.X of a struct array of 3"):
        e.X = 1


def test_arrays_and_cells_are_copied_on_assignment() -> None:
    array, cell = np.zeros(3), [np.zeros(3)]
    s = mc.struct(A=array, B=cell, C=(array,), D=np.array([array, 1], dtype=object))
    array[:] = 1
    cell[0][:] = 1
    cell.append(2)
    assert not s.A.any()
    assert len(s.B) == 1
    assert not s.B[0].any()
    assert isinstance(s.C, mc.Cell)
    assert not s.C[0].any()
    assert isinstance(s.D, mc.Cell)


def test_a_struct_in_a_field_is_copied() -> None:
    inner = mc.struct(X=[1])
    outer = mc.struct(S=inner)
    inner.X = [2]
    assert outer.S.X == [1]


def test_a_whole_element_is_assigned_from_a_struct_or_a_dict() -> None:
    e = mc.struct()
    e[0] = mc.struct(X=1)
    e[1] = {"X": 2}
    assert [x.X for x in e] == [1, 2]
    with pytest.raises(ValueError, match="one element"):
        e[2] = numbered(2)


def test_a_whole_assignment_leaves_nothing_of_the_old_element() -> None:
    e = mc.struct()
    e[0], e[1] = mc.struct(X=1, Y=2), mc.struct(X=3, Y=4)
    e[1] = mc.struct(X=5)
    assert e[1].X == 5
    assert e[1].Y.shape == (0, 0)
    e[2] = e[0]
    e[0] = e[2]
    e[0].X = 9
    assert (e[2].X, e[2].Y, e[0].Y) == (1, 2, 2)


def test_cells_change_in_place() -> None:
    s = mc.struct(B=[1, 2])
    s.B[1] = 3
    assert s.B == [1, 3]


def test_copies_and_pickles_are_independent() -> None:
    e = numbered(3)
    e[0].A = np.zeros(2)
    for twin in (copy.deepcopy(e), pickle.loads(pickle.dumps(e)), copy.deepcopy(e[0:3])):
        twin[0].A[:] = 1
        twin[4].X = 1
        assert mc.fieldnames(twin) == ["X", "A"]
    assert not e[0].A.any()
    assert mc.numel(e) == 3
    assert copy.copy(e[1]).X == 1


def test_fields_are_listed_for_completion() -> None:
    assert {"Reward", "IsDone"} <= set(dir(mc.struct(Reward=1, IsDone=0)))


def test_isfield_and_fieldnames() -> None:
    s = mc.struct(A=1)
    assert mc.isfield(s, "A")
    assert not mc.isfield(s, "B")
    assert not mc.isfield(3, "A")
    assert mc.isfield(s, ["A", "B"]).tolist() == [True, False]
    with pytest.raises(TypeError, match="expects a struct, got int"):
        mc.fieldnames(3)


def test_numel_counts_anything() -> None:
    things = [numbered(3), np.zeros((2, 3)), mc.dlarray(np.zeros(4)), [1, 2], mc.rlNumericSpec([2, 1]), 5.0, "abc"]
    assert [mc.numel(x) for x in things] == [3, 6, 4, 2, 1, 1, 3]


def test_hcat_joins_structs_as_copies() -> None:
    a, b = numbered(2), numbered(1)
    joined = mc.hcat(a, b)
    assert [x.X for x in joined] == [0, 1, 0]
    assert repr(joined).startswith("1×3 struct array")
    joined[0].X = 9
    joined[3].X = 4
    assert a[0].X == 0
    assert mc.numel(joined) == 4


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ABC"), st.integers()), max_size=20))
def test_any_assignments_leave_what_a_list_of_dicts_would_hold(steps: list[tuple[int, str, int]]) -> None:
    e, naive = mc.struct(), [{}]
    for index, name, value in steps:
        setattr(e[index], name, value)
        naive += [{} for _ in range(index + 1 - len(naive))]
        naive[index][name] = value
    names = list(dict.fromkeys(name for _, name, _ in steps))
    assert mc.fieldnames(e) == names
    assert mc.numel(e) == len(naive)
    for element, row in zip(e, naive, strict=True):
        for name in names:
            value = getattr(element, name)
            assert value == row[name] if name in row else value.shape == (0, 0)


# ---- struct arrays whose elements are made on demand --------------------------------------------------------------


def test_elements_made_on_demand_can_be_assigned_and_grown() -> None:
    e = mc.allExperiences(filled(3))
    e[1].Reward = 7.0
    e[1].Note = "new"
    e[4].Reward = 8.0
    assert e[1].Reward == 7.0
    assert e[0].Note.shape == (0, 0)
    assert e[1].Note == "new"
    assert e[3].Reward.shape == (0, 0)
    assert e[4].Reward == 8.0
    assert mc.numel(e) == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.__setitem__(0, "new"),
        lambda c: c.append(3),
        lambda c: c.pop(),
        lambda c: c.reverse(),
        lambda c: c.extend([1, 2]),
        lambda c: c.insert(0, 1),
        lambda c: c.clear(),
        lambda c: c.__delitem__(0),
        lambda c: c.__iadd__([1]),
        lambda c: c.__imul__(2),
    ],
)
def test_a_cell_made_on_demand_is_kept_once_it_is_changed(change: object) -> None:
    e = mc.allExperiences(filled(3))
    cell = e[1].Observation
    change(cell)
    assert e[1].Observation is cell
    assert e[2].Observation is not e[2].Observation


def test_arrays_of_elements_made_on_demand_change_in_place() -> None:
    e = mc.allExperiences(filled(3))
    e[1].Observation[0][:] = -1
    assert (e[1].Observation[0] == -1).all()


def test_arrays_made_on_demand_can_be_copied_and_pickled() -> None:
    e = mc.allExperiences(filled(3))
    twin = pickle.loads(pickle.dumps(e))
    assert [x.Reward for x in twin] == [x.Reward for x in e]
    assert copy.deepcopy(e[1]).Observation[1] == e[1].Observation[1]
    assert pickle.loads(pickle.dumps(e[0].Observation))[1] == e[0].Observation[1]
