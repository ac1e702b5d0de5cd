"""Entries with any strides, brought one behind the other on the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _cuda
from ._cuda import cuda


@_cuda.kernel
def _pack(block: Any, layout: Any, at: int, width: int, count: int, out: Any) -> None:
    """Entry i of an array whose lengths and strides are the rows of `layout`, as entry i of `out`."""
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        rest, source = i, at
        for axis in range(layout.shape[1] - 1, -1, -1):
            above = rest // layout[0, axis]
            source += (rest - above * layout[0, axis]) * layout[1, axis]
            rest = above
        for k in range(width):
            out[i * width + k] = block[source + k]


def pack(block: Any, at: int, shape: tuple[int, ...], strides: tuple[int, ...], width: int, out: Any) -> None:
    """Copy the entries of an array that begins at byte `at` of `block` into `out`, in C order."""
    count = math.prod(shape)
    if count and width:
        layout = np.array([shape, strides], np.int64).reshape(2, len(shape))
        with _cuda.lent((block, layout), (out,)) as (origin, layout_there, to):
            _cuda.launch(_pack, _cuda.blocks_for(count))(origin, layout_there, at, width, count, to)
