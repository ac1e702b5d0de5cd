"""Batches that take fixed shares from several memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import as_numeric, at_least
from .batch import Batch, Channels, _record_repr
from .device_array import DeviceArray
from .devices import joined, to_device
from .errors import EmptyMemoryError, ShapeError, StructureError
from .memory import ReplayMemory


class MixtureBatch(NamedTuple):
    """A batch from several memories: the fields of :class:`Batch`, and which memory each row came from.

    Attributes
    ----------
    observation, action, ..., previous_reward
        As in :class:`Batch`. An `id` belongs to the memory that it came from. `weight` is that of the row's own memory:
        1 at most in each of them.
    member : int64 array (B,)
        The position of the row's memory in the mixture; ascending.
    """

    observation: Channels
    action: Channels
    reward: NDArray[Any]
    next_observation: Channels
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    source: NDArray[np.int32]
    id: NDArray[np.int64]
    extra: dict[str, NDArray[Any]]
    mask: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    steps: NDArray[np.int64]
    discount: NDArray[np.float64]
    weight: NDArray[np.float64]
    previous_action: Channels | None
    previous_reward: NDArray[Any] | None
    member: NDArray[np.int64]

    def __repr__(self) -> str:
        return _record_repr(self)


class Mixture:
    """Several memories, sampled together in fixed proportions: demonstrations beside one's own experiences, say.

    Parameters
    ----------
    memories : sequence of ReplayMemory
        Of equal specs: channels, arrangement, shapes and dtypes; limits and names may differ. They are used, not
        copied, and each keeps its own capacity, priorities and generator. A memory may be given more than once.
    proportions : array_like of float from 0 up, one for each memory
        They need not add up to 1.

    Raises
    ------
    StructureError
        When the specs differ; it names the field.
    ValueError
        For proportions that are negative, not finite, or all 0.
    ShapeError
        When there are not as many proportions as memories.

    Notes
    -----
    How many rows each memory gives is fixed by the proportions, not drawn: ``B * proportion``, rounded down, and the
    rows that are left over go to the largest remainders (of equal ones, to the earlier memory).

    MATLAB has no counterpart.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> own, shown = (rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 8, seed=s) for s in (0, 1))
    >>> for memory in (own, shown):
    ...     _ = memory.append(0.0, 0.0, reward=1.0, next_observation=0.0, terminated=False)
    >>> rlm.Mixture([own, shown], [0.75, 0.25]).sample(8).member
    array([0, 0, 0, 0, 0, 0, 1, 1])
    """

    def __init__(self, memories: Sequence[ReplayMemory], proportions: ArrayLike) -> None:
        self._memories = tuple(memories)
        if not self._memories:
            raise ValueError("memories: expected at least one, got none")
        for i, memory in enumerate(self._memories):
            if not isinstance(memory, ReplayMemory):
                raise StructureError(f"memories: expected replay memories, got {type(memory).__name__} at {i}")
            for ours, theirs in zip(self._memories[0]._groups, memory._groups, strict=True):
                if memory.device != self._memories[0].device:
                    raise StructureError(
                        f"memories: memories[0] is on {self._memories[0].device}, memories[{i}] on {memory.device}; "
                        "bring one of them to the other's with to()"
                    )
                if not ours.same_layout(theirs):
                    raise StructureError(
                        f"{ours.field}: the memories of a mixture need equal specs; memories[0] has {ours.specs}, "
                        f"memories[{i}] has {theirs.specs}"
                    )
        shares = as_numeric("proportions", proportions).astype(np.float64)
        if shares.shape != (len(self._memories),):
            raise ShapeError(
                f"proportions: expected one for each of {len(self._memories)} memories, got {shares.shape}"
            )
        if not (np.isfinite(shares).all() and (shares >= 0).all() and 0 < shares.sum() < np.inf):
            raise ValueError(f"proportions: expected finite numbers from 0 up, not all 0, got {shares.tolist()}")
        self._shares: NDArray[np.float64] = shares / shares.sum()

    @property
    def memories(self) -> tuple[ReplayMemory, ...]:
        """The memories, in their order."""
        return self._memories

    @property
    def proportions(self) -> NDArray[np.float64]:
        """The share of each memory; they add up to 1. A copy."""
        return self._shares.copy()

    def counts(self, batch_size: int) -> NDArray[np.int64]:
        """How many rows of a batch each memory gives.

        Parameters
        ----------
        batch_size : int
            From 1 up.

        Returns
        -------
        int64 array, one for each memory
        """
        wanted = at_least("batch_size", batch_size, 1) * self._shares
        counts: NDArray[np.int64] = np.floor(wanted).astype(np.int64)
        # Rounding to 12 digits: remainders that are equal on paper go to the earlier memory.
        order = np.argsort(-np.round(wanted - counts, 12), kind="stable")
        counts[order[: batch_size - int(counts.sum())]] += 1
        return counts

    def sample(self, batch_size: int, **options: Any) -> MixtureBatch:
        """Draw from each memory its share, first the rows of the first memory.

        Parameters
        ----------
        batch_size : int
            B, from 1 up.
        **options
            Those of :meth:`ReplayMemory.sample`, the same for all, but for `out`.

        Returns
        -------
        MixtureBatch
            Fresh arrays, shaped as those of :meth:`ReplayMemory.sample`.

        Raises
        ------
        EmptyMemoryError
            When a memory that is to give rows cannot; it says which.
        TypeError
            For `out`.
        ValueError
            As :meth:`ReplayMemory.sample`.

        Notes
        -----
        Each memory draws with its own generator. For memories with priorities:
        ``ids, member = rlm.to_host((batch.id, batch.member))``, then
        ``memories[k].update_priorities(ids[member == k], errors[member == k])``.
        """
        if "out" in options:
            raise TypeError("out: a mixture joins batches of several memories and gives a fresh one")
        counts = self.counts(batch_size)
        parts: list[Batch] = []
        for i in np.flatnonzero(counts).tolist():
            try:
                parts.append(self._memories[i].sample(int(counts[i]), **options))
            except EmptyMemoryError as error:
                raise EmptyMemoryError(f"memories[{i}]: {error}") from error
        rows = 1 if options.get("time_major") and parts[0].mask.ndim == 2 else 0
        fields = {
            name: _joined([getattr(part, name) for part in parts], 0 if name == "weight" else rows)
            for name in Batch._fields
        }
        member = np.repeat(np.arange(counts.size), counts)
        return MixtureBatch(**fields, member=to_device(member, self._memories[0].device))


def _joined(values: list[Any], axis: int) -> Any:
    """Channels of several batches as those of one, in the same arrangement."""
    first = values[0]
    if first is None:
        return None
    if isinstance(first, DeviceArray):
        return joined(values, axis)
    if isinstance(first, dict):
        return {key: _joined([value[key] for value in values], axis) for key in first}
    if isinstance(first, tuple):
        return tuple(_joined(list(leaves), axis) for leaves in zip(*values, strict=True))
    return np.concatenate(values, axis)
