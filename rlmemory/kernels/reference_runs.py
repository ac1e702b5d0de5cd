"""Kernels that see a flat sequence of steps as runs, in plain NumPy: where runs begin, and sums along them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def run_starts(
    count: int, row: int, limit: int, codes: Ints, ends: Bytes, out_start: Ints, out_run: Ints, out_count: Ints
) -> None:
    """Cut `count` steps into runs, and runs into pieces of at most `limit` steps (0: no limit).

    A run begins at every multiple of `row`, where `codes` (unless it is empty) differ from the step before, and after
    a step whose `ends` (unless it is empty) is not 0. Piece k begins at step ``out_start[k]`` and belongs to the run
    number ``out_run[k]``; ``out_count[0]`` is how many pieces there are. The outputs have room for `count` of them.
    """
    run, pieces = -1, 0
    for i in range(count):
        cut = i % row == 0
        cut = cut or (codes.size > 0 and codes[i] != codes[i - 1])
        cut = cut or (ends.size > 0 and ends[i - 1] != 0)
        run += cut
        if cut or i - out_start[pieces - 1] == limit:
            out_start[pieces], out_run[pieces] = i, run
            pieces += 1
    out_count[0] = pieces


def scan(x: Floats, factor: Floats, ends: Bytes, after: Floats, out: Floats) -> None:
    """Sums that run backwards in time: ``out[i] = x[i] + factor[i] * next``, for each component of the (N, C) arrays.

    `next` is ``out[i + 1]``, or ``after[i]`` where ``ends[i]`` is not 0; 0 if `after` is empty. The last step must be
    an end. One factor stands for all steps.
    """
    for i in range(x.shape[0] - 1, -1, -1):
        if ends[i] == 0:
            following = out[i + 1]
        else:
            following = after[i] if after.size else np.zeros(x.shape[1])
        out[i] = x[i] + factor[i if factor.size > 1 else 0] * following
