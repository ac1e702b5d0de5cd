"""The wrapper of vector environments, in each autoreset mode, against a loop over single environments."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st

from rlmemory.wrappers.vector import LastActionObservation

from .support import BOX, MODES, Tiny, TinyDict, same, vector

NEXT, SAME, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
CHOICE = spaces.Discrete(4)


def by_hand(limits, actions, mode, default):
    """What one environment after another shows: its observation, last action, and what `final_obs` should hold.

    In DISABLED mode, two entries a step that ends: before the reset and after it.
    """
    shown = []
    for i, limit in enumerate(limits):
        t, rows, over = 0, [(100 * i, default, None)], False
        for action in actions[:, i]:
            if over and mode == NEXT:
                t, over = 0, False
                rows.append((100 * i, default, None))
                continue
            t += 1
            over = t >= limit
            rows.append((100 * i + t, action, None))
            if over and mode == SAME:
                rows[-1] = (100 * i, default, (100 * i + t, action))
                t = 0
            elif over and mode == DISABLED:
                rows.append((100 * i, default, "after the reset"))
                t = 0
        shown.append(rows)
    return shown


def run(envs, actions):
    """The same from the wrapper, one list a row."""
    shown = [[] for _ in range(envs.num_envs)]

    def show(observation, info, rows, mark=None):
        for i in rows:
            final = info.get("final_obs", [None] * envs.num_envs)[i]
            pair = final if final is None else (int(final["observation"][0]), int(final["last_action"]))
            shown[i].append((int(observation["observation"][i, 0]), int(observation["last_action"][i]), mark or pair))

    observation, info = envs.reset(seed=0)
    everyone = range(envs.num_envs)
    show(observation, info, everyone)
    for action in actions:
        observation, _, terminated, truncated, info = envs.step(action)
        show(observation, info, everyone)
        ended = terminated | truncated
        if envs.metadata["autoreset_mode"] == DISABLED and ended.any():
            options = {"reset_mask": ended, "other": 1}
            observation, info = envs.reset(options=options)
            assert set(options) == {"reset_mask", "other"}
            show(observation, info, np.flatnonzero(ended), "after the reset")
    return shown


@pytest.mark.parametrize("mode", MODES)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(-1, 0), st.integers(0, 2**16))
def test_each_mode_shows_what_single_environments_show(mode, limits, default, seed):
    actions = np.random.default_rng(seed).integers(0, 4, (12, len(limits)))
    envs = LastActionObservation(vector(limits, mode, CHOICE), default=default)
    assert run(envs, actions) == by_hand(limits, actions, mode, default)


@pytest.mark.parametrize("copy", [True, False])
def test_arrays_that_environment_and_caller_use_again(copy):
    envs = LastActionObservation(vector([2, 3], SAME, BOX, copy=copy))
    envs.reset()
    action, kept = np.empty((2, 2), np.float32), []
    for t in range(4):
        action[:] = [[t, 0.5], [0.25, t]]
        kept.append(envs.step(action))
        action[:] = 9
    shown = [step[0]["last_action"].tolist() for step in kept]
    assert shown[0] == [[0, 0.5], [0.25, 0]]
    assert shown[1] == [[0, 0], [0.25, 1]]
    assert shown[2] == [[2, 0.5], [0, 0]]
    assert kept[1][4]["final_obs"][0]["last_action"].tolist() == [1, 0.5]
    assert kept[2][4]["final_obs"][1]["last_action"].tolist() == [0.25, 2]
    assert kept[1][4]["final_obs"][1] is None
    shown_last = kept[-1][0]["last_action"]
    shown_last[:] = 7
    if copy:
        envs.reset(options={"reset_mask": np.array([True, False])})
        assert envs._last[1].tolist() != [7, 7]


def test_the_last_action_survives_no_reset_in_next_step_mode():
    envs = LastActionObservation(vector([2, 9], NEXT, CHOICE))
    seen = [envs.reset()[0]["last_action"].tolist()]
    seen += [envs.step(np.array(action))[0]["last_action"].tolist() for action in ([3, 3], [1, 1], [2, 2], [2, 3])]
    assert seen == [[0, 0], [3, 3], [1, 1], [0, 2], [2, 3]]


def test_a_reset_after_an_end_leaves_nothing_to_reset():
    envs = LastActionObservation(vector([1, 9], NEXT, CHOICE))
    envs.reset()
    envs.step(np.array([3, 3]))
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.step(np.array([2, 2]))[0]["last_action"].tolist() == [2, 2]
    envs.reset()
    assert envs.step(np.array([1, 1]))[0]["last_action"].tolist() == [1, 1]


SPACES = [
    BOX,
    CHOICE,
    spaces.Discrete(3, start=2),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiBinary(3),
    spaces.Tuple([spaces.Discrete(3), BOX]),
    spaces.Dict({"a": spaces.MultiBinary(2), "b": spaces.Discrete(2)}),
]


@pytest.mark.parametrize("kind", [Tiny, TinyDict])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action_space", SPACES, ids=lambda space: str(space)[:30])
@pytest.mark.parametrize(
    "options", [{}, {"flatten": True}, {"encoding": "one_hot"}, {"encoding": "one_hot", "flatten": True}], ids=str
)
def test_what_is_shown_lies_in_the_spaces_and_is_what_single_wrappers_show(action_space, mode, kind, options):
    if "encoding" in options and "iscrete" not in str(action_space):
        return
    from rlmemory.wrappers import LastActionObservation as Single

    envs = LastActionObservation(vector([2, 3], mode, action_space, kind), **options)
    single = SyncVectorEnv(
        [lambda i=i: Single(kind(action_space, 2 + i, 100 * i, cut=i == 1), **options) for i in range(2)],
        autoreset_mode=DISABLED,
    )
    assert envs.single_observation_space == single.single_observation_space
    assert envs.observation_space == single.observation_space
    observation, other = envs.reset()[0], single.reset()[0]
    envs.action_space.seed(0)
    for _ in range(2):
        assert observation in envs.observation_space
        assert str(observation) == str({key: other[key] for key in observation} if isinstance(other, dict) else other)
        action = envs.action_space.sample()
        observation, _, terminated, _, info = envs.step(action)
        other = single.step(action)[0]
        if mode == SAME and terminated.any():
            assert info["final_obs"][0] in envs.single_observation_space
            return


def test_each_environment_may_have_its_own_default():
    envs = LastActionObservation(vector([1, 2, 3], SAME, CHOICE), default=[-1, -2, -3])
    assert envs.reset()[0]["last_action"].tolist() == [-1, -2, -3]
    assert envs.single_observation_space["last_action"] == spaces.Discrete(7, start=-3)
    assert envs.step(np.array([1, 1, 1]))[0]["last_action"].tolist() == [-1, 1, 1]
    assert envs.step(np.array([2, 2, 2]))[0]["last_action"].tolist() == [-1, -2, 2]
    with pytest.raises(ValueError, match="nor is it a row for each"):
        LastActionObservation(vector([1, 2, 3], SAME, CHOICE), default=[1, 2])


def test_wrong_actions_raise_before_anything_moves():
    envs = LastActionObservation(vector([5, 5], NEXT, CHOICE))
    envs.reset()
    with pytest.raises(ValueError, match=r"expected shape \(2,\), got \(3,\)"):
        envs.step(np.zeros(3, int))
    assert envs.step(np.zeros(2, int))[0]["observation"].tolist() == [[1], [101]]


def test_final_observations_that_come_batched():
    class Batched(gym.vector.VectorWrapper):
        def step(self, actions):
            *rest, info = self.env.step(actions)
            if "final_obs" in info:
                rows = [np.zeros(1, np.float32) if row is None else row for row in info["final_obs"]]
                info = {**info, "final_obs": np.stack(rows)}
            return (*rest, info)

    envs = LastActionObservation(Batched(vector([1, 3], SAME, CHOICE)))
    envs.reset()
    final = envs.step(np.array([3, 2]))[4]["final_obs"]
    assert final[0]["observation"].tolist() == [1]
    assert final[0]["last_action"] == 3
    assert final[1] is None


def test_a_vector_environment_that_does_not_say_its_mode():
    envs = vector([2], NEXT, CHOICE)
    envs.metadata = {}
    with pytest.warns(UserWarning, match="does not say its autoreset mode"):
        wrapped = LastActionObservation(envs)
    wrapped.reset()
    assert [int(wrapped.step(np.array([1]))[0]["last_action"][0]) for _ in range(4)] == [1, 1, 0, 1]
    envs.metadata = {"autoreset_mode": "sometimes"}
    with pytest.raises(ValueError, match="unknown autoreset mode"):
        LastActionObservation(envs)


def test_environments_in_other_processes():
    makers = [lambda i=i: gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 2 + i) for i in range(2)]
    envs = LastActionObservation(AsyncVectorEnv(makers, autoreset_mode=SAME), default=-1)
    try:
        envs.reset(seed=0)
        shown = [envs.step(np.array([1, 0])) for _ in range(3)]
    finally:
        envs.close()
    assert [step[0]["last_action"].tolist() for step in shown] == [[1, 0], [-1, 0], [1, -1]]
    assert shown[1][4]["final_obs"][0]["last_action"] == 1


def test_gymnasiums_own_vector_environment_counts_as_one():
    envs = LastActionObservation(gym.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point"), default=-1)
    first, _ = envs.reset(seed=0)
    assert first in envs.observation_space
    assert same(first["last_action"], np.full(3, -1))
    over, before = np.zeros(3, bool), None
    for _ in range(60):
        before = over
        observation, _, terminated, truncated, _ = envs.step(np.ones(3, int))
        assert observation["last_action"].tolist() == np.where(before, -1, 1).tolist()
        over = terminated | truncated
    assert before is not None
    envs.close()
