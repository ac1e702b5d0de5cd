"""The kernels of the priority tree in plain NumPy: the oracle of `cpu_tree`.

A tree lies in one float64 array, level after level, the leaves first: ``levels[k]`` is where level k starts, the last
level is the root alone. Node i of a level has the children ``8 i`` to ``8 i + 7`` of the level below, which is padded
so that all eight are there. Three trees share this layout: sums of the masses by which rows are drawn, maxima of the
raw priorities and, where it is wanted, minima of the positive masses (infinity stands for none; an array of size 0 for
a tree that is not wanted).

A parent is always computed from its eight children, the first to the last, and never corrected by a difference: so it
is the same number whatever came before, on every back end, and does not drift.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Children of a node: eight float64 are one cache line. Measured for 256 draws and updates in 1e6 rows: 8 children
#: 19 and 21 us, 16 children 26 and 27 us.
WIDTH = 8


def tree_span(first: int, last: int, levels: Ints, out_mass: Floats, out_priority: Floats, out_least: Floats) -> None:
    """Compute the nodes above the leaves ``first <= slot < last``, which have been written."""
    for k in range(1, levels.size):
        first, last = first // WIDTH, (last - 1) // WIDTH + 1
        _parents(np.arange(first, last), int(levels[k - 1]), int(levels[k]), out_mass, out_priority, out_least)


def tree_update(
    ids: Ints, mass: Floats, priority: Floats, oldest: int, end: int, capacity: int, levels: Ints,
    out_node: Ints, out_stale: Ints, out_mass: Floats, out_priority: Floats, out_least: Floats,
) -> None:  # fmt: skip
    """Give each row of `ids` a mass and a priority; the last of equal ids wins.

    Ids that are not live, ``oldest <= id < end``, are left out; ``out_stale[0]`` says how many. `out_node` is scratch,
    as long as `ids`.
    """
    live = (ids >= oldest) & (ids < end)
    out_stale[0] = np.count_nonzero(~live)
    slots = ids[live] % capacity
    for slot, m, p in zip(slots.tolist(), mass[live].tolist(), priority[live].tolist(), strict=True):
        out_mass[slot], out_priority[slot] = m, p
        if out_least.size:
            out_least[slot] = m if m > 0.0 else np.inf
    nodes = slots
    for k in range(1, levels.size):
        nodes = np.unique(nodes // WIDTH)
        _parents(nodes, int(levels[k - 1]), int(levels[k]), out_mass, out_priority, out_least)


def _parents(nodes: Ints, below: int, here: int, mass: Floats, priority: Floats, least: Floats) -> None:
    children = below + nodes[:, None] * WIDTH + np.arange(WIDTH)
    total = np.zeros(nodes.size)
    for k in range(WIDTH):  # np.sum may add in another order
        total += mass[children[:, k]]
    mass[here + nodes] = total
    priority[here + nodes] = priority[children].max(axis=1)
    if least.size:
        least[here + nodes] = least[children].min(axis=1)


def tree_draw(
    u: Floats, stratified: bool, oldest: int, capacity: int, levels: Ints, mass: Floats,
    out_rest: Floats, out_id: Ints, out_slot: Ints,
) -> None:  # fmt: skip
    """Draw one row for each of `u`, in proportion to its mass: ids and slots. The root is above 0.

    A target is ``u`` times the root, or with `stratified` ``(i + u[i]) / u.size`` times it; `out_rest`, scratch, ends
    with what is left of it inside the leaf. In each node the first child is taken with which the sum of the children
    so far exceeds the target; that child is above 0. Rounding can bring a target up to the node's own sum: then no
    child is found, and the last one above 0 is taken. So a leaf of 0 is never reached.
    """
    for i, x in enumerate(u.tolist()):
        target = ((i + x) / u.size if stratified else x) * float(mass[levels[-1]])
        node = 0
        for k in range(levels.size - 2, -1, -1):
            start = int(levels[k]) + node * WIDTH
            child, target = _child(mass[start : start + WIDTH].tolist(), target)
            node = node * WIDTH + child
        out_rest[i] = target
        out_slot[i] = node
        out_id[i] = oldest + (node - oldest) % capacity


def _child(masses: list[float], target: float) -> tuple[int, float]:
    """Which child a target falls on, and how far into it."""
    before, last = 0.0, (0, target)
    for child, mass in enumerate(masses):
        if target < before + mass:
            return child, target - before
        if mass > 0.0:
            last = child, target - before
        before += mass
    return last
