"""In and out of files: checkpoints, ``.mat`` files, data sets, tables and logs.

A reader gives an :class:`rlmemory.Experience` that ``memory.extend_from`` takes. Nothing is loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, checkpoints, load
    from .matfile import append_mat, read_mat, write_mat
    from .matvalues import read_mat_values, write_mat_values

_HOME = {
    "Checkpoint": "checkpoint",
    "checkpoints": "checkpoint",
    "load": "checkpoint",
    "append_mat": "matfile",
    "read_mat": "matfile",
    "write_mat": "matfile",
    "read_mat_values": "matvalues",
    "write_mat_values": "matvalues",
}

__all__ = [
    "Checkpoint",
    "append_mat",
    "checkpoints",
    "load",
    "read_mat",
    "read_mat_values",
    "write_mat",
    "write_mat_values",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
