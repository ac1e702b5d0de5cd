"""Reach any pattern of six bits, with a reward for nothing but success: hindsight against plain replay.

Every action flips one bit, an episode has six steps, and the only reward is 1 when all bits are as wanted. By chance
that hardly ever happens, so a plain replay memory has little to learn from. `HindsightReplayMemory` takes what was
achieved for what was wanted: an episode that missed its goal shows how to reach all the patterns that it came by.

Score: the goal is reached in 90 % or more of 500 greedy episodes, after 12,000 steps; the same table, learnt from a
plain memory in as many steps, stays below 70 %.
"""

from typing import Any

import gymnasium
import numpy as np

import rlmemory as rlm

SEED = 0
STEPS = 12_000
N_BITS = 6


class BitFlip(gymnasium.Env):
    """Bits, one of which each action flips, and a pattern that they should have."""

    def __init__(self, n_bits: int = N_BITS) -> None:
        bits = gymnasium.spaces.MultiBinary(n_bits)
        # The three keys of Gymnasium-Robotics' environments with goals. What is achieved is all that there is to see.
        self.observation_space = gymnasium.spaces.Dict(observation=bits, achieved_goal=bits, desired_goal=bits)
        self.action_space = gymnasium.spaces.Discrete(n_bits)
        self.n_bits = n_bits

    # A memory calls these two with many goals at once, (N, n_bits), to judge experiences that got another goal.

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        return self.compute_terminated(achieved_goal, desired_goal, info).astype(float)

    def compute_terminated(
        self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: dict[str, Any]
    ) -> np.ndarray:
        return (achieved_goal == desired_goal).all(axis=-1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        super().reset(seed=seed)
        self.bits = self.np_random.integers(0, 2, self.n_bits, dtype=np.int8)
        # Another pattern than the bits have already: at least one of them, any number, is the other way round.
        number = int(self.np_random.integers(1, 2**self.n_bits))
        self.goal = self.bits ^ (number >> np.arange(self.n_bits) & 1).astype(np.int8)
        self.steps = 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[dict, float, bool, bool, dict]:
        self.bits[action] ^= 1
        self.steps += 1
        reward = float(self.compute_reward(self.bits, self.goal, {}))
        terminated = bool(self.compute_terminated(self.bits, self.goal, {}))
        return self._observation(), reward, terminated, self.steps >= self.n_bits, {}

    def _observation(self) -> dict[str, np.ndarray]:
        return {"observation": self.bits.copy(), "achieved_goal": self.bits.copy(), "desired_goal": self.goal.copy()}


def entry(observation: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Where the table of values has an observation, or each one of a batch: at its bits and its goal, as numbers."""
    powers = 2 ** np.arange(N_BITS)
    return observation["observation"] @ powers, observation["desired_goal"] @ powers


def success_rate(table: np.ndarray, episodes: int = 500, first_seed: int = 10_000) -> float:
    env = BitFlip()
    reached = 0
    for seed in range(first_seed, first_seed + episodes):
        observation, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            observation, _, terminated, truncated, _ = env.step(int(table[entry(observation)].argmax()))
            ended = terminated or truncated
        reached += terminated
    return reached / episodes


def train(memory: rlm.ReplayMemory, env: gymnasium.Env, seed: int) -> np.ndarray:
    """Tabular Q-learning. Nothing in it knows whether the memory changes goals."""
    rng = np.random.default_rng(seed)
    # No reward is below 0, so what was never learnt is no better than what was.
    table = np.zeros((2**N_BITS, 2**N_BITS, N_BITS))

    observation, _ = env.reset(seed=seed)
    for step in range(1, STEPS + 1):
        values = table[entry(observation)]
        if rng.random() < 0.2:
            action = int(rng.integers(N_BITS))
        else:
            action = int(rng.choice(np.flatnonzero(values == values.max())))  # the best; any of them where all are 0
        following, reward, terminated, truncated, _ = env.step(action)
        memory.append(
            observation, action, reward=reward, next_observation=following, terminated=terminated, truncated=truncated
        )
        observation = env.reset()[0] if terminated or truncated else following

        if step >= 200 and step % 4 == 0:
            # With hindsight, 4 of 5 rows have a new goal in both observations, and reward, `terminated` and `discount`
            # that fit to it. The memory itself keeps what really happened.
            batch = memory.sample(256, discount=0.95)
            target = batch.reward + batch.discount * table[entry(batch.next_observation)].max(axis=1)
            at = (*entry(batch.observation), batch.action)
            error = target - table[at]
            table[at] += 0.5 * batch.weight * error  # weights are 1 unless the memory draws by priority
            if hasattr(memory, "update_priorities"):
                memory.update_priorities(batch.id, np.abs(error))
    return table


def main(seed: int = SEED) -> None:
    env = BitFlip()
    plain = rlm.ReplayMemory.from_env(env, capacity=STEPS, seed=seed)
    # compute_reward and compute_terminated are found in the environment. "future": the new goal of a step is what was
    # achieved by it or later in its episode.
    hindsight = rlm.HindsightReplayMemory.from_goal_env(
        env, capacity=STEPS, strategy="future", goal_samples=4, seed=seed
    )
    without = success_rate(train(plain, env, seed))
    score = success_rate(train(hindsight, env, seed))
    print(f"goals reached in 500 greedy episodes: plain {without:.0%}, hindsight {score:.0%}")
    assert score >= 0.9, f"the score is {score:.0%}, and 90 % was to be reached"
    assert without < 0.7


if __name__ == "__main__":
    main()
