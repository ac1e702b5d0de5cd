"""Checkpoints from someone who means harm: an error of ours, no code run, no room made because a file says so."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import random
import tracemalloc
import warnings
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from core.support import PLAIN, counted, leaves
from hypothesis import given
from hypothesis import strategies as st

import rlmemory as rlm
from rlmemory.files import manifest, state

from .support import FUNCTIONS, make, use

ROOM = 20 << 20


class Files(dict[str, dict[str, bytes]]):
    """Bytes, by kind of memory and name; they are too many for a message."""

    def __repr__(self) -> str:
        return "Files()"


@pytest.fixture(scope="module", autouse=True)
def small_machine():
    """The capacity of a memory may be more than its files hold, and has to be less than the RAM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "_ram", lambda: ROOM // 4)
        yield


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Files:
    """The bytes of the files of one generation, and of a .npz file, for two kinds of memory."""
    found = Files()
    for kind in ("plain", "both"):
        folder = tmp_path_factory.mktemp("pristine")
        memory = make(kind)
        use(memory, 60)
        memory.save(folder / "folder")
        memory.save(folder / "x.npz")
        found[kind] = {file.name: file.read_bytes() for file in (folder / "folder" / "gen-000001").iterdir()}
        found[kind]["x.npz"] = (folder / "x.npz").read_bytes()
    return found


def lay_out(root: Path, files: dict[str, bytes]) -> Path:
    folder = root / "gen-000001"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return root


def must_be_safe(path: Path, functions: dict) -> bool:
    """Load; whatever happens is an error of ours, or a memory that works. Returns whether it loaded."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rlm.checkpoints(path)
            memory = rlm.load(path, **functions)
    except rlm.ReplayMemoryError:
        return False
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < ROOM, peak
    memory.all()
    memory.check()
    with suppress(rlm.ReplayMemoryError):  # empty, no mass, rewards that are not those of reward_fn
        memory.sample(5, sequence_length=2)
        memory.sample(5)
    return True


def signed(body: dict) -> bytes:
    """A manifest whose own CRC-32 holds, whatever it says."""
    return json.dumps({"manifest": body, "crc32": zlib.crc32(manifest._canonical(body))}).encode()


def zeros(observation, action, following) -> np.ndarray:
    """Rewards, or flags, for channels that are arranged in any way."""
    return np.zeros(len(leaves(action)[0]), bool)


def functions(kind: str) -> dict:
    return {"reward_fn": zeros, "is_done_fn": zeros} if kind == "both" else {}


KINDS = st.sampled_from(["plain", "both"])


@st.composite
def mangled(draw, data: bytes) -> bytes:
    """Bytes that were flipped, cut, blown up or put in the place of others."""
    how = draw(st.sampled_from(["flip", "cut", "insert", "random", "overwrite"]))
    at = draw(st.integers(0, max(0, len(data) - 1)))
    if how == "flip":
        return data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :] if data else b"\0"
    if how == "cut":
        return data[:at]
    few = draw(st.binary(min_size=1, max_size=40))
    if how == "insert":
        return data[:at] + few + data[at:]
    return few if how == "random" else data[:at] + few + data[at + len(few) :]


@given(data=st.data(), kind=KINDS)
def test_files_with_random_bytes(pristine, tmp_path_factory, data, kind):
    root = tmp_path_factory.mktemp("fuzz")
    files = dict(pristine[kind])
    files.pop("x.npz")
    victim = data.draw(st.sampled_from(sorted(files)))
    files[victim] = data.draw(mangled(files[victim]))
    lay_out(root, files)
    if files[victim] != pristine[kind][victim]:
        loaded = must_be_safe(root, functions(kind))
        assert not loaded or victim == "manifest.json"  # white space between its entries means nothing


@given(data=st.data(), kind=KINDS)
def test_one_file_with_random_bytes(pristine, tmp_path_factory, data, kind):
    path = tmp_path_factory.mktemp("fuzz") / "x.npz"
    path.write_bytes(data.draw(mangled(pristine[kind]["x.npz"])))
    must_be_safe(path, functions(kind))


ODD: tuple = (
    None, True, False, -1, 0, 1, 3, 41, 2**31, 2**48, 2**62, 2**64, 10**30, 0.5, -1e308, "", "x", "../../../etc/passwd",
    [], [0], [1, 2, 3], [-1], [2**39, 2**39, 2**39], [1 << 20, 1 << 20], {}, "|O8", "<U9999999", "<f8", "PCG64",
    "MT19937", "dict", "tuple", "single",
)  # fmt: skip


def places(value: object, path: tuple = ()) -> list[tuple]:
    """Every place in a tree of dicts and lists."""
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in entries:
        found += places(part, (*path, key))
    return found


@given(seed=st.integers(0, 2**32 - 1), kind=KINDS)
def test_manifests_that_lie_with_a_crc_that_holds(pristine, tmp_path_factory, seed, kind):
    root, dice = tmp_path_factory.mktemp("fuzz"), random.Random(seed)
    files = dict(pristine[kind])
    files.pop("x.npz")
    body = json.loads(files["manifest.json"])["manifest"]
    for _ in range(dice.randint(1, 3)):
        *way, last = dice.choice(places(body))
        parent = body
        for key in way:
            parent = parent[key]
        parent[last] = copy.deepcopy(dice.choice(ODD))
    files["manifest.json"] = signed(body)
    lay_out(root, files)
    must_be_safe(root, functions(kind))


def changed(pristine, root: Path, change) -> Path:
    files = dict(pristine["both"])
    files.pop("x.npz")
    body = json.loads(files["manifest.json"])["manifest"]
    change(body, files)
    files["manifest.json"] = signed(body)
    return lay_out(root, files)


LIES = {
    "length": lambda b, f: b["state"].update(length=10**12, capacity=10**12, next_id=10**12),
    "shape": lambda b, f: b["state"]["specs"]["reward"]["specs"][0].update(shape=[10**6, 10**6]),
    "limits of a huge shape": lambda b, f: b["state"]["specs"]["reward"]["specs"][0].update(
        shape=[10**6, 10**6], low={"dtype": "<f4", "shape": [10**6, 10**6], "hex": "00000000"}
    ),
    "capacity": lambda b, f: b["state"].update(capacity=2**48),
    "segment": lambda b, f: b.update(segment=1),
    "objects": lambda b, f: b["state"]["specs"]["reward"]["specs"][0].update(dtype="|O8"),
    "mode": lambda b, f: b["state"]["options"].update(mode="w", path="/tmp/x"),
    "class": lambda b, f: b["state"].update({"class": "os.system"}),
    "a path": lambda b, f: b["files"].update({"../../x": b["files"].popitem()[1]}),
    "generator": lambda b, f: b["state"]["generator"].update(bit_generator="__import__"),
    "a place beyond the generator's array": lambda b, f: b["state"].update(generator=_twister(10**6)),
    "goals": lambda b, f: b["state"]["options"].update(goals=[[0, [10**9], 1, [0]]]),
    "functions": lambda b, f: b["state"].update(functions=[]),
    "format": lambda b, f: b["state"].update(format=0),
}


def _twister(position: int) -> dict:
    state = np.random.MT19937(0).state
    return {
        "bit_generator": "MT19937",
        "state": {"key": state["state"]["key"].tolist(), "pos": position},
    }


@pytest.mark.parametrize("change", LIES.values(), ids=LIES)
def test_lies_are_errors(pristine, tmp_path, change):
    assert must_be_safe(changed(pristine, tmp_path / "honest", lambda b, f: None), FUNCTIONS)
    assert not must_be_safe(changed(pristine, tmp_path / "lie", change), FUNCTIONS)


def test_huge_entries_of_an_empty_memory_make_no_room(tmp_path):
    PLAIN.memory(9).save(tmp_path)
    file = tmp_path / "gen-000001" / "manifest.json"
    body = json.loads(file.read_bytes())["manifest"]
    spec = body["state"]["specs"]["observation"]["specs"][0]
    spec.update(shape=[1 << 30, 64], low={"dtype": "<f8", "shape": [1 << 30, 64], "hex": "00" * 8})
    file.write_bytes(signed(body))
    assert not must_be_safe(tmp_path, {})
    assert "larger than all files" in rlm.checkpoints(tmp_path)[0].problem


class Bomb:
    """Unpickling it makes a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("whole", [False, True])
def test_pickles_are_not_opened(pristine, tmp_path, whole):
    bomb = np.empty(1, object)
    bomb[0] = Bomb(str(tmp_path / "boom"))
    text = io.BytesIO()
    np.save(text, bomb, allow_pickle=True)
    data = pickle.dumps(bomb[0]) if whole else text.getvalue()
    source = zipfile.ZipFile(io.BytesIO(pristine["plain"]["x.npz"]))
    for victim in ("reward.npy", "manifest.json", "extra.npy"):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            for name in {*source.namelist(), victim}:
                archive.writestr(name, data if name == victim else source.read(name))
        loaded = must_be_safe(tmp_path / "x.npz", {})
        assert loaded == (victim == "extra.npy")  # a file that nobody asks for
        folder = {**pristine["plain"], "reward.000000000020-000000000060.npy": data}
        if victim == "reward.npy":
            assert not must_be_safe(lay_out(tmp_path / "folder", folder), {})
    assert not (tmp_path / "boom").exists()


def test_compressed_entries_are_refused(pristine, tmp_path):
    source = zipfile.ZipFile(io.BytesIO(pristine["plain"]["x.npz"]))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))
        archive.writestr("bomb", bytes(100 << 20))
    with pytest.raises(rlm.CheckpointError, match="compressed or encrypted"):
        rlm.load(tmp_path / "x.npz")
    assert not must_be_safe(tmp_path / "x.npz", {})


def test_pipes_and_links_in_place_of_files_are_not_opened(pristine, tmp_path):
    files = copy.copy(pristine["plain"])
    for number, make_odd in enumerate((os.mkfifo, lambda path: os.symlink("/dev/zero", path))):
        for name in ("manifest.json", "is_done.000000000020-000000000060.npy"):
            root = lay_out(tmp_path / f"{number}-{name}", files)
            (root / "gen-000001" / name).unlink()
            make_odd(root / "gen-000001" / name)
            assert not must_be_safe(root, {})


def test_rows_that_no_memory_wrote_are_refused(tmp_path):
    layout = rlm.NumericSpec((), "bool")
    memory = rlm.ReplayMemory(layout, layout, 9)
    flags = np.zeros(5, bool)
    memory.extend(flags, flags, reward=np.zeros(5), next_observation=flags, terminated=flags)
    for column, value in (("is_done", 3), ("source", 1), ("source", -1), ("action", 2)):
        given = memory.state_dict()
        given["columns"][column].view(np.uint8)[:] = value if value >= 0 else 255
        with pytest.raises(rlm.CheckpointError, match=column):
            memory.load_state_dict(given)
    counted(PLAIN.memory(2), 1)
