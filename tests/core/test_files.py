"""Memories whose bytes are in a file."""

from __future__ import annotations

import copy
import errno
import multiprocessing
import os
import pickle
import warnings

import numpy as np
import pytest

import rlmemory as rlm

from .support import LAYOUTS, PLAIN, Naive, Spec, channels, counted, equal_records, fields_of, pick, unchanged

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.bin"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_memory_in_a_file_does_what_one_in_ram_does(backend, path, layout):
    layout = LAYOUTS[layout]
    memory, twin = layout.memory(5, seed=0, path=path), layout.memory(5, seed=0)
    rows = layout.rows(np.random.default_rng(0), 8)
    for one in (memory, twin):
        one.extend(**rows, terminated=np.arange(8) % 3 == 0, source=np.arange(8) % 2)
        one.append(**pick(rows, 0), terminated=True)
        one.set([6, 7], reward=rows["reward"][:2])
    assert equal_records(memory.all(), twin.all())
    for options in ({}, {"replace": False}, {"source": 1}):
        assert equal_records(memory.sample(2, **options), twin.sample(2, **options))
    assert memory.nbytes == twin.nbytes == path.stat().st_size
    assert f"path={str(path)!r}" in repr(memory)


def test_the_rows_are_in_the_file(path):
    memory = PLAIN.memory(5, path=path)
    observation = np.array([1.25, -7.5])
    memory.append(observation, 3, reward=2.0, next_observation=observation, terminated=False)
    assert path.read_bytes()[: observation.nbytes] == observation.tobytes()
    assert len(path.read_bytes()) == memory.nbytes


def test_mode_x_makes_a_file_and_refuses_an_existing_one(path):
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"mode='w' replaces it, mode='r\+' uses its space"):
        PLAIN.memory(5, path=path)
    assert path.read_bytes() == b"mine"
    path.unlink()
    PLAIN.memory(5, path=str(path))
    assert path.exists()


def test_mode_w_replaces_a_file_and_also_makes_one(path):
    for content in (None, b"old", bytes(10_000)):
        if content is not None:
            path.write_bytes(content)
        memory = PLAIN.memory(5, path=path, mode="w")
        assert path.stat().st_size == memory.nbytes
        assert not any(path.read_bytes())
        assert len(memory) == 0


def test_mode_r_plus_uses_the_space_of_a_file_and_begins_empty(backend, path):
    memory = PLAIN.memory(5, path=path)
    counted(memory, 5, source=3, terminated=np.ones(5, bool))
    del memory
    memory = PLAIN.memory(5, path=path, mode="r+", seed=0)
    assert (len(memory), memory.next_id) == (0, 0)
    counted(memory, 3)
    assert memory.all().source.tolist() == memory.get([0, 1, 2]).source.tolist() == [0, 0, 0]
    assert memory.statistics()["sources"] == {0: 3}
    assert memory.statistics()["terminated"] == 0
    assert memory.sample(2, source=0).source.tolist() == [0, 0]
    counted(memory, 1, source=1)
    assert memory.all().source.tolist() == [0, 0, 0, 1]
    assert next(memory.epoch(9, shuffle=False)).is_first.tolist() == [True, False, False, True]


@pytest.mark.parametrize("size", [0, 100, 100_000])
def test_mode_r_plus_refuses_a_file_of_another_size_and_leaves_it(path, size):
    path.write_bytes(b"x" * size)
    with pytest.raises(rlm.ArenaError, match=f"has {size} bytes, and a memory of this capacity and these specs needs"):
        PLAIN.memory(5, path=path, mode="r+")
    assert path.read_bytes() == b"x" * size
    with pytest.raises(FileNotFoundError):
        PLAIN.memory(5, path=path.with_name("none"), mode="r+")


def test_a_mode_that_does_not_exist_and_a_folder_that_does_not_are_errors(path):
    with pytest.raises(ValueError, match=r"mode: expected 'x', 'w' or 'r\+', got 'a'"):
        PLAIN.memory(5, path=path, mode="a")
    with pytest.raises(FileNotFoundError):
        PLAIN.memory(5, path=path / "deeper")
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space is taken otherwise here")
@pytest.mark.parametrize("mode", ["x", "w"])
def test_a_full_disk_is_an_error_when_the_memory_is_made_and_leaves_no_file(path, monkeypatch, mode):
    def full(handle, offset, size):
        os.ftruncate(handle, 10)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(rlm.ArenaError, match=r"cannot make 0\.00 GiB for the memory") as caught:
        PLAIN.memory(5, path=path, mode=mode)
    assert caught.value.errno == errno.ENOSPC
    assert str(path) in str(caught.value)
    assert not path.exists()


def test_a_full_disk_during_resize_changes_nothing_and_leaves_no_file(path, monkeypatch):
    memory = PLAIN.memory(5, path=path, seed=0)
    counted(memory, 7)

    def full(handle, offset, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with unchanged(memory), monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full, raising=False)
        with pytest.raises(rlm.ArenaError):
            memory.resize(9)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    memory.resize(9)
    assert memory.all().id.tolist() == [2, 3, 4, 5, 6]


def test_space_is_written_where_it_cannot_be_reserved(path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    memory = rlm.ReplayMemory(Spec((100_000,)), Spec(()), 3, path=path)
    assert path.stat().st_size == memory.nbytes
    assert path.stat().st_blocks * 512 >= memory.nbytes


@pytest.mark.parametrize("size", [1, 3, 5, 8])
def test_resize_replaces_the_file_and_keeps_the_newest(path, size):
    memory = PLAIN.memory(5, path=path)
    counted(memory, 7, source=np.arange(7) % 2)
    memory.resize(size)
    kept = min(5, size)
    assert memory.all().id.tolist() == list(range(7 - kept, 7))
    assert memory.all().source.tolist() == [i % 2 for i in range(7 - kept, 7)]
    assert path.stat().st_size == memory.nbytes
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    counted(memory, 1, first=7)
    assert path.read_bytes() == memory._arena.block.tobytes()
    assert f"path={str(path)!r}" in repr(memory)


def test_a_memory_in_a_file_cannot_be_pickled_or_copied(path):
    memory = PLAIN.memory(5, path=path)
    counted(memory, 3)
    for how in (pickle.dumps, copy.deepcopy, copy.copy):
        with unchanged(memory), pytest.raises(rlm.NotPickleableError, match=r"two memories would share the file"):
            how(memory)
    twin = PLAIN.memory(5)
    twin.extend_from(memory.all())  # what the message says instead
    assert equal_records(twin.all(), memory.all())


def _in_child(memory: rlm.ReplayMemory, pipe) -> None:
    refused = []
    row = {"reward": 0.0, "next_observation": np.zeros(2), "terminated": False}
    for name, write in {
        "append": lambda: memory.append(np.zeros(2), 0, **row),
        "extend": lambda: counted(memory, 2),
        "extend_from": lambda: memory.extend_from(memory.all()),
        "set": lambda: memory.set([3], reward=[9.0]),
        "resize": lambda: memory.resize(9),
        "clear": lambda: memory.clear(),
    }.items():
        try:
            write()
        except rlm.ArenaError as error:
            refused.append((name, "may only read" in str(error)))
    pipe.send((refused, fields_of(memory.all()), fields_of(memory.sample(4))))


@needs_fork
def test_a_forked_child_may_read_and_not_write(path):
    memory = PLAIN.memory(5, path=path, seed=0)
    counted(memory, 7)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with warnings.catch_warnings(), unchanged(memory):
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=_in_child, args=(memory, theirs))
        child.start()
        assert ours.poll(60)
        refused, rows, batch = ours.recv()
        child.join()
    names = ["append", "extend", "extend_from", "set", "resize", "clear"]
    assert refused == [(name, True) for name in names]
    assert all(np.array_equal(a, b) for a, b in zip(rows, fields_of(memory.all()), strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(batch, fields_of(memory.sample(4)), strict=True))
    counted(memory, 1)


def test_a_naive_memory_agrees_with_one_in_a_file_over_many_resizes(path):
    memory, naive = PLAIN.memory(3, path=path, seed=5), Naive(3, 5)
    for step, capacity in enumerate([5, 2, 7, 1, 8, 3]):
        rows = PLAIN.rows(np.random.default_rng(step), 4)
        memory.extend(**rows, terminated=False)
        record = rlm.Experience(*(rows.get(name) for name in rlm.Experience._fields[:4]), *[None] * 4, {})
        for i in range(4):
            naive.append([leaf[i] for leaf in channels(record)], 0, 0)
        memory.resize(capacity)
        naive.resize(capacity)
        naive.check(memory.all(), naive.rows)
        naive.check(memory.sample(3), naive.sample(3, True, None))
