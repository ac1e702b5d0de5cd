"""Same seed and same calls: same batches, whatever else happens in the process."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

from rlmemory import kernels

from .goals_model import GOALS, Hindsight
from .layouts import PLAIN, equal_records, given

CALLS: dict[str, dict[str, Any]] = {
    "single rows": {},
    "distinct rows": {"replace": False},
    "windows": {"sequence_length": 4, "burn_in": 1, "previous": True},
    "full windows": {"sequence_length": 6, "padding": "none"},
    "sums": {"n_step": 3},
    "one source": {"source": 1, "sequence_length": 2},
}


def filled(layout: Any, memory: Any) -> Any:
    rng = np.random.default_rng(5)
    for t in range(70):
        memory.append(**given(layout.draw(rng)), terminated=t % 7 == 6, truncated=t % 11 == 10, source=t % 2)
    return memory


def makers() -> dict[str, Any]:
    plain = {"plain": lambda seed: filled(PLAIN, PLAIN.memory(256, seed=seed))}
    hows = [Hindsight(strategy, 2, relabel) for strategy in ("final", "future") for relabel in ("sample", "store")]
    return plain | {
        f"{how.strategy}, {how.relabel}": lambda seed, how=how: filled(GOALS, how.memory(256, seed)) for how in hows
    }


def story(make: Any, seed: int = 7) -> list[Any]:
    """Batches of every kind, one after another."""
    memory = make(seed)
    batches = [memory.sample(5, **CALLS[name]) for name in CALLS for _ in range(2)]
    return [*batches, memory.sample_episodes(3), *memory.epoch(20)]


def agree(a: list[Any], b: list[Any]) -> bool:
    return all(map(equal_records, a, b))


@pytest.fixture(params=sorted(makers()))
def make(request: pytest.FixtureRequest) -> Any:
    return makers()[request.param]


def test_another_seed_gives_other_batches(make):
    assert not agree(story(make, 7), story(make, 8))


def test_global_seeds_change_nothing_and_are_not_changed(make):
    expected = story(make)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = np.random.get_state()[1].tobytes(), random.getstate()  # noqa: NPY002
    assert agree(story(make), expected)
    assert (np.random.get_state()[1].tobytes(), random.getstate()) == before  # noqa: NPY002


def test_both_back_ends_give_the_same_batches(make):
    with kernels.use("reference"):
        expected = story(make)
    with kernels.use("cpu"):
        assert agree(story(make), expected)


def test_any_thread_gives_the_same_batches(make):
    """Four at once, each with a memory of its own and with the same seed."""
    expected, results = story(make), []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        results.append(story(make))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(agree(result, expected) for result in results)


def test_two_memories_do_not_disturb_each_other(make):
    one, other = make(1), make(2)
    mixed = [(one.sample(3), other.sample(3)) for _ in range(4)]
    for k, seed in enumerate((1, 2)):
        alone = make(seed)
        assert agree([pair[k] for pair in mixed], [alone.sample(3) for _ in range(4)])


def test_threads_that_share_a_memory_see_whole_windows():
    """The order of their calls is open; what each of them gets is not."""
    memory = PLAIN.memory(50, seed=0)
    problems: list[Any] = []
    stop = threading.Event()
    zero = np.zeros(2)
    memory.append(zero, 0, reward=0.0, next_observation=zero, terminated=False)

    def read() -> None:
        while not stop.is_set():
            batch = memory.sample(8, sequence_length=3)
            ids, number = batch.id, batch.observation[..., 0]
            good = (np.where(ids < 0, 0, ids) == number).all() and (np.diff(ids, axis=1)[ids[:, 1:] >= 0] == 1).all()
            if not good:
                problems.append(batch)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for t in range(1, 1500):
        here = np.full(2, float(t))
        memory.append(here, t, reward=0.0, next_observation=here, terminated=False)
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems
