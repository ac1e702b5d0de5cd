"""Damaged and hostile .mat files: a clear error or the right values, never a crash, and little memory."""

from __future__ import annotations

import contextlib
import importlib.util
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rlmemory as rlm

from .matsupport import OCTAVE, VERSIONS, mixed, read_like, simple

if importlib.util.find_spec("h5py") is None:
    VERSIONS = VERSIONS[:2]


def written(version: str, form: str = "batch") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.mat"
        rlm.files.write_mat(path, mixed(3), form=form, version=version)
        return path.read_bytes()


GOOD = {(version, form): written(version, form) for version in VERSIONS for form in ("batch", "struct")}
GOOD["octave", "types"] = (OCTAVE / "types_v6.mat").read_bytes()


def read(data: bytes) -> None:
    """Both ways of reading end with a value or with an error of ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.mat"
        path.write_bytes(data)
        for way in (rlm.files.read_mat_values, lambda path: read_like(mixed(0), path)):
            # Warnings are errors here; there is one about objects of MATLAB.
            with contextlib.suppress(rlm.ReplayMemoryError, UserWarning):
                way(path)


@given(st.binary(max_size=400))
def test_random_bytes(data: bytes) -> None:
    read(data)
    read(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + data)
    read(b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + data)


@given(st.sampled_from(sorted(GOOD)), st.floats(0, 1))
def test_a_cut_file(which: tuple[str, str], where: float) -> None:
    data = GOOD[which]
    read(data[: int(where * (len(data) - 1))])


@settings(max_examples=200)
@given(
    st.sampled_from([key for key in sorted(GOOD) if key[0] != "7.3"]),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([b"\x00", b"\xff", b"\x01", b"\x0e", b"\xff\xff\xff\x7f"])),
             min_size=1, max_size=4),
)  # fmt: skip
def test_changed_bytes(which: tuple[str, str], changes: list[tuple[float, bytes]]) -> None:
    data = bytearray(GOOD[which])
    for where, new in changes:
        at = 124 + int(where * (len(data) - 130))
        data[at : at + len(new)] = new
    read(bytes(data))


def element(kind: int, data: bytes, declared: int | None = None) -> bytes:
    return struct.pack("<II", kind, len(data) if declared is None else declared) + data + bytes(-len(data) % 8)


def matrix(which: int, dims: tuple[int, ...], contents: bytes, name: bytes = b"", declared: int | None = None) -> bytes:
    flags = element(6, struct.pack("<II", which, 0)) + element(5, struct.pack(f"<{len(dims)}i", *dims))
    return element(14, flags + element(1, name) + contents, declared)


def file_of(*variables: bytes, packed: bool = False) -> bytes:
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    if packed:
        variables = tuple(struct.pack("<II", 15, len(z)) + z for z in map(zlib.compress, variables))
    return header + b"".join(variables)


def nested(depth: int) -> bytes:
    inside = matrix(6, (1, 1), element(9, bytes(8)))
    for _ in range(depth):
        inside = matrix(1, (1, 1), inside)
    return inside


HUGE = 2**31 - 1
LENGTH_8, ROW = element(5, struct.pack("<i", 8)), element(5, struct.pack("<i", 10**6))
HOSTILE = {
    "a double that says it is huge": matrix(6, (HUGE, HUGE), element(9, bytes(8)), b"x"),
    "bytes that are not there": matrix(6, (1, 1 << 28), element(9, bytes(8), 1 << 31), b"x"),
    "a cell of two thousand million": matrix(1, (HUGE, 1), b"", b"x"),
    "a struct array of them": matrix(2, (HUGE, 1), LENGTH_8 + element(1, b"a".ljust(8, b"\0")), b"x"),
    "a text of nothing": matrix(4, (1, HUGE), element(16, b""), b"x"),
    "names of length 0": matrix(2, (1, 1), element(5, struct.pack("<i", 0)) + element(1, b"a"), b"x"),
    "a negative size": matrix(6, (-1, -1), element(9, bytes(8)), b"x"),
    "cells without end": matrix(1, (1, 1), nested(500), b"x"),
    "a variable that ends early": matrix(6, (1, 2), element(9, bytes(8), 16), b"x", HUGE),
    "a sparse matrix that points outside": matrix(
        5, (2, 2), ROW + element(5, struct.pack("<3i", 0, 1, 1)) + element(9, bytes(8)), b"x"
    ),
    "an unknown class": matrix(99, (1, 1), b"", b"x"),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_lies_about_itself_is_refused(tmp_path: Path, name: str, packed: bool) -> None:
    (tmp_path / "x.mat").write_bytes(file_of(HOSTILE[name], packed=packed))
    with pytest.raises(rlm.MatFileError, match=r"^x\.mat: "):
        rlm.files.read_mat_values(tmp_path / "x.mat")


def test_the_same_bytes_that_do_not_lie_are_read(tmp_path: Path) -> None:  # or the tests above would say nothing
    good = matrix(6, (1, 1), element(9, struct.pack("<d", 2.5)), b"x")
    for packed in (False, True):
        (tmp_path / "x.mat").write_bytes(file_of(good, matrix(1, (1, 1), nested(3), b"y"), packed=packed))
        read_back = rlm.files.read_mat_values(tmp_path / "x.mat")
        assert read_back["x"].tolist() == [[2.5]]
        assert read_back["y"].shape == (1, 1)


def test_cells_are_followed_only_so_deep(tmp_path: Path) -> None:
    (tmp_path / "x.mat").write_bytes(file_of(matrix(1, (1, 1), nested(100), b"x")))
    with pytest.raises(rlm.MatFileError, match="nested more than 60 deep"):
        rlm.files.read_mat_values(tmp_path / "x.mat")


LIMITED = """
import resource, sys
import numpy, scipy.io, rlmemory as rlm
from rlmemory.files import matvalues
try:
    import h5py
except ImportError:
    pass
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
for path in sys.argv[1:]:
    try:
        rlm.files.read_mat_values(path)
    except rlm.MatFileError as error:
        assert "MemoryError" not in str(error), error
print("done")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured with Linux's limits")
def test_declared_sizes_allocate_nothing(tmp_path: Path) -> None:
    paths: list[Any] = []
    for number, variable in enumerate(HOSTILE.values()):
        for packed in (False, True):
            paths.append(tmp_path / f"{number}{packed}.mat")
            paths[-1].write_bytes(file_of(variable, packed=packed))
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, paths)],
        capture_output=True, text=True, check=False, timeout=120, cwd=Path(rlm.__file__).parents[1],
    )  # fmt: skip
    assert ran.stdout == "done\n", ran.stderr


@pytest.mark.skipif(len(VERSIONS) < 3, reason="h5py is not installed: pip install h5py")
@settings(max_examples=40)
@example([0.02], 255)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=3), st.integers(0, 255))
def test_changed_bytes_of_version_7_3(places: list[float], value: int) -> None:
    data = bytearray(GOOD["7.3", "batch"])
    for where in places:
        data[512 + int(where * (len(data) - 513))] = value
    read(bytes(data))


def test_a_memory_is_as_it_was_after_a_damaged_file(tmp_path: Path) -> None:
    memory = simple(3)
    data = written("7")
    (tmp_path / "x.mat").write_bytes(data[: len(data) // 2])
    with pytest.raises(rlm.MatFileError):
        rlm.files.append_mat(tmp_path / "x.mat", memory)
    assert memory.all().reward.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(memory.all().id, [0, 1, 2])
