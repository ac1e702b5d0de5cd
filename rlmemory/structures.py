"""Channels of one spec, a tuple of specs or a dict of specs, seen as a flat list of leaves and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .errors import SpecError, StructureError
from .specs import NumericSpec, SpecStructure


class Structure:
    """How the channels of one field are arranged.

    Parameters
    ----------
    field : str
        Name of the field, for error messages: "observation", "action", ...
    specs : NumericSpec, sequence or mapping of them
        What the user gave.
    """

    __slots__ = ("field", "form", "keys", "names", "specs")

    def __init__(self, field: str, specs: SpecStructure) -> None:
        self.field = field
        self.form: Literal["single", "tuple", "dict"]
        self.keys: tuple[Any, ...]
        if isinstance(specs, NumericSpec):
            self.form, self.keys, leaves = "single", (None,), [specs]
        elif isinstance(specs, Mapping):
            self.form, self.keys, leaves = "dict", tuple(specs), list(specs.values())
        elif isinstance(specs, (tuple, list)):
            self.form, self.keys, leaves = "tuple", tuple(range(len(specs))), list(specs)
        else:
            raise SpecError(
                f"{field}: expected a spec, a tuple of specs or a dict of specs, got {type(specs).__name__}"
                " (rlmemory.spec_from_space makes specs from a Gymnasium space)"
            )
        self.specs: tuple[NumericSpec, ...] = tuple(leaves)
        self.names = tuple(field if key is None else f"{field}[{key!r}]" for key in self.keys)
        for name, spec in zip(self.names, self.specs, strict=True):
            if not isinstance(spec, NumericSpec):
                raise SpecError(
                    f"{name}: expected a spec, got {type(spec).__name__}; structures have one level: "
                    "a tuple or a dict of specs"
                )
        if not self.specs and field != "extra":
            raise SpecError(f"{field}: there must be at least one channel")

    def flatten(self, value: Any) -> tuple[Any, ...]:
        """The leaves of a value, in the order of the specs."""
        if self.form == "single":
            if isinstance(value, Mapping):
                raise StructureError(self._mismatch("one array", f"a mapping with keys {list(value)}"))
            return (value,)
        if self.form == "tuple":
            if isinstance(value, (tuple, list)) and len(value) == len(self.specs):
                return tuple(value)
            wanted = f"a tuple of {len(self.specs)} arrays, one per channel"
            got = f"{len(value)} of them" if isinstance(value, (tuple, list)) else type(value).__name__
            raise StructureError(self._mismatch(wanted, got))
        if isinstance(value, Mapping) and value.keys() == set(self.keys):
            return tuple(value[key] for key in self.keys)
        got = f"keys {list(value)}" if isinstance(value, Mapping) else type(value).__name__
        raise StructureError(self._mismatch(f"a dict with keys {list(self.keys)}", got))

    def _mismatch(self, wanted: str, got: str) -> str:
        return f"{self.field}: expected {wanted}, got {got}"

    def pack(self, leaves: Sequence[Any]) -> Any:
        """The leaves in the arrangement of the specs."""
        if self.form == "single":
            return leaves[0]
        return tuple(leaves) if self.form == "tuple" else dict(zip(self.keys, leaves, strict=True))

    def same_layout(self, other: Structure) -> bool:
        """Equal arrangement, shapes and dtypes; limits and names may differ."""
        return (
            self.form == other.form
            and self.keys == other.keys
            and all(a.same_layout(b) for a, b in zip(self.specs, other.specs, strict=True))
        )
