"""Forks, new processes, threads, copies, and installs that cannot be written."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import rlmemory as rlm

from .support import LAYOUTS, PLAIN, ROOT, Layout, Spec, counted, equal_records, fields_of

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def used(layout: str = "dict", **keywords) -> rlm.ReplayMemory:
    """A memory that has wrapped, been cut and been sampled from."""
    memory = LAYOUTS[layout].memory(9, seed=3, **keywords)
    rows = LAYOUTS[layout].rows(np.random.default_rng(0), 14)
    memory.extend(**rows, terminated=np.arange(14) % 5 == 0, source=np.arange(14) % 3)
    memory.end_episode(1)
    memory.sample(4)
    return memory


def next_batches(memory: rlm.ReplayMemory) -> list:
    return [memory.sample(5), memory.sample(4, replace=False), memory.sample(2, source=1), *memory.epoch(4)]


def plain(records: list) -> list[list[np.ndarray]]:
    return [fields_of(record) for record in records]


def equal(a: list[list[np.ndarray]], b: list[list[np.ndarray]]) -> bool:
    pairs = [(x, y) for one, two in zip(a, b, strict=True) for x, y in zip(one, two, strict=True)]
    return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in pairs)


def report(memory: rlm.ReplayMemory, pipe) -> None:
    """What a child does: everything once, and the batches back to the parent."""
    batches = plain(next_batches(memory))
    memory.append(**one_row(memory), terminated=True, source=0)
    pipe.send((batches, plain([memory.all()]), memory.next_id))


def one_row(memory: rlm.ReplayMemory) -> dict:
    one = memory.get(memory.next_id - 1)
    return {name: getattr(one, name) for name in ("observation", "action", "reward", "next_observation", "extra")}


# ---- copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("how", [copy.deepcopy, copy.copy, lambda memory: pickle.loads(pickle.dumps(memory))])
def test_a_copy_holds_the_same_and_draws_the_same(backend, how, layout):
    memory = used(layout)
    twin = how(memory)
    assert equal_records(memory.all(), twin.all())
    assert (twin.next_id, twin.capacity, len(twin), twin.nbytes) == (14, 9, 9, memory.nbytes)
    if how is not copy.copy:  # a shallow copy of a memory has its own rows, and shares the generator
        assert equal(plain(next_batches(memory)), plain(next_batches(twin)))
    before = memory.all()
    twin.clear()
    twin.append(**one_row(memory), terminated=False)
    assert equal_records(memory.all(), before)


def test_a_copy_remembers_where_episodes_were_ended(backend):
    memory = PLAIN.memory(9, seed=0)
    counted(memory, 3)
    memory.end_episode()
    counted(memory, 2)
    memory.end_episode()  # what comes next begins an episode, in the copy too
    twin = pickle.loads(pickle.dumps(memory))
    counted(twin, 2)
    assert next(twin.epoch(9, shuffle=False)).is_first.tolist() == [True, False, False, True, False, True, False]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol_works(protocol):
    memory = used()
    twin = pickle.loads(pickle.dumps(memory, protocol))
    assert equal(plain(next_batches(memory)), plain(next_batches(twin)))


def test_a_pickle_holds_the_rows_that_are_there_and_not_the_capacity():
    memory = PLAIN.memory(1_000_000)
    counted(memory, 10)
    assert len(pickle.dumps(memory)) < 20_000
    assert pickle.loads(pickle.dumps(memory)).capacity == 1_000_000


def test_a_copy_of_an_empty_memory_is_one():
    memory = pickle.loads(pickle.dumps(LAYOUTS["tuple"].memory(4)))
    assert (len(memory), memory.capacity, memory.next_id) == (0, 4, 0)


# ---- processes ------------------------------------------------------------------------------------------------------


def run_child(method: str, memory: rlm.ReplayMemory) -> tuple:
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking while another test's thread lives
        child = context.Process(target=report, args=(memory, theirs))
        child.start()
    try:
        assert ours.poll(60), "the child gave no answer"
        answer = ours.recv()
        child.join(60)
        assert child.exitcode == 0
        return answer
    finally:
        if child.is_alive():
            child.kill()


@pytest.mark.parametrize("method", [pytest.param("fork", marks=needs_fork), "spawn"])
def test_a_child_draws_the_batches_that_the_parent_would(method):
    memory = used()
    batches, rows, next_id = run_child(method, memory)
    assert len(memory) == 9
    assert memory.next_id == 14  # what the child appends stays with the child
    assert next_id == 15
    assert equal(batches, plain(next_batches(memory)))
    memory.append(**one_row(memory), terminated=True, source=0)
    assert equal(rows, plain([memory.all()]))


def held(lock, release: threading.Event) -> threading.Thread:
    """A thread that has taken a lock and keeps it until it is told to let go."""
    taken = threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            release.wait(60)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert taken.wait(10)
    return thread


@needs_fork
@pytest.mark.parametrize("which", ["memory", "generator"])
def test_a_fork_while_another_thread_holds_the_lock_does_not_hang_the_child(which):
    memory = used()
    release = threading.Event()
    lock = memory._lock if which == "memory" else memory._rng.bit_generator.lock
    thread = held(lock, release)
    try:
        batches, _, next_id = run_child("fork", memory)
    finally:
        release.set()
        thread.join()
    assert next_id == 15
    if which == "memory":  # in the middle of a draw there is no state to go on from: the child draws by itself
        assert equal(batches, plain(next_batches(memory)))


@needs_fork
def test_the_parents_lock_still_holds_after_a_fork():
    memory = used()
    release = threading.Event()
    thread = held(memory._lock, release)
    run_child("fork", used())
    assert not memory._lock.acquire(blocking=False)
    release.set()
    thread.join()


# ---- threads --------------------------------------------------------------------------------------------------------

STAMPED = Layout(
    {"wide": Spec((50,), "int64"), "narrow": Spec((3,), "float32")}, Spec((5,), "int64"), Spec((2,)),
    {"stamp": Spec((), "int64")},
)  # fmt: skip


def stamped(ids: np.ndarray) -> dict:
    """Rows that say one number in every field."""

    def fill(width: int, dtype: str) -> np.ndarray:
        return np.repeat(ids[:, None], width, 1).astype(dtype)

    observation = {"wide": fill(50, "int64"), "narrow": fill(3, "float32")}
    return {
        "observation": observation, "action": fill(5, "int64"), "reward": fill(2, "float64"),
        "next_observation": observation, "extra": {"stamp": ids.copy()},
    }  # fmt: skip


def torn(record) -> int:
    """How many rows of a result do not say one number throughout."""
    stamps = record.extra["stamp"]
    parts = [*record.observation.values(), record.action, record.reward, *record.next_observation.values()]
    wrong = np.zeros(stamps.shape, bool)
    for part in parts:
        wrong |= (part != stamps[:, None]).any(1)
    wrong |= record.terminated != (stamps % 7 == 0)
    wrong |= record.source != stamps % 4
    return int(wrong.sum())


def test_four_threads_that_sample_and_append_never_see_a_torn_row():
    memory = STAMPED.memory(64, seed=0)
    memory.extend(**stamped(np.arange(64)), terminated=np.arange(64) % 7 == 0, source=np.arange(64) % 4)
    rlm.warmup()
    gathers, faults, errors = [0], [0], []
    numbers = iter(range(64, 10**9))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            some = np.array([next(numbers) for _ in range(3)])
            memory.extend(**stamped(some), terminated=some % 7 == 0, source=some % 4)
            one = stamped(some + 10**6)
            number = int(some[0] + 10**6)
            memory.append(
                {key: value[0] for key, value in one["observation"].items()}, one["action"][0], reward=one["reward"][0],
                next_observation={key: value[0] for key, value in one["next_observation"].items()},
                terminated=number % 7 == 0, source=number % 4, extra={"stamp": number},
            )  # fmt: skip

    def read(kind: int) -> None:
        batch = memory.sample(32)
        while gathers[0] < 10_000:
            if kind:
                faults[0] += torn(memory.sample(32, out=batch))
            else:
                faults[0] += torn(memory.all()) + torn(memory.sample(8, replace=False))
            gathers[0] += 1 + (not kind)

    def guarded(function, *arguments) -> None:
        try:
            function(*arguments)
        except BaseException as error:
            errors.append(error)
            gathers[0] = 10**9

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        writers = [threading.Thread(target=guarded, args=(write,)) for _ in range(2)]
        readers = [threading.Thread(target=guarded, args=(read, kind)) for kind in (0, 1)]
        for thread in writers + readers:
            thread.start()
        for thread in readers:
            thread.join()
        stop.set()
        for thread in writers:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
    assert errors == []
    assert gathers[0] >= 10_000
    assert memory.next_id > 200
    assert faults[0] == 0
    assert torn(memory.all()) == 0


def test_each_append_of_many_threads_gets_an_id_of_its_own():
    memory = PLAIN.memory(4000)
    given: list[list[int]] = [[] for _ in range(4)]

    def write(k: int) -> None:
        row = np.zeros(2)
        for _ in range(500):
            given[k].append(memory.append(row, k, reward=0.0, next_observation=row, terminated=False))

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(i for ids in given for i in ids) == list(range(2000))
    action = memory.all().action
    assert all(action[i] == k for k in range(4) for i in given[k])


# ---- an install that cannot be written (CASES A15) ------------------------------------------------------------------

NOBODY = 54_321  # a user without an entry anywhere

FIRST_SAMPLE = """
import os, sys, warnings
warnings.simplefilter("error")
import numpy as np, rlmemory as rlm
memory = rlm.ReplayMemory(rlm.NumericSpec((3,)), rlm.NumericSpec(()), 5, seed=7)
np.random.seed(1)
for i in range(7):
    memory.append(np.full(3, float(i)), float(i), reward=1.0, next_observation=np.ones(3), terminated=False)
print(os.path.dirname(rlm.__file__), os.access(os.path.dirname(rlm.__file__), os.W_OK), memory.sample(9).id.tolist())
memory.sample(3, replace=False)
memory.set([6], reward=[2.0])
"""


def interpreter_for(user: int, path: str) -> str | None:
    """An interpreter of this version that the user may run, with the installed packages on its path."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}", "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [candidate, "-c", "import sys, numba; print(*sys.version_info[:2])"],
                user=user, group=user, extra_groups=[], env={"PYTHONPATH": path}, cwd="/", capture_output=True,
                text=True, timeout=120, check=False,
            )  # fmt: skip
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.split() == [str(part) for part in sys.version_info[:2]]:
            return candidate
    return None


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="to become a user without an entry takes root on Linux"
)
def test_a_user_without_home_or_entry_samples_from_an_install_that_cannot_be_written():
    import pwd
    import tempfile

    with pytest.raises(KeyError):
        pwd.getpwuid(NOBODY)
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders let no other user in
        root = Path(folder)
        shutil.copytree(ROOT / "rlmemory", root / "rlmemory", ignore=shutil.ignore_patterns("__pycache__"))
        for path in [root, *root.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        path = os.pathsep.join([folder, sysconfig.get_paths()["purelib"]])
        python = interpreter_for(NOBODY, path)
        if python is None:
            pytest.skip("no interpreter of this version, or no packages, that another user may read")
        for cache in ({}, {"RLMEMORY_NUMBA_CACHE": "0"}):
            done = subprocess.run(
                [python, "-c", FIRST_SAMPLE], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                env={"PYTHONPATH": path, **cache}, capture_output=True, text=True, timeout=240, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            where, writable, ids = done.stdout.split(maxsplit=2)
            assert (where, writable) == (str(root / "rlmemory"), "False")
            u = np.random.default_rng(7).random(9)
            assert ids.strip() == str((2 + np.floor(u * 5)).astype(int).tolist())
        assert not list(root.rglob("__pycache__"))
