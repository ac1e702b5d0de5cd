"""Every way to sample, against a memcpy of the bytes that are given: ``python -m asv_bench.ratios_sampling``.

Measured as in `asv_bench.ratios`. ``--curve`` prints each from 1e4 to 1e7 rows instead (some GB of memory). Nothing
here fails: a target that is missed is printed as missed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from .benchmarks.sampling_scenes import hindsight, prioritized
from .benchmarks.scenes import transitions
from .ratios import Case, Line, Source, show
from .timing import Operation

ROW = 165


def windows(capacity: int, source: Source) -> Case:
    """Sums and sequences of a plain memory."""
    memory = transitions(capacity).memory
    operations: dict[str, Operation] = {
        "uniform 256": lambda: memory.sample(256),
        "3-step 256": lambda: memory.sample(256, n_step=3),
        "sequences 32 x 64": lambda: memory.sample(32, sequence_length=64),
        "memcpy of 256 rows": source.copying(256 * ROW),
        "memcpy of 2,048 rows": source.copying(2048 * ROW),
    }
    lines = [
        Line("uniform 256", "memcpy of 256 rows", 9.0),
        Line("3-step 256", "uniform 256", 1.5),
        Line("3-step 256", "memcpy of 256 rows", 14.0),
        Line("sequences 32 x 64", "memcpy of 2,048 rows", 4.0),
    ]
    return Case(f"{capacity:,}", operations, lines)


def priorities(capacity: int, source: Source) -> Case:
    """Sample and update; append and sample, beside a plain memory."""
    memory, plain = prioritized(capacity), transitions(capacity).memory
    error = np.random.default_rng(1).random(256)
    row = {"observation": np.ones(17, np.float32), "action": np.ones(6, np.float32), "reward": np.float32(1)}
    after = np.ones(17, np.float32)

    def appended(to: Any) -> None:
        to.append(**row, next_observation=after, terminated=False)
        to.sample(256)

    operations: dict[str, Operation] = {
        "prioritized: sample, update": lambda: memory.update_priorities(memory.sample(256).id, error),
        "prioritized: append, sample": lambda: appended(memory),
        "plain: append, sample": lambda: appended(plain),
        "memcpy of 256 rows": source.copying(256 * ROW),
    }
    lines = [
        Line("prioritized: sample, update", "memcpy of 256 rows", 22.0),
        Line("prioritized: append, sample", "plain: append, sample", 2.0),
    ]
    return Case(f"{capacity:,}", operations, lines)


def goals(capacity: int, source: Source) -> Case:
    """New goals for four of five rows, with a reward function in NumPy."""
    memory = hindsight(capacity)
    operations: dict[str, Operation] = {
        "hindsight 256": lambda: memory.sample(256),
        "memcpy of 256 rows": source.copying(256 * ROW),
    }
    return Case(f"{capacity:,}", operations, [Line("hindsight 256", "memcpy of 256 rows", 40.0)])


def cases(capacities: list[int]) -> Iterator[Case]:
    """One capacity after another: only one memory of a kind is there at a time."""
    for capacity in capacities:
        source = Source(min(capacity, 1_000_000) * ROW)
        for make in (windows, priorities, goals):
            yield make(capacity, source)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m asv_bench.ratios_sampling", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small memories and few rounds: to see that it runs")
    parser.add_argument("--curve", action="store_true", help="from 1e4 to 1e7 rows")
    options = parser.parse_args()
    capacities = [10_000] if options.quick else [10_000, 100_000, 1_000_000, 10_000_000]
    show(lambda: cases(capacities if options.quick or options.curve else [1_000_000]), quick=options.quick)


if __name__ == "__main__":
    main()
