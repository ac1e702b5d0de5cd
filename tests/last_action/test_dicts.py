"""LastAction and shift_actions on dicts of arrays, against loops."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rlmemory as rlm

from .support import same

DTYPES = st.sampled_from(["bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex64"])


@st.composite
def stored(draw, most_axes=3):
    """Actions, the ends of their episodes, in [N], [B, T] or [B1, B2, T]; empty ones too."""
    batch = draw(hnp.array_shapes(min_dims=1, max_dims=most_axes, min_side=0, max_side=5))
    shape = draw(st.sampled_from([(), (2,), (2, 3), (0,), (1,)]))
    dtype = np.dtype(draw(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    actions = rng.integers(0, 100, batch + shape).astype(dtype)
    return actions, rng.random(batch) < draw(st.sampled_from([0.0, 0.3, 1.0])), shape


def naive(actions, ends, default):
    """The previous action of each row, one row after another."""
    out = np.empty_like(actions)
    for at in np.ndindex(ends.shape):
        before = (*at[:-1], at[-1] - 1)
        out[at] = default if at[-1] == 0 or ends[before] else actions[before]
    return out


def frozen(array):
    array.setflags(write=False)
    return array


@given(stored(), st.booleans(), st.sampled_from([0, 1]))
def test_forward_is_the_loop(case, trailing, default):
    actions, ends, _ = case
    done = ends[..., None] if trailing or ends.shape[1:] == (1,) else ends
    data = {"action": frozen(actions), "next": MappingProxyType({"done": frozen(done)}), "other": object()}
    if (done.shape[:-1] if done.ndim > 1 and done.shape[-1] == 1 else done.shape) != ends.shape:
        return  # such a flag stands for another batch shape
    made = rlm.LastAction(default=default).forward(MappingProxyType(data))
    assert same(made["last_action"], naive(actions, ends, default))
    assert same(made["next"]["last_action"], actions)
    assert not np.shares_memory(made["next"]["last_action"], actions)
    assert set(data) == {"action", "next", "other"}
    assert set(data["next"]) == {"done"}


@given(stored(2), st.sampled_from([0, 1]))
def test_step_by_step_is_forward(case, default):
    actions, ends, shape = case
    if actions.size == 0:
        return
    actions, ends = actions.reshape(-1, ends.shape[-1], *shape), ends.reshape(-1, ends.shape[-1])
    count, steps = ends.shape
    at_once = rlm.LastAction(default=default).forward({"action": actions, "next": {"done": ends[..., None]}})
    last = rlm.LastAction(default=default, action_spec=rlm.NumericSpec(shape, actions.dtype))
    none = np.zeros((count, 1), bool)
    data = last.reset({"done": none})
    for t in range(steps):
        assert same(data["last_action"], at_once["last_action"][:, t])
        following = last.step({**data, "action": actions[:, t]}, {"done": ends[:, t, None]})
        assert same(following["last_action"], at_once["next"]["last_action"][:, t])
        data = last.reset({**following, "_reset": ends[:, t, None], "done": none})


@given(stored())
def test_shifted_actions_are_the_loop(case):
    actions, starts, _ = case
    ends = np.zeros_like(starts)
    ends[..., :-1] = starts[..., 1:]
    assert same(rlm.shift_actions(actions, starts, 1), naive(actions, ends, 1))
    both = rlm.shift_actions({"a": actions, "b": (actions,)}, starts)
    assert same(both["b"][0], naive(actions, ends, 0))


def test_actions_of_a_batch_of_windows_are_shifted_by_is_first():
    is_first = np.array([[True, False, True], [False, True, False]])
    made = rlm.shift_actions(np.arange(6).reshape(2, 3), is_first, -1)
    assert made.tolist() == [[-1, 0, -1], [-1, -1, 4]]
    rows = rlm.shift_actions(np.arange(6).reshape(2, 3), is_first, [-1, -2])
    assert rows.tolist() == [[-1, 0, -1], [-2, -2, 4]]


def test_shifting_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="to come first"):
        rlm.shift_actions(np.zeros(3), [True, False])
    with pytest.raises(TypeError, match="expected bools"):
        rlm.shift_actions(np.zeros(2), [1, 0])
    with pytest.raises(ValueError, match="does not fit an action of shape"):
        rlm.shift_actions(np.zeros((2, 2)), [True, False], [1, 2, 3])
    with pytest.raises(ValueError, match="to come first"):
        rlm.shift_actions(1.0, True)


def test_ends_are_found_where_they_are():
    actions, ends = np.arange(4), np.array([False, True, False, False])
    expected = [-1, 0, -1, 2]
    flags = {"terminated": ends, "truncated": np.zeros(4, bool)}
    for data, options in [
        ({"next": {"done": ends}, "done": ~ends}, {}),
        ({"done": ends}, {}),
        ({"next": flags}, {}),
        (flags, {}),
        ({"terminated": np.array([0, 0, 0, 0]), "truncated": ends.astype(int)}, {}),
        ({"next": {"a": {"over": ends}}, "cut": np.zeros(4, bool)}, {"done_key": [("a", "over"), "cut"]}),
        ({"over": ends}, {"done_key": "over"}),
        ({"traj_ids": np.array([7, 7, 3, 3]), "done": ~ends}, {}),
        ({"collector": {"traj_ids": np.array([7, 7, 3, 3])}, "done": ~ends}, {}),
        ({"collector": {"traj_ids": np.array([7, 7, 7, 7])}, "done": ends}, {"done_key": "done"}),
        ({"my": {"ids": np.array([7, 7, 3, 3])}, "traj_ids": np.arange(4)}, {"trajectory_key": ("my", "ids")}),
    ]:
        made = rlm.LastAction(default=-1).forward({"action": actions, **data}, **options)
        assert made["last_action"].tolist() == expected, (data, options)


def test_what_is_missing_is_named():
    last = rlm.LastAction()
    with pytest.raises(KeyError, match=r"no \['done', 'terminated', 'truncated'\] under 'next' or at root"):
        last.forward({"action": np.zeros(3)})
    with pytest.raises(KeyError, match=r"no \['over'\]"):
        last.forward({"action": np.zeros(3), "done": np.zeros(3, bool)}, done_key=["done", "over"])
    with pytest.raises(KeyError, match=r"no entry \('a', 'ids'\)"):
        last.forward({"action": np.zeros(3)}, trajectory_key=("a", "ids"))
    with pytest.raises(KeyError, match="give action_spec"):
        last.reset({"observation": np.zeros(3)})
    with pytest.raises(KeyError, match="give action_spec"):
        last.transform_observation_spec({})
    with pytest.raises(ValueError, match="axis of time"):
        last.forward({"action": np.zeros(3), "done": np.zeros((), bool)})
    with pytest.raises(ValueError, match="batch shape"):
        last.forward({"action": np.zeros(3), "done": np.zeros(4, bool)})


def test_the_action_is_learned_from_the_first_data_that_holds_one():
    last = rlm.LastAction(default=9)
    last.step({"action": np.zeros((3, 2), np.float32)}, {"done": np.zeros((3, 1), bool)})
    assert same(last.reset({})["last_action"], np.full((3, 2), 9, np.float32))
    assert same(last.reset({"done": np.zeros((5, 1), bool)})["last_action"], np.full((5, 2), 9, np.float32))
    assert last.transform_observation_spec({})["last_action"] == rlm.NumericSpec(2, "float32")
    with pytest.raises(ValueError, match="expected an action of shape"):
        last.step({"action": np.zeros(3, np.float32)}, {})
    with pytest.raises(ValueError, match="cannot be stored"):
        rlm.LastAction(action_spec=rlm.NumericSpec((), "int8")).step({"action": 300}, {})


def test_what_the_first_action_cannot_hold_is_said_when_it_is_seen():
    last = rlm.LastAction(default="nan")
    with pytest.raises(ValueError, match="int64 holds no NaN"):
        last.step({"action": np.arange(3)}, {})
    with pytest.raises(ValueError, match="does not fit"):
        rlm.LastAction(default=[1, 2, 3]).step({"action": np.zeros(2)}, {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_keys": []}, "at least one key"),
        ({"in_keys": 3}, "expected a key"),
        ({"in_keys": ()}, "expected a key"),
        ({"in_keys": ["a", 1]}, "expected a key"),
        ({"in_keys": "a", "out_keys": ["b", "c"]}, "1 in_keys and 2 out_keys"),
        ({"in_keys": "a", "out_keys": "a"}, "would write over 'a'"),
        ({"in_keys": ("a", "b"), "out_keys": "a"}, "would write over"),
        ({"in_keys": ["a", "b"], "out_keys": ["c", ("c", "d")]}, "would write over 'c'"),
        ({"default": "ones"}, "expected \"zeros\", \"nan\""),
        ({"default": "nan", "action_spec": rlm.NumericSpec(2, "int32")}, "int32 holds no NaN"),
        ({"default": [1, 2, 3], "action_spec": rlm.NumericSpec(2)}, "does not fit"),
        ({"default": np.zeros((3, 2, 3)), "action_spec": rlm.NumericSpec((2,))}, "does not fit"),
        ({"default": 1e300, "action_spec": rlm.NumericSpec(2, "float32")}, "cannot be stored as float32"),
        ({"reset_key": 3}, "reset_key: expected a key"),
        ({"action_spec": 3}, "expected a spec or a Gymnasium space"),
        ({"action_spec": [rlm.NumericSpec(1)] * 2}, "2 specs for 1 in_keys"),
        ({"action_spec": spaces.Tuple([spaces.Discrete(2)])}, "several channels"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_at_construction(arguments, message):
    with pytest.raises(ValueError, match=message):
        rlm.LastAction(**arguments)


def test_specs_are_taken_in_every_form():
    for spec in (
        {"a": rlm.NumericSpec(2), "b": {"c": rlm.NumericSpec((), "int8")}},
        [rlm.NumericSpec(2), rlm.NumericSpec((), "int8")],
        spaces.Dict({"a": spaces.Box(-1, 1, (2,), np.float64), "b": spaces.Dict({"c": spaces.Box(0, 9, (), np.int8)})}),
    ):
        last = rlm.LastAction(["a", ("b", "c")], action_spec=spec)
        made = last.reset({})
        assert same(made["last_action"], np.zeros(2))
        assert same(made["b"]["last_action"], np.zeros((), np.int8))
    assert same(rlm.LastAction(action_spec=spaces.Discrete(3)).reset({})["last_action"], np.zeros((), int))
    assert "['a', ('b', 'c')]" in repr(last)


def test_an_action_learned_without_ends_keeps_its_batch_axes():
    last = rlm.LastAction(default=FULL)
    following = last.step({"action": np.ones((3, 2))}, {})
    assert same(last.reset({})["last_action"], FULL)
    for mask in (np.array([True, False, False]), np.array([[True], [False], [False]])):
        after = last.reset({**following, "_reset": mask})
        assert same(after["last_action"], np.concatenate([FULL[:1], np.ones((2, 2))]))
        assert same(last.reset({"_reset": mask})["last_action"], FULL)


FULL = np.array([[1.0, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (3, 3)])
def test_as_many_environments_as_the_action_has_entries_are_no_trap(shape):
    last = rlm.LastAction(default=7, action_spec=rlm.NumericSpec(shape))
    for count in (1, 2, 3):
        done = np.zeros((count, 1), bool)
        data = last.reset({"done": done})
        assert same(data["last_action"], np.full((count, *shape), 7.0))
        action = np.arange(data["last_action"].size, dtype=float).reshape(count, *shape)
        following = last.step({**data, "action": action}, {"done": done})
        assert same(following["last_action"], action)
        after = last.reset({**following, "_reset": np.arange(count)[:, None] == 0})
        assert same(after["last_action"], np.concatenate([np.full((1, *shape), 7.0), action[1:]]))


def test_a_mask_with_more_axes_takes_any_of_them():
    last = rlm.LastAction()
    data = last.step({"action": np.ones((3, 2)), "done": np.zeros((3, 1), bool)}, {})
    agents = np.zeros((3, 2, 1), bool)
    agents[1, 1] = True
    made = last.reset({**data, "agents": {"_reset": agents}})
    assert made["last_action"].tolist() == [[1, 1], [0, 0], [1, 1]]
    assert same(last.reset({"agents": {"_reset": agents}})["last_action"], np.zeros((3, 2)))
    with pytest.raises(ValueError, match="the reset mask of shape"):
        last.reset({**data, "_reset": np.zeros(4, bool)})
    with pytest.raises(TypeError, match="expected bools"):
        last.reset({**data, "_reset": np.zeros(3)})


def test_a_dict_action_is_named_part_by_part():
    action = {"move": np.ones(2), "jump": np.array(True)}
    with pytest.raises(TypeError, match="name its arrays as in_keys"):
        rlm.LastAction().step({"action": action}, {})
    last = rlm.LastAction([("action", "move"), ("action", "jump")], [("last", "move"), ("last", "jump")])
    made = last.step({"action": action}, {})
    assert same(made["last"]["move"], np.ones(2))
    assert same(made["last"]["jump"], np.array(True))


def test_the_action_is_copied_and_no_input_is_changed():
    last, action = rlm.LastAction(), np.array([0.1, 0.2])
    data, following = {"action": action}, {"hist": {"x": 1}}
    made = last.step(data, following)
    action[:] = 9
    assert made["last_action"].tolist() == [0.1, 0.2]
    assert following == {"hist": {"x": 1}}
    assert "last_action" not in data
    nested = rlm.LastAction(out_keys=("hist", "prev")).step(data, following)
    assert set(nested["hist"]) == {"x", "prev"}
    assert following == {"hist": {"x": 1}}
    with pytest.raises(ValueError, match="is an array"):
        rlm.LastAction(out_keys=("x", "prev")).step(data, {"x": np.zeros(2)})


def test_actions_of_a_memory():
    memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec((), "int64"), 10, seed=0)
    memory.extend(np.arange(6.0), np.arange(6), reward=np.zeros(6), next_observation=np.arange(1.0, 7),
                  terminated=np.arange(6) == 2)  # fmt: skip
    whole = memory.all()
    made = rlm.LastAction(default=-1).forward(whole._asdict())
    assert made["last_action"].tolist() == [-1, 0, 1, -1, 3, 4]


def test_each_environment_may_have_its_own_default_in_stored_data_too():
    data = {"action": np.arange(6).reshape(2, 3), "done": np.array([[False, True, False]] * 2)}
    made = rlm.LastAction(default=[-1, -2]).forward(data)
    assert made["last_action"].tolist() == [[-1, 0, -1], [-2, 3, -2]]
    with pytest.raises(ValueError, match="nor is it a row for each"):
        rlm.LastAction(default=[-1, -2, -3]).forward(data)
    with pytest.raises(ValueError, match="would be hidden"):
        rlm.LastAction().forward({**data, "last_action": np.zeros((2, 3))})
    assert rlm.LastAction().forward(made)["last_action"].tolist() == [[0, 0, 0], [0, 3, 0]]
