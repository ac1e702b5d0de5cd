"""Replay memory for reinforcement learning.

Experiences of several observation and action channels go into a ring and come out whole, by id, or at random, at the
speed of the machine's memory. ``matlab_compat`` is the same with MATLAB's names and shapes.

Importing this package loads NumPy and nothing else: numba is loaded by the first call that gathers rows.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import files as files
    from . import wrappers as wrappers
    from .batch import Batch, Experience
    from .device_array import DeviceArray
    from .devices import to_device, to_host
    from .episodes import Episodes, Findings
    from .errors import (
        ArenaError,
        CheckpointError,
        CheckpointWarning,
        DataTypeError,
        EmptyMemoryError,
        FileFormatError,
        MatFileError,
        MissingKeyError,
        NotAvailableError,
        NotPickleableError,
        ReplayMemoryError,
        ShapeError,
        SpecError,
        StaleIdError,
        StructureError,
        ValueNotRepresentableError,
    )
    from .files.checkpoint import Checkpoint, checkpoints, load
    from .hindsight import HindsightReplayMemory
    from .joining import trajectory_lengths, unsplit_trajectories
    from .last_action import LastAction
    from .memory import ReplayMemory
    from .mixture import Mixture, MixtureBatch
    from .prioritized import PrioritizedReplayMemory
    from .prioritized_hindsight import PrioritizedHindsightReplayMemory
    from .recorder import Recorder
    from .returns import discounted_scan, gae, returns_to_go
    from .rollout import record_rollout
    from .shift import shift_actions
    from .specs import FiniteSetSpec, NumericSpec, spec_from_space
    from .trajectories import ragged_trajectories, split_trajectories
    from .warm import warmup

__version__ = "0.1.0"

_HOME = {
    "Batch": "batch",
    "Experience": "batch",
    "DeviceArray": "device_array",
    "to_device": "devices",
    "to_host": "devices",
    "ArenaError": "errors",
    "CheckpointError": "errors",
    "CheckpointWarning": "errors",
    "DataTypeError": "errors",
    "EmptyMemoryError": "errors",
    "MatFileError": "errors",
    "FileFormatError": "errors",
    "MissingKeyError": "errors",
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
    "Checkpoint": "files.checkpoint",
    "checkpoints": "files.checkpoint",
    "load": "files.checkpoint",
    "HindsightReplayMemory": "hindsight",
    "trajectory_lengths": "joining",
    "unsplit_trajectories": "joining",
    "ReplayMemory": "memory",
    "Mixture": "mixture",
    "MixtureBatch": "mixture",
    "PrioritizedReplayMemory": "prioritized",
    "PrioritizedHindsightReplayMemory": "prioritized_hindsight",
    "discounted_scan": "returns",
    "gae": "returns",
    "returns_to_go": "returns",
    "LastAction": "last_action",
    "Recorder": "recorder",
    "record_rollout": "rollout",
    "shift_actions": "shift",
    "FiniteSetSpec": "specs",
    "NumericSpec": "specs",
    "spec_from_space": "specs",
    "ragged_trajectories": "trajectories",
    "split_trajectories": "trajectories",
    "warmup": "warm",
}

__all__ = [
    "ArenaError",
    "Batch",
    "Checkpoint",
    "CheckpointError",
    "CheckpointWarning",
    "DataTypeError",
    "DeviceArray",
    "EmptyMemoryError",
    "Episodes",
    "Experience",
    "FileFormatError",
    "Findings",
    "FiniteSetSpec",
    "HindsightReplayMemory",
    "LastAction",
    "MatFileError",
    "MissingKeyError",
    "Mixture",
    "MixtureBatch",
    "NotAvailableError",
    "NotPickleableError",
    "NumericSpec",
    "PrioritizedHindsightReplayMemory",
    "PrioritizedReplayMemory",
    "Recorder",
    "ReplayMemory",
    "ReplayMemoryError",
    "ShapeError",
    "SpecError",
    "StaleIdError",
    "StructureError",
    "ValueNotRepresentableError",
    "checkpoints",
    "discounted_scan",
    "gae",
    "load",
    "ragged_trajectories",
    "record_rollout",
    "returns_to_go",
    "shift_actions",
    "spec_from_space",
    "split_trajectories",
    "to_device",
    "to_host",
    "trajectory_lengths",
    "unsplit_trajectories",
    "warmup",
]

#: Modules that a user reaches through the package; loading them loads what they are for.
_SUBMODULES = ("files", "wrappers")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value  # the next look finds it without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
