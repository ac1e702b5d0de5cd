"""From what rlmemory hands out to the structs that MATLAB's functions return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rlmemory as rlm

from .arrays import dlarray
from .buffers import Buffer
from .cells import Cell
from .channels import Channel
from .device import gpuArray
from .layout import is_done, leaves, row, to_matlab
from .reading import BATCHED_FIELDS, FIELDS, Reader
from .records import Column, LazyRecords, MadeRecord
from .structs import from_records, struct, view

#: What is done to each array before it is handed out: nothing, or a dlarray is put around it.
Wrap = Callable[[Any], Any]


class MiniBatch(struct):
    """A struct of one element that remembers the record of rlmemory from which it was made."""

    __slots__ = ("_origin",)

    _origin: rlm.Experience | rlm.Batch

    def __iter__(self) -> Iterator[struct]:
        raise TypeError(
            "this is one struct, not several outputs: write `mb, mask = sample(buffer, n, nargout=2)` to get "
            "the mask as well"
        )


def wrapping(ReturnDlarray: bool, ReturnGpuArray: bool) -> Wrap:
    """The conversion that two options ask for; an error right away where there is no device."""
    if ReturnGpuArray:
        gpuArray(())
    return dlarray if ReturnDlarray else as_it_is


def as_it_is(value: Any) -> Any:
    """No conversion."""
    return value


def batched(origin: rlm.Experience | rlm.Batch, buffer: Buffer, lead: int, wrap: Wrap) -> MiniBatch:
    """One struct with all rows of `origin`, whose arrays begin with `lead` axes; fields in the batched order."""
    make = partial(_field, origin, buffer._reader, lead, wrap)
    result = view(MiniBatch, MadeRecord(BATCHED_FIELDS, make), None, True)
    object.__setattr__(result, "_origin", origin)
    return result


def _field(origin: rlm.Experience | rlm.Batch, reader: Reader, lead: int, wrap: Wrap, name: str) -> Any:
    if name == "Observation":
        return _cell(origin.observation, reader.observation, lead, wrap)
    if name == "NextObservation":
        return _cell(origin.next_observation, reader.observation, lead, wrap)
    if name == "Action":
        return _cell(origin.action, reader.action, lead, wrap)
    return wrap(row(origin.reward if name == "Reward" else is_done(origin.terminated, origin.truncated)))


def _cell(channels: Any, specs: tuple[Channel, ...], lead: int, wrap: Wrap) -> Cell:
    pairs = zip(leaves(channels), specs, strict=True)
    return Cell([wrap(to_matlab(array, channel, lead)) for array, channel in pairs])


def sequence(experience: rlm.Experience) -> rlm.Experience:
    """The same rows as one sequence: every array with a batch axis of one in front."""
    return experience._replace(
        observation=_one_more_axis(experience.observation),
        action=_one_more_axis(experience.action),
        reward=experience.reward[None],
        next_observation=_one_more_axis(experience.next_observation),
        terminated=experience.terminated[None],
        truncated=experience.truncated[None],
        source=experience.source[None],
        id=experience.id[None],
    )


def _one_more_axis(channels: Any) -> Any:
    return tuple(array[None] for array in channels) if isinstance(channels, tuple) else channels[None]


def on_demand(buffer: Buffer, wrap: Wrap) -> struct:
    """An N-by-1 struct array of everything in a memory, whose elements are made when they are asked for.

    The memory is read when the first element is, or before this interface next changes it.
    """
    memory, reader = buffer.memory, buffer._reader
    ids = memory.ids
    records = LazyRecords(FIELDS, len(ids), lambda: columns_of(_still_there(memory, ids), reader, wrap))
    buffer._remember(records)
    return from_records(records)


def columns_of(experience: rlm.Experience, reader: Reader, wrap: Wrap) -> Mapping[str, Column]:
    """What each field of each row of `experience` is, made when it is asked for."""
    return {
        "Observation": _cells(experience.observation, reader.observation, wrap),
        "Action": _cells(experience.action, reader.action, wrap),
        "NextObservation": _cells(experience.next_observation, reader.observation, wrap),
        "Reward": _scalars(experience.reward, wrap),
        "IsDone": _scalars(is_done(experience.terminated, experience.truncated), wrap),
    }


def _still_there(memory: rlm.ReplayMemory, ids: range) -> rlm.Experience:
    if memory.ids == ids:
        return memory.all()
    try:
        return memory.get(np.array(ids, np.int64))
    except rlm.StaleIdError as error:
        raise rlm.StaleIdError(
            "these experiences were overwritten through buffer.memory before the first of them was read: read one "
            f"before writing there, or write with append(buffer, ...) ({error})"
        ) from error


def _cells(channels: Any, specs: tuple[Channel, ...], wrap: Wrap) -> Column:
    # Entry i of each is what element i holds: a view with the full Dimension.
    columns = [array[channel.ones] for array, channel in zip(leaves(channels), specs, strict=True)]
    return lambda row: Cell([wrap(column[row]) for column in columns])


def _scalars(column: NDArray[Any], wrap: Wrap) -> Column:
    if wrap is as_it_is:
        return lambda row: column[row]
    return lambda row: wrap(column[row].reshape(1, 1))


def from_columns(columns: Mapping[str, list[NDArray[Any]] | NDArray[Any]], count: int) -> struct:
    """An N-by-1 struct array of arrays whose last axis counts experiences; a list of them is a cell."""

    def load() -> Mapping[str, Column]:
        return {
            name: _last_axis_cells(column) if isinstance(column, list) else _scalars(column, as_it_is)
            for name, column in columns.items()
        }

    return from_records(LazyRecords(FIELDS, count, load))


def _last_axis_cells(columns: list[NDArray[Any]]) -> Column:
    return lambda row: Cell([column[..., row] for column in columns])
