"""Writers take what a memory on a GPU gives: the files are those of the same memory on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory.command_files import facts_of
from rlmemory.files import assembled, formats

from .pairs import GOALS, LAYOUTS, make, story
from .support import WRAPPERS, agree, needs_device

pytestmark = needs_device

READERS: dict[str, Any] = {
    "minari": (rlm.files.write_minari, rlm.files.read_minari, "set"),
    "d4rl": (rlm.files.write_d4rl, rlm.files.read_d4rl, "set.hdf5"),
    "mat": (rlm.files.write_mat, rlm.files.read_mat_values, "set.mat"),
    "mat 7.3": (lambda path, data: rlm.files.write_mat(path, data, version="7.3"), rlm.files.read_mat_values, "x.mat"),
}
ONE, MIXED = "one array", "dict, vector reward, extra"


def filled(name: str, device: str = "cpu") -> Any:
    memory = make(name, 20, device)
    memory.extend(**story(LAYOUTS[name], np.random.default_rng(0), 27))
    return memory


def plain(value: Any) -> Any:
    """What was read, structs and cells too, as what can be compared."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    array = np.asarray(value)
    if array.dtype.names:
        return {key: plain(array[key]) for key in array.dtype.names}
    if array.dtype == object:
        return [array.shape, *map(plain, array.ravel())]
    return array.dtype.str, array.shape, array.tobytes()


@pytest.mark.parametrize("name", [ONE, MIXED])
@pytest.mark.parametrize("kind", sorted(READERS))
def test_files_of_results_on_the_device_are_those_of_the_host(kind, name, tmp_path: Path):
    write, read, file = READERS[kind]
    if kind != "mat":
        pytest.importorskip("h5py")
    found = []
    for device in ("cpu", "cuda"):
        (tmp_path / device).mkdir()
        path, whole = tmp_path / device / file, filled(name, device).all()
        if kind == "d4rl" and name == MIXED:
            with pytest.raises(rlm.StructureError, match="not several channels"):
                write(path, whole)
            continue
        write(path, whole)
        found.append(read(path))
    if found:
        assert plain(found[0]) == plain(found[1])


def test_a_memory_on_the_device_is_written_itself(tmp_path: Path):
    for device in ("cpu", "cuda"):
        rlm.files.write_mat(tmp_path / f"{device}.mat", filled(MIXED, device))
    here, there = (rlm.files.read_mat_values(tmp_path / f"{device}.mat") for device in ("cpu", "cuda"))
    assert plain(here) == plain(there)


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("version", ["7", "7.3"])
def test_values_on_the_device_may_be_anywhere_in_a_variable(wrap, version, tmp_path: Path):
    if version == "7.3":
        pytest.importorskip("h5py")
    numbers = np.arange(6.0).reshape(2, 3)
    for name, x in (("here", numbers), ("there", wrap(numbers))):
        boxed = np.empty(1, object)
        boxed[0] = x
        rlm.files.write_mat_values(
            tmp_path / name, {"x": x, "s": {"inner": x}, "c": [x, "text"], "o": boxed}, version=version
        )
    here, there = (rlm.files.read_mat_values(tmp_path / name) for name in ("here", "there"))
    assert plain(here) == plain(there)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", [ONE, MIXED])
def test_a_memory_is_made_from_results_on_the_device(name, device):
    there = filled(name, "cuda").all()
    made = rlm.files.memory_from(there, device=device)
    assert made.device.partition(":")[0] == device
    agree(rlm.to_host(there)._replace(id=np.arange(20)), made.all())


def test_episodes_and_summaries_of_results_on_the_device():
    here, there = filled(MIXED), filled(MIXED, "cuda")
    for ask in (assembled.episodes_of, assembled.summary_of):
        np.testing.assert_equal(ask(there.all()), ask(here.all()))
    np.testing.assert_equal(facts_of(rlm.to_host(there.all())), facts_of(here.all()))


def test_generated_rows_stay_such():
    memory = make("HindsightReplayMemory, final, sample", 20, "cuda")
    memory.extend(**story(GOALS, np.random.default_rng(0), 9))
    generated = memory.generate_hindsight()
    assert [rows.size for rows in assembled.episodes_of(generated)] == [1] * len(generated.id)


@pytest.mark.parametrize("file", ["x.npz", "x.checkpoint", "x.mat"])
def test_convert_writes_results_on_the_device(file, tmp_path: Path):
    formats.write_any(tmp_path / file, filled(ONE, "cuda").all())
    found = formats.read_any(tmp_path / file)[1]
    assert np.array_equal(np.ravel(found.reward), np.ravel(filled(ONE).all().reward))


def test_a_checkpoint_of_the_device_is_loaded_on_the_cpu(tmp_path: Path):
    filled(ONE, "cuda").save(tmp_path / "x.npz")
    loaded = rlm.load(tmp_path / "x.npz")
    assert loaded.device == "cpu"
    agree(loaded.all(), loaded.to("cuda").all())
