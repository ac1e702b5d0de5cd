"""The masses and priorities of a memory's rows, and the trees over them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import kernels
from .blocks import ALIGNMENT

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_WIDTH = 8  # children of a node; the kernels are written for it
_NONE = np.empty(0)


class PriorityTree:
    """One mass and one priority for each slot, with the sum of all masses and the maximum of all priorities.

    Parameters
    ----------
    capacity : int
        Slots. All have mass 0 and priority 0 to begin with.
    least : bool
        Also keep the smallest positive mass.

    Attributes
    ----------
    mass, priority : float64 array (capacity,)
        By slot. They are changed through `fill` and `update` only.

    Notes
    -----
    Two trees of 8 bytes a slot and a seventh of that for the nodes above; three with `least`.
    """

    def __init__(self, capacity: int, *, least: bool) -> None:
        self._capacity = capacity
        sizes = [capacity]
        while len(sizes) < 2 or sizes[-1] > 1:  # there always is a node above the leaves
            sizes.append(-(-sizes[-1] // _WIDTH))
        starts = np.cumsum([0, *(-(-size // _WIDTH) * _WIDTH for size in sizes)])
        self._levels = starts[:-1].astype(np.int64)
        self._masses, self._priorities = _aligned(int(starts[-1])), _aligned(int(starts[-1]))
        self._leasts = _NONE
        if least:
            self._leasts = _aligned(int(starts[-1]))
            self._leasts[:] = np.inf
        self.mass, self.priority = self._masses[:capacity], self._priorities[:capacity]
        self._root = int(self._levels[-1])
        self._stale = np.empty(1, np.int64)

    @property
    def total(self) -> float:
        """The sum of all masses."""
        return float(self._masses[self._root])

    @property
    def largest(self) -> float:
        """The largest priority; 0 when there is none."""
        return float(self._priorities[self._root])

    @property
    def least(self) -> float:
        """The smallest positive mass; infinite when there is none."""
        return float(self._leasts[self._root])

    def fill(self, first: int, last: int, mass: ArrayLike, priority: ArrayLike) -> None:
        """Set the slots ``first <= slot < last``, to one value or to one each."""
        self.mass[first:last] = mass
        self.priority[first:last] = priority
        if self._leasts.size:
            self._leasts[first:last] = np.where(np.greater(mass, 0.0), mass, np.inf)
        kernels.active().tree_span(first, last, self._levels, self._masses, self._priorities, self._leasts)

    def update(self, ids: Ints, mass: Floats, priority: Floats, oldest: int, end: int) -> int:
        """Set the rows with these ids, the last of equal ids wins; returns how many are not live and were left out."""
        kernels.active().tree_update(
            ids, mass, priority, oldest, end, self._capacity, self._levels,
            np.empty(ids.size, np.int64), self._stale, self._masses, self._priorities, self._leasts,
        )  # fmt: skip
        return int(self._stale[0])

    def draw(self, u: Floats, stratified: bool, oldest: int) -> tuple[Ints, Ints]:
        """Ids and slots of one row for each uniform, in proportion to the masses, whose total is above 0."""
        ids, slots = np.empty(u.size, np.int64), np.empty(u.size, np.int64)
        kernels.active().tree_draw(
            u, stratified, oldest, self._capacity, self._levels, self._masses, np.empty(u.size), ids, slots
        )
        return ids, slots


def _aligned(size: int) -> Floats:
    """Zeros from a cache line's start on, so that the children of a node lie in one line."""
    raw = np.zeros(size + ALIGNMENT // 8)
    offset = -raw.ctypes.data % ALIGNMENT // 8
    return raw[offset : offset + size]
