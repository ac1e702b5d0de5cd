"""Counts, ranges, means and spreads of what a memory holds, a piece at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes that are looked at together: the float64 copies of a piece stay small beside the memory.
_PIECE = 1 << 22

Runs = list[tuple[int, int, int]]


def summarise(
    channels: dict[str, NDArray[Any]], is_done: NDArray[np.uint8], source: NDArray[np.int32], runs: Runs
) -> dict[str, Any]:
    """What `ReplayMemory.statistics` says of the rows in `runs`."""
    counts: Counter[int] = Counter()
    codes: Counter[int] = Counter()
    for first, last, _ in runs:
        counts.update(_count(source[first:last]))
        codes.update(_count(is_done[first:last]))
    return {
        "terminated": codes[1],
        "truncated": codes[2],
        "sources": dict(sorted(counts.items())),
        "channels": {name: _channel(view, runs) for name, view in channels.items()},
    }


def _count(values: NDArray[Any]) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def _pieces(view: NDArray[Any], runs: Runs) -> Iterator[NDArray[Any]]:
    step = max(1, _PIECE // max(1, view[:1].nbytes))
    for first, last, _ in runs:
        for start in range(first, last, step):
            yield view[start : min(start + step, last)]


def _channel(view: NDArray[Any], runs: Runs) -> dict[str, Any]:
    """Mean and spread by the parallel update of Chan, Golub and LeVeque (1979)."""
    real = view.dtype.kind != "c"
    low = high = mean = None
    count = nan = 0
    spread = 0.0
    for piece in _pieces(view, runs):
        missing = np.isnan(piece)
        values = piece[~missing] if missing.any() else piece
        nan += int(np.count_nonzero(missing))
        if not values.size:
            continue
        if real:
            low = values.min() if low is None else min(low, values.min())
            high = values.max() if high is None else max(high, values.max())
        wide = values.astype(np.float64 if real else np.complex128)
        with np.errstate(invalid="ignore", over="ignore"):
            here = wide.mean()
            gap = 0.0 if mean is None else here - mean
            spread += float((np.abs(wide - here) ** 2).sum()) + abs(gap) ** 2 * count * values.size / (
                count + values.size
            )
        mean = here if mean is None else mean + gap * values.size / (count + values.size)
        count += values.size
    return {
        "min": None if low is None else low.item(),
        "max": None if high is None else high.item(),
        "mean": None if mean is None else mean.item(),
        "std": float(np.sqrt(spread / count)) if count else None,
        "nan": nan,
    }


def constant_or_nan(channels: dict[str, NDArray[Any]], runs: Runs) -> tuple[tuple[str, ...], dict[str, int]]:
    """The channels whose entries are the same in every row, and those with NaNs, with their number."""
    constant, nan = [], {}
    for name, view in channels.items():
        first: NDArray[Any] | None = None
        varies, missing = False, 0
        for piece in _pieces(view, runs):
            first = piece[0].copy() if first is None else first
            varies = varies or bool((piece != first).any())
            missing += int(np.count_nonzero(np.isnan(piece)))
        if first is not None and first.size and not varies and sum(last - start for start, last, _ in runs) > 1:
            constant.append(name)
        if missing:
            nan[name] = missing
    return tuple(constant), nan
