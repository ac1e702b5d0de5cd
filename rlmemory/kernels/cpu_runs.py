"""Runs of steps, compiled by Numba for the CPU. What each kernel does is said in `reference_runs`.

`cut` is compiled for the device as well.
"""

from __future__ import annotations

from typing import Any

from ._jit import inline, kernel


@inline
def cut(
    first: int, last: int, row: int, limit: int, codes: Any, ends: Any, run: int, pieces: int, begin: int,
    out_start: Any, out_run: Any,
) -> Any:  # fmt: skip
    """Cut the steps from `first` up to `last`; `run` is the last run before, `begin` where its last piece begins.

    `pieces` is how many pieces there were before; gives how many there are then.
    """
    by_code, by_end = codes.size > 0, ends.size > 0
    until = (first + row - 1) // row * row  # the next multiple of `row`
    for i in range(first, last):
        begins = i == until
        if begins:
            until += row
        elif (by_code and codes[i] != codes[i - 1]) or (by_end and ends[i - 1] != 0):
            begins = True
        if begins:
            run += 1
        if begins or i - begin == limit:
            out_start[pieces] = begin = i
            out_run[pieces] = run
            pieces += 1
    return pieces


@kernel
def run_starts(
    count: int, row: int, limit: int, codes: Any, ends: Any, out_start: Any, out_run: Any, out_count: Any
) -> None:
    out_count[0] = cut(0, count, row, limit, codes, ends, -1, 0, 0, out_start, out_run)


@kernel
def scan(x: Any, factor: Any, ends: Any, after: Any, out: Any) -> None:
    constant, known = factor.size == 1, after.size > 0
    for i in range(x.shape[0] - 1, -1, -1):
        weight = factor[0 if constant else i]
        for c in range(x.shape[1]):
            following = 0.0
            if ends[i] == 0:
                following = out[i + 1, c]
            elif known:
                following = after[i, c]
            out[i, c] = x[i, c] + weight * following
