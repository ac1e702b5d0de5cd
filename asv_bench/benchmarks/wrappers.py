"""What the last action costs: each step of a bare environment, and the same one wrapped or recorded.

The wrapper's own cost is the difference. ``python -m asv_bench.benchmarks.wrappers`` prints all of it as a table.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import rlmemory as rlm
from rlmemory.wrappers import LastActionObservation
from rlmemory.wrappers.vector import LastActionObservation as VectorLastAction

STEPS = 1000


class Still(gym.Env):
    """Does nothing: what is measured around it is the wrapper's."""

    def __init__(self, action_space):
        self.action_space, self.observation_space = action_space, spaces.Box(-1, 1, (4,))
        self.shown = np.zeros(4, np.float32)

    def reset(self, *, seed=None, options=None):
        return self.shown, {}

    def step(self, action):
        return self.shown, 0.0, False, False, {}


SINGLE = {
    "still, Discrete": lambda: Still(spaces.Discrete(4)),
    "still, Box(6)": lambda: Still(spaces.Box(-1, 1, (6,))),
    "CartPole-v1": lambda: gym.make("CartPole-v1").unwrapped,
    "Pendulum-v1": lambda: gym.make("Pendulum-v1").unwrapped,
}
HOW = {
    "bare": lambda env: env,
    "keyed": LastActionObservation,
    "flat": lambda env: LastActionObservation(env, flatten=True),
}
VECTOR_HOW = {"bare": HOW["bare"], "keyed": VectorLastAction, "flat": lambda env: VectorLastAction(env, flatten=True)}


def single_steps(name, how):
    """A function of no arguments that takes STEPS steps, without resets."""
    env = HOW[how](SINGLE[name]())
    env.reset(seed=0)
    if name.startswith("CartPole"):
        env.unwrapped.theta_threshold_radians = env.unwrapped.x_threshold = np.inf  # it never ends
    action, step = env.action_space.sample(), env.step

    def run():
        for _ in range(STEPS):
            step(action)

    return run


def vector_steps(count, how):
    """The same for CartPole as Gymnasium vectorises it."""
    envs = VECTOR_HOW[how](gym.make_vec("CartPole-v1", count, vectorization_mode="vector_entry_point"))
    envs.reset(seed=0)
    action, step = envs.action_space.sample(), envs.step

    def run():
        for _ in range(STEPS):
            step(action)

    return run


def recorded(record):
    """CartPole with random actions and resets, into a memory or nowhere."""
    env = gym.make("CartPole-v1").unwrapped
    memory = rlm.ReplayMemory.from_env(env, STEPS)

    def run():
        if record:
            rlm.record_rollout(env, None, STEPS, memory, progress=False, seed=0)
            return
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(STEPS):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()

    return run


class SingleSteps:
    params = (list(SINGLE), list(HOW))
    param_names = ("environment", "how")

    def setup(self, name, how):
        self.run = single_steps(name, how)

    def time_1000_steps(self, name, how):
        self.run()


class VectorSteps:
    params = ((1, 16, 256), list(VECTOR_HOW))
    param_names = ("environments", "how")

    def setup(self, count, how):
        self.run = vector_steps(count, how)

    def time_1000_steps(self, count, how):
        self.run()


class Recording:
    params = (False, True)
    param_names = ("recorded",)

    def setup(self, record):
        self.run = recorded(record)

    def time_1000_steps(self, record):
        self.run()


class Shift:
    def setup(self):
        rng = np.random.default_rng(0)
        self.actions, self.starts = rng.random((1_000_000, 6), np.float32), rng.random(1_000_000) < 0.005

    def time_1e6_actions(self):
        rlm.shift_actions(self.actions, self.starts)

    def time_1e6_actions_copied(self):
        np.array(self.actions)


def _microseconds(runs, rounds=15):
    """Median cost of a step, all runs turn and turn about."""
    taken = {how: [] for how in runs}
    for _ in range(rounds):
        for how, run in runs.items():
            begin = perf_counter()
            run()
            taken[how].append((perf_counter() - begin) / STEPS * 1e6)
    return {how: median(values) for how, values in taken.items()}


def main():
    """Print microseconds a step, and what the wrapper adds."""
    tables = {name: {how: single_steps(name, how) for how in HOW} for name in SINGLE}
    tables |= {f"CartPole-v1 x {n}": {how: vector_steps(n, how) for how in VECTOR_HOW} for n in (1, 16, 256)}
    tables["CartPole-v1, random"] = {"bare": recorded(False), "recorded": recorded(True)}
    for name, runs in tables.items():
        costs = _microseconds(runs)
        added = ", ".join(f"{how} +{costs[how] - costs['bare']:.1f}" for how in runs if how != "bare")
        print(f"{name:20} {costs['bare']:6.1f} us a step; {added}")


if __name__ == "__main__":
    main()
