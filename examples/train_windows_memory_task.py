"""A maze that can only be mastered by remembering, learnt from windows with masks, burn-in and the step before.

A rat runs a T-shaped maze three times in an episode. In one arm there is cheese, the same arm all three times, and
nothing shows which: at the junction the rat sees just that. So the first run is a guess, and in the others it has to
know where it turned before and whether that was right. The best mean return is 0.5 + 1 + 1 = 2.5; without memory, 1.5.

The rat's memory is a number that is carried from step to step, like the state of a recurrent network: it holds the
last few pieces of experience, each of them what is seen, the action before and the reward before. The action values
are a table over this number. As with a recurrent network, training needs sequences, and some steps before them that
only bring the state up to date.

Score: a mean return of 2.3 or more over 500 greedy episodes; a rat that remembers one piece only stays below 1.8.
"""

from typing import Any

import gymnasium
import numpy as np

import rlmemory as rlm

SEED = 0
STEPS = 30_000
FORWARD, LEFT, RIGHT = range(3)
CORRIDOR, JUNCTION = range(2)
LENGTH = 2  # steps from the start to the junction
RUNS = 3

# A piece of experience is numbered from 1, since 0 stands for "nothing yet": 2 observations, 4 actions before (none is
# the fourth), 3 signs of the reward before.
N_PIECES = 1 + 2 * 4 * 3


class CheeseMaze(gymnasium.Env):
    """A corridor and a junction, three times; the cheese stays in the arm where it is."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict]:
        super().reset(seed=seed)
        self.cheese = LEFT if self.np_random.random() < 0.5 else RIGHT
        self.place, self.runs, self.steps = 0, 0, 0
        return CORRIDOR, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        self.steps += 1
        reward = 0.0
        if (action == FORWARD) == (self.place == LENGTH):
            reward = -0.1  # into the wall
        elif action == FORWARD:
            self.place += 1
        else:
            reward = float(action == self.cheese)
            self.place, self.runs = 0, self.runs + 1  # and back to the start
        observation = JUNCTION if self.place == LENGTH else CORRIDOR
        return observation, reward, self.runs == RUNS, self.steps >= 30, {}


def piece(observation: Any, action: Any, reward: Any, is_first: Any) -> Any:
    """The number, from 1, of what the rat notices in a step; for arrays as well."""
    action = np.where(is_first, 3, action)  # at the beginning there is none before
    return 1 + (observation * 4 + action) * 3 + np.sign(reward).astype(int) + 1


def remember(state: Any, piece: Any, pieces: int) -> Any:
    """The next state of memory: one more piece, and the oldest is forgotten."""
    return (state * N_PIECES + piece) % N_PIECES**pieces


def mean_return(table: np.ndarray, pieces: int, episodes: int = 500, first_seed: int = 10_000) -> float:
    env = CheeseMaze()
    total = 0.0
    for seed in range(first_seed, first_seed + episodes):
        observation, _ = env.reset(seed=seed)
        state = remember(0, piece(observation, FORWARD, 0.0, True), pieces)
        ended = False
        while not ended:
            action = int(table[state].argmax())
            observation, reward, terminated, truncated, _ = env.step(action)
            state = remember(state, piece(observation, action, reward, False), pieces)
            total += reward
            ended = terminated or truncated
    return total / episodes


def train(pieces: int, seed: int) -> np.ndarray:
    """Q-learning over states of memory that hold so many pieces."""
    rng = np.random.default_rng(seed)
    env = CheeseMaze()
    memory = rlm.ReplayMemory.from_env(env, capacity=10_000, seed=seed)
    table = np.zeros((N_PIECES**pieces, 3))
    burn_in = pieces - 1  # after so many steps before, and the step itself, the state is what it was then

    observation, _ = env.reset(seed=seed)
    state = remember(0, piece(observation, FORWARD, 0.0, True), pieces)
    for step in range(1, STEPS + 1):
        values = table[state]
        if rng.random() < max(0.1, 1 - step / 15_000):
            action = int(rng.integers(3))
        else:
            action = int(rng.choice(np.flatnonzero(values == values.max())))
        following, reward, terminated, truncated, _ = env.step(action)
        memory.append(
            observation, action, reward=reward, next_observation=following, terminated=terminated, truncated=truncated
        )
        state = remember(state, piece(following, action, reward, False), pieces)
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
            state = remember(0, piece(observation, FORWARD, 0.0, True), pieces)

        if step >= 500 and step % 10 == 0:
            learn(table, memory.sample(32, sequence_length=8, burn_in=burn_in, previous=True, discount=0.85), pieces)
    return table


def learn(table: np.ndarray, batch: rlm.Batch, pieces: int) -> None:
    """Run through windows (B, burn_in + 8) in the order of time, and learn at all steps but the first burn_in."""
    # `previous` gives what the action and the reward before were, also for the first step of a window. Where the mask
    # is False there is no step: before the beginning of an episode, that is in the burn-in, and after its end.
    pieces_seen = piece(batch.observation, batch.previous_action, batch.previous_reward, batch.is_first)
    pieces_next = piece(batch.next_observation, batch.action, batch.reward, False)
    state = np.zeros(len(batch.observation), np.int64)
    for t in range(batch.mask.shape[1]):
        real = batch.mask[:, t]
        state = np.where(real, remember(state, pieces_seen[:, t], pieces), state)
        if t < pieces - 1:
            continue  # burn-in: the state only
        next_state = remember(state, pieces_next[:, t], pieces)
        target = batch.reward[:, t] + batch.discount[:, t] * table[next_state].max(axis=1)
        at = state[real], batch.action[real, t]
        # Slowly: the reward of the first run is chance, and must not drown what a step into the wall costs.
        table[at] += 0.05 * (target[real] - table[at])


def main(seed: int = SEED) -> None:
    scores = {pieces: mean_return(train(pieces, seed), pieces) for pieces in (1, 3)}
    for pieces, score in scores.items():
        print(f"mean return of 500 greedy episodes, remembering {pieces}: {score:.2f}")
    assert scores[3] >= 2.3, f"the score is {scores[3]:.2f}, and 2.3 was to be reached"
    assert scores[1] < 1.8


if __name__ == "__main__":
    main()
