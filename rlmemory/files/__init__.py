"""Experiences in files of other programs. Each function loads what it needs when it is called."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .matfile import append_mat, read_mat, write_mat
    from .matvalues import read_mat_values, write_mat_values

_HOME = {
    "append_mat": "matfile",
    "read_mat": "matfile",
    "read_mat_values": "matvalues",
    "write_mat": "matfile",
    "write_mat_values": "matvalues",
}

__all__ = ["append_mat", "read_mat", "read_mat_values", "write_mat", "write_mat_values"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
