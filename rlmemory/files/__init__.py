"""Files: data sets, tables and logs into an `Experience`, and an `Experience` into files.

Each reader gives an :class:`rlmemory.Experience` that ``memory.extend_from`` takes, and `memory_from` makes a memory
for it. Nothing is loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assembled import memory_from
    from .d4rl import read_d4rl, write_d4rl
    from .minari import read_minari, write_minari
    from .tables import read_simulation_log, read_table

_HOME = {
    "memory_from": "assembled",
    "read_d4rl": "d4rl",
    "write_d4rl": "d4rl",
    "read_minari": "minari",
    "write_minari": "minari",
    "read_simulation_log": "tables",
    "read_table": "tables",
}

__all__ = [
    "memory_from",
    "read_d4rl",
    "read_minari",
    "read_simulation_log",
    "read_table",
    "write_d4rl",
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
