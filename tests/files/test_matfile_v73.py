"""Version 7.3: how it lies in HDF5, what mat-io makes of it, and what must not be followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory.files import matvalues

from .matsupport import FORMS, mixed, read_like, simple

h5py = pytest.importorskip("h5py", reason="h5py is not installed: pip install h5py")


def test_the_file_begins_as_matlab_writes_it(tmp_path: Path) -> None:
    rlm.files.write_mat(tmp_path / "x.mat", simple(3), version="7.3")
    head = (tmp_path / "x.mat").read_bytes()[:520]
    assert head.startswith(b"MATLAB 7.3 MAT-file, ")
    assert head[116:512] == bytes(8) + b"\x00\x02IM" + bytes(384)
    assert head[512:] == b"\x89HDF\r\n\x1a\n"


def test_arrays_lie_reversed_and_say_their_class(tmp_path: Path) -> None:
    rlm.files.write_mat(tmp_path / "x.mat", mixed(7), version="7.3")
    with h5py.File(tmp_path / "x.mat") as file:
        batch = file["experience"]
        assert batch.attrs["MATLAB_class"] == b"struct"
        names = [b"".join(name.tolist()).decode() for name in batch.attrs["MATLAB_fields"]]
        assert names == ["Observation", "Action", "Reward", "NextObservation", "IsDone"]
        assert batch["Observation"].attrs["MATLAB_class"] == b"cell"
        first, image, flag = (file[ref] for ref in batch["Observation"][:, 0])
        assert (first.shape, image.shape, flag.shape) == ((7, 1, 2), (7, 2, 3, 4), (7, 1, 1))
        assert [a.attrs["MATLAB_class"] for a in (first, image, flag)] == [b"double", b"uint8", b"logical"]
        assert (flag.dtype, flag.attrs["MATLAB_int_decode"]) == (np.uint8, 1)
        assert file[batch["Action"][0, 0]].dtype.names == ("real", "imag")
        assert batch["Reward"].shape == (7, 1)


def plain(value: Any) -> Any:
    """A value of either reader as nested lists of arrays, structs as lists of dicts."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        return [{name: plain(one[name]) for name in value.dtype.names} for one in value.ravel(order="F")]
    if isinstance(value, np.ndarray) and value.dtype == object:
        if value.size and isinstance(value.flat[0], dict):
            return [{name: plain(inside) for name, inside in one.items()} for one in value.ravel(order="F")]
        return [plain(one) for one in value.ravel(order="F")]
    return np.asarray(value)


def assert_agree(ours: Any, theirs: Any) -> None:
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_agree(a, b)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for name in ours:
            assert_agree(ours[name], theirs[name])
    else:
        np.testing.assert_array_equal(ours, theirs)
        # mat-io gives single complex as double
        assert ours.dtype == theirs.dtype or ours.dtype.kind == theirs.dtype.kind in "Uc"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 4])
def test_mat_io_agrees(tmp_path: Path, form: str, count: int) -> None:
    matio = pytest.importorskip("matio", reason="mat-io is not installed: pip install mat-io")
    path = tmp_path / "x.mat"
    rlm.files.write_mat(path, mixed(count), form=form, version="7.3")
    ours, theirs = matvalues.read_mat_values(path), matio.load_from_mat(str(path))
    for name, value in ours.items():
        assert_agree(plain(value), plain(theirs[name]))


def test_mat_io_agrees_on_values_of_every_class(tmp_path: Path) -> None:
    matio = pytest.importorskip("matio", reason="mat-io is not installed: pip install mat-io")
    values = {
        "text": "ä word", "flag": True, "z": np.array([[1 + 2j, 3]]), "cell": [1.5, "b", [np.zeros((2, 0))]],
        "ints": np.arange(6, dtype="i8").reshape(1, 2, 3), "s": {"b": 1.0, "a": {"c": "d"}}, "none": np.zeros((0, 3)),
    }  # fmt: skip
    matvalues.write_mat_values(tmp_path / "x.mat", values, "7.3")
    ours, theirs = matvalues.read_mat_values(tmp_path / "x.mat"), matio.load_from_mat(str(tmp_path / "x.mat"))
    for name, value in ours.items():
        assert_agree(plain(value), plain(theirs[name]))


@pytest.mark.parametrize("value", [
    np.arange(24.0).reshape(2, 3, 4), np.array([[True, False]]), np.zeros((0, 3), "i2"), np.array([[1 + 2j]], "c8"),
    {"b": {"c": 2.5}, "a": 1.0}, ["x", 1.5, [], [np.zeros((2, 0))]],
    np.array([[(1.0, 2.0)], [(3.0, 4.0)]], [("p", object), ("q", object)]), np.empty((0, 1), [("p", object)]),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_it_reads_as_the_older_versions_do(tmp_path: Path, value: Any) -> None:
    for version in ("7", "7.3"):
        matvalues.write_mat_values(tmp_path / f"{version}.mat", {"x": value}, version)
    older, newer = (matvalues.read_mat_values(tmp_path / f"{version}.mat")["x"] for version in ("7", "7.3"))
    assert older.shape == newer.shape
    assert older.dtype.names == newer.dtype.names
    assert_agree(plain(newer), plain(older))


# ---- what must not be followed --------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Path:
    rlm.files.write_mat(tmp_path / "x.mat", simple(4), version="7.3")
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["Reward"] = np.full((4, 1), 42.0)
        file["Reward"].attrs["MATLAB_class"] = np.bytes_("double")
    (tmp_path / "secret.bin").write_bytes(np.full(4, 42.0).tobytes())
    return tmp_path / "x.mat"


def _external_link(file: Any, folder: Path) -> None:
    file["experience"]["Reward"] = h5py.ExternalLink(str(folder / "secret.h5"), "/Reward")


def _soft_link(file: Any, folder: Path) -> None:
    file["experience"]["Reward"] = h5py.SoftLink("/experience/IsDone")


def _external_storage(file: Any, folder: Path) -> None:
    external = [(str(folder / "secret.bin"), 0, 32)]
    made = file["experience"].create_dataset("Reward", (4, 1), "f8", external=external)
    made.attrs["MATLAB_class"] = np.bytes_("double")


def _virtual(file: Any, folder: Path) -> None:
    layout = h5py.VirtualLayout((4, 1), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "secret.h5"), "Reward", (4, 1))
    made = file["experience"].create_virtual_dataset("Reward", layout)
    made.attrs["MATLAB_class"] = np.bytes_("double")


def _huge(file: Any, folder: Path) -> None:
    made = file["experience"].create_dataset("Reward", (1 << 40, 1), "f8", chunks=(1 << 16, 1))
    made.attrs["MATLAB_class"] = np.bytes_("double")


def _huge_empty(file: Any, folder: Path) -> None:
    made = file["experience"].create_dataset("Reward", data=np.array([1 << 40, 1 << 20], np.uint64))
    made.attrs["MATLAB_class"], made.attrs["MATLAB_empty"] = np.bytes_("double"), np.uint8(1)


def _circle(file: Any, folder: Path) -> None:
    made = file["experience"].create_dataset("Reward", (1, 1), h5py.ref_dtype)
    made.attrs["MATLAB_class"] = np.bytes_("cell")
    made[0, 0] = made.ref


def _doubling(file: Any, folder: Path) -> None:
    inner = file["experience"]["IsDone"]
    for level in range(40):
        outer = file.create_dataset(f"#refs#/d{level}", data=np.array([[inner.ref, inner.ref]], h5py.ref_dtype))
        outer.attrs["MATLAB_class"] = np.bytes_("cell")
        inner = outer
    file["experience"]["Reward"] = inner


def _null_reference(file: Any, folder: Path) -> None:
    made = file["experience"].create_dataset("Reward", (1, 1), h5py.ref_dtype)
    made.attrs["MATLAB_class"] = np.bytes_("cell")


def _text_for_numbers(file: Any, folder: Path) -> None:
    made = file["experience"].create_dataset("Reward", data=np.array([[b"abcd"]]))
    made.attrs["MATLAB_class"] = np.bytes_("double")


@pytest.mark.parametrize(("change", "words"), [
    (_external_link, "link to elsewhere"), (_soft_link, "link to elsewhere"), (_external_storage, "in another file"),
    (_virtual, "in another file"), (_huge, "1,099,511,627,776 elements, and the file has 0 bytes"),
    (_huge_empty, "not empty"), (_circle, "without end"), (_doubling, "without end"),
    (_null_reference, r"nothing|bytes of it"),
    (_text_for_numbers, "class double holds"),
])  # fmt: skip
def test_a_hostile_file_is_refused(written: Path, change: Any, words: str) -> None:
    with h5py.File(written, "r+") as file:
        del file["experience"]["Reward"]
        change(file, written.parent)
    with pytest.raises(rlm.MatFileError, match=words):
        read_like(simple(1), written)
    with pytest.raises(rlm.MatFileError, match=words):
        matvalues.read_mat_values(written)


def test_an_object_is_answered_with_the_recipe(written: Path) -> None:
    with h5py.File(written, "r+") as file:
        made = file.create_dataset("buf", data=np.arange(6, dtype="u4").reshape(1, 6))
        made.attrs["MATLAB_class"], made.attrs["MATLAB_object_decode"] = np.bytes_("rl.Buffer"), np.int32(3)
    assert len(read_like(simple(1), written).reward) == 4
    with h5py.File(written, "r+") as file:
        del file["experience"]
    with pytest.raises(rlm.MatFileError, match=r"buf is an object .* allExperiences\(buf"):
        read_like(simple(1), written)
