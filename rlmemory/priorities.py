"""The priorities of a memory's rows: what each weighs in a draw, and which one a new row gets."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import accept
from .priority_tree import PriorityTree
from .ring import spans
from .specs import NumericSpec

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_PRIORITY = NumericSpec((), "float64", name="priority")
#: The highest exponent and epsilon: with the limit in `accept_priority`, no mass and no sum of masses overflows.
HIGHEST = 100.0


class Priorities:
    """The priorities of the live rows of a memory, in a tree over its slots.

    Parameters
    ----------
    capacity : int
    exponent, epsilon : float
        ``mass = (priority + epsilon) ** exponent``.
    least : bool
        Also keep the smallest positive mass.

    Attributes
    ----------
    tree : PriorityTree
        True to the memory after `sync`.
    """

    def __init__(self, capacity: int, exponent: float, epsilon: float, *, least: bool) -> None:
        self.exponent, self.epsilon = exponent, epsilon
        self.tree = PriorityTree(capacity, least=least)
        self._capacity = capacity
        self._least = least
        self._ranked = 0  # ids below this one are in the tree

    def masses(self, priority: Floats) -> Floats:
        """What each priority weighs in a draw; computed once, when the priority is set."""
        base = priority + self.epsilon
        masses: Floats = base**self.exponent
        if self.epsilon == 0.0:
            masses[base == 0.0] = 0.0  # 0 to the power of 0 is 1
        return masses

    def sync(self, oldest: int, end: int) -> None:
        """Give the rows that were appended without a priority since the last time the one that is theirs.

        The live ids are ``oldest <= id < end``. All these rows get the same. Let v be the largest priority among the
        rows that stay when the first of them is stored, or 1. When the next one is stored, the first is the newest of
        the rows that stay, and no other is above v: so it gets v too, and so on. (With room for one row only, none
        ever stays, and all get 1.) So it does not matter when this is called, as long as it is called before any other
        change of priorities.
        """
        begin = self._ranked
        if begin == end:
            return
        tree, slot = self.tree, begin % self._capacity
        if tree.priority[slot] == tree.largest > 0.0:  # the row that the first new one replaced, while it counts
            tree.fill(slot, slot + 1, 0.0, 0.0)
        value = np.array([tree.largest or 1.0])
        mass = self.masses(value)
        for first, last, _ in spans(max(begin, oldest), end, self._capacity):
            tree.fill(first, last, mass, value)
        self._ranked = end

    def rank(self, ids: range, priority: Floats, oldest: int) -> None:
        """Set the rows that have just been stored; any that were stored after them are left for `sync`."""
        kept = min(len(ids), ids.stop - oldest)
        priority = priority[len(ids) - kept :]
        self._lay_out(ids.stop - kept, ids.stop, priority, self.masses(priority))

    def _lay_out(self, begin: int, end: int, priority: Floats, mass: Floats) -> None:
        for first, last, done in spans(begin, end, self._capacity):
            piece = slice(done, done + last - first)
            self.tree.fill(first, last, mass[piece], priority[piece])
        self._ranked = end

    def rebuild(self, capacity: int, oldest: int, end: int, priority: Floats, mass: Floats) -> None:
        """Begin anew with these priorities and masses of the live rows, oldest first."""
        self._capacity = capacity
        self.tree = PriorityTree(capacity, least=self._least)
        self._lay_out(oldest, end, priority, mass)

    def in_order(self, oldest: int, end: int) -> tuple[Floats, Floats]:
        """Priorities and masses of the live rows, oldest first. Copies."""
        runs = spans(oldest, end, self._capacity)
        priority, mass = (
            np.concatenate([leaves[:0], *(leaves[a:b] for a, b, _ in runs)])
            for leaves in (self.tree.priority, self.tree.mass)
        )
        return priority, mass

    def pick(self, rows: Ints, rng: np.random.Generator, size: int, *, stratified: bool) -> Ints | None:
        """`size` of `rows` in proportion to mass; None, and nothing drawn, when they have none. Looks at all rows."""
        up_to = np.cumsum(self.tree.mass[rows % self._capacity])
        total = float(up_to[-1])
        if not total > 0.0:
            return None
        u = rng.random(size)
        target = ((np.arange(size) + u) / size if stratified else u) * total
        # As in the tree: rounding may bring a target up to the total, and a row of mass 0 is never taken. The sum
        # reaches the total at a row above 0.
        found = np.searchsorted(up_to, target, side="right")
        return rows[np.minimum(found, np.searchsorted(up_to, total))]


def accept_priority(priority: ArrayLike, shape: tuple[int, ...], exponent: float) -> Floats:
    """Priorities as float64, or an error that names the first that is not a finite number from 0 up."""
    values: Floats = accept("priority", priority, _PRIORITY, shape)
    check_priority(values, exponent)
    return values


def check_priority(values: Floats, exponent: float) -> None:
    """An error that names the first priority that is not a finite number from 0 up."""
    if not values.size:
        return
    # The sum of the masses has to stay finite: exp(600) is about 1e260.
    highest = math.exp(min(600.0 / exponent, 600.0)) if exponent else math.exp(600.0)
    if np.minimum.reduce(values, None) >= 0.0 and np.maximum.reduce(values, None) <= highest:  # False for NaN
        return
    wrong = ~((values >= 0.0) & (values <= highest))
    position = [int(i) for i in np.argwhere(wrong)[0]]
    value = float(values[tuple(position)])
    where = f" at position {position[0] if len(position) == 1 else position}" if position else ""
    large = f", at most {highest:.3g} with this exponent" if np.isfinite(value) and value > 0.0 else ""
    raise ValueError(f"priority: {value!r}{where}; priorities are finite numbers from 0 up{large}. Nothing was changed")
