"""A channel in both views: MATLAB's Dimension and class, NumPy's shape and dtype."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: MATLAB's classes that a channel can have.
DTYPES = {
    "double": "float64",
    "single": "float32",
    **{name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
    "logical": "bool",
}


class Channel(NamedTuple):
    """One channel in both views: MATLAB's Dimension, and the shape without trailing ones that rlmemory stores."""

    dimension: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ones: tuple[Any, ...]  # indexing [..., *shape] with this puts the trailing ones back,
    first: tuple[Any, ...]  # and indexing [..., *dimension] with this takes them away

    @classmethod
    def of(cls, dimension: tuple[int, ...], dtype: str) -> Channel:
        """The channel of that Dimension and NumPy dtype."""
        shape = core_shape(dimension)
        ones = len(dimension) - len(shape)
        return cls(dimension, shape, np.dtype(dtype), (..., *(None,) * ones), (..., *(0,) * ones))


def core_shape(dimension: tuple[int, ...]) -> tuple[int, ...]:
    """A size without its trailing ones, which MATLAB ignores and rlmemory does not have."""
    count = len(dimension)
    while count and dimension[count - 1] == 1:
        count -= 1
    return tuple(dimension[:count])


def is_vector_of(count: int, dimension: tuple[int, ...]) -> bool:
    """Whether a row of `count` numbers without orientation fills a channel: its Dimension is [n 1] or [1 n]."""
    shape = core_shape(dimension)
    return shape in ((count,), (1, count)) or (shape == () and count == 1)
