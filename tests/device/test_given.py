"""What is on the device is stored as it lies there; what does not fit is an error that changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory import device_arena

from .pairs import GOALS, LAYOUTS, make, row_of, story
from .support import WRAPPERS, Foreign, ForeignDlpack, Pair, needs_device, on_host, unchanged

pytestmark = needs_device

MIXED = "dict, vector reward, extra"


def pair(name: str, capacity: int = 9) -> Pair:
    return Pair(lambda device: make(name, capacity, device))


def lifted(value: Any, wrap: Any) -> Any:
    if isinstance(value, dict):
        return {key: lifted(part, wrap) for key, part in value.items()}
    return tuple(lifted(part, wrap) for part in value) if isinstance(value, tuple) else wrap(value)


def rows_for(name: str, count: int, seed: int = 0) -> dict[str, Any]:
    return story(LAYOUTS[name], np.random.default_rng(seed), count)


@pytest.fixture(params=sorted(WRAPPERS))
def wrap(request: pytest.FixtureRequest) -> Any:
    return WRAPPERS[request.param]


# ---- stored ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(LAYOUTS))
@pytest.mark.parametrize("staged", [1, 1 << 18])
def test_arrays_on_the_device_are_stored_as_those_of_the_host(name, wrap, staged, monkeypatch):
    monkeypatch.setattr(device_arena, "_STAGED", staged)
    both = pair(name)
    for count in (1, 2, 5, 20):
        given = rows_for(name, count, count)
        both.here.extend(**given)
        both.there.extend(**lifted(given, wrap))
        one = row_of(given, 0)
        both.here.append(**one)
        both.there.append(
            **lifted({k: np.asarray(v) if k in ("terminated", "source") else v for k, v in one.items()}, wrap)
        )
        both.compare()
        both.sample(4, n_step=3, previous=True)


@pytest.mark.parametrize("field", ["observation", "action", "reward", "next_observation", "extra", "terminated"])
def test_host_and_device_may_be_mixed_in_one_call(field, wrap):
    """Rows that wait on the host must neither be lost nor come over what goes straight to the device."""
    both = pair(MIXED, 16)
    for k, count in enumerate((1, 3, 1, 20, 2)):
        given = rows_for(MIXED, count, k)
        mixed = {name: lifted(value, wrap) if name == field else value for name, value in given.items()}
        both.here.extend(**given)
        both.there.extend(**mixed)
        both.append(**row_of(given, 0))
        both.here.append(**row_of(given, count - 1))
        both.there.append(**{n: lifted(v, wrap) if n == field else v for n, v in row_of(given, count - 1).items()})
        both.append(**row_of(given, 0))
        both.compare()
    both.check()


def test_leaves_of_one_channel_may_be_on_both_sides(wrap):
    both, given = pair(MIXED), rows_for(MIXED, 5)
    observation = {**given["observation"], "speed": wrap(given["observation"]["speed"])}
    both.here.extend(**given)
    both.there.extend(**{**given, "observation": observation})
    both.compare()


def test_set_takes_fields_that_are_on_the_device(wrap):
    both = pair(MIXED)
    both.extend(**rows_for(MIXED, 14))
    ids = np.array(both.here.ids)[[3, 1, 3, 0]]
    for name, value in rows_for(MIXED, 4, 8).items():
        both.here.set(ids, **{name: value})
        both.there.set(wrap(ids), **{name: lifted(value, wrap)})
        both.compare()
        both.sample(5, n_step=2)


def test_priorities_and_ids_may_be_on_the_device(wrap):
    both = Pair(lambda device: make("prioritized, batch", 9, device))
    given = rows_for(MIXED, 5)
    both.here.extend(**given, priority=np.arange(5.0))
    both.there.extend(**given, priority=wrap(np.arange(5.0)))
    both.here.append(**row_of(given, 0), priority=np.float64(7.0))
    both.there.append(**row_of(given, 0), priority=wrap(np.float64(7.0)))
    ids, errors = np.array([3, 1, 3, -1]), np.array([[2.0], [0.5], [9.0], [1.0]], np.float32)
    assert both.here.update_priorities(ids, errors) == 1
    assert both.there.update_priorities(wrap(ids), wrap(errors)) == 1
    assert both.here.priorities().tobytes() == both.there.priorities().tobytes()
    both.compare()
    both.sample(5)


def test_ids_of_windows_need_not_lie_one_behind_the_other(wrap):
    memory = make("prioritized, batch", 9, "cuda")
    memory.extend(**rows_for(MIXED, 9))
    batch = memory.sample(4, sequence_length=3, burn_in=1)
    assert memory.update_priorities(batch.id[:, 1], np.arange(4.0)) == 0
    wanted = memory.get(batch.id.copy_to_host()[:, 1])
    assert on_host(memory.get(batch.id[:, 1]).id).tolist() == on_host(wanted.id).tolist()


def test_an_episode_that_ends_on_the_device_gets_its_hindsight(wrap):
    both = Pair(lambda device: make("HindsightReplayMemory, episode, store", 40, device))
    given = story(GOALS, np.random.default_rng(0), 7)
    flags = {"terminated": np.arange(7) == 6, "truncated": np.zeros(7, bool), "source": np.zeros(7, np.int32)}
    for i in range(7):
        one = row_of({**given, **flags}, i)
        both.here.append(**one)
        both.there.append(**{**one, "observation": lifted(one["observation"], wrap)})
    assert len(both.there) == 7 + 2 * 7
    both.compare()


# ---- refused --------------------------------------------------------------------------------------------------------


def wrong(what: str, good: np.ndarray) -> tuple[Any, type[Exception], str]:
    """An array that does not do in the place of `good`, and the error that it gives."""
    there = rlm.to_device(good)
    return {
        "another dtype": (rlm.to_device(good.astype(np.float16)), rlm.DataTypeError, "expected .*got float16"),
        "another byte order": (Foreign(good, typestr=">f4"), rlm.DataTypeError, "got >f4"),
        "another shape": (there[:, None], rlm.ShapeError, "expected shape"),
        "fewer rows": (there[:-1], rlm.ShapeError, "expected shape"),
        "another device": (other_device(there), rlm.DataTypeError, "cuda:1.*cuda:0"),
        "another device, interface": (Foreign(good, number=1), rlm.DataTypeError, "cuda:1.*cuda:0"),
        "another device, DLPack": (ForeignDlpack(good, number=1), rlm.DataTypeError, "cuda:1.*cuda:0"),
        "a list of them": ([there[0], there[1]], rlm.ShapeError, "to_host"),
    }[what]


def other_device(array: Any) -> Any:
    return type(array)(array._block, array._at, array.shape, array.dtype, 1, None, array._plan)


WRONG = [
    "another dtype", "another byte order", "another shape", "fewer rows", "another device",
    "another device, interface", "another device, DLPack", "a list of them",
]  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("call", ["extend", "set", "append"])
@pytest.mark.parametrize("waiting", [False, True])
def test_what_does_not_fit_is_an_error_that_names_the_field_and_changes_nothing(what, call, waiting):
    memory = make(MIXED, 9, "cuda")
    memory.extend(**rows_for(MIXED, 12))
    if waiting:
        memory.append(**row_of(rows_for(MIXED, 1), 0))
    given = rows_for(MIXED, 4, 1)
    given = row_of(given, 0) if call == "append" else given
    value, error, words = wrong(what, given["reward"])
    bad = {**given, "reward": value}
    if call == "set":
        bad = {"ids": list(memory.ids)[:4], "observation": given["observation"], "reward": value}
    with unchanged(memory), pytest.raises(error, match=f"(?s)reward.*{words}"):
        getattr(memory, call)(**bad)


WITH_GAPS = {
    "every second entry": lambda rows: rlm.to_device(np.repeat(rows, 2, axis=0))[::2],
    "backwards": lambda rows: rlm.to_device(rows[::-1])[::-1],
    "transposed": lambda rows: rlm.to_device(np.ascontiguousarray(rows.T)).transpose(),
    "of another library": lambda rows: Foreign(0, lifted=rlm.to_device(np.repeat(rows, 2, axis=0))[1::2]),
}


@pytest.mark.parametrize("what", WITH_GAPS)
def test_arrays_with_gaps_are_stored_like_others(what):
    given = rows_for("one array", 4)
    lifted = {key: WITH_GAPS[what](np.asarray(given[key])) for key in ("observation", "reward", "next_observation")}
    both = Pair(lambda device: make("one array", 9, device))
    both.here.extend(**given)
    both.there.extend(**{**given, **lifted})
    both.compare()
    both.here.set([1, 3], observation=given["observation"][:2])
    both.there.set(
        [1, 3], observation=lifted["observation"][:2] if what != "of another library" else given["observation"][:2]
    )
    both.compare()


class OnlyInterface:
    """What shows nothing but ``__cuda_array_interface__``, no shape either."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.kept = array


def test_an_array_that_shows_nothing_but_its_interface_is_stored():
    memory = make("one array", 9, "cuda")
    given = rows_for("one array", 4)
    memory.extend(**{**given, "observation": OnlyInterface(rlm.to_device(given["observation"]))})
    assert on_host(memory.all().observation).tolist() == given["observation"].tolist()


@pytest.mark.parametrize("what", ["another dtype", "another shape", "another device, DLPack"])
def test_the_first_field_is_looked_at_like_the_others(what):
    memory = make("one array", 9, "cuda")
    given = rows_for("one array", 4)
    value, error, _ = wrong(what, given["observation"])
    with unchanged(memory), pytest.raises(error, match="observation"):
        memory.extend(**{**given, "observation": value})


@pytest.mark.parametrize("field", ["observation", "action", "reward", "next_observation", "terminated", "source"])
def test_a_memory_on_the_cpu_says_how_an_array_comes_to_it(field, wrap):
    memory = make("one array", 9, "cpu")
    memory.extend(**rows_for("one array", 4))
    given = rows_for("one array", 4, 1)
    bad = {**given, field: wrap(given[field])}
    with unchanged(memory):
        with pytest.raises(rlm.DataTypeError, match=f"{field}.*to_host"):
            memory.extend(**bad)
        with pytest.raises(rlm.DataTypeError, match=f"{field}.*to_host"):
            memory.append(**{**row_of(given, 0), field: wrap(given[field][0])})
        with pytest.raises(rlm.DataTypeError, match=f"{field}.*to_host"):
            memory.set([0, 1, 2, 3], **{field: wrap(given[field])})
        with pytest.raises(rlm.DataTypeError, match=r"ids.*to_host"):
            memory.get(wrap(np.arange(2)))


def test_flags_and_sources_on_the_device_are_checked_as_those_of_the_host(wrap):
    memory, given = make("one array", 9, "cuda"), rows_for("one array", 4)
    memory.extend(**given)
    with unchanged(memory):
        with pytest.raises(rlm.ValueNotRepresentableError, match="terminated"):
            memory.extend(**{**given, "terminated": wrap(np.array([0, 1, 2, 0], np.uint8))})
        with pytest.raises(rlm.ShapeError, match="truncated"):
            memory.extend(**{**given, "truncated": wrap(np.zeros(3, bool))})
        with pytest.raises(rlm.ValueNotRepresentableError, match="source"):
            memory.extend(**{**given, "source": wrap(np.array([0, 0, -1, 0]))})
        with pytest.raises(rlm.StaleIdError, match="ids: 4 "):
            memory.get(wrap(np.array([0, 4])))
        with pytest.raises(rlm.StaleIdError, match="ids: 9 "):
            memory.set(wrap(np.array([9])), terminated=wrap(np.array([True])))
    memory.extend(**{**given, "terminated": wrap(np.array([0, 1, 1, 0], np.uint8))})
    assert on_host(memory.all().terminated)[-4:].tolist() == [False, True, True, False]


def test_priorities_on_the_device_are_checked_as_those_of_the_host(wrap):
    memory = make("prioritized, batch", 9, "cuda")
    given = rows_for(MIXED, 4)
    memory.extend(**given)
    before = memory.priorities()
    with unchanged(memory):
        with pytest.raises(ValueError, match="priority"):
            memory.update_priorities(wrap(np.arange(2)), wrap(np.array([1.0, np.nan])))
        with pytest.raises(ValueError, match="priority"):
            memory.extend(**given, priority=wrap(np.array([1.0, 1.0, -1.0, 0.0])))
        with pytest.raises(rlm.StaleIdError, match="bools"):
            memory.update_priorities(wrap(np.array([True, False])), wrap(np.ones(2)))
    assert memory.priorities().tobytes() == before.tobytes()


def test_out_must_be_of_the_same_call_on_the_same_device():
    both = Pair(lambda device: make("one array", 9, device, seed=1))
    both.extend(**rows_for("one array", 9))
    here, there = both.here.sample(4), both.there.sample(4)
    view = there._replace(id=there.id[:])
    elsewhere = there._replace(id=other_device(there.id))
    for memory, out in (
        (both.here, there), (both.there, here), (both.there, both.there.sample(5)), (both.there, both.there.all()),
        (both.there, view), (both.there, elsewhere), (both.there, 3),
        (both.there, both.there.sample(4, previous=True)),
    ):  # fmt: skip
        with unchanged(memory), pytest.raises(rlm.StructureError, match="out: expected the result of the same call"):
            memory.sample(4, out=out)
    with pytest.raises(rlm.StructureError, match="out"):
        both.there.all(out=there)
    with unchanged(both.there), pytest.raises(ValueError, match=r"pinned.*cuda:0"):
        both.there.sample(4, pinned=True)


def test_a_batch_is_not_taken_for_experiences():
    memory = make("one array", 9, "cuda")
    memory.extend(**rows_for("one array", 5))
    with unchanged(memory), pytest.raises(rlm.StructureError, match="extend_from"):
        memory.extend_from(memory.trajectories())
