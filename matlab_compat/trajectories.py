"""`splitTrajectories`: experiences in the order of time, a trajectory a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import rlmemory as rlm

from .buffers import Buffer
from .cells import Cell
from .extensions import cell_entries, columns_of, on_host
from .layout import row
from .options import name_value, whole
from .reading import BATCHED_FIELDS, FIELDS, elements
from .results import PLAIN, MiniBatch, batched
from .structs import struct

_CELLS = ("Observation", "Action", "NextObservation")


@name_value(nargout=whole(1))
def splitTrajectories(experience: Any, *, nargout: int = 1) -> Any:
    """Cut experiences after each IsDone and lay the trajectories side by side, padded with zeros to the longest.

    Parameters
    ----------
    experience : struct, dict, loaded struct or rlReplayMemory
        Experiences of one source in the order of time, as `allExperiences` returns them in any mode; or a replay
        memory, whose sources are kept apart.
    nargout : int, default 1
        How many outputs to return.

    Returns
    -------
    trajectories : struct
        One struct of Observation, Action, Reward, NextObservation, IsDone, with B trajectories of up to T steps:
        channels of Dimension D are ``D + (B, T)``, Reward and IsDone ``(1, B, T)``. New arrays, seen through views.
    Mask : bool array (1, B, T), for nargout of 2
        True for experiences, False for padding.

    Raises
    ------
    rlmemory.StructureError, rlmemory.ShapeError
        When a field is missing or does not have as many experiences as Reward.
    rlmemory.DataTypeError
        When arrays of `experience` are on a GPU: give ``gather(experience)``.
    ValueError
        When `nargout` is neither 1 nor 2.

    Notes
    -----
    An extension: MATLAB has no counterpart. Both 1 and 2 in IsDone end a trajectory; the last one needs no end. The
    layout is that of ``sample`` with a SequenceLength. TorchRL has ``split_trajectories``, rlmemory the same with more
    options.

    Examples
    --------
    >>> batch = struct(Observation=[np.ones((2, 1, 5))], Action=[np.ones((1, 1, 5))], Reward=np.ones((1, 5)))
    >>> batch.NextObservation, batch.IsDone = [np.ones((2, 1, 5))], np.array([[0, 0, 1, 0, 0]])
    >>> trajectories, mask = splitTrajectories(batch, nargout=2)
    >>> trajectories.Observation[0].shape, trajectories.Reward.shape
    ((2, 1, 2, 3), (1, 2, 3))
    >>> mask.sum()
    np.int64(5)
    """
    if nargout > 2:
        raise ValueError(f"splitTrajectories: nargout must be 1 or 2; got {nargout}")
    if isinstance(experience, Buffer):
        batch = experience.memory.trajectories()
        result: struct = batched(batch, experience, 2, PLAIN)
        mask = batch.mask
    else:
        columns = _stacked(experience)
        data = {name: _each(column, lambda array: np.moveaxis(array, -1, 0)) for name, column in columns.items()}
        split = rlm.split_trajectories(data, done_key="IsDone")
        result, mask = struct(), split["mask"]
        for name in BATCHED_FIELDS:
            value = split[name]
            setattr(result, name, Cell(map(_last_two, value.values())) if name in _CELLS else row(value))
    return result if nargout == 1 else (result, row(mask))


def _stacked(experience: Any) -> dict[str, Any]:
    """Every field as an array whose last axis counts experiences, or a list of such."""
    records = [] if isinstance(experience, MiniBatch) else elements(experience)
    if len(records) < 2:
        return columns_of("splitTrajectories", experience)[0]
    for number, record in enumerate(records):
        missing = [name for name in FIELDS if name not in record]
        if missing:
            raise rlm.StructureError(f"splitTrajectories: experience[{number}] has no field {', '.join(missing)}")
        on_host("splitTrajectories", record)
    columns: dict[str, Any] = {}
    for name in FIELDS:
        if name in _CELLS:
            cells = [cell_entries(record[name]) for record in records]
            columns[name] = [
                _stack(list(channel), f"{name}[{k}]") for k, channel in enumerate(zip(*cells, strict=True))
            ]
        else:
            columns[name] = _stack([np.reshape(record[name], ()) for record in records], name)
    return columns


def _stack(values: list[Any], place: str) -> NDArray[Any]:
    arrays = [np.asarray(value) for value in values]
    if len({array.shape for array in arrays}) > 1:
        raise rlm.ShapeError(f"splitTrajectories: {place} does not have the same size in all experiences")
    return np.stack(arrays, axis=-1)


def _each(column: Any, change: Any) -> Any:
    """An array, or the arrays of a cell by number, changed."""
    return {str(k): change(array) for k, array in enumerate(column)} if isinstance(column, list) else change(column)


def _last_two(array: NDArray[Any]) -> NDArray[Any]:
    """View ``[batch, time, *dimension]`` as ``dimension + (batch, time)``."""
    return np.moveaxis(array, (0, 1), (-2, -1))
