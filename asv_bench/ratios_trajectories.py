"""How fast trajectories are split, against writing as many bytes: ``python -m asv_bench.ratios_trajectories``.

Measured as in `asv_bench.ratios`: interleaved, order rotated, median and spread. The yardstick is np.copyto of the
output's bytes into memory that was never touched, which is what a result is. Padding of zeros is memory that splitting
leaves untouched and that costs its reader: so the same with trajectories of one length, where there is no padding, and
with every page of the results read. Nothing here fails: a target that is missed is printed as missed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rlmemory as rlm

from .benchmarks.trajectory_scenes import frames, steps
from .ratios import Case, Line, show
from .timing import Operation

Array = np.ndarray[Any, Any]


def leaves(data: dict[str, Any]) -> list[Array]:
    """All arrays of nested dicts."""
    return [leaf for value in data.values() for leaf in (leaves(value) if isinstance(value, dict) else [value])]


def touched(arrays: list[Array]) -> int:
    """Read a byte of every page."""
    return sum(int(array.reshape(-1).view(np.uint8)[::4096].max()) for array in arrays)


def copying(arrays: list[Array]) -> Callable[[], list[Array]]:
    """np.copyto of each array into a fresh one."""

    def copy() -> list[Array]:
        targets = [np.empty_like(array) for array in arrays]
        for target, array in zip(targets, arrays, strict=True):
            np.copyto(target, array)
        return targets

    return copy


def splitting(title: str, data: dict[str, Any], target: float, *, rounds: int) -> Case:
    """Split, against a copy of the same output, and both read."""
    copy = copying([np.array(leaf) for leaf in leaves(rlm.split_trajectories(data))])  # no page of these is untouched
    operations: dict[str, Operation] = {
        "split": lambda: rlm.split_trajectories(data),
        "copyto fresh": copy,
        "split and read": lambda: touched(leaves(rlm.split_trajectories(data))),
        "copyto fresh and read": lambda: touched(copy()),
    }
    lines = [Line("split", "copyto fresh", target), Line("split and read", "copyto fresh and read", target)]
    return Case(title, operations, lines, rounds=rounds)


def other(data: dict[str, Any], *, rounds: int) -> Case:
    """The way back, and no padding at all."""
    parts = rlm.split_trajectories(data)
    operations: dict[str, Operation] = {
        "unsplit": lambda: rlm.unsplit_trajectories(parts),
        "ragged": lambda: rlm.ragged_trajectories(data),
        "copyto fresh": copying([np.array(leaf) for leaf in leaves(data)]),
    }
    return Case(
        "1e6 steps", operations, [Line("unsplit", "copyto fresh"), Line("ragged", "copyto fresh")], rounds=rounds
    )


def summing(data: dict[str, Any], *, rounds: int) -> Case:
    """Returns and advantages, against a float64 cumsum."""
    reward, done = data["next"]["reward"], data["next"]["done"]
    value = reward.copy()
    operations: dict[str, Operation] = {
        "returns_to_go": lambda: rlm.returns_to_go(reward, done, 0.99),
        "gae": lambda: rlm.gae(reward, value, next_value=value, terminated=done),
        "cumsum": lambda: np.cumsum(reward, dtype=np.float64),
    }
    return Case("1e6 steps", operations, [Line("returns_to_go", "cumsum"), Line("gae", "cumsum")], rounds=rounds)


def cases(*, quick: bool) -> Iterator[Case]:
    """All of them, each made when its turn comes."""
    count, rounds = (20_000 if quick else 1_000_000), 40
    yield splitting("1e6 steps", steps(count), 2.0, rounds=rounds)
    yield splitting("1e6 steps, no padding", steps(count, equal=True), 2.0, rounds=rounds)
    yield other(steps(count), rounds=rounds)
    yield summing(steps(count), rounds=rounds)
    count, rounds = (400 if quick else 20_000), 20
    yield splitting("84x84x4, 20,000", frames(count), 1.3, rounds=rounds)
    yield splitting("84x84x4, no padding", frames(count, equal=True), 1.3, rounds=rounds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m asv_bench.ratios_trajectories", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="little data and few rounds: to see that it runs")
    quick = parser.parse_args().quick
    show(lambda: cases(quick=quick), quick=quick)


if __name__ == "__main__":
    main()
