"""Reach any pattern of six bits with hindsight and priorities together.

The environment, the table and the training loop are those of train_bitflip_hindsight.py; the memory draws what
surprised more often, and gives most of it new goals.

Score: the goal is reached in 90 % or more of 500 greedy episodes, after 12,000 steps.
"""

from train_bitflip_hindsight import SEED, STEPS, BitFlip, success_rate, train

import rlmemory as rlm


def main(seed: int = SEED) -> None:
    env = BitFlip()
    memory = rlm.PrioritizedHindsightReplayMemory.from_goal_env(
        env, capacity=STEPS, strategy="future", goal_samples=4, seed=seed
    )
    score = success_rate(train(memory, env, seed))
    print(f"goals reached in 500 greedy episodes: {score:.0%}")
    assert score >= 0.9, f"the score is {score:.0%}, and 90 % was to be reached"


if __name__ == "__main__":
    main()
