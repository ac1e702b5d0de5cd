"""Runs of steps, compiled by Numba for the CPU. What each kernel does is said in `reference_runs`."""

from __future__ import annotations

from typing import Any

from ._jit import kernel


@kernel
def run_starts(
    count: int, row: int, limit: int, codes: Any, ends: Any, out_start: Any, out_run: Any, out_count: Any
) -> None:
    by_code, by_end = codes.size > 0, ends.size > 0
    run, pieces, begin, until = -1, 0, 0, 0
    for i in range(count):
        cut = i == until  # the next multiple of `row`
        if cut:
            until += row
        elif (by_code and codes[i] != codes[i - 1]) or (by_end and ends[i - 1] != 0):
            cut = True
        if cut:
            run += 1
        if cut or i - begin == limit:
            out_start[pieces] = begin = i
            out_run[pieces] = run
            pieces += 1
    out_count[0] = pieces


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
