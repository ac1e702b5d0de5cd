"""What changes a replay memory or asks about it: `append`, `resize`, ... Each is a method of the memories as well."""

from __future__ import annotations

from typing import Any

import numpy as np

import rlmemory as rlm

from .buffers import Buffer, checked
from .gathering import in_columns
from .generated import standing_alone
from .options import whole
from .reading import elements, numbered, sources, translated

_MAX_LENGTH = whole(1)


def append(buffer: Buffer, experience: Any, dataSourceID: Any = 0) -> None:
    """Put experiences into a replay memory, overwriting the oldest when it is full.

    Parameters
    ----------
    buffer : rlReplayMemory
    experience : struct, dict, list of these, or the structured array that ``scipy.io.loadmat`` gives
        One experience an element, in time order, with the fields Observation, Action, NextObservation (cells with
        one array a channel), Reward and IsDone (scalars; 0 running, 1 ended by the environment, 2 by the maximum
        episode length). An array of n numbers stands for a Dimension [n 1] or [1 n]. Arrays on a GPU, as
        ``ReturnGpuArray=True`` gives them, are copied to the host.
    dataSourceID : int or sequence of int, default 0
        Which environment or worker it came from: one number, or one for each experience; 0 or more.

    Returns
    -------
    None
        The values are copied; nothing is stored when anything is wrong.

    Raises
    ------
    rlmemory.StructureError, rlmemory.ShapeError, rlmemory.DataTypeError, rlmemory.ValueNotRepresentableError
        When an experience does not fit, as `validateExperience` describes, or a value would change in the
        channel's DataType.

    Notes
    -----
    MATLAB counterpart: ``append``, in both forms, ``append(buffer, e)`` and ``buffer.append(e)``. A value
    that would change in the DataType of its channel is an error, where casts in MATLAB saturate and round.
    What `generateHindsightExperiences` gave, whole or as elements and slices of it, has no neighbours here either: no
    sequence or sum over steps joins it.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlFiniteSetSpec([-1, 1]), 100)
    >>> e = struct()
    >>> e.Observation, e.Action, e.NextObservation = [np.zeros((2, 1))], [1], [np.ones((2, 1))]
    >>> e.Reward, e.IsDone = 0.5, 0
    >>> append(buffer, e)
    >>> buffer.Length
    1
    """
    memory, reader = checked("append", buffer).memory, buffer._reader
    alone = standing_alone(experience, reader)
    if alone is not None:
        _append_alone(buffer, alone, dataSourceID)
        return
    records = elements(in_columns(experience))
    count = len(records)
    source = sources(dataSourceID, count)
    if count == 0:
        return
    step = reader.one(records[0]) if count == 1 else reader.many(records)
    if buffer._unread:
        buffer._settle()
    observation, action, reward, next_observation, terminated, truncated = step
    store: Any = memory.append if count == 1 else memory.extend
    try:
        store(
            observation, action, reward=reward, next_observation=next_observation,
            terminated=terminated, truncated=truncated, source=source,
        )  # fmt: skip
    except rlm.ReplayMemoryError as error:
        raise (translated(error) if count == 1 else numbered(error)) from None


def _append_alone(buffer: Buffer, experience: rlm.Experience, dataSourceID: Any) -> None:
    """Store what was generated, which no sequence, sum over steps or trajectory joins."""
    count = len(experience.id)
    source = sources(dataSourceID, count)
    each = np.broadcast_to(0 if source is None else source, (count,))
    buffer._settle()
    try:
        buffer.memory.extend_from(experience._replace(source=each))
    except rlm.ReplayMemoryError as error:
        raise numbered(error) from None


def validateExperience(buffer: Buffer, experience: Any) -> None:
    """Check that experiences fit a replay memory, without storing them.

    Parameters
    ----------
    buffer : rlReplayMemory
    experience : struct, dict, list of these, or the structured array that ``scipy.io.loadmat`` gives
        As for `append`; arrays on a GPU are copied to the host.

    Returns
    -------
    None

    Raises
    ------
    rlmemory.StructureError
        When it is not a struct, a field is missing, a channel field is not a cell or has another number of entries
        than there are channels.
    rlmemory.ShapeError
        When an entry has another size than the Dimension of its channel (trailing ones do not count), or Reward or
        IsDone is not a scalar.
    rlmemory.ValueNotRepresentableError
        When IsDone is not 0, 1 or 2.

    Notes
    -----
    MATLAB counterpart: ``validateExperience``. Limits and the elements of finite sets are not checked.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]))
    >>> e = struct(Observation=[np.zeros((3, 1))], Action=[0.5], NextObservation=[np.zeros((2, 1))])
    >>> e.Reward, e.IsDone = 1.0, 0
    >>> validateExperience(buffer, e)
    Traceback (most recent call last):
    ...
    rlmemory.errors.ShapeError: Observation[0]: 3×1 came, 2×1 was expected (the Dimension of that channel)
    """
    reader = checked("validateExperience", buffer)._reader
    records = elements(in_columns(experience))
    if len(records) == 1:
        reader.one(records[0])
    for number, record in enumerate(records if len(records) > 1 else ()):
        reader.one(record, number)


def resize(buffer: Buffer, maxLength: int) -> None:
    """Change how many experiences a replay memory holds, in place.

    Parameters
    ----------
    buffer : rlReplayMemory
    maxLength : int
        1 or more. When fewer than are stored, the newest stay.

    Returns
    -------
    None

    Raises
    ------
    ValueError
        When `maxLength` is not a whole number above 0.

    Notes
    -----
    MATLAB counterpart: ``resize``.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]), 100)
    >>> resize(buffer, 50)
    >>> buffer.MaxLength
    50
    """
    memory = checked("resize", buffer).memory
    capacity = _MAX_LENGTH("resize: maxLength", maxLength)
    buffer._settle()
    memory.resize(capacity)


def reset(buffer: Buffer) -> None:
    """Remove all experiences from a replay memory.

    Parameters
    ----------
    buffer : rlReplayMemory

    Returns
    -------
    None

    Raises
    ------
    TypeError
        When `buffer` is not a replay memory.

    Notes
    -----
    MATLAB counterpart: ``reset``.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]))
    >>> reset(buffer)
    >>> buffer.Length
    0
    """
    memory = checked("reset", buffer).memory
    buffer._settle()
    memory.clear()


def getObservationInfo(buffer: Buffer) -> Any:
    """The observation specs of a replay memory.

    Parameters
    ----------
    buffer : rlReplayMemory

    Returns
    -------
    spec, or list of specs
        As they were given; the list is a new one.

    Raises
    ------
    TypeError
        When `buffer` is not a replay memory.

    Notes
    -----
    MATLAB counterpart: ``getObservationInfo``.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]))
    >>> getObservationInfo(buffer).Dimension
    (2, 1)
    """
    info = checked("getObservationInfo", buffer)._observation_info
    return list(info) if isinstance(info, list) else info


def getActionInfo(buffer: Buffer) -> Any:
    """The action specs of a replay memory.

    Parameters
    ----------
    buffer : rlReplayMemory

    Returns
    -------
    spec, or list of specs
        As they were given; the list is a new one.

    Raises
    ------
    TypeError
        When `buffer` is not a replay memory.

    Notes
    -----
    MATLAB counterpart: ``getActionInfo``.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlFiniteSetSpec([-1, 1]))
    >>> getActionInfo(buffer).Elements
    array([-1.,  1.])
    """
    info = checked("getActionInfo", buffer)._action_info
    return list(info) if isinstance(info, list) else info
