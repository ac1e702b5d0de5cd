"""How an action looks as part of an observation: its space, its start, and its encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..accept import as_numeric, cast_exactly
from ..errors import ShapeError, SpecError, StructureError, ValueNotRepresentableError
from ..fill import Fill, Shape

Entry = Any  # an array (or NumPy scalar), or a tuple or dict of them


class Leaf:
    """The entry of a Box, Discrete, MultiDiscrete or MultiBinary action.

    Parameters
    ----------
    name : str
        For error messages.
    action : gymnasium.Space
        Of one environment.
    default : "zeros", "nan", number or array_like
    one_hot : bool
    lead : tuple of int
        () for one environment, (n,) for n of them.

    Attributes
    ----------
    space : gymnasium.Space
        What one environment's entry looks like, wide enough for the default.
    start : array (*lead, *shape)
        The default.
    """

    def __init__(self, name: str, action: spaces.Space[Any], default: Any, one_hot: bool, lead: Shape) -> None:
        kinds = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
        if not isinstance(action, kinds) or action.shape is None or action.dtype is None:
            raise SpecError(
                f"{name}: a {type(action).__name__} action cannot be part of an observation; there are Box, Discrete, "
                "MultiDiscrete, MultiBinary, and Tuple and Dict of these"
            )
        self._name, self._shape, self._lead, self._dtype = name, action.shape, lead, np.dtype(action.dtype)
        low, high = _limits(action)
        self._is_scalar = isinstance(action, spaces.Discrete) and not lead and not one_hot
        self._sizes: NDArray[np.int64] | None = None
        if one_hot and isinstance(action, (spaces.Discrete, spaces.MultiDiscrete)):
            self._first, self._sizes = low.ravel(), high.ravel().astype(np.int64) - low.ravel() + 1
            self._offsets = np.cumsum(self._sizes) - self._sizes
            shape: Shape = (int(self._sizes.sum()),)
            low, high = np.zeros(shape, self._dtype), np.ones(shape, self._dtype)
        self.start = Fill("default", default).rows(lead, low.shape, self._dtype)
        rows = self.start.reshape(-1, *low.shape)
        self.low = np.asarray(np.fmin(low, np.fmin.reduce(rows)))
        self.high = np.asarray(np.fmax(high, np.fmax.reduce(rows)))
        self.encodes = self._sizes is not None
        widened = not (np.array_equal(low, self.low) and np.array_equal(high, self.high))
        self.space = self._space(spaces.Box if self.encodes else type(action), widened)

    def _space(self, kind: type, widened: bool) -> spaces.Space[Any]:
        if kind is spaces.MultiBinary and not widened:
            return spaces.MultiBinary(self._shape[0] if len(self._shape) == 1 else self._shape)
        if issubclass(kind, spaces.Discrete):
            low, high = int(self.low), int(self.high)
            # Gymnasium's first versions have no other dtype, and no word for it.
            other: dict[str, Any] = {} if self._dtype == np.int64 else {"dtype": self._dtype.type}
            return spaces.Discrete(high - low + 1, start=low, **other)
        if issubclass(kind, (spaces.MultiDiscrete, spaces.MultiBinary)):
            return spaces.MultiDiscrete(self.high - self.low + 1, dtype=self._dtype.type, start=self.low)
        return spaces.Box(self.low, self.high, dtype=self._dtype.type)

    def begin(self) -> Entry:
        """The default, fresh."""
        return self.start[()] if self._is_scalar else self.start.copy()

    def encode(self, action: Any) -> Entry:
        """A copy of the action of one environment, or of a batch, as it stands in the observation."""
        if self._is_scalar and action.__class__ is self._dtype.type:
            return action  # immutable, and what most policies give
        array = action if action.__class__ is np.ndarray else as_numeric(self._name, action)
        if array.shape != self._lead + self._shape:
            raise ShapeError(f"{self._name}: expected shape {self._lead + self._shape}, got {array.shape}")
        if array.dtype == self._dtype:
            exact = array.copy()
        else:
            exact = cast_exactly(self._name, as_numeric(self._name, array), self._dtype)
        if self._sizes is not None:
            return self._one_hot(exact, self._sizes)
        return exact[()] if self._is_scalar else exact

    def _one_hot(self, array: NDArray[Any], sizes: NDArray[np.int64]) -> NDArray[Any]:
        chosen = (array.reshape(*self._lead, -1) - self._first).astype(np.int64)
        if bool((chosen < 0).any() or (chosen >= sizes).any()):
            raise ValueNotRepresentableError(f"{self._name}: {array} is none of the actions, so it has no one-hot code")
        code = np.zeros(self._lead + self.low.shape, self._dtype)
        np.put_along_axis(code, chosen + self._offsets, self._dtype.type(1), -1)
        return code

    def leaves(self) -> Iterator[Leaf]:
        """Itself."""
        yield self


class Branch:
    """The entry of a Tuple or Dict action: one entry a part."""

    def __init__(self, name: str, action: spaces.Tuple | spaces.Dict, default: Any, one_hot: bool, lead: Shape) -> None:
        self._name, self._is_dict = name, isinstance(action, spaces.Dict)
        parts: dict[Any, Any] = (
            dict(action.spaces) if isinstance(action, spaces.Dict) else dict(enumerate(action.spaces))
        )
        self.parts = {
            key: make_entry(f"{name}[{key!r}]", part, self._default(default, key, set(parts)), one_hot, lead)
            for key, part in parts.items()
        }
        self.space: spaces.Space[Any] = self._space()

    def _default(self, default: Any, key: Any, keys: set[Any]) -> Any:
        """The part's default: its own, or the one that all share."""
        if isinstance(default, (Mapping, tuple)):
            own = set(default) if isinstance(default, Mapping) else set(range(len(default)))
            if isinstance(default, Mapping) != self._is_dict or own != keys:
                raise SpecError(f"default: expected one for each part {sorted(keys, key=str)} of {self._name}")
            return default[key]
        return default

    def _space(self) -> spaces.Space[Any]:
        if self._is_dict:
            return spaces.Dict({key: part.space for key, part in self.parts.items()})
        return spaces.Tuple([part.space for part in self.parts.values()])

    def _pack(self, function: Callable[[Any, Any], Any]) -> Entry:
        made = {key: function(key, part) for key, part in self.parts.items()}
        return made if self._is_dict else tuple(made.values())

    def begin(self) -> Entry:
        """The defaults, fresh."""
        return self._pack(lambda _, part: part.begin())

    def encode(self, action: Any) -> Entry:
        """A copy of the action of one environment, or of a batch, as it stands in the observation."""
        fits = isinstance(action, Mapping) if self._is_dict else isinstance(action, (tuple, list))
        if not fits or len(action) != len(self.parts):
            what = "dict" if self._is_dict else "tuple"
            raise StructureError(f"{self._name}: expected a {what} of {list(self.parts)}, got {action!r}")
        return self._pack(lambda key, part: part.encode(action[key]))

    def leaves(self) -> Iterator[Leaf]:
        """Every leaf, in the order of the space."""
        for part in self.parts.values():
            yield from part.leaves()


def make_entry(name: str, action: spaces.Space[Any], default: Any, one_hot: bool, lead: Shape = ()) -> Leaf | Branch:
    """The entry for an action space; what is wrong with the default is said here."""
    if isinstance(action, (spaces.Tuple, spaces.Dict)):
        return Branch(name, action, default, one_hot, lead)
    return Leaf(name, action, default, one_hot, lead)


def _limits(action: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Smallest and largest action."""
    dtype = action.dtype
    if isinstance(action, spaces.Box):
        return action.low, action.high
    if isinstance(action, spaces.MultiBinary):
        return np.zeros(action.shape, dtype), np.ones(action.shape, dtype)
    size = action.n if isinstance(action, spaces.Discrete) else action.nvec
    return np.asarray(action.start, dtype), np.asarray(action.start + size - 1, dtype)


# ---- entries as data ------------------------------------------------------------------------------------------------


def mapped(function: Callable[..., Any], *entries: Entry) -> Entry:
    """Apply to the arrays of entries that are arranged alike."""
    first = entries[0]
    if isinstance(first, Mapping):
        return {key: mapped(function, *(entry[key] for entry in entries)) for key in first}
    if isinstance(first, tuple):
        return tuple(mapped(function, *parts) for parts in zip(*entries, strict=True))
    return function(*entries)


def arrays(entry: Entry) -> Iterator[NDArray[Any]]:
    """The arrays of an entry, in order."""
    if isinstance(entry, Mapping):
        for part in entry.values():
            yield from arrays(part)
    elif isinstance(entry, tuple):
        for part in entry:
            yield from arrays(part)
    else:
        yield np.asarray(entry)
