"""The kernels that move and choose experiences, on three back ends with one list of names.

`reference` is NumPy and the oracle, `cpu` is Numba, and `cuda` is numba.cuda. Which one serves is decided once, at the
first call that needs a kernel: ``cpu``, or what ``RLMEMORY_BACKEND`` says (for tests).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from ..errors import NotAvailableError

#: What every back end exports.
NAMES = (
    "annotate", "distinct", "gather", "goal_row", "link", "move", "nstep", "number_episodes", "remaining",
    "run_starts", "scan", "scatter", "tree_draw", "tree_span", "tree_update", "uniform", "window",
)  # fmt: skip
BACKENDS = ("reference", "cpu", "cuda")

_chosen: ModuleType | None = None


def active() -> ModuleType:
    """The back end in use; loads it, and with it numba, when nothing has asked before."""
    global _chosen
    if _chosen is None:
        _chosen = _load(os.environ.get("RLMEMORY_BACKEND", "cpu"))
    return _chosen


def loaded() -> ModuleType | None:
    """The back end in use, if a call has loaded it already."""
    return _chosen


def _load(name: str) -> ModuleType:
    if name not in BACKENDS:
        raise NotAvailableError(f"RLMEMORY_BACKEND={name!r}: expected one of {', '.join(BACKENDS)}")
    if name == "cuda":  # its modules load anywhere, and launching is where it would fail
        importlib.import_module("._cuda", __name__).device_number("cuda")
    return importlib.import_module(f".{name}", __name__)


@contextmanager
def use(name: str) -> Iterator[ModuleType]:
    """Serve from another back end inside a ``with`` block (all threads of the process: for tests)."""
    global _chosen
    before, _chosen = _chosen, _load(name)
    try:
        yield _chosen
    finally:
        _chosen = before
