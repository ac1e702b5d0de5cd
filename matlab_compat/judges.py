"""A user's functions of one experience as rlmemory's functions of many, and goals in its way of counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rlmemory as rlm

from .cells import Cell
from .channels import Channel
from .display import size_text
from .layout import leaves
from .reading import Reader

_NAMES = {"reward_fn": "RewardFcn", "generate_hindsight": "generateHindsightExperiences", "goals": "goalConditionInfo"}


class Judge:
    """A function of one experience, asked about each of many.

    Parameters
    ----------
    name : str
        Of the property, for messages.
    function : callable
        Takes Observation, Action and NextObservation, cells of arrays in their full Dimensions, and gives a scalar.
        The arrays are its own copies.
    reader : Reader
        Of the memory.
    logical : bool
        Whether it gives true or false.
    """

    __slots__ = ("_channels", "_logical", "_name", "function")

    def __init__(self, name: str, function: Callable[..., Any], reader: Reader, logical: bool) -> None:
        if not callable(function):
            raise TypeError(f"{name}: a function of (observation, action, nextObservation) was expected; "
                            f"{type(function).__name__} came")  # fmt: skip
        self._name, self.function, self._logical = name, function, logical
        self._channels = (reader.observation, reader.action, reader.observation)

    def __call__(self, observation: Any, action: Any, next_observation: Any) -> NDArray[Any]:
        """The answers for N experiences, (N,)."""
        fields = [leaves(field) for field in (observation, action, next_observation)]
        return np.array([self._one(fields, row) for row in range(len(fields[0][0]))])

    def _one(self, fields: list[tuple[Any, ...]], row: int) -> Any:
        cells = [
            Cell(np.array(array[row][channel.ones]) for array, channel in zip(arrays, channels, strict=True))
            for arrays, channels in zip(fields, self._channels, strict=True)
        ]
        given = np.asarray(self.function(*cells))
        if given.size != 1 or given.dtype.kind not in "biuf":
            came = "no number" if given.dtype.kind not in "biuf" else size_text(given.shape)
            raise rlm.ShapeError(f"{self._name}: {came} came, a scalar was expected, for one experience at a time")
        value = given.item()
        if not self._logical:
            return value
        if value not in (0, 1):
            raise rlm.ValueNotRepresentableError(f"{self._name}: {value!r} came, true or false (1 or 0) was expected")
        return bool(value)


def named(error: rlm.ReplayMemoryError) -> rlm.ReplayMemoryError:
    """An error of rlmemory with MATLAB's names."""
    text = str(error)
    for core, name in _NAMES.items():
        text = name + text.removeprefix(core) if text.startswith(core) else text
    return type(error)(text)


def core_goals(goalConditionInfo: Any, channels: Sequence[Channel]) -> list[tuple[int, Any, int, Any]]:
    """Goal conditions that count from 1, column by column, as rlmemory counts: from 0, row by row.

    Raises
    ------
    rlmemory.SpecError
        When it is not a cell of cells of four, or a channel or an index is not there.
    """
    conditions = _cell(goalConditionInfo)
    if conditions is None or not conditions or any(_cell(entry) is None for entry in conditions):
        raise rlm.SpecError(
            "goalConditionInfo: a cell of conditions was expected, each {measurementChannel, measurementIndices, "
            "goalChannel, goalIndices}: write [[1, [1, 2], 2, [1, 2]]], also for a single one"
        )
    return [_core_goal(f"goalConditionInfo[{i}]", _cell(entry), channels) for i, entry in enumerate(conditions)]


def _core_goal(where: str, condition: Any, channels: Sequence[Channel]) -> tuple[int, Any, int, Any]:
    if len(condition) != 4:
        raise rlm.SpecError(
            f"{where}: {len(condition)} entries came; expected measurementChannel, measurementIndices, goalChannel "
            "and goalIndices"
        )
    places: list[Any] = []  # channel and indices, twice
    for name, channel, index in (("measurement", *condition[:2]), ("goal", *condition[2:])):
        number = _counted(f"{where}: {name}Channel", channel, len(channels))
        if number.size != 1:
            raise rlm.SpecError(f"{where}: {name}Channel is one number; {number.size} came")
        chosen = channels[int(number[0])]
        flat = _counted(f"{where}: {name}Indices", index, int(np.prod(chosen.dimension)))
        along = np.unravel_index(flat, chosen.dimension, order="F")
        places += [int(number[0]), np.ravel_multi_index(along, chosen.dimension)]
    return places[0], places[1], places[2], places[3]


def _counted(where: str, given: Any, count: int) -> NDArray[np.int64]:
    """Numbers that count from 1, as numbers that count from 0."""
    numbers = np.asarray(given).ravel(order="F")
    numeric = numbers.dtype.kind in "iuf" and numbers.size > 0
    if not numeric or not ((numbers >= 1) & (numbers <= count) & (numbers == np.floor(numbers))).all():
        raise rlm.SpecError(f"{where}: whole numbers from 1 to {count} were expected, as MATLAB counts; got {given!r}")
    if np.unique(numbers).size != numbers.size:
        raise rlm.SpecError(f"{where}: a number is given twice in {given!r}")
    return numbers.astype(np.int64) - 1


def _cell(value: Any) -> list[Any] | None:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return list(value.ravel(order="F"))
    return list(value) if isinstance(value, (list, tuple)) else None
