"""A call that is stopped in the middle leaves the rows as they were, or as they should be; never something between."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory import device_arena
from rlmemory.kernels import _cuda

from .pairs import LAYOUTS, MAKERS, make, row_of, story
from .support import SIMULATED, Pair, agree, leaves, needs_device, on_host, unchanged

pytestmark = needs_device

NAME = "dict, vector reward, extra"
STOPS = [MemoryError("full"), KeyboardInterrupt(), RuntimeError("driver")]


class Failing:
    """A function that fails at its n-th call from now on, and works again after that."""

    def __init__(self, owner: Any, name: str, error: BaseException, at: int = 1) -> None:
        self.works, self.error, self.left = getattr(owner, name), error, at

    def __call__(self, *given: Any, **keywords: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.works(*given, **keywords)


class Landing:
    """The block that staged rows land in, which can fail."""

    def __init__(self, block: Any, error: BaseException) -> None:
        self.block, self.copy_to_device = block, Failing(block, "copy_to_device", error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.block, name)


def filled(rows: int = 12, capacity: int = 9, name: str = NAME) -> Pair:
    both = Pair(lambda device: make(name, capacity, device))
    both.extend(**story(MAKERS[name][0], np.random.default_rng(0), rows))
    return both


def rows_for(count: int, seed: int) -> dict[str, Any]:
    return story(LAYOUTS[NAME], np.random.default_rng(seed), count)


@pytest.mark.parametrize("error", STOPS, ids=repr)
@pytest.mark.parametrize("where", ["copy", "kernel"])
def test_rows_that_wait_are_not_lost_when_they_cannot_be_brought_over(error, where, monkeypatch):
    both = filled()
    for k in range(3):
        both.append(**row_of(rows_for(1, k), 0))
    arena = both.there._arena
    with monkeypatch.context() as patch:
        if where == "copy":
            patch.setattr(arena, "_landing", Landing(arena._landing, error))
        else:
            patch.setattr(arena._kernels, "move", Failing(arena._kernels, "move", error))
        with pytest.raises(type(error)):
            both.there.all()
    both.compare()


@pytest.mark.parametrize("error", STOPS, ids=repr)
def test_an_append_that_finds_no_room_to_wait_stores_nothing(error, monkeypatch):
    monkeypatch.setattr(device_arena, "_STAGED", 1)  # room for one row
    both = filled(5)
    both.append(**row_of(rows_for(1, 1), 0))
    arena = both.there._arena
    with monkeypatch.context() as patch:
        patch.setattr(arena, "_landing", Landing(arena._landing, error))
        with pytest.raises(type(error)):
            both.there.append(**row_of(rows_for(1, 2), 0))
    both.compare()
    both.append(**row_of(rows_for(1, 3), 0))
    both.compare()


@pytest.mark.parametrize("at", [1, 3, 9])
@pytest.mark.parametrize("kind", ["host", "device"])
def test_an_extend_that_is_stopped_stores_nothing_and_keeps_what_it_has_not_touched(at, kind, monkeypatch):
    """The rows that would have been overwritten may be gone, as on the CPU; no row is half old and half new."""
    monkeypatch.setattr(device_arena, "_STAGED", 1)
    both = filled(7)
    given = rows_for(5, 1)
    if kind == "device":
        given = {k: v if k in ("terminated", "truncated", "source") else rlm.to_device(v) for k, v in given.items()}
    function = "upload" if kind == "host" else "transfer"
    with monkeypatch.context() as patch:
        patch.setattr(_cuda, function, Failing(_cuda, function, RuntimeError("stopped"), at))
        with pytest.raises(RuntimeError, match="stopped"):
            both.there.extend(**given)
    assert both.there.next_id == both.here.next_id
    assert len(both.there) == 4  # three of seven made room
    agree(both.here.get(list(both.here.ids)[-4:]), both.there.all())
    both.there.extend(**given)
    both.here.extend(**on_host(given))
    both.compare()


@pytest.mark.parametrize("name", [NAME, "prioritized, batch"])
@pytest.mark.parametrize(
    ("function", "at"),
    [("allocate", 1), ("allocate", 2), ("clear", 1), ("pinned", 1), ("transfer", 1), ("transfer", 5)],
)
def test_a_resize_that_is_stopped_changes_nothing(name, function, at, monkeypatch):
    both = filled(name=name)
    both.append(**row_of(rows_for(1, 1), 0))
    with unchanged(both.there), monkeypatch.context() as patch:
        patch.setattr(_cuda, function, Failing(_cuda, function, MemoryError("full"), at))
        with pytest.raises(MemoryError):
            both.there.resize(20)
    both.compare()
    both.resize(4)
    both.compare()
    both.sample(5)


def test_a_sample_that_finds_no_room_has_drawn_nothing(monkeypatch):
    both = filled()
    wanted = both.here.all()
    with monkeypatch.context() as patch:
        patch.setattr(_cuda, "allocate", Failing(_cuda, "allocate", MemoryError("full")))
        with pytest.raises(MemoryError), unchanged(both.there):
            both.there.sample(4)  # room is made before anything is drawn
    with monkeypatch.context() as patch:
        patch.setattr(_cuda, "upload", Failing(_cuda, "upload", RuntimeError("stopped")))
        with pytest.raises(RuntimeError):
            both.there.sample(4)
    agree(wanted, both.there.all())


def test_moving_to_a_full_device_leaves_the_memory_where_it_is(monkeypatch):
    memory = filled().here
    for function in ("allocate", "upload"):
        with monkeypatch.context() as patch, unchanged(memory):
            patch.setattr(device_arena, "_STAGED", 1)
            patch.setattr(_cuda, function, Failing(_cuda, function, MemoryError("full")))
            with pytest.raises(MemoryError):
                memory.to("cuda")
    assert memory.device == "cpu"


def test_a_set_that_is_stopped_leaves_host_and_device_of_one_mind(monkeypatch):
    """n-step sums are taken on the host, single rewards from the device."""
    both = filled()
    newest = both.here.next_id - 1
    for at in ("scatter", "flush"):
        with monkeypatch.context() as patch:
            if at == "scatter":
                kernels = both.there._arena._kernels
                patch.setattr(kernels, "scatter", Failing(kernels, "scatter", RuntimeError()))
            else:
                both.append(**row_of(rows_for(1, 1), 0))
                patch.setattr(both.there._arena, "_landing", Landing(both.there._arena._landing, RuntimeError()))
            with pytest.raises(RuntimeError):
                both.there.set([newest], reward=np.full((1, 3), 9, np.float32))
        both.compare()
        both.sample(9, n_step=3)


def test_a_state_that_cannot_be_loaded_leaves_no_mixture(monkeypatch):
    memory, other = filled().there, filled(8).there
    state = other.state_dict()
    with unchanged(memory), pytest.raises(rlm.CheckpointError):
        memory.load_state_dict({**state, "capacity": 4})
    monkeypatch.setattr(device_arena, "_STAGED", 1)
    memory = filled().there
    with monkeypatch.context() as patch:
        patch.setattr(_cuda, "upload", Failing(_cuda, "upload", RuntimeError(), 3))
        with pytest.raises(RuntimeError):
            memory.load_state_dict(state)
    assert len(memory) == 0
    memory.load_state_dict(state)
    agree(on_host(other.all()), memory.all())


# ---- threads --------------------------------------------------------------------------------------------------------


def test_threads_wait_for_each_other():
    """Each gets whole batches; rows say their own number in every field."""
    memory = rlm.ReplayMemory(rlm.NumericSpec((2,)), rlm.NumericSpec(()), 40, device="cuda", seed=0)
    inside, problems = [], []
    gather = memory._arena.gather

    def watched(*given: Any) -> None:
        inside.append(1)
        if len(inside) > 1:
            problems.append("two at once")
        gather(*given)
        inside.pop()

    memory._arena.gather = watched
    memory.append([0, 0], 0, reward=0, next_observation=[1, 1], terminated=False)
    barrier = threading.Barrier(3)

    def read() -> None:
        barrier.wait()
        for _ in range(30):
            batch = on_host(memory.sample(8))
            seen = (batch.reward, batch.action, batch.observation[:, 0], batch.next_observation[:, 1] - 1)
            if any(leaf.tolist() != batch.id.tolist() for leaf in seen):
                problems.append(batch)

    def write() -> None:
        barrier.wait()
        for t in range(1, 100):
            memory.append([t, t], t, reward=t, next_observation=[t + 1, t + 1], terminated=False)

    threads = [threading.Thread(target=work) for work in (read, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert leaves(on_host(memory.all()))[".id"].tolist() == list(range(60, 100))


def test_the_lock_may_be_taken_twice_and_is_given_back_after_an_error():
    memory = make("one array", 4, "cuda")
    with memory._lock, memory._lock:
        memory.append(**row_of(story(LAYOUTS["one array"], np.random.default_rng(0), 1), 0))
    with pytest.raises(rlm.StaleIdError):
        memory.get([9])
    free = []
    thread = threading.Thread(target=lambda: free.append(len(memory.all().id)), daemon=True)
    thread.start()
    thread.join(10)
    assert free == [1]


@pytest.mark.skipif(not SIMULATED, reason="a context that cannot be entered is made in the simulator")
def test_a_device_that_cannot_be_used_does_not_keep_the_lock(monkeypatch):
    memory = make("one array", 4, "cuda")
    with monkeypatch.context() as patch:
        patch.setattr(_cuda, "using", Failing(_cuda, "using", RuntimeError("no context")))
        with pytest.raises(RuntimeError, match="no context"):
            memory.all()
    thread = threading.Thread(target=memory.all, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
