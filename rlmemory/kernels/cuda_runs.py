"""Runs of steps on the device. What each kernel does is said in `reference_runs`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._cuda import THREADS, blocks_for, cuda, device, kernel, launch, lent, product
from .cpu_runs import cut

_cut = device(cut)


@device
def _summary(first: int, last: int, row: int, limit: int, codes: Any, ends: Any) -> Any:
    """Of the steps from `first` up to `last`: how many runs begin, the first and last (-1: none), pieces from then."""
    by_code, by_end = codes.size > 0, ends.size > 0
    until = (first + row - 1) // row * row
    runs, earliest, latest, pieces, begin = 0, -1, -1, 0, 0
    for i in range(first, last):
        begins = i == until
        if begins:
            until += row
        elif (by_code and codes[i] != codes[i - 1]) or (by_end and ends[i - 1] != 0):
            begins = True
        if begins:
            earliest = i if earliest < 0 else earliest
            latest = i
            runs += 1
        if begins or (earliest >= 0 and i - begin == limit):
            begin = i
            pieces += 1
    return runs, earliest, latest, pieces


@kernel
def _run_starts(
    count: int, row: int, limit: int, codes: Any, ends: Any, out_start: Any, out_run: Any, out_count: Any
) -> None:
    """One block, in which each thread takes a stretch of steps: it looks, learns what came before, and then writes."""
    run_before = cuda.shared.array(THREADS, np.int64)
    began_before = cuda.shared.array(THREADS, np.int64)
    pieces_before = cuda.shared.array(THREADS, np.int64)
    me = cuda.threadIdx.x
    stretch = (count + THREADS - 1) // THREADS
    first, last = min(me * stretch, count), min((me + 1) * stretch, count)
    runs, earliest, latest, pieces = _summary(first, last, row, limit, codes, ends)
    run_before[me], began_before[me] = runs, latest
    cuda.syncthreads()
    if me == 0:
        run, began = -1, 0
        for k in range(THREADS):
            runs, latest = run_before[k], began_before[k]
            run_before[k], began_before[k] = run, began
            run += runs
            began = latest if latest >= 0 else began
    cuda.syncthreads()
    # Of a run that began in a stretch before, pieces begin here every `limit` steps until one of our own begins.
    begin = began_before[me]
    until = earliest if earliest >= 0 else last
    if limit > 0 and until > first:
        pieces += (until - 1 - begin) // limit - (first - 1 - begin) // limit
        begin += (first - 1 - begin) // limit * limit
    pieces_before[me] = pieces
    cuda.syncthreads()
    if me == 0:
        total = 0
        for k in range(THREADS):
            pieces = pieces_before[k]
            pieces_before[k] = total
            total += pieces
        out_count[0] = total
    cuda.syncthreads()
    _cut(first, last, row, limit, codes, ends, run_before[me], pieces_before[me], begin, out_start, out_run)


def run_starts(
    count: int, row: int, limit: int, codes: Any, ends: Any, out_start: Any, out_run: Any, out_count: Any
) -> None:
    with lent((codes, ends), (out_start, out_run, out_count)) as arrays:
        launch(_run_starts, 1)(count, row, limit, *arrays)


@kernel
def _scan(x: Any, factor: Any, ends: Any, after: Any, out: Any) -> None:
    """A thread for each end and component walks back in time: sums are taken in the order of the other back ends."""
    width, constant, known = x.shape[1], factor.size == 1, after.size > 0
    for item in range(cuda.grid(1), x.shape[0] * width, cuda.gridsize(1)):
        i = item // width
        c = item - i * width
        if ends[i] == 0:
            continue
        following = after[i, c] if known else 0.0
        walking = True
        while walking:
            following = x[i, c] + product(factor[0 if constant else i], following)
            out[i, c] = following
            i -= 1
            walking = i >= 0 and ends[i] == 0


def scan(x: Any, factor: Any, ends: Any, after: Any, out: Any) -> None:
    if x.size:
        with lent((x, factor, ends, after), (out,)) as arrays:
            launch(_scan, blocks_for(x.size))(*arrays)
