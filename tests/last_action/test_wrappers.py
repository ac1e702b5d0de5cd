"""The Gymnasium wrapper: every action space, both encodings, and environments that others wrote."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import Autoreset, TimeLimit
from hypothesis import given
from hypothesis import strategies as st

import rlmemory as rlm
from rlmemory.wrappers import LastActionObservation

from .support import BOX, Tiny, TinyDict, check_clean, same

FLAT = [
    BOX,
    spaces.Box(-3, 5, (), np.float64),
    spaces.Box(0, 9, (2, 2), np.int16),
    spaces.Discrete(4),
    spaces.Discrete(3, start=-5),
    spaces.MultiDiscrete([2, 5]),
    spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[1, -2], [0, 7]]),
    spaces.MultiBinary(3),
    spaces.MultiBinary([2, 2]),
]
NESTED = [
    spaces.Tuple([spaces.Discrete(3), BOX]),
    spaces.Dict({"turn": spaces.MultiDiscrete([2, 2]), "push": spaces.Dict({"a": BOX, "b": spaces.MultiBinary(2)})}),
]
ACTIONS = [*FLAT, *NESTED]
IDS = [str(space)[:40] for space in ACTIONS]


def equal(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return same(a, b)


def ravelled(value) -> np.ndarray:
    """The numbers of an action, in the order of its space."""
    if isinstance(value, dict):
        return np.concatenate([ravelled(part) for part in value.values()])
    return np.concatenate([ravelled(part) for part in value]) if isinstance(value, tuple) else np.ravel(value)


# ---- the pages' own example -----------------------------------------------------------------------------------------


def test_the_example_of_the_transforms_page():
    env = LastActionObservation(gym.make("Pendulum-v1"))
    first, _ = env.reset(seed=0)
    assert first["last_action"].tolist() == [0.0]
    actions, later = [], []
    for _ in range(3):
        actions.append(env.action_space.sample())
        later.append(env.step(actions[-1])[0]["last_action"])
    assert (np.stack(later) == np.stack(actions)).all()


def test_the_example_of_the_transforms_page_on_dicts():
    env, last = gym.make("Pendulum-v1"), None
    last = rlm.LastAction(action_spec=env.action_space)
    data = last.reset({"observation": env.reset(seed=0)[0]})
    assert data["last_action"].tolist() == [0.0]
    for _ in range(3):
        data["action"] = env.action_space.sample()
        following = last.step(data, {"observation": env.step(data["action"])[0]})
        assert (following["last_action"] == data["action"]).all()
        data = following


# ---- spaces ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Tiny, TinyDict])
@pytest.mark.parametrize("action_space", ACTIONS, ids=IDS)
def test_every_action_space_passes_gymnasiums_check(action_space, kind):
    for flatten in (False, True):
        check_clean(LastActionObservation(kind(action_space), flatten=flatten))


@pytest.mark.parametrize("action_space", [space for space in ACTIONS if "iscrete" in str(space)], ids=str)
def test_one_hot_codes_pass_gymnasiums_check(action_space):
    for flatten in (False, True):
        check_clean(LastActionObservation(Tiny(action_space), encoding="one_hot", flatten=flatten))


@pytest.mark.parametrize("action_space", ACTIONS, ids=IDS)
def test_the_action_stands_beside_the_next_observation(action_space):
    env = LastActionObservation(Tiny(action_space, 9))
    first, _ = env.reset(seed=1)
    assert list(first) == ["observation", "last_action"]
    assert not np.any(ravelled(first["last_action"]))
    for _ in range(3):
        action = action_space.sample()
        observation = env.step(action)[0]
        assert observation in env.observation_space
        assert equal(observation["last_action"], action)
        flat = LastActionObservation(Tiny(action_space, 9), flatten=True)
        flat.reset()
        assert np.allclose(flat.step(action)[0], [1, *ravelled(action)])


scalars = st.sampled_from(
    [spaces.Discrete, lambda n: spaces.MultiDiscrete([n, n + 1]), lambda n: spaces.MultiBinary(n)]
)


@given(scalars, st.integers(1, 6), st.integers(-5, 9), st.integers(0, 2**16))
def test_the_space_is_widened_to_hold_the_default_and_no_further(kind, n, default, seed):
    space = kind(n)
    env = LastActionObservation(Tiny(space), default=default)
    first, _ = env.reset()
    assert first in env.observation_space
    assert (np.asarray(first["last_action"]) == default).all()
    space.seed(seed)
    assert env.step(space.sample())[0] in env.observation_space
    assert env.action_space == space == env.unwrapped.action_space
    spec = rlm.spec_from_space(env.observation_space["last_action"])
    known = rlm.spec_from_space(space)
    assert (spec.low == np.minimum(known.low, default)).all()
    assert (spec.high == np.maximum(known.high, default)).all()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(-3, 3), st.integers(0, 2**16))
def test_one_hot_codes_are_one_per_choice(sizes, start, seed):
    space = spaces.MultiDiscrete(sizes, start=[start] * len(sizes), seed=seed)
    env = LastActionObservation(Tiny(space), encoding="one_hot")
    assert not env.reset()[0]["last_action"].any()
    action = space.sample()
    code = env.step(action)[0]["last_action"]
    expected = np.concatenate([np.arange(size) + start == a for size, a in zip(sizes, action, strict=True)])
    assert same(code, expected.astype(np.int64))


def test_spaces_have_the_kinds_that_they_should():
    def entry(space, **options):
        return LastActionObservation(Tiny(space), **options).observation_space["last_action"]

    assert entry(spaces.Discrete(3), default=-1) == spaces.Discrete(4, start=-1)
    assert entry(spaces.MultiDiscrete([2, 3]), default=-1) == spaces.MultiDiscrete([3, 4], start=[-1, -1])
    assert entry(spaces.MultiBinary(3)) == spaces.MultiBinary(3)
    assert entry(BOX) == BOX
    assert entry(BOX, default=[0, 7]) == spaces.Box(-1, np.array([1, 7], np.float32), dtype=np.float32)
    assert entry(spaces.Discrete(3), encoding="one_hot") == spaces.Box(0, 1, (3,), np.int64)
    tuple_entry = entry(NESTED[0], default=(-1, 0.5), encoding="one_hot")
    assert tuple_entry == spaces.Tuple([spaces.Box(-1, 1, (3,), np.int64), BOX])


def test_a_flat_observation_keeps_its_floats():
    for space, dtype in [(spaces.Discrete(9), "float32"), (spaces.Discrete(2**30), "float64"), (BOX, "float32")]:
        env = LastActionObservation(Tiny(space), flatten=True)
        assert env.observation_space.dtype == env.reset()[0].dtype == dtype
    image = Tiny(spaces.Box(-1, 1, (2,), np.float64))
    image.observation_space = spaces.Box(0, 255, (2, 2), np.uint8)
    assert LastActionObservation(image, flatten=True).observation_space.dtype == np.float64


def test_a_dict_observation_gains_a_key():
    env = LastActionObservation(TinyDict(), key="before")
    first, _ = env.reset()
    assert set(first) == {"count", "odd", "before"}
    assert set(env.unwrapped.observation_space) == {"count", "odd"}
    flat = LastActionObservation(TinyDict(), flatten=True)
    assert flat.reset()[0].tolist() == [0, 1, 0, 0, 0]  # count, odd in one-hot code, last action


def test_each_part_may_have_its_own_default():
    env = LastActionObservation(Tiny(NESTED[1]), default={"turn": -1, "push": {"a": [0.5, -0.5], "b": 1}})
    last = env.reset()[0]["last_action"]
    assert last["turn"].tolist() == [-1, -1]
    assert last["push"]["a"].tolist() == [0.5, -0.5]
    assert last["push"]["b"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"default": "nan"}, "int64 holds no NaN"),
        ({"default": 0.5}, "would become"),
        ({"default": [1, 2]}, "does not fit"),
        ({"default": "one"}, "expected \"zeros\""),
        ({"encoding": "onehot"}, "expected one of raw, one_hot"),
        ({"key": "observation"}, "would hide"),
        ({"key": 3}, "expected a string"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_at_construction(options, message):
    with pytest.raises(ValueError, match=message):
        LastActionObservation(Tiny(spaces.Discrete(3)), **options)


def test_other_things_that_are_said_at_construction():
    with pytest.raises(ValueError, match="one_hot is for Discrete"):
        LastActionObservation(Tiny(), encoding="one_hot")
    with pytest.raises(ValueError, match="Text action"):
        LastActionObservation(Tiny(spaces.Text(4)))
    with pytest.raises(ValueError, match="one for each part"):
        LastActionObservation(Tiny(NESTED[0]), default=(1, 2, 3))
    with pytest.raises(ValueError, match="would hide"):
        LastActionObservation(TinyDict(), key="odd")
    odd = Tiny()
    odd.observation_space = spaces.Sequence(BOX)
    with pytest.raises(ValueError, match="no fixed size"):
        LastActionObservation(odd, flatten=True)


def test_a_wrong_action_raises_before_the_environment_moves():
    for space, action, message in [
        (BOX, np.zeros(3, np.float32), "expected shape"),
        (spaces.Discrete(3), 0.5, "would become"),
        (NESTED[0], (1,), "expected a tuple"),
        (NESTED[1], {"turn": [0, 0]}, "expected a dict"),
    ]:
        env = LastActionObservation(Tiny(space))
        env.reset()
        with pytest.raises((ValueError, TypeError), match=message):
            env.step(action)
        assert env.unwrapped.received == []
    env = LastActionObservation(Tiny(spaces.Discrete(3)), encoding="one_hot")
    env.reset()
    for action in (3, -1):
        with pytest.raises(ValueError, match="none of the actions"):
            env.step(action)


# ---- episodes -------------------------------------------------------------------------------------------------------


def test_the_last_action_does_not_survive_a_reset():
    env = LastActionObservation(Tiny(spaces.Discrete(4), limit=2))
    seen = [env.reset()[0]["last_action"]]
    seen += [env.step(action)[0]["last_action"] for action in (3, 1)]
    seen += [env.reset()[0]["last_action"], env.step(2)[0]["last_action"]]
    assert seen == [0, 3, 1, 0, 2]


def test_around_autoreset_the_step_that_resets_gives_the_default():
    env = LastActionObservation(Autoreset(Tiny(spaces.Discrete(4), limit=2)), default=-1)
    seen = [env.reset()[0]["last_action"]] + [env.step(action)[0]["last_action"] for action in (3, 1, 2, 1)]
    assert seen == [-1, 3, 1, -1, 1]
    inside = Autoreset(LastActionObservation(Tiny(spaces.Discrete(4), limit=2), default=-1))
    assert [inside.reset()[0]["last_action"]] + [inside.step(a)[0]["last_action"] for a in (3, 1, 2, 1)] == seen


def test_cartpole_cut_by_a_time_limit():
    env = LastActionObservation(TimeLimit(gym.make("CartPole-v1").unwrapped, 5), default=-1)
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    seen, sent, cuts = [], [], []
    for _ in range(12):
        seen.append(int(observation["last_action"]))
        sent.append(int(env.action_space.sample()))
        observation, _, terminated, truncated, _ = env.step(sent[-1])
        assert observation["last_action"] == sent[-1]
        cuts.append(truncated)
        assert not terminated
        if truncated:
            observation, _ = env.reset()
    assert np.flatnonzero(cuts).tolist() == [4, 9]
    assert seen == [-1, *sent[:4], -1, *sent[5:9], -1, sent[10]]
    stored = {"action": np.array(sent), "truncated": np.array(cuts), "terminated": np.zeros(12, bool)}
    made = rlm.LastAction(default=-1).forward(stored)
    assert made["last_action"].tolist() == seen


def test_a_caller_may_use_its_action_array_again():
    env, action = LastActionObservation(Tiny()), np.array([0.1, 0.2], np.float32)
    env.reset()
    observation = env.step(action)[0]
    action[:] = 0.9
    assert same(observation["last_action"], np.array([0.1, 0.2], np.float32))
    first, _ = env.reset()
    first["last_action"][:] = 5  # nor does what was given out come back
    assert not env.reset()[0]["last_action"].any()


# ---- making it again ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"key": "a", "default": -1}, {"flatten": True, "encoding": "one_hot"}, {"default": np.array(1)}]
)
def test_gymnasium_makes_it_again_from_its_spec(options):
    env = LastActionObservation(gym.make("CartPole-v1"), **options)
    again = gym.make(env.spec)
    assert isinstance(again, LastActionObservation)
    assert again.observation_space == env.observation_space
    for one in (env, again):
        one.reset(seed=3)
    assert equal(env.step(1)[0], again.step(1)[0])
    assert again.spec == env.spec or "default" in options


def test_without_gymnasium_the_extra_is_named():
    code = "import sys; sys.modules['gymnasium'] = None; import rlmemory as rlm; rlm.wrappers"
    root = str(Path(rlm.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    assert run.returncode == 1
    assert 'pip install "rlmemory[gym]"' in run.stderr.splitlines()[-1]


@pytest.mark.parametrize("kind", [LastActionObservation, rlm.wrappers.vector.LastActionObservation])
def test_every_option_is_explained(kind):
    text = kind.__doc__.split("Parameters\n")[1].split("Raises\n")[0]
    for name in list(inspect.signature(kind.__init__).parameters)[1:]:
        assert re.search(rf"^\s*(\w+, )*{name}\b", text, re.M), name


def test_it_is_reached_through_the_package_and_loaded_late():
    assert rlm.wrappers.LastActionObservation is LastActionObservation
    assert rlm.wrappers.vector is sys.modules["rlmemory.wrappers.vector"]
    assert "wrappers" in dir(rlm)
    with pytest.raises(AttributeError, match="no attribute 'Frames'"):
        _ = rlm.wrappers.Frames
