"""Axis orders: rlmemory's ``[batch, time, *shape]`` and MATLAB's ``Dimension x batch x time``, as views."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .channels import Channel, core_shape


def to_matlab(array: NDArray[Any], channel: Channel, lead: int = 1) -> NDArray[Any]:
    """View ``[batch, (time,) *shape]`` as ``dimension + (batch, (time,))``.

    Parameters
    ----------
    array : ndarray
    channel : Channel
    lead : int, default 1
        How many axes stand before the shape: 1 for a batch, 2 for a batch of sequences.

    Returns
    -------
    ndarray
        A view, neither C- nor F-contiguous for a matrix channel.
    """
    full: NDArray[Any] = array[channel.ones]
    return full.transpose(_orders(len(channel.dimension), lead))


@cache
def _orders(rank: int, lead: int) -> tuple[int, ...]:
    return (*range(lead, lead + rank), *range(lead))


def row(array: NDArray[Any]) -> NDArray[Any]:
    """View a number for each experience, ``[batch, (time,)]``, as Reward, IsDone and Mask are: ``1 x batch x time``."""
    return array[None]


def to_core(array: NDArray[Any], lead: int) -> NDArray[Any]:
    """The inverse of `to_matlab`: a view with the last `lead` axes in front, and no trailing ones after them."""
    split = array.ndim - lead
    moved = array.transpose(*range(split, array.ndim), *range(split))
    return moved.reshape(moved.shape[:lead] + core_shape(moved.shape[lead:]))


def leaves(channels: Any) -> tuple[Any, ...]:
    """The arrays of a field of rlmemory, where one channel stands bare and several are a tuple."""
    return channels if isinstance(channels, tuple) else (channels,)


def packed(entries: tuple[Any, ...]) -> Any:
    """The inverse of `leaves`."""
    return entries[0] if len(entries) == 1 else entries


def is_done(terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]) -> NDArray[np.float64]:
    """MATLAB's code: 0 running, 1 ended by the environment, 2 ended by the maximum length."""
    code = truncated.astype(np.float64)
    code += code
    code[terminated] = 1.0
    return code
