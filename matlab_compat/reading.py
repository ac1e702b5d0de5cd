"""From a user's experience, in any of its forms, to checked arrays in rlmemory's shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import rlmemory as rlm

from .cells import Cell
from .channels import Channel, core_shape, is_vector_of
from .device import fetched
from .display import class_name, size_text
from .structs import rows_of, struct

#: The fields of an experience, in the order in which individual experiences show them.
FIELDS = ("Observation", "Action", "NextObservation", "Reward", "IsDone")
#: The same in the order in which a batch or a sequence shows them.
BATCHED_FIELDS = ("Observation", "Action", "Reward", "NextObservation", "IsDone")
_TO_MATLAB = {"observation": "Observation", "action": "Action", "next_observation": "NextObservation",
              "reward": "Reward", "source": "dataSourceID"}  # fmt: skip
#: What rlmemory stores, for one experience or for many: observation, action, reward, next_observation, terminated,
#: truncated. A plain tuple, as one is made for each experience.
Step: TypeAlias = tuple[Any, Any, Any, Any, Any, Any]


class Reader:
    """Reads and checks experiences for a memory with these channels.

    Parameters
    ----------
    observation, action : sequence of Channel
    """

    __slots__ = ("action", "observation")

    def __init__(self, observation: Sequence[Channel], action: Sequence[Channel]) -> None:
        self.observation, self.action = tuple(observation), tuple(action)

    def one(self, record: Mapping[str, Any], number: int | None = None) -> Step:
        """Read a single experience; `number` is its place in a struct array, for messages."""
        try:
            observation, action, following = record["Observation"], record["Action"], record["NextObservation"]
            reward, done = record["Reward"], record["IsDone"]
        except KeyError as error:
            raise rlm.StructureError(_missing(error.args[0], list(record), number)) from None
        observations = _entries(observation, self.observation, "Observation", number)
        actions = _entries(action, self.action, "Action", number)
        following = _entries(following, self.observation, "NextObservation", number)
        reward = _scalar(reward, "Reward", number)
        code = _code(done, number)
        return observations, actions, reward, following, code == 1, code == 2

    def many(self, records: Sequence[Mapping[str, Any]]) -> Step:
        """Read several experiences, stacked along a first axis."""
        steps = [self.one(record, number) for number, record in enumerate(records)]
        observation, action, reward, following, terminated, truncated = zip(*steps, strict=True)
        return (
            _stack_channels(observation, len(self.observation), "Observation"),
            _stack_channels(action, len(self.action), "Action"),
            _stack(reward, "Reward"),
            _stack_channels(following, len(self.observation), "NextObservation"),
            np.array(terminated, np.bool_),
            np.array(truncated, np.bool_),
        )


def _entries(cell: Any, channels: tuple[Channel, ...], field: str, number: int | None) -> Any:
    """The arrays of a cell, one a channel, each in the shape that rlmemory stores; one channel's stands bare."""
    if not isinstance(cell, (list, tuple)):
        if not (isinstance(cell, np.ndarray) and cell.dtype == object):
            raise rlm.StructureError(_not_a_cell(cell, field, number))
        cell = cell.ravel(order="F").tolist()
    if len(cell) != len(channels):
        raise rlm.StructureError(_wrong_count(cell, len(channels), field, number))
    if len(channels) == 1:
        return _entry(cell[0], channels[0], field, 0, number)
    return tuple([_entry(value, channels[k], field, k, number) for k, value in enumerate(cell)])


def elements(experience: Any) -> Sequence[Mapping[str, Any]]:
    """The experiences in what a user gave, as mappings from field to value.

    Parameters
    ----------
    experience : struct, dict, list of these, or the structured array that ``scipy.io.loadmat`` gives

    Raises
    ------
    rlmemory.StructureError
        For anything else.
    """
    if isinstance(experience, struct):
        return rows_of(experience)
    if isinstance(experience, Mapping):
        return [experience]
    names = getattr(getattr(experience, "dtype", None), "names", None)
    if names:
        return [{name: row[name] for name in names} for row in np.ravel(experience, order="F")]
    if isinstance(experience, np.ndarray) and experience.dtype == object:
        experience = experience.ravel(order="F").tolist()
    if isinstance(experience, (list, tuple)):
        parts = [elements(part) for part in experience if isinstance(part, (struct, Mapping, np.void))]
        if len(parts) == len(experience):
            return [record for part in parts for record in part]
    raise rlm.StructureError(_not_a_struct(experience))


def sources(value: Any, count: int) -> Any:
    """The dataSourceID of each of `count` experiences, checked: one for all, or one for each; None for source 0."""
    if type(value) is int and value >= 0:
        return value or None
    given = np.asarray(fetched(value))
    whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and bool((given == np.floor(given)).all()))
    if not whole or bool((given < 0).any()):
        raise rlm.ValueNotRepresentableError(f"dataSourceID: expected whole numbers from 0 up, got {value!r}")
    if given.size not in (1, count):
        raise rlm.ShapeError(
            f"dataSourceID: expected one number, or one for each of the {count} experiences; got {given.size}"
        )
    return int(given.item()) if given.size == 1 else given.ravel()


def translated(error: rlm.ReplayMemoryError) -> rlm.ReplayMemoryError:
    """An error of rlmemory in the words of this interface: MATLAB's field names, the number of the experience."""
    match = re.match(r"(\w+)(?:\[(\d+)\])?(:.*)", str(error), re.DOTALL)
    if match is None or match[1] not in _TO_MATLAB:
        return error
    name, channel, rest = _TO_MATLAB[match[1]], match[2] or "0", match[3]
    place = f"{name}[{channel}]" if name in ("Observation", "Action", "NextObservation") else name
    return type(error)(place + rest)


def numbered(error: rlm.ReplayMemoryError) -> rlm.ReplayMemoryError:
    """The same for many experiences: the first index of a position is the number of the experience."""
    named = translated(error)
    match = re.fullmatch(r"(.*?)( at position \[(\d+)(?:, )?([\d, ]*)\])(.*)", str(named), re.DOTALL)
    if match is None:
        return named
    within = f" at position [{match[4]}]" if match[4] else ""
    return type(error)(f"experience[{match[3]}].{match[1]}{within}{match[5]}")


def _stack_channels(entries: Sequence[Any], channels: int, field: str) -> Any:
    if channels == 1:
        return _stack(entries, f"{field}[0]")
    return tuple(_stack([entry[k] for entry in entries], f"{field}[{k}]") for k in range(channels))


def _stack(parts: Sequence[Any], place: str) -> NDArray[Any]:
    """One array of all parts; parts of unlike classes only where no value changes by that."""
    arrays = [np.asarray(part) for part in parts]
    stacked = np.stack(arrays)
    for number, array in enumerate(arrays):
        if array.dtype == stacked.dtype:
            continue
        with np.errstate(all="ignore"):
            back = stacked[number].astype(array.dtype)
        if not np.array_equal(back, array, equal_nan=array.dtype.kind in "fc"):
            raise rlm.ValueNotRepresentableError(
                f"experience[{number}].{place}: {class_name(array.dtype)} values that change in the "
                f"{class_name(stacked.dtype)} of the others; give all experiences one class"
            )
    return stacked


def _entry(value: Any, channel: Channel, field: str, k: int, number: int | None) -> NDArray[Any]:
    if type(value) is np.ndarray and value.shape == channel.dimension:
        bare: NDArray[Any] = value[channel.first]
        return bare
    array = _as_array(value, f"{field}[{k}]", number)
    shape = core_shape(array.shape)
    if shape == channel.shape or (array.ndim == 1 and is_vector_of(array.size, channel.dimension)):
        return array.reshape(channel.shape)
    raise rlm.ShapeError(f"{_where(number)}{field}[{k}]: " + _wrong_size(array, shape, channel, number))


def _as_array(value: Any, place: str, number: int | None) -> NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray):
        raise rlm.DataTypeError(f"{_where(number)}{place}: a masked array would lose its mask; give x.filled(...)")
    try:
        return np.asarray(fetched(value))
    except (ValueError, TypeError) as error:
        raise rlm.ShapeError(f"{_where(number)}{place}: cannot be read as one array ({error})") from error


def _wrong_size(array: NDArray[Any], shape: tuple[int, ...], channel: Channel, number: int | None) -> str:
    came, wanted = size_text(array.shape), size_text(channel.dimension)
    if array.ndim == 1:
        came = f"{array.size} numbers"
    message = f"{came} came, {wanted} was expected (the Dimension of that channel)"
    if array.size == 0:
        return message + "; nothing was assigned there" + _from_one(number)
    if array.shape[: len(channel.dimension)] == channel.dimension:
        return message + "; this is a batch of experiences: append(buffer, unbatch(batch)) takes it apart"
    if core_shape(array.shape[::-1]) == channel.shape or (len(shape) == 2 and core_shape(shape[::-1]) == channel.shape):
        return message + "; transpose it"
    return message


def _scalar(value: Any, field: str, number: int | None) -> Any:
    if type(value) is float or isinstance(value, np.number):
        return value
    array = _as_array(value, field, number)
    if array.size == 1 and array.dtype != object:
        return array.reshape(())
    came = size_text(array.shape) if array.dtype != object else type(value).__name__
    message = f"{_where(number)}{field}: {came} came, a scalar was expected"
    if array.size == 0:
        raise rlm.ShapeError(message + "; nothing was assigned there" + _from_one(number))
    if array.dtype != object and array.ndim >= 2 and array.shape[0] == 1:
        message += "; for a batch of experiences: append(buffer, unbatch(batch)) takes it apart"
    raise rlm.ShapeError(message)


def _code(value: Any, number: int | None) -> int:
    """IsDone as 0, 1 or 2."""
    code = value if type(value) is int else _scalar(value, "IsDone", number)
    if code in (0, 1, 2):
        return int(code)
    raise rlm.ValueNotRepresentableError(
        f"{_where(number)}IsDone: {fetched(value)!r} came; expected 0 (running), 1 (ended by the environment) or "
        "2 (ended by the maximum episode length)"
    )


def _where(number: int | None) -> str:
    return "" if number is None else f"experience[{number}]."


def _from_one(number: int | None) -> str:
    return " (indices start at 0: a loop that starts at 1 leaves element 0 empty)" if number == 0 else ""


def _missing(field: str, names: list[str], number: int | None) -> str:
    return (
        f"{_where(number)}{field}: this field is missing; an experience has the fields {', '.join(FIELDS)}, "
        f"and {', '.join(names) or 'none'} came"
    )


def _not_a_cell(value: Any, field: str, number: int | None) -> str:
    came = (
        f"{size_text(value.shape)} {class_name(value.dtype)}" if isinstance(value, np.ndarray) else type(value).__name__
    )
    message = f"{_where(number)}{field}: {came} came, a cell was expected, with one entry for each channel"
    if isinstance(value, np.ndarray) and value.size == 0:
        return message + "; nothing was assigned there" + _from_one(number)
    return message + f": write [{field.lower()}], even for one channel"


def _wrong_count(cell: Sequence[Any], wanted: int, field: str, number: int | None) -> str:
    message = f"{_where(number)}{field}: {len(cell)} entries came, {wanted} expected, one for each channel"
    if cell and all(isinstance(entry, (int, float, np.number)) for entry in cell):
        message += "; a Python list is a cell: for one channel of numbers write [np.array([...])]"
    return message


def _not_a_struct(value: Any) -> str:
    message = f"experience: {type(value).__name__} came, a struct was expected"
    if isinstance(value, (Cell, list, tuple)):
        message = f"experience: a cell of {len(value)} came, a struct (or a list of structs or dicts) was expected"
    return message + f", with the fields {', '.join(FIELDS)}: write e = struct(); e.Observation = [...]; and so on"
