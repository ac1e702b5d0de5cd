"""Trajectories on a device: the same bytes as on the host, and nothing but ids, ends and masks comes there."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from trajectories.recorded import FILES, equal, leaves, load
from trajectories.support import batches, nested
from trajectories.test_recorded import SAME

import rlmemory as rlm
from rlmemory.kernels import _cuda

from .support import RUNS, Foreign, ForeignDlpack, agree, on_host

pytestmark = [
    pytest.mark.skipif(not RUNS, reason="no CUDA device, and NUMBA_ENABLE_CUDASIM is not set"),
    pytest.mark.filterwarnings("ignore:padding of:UserWarning"),
]
SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=12 if _cuda.SIMULATED else 100)


def numbers_of(data: dict[str, Any]) -> dict[str, Any]:
    """The leaves that a device can hold."""
    inner = {name: numbers_of(value) if isinstance(value, dict) else value for name, value in data.items()}
    return {name: value for name, value in inner.items() if isinstance(value, dict) or value.dtype.kind in "biufc"}


def there(data: Any) -> None:
    """Every leaf is an array of ours on the device."""
    for leaf in leaves(data):
        assert isinstance(leaf, rlm.DeviceArray)
        assert leaf.device == "cuda:0"
        assert leaf.contiguous


def shown_as(data: Any, kind: Any) -> Any:
    return {k: shown_as(v, kind) for k, v in data.items()} if isinstance(data, dict) else kind(data)


@FEW
@given(data=st.data(), batch=batches(), seed=SEEDS, by_id=st.booleans(), kind=st.sampled_from([rlm.to_device, Foreign]))
def test_split_and_its_inverse_are_those_of_the_host(data, batch, seed, by_id, kind):
    rng = np.random.default_rng(seed)
    content = numbers_of(data.draw(nested(batch, seed=seed)))
    options: dict[str, Any] = {"max_length": data.draw(st.none() | st.integers(1, 4))}
    if by_id:
        content["own"] = {"ids": rng.integers(0, 3, batch)}
        options["trajectory_key"] = ("own", "ids")
    else:
        content["next"] = {"end": rng.random((*batch, 1)) < 0.3, "stop": rng.integers(0, 2, (*batch, 1))}
        options["done_key"] = ["end", "stop"]
    if data.draw(st.booleans()):
        options["start_key"] = ("own", "first")
    held = shown_as(content, kind)
    content = on_host(shown_as(content, rlm.to_device))  # of native byte order
    split = rlm.split_trajectories(held, **options)
    there(split)
    wanted = rlm.split_trajectories(content, **options)
    assert list(split) == list(wanted)
    equal(on_host(split), wanted)
    back = rlm.unsplit_trajectories(split, batch_shape=batch)
    there(back)
    equal(on_host(back), rlm.unsplit_trajectories(wanted, batch_shape=batch))
    flat, offsets = rlm.ragged_trajectories(held, **options)
    there(flat)
    equal(on_host(flat), rlm.ragged_trajectories(content, **options)[0])
    lengths = rlm.trajectory_lengths(split["own"]["mask"] if by_id else split["mask"])
    assert isinstance(lengths, np.ndarray)
    assert lengths.tolist() == np.diff(offsets).tolist()
    equal(on_host(shown_as(held, rlm.to_device)), content)


@FEW
@given(batch=batches(), seed=SEEDS, dtype=st.sampled_from(["?", "i1", "u8", "f2", "f8", "c8"]), named=st.booleans())
def test_padding_of_every_kind_of_leaf(batch, seed, dtype, named):
    value = {"?": True, "i1": -7, "u8": 2**63, "f2": np.nan, "f8": -0.0, "c8": 1 + 2j}[dtype]
    rng = np.random.default_rng(seed)
    data = {
        "x": {"leaf": rng.integers(0, 2, (*batch, 2)).astype(dtype)}, "done": rng.random((*batch, 1)) < 0.3,
    }  # fmt: skip
    padding = {"x": {"leaf": [value, 1]}} if named else value
    ours = rlm.split_trajectories(rlm.to_device(data), padding_value=padding)
    there(ours)
    equal(on_host(ours), rlm.split_trajectories(data, padding_value=padding))


@pytest.mark.parametrize(
    "number", SAME[::4] if _cuda.SIMULATED else SAME, ids=lambda number: FILES[number].stem[19:]
)  # fmt: skip
def test_equal_to_torchrl(number):
    case = load(number)
    given, wanted = numbers_of(case["input"]), numbers_of(case["output"])
    result = rlm.split_trajectories(rlm.to_device(given), **case["kwargs"])
    there(result)
    equal(on_host(result), wanted)


def test_arrays_of_any_library_and_what_a_memory_gave_are_taken():
    memory = rlm.ReplayMemory(rlm.NumericSpec((2,)), rlm.NumericSpec(()), 10, device="cuda")
    x = np.arange(12.0).reshape(6, 2)
    memory.extend(x, np.arange(6.0), reward=np.ones(6), next_observation=x + 1, terminated=np.arange(6) % 3 == 1)
    whole = memory.all()
    data = {"obs": whole.observation, "done": whole.terminated, "id": ForeignDlpack(np.arange(6))}
    split = rlm.split_trajectories(data)
    there(split)
    assert on_host(split["id"]).tolist() == [[0, 1, 0], [2, 3, 4], [5, 0, 0]]
    assert on_host(split["obs"])[1].tolist() == x[2:5].tolist()
    assert on_host(split["done"]).tolist() == [[False, True, False], [False, False, True], [False] * 3]


def test_parts_of_larger_arrays_are_taken_from_where_they_begin():
    data = {"x": np.arange(20.0).reshape(10, 2), "done": np.arange(10) % 3 == 0}
    parts = {name: rlm.to_device(leaf)[3:8] for name, leaf in data.items()}
    wanted = rlm.split_trajectories({name: leaf[3:8] for name, leaf in data.items()})
    split = rlm.split_trajectories(parts)
    equal(on_host(split), wanted)
    equal(on_host(rlm.ragged_trajectories(parts)[0]["x"]), data["x"][3:8])
    back = rlm.unsplit_trajectories({name: leaf[1:] for name, leaf in split.items()})
    equal(on_host(back["x"]), data["x"][4:8])
    shifted = rlm.shift_actions(parts["x"], parts["done"])
    equal(on_host(shifted), rlm.shift_actions(data["x"][3:8], data["done"][3:8]))


def test_each_leaf_moves_at_once_and_a_table_of_many_runs_is_no_loop(monkeypatch):
    from rlmemory.kernels import cuda

    calls: list[Any] = []
    monkeypatch.setattr(cuda, "move", lambda block, table, out: calls.append(table))
    count = 1_000_000
    done = np.ones(count, bool)
    done[0] = False
    rlm.split_trajectories(rlm.to_device({"done": done, "x": np.zeros((count, 2), np.int16)}))
    assert [len(table) for table in calls] == [2 * count - 3] * 4  # done, x, the ids, the mask
    data, zeros = calls[1][: count - 1], calls[1][count - 1 :]
    assert data[:3].tolist() == [[0, 8, 0], [8, 4, 8], [12, 4, 16]]
    assert zeros[:2].tolist() == [[-1, 4, 12], [-1, 4, 20]]


def test_leaves_with_gaps_are_split_like_others():
    host = {"x": np.arange(12.0).reshape(3, 4).T, "done": np.array([False, True, False, False])}
    lifted = {"x": rlm.to_device(np.arange(12.0).reshape(3, 4)).transpose(), "done": rlm.to_device(host["done"])}
    agree(rlm.split_trajectories(host), rlm.split_trajectories(lifted))
    assert (
        on_host(rlm.returns_to_go(lifted["x"], lifted["done"], 0.5)).tolist()
        == rlm.returns_to_go(host["x"], host["done"], 0.5).tolist()
    )


def test_what_is_needed_on_the_device_and_what_on_the_host_is_said():
    done = rlm.to_device(np.array([False, True]))
    with pytest.raises(rlm.DataTypeError, match=r"\('a', 'x'\): this list is on the host.* 'done' is on.*to_device"):
        rlm.split_trajectories({"a": {"x": [1, 2]}, "done": done})
    with pytest.raises(rlm.DataTypeError, match=r"padding_value of 'x'.*on the host.*to_host"):
        rlm.split_trajectories({"x": rlm.to_device(np.ones(2)), "done": done}, padding_value={"x": done})
    with pytest.raises(rlm.ShapeError, match=r"'x': expected the batch shape \(2,\) first, got \(3,\)"):
        rlm.split_trajectories({"x": rlm.to_device(np.ones(3)), "done": done})
    with pytest.raises(rlm.ShapeError, match="'x': expected the mask's shape"):
        rlm.unsplit_trajectories({"x": rlm.to_device(np.ones(3)), "mask": rlm.to_device(np.ones((1, 2), bool))})
    with pytest.raises(rlm.ShapeError, match="padding before a real step"):
        rlm.trajectory_lengths(rlm.to_device(np.array([False, True])))


def test_much_padding_is_warned_of():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = np.ones(200, bool)
        done[:50] = False
        rlm.split_trajectories(rlm.to_device({"done": done}))
    assert "padding of" in str(caught[0].message)
    assert caught[0].filename == __file__


# ---- previous actions -----------------------------------------------------------------------------------------------


@FEW
@given(
    batch=batches(), seed=SEEDS, dtype=st.sampled_from(["i2", "f4", "f8", "c8"]),
    feature=st.sampled_from([(), (3,), (0,)]), default=st.sampled_from(["zeros", -1, "rows"]),
)  # fmt: skip
def test_shifted_actions_are_those_of_the_host(batch, seed, dtype, feature, default):
    rng = np.random.default_rng(seed)
    actions = rng.integers(-9, 9, (*batch, *feature)).astype(dtype)
    starts = rng.random(batch) < 0.3
    if default == "rows":
        default = rng.integers(0, 9, (*batch[:-1], *feature))
    ours = rlm.shift_actions(rlm.to_device(actions), Foreign(starts), default)
    assert isinstance(ours, rlm.DeviceArray)
    equal(on_host(ours), rlm.shift_actions(actions, starts, default))


def test_each_environment_has_its_own_default():
    actions, starts = np.arange(12).reshape(2, 3, 2), np.zeros((2, 3), bool)
    ours = rlm.shift_actions(rlm.to_device(actions), rlm.to_device(starts), [[7, 8], [9, 10]])
    assert on_host(ours)[:, 0].tolist() == [[7, 8], [9, 10]]


def test_dicts_and_tuples_of_actions_are_shifted():
    actions = {"a": np.arange(4), "b": (np.arange(8.0).reshape(4, 2), np.arange(4, 8))}
    starts = np.array([True, False, True, False])
    ours = rlm.shift_actions(rlm.to_device(actions), rlm.to_device(starts), 7)
    theirs = rlm.shift_actions(actions, starts, 7)
    equal(on_host(ours["a"]), theirs["a"])
    for a, b in zip(on_host(ours["b"]), theirs["b"], strict=True):
        equal(a, b)
    with pytest.raises(rlm.ShapeError, match=r"actions\['b'\]\[1\]: expected the shape of starts"):
        rlm.shift_actions(rlm.to_device({"b": (np.zeros(4), np.zeros(3))}), rlm.to_device(starts))
