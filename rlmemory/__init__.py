"""Replay memory for reinforcement learning.

Experiences of several observation and action channels go into a ring and come out whole, by id, or at random, at the
speed of the machine's memory. ``matlab_compat`` is the same with MATLAB's names and shapes.

Importing this package loads NumPy and nothing else: numba is loaded by the first call that gathers rows.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .batch import Batch, Experience
    from .episodes import Episodes, Findings
    from .errors import (
        ArenaError,
        DataTypeError,
        EmptyMemoryError,
        NotAvailableError,
        NotPickleableError,
        ReplayMemoryError,
        ShapeError,
        SpecError,
        StaleIdError,
        StructureError,
        ValueNotRepresentableError,
    )
    from .hindsight import HindsightReplayMemory
    from .memory import ReplayMemory
    from .mixture import Mixture, MixtureBatch
    from .prioritized import PrioritizedReplayMemory
    from .prioritized_hindsight import PrioritizedHindsightReplayMemory
    from .specs import FiniteSetSpec, NumericSpec, spec_from_space
    from .warm import warmup

__version__ = "0.1.0"

_HOME = {
    "Batch": "batch",
    "Experience": "batch",
    "ArenaError": "errors",
    "DataTypeError": "errors",
    "EmptyMemoryError": "errors",
    "NotAvailableError": "errors",
    "NotPickleableError": "errors",
    "ReplayMemoryError": "errors",
    "ShapeError": "errors",
    "SpecError": "errors",
    "StaleIdError": "errors",
    "StructureError": "errors",
    "ValueNotRepresentableError": "errors",
    "Episodes": "episodes",
    "Findings": "episodes",
    "HindsightReplayMemory": "hindsight",
    "ReplayMemory": "memory",
    "Mixture": "mixture",
    "MixtureBatch": "mixture",
    "PrioritizedReplayMemory": "prioritized",
    "PrioritizedHindsightReplayMemory": "prioritized_hindsight",
    "FiniteSetSpec": "specs",
    "NumericSpec": "specs",
    "spec_from_space": "specs",
    "warmup": "warm",
}

__all__ = [
    "ArenaError",
    "Batch",
    "DataTypeError",
    "EmptyMemoryError",
    "Episodes",
    "Experience",
    "Findings",
    "FiniteSetSpec",
    "HindsightReplayMemory",
    "Mixture",
    "MixtureBatch",
    "NotAvailableError",
    "NotPickleableError",
    "NumericSpec",
    "PrioritizedHindsightReplayMemory",
    "PrioritizedReplayMemory",
    "ReplayMemory",
    "ReplayMemoryError",
    "ShapeError",
    "SpecError",
    "StaleIdError",
    "StructureError",
    "ValueNotRepresentableError",
    "spec_from_space",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value  # the next look finds it without this function
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
