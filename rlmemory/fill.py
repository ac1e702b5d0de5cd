"""What stands where there is no previous action: a number, NaN, or an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accept import as_numeric, cast_exactly
from .errors import DataTypeError, ShapeError, SpecError

Shape = tuple[int, ...]


class Fill:
    """A default for actions, checked in two steps: its form at once, its fit when the action is known.

    Parameters
    ----------
    name : str
        For error messages.
    default : "zeros", "nan", number or array_like
        An array is broadcast to the action's shape, or has one row for each environment.
    """

    __slots__ = ("name", "values", "word")

    def __init__(self, name: str, default: Any) -> None:
        self.name, self.word = name, default if isinstance(default, str) else ""
        if isinstance(default, str):
            if default not in ("zeros", "nan"):
                raise SpecError(f'{name}: expected "zeros", "nan", a number or an array, got {default!r}')
            self.values: NDArray[Any] = np.asarray(0 if default == "zeros" else np.nan)
        elif default is None:
            raise DataTypeError(f'{name}: expected "zeros", "nan", a number or an array, got None')
        else:
            self.values = np.array(as_numeric(name, default))

    def cast(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The values in an action's dtype, or an error when they would change."""
        if self.values.dtype.kind in "fc" and dtype.kind not in "fc" and bool(np.isnan(self.values).any()):
            raise SpecError(f"{self.name}: {dtype} holds no NaN; use a number that is no action, such as -1")
        return cast_exactly(self.name, self.values, dtype)

    def check(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        """What can be said before the number of environments is known."""
        values = self.cast(dtype)
        inner = values.shape[max(0, values.ndim - len(shape)) :]
        if not _broadcasts(inner, shape):
            raise self._misfit(shape, ())

    def rows(self, lead: Shape, shape: Shape, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The default of each environment, a fresh array of shape ``lead + shape``."""
        values = self.cast(dtype)
        own = values.shape[: max(0, values.ndim - len(shape))]
        if own not in ((), lead) or not _broadcasts(values.shape[len(own) :], shape):
            raise self._misfit(shape, lead)
        return np.array(np.broadcast_to(values, lead + shape))

    def _misfit(self, shape: Shape, lead: Shape) -> ShapeError:
        rows = f", nor is it a row for each of the environments {lead}" if lead else ""
        return ShapeError(f"{self.name}: shape {self.values.shape} does not fit an action of shape {shape}{rows}")


def _broadcasts(inner: Shape, shape: Shape) -> bool:
    """Whether an array of shape `inner` broadcasts to exactly `shape`."""
    pairs = zip(reversed(inner), reversed(shape), strict=False)
    return len(inner) <= len(shape) and all(a in (1, b) for a, b in pairs)
