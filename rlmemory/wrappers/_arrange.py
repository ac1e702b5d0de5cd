"""Where the last action stands in the observation: under a key, or at the end of one flat array."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from ..errors import SpecError
from ._entry import Branch, Entry, Leaf, arrays, make_entry

OBSERVATION = "observation"
ENCODINGS = ("raw", "one_hot")


def checked_entry(
    action: spaces.Space[Any], key: str, default: Any, encoding: str, lead: tuple[int, ...] = ()
) -> Leaf | Branch:
    """The entry, when the encoding exists and has something to encode."""
    if encoding not in ENCODINGS:
        raise SpecError(f"encoding: expected one of {', '.join(ENCODINGS)}, got {encoding!r}")
    if not isinstance(key, str):
        raise SpecError(f"key: expected a string, got {key!r}")
    entry = make_entry("action", action, default, encoding == "one_hot", lead)
    if encoding == "one_hot" and not any(leaf.encodes for leaf in entry.leaves()):
        raise SpecError(f"encoding: one_hot is for Discrete and MultiDiscrete actions, and the action is {action}")
    return entry


class Arrangement:
    """Puts observation and entry together.

    Parameters
    ----------
    observation : gymnasium.Space
        Of one environment.
    entry : Leaf or Branch
    key : str
    flatten : bool

    Attributes
    ----------
    space : gymnasium.Space
        Of one environment's observation with the entry.
    """

    def __init__(self, observation: spaces.Space[Any], entry: Leaf | Branch, key: str, flatten: bool) -> None:
        self._observation, self._key, self._flatten = observation, key, bool(flatten)
        self._is_dict = isinstance(observation, spaces.Dict)
        taken = observation.spaces if isinstance(observation, spaces.Dict) else (OBSERVATION,)
        if not self._flatten and key in taken:
            raise SpecError(f"key: {key!r} would hide an observation; give another key")
        self._dtype: Any = None
        self.space: spaces.Space[Any] = self._flat(entry) if self._flatten else self.keyed(observation, entry.space)

    def keyed(self, observation: spaces.Space[Any], last: spaces.Space[Any]) -> spaces.Dict:
        """The Dict space of an observation space, batched or not, and that of the entry."""
        parts = dict(observation.spaces) if isinstance(observation, spaces.Dict) else {OBSERVATION: observation}
        return spaces.Dict({**parts, self._key: last})

    def _flat(self, entry: Leaf | Branch) -> spaces.Box:
        flat = spaces.flatten_space(self._observation)
        if not isinstance(flat, spaces.Box):
            raise SpecError(f"flatten: {self._observation} has no fixed size, so it cannot be flattened")
        bounds = [(flat.low, flat.high), *((leaf.low.ravel(), leaf.high.ravel()) for leaf in entry.leaves())]
        self._dtype = _common(flat.dtype, [low for low, _ in bounds[1:]] + [high for _, high in bounds[1:]])
        low, high = (np.concatenate([bound[i].astype(self._dtype) for bound in bounds]) for i in (0, 1))
        return spaces.Box(low, high, dtype=self._dtype.type)

    def join(self, observation: Any, entry: Entry) -> Any:
        """Of one environment."""
        if not self._flatten:
            return self._with_key(observation, entry)
        plain = isinstance(self._observation, spaces.Box)
        flat = np.ravel(observation) if plain else spaces.flatten(self._observation, observation)
        return np.concatenate([flat, *map(np.ravel, arrays(entry))], dtype=self._dtype, casting="unsafe")

    def join_rows(self, observation: Any, entry: Entry, batched: spaces.Space[Any]) -> Any:
        """Of several environments, whose batched observation space is given."""
        if not self._flatten:
            return self._with_key(observation, entry)
        parts = [self._rows(observation, batched)]
        parts += [array.reshape(len(array), -1) for array in arrays(entry)]
        return np.concatenate(parts, axis=1, dtype=self._dtype, casting="unsafe")

    def _rows(self, observation: Any, batched: spaces.Space[Any]) -> NDArray[Any]:
        if isinstance(self._observation, spaces.Box):
            return np.reshape(observation, (len(observation), -1))
        return np.stack([spaces.flatten(self._observation, row) for row in iterate(batched, observation)])

    def _with_key(self, observation: Any, entry: Entry) -> dict[str, Any]:
        if self._is_dict:
            return {**observation, self._key: entry}
        return {OBSERVATION: observation, self._key: entry}


def _common(dtype: Any, limits: list[NDArray[Any]]) -> np.dtype[Any]:
    """The dtype of the flat array: a float observation keeps its own if it holds every whole-numbered action."""
    result: np.dtype[Any] = np.dtype(dtype)
    for limit in limits:
        whole = limit.dtype.kind in "biu"
        exact = result.kind == "f" and bool((np.abs(limit.astype(float)) <= 2.0 ** np.finfo(result).nmant).all())
        result = result if whole and exact else np.result_type(result, limit.dtype)
    return result
