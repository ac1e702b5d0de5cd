"""Where the goal stands: by key, by channel and index, from an environment; and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import rlmemory as rlm

from .support import Spec


def zero_reward(observation: Any, action: Any, next_observation: Any) -> np.ndarray:
    return np.zeros(len(action))


def with_goals(observation: Any, goals: Any = None, **keywords: Any) -> rlm.HindsightReplayMemory:
    return rlm.HindsightReplayMemory(
        observation, Spec(()), 10, goals=goals, seed=0, **{"reward_fn": zero_reward, **keywords}
    )


def store(memory: Any, observation: Any, following: Any, **keywords: Any) -> None:
    memory.append(observation, 0.0, reward=5.0, next_observation=following, terminated=True, **keywords)


# ---- by channel and index -------------------------------------------------------------------------------------------


def test_goals_in_one_array_are_found_by_indices_in_c_order_from_0():
    """Of a (2, 3) array, entries 4 and 2 are measured and 0 and 5 are the goal, in this order."""
    memory = with_goals(Spec((2, 3)), [(0, [4, 2], 0, [0, 5])])
    store(memory, np.arange(6.0).reshape(2, 3), np.arange(10.0, 16.0).reshape(2, 3))
    new = memory.generate_hindsight()
    assert new.observation.tolist() == [[[14.0, 1.0, 2.0], [3.0, 4.0, 12.0]]]
    assert new.next_observation.tolist() == [[[14.0, 11.0, 12.0], [13.0, 14.0, 12.0]]]


def test_goals_between_channels_of_a_tuple_are_found_by_place():
    memory = with_goals((Spec((3,)), Spec((), "int8"), Spec((2, 1))), [(0, slice(1, None), 2, None)])
    store(memory, (np.zeros(3), 1, np.zeros((2, 1))), (np.arange(3.0), 2, np.ones((2, 1))))
    new = memory.generate_hindsight()
    for observation in (new.observation, new.next_observation):
        assert observation[2].tolist() == [[[1.0], [2.0]]]
    assert new.observation[0].tolist() == [[0.0, 0.0, 0.0]]
    assert new.next_observation[1].tolist() == [2]


def test_goals_between_channels_of_a_dict_are_found_by_key_and_may_be_several():
    spec = {"where": Spec((2,)), "gear": Spec((), "int8"), "to": Spec((3,)), "to_gear": Spec((1,), "int8")}
    memory = with_goals(spec, [("where", None, "to", [2, 0]), ("gear", None, "to_gear", 0)])
    here = {"where": [1.0, 2.0], "gear": 3, "to": [0.0, 9.0, 0.0], "to_gear": [0]}
    store(memory, here, {**here, "where": [5.0, 6.0], "gear": 4})
    new = memory.generate_hindsight()
    assert new.observation["to"].tolist() == [[6.0, 9.0, 5.0]]
    assert new.observation["to_gear"].tolist() == [[4]]
    assert new.next_observation["to"].tolist() == [[6.0, 9.0, 5.0]]
    assert new.observation["where"].tolist() == [[1.0, 2.0]]


def test_without_goals_the_usual_keys_are_taken():
    memory = with_goals({"achieved_goal": Spec((2,)), "desired_goal": Spec((2,))})
    goals = {"achieved_goal": [1.0, 2.0], "desired_goal": [0.0, 0.0]}
    store(memory, goals, {**goals, "achieved_goal": [3.0, 4.0]})
    assert memory.generate_hindsight().observation["desired_goal"].tolist() == [[3.0, 4.0]]


PAIR = (Spec((2,)), Spec((2,), "float32"))


@pytest.mark.parametrize(
    ("observation", "goals", "message"),
    [
        (Spec((2,)), None, "not achieved_goal and desired_goal; give goals="),
        ({"achieved_goal": Spec((2,))}, None, "not achieved_goal and desired_goal"),
        (Spec((2,)), [], "expected at least one"),
        (Spec((2,)), [(0, [0])], r"goals\[0\]: expected \(measurement channel, indices, goal channel, indices\)"),
        (Spec((2,)), [(0, [0], 0, [2])], r"goals\[0\]: indices count from 0 to 1 here"),
        (Spec((2,)), [(0, [-1], 0, [0])], "indices count from 0 to 1 here"),
        (Spec((2,)), [(0, [0.5], 0, [0])], "expected whole numbers, a slice or None"),
        (Spec((2,)), [(0, [True], 0, [0])], "expected whole numbers, a slice or None"),
        (Spec((2,)), [(0, slice(5, 6), 0, [0])], "expected whole numbers, a slice or None"),
        (Spec((2,)), [(0, [0], 0, [1]), (0, [0, 0], 0, [1, 1])], r"goals\[1\]: an index is given twice"),
        (Spec((2,)), [(0, [0, 1], 0, [1])], "2 numbers are measured, and the goal has 1"),
        (Spec((2,)), [(0, [0], 0, [0])], "the same entries are measured and are the goal"),
        (PAIR, [(0, None, 1, None)], "what is measured is float64 and the goal float32"),
        (PAIR, [(0, [0], 2, [0])], r"no observation channel 2; there are \[0, 1\]"),
        ({"a": Spec((2,))}, [("a", [0], "b", [0])], "no observation channel 'b'"),
    ],
)
def test_goals_that_do_not_fit_the_observation_are_refused(observation, goals, message):
    with pytest.raises(rlm.SpecError, match=message):
        with_goals(observation, goals)


# ---- what the functions return --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (np.zeros((1, 1)), rlm.ShapeError, r"reward_fn: expected an array of shape \(1,\).*got shape \(1, 1\)"),
        (0.0, rlm.ShapeError, "reward_fn: expected an array of shape"),
        (np.zeros(3), rlm.ShapeError, r"got shape \(3,\)"),
        (np.array([1j]), rlm.DataTypeError, "reward_fn"),
        (np.array(["a"]), rlm.DataTypeError, "reward_fn"),
    ],
)
def test_a_reward_function_must_give_one_reward_for_each_experience(answer, error, message):
    memory = with_goals(Spec((2,)), [(0, [0], 0, [1])], reward_fn=lambda *_: answer)
    store(memory, np.zeros(2), np.ones(2))
    with pytest.raises(error, match=message):
        memory.generate_hindsight()


@pytest.mark.parametrize("answer", [False, np.zeros((1, 1), bool), np.zeros(2, bool)])
def test_an_is_done_function_must_give_one_flag_for_each_experience(answer):
    memory = with_goals(Spec((2,)), [(0, [0], 0, [1])], is_done_fn=lambda *_: answer)
    store(memory, np.zeros(2), np.ones(2))
    with pytest.raises(rlm.ShapeError, match="is_done_fn"):
        memory.generate_hindsight()
    with pytest.raises(rlm.ShapeError, match="is_done_fn"):
        [memory.sample(4) for _ in range(9)]


def test_functions_may_give_flags_as_numbers_and_rewards_as_a_narrower_float():
    memory = with_goals(
        Spec((2,)), [(0, [0], 0, [1])], reward_fn=lambda *_: np.float32([0.5]), is_done_fn=lambda *_: [1]
    )
    store(memory, np.zeros(2), np.ones(2))
    new = memory.generate_hindsight()
    assert new.reward.tolist() == [0.5]
    assert new.reward.dtype == np.float64
    assert new.terminated.tolist() == [True]


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"reward_fn": None}, TypeError, "reward_fn: expected a function, got NoneType"),
        ({"is_done_fn": 3}, TypeError, "is_done_fn: expected a function, got int"),
        ({"strategy": "last"}, ValueError, "strategy: expected one of final, episode, future, got 'last'"),
        ({"relabel": "never"}, ValueError, "relabel: expected 'sample' or 'store'"),
        ({"goal_samples": 0}, ValueError, "goal_samples: expected a whole number from 1 up"),
    ],
)
def test_options_of_a_hindsight_memory_are_checked(keywords, error, message):
    with pytest.raises(error, match=message):
        with_goals(Spec((2,)), [(0, [0], 0, [1])], **keywords)


# ---- from an environment --------------------------------------------------------------------------------------------


class Reach(gym.Env):
    """Go left or right along a line to the goal: as small as an environment with goals can be."""

    def __init__(self) -> None:
        box = gym.spaces.Box(-9.0, 9.0, (1,), np.float32)
        self.observation_space = gym.spaces.Dict({"achieved_goal": box, "desired_goal": box, "observation": box})
        self.action_space = gym.spaces.Discrete(2)

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: dict[str, Any]) -> Any:
        assert info == {}
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.5).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 2 * int(action) - 1
        seen = self._seen()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, False, False, {}

    def _seen(self) -> dict[str, np.ndarray]:
        here, there = np.float32([self.at]), np.float32([7.0])
        return {"achieved_goal": here, "desired_goal": there, "observation": here}


class ReachAndStop(Reach):
    """Knows its ends for one goal at a time, as the mazes of gymnasium-robotics do."""

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: dict[str, Any]) -> bool:
        return bool(np.linalg.norm(achieved_goal - desired_goal) <= 0.5)


class ReachForever(Reach):
    """Says False for all goals at once, as the robot arms of gymnasium-robotics do."""

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: dict[str, Any]) -> bool:
        return False


def walked(env: gym.Env, steps: int = 4, **keywords: Any) -> rlm.HindsightReplayMemory:
    memory = rlm.HindsightReplayMemory.from_goal_env(env, 100, seed=0, **keywords)
    seen, _ = env.reset(seed=0)
    for t in range(steps):
        after, reward, terminated, _, _ = env.step(1)
        memory.append(seen, 1, reward=reward, next_observation=after, terminated=terminated, truncated=t == steps - 1)
        seen = after
    return memory


def test_a_goal_environment_judges_its_own_goals():
    memory = walked(gym.wrappers.TimeLimit(Reach(), 50))
    new = memory.generate_hindsight()
    assert new.observation["desired_goal"].tolist() == [[4.0]] * 4
    assert new.reward.tolist() == [-1.0, -1.0, -1.0, 0.0]
    assert new.reward.dtype == np.float32
    assert new.terminated.tolist() == [False] * 4
    assert new.truncated.tolist() == [False, False, False, True]


def test_an_environment_that_knows_one_end_at_a_time_is_asked_for_each():
    new = walked(ReachAndStop()).generate_hindsight()
    assert new.terminated.tolist() == [False, False, False, True]
    assert new.truncated.tolist() == [False] * 4


def test_an_environment_that_never_ends_leaves_no_end_but_truncation():
    new = walked(ReachForever()).generate_hindsight()
    assert new.terminated.tolist() == [False] * 4
    assert new.truncated.tolist() == [False, False, False, True]


def test_own_functions_take_the_place_of_those_of_the_environment():
    new = walked(ReachAndStop(), reward_fn=lambda o, a, n: np.full(len(a), 3.0), is_done_fn=None).generate_hindsight()
    assert new.reward.tolist() == [3.0] * 4
    assert not new.terminated.any()


def test_an_environment_without_compute_reward_needs_a_function():
    class Plain(Reach):
        compute_reward = property()  # hasattr says no

    with pytest.raises(TypeError, match="Plain has no compute_reward"):
        rlm.HindsightReplayMemory.from_goal_env(Plain(), 10)


def test_a_memory_of_an_environment_survives_pickle():
    memory = walked(ReachAndStop(), strategy="future")
    again = pickle.loads(pickle.dumps(memory))
    assert again.generate_hindsight().reward.tolist() == memory.generate_hindsight().reward.tolist()
    assert again.sample(5).id.tolist() == memory.sample(5).id.tolist()
