"""Learn Taxi with tabular Q-learning from a prioritized replay memory, and the same from a uniform one.

Taxi has 500 states and 6 actions. Most of what the taxi lives through soon teaches nothing: the table knows it already.
Drawing experiences in proportion to their last TD error spends the updates where the table is still wrong, so that it
is right sooner.

Score: a mean return of 7 or more over 100 greedy episodes after 26,000 steps (the best possible is about 8; an episode
that never delivers its passenger costs 200 and more). With uniform draws, the same steps and updates are hardly ever
enough.
"""

import gymnasium
import numpy as np
from gymnasium.envs.toy_text.taxi import TaxiEnv

import rlmemory as rlm

SEED = 0
STEPS = 26_000
UPDATE_EVERY = 2
LEARNING_RATE = 0.9  # high, as nothing here is random but where passengers wait


def taxi() -> gymnasium.Env:
    # Not by its id: gymnasium.make wants another version number of it in different releases of Gymnasium.
    return gymnasium.wrappers.TimeLimit(TaxiEnv(), 200)


def mean_return(table: np.ndarray, episodes: int = 100, first_seed: int = 10_000) -> float:
    env = taxi()
    total = 0.0
    for seed in range(first_seed, first_seed + episodes):
        state, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            state, reward, terminated, truncated, _ = env.step(int(table[state].argmax()))
            total += float(reward)
            ended = terminated or truncated
    return total / episodes


def train(memory: rlm.ReplayMemory, env: gymnasium.Env, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    table = np.zeros((500, 6))  # no return is above zero for long, so what was never tried looks good, and is tried
    prioritized = hasattr(memory, "update_priorities")

    state, _ = env.reset(seed=seed)
    for step in range(1, STEPS + 1):
        action = int(rng.integers(6)) if rng.random() < 0.1 else int(table[state].argmax())
        following, reward, terminated, truncated, _ = env.step(action)
        # A new experience gets the largest priority there is, so it will be drawn soon.
        memory.append(
            state, action, reward=reward, next_observation=following, terminated=terminated, truncated=truncated
        )
        state = env.reset()[0] if terminated or truncated else following

        if step >= 200 and step % UPDATE_EVERY == 0:
            batch = memory.sample(64, discount=0.99)
            target = batch.reward + batch.discount * table[batch.next_observation].max(axis=1)
            at = batch.observation, batch.action
            error = target - table[at]
            # What is drawn more often counts less, by its importance weight; those of a uniform memory are all 1. An
            # entry that is there twice moves once, which is what we want: a sum of moves would go too far.
            table[at] += LEARNING_RATE * batch.weight * error
            if prioritized:
                memory.update_priorities(batch.id, np.abs(error))
    return table


def main(seed: int = SEED) -> None:
    env = taxi()
    uniform = rlm.ReplayMemory.from_env(env, capacity=STEPS, seed=seed)
    # Priorities to the power 0.6 and importance weights to the power 0.4 are the defaults. The second exponent grows to
    # 1 in a million updates, so it stays here; where outcomes are random, give annealing_steps=STEPS // UPDATE_EVERY.
    prioritized = rlm.PrioritizedReplayMemory.from_env(env, capacity=STEPS, seed=seed)
    without = mean_return(train(uniform, env, seed))
    score = mean_return(train(prioritized, env, seed))
    print(f"mean return of 100 greedy episodes: uniform {without:.1f}, prioritized {score:.1f}")
    assert score >= 7, f"the score is {score:.1f}, and 7 was to be reached"
    assert score >= without


if __name__ == "__main__":
    main()
