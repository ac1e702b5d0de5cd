"""The one place that decides how kernels are compiled."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba

#: No fastmath (sums must be the same on every back end), no parallel (see DESIGN: thread start-up costs more than
#: the work, and the default layer aborts when two threads call it).
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy"}


def kernel(function: Callable[..., None]) -> Any:
    """Compile at the first call; keep the result on disk where there is a place to keep it."""
    if os.environ.get("RLMEMORY_NUMBA_CACHE", "1") == "0":
        return numba.njit(**OPTIONS)(function)
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:
        # Numba found no folder to write to: an install that cannot be written, and no home. Compile in memory.
        return numba.njit(**OPTIONS)(function)


#: For functions that kernels call: compiled as a part of their caller.
inline = numba.njit(inline="always", **OPTIONS)
