"""From what rlmemory hands out to the structs that MATLAB's functions return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

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

Convert = Callable[[Any], Any]


def as_it_is(value: Any) -> Any:
    """No conversion."""
    return value


class Output(NamedTuple):
    """What is done to each array before it is handed out.

    Attributes
    ----------
    move : callable
        To a GPU, or nothing: done to whole arrays, as they lie in memory.
    wrap : callable
        Puts a dlarray around it, or nothing: done to the array that is handed out, a view of the other.
    """

    move: Convert = as_it_is
    wrap: Convert = as_it_is


PLAIN = Output()


class MiniBatch(struct):
    """A struct of one element that remembers the record of rlmemory from which it was made."""

    __slots__ = ("_origin",)

    _origin: rlm.Experience | rlm.Batch

    def __iter__(self) -> Iterator[struct]:
        raise TypeError(
            "this is one struct, not several outputs: write `mb, mask = sample(buffer, n, nargout=2)` to get "
            "the mask as well"
        )


def output(ReturnDlarray: bool, ReturnGpuArray: bool) -> Output:
    """The conversions that two options ask for; an error right away where there is no device."""
    if ReturnGpuArray:
        gpuArray(np.zeros(0))
    return Output(gpuArray if ReturnGpuArray else as_it_is, dlarray if ReturnDlarray else as_it_is)


def batched(origin: rlm.Experience | rlm.Batch, buffer: Buffer, lead: int, out: Output) -> MiniBatch:
    """One struct with all rows of `origin`, whose arrays begin with `lead` axes; fields in the batched order."""
    make = partial(_field, origin, buffer._reader, lead, out)
    result = view(MiniBatch, MadeRecord(BATCHED_FIELDS, make), None, True)
    object.__setattr__(result, "_origin", origin)
    return result


def _field(origin: rlm.Experience | rlm.Batch, reader: Reader, lead: int, out: Output, name: str) -> Any:
    if name == "Observation":
        return _cell(origin.observation, reader.observation, lead, out)
    if name == "NextObservation":
        return _cell(origin.next_observation, reader.observation, lead, out)
    if name == "Action":
        return _cell(origin.action, reader.action, lead, out)
    values = origin.reward if name == "Reward" else is_done(origin.terminated, origin.truncated)
    return out.wrap(row(out.move(values)))


def _cell(channels: Any, specs: tuple[Channel, ...], lead: int, out: Output) -> Cell:
    pairs = zip(leaves(channels), specs, strict=True)
    return Cell([out.wrap(to_matlab(out.move(array), channel, lead)) for array, channel in pairs])


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


def on_demand(buffer: Buffer, out: Output) -> struct:
    """An N-by-1 struct array of everything in a memory, whose elements are made when they are asked for.

    The memory is read when the first element is, or before this interface next changes it.
    """
    memory, reader = buffer.memory, buffer._reader
    ids = memory.ids
    records = LazyRecords(FIELDS, len(ids), lambda: columns_of(_still_there(memory, ids), reader, out))
    buffer._remember(records)
    return from_records(records)


def columns_of(experience: rlm.Experience, reader: Reader, out: Output) -> Mapping[str, Column]:
    """What each field of each row of `experience` is, made when it is asked for."""
    return {
        "Observation": _cells(experience.observation, reader.observation, out),
        "Action": _cells(experience.action, reader.action, out),
        "NextObservation": _cells(experience.next_observation, reader.observation, out),
        "Reward": _scalars(experience.reward, out),
        "IsDone": _scalars(is_done(experience.terminated, experience.truncated), out),
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


def _cells(channels: Any, specs: tuple[Channel, ...], out: Output) -> Column:
    # Entry i of each is what element i holds: a view with the full Dimension.
    columns = [out.move(array)[channel.ones] for array, channel in zip(leaves(channels), specs, strict=True)]
    return Column(columns, lambda columns, row: Cell([out.wrap(column[row]) for column in columns]))


def _scalars(column: NDArray[Any], out: Output) -> Column:
    if out == PLAIN:
        return Column([column], lambda columns, row: columns[0][row])
    return Column([out.move(column)], lambda columns, row: out.wrap(columns[0][row].reshape(1, 1)))


def from_columns(columns: Mapping[str, list[NDArray[Any]] | NDArray[Any]], count: int) -> struct:
    """An N-by-1 struct array of arrays whose last axis counts experiences; a list of them is a cell."""

    def load() -> Mapping[str, Column]:
        return {
            name: _last_axis_cells(column) if isinstance(column, list) else _scalars(column, PLAIN)
            for name, column in columns.items()
        }

    return from_records(LazyRecords(FIELDS, count, load))


def _last_axis_cells(columns: list[NDArray[Any]]) -> Column:
    return Column(columns, lambda columns, row: Cell([column[..., row] for column in columns]))
