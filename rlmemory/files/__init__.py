"""In and out of files: checkpoints of a memory.

Nothing here is loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, checkpoints, load

_HOME = {
    "Checkpoint": "checkpoint",
    "checkpoints": "checkpoint",
    "load": "checkpoint",
}

__all__ = ["Checkpoint", "checkpoints", "load"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
