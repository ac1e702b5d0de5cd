"""What MATLAB's buffers do not have and their users ask for: `unbatch`, `merge`, `toBatchFirst`."""

from __future__ import annotations

from typing import Any

import numpy as np

import rlmemory as rlm

from .buffers import Buffer, checked
from .channels import Channel
from .device import on_gpu
from .display import class_name, size_text
from .layout import packed, to_core
from .reading import FIELDS, elements
from .results import MiniBatch, from_columns
from .structs import struct


def unbatch(batch: Any) -> struct:
    """Take a batch or a sequence of experiences apart.

    Parameters
    ----------
    batch : struct, dict or loaded struct of one element
        As `allExperiences` returns in "batch" or "sequence" mode, `sample` with SequenceLength 1, or
        ``scipy.io.loadmat`` for a file with one of these.

    Returns
    -------
    struct
        N-by-1 struct array of single experiences, which `append` takes. The elements are made when asked for;
        their arrays are views of those in `batch`.

    Raises
    ------
    rlmemory.StructureError
        When a field is missing, or `batch` has several elements.
    rlmemory.DataTypeError
        When arrays of `batch` are on a GPU: give ``gather(batch)``.
    rlmemory.ShapeError
        When Reward is neither 1-by-N nor 1-by-1-by-N, or another field does not have N experiences.

    Notes
    -----
    An extension: MATLAB has no counterpart.

    Examples
    --------
    >>> batch = struct(Observation=[np.zeros((2, 1, 3))], Action=[np.zeros((1, 1, 3))])
    >>> batch.NextObservation, batch.Reward, batch.IsDone = [np.ones((2, 1, 3))], np.ones((1, 3)), np.zeros((1, 3))
    >>> unbatch(batch)
    3×1 struct array with fields:
        Observation
        Action
        NextObservation
        Reward
        IsDone
    """
    columns, count = columns_of("unbatch", batch)
    return from_columns(columns, count)


def columns_of(function: str, batch: Any) -> tuple[dict[str, Any], int]:
    """The fields of a batch or a sequence as arrays whose last axis counts its experiences, and how many there are.

    Those of Observation, Action and NextObservation are lists, an array for each channel.
    """
    record = _one_record(function, batch)
    reward = np.asarray(record["Reward"])
    count = reward.size
    if reward.shape not in ((), (count,), (1, count), (1, 1, count)):
        raise rlm.ShapeError(
            f"{function}: Reward is {size_text(reward.shape)}; expected a batch (1×N) or one sequence (1×1×N). A batch "
            "of several sequences has padding in it: take the real ones with its mask"
        )
    lead = 2 if reward.ndim == 3 else 1
    columns: dict[str, Any] = {
        "Reward": reward.reshape(count),
        "IsDone": np.asarray(record["IsDone"]).ravel(),
    }
    if columns["IsDone"].size != count:
        raise rlm.ShapeError(f"{function}: IsDone has {columns['IsDone'].size} values, Reward {count}")
    for field in ("Observation", "Action", "NextObservation"):
        columns[field] = [
            _last_axis(np.asarray(entry), count, lead, f"{function}: {field}[{k}]")
            for k, entry in enumerate(cell_entries(record[field]))
        ]
    return columns, count


def _last_axis(array: np.ndarray[Any, Any], count: int, lead: int, place: str) -> np.ndarray[Any, Any]:
    """The same array with one last axis that counts experiences."""
    if count == 1:
        # Files drop trailing ones: the axes of one experience are there only if so many would not be there without.
        there = array.ndim >= 2 + lead and array.shape[array.ndim - lead :] == (1,) * lead
        return array.reshape((*array.shape[: array.ndim - lead], 1) if there else (*array.shape, 1))
    if array.shape[-1:] != (count,) or (lead == 2 and array.shape[-2:] != (1, count)):
        wanted = f"…×1×{count}" if lead == 2 else f"…×{count}"
        raise rlm.ShapeError(f"{place} is {size_text(array.shape)}; expected {wanted}, as Reward has {count}")
    return array[..., 0, :] if lead == 2 else array


def cell_entries(cell: Any) -> list[Any]:
    """The entries of a cell in any of its forms."""
    return cell.ravel(order="F").tolist() if isinstance(cell, np.ndarray) and cell.dtype == object else list(cell)


def _one_record(function: str, batch: Any) -> Any:
    records = [batch._records.row(0)] if isinstance(batch, MiniBatch) else elements(batch)
    if len(records) != 1:
        raise rlm.StructureError(
            f"{function}: expected one struct whose arrays hold all experiences; got {len(records)} elements"
        )
    missing = [field for field in FIELDS if field not in records[0]]
    if missing:
        raise rlm.StructureError(f"{function}: the struct has no field {', '.join(missing)}")
    return on_host(function, records[0])


def on_host(function: str, record: Any) -> Any:
    """The same record, or an error that names a field whose arrays are on a GPU."""
    for field in FIELDS:
        value = record[field]
        cell = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object)
        if any(map(on_gpu, cell_entries(value))) if cell else on_gpu(value):
            raise rlm.DataTypeError(
                f"{function}: {field} is on a GPU, and is needed on the host: {function}(gather(x)) brings the whole "
                "struct back, and ReturnGpuArray=False leaves it there"
            )
    return record


def merge(buffer: Buffer, other: Buffer) -> None:
    """Put everything of another replay memory into this one.

    Parameters
    ----------
    buffer : rlReplayMemory
        Receives the experiences, as `append` would: overwriting its oldest when it is full.
    other : rlReplayMemory
        With channels of the same Dimension and DataType; stays as it is.

    Returns
    -------
    None

    Raises
    ------
    rlmemory.SpecError
        When the channels are not the same.

    Notes
    -----
    An extension: MATLAB has no counterpart. Each experience keeps its data source. What
    `generateHindsightExperiences` made does not stay alone: merge the memories before it is appended.

    Examples
    --------
    >>> a, b = (rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1])) for _ in range(2))
    >>> append(b, struct(Observation=[np.zeros(2)], Action=[0], NextObservation=[np.ones(2)], Reward=1, IsDone=0))
    >>> merge(a, b)
    >>> a.Length
    1
    """
    target, origin = checked("merge", buffer), checked("merge", other)
    for field in ("observation", "action"):
        ours, theirs = getattr(target._reader, field), getattr(origin._reader, field)
        if [(c.shape, c.dtype) for c in ours] != [(c.shape, c.dtype) for c in theirs]:
            raise rlm.SpecError(
                f"merge: the {field} channels differ: {_described(ours)} here, {_described(theirs)} in the other memory"
            )
    experience = origin.memory.all()
    target._settle()
    target.memory.extend_from(experience)


def _described(channels: tuple[Channel, ...]) -> str:
    return ", ".join(f"{size_text(channel.dimension)} {class_name(channel.dtype)}" for channel in channels)


def toBatchFirst(batch: Any) -> rlm.Experience | rlm.Batch:
    """The same data in the axis order of Python's networks: batch first, then time, then the channel's shape.

    Parameters
    ----------
    batch : struct, dict or loaded struct of one element
        As `sample` returns, or `allExperiences` in "batch" or "sequence" mode.

    Returns
    -------
    rlmemory.Batch for what `sample` returned, else rlmemory.Experience
        Channels of Dimension D become ``(B, *shape)`` or ``(B, T, *shape)``, where shape is D without its trailing
        ones; reward, terminated and truncated ``(B,)`` or ``(B, T)``. Views of the arrays in `batch`, so changed
        fields come along. Fields that a struct of another origin cannot know (source, id, extra) are None.

    Raises
    ------
    rlmemory.StructureError
        When a field is missing, or `batch` has several elements.
    rlmemory.DataTypeError
        When arrays of `batch` are on a GPU: give ``gather(batch)``.

    Notes
    -----
    An extension: MATLAB has no counterpart. Why it matters: ``(1, B) - (B, 1)`` is ``(B, B)`` in NumPy and in torch,
    without a word.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]))
    >>> append(buffer, struct(Observation=[np.zeros(2)], Action=[0], NextObservation=[np.ones(2)], Reward=1, IsDone=0))
    >>> batch = toBatchFirst(sample(buffer, 32))
    >>> batch.observation.shape, batch.reward.shape
    ((32, 2), (32,))
    """
    record = _one_record("toBatchFirst", batch)
    reward = np.asarray(record["Reward"])
    lead = 2 if reward.ndim == 3 else 1
    code = np.asarray(record["IsDone"])
    fields: dict[str, Any] = {
        "observation": _batch_first(record["Observation"], lead),
        "action": _batch_first(record["Action"], lead),
        "reward": to_core(reward, lead),
        "next_observation": _batch_first(record["NextObservation"], lead),
        "terminated": to_core(code == 1, lead),
        "truncated": to_core(code == 2, lead),
    }
    if isinstance(batch, MiniBatch):
        return batch._origin._replace(**fields)
    unknown: dict[str, Any] = {"source": None, "id": None, "extra": None}
    return rlm.Experience(**fields, **unknown)


def _batch_first(cell: Any, lead: int) -> Any:
    return packed(tuple(to_core(np.asarray(entry), lead) for entry in cell_entries(cell)))
