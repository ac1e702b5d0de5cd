"""What a caller gives, as the arrays that can be stored: checked, on the host or where it lies on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import accept, accept_flag, accept_on_device, accept_source, as_numeric
from .arena import Arena
from .borrowed import Borrowed, borrow, is_on_device
from .errors import ShapeError, StructureError
from .specs import NumericSpec
from .store import Store

if TYPE_CHECKING:
    from .device_arena import DeviceArena


class Given(Store):
    """How the memory reads what is given to it."""

    def _flatten(self, *values: Any) -> tuple[Any, ...]:
        """The leaves of what was given for each group of channels, in the order of the arena."""
        if self._plain and values[-1] is None and not isinstance(values[0], Mapping):
            return values[:-1]
        *channels, extra = values
        given = (*channels, {} if extra is None else extra)
        return tuple(leaf for group, value in zip(self._groups, given, strict=True) for leaf in group.flatten(value))

    def _count(self, first: Any) -> int:
        """How many rows `extend` got, by its first leaf."""
        name, spec = self._named[0]
        if isinstance(self._arena, Arena) or not is_on_device(first):
            shape = as_numeric(name, first).shape
        else:
            shape = self._there(self._arena, name, first).shape
        if len(shape) != len(spec.shape) + 1 or shape[1:] != spec.shape:
            hint = "; append() stores a single experience" if shape == spec.shape else ""
            raise ShapeError(f"{name}: expected shape (N, {str(spec.shape)[1:]}, got {shape}{hint}")
        return int(shape[0])

    def _accept(self, leaves: tuple[Any, ...], lead: tuple[int, ...]) -> tuple[NDArray[Any], ...]:
        return tuple(
            self._accepted(name, leaf, spec, lead) for leaf, (name, spec) in zip(leaves, self._named, strict=True)
        )

    def _accepted(self, name: str, leaf: Any, spec: NumericSpec, lead: tuple[int, ...]) -> Any:
        """An array of the host, or one on the memory's device as it lies there."""
        if isinstance(self._arena, Arena) or not is_on_device(leaf):
            return accept(name, leaf, spec, lead)
        return accept_on_device(name, self._there(self._arena, name, leaf), spec, lead)

    def _there(self, arena: DeviceArena, name: str, leaf: Any) -> Borrowed:
        """An array on the memory's device."""
        with self._lock:
            return borrow(name, leaf, arena.number)

    def _accept_source(self, source: Any, lead: tuple[int, ...]) -> NDArray[np.int32]:
        if source is None and self._environments > 1:
            raise StructureError(
                f"source: this memory was made from {self._environments} environments, so each experience must say "
                f"which one it comes from; for a row of each: source=np.arange({self._environments})"
            )
        return accept_source(0 if source is None else self._fetched("source", source), lead)


def is_done_code(terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """0 running, 1 terminated (also when both), 2 truncated."""
    cut = truncated > terminated
    code: NDArray[np.uint8] = terminated.view(np.uint8) + 2 * cut.view(np.uint8)
    return code


def flags(name: str, value: ArrayLike, rows: int) -> NDArray[np.bool_]:
    """A flag for each row; a plain False stands for none of them."""
    return np.zeros(rows, np.bool_) if value is False else accept_flag(name, value, (rows,))
