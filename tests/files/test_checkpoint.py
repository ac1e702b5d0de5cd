"""What is saved is what is loaded: all kinds of memories, with everything that makes the next batch the same."""

from __future__ import annotations

import copy
import os
import pickle

import numpy as np
import pytest
from core.support import LAYOUTS, PLAIN, Spec, counted, equal_records, python

import rlmemory as rlm

from .support import CAPACITY, KINDS, assert_same_future, functions_of, make, reward_fn, rows, use

#: Steps after which the cursor is mid-episode: before, at and after the wrap.
STEPS = {"not full": 24, "full": CAPACITY, "wrapped": 3 * CAPACITY + 11}


@pytest.fixture(params=["folder", "x.npz"])
def path(request, tmp_path):
    return tmp_path / request.param


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_memory_gives_the_batches_of_one_that_was_never_saved(kind, steps, path):
    never, saved = make(kind), make(kind)
    use(never, steps)
    use(saved, steps)
    saved.save(path)
    loaded = rlm.load(path, **functions_of(kind))
    assert_same_future(never, loaded)
    # And the one that was saved goes on as if nothing had been.
    assert_same_future(saved, rlm.load(path, **functions_of(kind)))


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_dict_makes_another_memory_the_same(kind, steps):
    never, saved, other = make(kind), make(kind), make(kind, seed=99)
    for memory in (never, saved):
        use(memory, steps)
    use(other, 30, sources=3)
    state = pickle.loads(pickle.dumps(saved.state_dict()))
    other.load_state_dict(state)
    assert_same_future(never, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_in_a_file_is_saved_and_filled_too(kind, path, tmp_path):
    never, saved = make(kind), make(kind, path=tmp_path / "arena")
    for memory in (never, saved):
        use(memory, 95)
    saved.save(path)
    in_file = rlm.load(path, map=tmp_path / "another", **functions_of(kind))
    assert (tmp_path / "another").stat().st_size == in_file.nbytes
    saved.load_state_dict(copy.deepcopy(saved.state_dict()))
    for memory in (in_file, saved, rlm.load(path, **functions_of(kind))):
        assert_same_future(copy.deepcopy(never), memory)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [0, 1, 9, 14])
def test_every_layout_and_length_comes_back(layout, count, path):
    layout = LAYOUTS[layout]
    memory = layout.memory(9, seed=3)
    if count:
        given = layout.rows(np.random.default_rng(0), count)
        memory.extend(**given, terminated=np.arange(count) % 5 == 0, source=np.arange(count) % 3)
    memory.save(path)
    twin = rlm.load(path)
    assert equal_records(memory.all(), twin.all())
    assert twin.observation_spec == memory.observation_spec
    assert twin.action_spec == memory.action_spec
    assert twin.reward_spec == memory.reward_spec
    assert twin.extra_spec == memory.extra_spec


def test_specs_come_back_with_their_limits_names_and_spaces(path):
    gym = pytest.importorskip("gymnasium")
    spaces = gym.spaces.Dict({
        "box": gym.spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64),
        "bits": gym.spaces.MultiBinary(3),
        "many": gym.spaces.MultiDiscrete([3, 4]),
    })  # fmt: skip
    action = (rlm.FiniteSetSpec([[2, 2]], name="one"), rlm.FiniteSetSpec([[0, 1], [1, 0]]), Spec((), "<f4", low=-0.0))
    memory = rlm.ReplayMemory(rlm.spec_from_space(spaces), action, 3, reward=Spec((2,), name="pair", description="é"))
    memory.save(path)
    twin = rlm.load(path)
    assert twin.observation_spec == memory.observation_spec
    assert twin.action_spec == memory.action_spec
    assert twin.reward_spec == memory.reward_spec
    assert {key: spec.to_space() for key, spec in twin.observation_spec.items()} == dict(spaces.spaces)


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_goes_on(kind, path):
    memory = PLAIN.memory(9, seed=np.random.Generator(getattr(np.random, kind)(4)))
    counted(memory, 9)
    memory.sample(3)
    memory.save(path)
    assert equal_records(memory.sample(500), rlm.load(path).sample(500))


def test_a_prioritized_memory_comes_back_with_its_numbers(path):
    memory = rlm.PrioritizedReplayMemory(
        Spec(()), Spec(()), 4, priority_exponent=0.6, importance_exponent=0.4, priority_epsilon=0.0,
        weight_normalization="memory", seed=0,
    )  # fmt: skip
    four = np.arange(4.0)
    memory.extend(four, four, reward=four, next_observation=four, terminated=False, priority=[1.0, 2.0, 3.0, 4.0])
    memory.save(path)
    loaded = rlm.load(path)
    assert loaded.priorities().tolist() == [1.0, 2.0, 3.0, 4.0]
    mass = loaded._priorities.tree.mass / loaded._priorities.tree.total
    assert mass.round(4).tolist() == [0.1482, 0.2247, 0.2866, 0.3405]
    batch = loaded.sample(100)
    weights = dict(zip(batch.id.tolist(), batch.weight.round(4).tolist(), strict=True))
    assert weights == {0: 1.0, 1: 0.8467, 2: 0.7682, 3: 0.7170}
    assert equal_records(batch, memory.sample(100))
    new = loaded.append(4.0, 4.0, reward=4.0, next_observation=4.0, terminated=False)
    assert loaded.priorities(new) == 4.0


def test_the_importance_exponent_goes_on(path):
    memory = make("prioritized")
    use(memory, 20)
    before = memory.current_importance_exponent
    memory.save(path)
    loaded = rlm.load(path)
    assert 0.5 < before == loaded.current_importance_exponent
    loaded.update_priorities([19], [1.0])
    assert loaded.current_importance_exponent > before


def test_an_episode_that_was_running_is_closed(path):
    memory = PLAIN.memory(9, seed=0)
    counted(memory, 4)
    memory.save(path)
    loaded, other = rlm.load(path), PLAIN.memory(9)
    other.load_state_dict(memory.state_dict())
    for one, first in ((memory, False), (loaded, True), (other, True)):
        counted(one, 2, first=4)
        assert next(one.epoch(9, shuffle=False)).is_first.tolist() == [True, False, False, False, first, False]


@pytest.mark.parametrize("kind", ["hindsight, stored", "both, stored"])
def test_closing_an_episode_stores_no_new_goals(kind, path):
    memory = make(kind)
    memory.extend(**rows(0, 4))
    memory.save(path)
    loaded = rlm.load(path, **functions_of(kind))
    assert len(loaded) == 4
    loaded.extend(**rows(4, 3))  # the last three of the seven steps, by themselves
    assert loaded.next_id == 10


def test_saving_changes_nothing(path):
    memory, twin = make("both"), make("both")
    use(memory, 61)
    use(twin, 61)
    for _ in range(3):
        memory.save(path)
    use(memory, 10, first=61)
    use(twin, 10, first=61)
    assert_same_future(memory, twin)


def test_a_memory_of_a_vector_environment_still_asks_for_the_source(path):
    memory = PLAIN.memory(9)
    memory._serve(3)
    memory.save(path)
    with pytest.raises(rlm.StructureError, match="made from 3 environments"):
        counted(rlm.load(path), 1)


# ---- functions ------------------------------------------------------------------------------------------------------


def test_functions_that_are_not_given_again_are_named(path):
    memory = make("hindsight")
    memory.save(path)
    with pytest.raises(rlm.CheckpointError, match=r"needs reward_fn and is_done_fn again: load\(path, reward_fn="):
        rlm.load(path)
    with pytest.raises(rlm.CheckpointError, match="needs is_done_fn again"):
        rlm.load(path, reward_fn=reward_fn)
    with pytest.raises(TypeError, match="expected a function"):
        rlm.load(path, reward_fn=1, is_done_fn=2)


def test_functions_that_the_memory_did_not_have_are_refused(path):
    make("hindsight, future").save(path)
    with pytest.raises(TypeError, match="is_done_fn was given"):
        rlm.load(path, reward_fn=reward_fn, is_done_fn=reward_fn)
    with pytest.raises(TypeError, match="no argument 'rewardfn'"):
        rlm.load(path, rewardfn=reward_fn)


# ---- what cannot be saved or loaded ---------------------------------------------------------------------------------


def test_a_subclass_and_odd_keys_and_generators_cannot_be_saved(path):
    class Mine(rlm.ReplayMemory):
        pass

    class Own(np.random.PCG64):
        pass

    for memory, why in (
        (Mine(Spec(()), Spec(()), 3), "Mine cannot be saved"),
        (rlm.ReplayMemory({1: Spec(())}, Spec(()), 3), "keys are not strings"),
        (PLAIN.memory(3, seed=np.random.Generator(Own())), "of the kind Own"),
    ):
        with pytest.raises(rlm.NotAvailableError, match=why):
            memory.save(path)
    assert not path.exists()


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_mapping_a_checkpoint_as_it_is_is_not_there(path, mode):
    PLAIN.memory(3).save(path)
    with pytest.raises(rlm.NotAvailableError, match="lie in many files"):
        rlm.load(path, map=mode)


def test_the_file_for_the_rows_must_be_new(path, tmp_path):
    PLAIN.memory(3).save(path)
    (tmp_path / "mine").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="map"):
        rlm.load(path, map=tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_nothing_there(tmp_path):
    for name in ("none", "none.npz"):
        with pytest.raises(FileNotFoundError, match="nothing at"):
            rlm.load(tmp_path / name)
        with pytest.raises(FileNotFoundError, match="nothing at"):
            rlm.checkpoints(tmp_path / name)
    with pytest.raises(rlm.CheckpointError, match="no checkpoint in"):
        rlm.load(tmp_path)
    assert rlm.checkpoints(tmp_path) == []
    (tmp_path / "text").write_text("text")
    assert rlm.checkpoints(tmp_path / "text") == []
    with pytest.raises(rlm.CheckpointError, match=r"neither a folder nor a \.npz file"):
        rlm.load(tmp_path / "text")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(rlm.CheckpointError, match="not a file"):
        rlm.load(tmp_path / "folder.npz")


def test_a_failing_disk_leaves_what_was_there(path, monkeypatch):
    memory = PLAIN.memory(9, seed=0)
    counted(memory, 5)
    memory.save(path)
    counted(memory, 2, first=5)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            memory.save(path)
    assert len(rlm.load(path)) == 5
    left = {p.name for p in path.parent.iterdir()} | ({p.name for p in path.iterdir()} if path.is_dir() else set())
    assert not any("unfinished" in name for name in left)
    memory.save(path)
    assert len(rlm.load(path)) == 7


# ---- load_state_dict ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (lambda: rlm.ReplayMemory(Spec((3,)), Spec((), "int64"), 9), "observation: the state has the specs"),
        (lambda: rlm.ReplayMemory(Spec((2,)), Spec((), "int32"), 9), "action: the state has"),
        (lambda: rlm.ReplayMemory(Spec((2,)), Spec((), "int64"), 9, reward="float32"), "reward: the state has"),
        (lambda: rlm.ReplayMemory(Spec((2,)), Spec((), "int64"), 9, extra={"a": Spec(())}), "extra: the state has"),
        (lambda: rlm.ReplayMemory(Spec((2,)), Spec((), "int64"), 8), "capacity: the state has 9, this memory has 8"),
        (lambda: rlm.PrioritizedReplayMemory(Spec((2,)), Spec((), "int64"), 9), "class: the state has 'ReplayMemory'"),
    ],
)
def test_a_state_of_another_kind_of_memory_is_refused_by_name(other, named):
    memory = PLAIN.memory(9)
    counted(memory, 5)
    memory = other()
    before = len(memory), memory._rng.bit_generator.state
    with pytest.raises(rlm.CheckpointError, match=named):
        memory.load_state_dict(PLAIN.memory(9).state_dict())
    assert before == (len(memory), memory._rng.bit_generator.state)


def test_a_state_that_was_changed_is_refused_and_changes_nothing():
    memory = make("both")
    use(memory, 61)
    good, twin = memory.state_dict(), copy.deepcopy(memory)
    changes = {
        r"shape \(40, 3\), not float32 of \(3, 3\)": lambda s: s.update(length=3),
        "columns": lambda s: s["columns"].pop("mass"),
        "reward is float64": lambda s: s["columns"].update(reward=np.zeros(40)),
        "a code above 2": lambda s: s["columns"]["is_done"].fill(7),
        "priority": lambda s: s["columns"]["priority"].fill(np.nan),
        "a mass": lambda s: s["columns"]["mass"].fill(-1.0),
        "options": lambda s: s["options"].update(mode="w"),
        "goals": lambda s: s["options"].update(goals=[[9, [0], 9, [0]]]),
        "generator": lambda s: s["generator"].update(bit_generator="os.system"),
        "format": lambda s: s.update(format="1"),
        "strategy": lambda s: s["options"].update(strategy="none"),
    }
    for named, change in changes.items():
        state = copy.deepcopy(good)
        change(state)
        with pytest.raises(rlm.ReplayMemoryError, match=named):
            memory.load_state_dict(state)
    assert_same_future(memory, twin)
    with pytest.raises(rlm.CheckpointError):
        memory.load_state_dict({})
    with pytest.raises(rlm.NotAvailableError, match="newer version"):
        memory.load_state_dict({**good, "format": 2})


def test_a_state_dict_is_a_copy():
    memory = make("plain")
    use(memory, 20)
    state = memory.state_dict()
    before = state["columns"]["reward"].copy()
    memory.set(memory.ids, reward=np.zeros(20, np.float32))
    assert (state["columns"]["reward"] == before).all()


# ---- what is loaded when --------------------------------------------------------------------------------------------


def test_saving_and_loading_need_no_numba(tmp_path):
    code = f"""
import sys, numpy as np, rlmemory as rlm
memory = rlm.ReplayMemory(rlm.NumericSpec((3,)), rlm.NumericSpec(()), 5)
memory.append(np.zeros(3), 1.0, reward=1.0, next_observation=np.ones(3), terminated=False)
print([name for name in sys.modules if name.startswith("rlmemory.files")])
for path in ({str(tmp_path / "a")!r}, {str(tmp_path / "a.npz")!r}):
    memory.save(path)
    assert len(rlm.load(path)) == 1
print([name for name in ("numba", "scipy", "gymnasium") if name in sys.modules])
"""
    assert python(code).split() == ["[]", "[]"]


def test_a_memory_that_held_sources_can_become_one_without(tmp_path):
    memory, other = PLAIN.memory(9, seed=0), PLAIN.memory(9)
    counted(memory, 4)
    counted(other, 9, source=3)
    other.load_state_dict(memory.state_dict())
    counted(other, 5)
    assert other.all().source.tolist() == [0] * 9
    assert other.statistics()["sources"] == {0: 9}
