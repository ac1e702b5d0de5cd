"""The specs of actions that a user names by keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import SpecError
from .keys import Path, need
from .specs import NumericSpec, spec_from_space


def specs_of(sources: list[Path], given: Any) -> list[NumericSpec]:
    """One spec for each in key."""
    if isinstance(given, Mapping):
        parts = [need(given, path, "action_spec") for path in sources]
    elif isinstance(given, (tuple, list)):
        parts = list(given)
    else:
        parts = [given]
    if len(parts) != len(sources):
        raise SpecError(f"action_spec: {len(parts)} specs for {len(sources)} in_keys")
    return [part if isinstance(part, NumericSpec) else _from_space(part) for part in parts]


def _from_space(space: Any) -> NumericSpec:
    if not hasattr(space, "contains"):
        raise SpecError(f"action_spec: expected a spec or a Gymnasium space, got {type(space).__name__}")
    spec = spec_from_space(space)
    if not isinstance(spec, NumericSpec):
        raise SpecError(f"action_spec: {type(space).__name__} has several channels; name each with in_keys")
    return spec
