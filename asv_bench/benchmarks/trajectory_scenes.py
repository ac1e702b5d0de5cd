"""The steps that are split: used by the asv suite and by the script that prints ratios."""

from __future__ import annotations

from typing import Any

import numpy as np


def ends(count: int, mean: int, *, equal: bool) -> np.ndarray[Any, Any]:
    """Ends of trajectories of `mean` steps, or of mean / 2 to mean * 3 / 2."""
    rng = np.random.default_rng(0)
    low, high = (mean, mean) if equal else (mean // 2, 3 * mean // 2)
    last = np.cumsum(rng.integers(low, high, 2 * count // mean + 1, endpoint=True)) - 1
    done = np.zeros(count, np.bool_)
    done[last[last < count]] = True
    return done


def steps(count: int, *, equal: bool = False) -> dict[str, Any]:
    """Observations of 17 float32 and the next ones, actions of 6, rewards and ends: 165 bytes a step."""
    rng = np.random.default_rng(0)

    def block(*shape: int) -> np.ndarray[Any, Any]:
        return rng.random((count, *shape), dtype=np.float32)

    following = {"observation": block(17), "reward": block(), "done": ends(count, 200, equal=equal)}
    return {"observation": block(17), "action": block(6), "next": following}


def frames(count: int, *, equal: bool = False) -> dict[str, Any]:
    """Stacks of 4 frames of 84x84 pixels, and ends."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 84, 84, 4), np.uint8)
    return {"pixels": pixels, "done": ends(count, 200, equal=equal)}
