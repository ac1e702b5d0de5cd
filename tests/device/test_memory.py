"""A memory on a GPU and one on the CPU, with the same seed and the same calls: the same bytes."""

from __future__ import annotations

import copy
import gc
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory import device_arena
from rlmemory.files.matfile import append_mat, write_mat

from .pairs import LAYOUTS, MAKERS, make, row_of, story
from .support import Pair, agree, all_on_device, bytes_of, leaves, needs_device, on_host

pytestmark = needs_device

CALLS: dict[str, dict[str, Any]] = {
    "single rows": {},
    "the previous step": {"previous": True, "discount": 0.5},
    "distinct rows": {"replace": False},
    "one source": {"source": 1},
    "windows": {"sequence_length": 4},
    "windows with burn-in": {"sequence_length": 3, "burn_in": 2, "previous": True},
    "windows that end with the row": {"sequence_length": 3, "padding": "start"},
    "full windows": {"sequence_length": 2, "padding": "none"},
    "windows across episodes": {"sequence_length": 9, "boundary": "cross"},
    "time first": {"sequence_length": 3, "burn_in": 1, "time_major": True, "previous": True},
    "sums": {"n_step": 3, "discount": 0.9},
    "sums and the previous step": {"n_step": 2, "previous": True, "source": 0},
    "distinct sums": {"n_step": 4, "replace": False},
}


def pair(name: str, capacity: int) -> Pair:
    return Pair(lambda device: make(name, capacity, device))


def filled(name: str, capacity: int = 32, rows: int = 50, seed: int = 0) -> Pair:
    """A pair whose ring has wrapped, by extends and appends in turn."""
    both, layout, rng = pair(name, capacity), MAKERS[name][0], np.random.default_rng(seed)
    given = story(layout, rng, rows)
    half = rows // 2
    both.extend(**{key: part_of(value, slice(0, half)) for key, value in given.items()})
    for i in range(half, rows):
        both.append(**row_of(given, i))
    return both


def part_of(value: Any, rows: slice) -> Any:
    if isinstance(value, dict):
        return {key: part[rows] for key, part in value.items()}
    return tuple(part[rows] for part in value) if isinstance(value, tuple) else value[rows]


@pytest.fixture(params=sorted(MAKERS))
def both(request: pytest.FixtureRequest) -> Pair:
    return filled(request.param)


@pytest.fixture(params=[1, 300, 2000])
def staged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of appended rows that wait: room for one row, for a few, for all."""
    monkeypatch.setattr(device_arena, "_STAGED", request.param)
    return request.param


# ---- out ------------------------------------------------------------------------------------------------------------


def test_all_and_get_and_chunks_are_those_of_the_cpu(both):
    assert all_on_device(both.all())
    ids = np.array(both.here.ids)
    for wanted in (ids[::-3], ids[:4].reshape(2, 2), ids[:0], int(ids[5]), np.array([ids[1]] * 3)):
        both.get(wanted)
    both.chunks(7)
    both.epoch(9)
    both.epoch(9, shuffle=False, drop_last=True)
    both.compare()


def test_every_sample_is_that_of_the_cpu(both):
    for call, options in CALLS.items():
        refused = refusal(both.here, options)
        if refused:
            with pytest.raises(ValueError, match=refused):
                both.there.sample(5, **options)
            continue
        assert all_on_device(both.sample(5, **options)), call
        both.sample(9, **options)
    both.compare()


def refusal(memory: Any, options: dict[str, Any]) -> str:
    """The option that a class does not take, or nothing."""
    if "boundary" in options and getattr(memory, "_relabel", "") == "sample":
        return "cross"
    ranked = isinstance(memory, rlm.PrioritizedReplayMemory)
    return "replace" if ranked and not options.get("replace", True) else ""


def test_episodes_statistics_and_findings_are_those_of_the_cpu(both):
    for name in ("episodes", "statistics", "check"):
        here, there = getattr(both.here, name)(), getattr(both.there, name)()
        if name == "statistics":
            assert repr(here) == repr(there)
        elif name == "check":
            assert (here.broken.tolist(), here[1:]) == (there.broken.tolist(), there[1:])
        else:
            agree(here, there)
    both.sample_episodes(3, previous=True)
    both.sample_episodes(2, time_major=True)
    both.trajectories(discount=0.5)
    both.trajectories(1, previous=True, time_major=True)


def test_out_fills_the_same_bytes_again(both):
    for call in ("single rows", "time first", "sums"):
        here, there = (memory.sample(6, **CALLS[call]) for memory in (both.here, both.there))
        places = addresses(there)
        again = both.there.sample(6, **CALLS[call], out=there)
        assert addresses(again) == places, call
        agree(both.here.sample(6, **CALLS[call], out=here), again)
        agree(on_host(there), again)  # the arrays that were handed in see it as well


def addresses(record: Any) -> list[int]:
    return [leaf.__cuda_array_interface__["data"][0] for leaf in leaves(record).values() if leaf is not None]


def test_all_fills_the_bytes_of_an_earlier_all(both):
    first = both.there.all()
    ids = first.id.__cuda_array_interface__["data"]
    second = both.there.all(out=first)
    assert second.id.__cuda_array_interface__["data"] == ids
    agree(both.here.all(), second)


def test_two_results_share_no_bytes_and_nothing_changes_them_later(both):
    one, other = both.there.sample(5), both.there.sample(5)
    kept = on_host(one)
    spans = sorted(span(leaf) for batch in (one, other) for leaf in leaves(batch).values() if leaf is not None)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    both.there.extend_from(both.there.all())
    both.there.clear()
    agree(kept, one)


def span(array: Any) -> tuple[int, int]:
    start = array.__cuda_array_interface__["data"][0]
    return start, start + array.nbytes


def test_a_batch_outlives_its_memory():
    both = filled("dict, vector reward, extra")
    batch, wanted = both.there.sample(8), both.here.sample(8)
    del both
    gc.collect()
    for _ in range(20):  # something else would be written where it was
        rlm.to_device(np.full(4096, 255, np.uint8))
    agree(wanted, batch)


# ---- in -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["odd widths", "dict, vector reward, extra", "one byte, bool reward"])
def test_appends_and_extends_of_all_sizes_in_any_order(name, staged):
    """Rows wait on the host, or go at once; the ring wraps in the middle of those that wait."""
    both, layout, rng = pair(name, 23), MAKERS[name][0], np.random.default_rng(staged)
    for k, count in enumerate((1, 1, 3, 1, 17, 1, 1, 40, 1, 2, 9, 1, 23, 1, 0, 1, 1, 5, 24, 1, 1)):
        rows = story(layout, rng, count or 1, both.here.next_id)
        rows = {key: part_of(value, slice(0, count)) for key, value in rows.items()}
        if count == 1:
            both.append(**row_of(rows, 0))
        else:
            both.extend(**rows)
        if k % 3 == 2:
            both.sample(4, sequence_length=3, previous=True)
    both.compare()
    for _ in range(60):
        both.append(**row_of(story(layout, rng, 1, both.here.next_id), 0))
    both.compare()


@pytest.mark.parametrize("name", ["one array", "odd widths", "integer reward"])
def test_resize_up_and_down_keeps_the_newest_rows(name, staged):
    both, layout, rng = pair(name, 10), MAKERS[name][0], np.random.default_rng(1)
    for capacity in (16, 7, 7, 1, 30, 12):
        for count in (1, 4, 1, 8):
            both.extend(**story(layout, rng, count, both.here.next_id))
        both.append(**row_of(story(layout, rng, 1), 0))
        both.resize(capacity)
        both.compare()
        both.sample(5, n_step=3)
    both.clear()
    both.compare()
    both.extend(**story(layout, rng, 5))
    both.compare()


def test_what_follows_an_end_of_an_episode_begins_one(both):
    layout, rng = layout_of(both.here), np.random.default_rng(4)
    both.end_episode(1)
    both.extend(**story(layout, rng, 6, 1))
    both.end_episode()
    both.append(**row_of(story(layout, rng, 1), 0))
    both.compare()
    both.sample(9, sequence_length=4)
    agree(both.here.episodes(), both.there.episodes())


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_set_changes_every_field_and_of_equal_ids_the_last_wins(name):
    both, layout = filled(name), LAYOUTS[name]
    newest = both.here.next_id - 1
    ids = np.array([newest, newest - 5, newest, newest - 31, newest - 5, newest])
    fields = story(layout, np.random.default_rng(9), ids.size)
    for field, value in fields.items():
        both.set(ids, **{field: value})
        both.compare()
        both.sample(8, n_step=3)
    both.set(ids.reshape(2, 3), **{k: reshaped(v) for k, v in fields.items()})
    both.set(np.empty(0, np.int64), reward=fields["reward"][:0])
    both.set(newest, terminated=True)
    both.compare()
    for rows in (1, 2):  # rows that still wait are changed as well
        both.extend(**story(layout, np.random.default_rng(rows), rows))
        both.set(both.here.next_id - 1, observation=row_of(fields, 0)["observation"], reward=fields["reward"][0])
        both.compare()


def reshaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reshaped(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(reshaped(part) for part in value)
    return value.reshape(2, 3, *value.shape[1:])


def test_a_memory_takes_what_another_gave(both):
    record = both.there.all()
    fresh = Pair(lambda device: copy.deepcopy(both.here).to(device))
    fresh.clear()
    fresh.here.extend_from(on_host(record))
    fresh.there.extend_from(record)
    fresh.compare()
    fresh.there.extend_from(on_host(fresh.there.get(list(fresh.there.ids)[:3])))
    fresh.here.extend_from(fresh.here.get(list(fresh.here.ids)[:3]))
    fresh.compare()


# ---- copies ---------------------------------------------------------------------------------------------------------


def followed(both: Pair, twin: Any) -> None:
    """A twin of the memory on the device goes on as the memory on the CPU does."""
    both.there = twin
    both.compare()
    both.sample(6, sequence_length=3)
    both.append(**row_of(story(layout_of(twin), np.random.default_rng(6), 1), 0))
    both.sample(6, n_step=3)
    both.compare()


def layout_of(memory: Any) -> Any:
    return next(m[0] for m in MAKERS.values() if m[0].observation == memory.observation_spec)


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "through the CPU", "state_dict"])
def test_a_copy_goes_on_as_the_memory_would(both, way):
    there = both.there
    if way == "pickle":
        twin = pickle.loads(pickle.dumps(there))
    elif way == "deepcopy":
        twin = copy.deepcopy(there)
    elif way == "through the CPU":
        middle = there.to("cpu")
        assert middle.device == "cpu"
        twin = middle.to("cuda")
    else:
        twin = copy.deepcopy(there)
        twin.extend_from(twin.get(list(twin.ids)[:9]))
        twin.load_state_dict(there.state_dict())
        here = both.here.state_dict()
        both.here.load_state_dict(here)
    assert twin.device == there.device == "cuda:0"
    before = bytes_of(there)
    followed(both, twin)
    assert bytes_of(there) == before  # nothing is shared


def test_to_the_same_device_is_the_memory_itself(both):
    assert both.there.to("cuda") is both.there.to("cuda:0") is both.there
    assert both.here.to("cpu") is both.here


def test_moving_copies_everything_that_the_next_batches_depend_on(both):
    twin = both.here.to("cuda")
    assert type(twin) is type(both.here)
    followed(both, twin)


def test_a_checkpoint_of_the_device_is_that_of_the_cpu(both, tmp_path: Path):
    functions = dict(zip(("reward_fn", "is_done_fn"), getattr(both.here, "_judges", ()), strict=False))
    loaded = []
    for memory, name in ((both.here, "here"), (both.there, "there")):
        memory.save(tmp_path / name)
        memory.save(tmp_path / f"{name}.npz")
        loaded.append(rlm.load(tmp_path / name, **functions))
        agree(loaded[-1].all(), rlm.load(tmp_path / f"{name}.npz", **functions).all())
    agree(loaded[0].all(), loaded[1].all())
    agree(loaded[0].sample(7), loaded[1].sample(7))
    agree(loaded[0].sample(7), loaded[1].to("cuda").sample(7))


def test_a_state_goes_from_one_device_to_the_other(both):
    other = copy.deepcopy(both.there)
    other.clear()
    other.load_state_dict(both.here.state_dict())
    both.here.load_state_dict(both.there.state_dict())
    followed(both, other)


# ---- the other classes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MAKERS if name.startswith("prioritized")])
def test_priorities_are_those_of_the_cpu(name):
    both, rng = filled(name), np.random.default_rng(2)
    for _ in range(5):
        batch = both.sample(8)
        errors = rng.random(8)
        assert both.here.update_priorities(batch.id.copy_to_host(), errors) == 0
        assert both.there.update_priorities(batch.id, rlm.to_device(errors)) == 0
        windows = both.sample(4, sequence_length=3, burn_in=1)
        for memory in (both.here, both.there):
            chosen = windows.id[:, 1] if memory is both.there else windows.id.copy_to_host()[:, 1]
            memory.update_priorities(chosen, errors[:4])
        agree(both.here.priorities(), both.there.priorities())
        agree(both.here.priorities(batch.id.copy_to_host()), both.there.priorities(batch.id))
    both.resize(20)
    both.compare()
    both.sample(6)


@pytest.mark.parametrize("name", [name for name in MAKERS if "Hindsight" in name])
def test_generated_experiences_are_those_of_the_cpu(name):
    both = filled(name)
    for keywords in ({}, {"length": 9}, {"source": 1}):
        record = both.generate_hindsight(**keywords)
        assert all_on_device(record)
        both.here.extend_from(type(record)(*on_host(record)))
        both.there.extend_from(record)
        both.compare()
        both.sample(9, sequence_length=3)
    both.end_episode()
    both.compare()


@pytest.mark.parametrize("options", [{}, {"sequence_length": 3, "time_major": True}, {"n_step": 2, "previous": True}])
def test_a_mixture_joins_batches_on_the_device(options):
    first, second = filled("dict, vector reward, extra"), filled("dict, vector reward, extra", rows=40, seed=5)
    mixtures = [
        rlm.Mixture(memories, [0.7, 0.3]) for memories in ((first.here, second.here), (first.there, second.there))
    ]
    for size in (1, 10):
        here, there = (mixture.sample(size, **options) for mixture in mixtures)
        assert all_on_device(there)
        agree(here, there)
    with pytest.raises(rlm.StructureError, match="cuda:0"):
        rlm.Mixture([first.here, first.there], [1, 1])


# ---- what it says of itself -----------------------------------------------------------------------------------------


def test_a_memory_says_where_it_is():
    memory = make("one array", 8, "cuda")
    assert memory.device == "cuda:0"
    assert "cuda:0" in repr(memory)
    assert "cuda" not in repr(memory.to("cpu"))
    assert memory.nbytes == memory.to("cpu").nbytes
    assert "float64[0, 2]" in repr(memory.all())


@pytest.mark.parametrize("name", ["one array", "prioritized, batch", "HindsightReplayMemory, episode, store"])
def test_an_empty_memory_gives_what_an_empty_one_on_the_cpu_gives(name):
    both = pair(name, 5)
    for _ in range(2):
        both.all()
        both.trajectories()
        both.trajectories(previous=True)
        both.get(np.empty((0, 2), np.int64))
        both.chunks(3)
        both.epoch(3)
        both.sample(3)
        both.sample_episodes(2)
        agree(both.here.episodes(), both.there.episodes())
        both.extend(**story(MAKERS[name][0], np.random.default_rng(0), 7))
        both.clear()


def test_a_copy_has_a_generator_of_its_own():
    memory = filled("one array").there
    twin = memory.to("cpu")
    draws = str(memory._rng.bit_generator.state)
    twin.sample(3)
    assert str(memory._rng.bit_generator.state) == draws


def test_rows_that_wait_are_brought_over_in_one_move(monkeypatch):
    both = filled("one array")
    moves = []
    move = both.there._arena._kernels.move
    monkeypatch.setattr(both.there._arena._kernels, "move", lambda *given: (moves.append(1), move(*given)))
    both.sample(2)
    moves.clear()
    for i in range(5):
        both.append(**row_of(story(LAYOUTS["one array"], np.random.default_rng(i), 1), 0))
    assert not moves
    both.sample(2)
    assert len(moves) == 1
    both.sample(2)
    assert len(moves) == 1


def test_few_rows_wait_together_and_no_more_than_fit(staged):
    memory = make("one array", 1000, "cuda")
    widths = memory._arena.table[:, 1]
    assert max(1, staged // widths.sum()) <= memory._arena._room <= max(1, staged // widths[:4].sum())
    assert make("one array", 2, "cuda")._arena._room <= 2


@pytest.mark.parametrize("name", ["one array", "integer reward", "dict, vector reward, extra"])
def test_a_mat_file_of_the_device_is_that_of_the_cpu(name, tmp_path: Path):
    both, written = filled(name), tmp_path / "of_the_device.mat"
    write_mat(written, both.there)
    read = pair(name, 32)
    for memory in (read.here, read.there):
        append_mat(written, memory)
    read.compare()
    for leaf, wanted in zip(leaves(on_host(read.there.all())).values(), leaves(both.here.all()).values(), strict=True):
        assert leaf.shape == wanted.shape
    agree(read.here.all().reward, both.here.all().reward)


def test_environments_fill_a_memory_on_the_device():
    """Two at once, which end at different times: every row says which of them it is from."""
    both = Pair(recorded)
    both.compare()
    both.sample(9, sequence_length=4, previous=True)
    with pytest.raises(rlm.StructureError, match="source"):
        both.there.extend_from(both.there.all()._replace(source=None))


def recorded(device: str) -> Any:
    gymnasium = pytest.importorskip("gymnasium")

    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    envs.action_space.seed(1)
    memory = rlm.ReplayMemory.from_env(envs, 40, device=device, seed=2)
    rlm.record_rollout(envs, lambda observation: np.array([1, 0]), 30, memory, progress=False, seed=5)
    envs.close()
    return memory
