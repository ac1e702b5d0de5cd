"""Timing several operations against each other on a machine that is not quiet.

Each round calls every operation, in an order that rotates, so that drift and bursts hit all of them alike. What is
compared is the median; the 10th and 90th percentile say how much it can be trusted.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

#: A call, or a pair (prepare, call): `prepare` runs outside the timer and its result is handed to `call`.
Operation = Callable[[], Any] | tuple[Callable[[], Any], Callable[[Any], Any]]


class Timing(NamedTuple):
    """Seconds for one call."""

    median: float
    low: float
    high: float


def interleaved(operations: Mapping[str, Operation], rounds: int = 200, inner: int = 1) -> dict[str, Timing]:
    """Time each operation `rounds` times, turn and turn about.

    Parameters
    ----------
    operations : mapping of names to operations
    rounds : int, default 200
    inner : int, default 1
        Calls in one measurement, for operations that are short against the timer (about 0.1 us).

    Returns
    -------
    dict of Timing
        Seconds for one call: median, 10th and 90th percentile.
    """
    names = list(operations)
    taken = {name: np.empty(rounds) for name in names}
    for name in names:  # a first call compiles, and touches the pages of its targets
        _measure(operations[name], inner)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i in range(rounds):
            first = i // 2 % len(names)
            order = names[first:] + names[:first]
            # There and back, so that no operation always follows the one that leaves the caches as it likes them.
            for name in order if i % 2 else reversed(order):
                taken[name][i] = _measure(operations[name], inner)
            gc.collect(0)
    finally:
        if collecting:
            gc.enable()
    return {
        name: Timing(*(float(q) for q in np.quantile(times, (0.5, 0.1, 0.9)) / inner)) for name, times in taken.items()
    }


def _measure(operation: Operation, inner: int) -> float:
    if isinstance(operation, tuple):
        prepare, call = operation
        prepared = [prepare() for _ in range(inner)]
        start = perf_counter()
        for argument in prepared:
            call(argument)
        return perf_counter() - start
    repeats = range(inner)
    start = perf_counter()
    for _ in repeats:
        operation()
    return perf_counter() - start


def readable(seconds: float) -> str:
    """A duration with a unit that suits it."""
    for unit, size in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
