"""In and out of files: checkpoints, ``.mat`` files, data sets, tables and logs.

A reader gives an :class:`rlmemory.Experience` that ``memory.extend_from`` takes, and `memory_from` makes a memory for
it. Files are read on the host; what is written may be on a GPU, and is copied to the host first. Nothing is loaded
before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assembled import memory_from
    from .checkpoint import Checkpoint, checkpoints, load
    from .d4rl import read_d4rl, write_d4rl
    from .matfile import append_mat, read_mat, write_mat
    from .matvalues import read_mat_values, write_mat_values
    from .minari import read_minari, write_minari
    from .tables import read_simulation_log, read_table

_HOME = {
    "Checkpoint": "checkpoint",
    "append_mat": "matfile",
    "checkpoints": "checkpoint",
    "load": "checkpoint",
    "memory_from": "assembled",
    "read_d4rl": "d4rl",
    "read_mat": "matfile",
    "read_mat_values": "matvalues",
    "read_minari": "minari",
    "read_simulation_log": "tables",
    "read_table": "tables",
    "write_d4rl": "d4rl",
    "write_mat": "matfile",
    "write_mat_values": "matvalues",
    "write_minari": "minari",
}

__all__ = [
    "Checkpoint",
    "append_mat",
    "checkpoints",
    "load",
    "memory_from",
    "read_d4rl",
    "read_mat",
    "read_mat_values",
    "read_minari",
    "read_simulation_log",
    "read_table",
    "write_d4rl",
    "write_mat",
    "write_mat_values",
    "write_minari",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
