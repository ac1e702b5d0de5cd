"""What a memory hands out: records of arrays, cut from one block of bytes."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .device_array import DeviceArray

#: An array, a tuple of arrays or a dict of arrays: arranged as the specs of the memory.
Channels: TypeAlias = Any


def _described(value: Any) -> str:
    if isinstance(value, (np.ndarray, DeviceArray)):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_described(part)}" for key, part in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_described, value)) + ",)" * (len(value) == 1) + ")" * (len(value) != 1)
    return repr(value)


def _record_repr(record: Any) -> str:
    """Shapes, not numbers: a batch printed in full is pages long."""
    fields = (f"{name}={_described(value)}" for name, value in zip(record._fields, record, strict=True))
    return f"{type(record).__name__}({', '.join(fields)})"


class Experience(NamedTuple):
    """Rows of a memory, one array a channel, oldest first unless ids were asked for in another order.

    With N rows, every array begins with an axis of N (`memory.get` keeps the shape of its ids instead). The arrays are
    NumPy's, or `DeviceArray` when they come from a memory on a GPU: `rlmemory.to_host` copies them all.

    Attributes
    ----------
    observation, action, next_observation : array, tuple or dict of arrays, each (N, *shape)
        Arranged as the specs.
    reward : array (N, *shape), shape () unless the reward is a vector
    terminated, truncated : bool array (N,)
        An experience with both was terminated: that is what is kept.
    source : int32 array (N,)
        Which environment or worker it came from.
    id : int64 array (N,)
        Running number since the memory was made.
    extra : dict of arrays, each (N, *shape)
        The user's own fields; empty when there are none.
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

    def __repr__(self) -> str:
        return _record_repr(self)


class Generated(Experience):
    """Rows that did not happen: wherever `extend_from` stores them, they have no neighbours."""

    __slots__ = ()


class Batch(NamedTuple):
    """A sample for a learner: the fields of `Experience`, and what the rows mean in it.

    The axes (B,) are those of single rows and n-step sums; windows of T steps have (B, T), or (T, B) when time was
    asked for first, in all fields but `weight`. The arrays are as those of :class:`Experience`.

    Attributes
    ----------
    observation, action, reward, next_observation, terminated, truncated, source, id, extra
        As in :class:`Experience`, with B rows.
    mask : bool array (B,)
        True for real rows, False for padding.
    is_first : bool array (B,)
        True where the row before it, in its source, ended an episode or is not in the memory.
    steps : int64 array (B,)
        How many steps the reward covers.
    discount : float64 array (B,)
        ``gamma ** steps``, and 0 where terminated. A target is always ``reward + discount * value(next_observation)``.
    weight : float64 array (B,)
        Importance weights; ones when every row is equally likely.
    previous_action, previous_reward : as action and reward, or None
        Of the step before each one, zeros at an episode's start; None unless they were asked for.
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

    def __repr__(self) -> str:
        return _record_repr(self)
