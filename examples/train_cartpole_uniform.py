"""Learn to balance CartPole with Q-learning on three-step returns, drawn uniformly from a replay memory.

The action values are linear in features from tile coding: several coarse grids over the state, each shifted a little
against the others. A state switches on one tile of each grid, and its value is the sum of their weights.

Run it from an environment that has Gymnasium: ``python examples/train_cartpole_uniform.py``. Score: a mean return of
195 or more over 20 greedy episodes that were not used for learning; 500 is the highest there is.
"""

import gymnasium
import numpy as np

import rlmemory as rlm

SEED = 0
N_ACTIONS = 2
N_TILINGS, N_BINS = 8, 6
# Cart position and velocity, pole angle and angular velocity. The velocities have no bounds: what is outside falls
# into the outermost tile.
LOW, HIGH = np.array([-2.4, -2.5, -0.21, -3.0]), np.array([2.4, 2.5, 0.21, 3.0])
# Each dimension is shifted by another odd multiple, so that the tilings do not lie along one diagonal.
SHIFTS = np.arange(N_TILINGS)[:, None] * np.array([1, 3, 5, 7]) / N_TILINGS % 1


def tiles(observation: np.ndarray) -> np.ndarray:
    """The tiles that (..., 4) observations switch on: (..., N_TILINGS) places in the table of weights."""
    scaled = np.clip((observation - LOW) / (HIGH - LOW), 0, 1) * (N_BINS - 1)
    bins = (scaled[..., None, :] + SHIFTS).astype(int)  # from 0 to N_BINS - 1
    place = bins @ N_BINS ** np.arange(4)
    return place + N_BINS**4 * np.arange(N_TILINGS)  # every tiling has a part of the table to itself


def values(weights: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """Action values (..., N_ACTIONS) of (..., 4) observations."""
    return weights[tiles(observation)].sum(axis=-2)


def mean_return(env: gymnasium.Env, weights: np.ndarray, episodes: int, first_seed: int) -> float:
    """The mean return of the greedy policy, in episodes that begin alike whenever this is called."""
    total = 0.0
    for seed in range(first_seed, first_seed + episodes):
        observation, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(int(values(weights, observation).argmax()))
            total += float(reward)
            ended = terminated or truncated
    return total / episodes


def train(seed: int, max_steps: int = 40_000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    env, trial = gymnasium.make("CartPole-v1"), gymnasium.make("CartPole-v1")
    memory = rlm.ReplayMemory.from_env(env, capacity=20_000, seed=seed)
    weights = np.zeros((N_TILINGS * N_BINS**4, N_ACTIONS))
    best, best_weights = -1.0, weights
    batch = None

    observation, _ = env.reset(seed=seed)
    for step in range(1, max_steps + 1):
        epsilon = max(0.05, 1 - step / 5000)
        if rng.random() < epsilon:
            action = int(rng.integers(N_ACTIONS))
        else:
            action = int(values(weights, observation).argmax())
        following, reward, terminated, truncated, _ = env.step(action)
        memory.append(
            observation, action, reward=reward, next_observation=following, terminated=terminated, truncated=truncated
        )
        observation = env.reset()[0] if terminated or truncated else following

        if step >= 500 and step % 2 == 0:
            # `reward` sums up to three rewards, `next_observation` is where they led, and `discount` is 0.99 to the
            # power of the steps that were there, 0 if the pole fell. At the time limit it did not fall: there the
            # target goes on with the value of the last state, and nothing of that has to be written here.
            batch = memory.sample(64, n_step=3, discount=0.99, out=batch)  # into the arrays of the last one
            target = batch.reward + batch.discount * values(weights, batch.next_observation).max(axis=-1)
            on = tiles(batch.observation)
            error = target - weights[on, batch.action[:, None]].sum(axis=-1)
            # Each of the tiles takes its share. add.at, because a tile may be on in several rows of the batch.
            np.add.at(weights, (on, batch.action[:, None]), 0.1 / N_TILINGS * error[:, None])

        if step % 2500 == 0:
            # Q-learning goes up and down; the weights that did best are kept.
            score = mean_return(trial, weights, episodes=10, first_seed=10_000)
            print(f"step {step:6,}: epsilon {epsilon:.2f}, mean return {score:5.1f}")
            if score > best:
                best, best_weights = score, weights.copy()
            if best >= 400:
                break
    return best_weights


def main(seed: int = SEED) -> None:
    weights = train(seed)
    score = mean_return(gymnasium.make("CartPole-v1"), weights, episodes=20, first_seed=20_000)
    print(f"mean return of 20 greedy episodes: {score:.1f}")
    assert score >= 195, f"the score is {score:.1f}, and 195 was to be reached"


if __name__ == "__main__":
    main()
