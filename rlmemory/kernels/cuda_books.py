"""What an export says beside its channels, written on the device: there is none of it to bring from the host.

On the CPU this is four lines of NumPy in `reading.py`, which is why it is no kernel of the list.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _cuda
from ._cuda import cuda


@_cuda.kernel
def _describe(
    block: Any, codes: int, sources: int, single: bool, oldest: int, count: int, capacity: int, out: Any,
    terminated: int, truncated: int, source: int, id_: int,
) -> None:  # fmt: skip
    their_sources = block[sources : sources + 4 * capacity].view(np.int32)
    out_source = out[source : source + 4 * count].view(np.int32)
    out_id = out[id_ : id_ + 8 * count].view(np.int64)
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        slot = (oldest + i) % capacity
        code = block[codes + slot]
        out[terminated + i] = code == 1
        out[truncated + i] = code == 2
        stored = 0 if single else their_sources[slot]
        out_source[i] = stored if stored >= 0 else -1 - stored  # of a row that stands alone
        out_id[i] = oldest + i


def describe(
    block: Any, codes: int, sources: int, single: bool, oldest: int, count: int, capacity: int, out: Any,
    terminated: int, truncated: int, source: int, id_: int,
) -> None:  # fmt: skip
    """Ends, sources and ids of `count` rows from id `oldest` on.

    `codes` and `sources` say where these columns begin in `block`, the last four where the results begin in `out`.
    """
    if count:
        _cuda.launch(_describe, _cuda.blocks_for(count))(
            block, codes, sources, single, oldest, count, capacity, out, terminated, truncated, source, id_
        )  # fmt: skip
