"""Generations: how many are kept, what is written again, and what a killed save leaves behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from core.support import PLAIN, ROOT, counted, equal_records

import rlmemory as rlm
from rlmemory.files import columns

from .support import make, use


@pytest.fixture
def small(monkeypatch):
    """Files of few rows, so that a small memory has many."""
    monkeypatch.setattr(columns, "SMALLEST", 1)


def names(path) -> list[str]:
    return [one.path.name for one in rlm.checkpoints(path)]


# ---- generations and tags -------------------------------------------------------------------------------------------


def test_two_generations_are_kept(tmp_path):
    memory = PLAIN.memory(9)
    for k in range(5):
        counted(memory, 1)
        memory.save(tmp_path / "deep" / "er")
        assert names(tmp_path / "deep" / "er")[-1] == f"gen-{k + 1:06d}"
    assert names(tmp_path / "deep" / "er") == ["gen-000004", "gen-000005"]
    assert len(rlm.load(tmp_path / "deep" / "er")) == 5


def test_tagged_generations_are_kept_beside_the_others(tmp_path):
    memory = PLAIN.memory(99)
    for tag in ("best", None, None, "best", None, "best", "other", None, None):
        counted(memory, 1)
        memory.save(tmp_path, tag=tag)
    found = [(one.path.name[-1], one.tag, one.length) for one in rlm.checkpoints(tmp_path)]
    assert found == [
        ("4", "best", 4), ("6", "best", 6), ("7", "other", 7), ("8", None, 8), ("9", None, 9),
    ]  # fmt: skip
    for tag, length in ((None, 9), ("best", 6), ("other", 7)):
        assert len(rlm.load(tmp_path, tag=tag)) == length
    with pytest.raises(rlm.CheckpointError, match=r"has the tag 'worst'; there are .*best"):
        rlm.load(tmp_path, tag="worst")
    for wrong in ("", 3):
        with pytest.raises(ValueError, match="tag: expected a string"):
            memory.save(tmp_path, tag=wrong)


def test_a_file_has_a_tag_too(tmp_path):
    path = tmp_path / "memory.npz"
    memory = PLAIN.memory(9)
    counted(memory, 3)
    memory.save(path, tag="best")
    assert [(one.tag, one.length, one.capacity, one.kind) for one in rlm.checkpoints(path)] == [
        ("best", 3, 9, "ReplayMemory")
    ]
    assert len(rlm.load(path, tag="best")) == 3
    with pytest.raises(rlm.CheckpointError, match="has the tag 'best', not 'worst'"):
        rlm.load(path, tag="worst")


def test_numpy_opens_a_file(tmp_path):
    memory = PLAIN.memory(9)
    counted(memory, 12)
    memory.save(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as opened:
        assert opened["reward"].tolist() == list(range(3, 12))
        assert opened["observation"].shape == (9, 2)
    memory.save(tmp_path / "folder")
    (one,) = (tmp_path / "folder").glob("gen-*/reward.*.npy")
    assert np.load(one, allow_pickle=False).tolist() == list(range(3, 12))


def test_checkpoints_says_what_is_there_and_what_is_damaged(tmp_path):
    memory = make("prioritized")
    use(memory, 50)
    memory.save(tmp_path)
    memory.save(tmp_path)
    (tmp_path / "gen-000002" / "manifest.json").write_text("{}")
    (tmp_path / "notes").mkdir()
    sound, damaged = rlm.checkpoints(tmp_path)
    assert (sound.kind, sound.length, sound.next_id, sound.problem) == ("PrioritizedReplayMemory", 40, 50, "")
    assert sound.nbytes == sum(file.stat().st_size for file in sound.path.iterdir())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", sound.saved)
    assert (damaged.kind, damaged.length) == ("", 0)
    assert "no entry 'manifest'" in damaged.problem


# ---- only what is new -----------------------------------------------------------------------------------------------


def written(path) -> int:
    """Bytes of the newest generation that no other one shares."""
    generations = sorted(path.glob("gen-*"))
    shared = {file.stat().st_ino for folder in generations[:-1] for file in folder.iterdir()}
    return sum(
        file.stat().st_size
        for file in generations[-1].iterdir()
        if file.stat().st_ino not in shared and file.name != "manifest.json"
    )


@pytest.mark.parametrize("kind", ["plain", "prioritized"])
def test_only_new_rows_are_written_again(tmp_path, small, kind):
    capacity, bytes_of_row = 6400, 0
    memory = make(kind, capacity)
    use(memory, 1000)
    memory.save(tmp_path)
    whole = written(tmp_path)
    bytes_of_row = whole / 1000
    segment = columns.segment_rows([], capacity)
    done = 1000
    for count in (0, 10, 300, 1000, 3000):
        memory.extend(**_rows(done, count))
        done += count
        memory.save(tmp_path)
        assert count * bytes_of_row * 0.95 <= written(tmp_path) <= (count + segment) * bytes_of_row * 1.2
        assert_saved(tmp_path, memory)
    for _ in range(4):  # round and round the ring
        memory.extend(**_rows(done, 2000))
        done += 2000
        memory.save(tmp_path)
        assert written(tmp_path) <= (2000 + 2 * segment) * bytes_of_row * 1.2
        assert_saved(tmp_path, memory)


def _rows(first: int, count: int) -> dict:
    from .support import rows

    return rows(first, count)


def assert_saved(path, memory) -> None:
    loaded = rlm.load(path)
    assert equal_records(loaded.all(), memory.all())
    if isinstance(memory, rlm.PrioritizedReplayMemory):
        assert (loaded.priorities() == memory.priorities()).all()
        assert (loaded._in_order()[1] == memory._in_order()[1]).all()


def test_changes_of_old_rows_are_saved(tmp_path, small):
    memory = make("prioritized", 6400)
    use(memory, 1000)
    memory.save(tmp_path)
    few = memory.nbytes / 6400 * 1000
    changes = [
        lambda: memory.set([5, 700], reward=[-3.0, -4.0]),
        lambda: memory.set([5], source=[1]),
        lambda: memory.set([5], terminated=[True]),
        lambda: memory.update_priorities([6, 701], [50.0, 60.0]),
        lambda: memory.end_episode(),
        lambda: setattr(memory, "priority_exponent", 0.9),
        lambda: None,
    ]
    for change in changes:
        change()
        memory.save(tmp_path)
        assert_saved(tmp_path, memory)
        assert written(tmp_path) < few / 4
    memory.resize(500)
    memory.save(tmp_path)
    assert_saved(tmp_path, memory)
    memory.clear()
    memory.save(tmp_path)
    assert_saved(tmp_path, memory)
    memory.extend(**_rows(0, 300))
    memory.save(tmp_path)
    assert_saved(tmp_path, memory)


def test_another_memory_may_save_into_the_folder(tmp_path, small):
    first, second = make("plain", 640), make("plain", 640)
    use(first, 300)
    second.extend(**_rows(7, 300))
    for memory in (first, second, first, second):
        memory.save(tmp_path)
        assert_saved(tmp_path, memory)
    loaded = rlm.load(tmp_path)
    loaded.save(tmp_path)
    assert written(tmp_path) == 0


def test_what_is_damaged_is_written_again(tmp_path, small):
    memory = make("plain", 640)
    use(memory, 300)
    memory.save(tmp_path)
    victims = sorted((tmp_path / "gen-000001").glob("reward.*"))
    victims[0].unlink()
    victims[1].write_bytes(b"")
    memory.save(tmp_path)
    assert_saved(tmp_path, memory)
    flip(tmp_path / "gen-000002" / victims[2].name, -1)
    memory.save(tmp_path)
    assert_saved(tmp_path, memory)


def flip(file, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0x10
    file.unlink()  # the generation before may share it
    file.write_bytes(data)


def test_a_file_system_without_links_gets_whole_generations(tmp_path, small, monkeypatch):
    def none(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", none)
    memory = make("plain", 640)
    use(memory, 300)
    for _ in range(3):
        memory.save(tmp_path)
    assert_saved(tmp_path, memory)
    assert written(tmp_path) > 300


# ---- damage ---------------------------------------------------------------------------------------------------------


def damages() -> dict:
    def cut(file):
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(data[: len(data) // 2])

    def linked(file):
        other = file.parent.parent / "elsewhere"
        file.replace(other)
        file.symlink_to(other)

    return {
        "a flipped byte": lambda file: flip(file, -3),
        "a flipped byte in the header": lambda file: flip(file, 20),
        "cut": cut,
        "missing": lambda file: file.unlink(),
        "empty": lambda file: (file.unlink(), file.write_bytes(b"")),
        "longer": lambda file: (data := file.read_bytes(), file.unlink(), file.write_bytes(data + b"x")),
        "a link": linked,
        "a folder": lambda file: (file.unlink(), file.mkdir()),
    }


@pytest.mark.parametrize("victim", ["manifest.json", "reward", "is_done", "priority"])
@pytest.mark.parametrize("damage", damages().values(), ids=damages())
def test_a_damaged_generation_is_replaced_by_the_one_before(tmp_path, damage, victim):
    memory = make("prioritized")
    use(memory, 30)
    memory.save(tmp_path)
    before = memory.all()
    use(memory, 5, first=30)
    memory.save(tmp_path)
    (file,) = (tmp_path / "gen-000002").glob(victim + "*")
    damage(file)
    with pytest.warns(rlm.CheckpointWarning, match=r"gen-000002: .*; gen-000001 of .* was loaded instead") as caught:
        loaded = rlm.load(tmp_path)
    assert caught[0].filename == __file__
    assert file.name.split(".")[0] in str(caught[0].message)
    assert equal_records(loaded.all(), before)
    (file,) = (tmp_path / "gen-000001").glob(victim + "*")
    damage(file)
    with pytest.raises(rlm.CheckpointError, match=r"is sound: gen-000002: .*; gen-000001: "):
        rlm.load(tmp_path)
    memory.save(tmp_path)  # and all is well again
    assert equal_records(rlm.load(tmp_path).all(), memory.all())


@pytest.mark.parametrize("at", [10, 300, 2000, -400, -10])
def test_a_damaged_file_is_an_error(tmp_path, at):
    path = tmp_path / "x.npz"
    memory = make("plain")
    use(memory, 30)
    memory.save(path)
    good = path.read_bytes()
    for data in (good[:at], b"", good[: len(good) // 2]):
        path.write_bytes(data)
        with pytest.raises(rlm.CheckpointError):
            rlm.load(path)
        assert rlm.checkpoints(path)[0].problem
    path.write_bytes(good)
    flip(path, 2000)
    with pytest.raises(rlm.CheckpointError, match=r"damaged|Bad|header"):
        rlm.load(path)


def test_a_newer_format_is_not_damage(tmp_path, monkeypatch):
    from rlmemory.files import state

    memory = PLAIN.memory(3)
    memory.save(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(state, "FORMAT", 2)
        memory.save(tmp_path)
        memory.save(tmp_path / "x.npz")
    for path in (tmp_path, tmp_path / "x.npz"):
        with pytest.raises(rlm.NotAvailableError, match="newer version"):
            rlm.load(path)
    assert "newer version" in rlm.checkpoints(tmp_path)[1].problem
    memory.save(tmp_path)


# ---- killed ---------------------------------------------------------------------------------------------------------

CHILD = """
import sys, numpy as np, rlmemory as rlm
from rlmemory.files import columns
columns.SMALLEST = 1
memory = rlm.PrioritizedReplayMemory(rlm.NumericSpec((40,)), rlm.NumericSpec(()), 640, seed=0)
k = int(sys.argv[2])
while True:
    k += 1
    row = np.full((64, 40), float(k))
    memory.extend(row, row[:, 0], reward=row[:, 0], next_observation=row, terminated=np.ones(64, bool))
    memory.set(memory.ids, reward=np.full(len(memory), float(k)))
    print("begin", k, flush=True)
    memory.save(sys.argv[1])
    print("done", k, flush=True)
"""


@pytest.mark.parametrize("name", ["folder", "x.npz"])
def test_kill_9_during_a_save_leaves_the_old_state_or_the_new_one(tmp_path, capsys, name):
    path, last, inside = tmp_path / name, 0, 0
    environment = dict(os.environ, PYTHONPATH=str(ROOT), RLMEMORY_BACKEND="reference")
    rng = np.random.default_rng(0)
    for trial in range(25):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(last)], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(1 + 2 * (trial % 3))]
        time.sleep(rng.random() * 0.02)
        os.kill(child.pid, signal.SIGKILL)
        lines += child.stdout.readlines()
        child.wait()
        child.stdout.close()
        said = [line.split() for line in lines if line.endswith("\n")]
        begun = max(int(k) for what, k in said if what == "begin")
        done = max([int(k) for what, k in said if what == "done"], default=last)
        inside += begun > done
        if not path.exists() or not (path.is_file() or rlm.checkpoints(path)):
            assert done == 0
            continue
        loaded = rlm.load(path)  # a warning would be an error here
        assert all(not one.problem for one in rlm.checkpoints(path))
        state = int(loaded.all().reward[-1])
        assert state in (done, begun)
        assert (loaded.all().reward == state).all()
        assert (loaded.all().action[-64:] == state).all()
        last = state
    with capsys.disabled():
        print(f"\n{inside} of 25 kills fell into a save of {name}")
    assert inside >= 8
    PLAIN.memory(3).save(path)
    assert not [p for p in tmp_path.rglob("*") if "unfinished" in p.name]


SAVE = """
import sys, numpy as np, rlmemory as rlm
memory = rlm.ReplayMemory(rlm.NumericSpec((50,)), rlm.NumericSpec(()), 1000)
row = np.full((1000, 50), float(sys.argv[2]))
memory.extend(row, row[:, 0], reward=row[:, 0], next_observation=row, terminated=np.ones(1000, bool))
for _ in range(15):
    memory.save(sys.argv[1])
"""


@pytest.mark.parametrize("name", ["folder", "x.npz"])
def test_two_processes_save_into_one_place(tmp_path, name):
    path = tmp_path / name
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    children = [subprocess.Popen([sys.executable, "-c", SAVE, str(path), str(k)], env=environment) for k in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    reward = rlm.load(path).all().reward
    assert len(reward) == 1000
    assert len(set(reward.tolist())) == 1
    if name == "folder":
        assert names(path) == ["gen-000029", "gen-000030"]


def test_a_thread_appends_while_another_saves(tmp_path):
    memory = PLAIN.memory(5000)
    stop = threading.Event()

    def append() -> None:
        while not stop.is_set():
            counted(memory, 7, first=memory.next_id)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        for _ in range(10):
            memory.save(tmp_path)
            rows = rlm.load(tmp_path).all()
            assert (rows.reward == rows.id).all()
    finally:
        stop.set()
        thread.join()
