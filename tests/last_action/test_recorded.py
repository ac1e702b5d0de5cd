"""What TorchRL's transform did in recorded cases, done again; where ours differs on purpose, the test says how.

The environments that the cases were recorded with are done again in Gymnasium and NumPy.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import rlmemory as rlm
from rlmemory.wrappers import LastActionObservation
from rlmemory.wrappers.vector import LastActionObservation as VectorLastAction

from .support import BOX, DATA, Tiny, check_clean, decoded, same, vector

CASES = {
    record["name"]: record
    for record in (json.loads(path.read_text()) for path in sorted((DATA / "torchrl").glob("last_action_*.json")))
}

#: Cases that have no meaning here, and why.
DO_NOT_APPLY = {
    "replay_buffer": "a transform inside TorchRL's replay buffer; forward works on stored data, see forward_detached",
    "after_discretizer": "about TorchRL's ActionDiscretizer; Gymnasium's action wrappers stand outside or inside ours",
    "after_discretizer_check": "about TorchRL's ActionDiscretizer",
    "after_action_scaling": "about TorchRL's ActionScaling",
    "cat_with_obs": "about TorchRL's CatTensors; flatten=True does it here",
    "config": "about Hydra",
    "config_list_default": "about Hydra; a list as default works here, see default_list",
}


def output(name: str) -> dict:
    assert CASES[name]["outcome"] == "ok"
    return decoded(CASES[name]["output"])


def failed(name: str) -> None:
    assert CASES[name]["outcome"] == "error"


# ---- defaults: name -> (default, action space, encoding) ------------------------------------------------------------

DISCRETE = spaces.Discrete(3)
DEFAULTS = {
    "discrete_default_minus1": (-1, DISCRETE, "raw"),
    "multidiscrete_onehot": ("zeros", spaces.MultiDiscrete([2, 3]), "one_hot"),
    "multibinary": ("zeros", spaces.MultiBinary(3), "raw"),
    "default_nan": ("nan", BOX, "raw"),
    "default_out_of_range_number": (7, BOX, "raw"),
    "default_bool": (True, BOX, "raw"),
    "default_tensor_full": (np.array([0.25, -3.0], np.float32), BOX, "raw"),
    "default_tensor_scalar": (np.float32(0.25), BOX, "raw"),
    "default_tensor_f64": (np.array([0.1, 0.2]), BOX, "raw"),
    "default_ndarray_scalar": (np.float32(0.5), BOX, "raw"),
}


def encoded_spec(space: spaces.Space, encoding: str) -> rlm.NumericSpec:
    """The spec of the action as TorchRL's environment has it: one-hot codes are its actions."""
    return rlm.NumericSpec((int(np.sum(space.nvec)),), "int64") if encoding == "one_hot" else rlm.spec_from_space(space)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_reset_gives_the_recorded_default_in_the_wrapper_and_on_dicts(name):
    default, space, encoding = DEFAULTS[name]
    recorded = output(name)
    env = LastActionObservation(Tiny(space), default=default, encoding=encoding)
    entry = env.observation_space["last_action"]
    assert (list(entry.shape), str(entry.dtype)) == (recorded["spec"]["shape"], recorded["spec"]["dtype"])
    first, _ = env.reset()
    assert same(first["last_action"], recorded["reset_last_action"])
    assert (first in env.observation_space) == (default != "nan" if isinstance(default, str) else True)

    spec = encoded_spec(space, encoding)
    last = rlm.LastAction(default=default, action_spec=spec)
    made = last.transform_observation_spec({"observation": rlm.NumericSpec((1,))})["last_action"]
    assert (list(made.shape), made.dtype.name) == (recorded["spec"]["shape"], recorded["spec"]["dtype"])
    assert made.low is made.high is None
    assert same(last.reset({"observation": np.zeros(1)})["last_action"], recorded["reset_last_action"])


@pytest.mark.parametrize("name", ["multidiscrete_onehot", "multibinary"])
def test_a_step_gives_the_action(name):
    assert output(name)["same"]
    _, space, encoding = DEFAULTS[name]
    env = LastActionObservation(Tiny(space), encoding=encoding)
    env.reset()
    action = space.sample()
    expected = (
        action
        if encoding == "raw"
        else np.concatenate([np.eye(2, dtype=int)[action[0]], np.eye(3, dtype=int)[action[1]]])
    )
    assert same(env.step(action)[0]["last_action"], expected)


#: name -> (default, what ours raises at construction)
REFUSED = {
    "default_nan_int": ("nan", "int64 holds no NaN"),
    "default_float_nan_int": (math.nan, "int64 holds no NaN"),
    "default_none": (None, "got None"),
    "default_tensor_extra_dim": (np.array([[1.0, 2.0]]), "does not fit an action of shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_default_that_fails_at_the_first_reset_there_fails_at_construction_here(name):
    failed(name)
    assert CASES[name]["stage"] == "reset"
    default, message = REFUSED[name]
    space = BOX if name in ("default_none", "default_tensor_extra_dim") else DISCRETE
    with pytest.raises((ValueError, TypeError), match=message):
        LastActionObservation(Tiny(space), default=default)
    if name != "default_tensor_extra_dim":  # on dicts, that is one row of a batch of one environment
        with pytest.raises((ValueError, TypeError), match=message):
            rlm.LastAction(default=default, action_spec=rlm.spec_from_space(space))


#: Recorded as taken, with values cut or made up; refused here.
CUT = {
    "default_fraction_on_int": (0.9, "would become"),
    "default_tensor_int_cast": ([0.9, 1.9, -1.9], "would become"),
    "default_tensor_nan_int": ([math.nan] * 3, "holds no NaN"),
}


@pytest.mark.parametrize("name", CUT)
def test_a_default_that_would_be_cut_is_refused(name):
    assert output(name)["reset_last_action"].dtype == np.int64
    default, message = CUT[name]
    with pytest.raises(ValueError, match=message):
        LastActionObservation(Tiny(DISCRETE), default=default, encoding="one_hot")
    with pytest.raises(ValueError, match=message):
        rlm.LastAction(default=default, action_spec=rlm.NumericSpec((3,), "int64"))


def test_a_list_is_taken_as_a_default():
    failed("default_list")
    env = LastActionObservation(Tiny(), default=[0.1, 0.2])
    assert same(env.reset()[0]["last_action"], np.array([0.1, 0.2], np.float32))


# ---- spaces and steps -----------------------------------------------------------------------------------------------


def test_the_environment_passes_its_own_check():
    assert output("check_env_specs")["passed"]
    check_clean(LastActionObservation(Tiny()))


def test_a_discrete_action_in_one_hot_code():
    recorded = output("discrete_onehot")
    env = LastActionObservation(Tiny(DISCRETE), encoding="one_hot")
    first, _ = env.reset()
    assert same(first["last_action"], recorded["reset_last_action"])
    assert recorded["in_obs_spec"] == (first in env.observation_space)
    later = [env.step(int(code.argmax()))[0]["last_action"] for code in recorded["action"]]
    assert same(np.stack(later), recorded["next_last"])


# ---- keys -----------------------------------------------------------------------------------------------------------

FORMS = {
    "str": {"in_keys": "action"},
    "tuple": {"in_keys": ("agents", "action")},
    "list": {"in_keys": ["action"]},
    "list_tuple": {"in_keys": [("a", "b", "act")]},
    "out_str": {"in_keys": "action", "out_keys": "prev"},
    "out_tuple": {"in_keys": "action", "out_keys": ("hist", "prev")},
    "nested_tuple": {"in_keys": [("a", ("b", "c"))]},
}


@pytest.mark.parametrize("form", FORMS)
def test_keys_are_read_in_every_form(form):
    recorded = output("keys_forms")
    last = rlm.LastAction(**FORMS[form])
    assert (last.in_keys, last.out_keys) == (recorded[f"{form}_in"], recorded[f"{form}_out"])


def test_two_equal_out_keys_are_refused_where_the_transform_lets_them_collide():
    assert output("keys_forms")["two_out"] == ["last_action", "last_action"]
    with pytest.raises(ValueError, match="'last_action' would write over 'last_action'"):
        rlm.LastAction(["a1", "a2"])


def test_a_nested_out_key():
    recorded = output("out_key_nested")
    last = rlm.LastAction(out_keys=[("hist", "prev")], action_spec=rlm.NumericSpec((2,), "float32"))
    assert set(last.transform_observation_spec({"observation": rlm.NumericSpec(1)})) == {"hist", "observation"}
    data = last.reset({"observation": np.zeros(1)})
    assert same(data["hist"]["prev"], recorded["reset"])
    data["action"] = np.ones(2, np.float32)
    assert same(last.step(data, {})["hist"]["prev"], data["action"])


@pytest.mark.parametrize("name", ["in_key_unknown", "in_key_unknown_reset"])
def test_an_unknown_in_key_is_a_key_error_at_construction(name):
    failed(name)
    assert CASES[name]["error_type"] == "KeyError"
    with pytest.raises(KeyError, match="no entry 'nope'; the data has"):
        rlm.LastAction("nope", action_spec={"action": rlm.NumericSpec((2,))})


def test_an_out_key_that_hides_an_observation_is_refused():
    assert output("out_key_overwrites_obs")["spec"]["shape"] == [2]  # the observation's was [1]
    last = rlm.LastAction(out_keys="observation", action_spec=rlm.NumericSpec((2,), "float32"))
    with pytest.raises(ValueError, match="would be hidden"):
        last.transform_observation_spec({"observation": rlm.NumericSpec(1)})
    with pytest.raises(ValueError, match="would be hidden"):
        last.reset({"observation": np.zeros(1, np.float32)})
    with pytest.raises(ValueError, match="would be hidden"):
        last.step({"action": np.zeros(2, np.float32)}, {"observation": np.zeros(2, np.float32)})
    with pytest.raises(ValueError, match="would hide an observation"):
        LastActionObservation(Tiny(), key="observation")


# ---- offline and without a parent -----------------------------------------------------------------------------------


def test_forward_works_on_stored_data_where_the_transform_raises():
    failed("forward_detached")
    ends = np.array([False, True, False])
    made = rlm.LastAction().forward({"action": np.arange(6.0).reshape(3, 2), "next": {"done": ends}})
    assert same(made["last_action"], np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    assert same(made["next"]["last_action"], made["action"])


def test_there_is_no_parent_to_ask_for_the_reset_key():
    failed("reset_key_detached")
    last = rlm.LastAction(action_spec=rlm.NumericSpec(2))
    assert same(last.reset({"_reset": np.array(True)})["last_action"], np.zeros(2))
    assert same(last.reset({"_reset": np.array([True, True])})["last_action"], np.zeros((2, 2)))


def test_a_step_without_its_action_is_a_key_error():
    failed("step_without_action")
    with pytest.raises(KeyError, match="action: no entry 'action'"):
        rlm.LastAction().step({}, {})


# ---- batches --------------------------------------------------------------------------------------------------------

FULL = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
PARTIAL = {"partial_reset_zeros": "zeros", "partial_reset_nan": "nan", "partial_reset_tensor_full": FULL}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_partial_reset_changes_the_masked_rows_only(name):
    recorded = output(name)
    last = rlm.LastAction(default=PARTIAL[name], action_spec=rlm.NumericSpec((2,), "float32"))
    done = np.zeros((3, 1), bool)
    data = last.reset({"observation": np.zeros((3, 1)), "done": done})
    assert same(data["last_action"], recorded["reset_first"])
    following = last.step({**data, "action": recorded["before"]}, {"observation": np.ones((3, 1)), "done": done})
    assert same(following["last_action"], recorded["before"])
    after = last.reset({**following, "observation": recorded["observation_after"], "_reset": recorded["_reset"]})
    assert same(after["last_action"], recorded["after"])


@pytest.mark.parametrize("name", PARTIAL)
def test_a_partial_reset_of_a_vector_environment_changes_the_masked_rows_only(name):
    recorded = output(name)
    envs = VectorLastAction(vector([9, 9, 9], AutoresetMode.DISABLED), default=PARTIAL[name])
    assert same(envs.reset()[0]["last_action"], recorded["reset_first"])
    assert same(envs.step(recorded["before"])[0]["last_action"], recorded["before"])
    after, _ = envs.reset(options={"reset_mask": recorded["_reset"][:, 0]})
    assert same(after["last_action"], recorded["after"])
    assert same(after["observation"] % 100, recorded["observation_after"])


def test_a_partial_reset_without_a_last_action_gives_every_row_the_default():
    assert same(output("partial_reset_missing")["after"][1], np.zeros(2, np.float32))  # zeros there, not the default
    last = rlm.LastAction(default=5.0, action_spec=rlm.NumericSpec((2,), "float32"))
    after = last.reset({"_reset": np.array([[True], [False], [True]])})
    assert same(after["last_action"], np.full((3, 2), 5, np.float32))


def test_a_mask_of_nothing_changes_nothing():
    recorded = output("partial_reset_none")
    last = rlm.LastAction(default=5.0)
    data = last.step({"action": np.ones((3, 2), np.float32)}, {"done": np.zeros((3, 1), bool)})
    assert same(last.reset({**data, "_reset": np.zeros((3, 1), bool)})["last_action"], recorded["after"])


def test_a_rollout_with_resets_step_by_step_and_at_once():
    recorded = output("batched_rollout_auto_reset")
    action, ends = recorded["action"], recorded["next_done"]
    last = rlm.LastAction()
    made = last.forward({"action": action, "next": {"done": ends}})
    assert same(made["last_action"], recorded["last_action"])
    assert same(made["next"]["last_action"], recorded["next_last"])

    envs = VectorLastAction(vector([2, 3], AutoresetMode.DISABLED))
    observation, _ = envs.reset()
    for t in range(6):
        assert same(observation["last_action"], recorded["last_action"][:, t])
        observation, _, terminated, truncated, _ = envs.step(action[:, t])
        assert same(observation["last_action"], recorded["next_last"][:, t])
        assert same(terminated | truncated, ends[:, t, 0])
        if (terminated | truncated).any():
            observation, _ = envs.reset(options={"reset_mask": terminated | truncated})


def test_a_nested_action_has_its_last_action_beside_it():
    recorded = output("nested_action")
    last = rlm.LastAction(recorded["action_keys"], action_spec={"data": {"action": rlm.NumericSpec((3, 1), "int8")}})
    assert last.out_keys == recorded["out_keys"]
    data = last.reset({"data": {"states": np.zeros((3, 1))}})
    assert same(data["data"]["last_action"], recorded["reset"])
    data["data"]["action"] = np.ones((3, 1), np.int8)
    assert same(last.step(data, {})["data"]["last_action"], data["data"]["action"])
    spec = last.transform_observation_spec({"data": {"states": rlm.NumericSpec((3, 1))}})["data"]["last_action"]
    assert (list(spec.shape), spec.dtype.name) == (recorded["spec"]["shape"], recorded["spec"]["dtype"])


def test_several_reset_masks_and_no_reset_key_are_an_error():
    failed("multi_reset_keys")
    data = {"a": {"_reset": np.array([True])}, "b": {"_reset": np.array([True])}}
    with pytest.raises(ValueError, match="say which one"):
        rlm.LastAction(action_spec=rlm.NumericSpec(2)).reset(data)
    named = rlm.LastAction(action_spec=rlm.NumericSpec(2), reset_key=("a", "_reset"))
    assert "last_action" in named.reset(data)


def test_two_of_them_in_a_row():
    recorded = output("two_of_them")
    spec = rlm.NumericSpec((2,), "float32")
    one, two = rlm.LastAction(action_spec=spec), rlm.LastAction("action", "prev2", default=3.0, action_spec=spec)
    data = two.reset(one.reset({"observation": np.zeros(1)}))
    assert same(data["last_action"], recorded["reset_1"])
    assert same(data["prev2"], recorded["reset_2"])
    data["action"] = np.ones(2, np.float32)
    added = {"last_action", "prev2"}
    assert set(two.step(data, one.step(data, {"observation": np.ones(1)}))) == {"observation"} | added
    assert added < set(recorded["keys"])


def test_every_recorded_case_is_tested_or_listed():
    text = Path(__file__).read_text(encoding="utf-8")
    assert len(CASES) == 44
    assert [name for name in CASES if f'"{name}"' not in text] == []
    assert set(DO_NOT_APPLY) < set(CASES)
