"""HDF5 files that lie, lead elsewhere or are damaged: a clear error, nothing followed, nothing allocated."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory.files import read_d4rl, read_minari, write_d4rl, write_minari

from .made_records import small

h5py = pytest.importorskip("h5py")

COLUMNS = ("observations", "actions", "rewards", "terminals", "timeouts")


def file_with(path, change):
    """A D4RL file whose rewards are replaced by what `change(file)` makes."""
    write_d4rl(path, small())
    with h5py.File(path, "r+") as file:
        del file["rewards"]
        change(file)
    return path


def external_link(file):
    file["rewards"] = h5py.ExternalLink("elsewhere.hdf5", "/rewards")


def soft_link(file):
    file["rewards"] = h5py.SoftLink("/observations")


def external_storage(file):
    file.create_dataset("rewards", (12,), "f8", external=[("elsewhere.bin", 0, 96)])


def virtual(file):
    layout = h5py.VirtualLayout((12,), "f8")
    layout[:] = h5py.VirtualSource("elsewhere.hdf5", "rewards", (12,))
    file.create_virtual_dataset("rewards", layout)


def objects(file):
    file.create_dataset("rewards", data=["1"] * 12, dtype=h5py.string_dtype())


def ragged(file):
    file.create_dataset("rewards", (12,), h5py.vlen_dtype("f8"))


def references(file):
    file.create_dataset("rewards", data=[file.ref] * 12, dtype=h5py.ref_dtype)


def records(file):
    file.create_dataset("rewards", data=np.zeros(12, [("a", "f8"), ("b", "i4")]))


def subarrays(file):
    kind = h5py.h5t.array_create(h5py.h5t.NATIVE_DOUBLE, (1 << 16,))
    h5py.h5d.create(file.id, b"rewards", kind, h5py.h5s.create_simple((12,)))


def empty(file):
    file["rewards"] = h5py.Empty("f8")


def huge_chunked(file):
    file.create_dataset("rewards", (1 << 60,), "f8", chunks=(1024,), compression="gzip")


def huge_plain(file):
    file.create_dataset("rewards", (1 << 40,), "f8", chunks=(1024,))


def huge_contiguous(file):
    file.create_dataset("rewards", (1 << 40,), "f8")


def huge_chunk(file):
    file.create_dataset("rewards", (12,), "f8", chunks=(1 << 28,), maxshape=(None,), compression="gzip")


def group(file):
    file.create_group("rewards")


def named_type(file):
    file["rewards"] = np.dtype("f8")


LIES = [
    external_link, soft_link, external_storage, virtual, objects, ragged, references, records, subarrays, empty,
    huge_chunked, huge_plain, huge_contiguous, huge_chunk, group, named_type,
]  # fmt: skip


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_file_that_lies_is_refused_and_nothing_is_followed_or_allocated(lie, tmp_path):
    write_d4rl(tmp_path / "elsewhere.hdf5", small())
    (tmp_path / "elsewhere.bin").write_bytes(bytes(96))
    path = file_with(tmp_path / "x.hdf5", lie)
    code = (
        "import resource, sys, numpy, h5py, rlmemory as rlm\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + (300 << 20),) * 2)\n"
        "try: rlm.files.read_d4rl(sys.argv[1])\n"
        "except rlm.FileFormatError as error: print('refused:', error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.startswith("refused:")
    assert "rewards" in result.stdout


def test_many_names_for_one_array_are_not_read_as_often(tmp_path):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        one = file.create_group("episode_0")
        one["observations"] = np.zeros(200_001)
        one["actions"] = np.zeros(200_000)
        for name in ("rewards", "terminations", "truncations"):
            one[name] = np.zeros(200_000)
        for number in range(1, 500):
            file[f"episode_{number}"] = one
    with pytest.raises(rlm.FileFormatError, match="more than a file of"):
        read_minari(path)


def test_a_group_in_itself_ends(tmp_path):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        inner = file.create_group("episode_0/observations")
        inner["again"] = inner
    with pytest.raises(rlm.FileFormatError, match="nested deeper"):
        read_minari(path)


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        for name in COLUMNS:
            file.create_dataset(name, data=np.zeros(2_000_000), compression="gzip", compression_opts=9, shuffle=True)
    assert path.stat().st_size < 1 << 20
    assert len(read_d4rl(path).reward) == 1_999_999


FUZZ = """
import sys, warnings, numpy as np, rlmemory as rlm
from pathlib import Path
folder, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)
wrong = read = 0
for kind in ("minari", "d4rl"):
    reader = getattr(rlm.files, f"read_{kind}")
    whole = np.frombuffer((folder / f"{kind}.hdf5").read_bytes(), np.uint8)
    for number in range(rounds):
        bent = whole.copy()
        if number % 3 == 0:
            bent = bent[: rng.integers(0, bent.size)]
        elif number % 3 == 1:
            places = rng.integers(0, bent.size, rng.integers(1, 40))
            bent[places] = rng.integers(0, 256, places.size)
        else:
            start = rng.integers(0, bent.size)
            piece = bent[start : start + rng.integers(1, 64)]
            piece[:] = rng.choice(np.array([0, 255], np.uint8))
        path = folder / "bent.hdf5"
        path.write_bytes(bent.tobytes())
        try:
            reader(path)
            read += 1
        except rlm.ReplayMemoryError:
            wrong += 1
    for size in (0, 1, 7, 8, 100, 5000):
        path.write_bytes(rng.bytes(size))
        try:
            reader(path)
        except rlm.FileFormatError:
            continue
        raise SystemExit("random bytes were read")
print(wrong, read)
"""


@pytest.mark.slow
def test_damaged_files_are_refused_or_read_and_never_anything_else(tmp_path):
    write_minari(tmp_path / "minari.hdf5", small())
    write_d4rl(tmp_path / "d4rl.hdf5", small())
    command = [sys.executable, "-c", FUZZ, str(tmp_path), "7", "300"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    wrong, read = map(int, result.stdout.split())
    assert wrong > 150
    assert wrong + read == 600


def test_without_h5py_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for call in (lambda: read_d4rl(tmp_path), lambda: write_d4rl(tmp_path / "x.hdf5", small())):
        with pytest.raises(rlm.NotAvailableError, match=r"rlmemory\[hdf5\]"):
            call()
