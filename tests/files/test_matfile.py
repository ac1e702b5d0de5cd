"""Experiences go into .mat files and come back, in every form and version."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from matlab.helpers import saved_object

import rlmemory as rlm
from rlmemory.files import matvalues

from .matsupport import FORMS, OCTAVE, VERSIONS, assert_same, mixed, read_like, simple

EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
EACH_FORM = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(autouse=True)
def _h5py(request: pytest.FixtureRequest) -> None:
    if getattr(request.node, "callspec", None) and request.node.callspec.params.get("version") == "7.3":
        pytest.importorskip("h5py", reason="h5py is not installed: pip install h5py")


@EACH_VERSION
@EACH_FORM
@pytest.mark.parametrize(("count", "capacity"), [(1, 100), (2, 100), (13, 100), (13, 5), (13, 1)])
def test_what_goes_out_comes_back(tmp_path: Path, version: str, form: str, count: int, capacity: int) -> None:
    memory = mixed(count, capacity)
    rlm.files.write_mat(tmp_path / "x.mat", memory, form=form, version=version)
    assert_same(read_like(memory, tmp_path / "x.mat"), memory.all())
    assert os.listdir(tmp_path) == ["x.mat"]


@EACH_VERSION
@pytest.mark.parametrize("form", ["batch", "sequence", "struct"])
def test_an_empty_memory_comes_back_empty(tmp_path: Path, version: str, form: str) -> None:
    memory = mixed(0)
    rlm.files.write_mat(tmp_path / "x.mat", memory, form=form, version=version)
    assert_same(read_like(memory, tmp_path / "x.mat"), memory.all())


@EACH_VERSION
@EACH_FORM
@pytest.mark.parametrize("shape", [(), (1,), (0,), (5,), (1, 5), (5, 1), (2, 1, 3), (2, 3, 1), (1, 1, 1)])
@pytest.mark.parametrize("count", [1, 5])
def test_shapes_come_from_the_specs(
    tmp_path: Path, version: str, form: str, shape: tuple[int, ...], count: int
) -> None:
    rng = np.random.default_rng(0)
    memory = rlm.ReplayMemory(rlm.NumericSpec(shape), rlm.NumericSpec((3,), "int8"), 9, reward=rlm.NumericSpec((2,)))
    draw = rng.random((3, count, *shape))
    memory.extend(
        draw[0], rng.integers(0, 9, (count, 3)), reward=rng.random((count, 2)), next_observation=draw[1],
        terminated=np.zeros(count, bool),
    )  # fmt: skip
    rlm.files.write_mat(tmp_path / "x.mat", memory, form=form, version=version)
    assert_same(read_like(memory, tmp_path / "x.mat"), memory.all())


@EACH_VERSION
def test_an_experience_is_written_as_its_memory_is(tmp_path: Path, version: str) -> None:
    memory = mixed(7, 5)
    rlm.files.write_mat(tmp_path / "x.mat", memory.all(), version=version)
    assert_same(read_like(memory, tmp_path / "x.mat"), memory.all())


def test_a_batch_lies_in_the_file_as_matlab_has_it(tmp_path: Path) -> None:
    memory = mixed(7)
    rlm.files.write_mat(tmp_path / "x.mat", memory, variable="e")
    read = rlm.files.read_mat_values(tmp_path / "x.mat")
    assert list(read) == ["e", "dataSourceID", "extra"]
    batch = read["e"][0, 0]
    assert batch.dtype.names == ("Observation", "Action", "Reward", "NextObservation", "IsDone")
    assert [entry.shape for entry in batch["Observation"][0]] == [(2, 1, 7), (4, 3, 2, 7), (1, 1, 7)]
    assert batch["Reward"].shape == batch["IsDone"].shape == read["dataSourceID"].shape == (1, 7)
    assert batch["IsDone"].dtype == np.float64
    np.testing.assert_array_equal(batch["Observation"][0, 1][2, 1, 0], memory.all().observation[1][:, 2, 1, 0])


@EACH_VERSION
def test_a_struct_array_is_a_column_of_structs(tmp_path: Path, version: str) -> None:
    rlm.files.write_mat(tmp_path / "x.mat", simple(4), form="struct", version=version)
    read = rlm.files.read_mat_values(tmp_path / "x.mat")["experience"]
    assert read.shape == (4, 1)
    assert read.dtype.names == ("Observation", "Action", "NextObservation", "Reward", "IsDone")
    assert read[3, 0]["Observation"][0, 0].tolist() == [[3], [-3]]


@EACH_VERSION
def test_given_dimensions_are_those_of_the_file(tmp_path: Path, version: str) -> None:
    memory = simple(4)
    sizes = ([(2, 1, 1)], [(1, 1, 1)])
    rlm.files.write_mat(tmp_path / "x.mat", memory, version=version, dimensions=sizes)
    cell = rlm.files.read_mat_values(tmp_path / "x.mat")["experience"][0, 0]["Observation"]
    assert cell[0, 0].shape == (2, 1, 1, 4)
    assert_same(read_like(memory, tmp_path / "x.mat", dimensions=sizes), memory.all())
    with pytest.raises(rlm.ShapeError, match="expected 3x1x4"):
        rlm.files.read_mat(tmp_path / "x.mat", rlm.NumericSpec((3,)), rlm.NumericSpec(()))


# ---- into a memory --------------------------------------------------------------------------------------------------


def test_a_file_is_appended_and_its_ends_are_ends(tmp_path: Path) -> None:
    memory, other = simple(4), simple(2)
    rlm.files.write_mat(tmp_path / "x.mat", memory)
    assert rlm.files.append_mat(tmp_path / "x.mat", other, source=5) == range(2, 6)
    assert other.all().source.tolist() == [0, 0, 5, 5, 5, 5]
    assert other.episodes().ended.tolist() == ["cut", "terminated", "cut"]


def test_a_memory_of_a_vector_environment_takes_a_file(tmp_path: Path) -> None:
    memory = mixed(5)
    rlm.files.write_mat(tmp_path / "x.mat", memory)
    memory._serve(3)
    memory.clear()
    rlm.files.append_mat(tmp_path / "x.mat", memory)
    assert memory.all().source.tolist() == mixed(5).all().source.tolist()


def test_logged_data_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    whole = simple(12)
    for number, ids in ((2, range(4)), (10, range(4, 7)), (9, range(7, 12))):
        part = whole.get(list(ids))
        rlm.files.write_mat(tmp_path / f"loggedData{number}.mat", part, form="struct", variable="episode")
    (tmp_path / "loggerSetup.mat").write_bytes(b"no matter")
    read = read_like(whole, tmp_path)
    assert read.reward.tolist() == [0, 1, 2, 3, 7, 8, 9, 10, 11, 4, 5, 6]


def test_a_folder_without_logged_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(rlm.MatFileError, match=r"without files loggedData\*\.mat"):
        read_like(simple(1), tmp_path)


@EACH_VERSION
def test_experiences_are_found_inside_other_structs(tmp_path: Path, version: str) -> None:
    memory = simple(6)
    for name, form in (("a", "struct"), ("b", "batch")):
        rlm.files.write_mat(tmp_path / f"{name}.mat", memory, form=form)
    a, b = (rlm.files.read_mat_values(tmp_path / f"{name}.mat")["experience"] for name in "ab")
    logged = {"episode": {"Experience": a, "steps": 6.0}, "others": [b, a[:2]], "comment": "two runs"}
    matvalues.write_mat_values(tmp_path / "x.mat", {"logged": logged, "n": 3.0}, version)
    read = read_like(memory, tmp_path / "x.mat")
    assert read.reward.tolist() == [*range(6), *range(6), 0, 1]


# ---- what does not fit ----------------------------------------------------------------------------------------------


@EACH_VERSION
def test_what_does_not_fit_is_named_and_nothing_is_stored(tmp_path: Path, version: str) -> None:
    rlm.files.write_mat(tmp_path / "x.mat", simple(4), version=version)
    spec = rlm.NumericSpec
    cases = [
        (spec((3,)), spec(()), rlm.ShapeError, r"experience\.Observation\{1\}: 2x1x4 came; expected 3x1x4"),
        (spec((2,)), spec((2,)), rlm.ShapeError, r"experience\.Action\{1\}: 1x1x4 came; expected 2x1x4"),
        ((spec((2,)), spec(())), spec(()), rlm.StructureError, r"Observation: a cell of 1 came; expected 2"),
    ]
    for observation, action, error, words in cases:
        memory = rlm.ReplayMemory(observation, action, 10)
        with pytest.raises(error, match=words):
            rlm.files.append_mat(tmp_path / "x.mat", memory)
        assert len(memory) == 0


def test_values_and_fields_that_do_not_fit_are_named(tmp_path: Path) -> None:
    rlm.files.write_mat(tmp_path / "x.mat", simple(4))
    good = rlm.files.read_mat_values(tmp_path / "x.mat")["experience"]

    def refused(error: type[Exception], words: str, **changes: object) -> None:
        one = {
            name: changes.get(name, good[0, 0][name]) for name in good.dtype.names if changes.get(name, 0) is not None
        }
        matvalues.write_mat_values(tmp_path / "y.mat", {"e": one})
        with pytest.raises(error, match=words):
            read_like(simple(1), tmp_path / "y.mat")

    refused(rlm.StructureError, "e: no field NextObservation; the fields are", NextObservation=None)
    refused(rlm.ValueNotRepresentableError, r"IsDone: 3\.0 came; expected 0, 1 or 2", IsDone=np.full((1, 4), 3.0))
    refused(rlm.ShapeError, r"e\.IsDone: 1x3 came; expected 1x4", IsDone=np.zeros((1, 3)))
    refused(rlm.DataTypeError, r"Action\{1\}: expected a full array of numbers; got text", Action=["left"])
    refused(rlm.DataTypeError, r"Action\{1\}: expected a full array of numbers; got a cell", Action=[[1.0]])
    matvalues.write_mat_values(tmp_path / "y.mat", {"n": 1.0})
    with pytest.raises(rlm.MatFileError, match="no experiences in n; they are structs with the fields Observation"):
        read_like(simple(1), tmp_path / "y.mat")
    with pytest.raises(rlm.MatFileError, match="no variable 'other'; there are experience"):
        read_like(simple(1), tmp_path / "x.mat", variable="other")
    with pytest.raises(rlm.ValueNotRepresentableError, match="action"):
        rlm.files.read_mat(tmp_path / "x.mat", rlm.NumericSpec((2,)), rlm.NumericSpec((), "int8"))
    with pytest.raises(FileNotFoundError):
        read_like(simple(1), tmp_path / "none.mat")


def test_a_saved_object_is_answered_with_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "x.mat").write_bytes(saved_object("buf"))
    words = (
        r"buf is an object of a MATLAB class .* e = allExperiences\(buf, ConcatenateMode=\"batch\"\); save x\.mat e -v7"
    )
    with pytest.raises(rlm.MatFileError, match=words):
        read_like(simple(1), tmp_path / "x.mat")
    with pytest.raises(rlm.MatFileError, match=words):
        rlm.files.read_mat_values(tmp_path / "x.mat")


def test_experiences_beside_an_object_are_read(tmp_path: Path) -> None:
    rlm.files.write_mat(tmp_path / "x.mat", simple(4))
    with open(tmp_path / "x.mat", "ab") as file:
        file.write(saved_object("agent")[128:])
    assert_same(read_like(simple(1), tmp_path / "x.mat"), simple(4).all())
    with pytest.warns(UserWarning, match="left out agent"):
        assert list(rlm.files.read_mat_values(tmp_path / "x.mat")) == ["experience"]


@pytest.mark.parametrize("name", ["", "1x", "a b", "é", "_x", "x" * 64, "x.y"])
def test_names_that_matlab_does_not_take_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(rlm.MatFileError, match="cannot be the name of a variable"):
        rlm.files.write_mat(tmp_path / "x.mat", simple(1), variable=name)
    with pytest.raises(rlm.MatFileError, match="cannot be the name of a field"):
        matvalues.write_mat_values(tmp_path / "x.mat", {"s": {name: 1.0}})
    assert not any(tmp_path.iterdir())


def test_long_names_are_kept(tmp_path: Path) -> None:
    name = "n" * 63
    matvalues.write_mat_values(tmp_path / "x.mat", {name: {name: 1.0}})
    assert rlm.files.read_mat_values(tmp_path / "x.mat")[name].dtype.names == (name,)


def test_two_gib_are_refused_in_favour_of_version_7_3(tmp_path: Path) -> None:
    images = np.broadcast_to(np.zeros((), np.uint8), (1 << 15, 1 << 15))
    flags = np.zeros(1 << 15, bool)
    experience = rlm.Experience(images, flags, flags * 1.0, images, flags, flags, flags.astype("i4"), None, {})
    with pytest.raises(
        rlm.MatFileError, match=r"experience: 2,148,.* version 7 ends at 2,147,483,648 .* write version 7\.3"
    ):
        rlm.files.write_mat(tmp_path / "x.mat", experience)
    with pytest.raises(rlm.MatFileError, match=r"x: 2,147,483,648 bytes, and version 6"):
        matvalues.write_mat_values(tmp_path / "x.mat", {"x": np.broadcast_to(np.zeros(()), (1 << 14, 1 << 14))}, "6")
    assert not any(tmp_path.iterdir())


def test_what_matlab_has_no_class_for_is_refused(tmp_path: Path) -> None:
    for value in (None, object(), np.zeros(2, "M8[s]"), np.zeros(2, np.longdouble)):
        with pytest.raises(rlm.MatFileError, match="x"):
            matvalues.write_mat_values(tmp_path / "x.mat", {"x": value})
    wide = rlm.ReplayMemory(rlm.NumericSpec((), np.longdouble), rlm.NumericSpec(()), 4)
    with pytest.raises(rlm.DataTypeError, match="no class for values of dtype"):
        rlm.files.write_mat(tmp_path / "x.mat", wide)
    with pytest.raises(rlm.MatFileError, match="form='rows'"):
        rlm.files.write_mat(tmp_path / "x.mat", simple(1), form="rows")
    with pytest.raises(rlm.MatFileError, match="version='8'"):
        rlm.files.write_mat(tmp_path / "x.mat", simple(1), version="8")
    with pytest.raises(TypeError, match="expected a ReplayMemory or an Experience; got int"):
        rlm.files.write_mat(tmp_path / "x.mat", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["7", "7.3"])
def test_a_save_that_fails_leaves_the_file_as_it_was(tmp_path: Path, version: str, monkeypatch) -> None:
    rlm.files.write_mat(tmp_path / "x.mat", simple(4), version=version)
    before = (tmp_path / "x.mat").read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    target = ("rlmemory.files.mat73.raw", fail) if version == "7.3" else ("scipy.io.savemat", fail)
    importlib.import_module("scipy.io")
    monkeypatch.setattr(*target)
    with pytest.raises(OSError, match="No space"):
        rlm.files.write_mat(tmp_path / "x.mat", simple(9), version=version)
    assert (tmp_path / "x.mat").read_bytes() == before
    assert os.listdir(tmp_path) == ["x.mat"]


def test_version_7_3_without_h5py_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(rlm.NotAvailableError, match=r"pip install 'rlmemory\[hdf5\]'"):
        rlm.files.write_mat(tmp_path / "x.mat", simple(1), version="7.3")
    (tmp_path / "x.mat").write_bytes(b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(rlm.NotAvailableError, match="h5py"):
        read_like(simple(1), tmp_path / "x.mat")


def test_version_4_is_refused_with_advice() -> None:
    with pytest.raises(rlm.MatFileError, match=r"matrix_v4\.mat: not a \.mat file of version 6, 7 or 7\.3"):
        read_like(simple(1), OCTAVE / "matrix_v4.mat")
