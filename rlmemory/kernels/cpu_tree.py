"""The kernels of the priority tree, compiled by Numba for the CPU. What each does is said in `reference_tree`.

All indices into a tree are unsigned: for a signed one, compiled code checks each time whether it counts from the end,
which made a draw a third slower (256 of 1e6 rows: 17.9 against 13.4 us).

Functions marked `inline` are what `cuda_tree` compiles for the device as well. Each takes one array: one that computed
a node of all three trees counted their references each time (an update of 256 rows: 9.5 against 6.5 us).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._bytes import prefetch
from ._jit import inline, kernel

_SHIFT = 3  # 8 children, one cache line
_UP = 6  # from a node to its grandparent
_unsigned = np.uint64
_1, _2, _3, _4, _5, _6, _7 = (np.uint64(k) for k in range(1, 8))


@inline
def _larger(a: float, b: float) -> Any:
    return a if a > b else b


@inline
def _smaller(a: float, b: float) -> Any:
    return a if a < b else b


@inline
def sum_of(m: Any, c: Any) -> Any:
    return m[c] + m[c + _1] + m[c + _2] + m[c + _3] + m[c + _4] + m[c + _5] + m[c + _6] + m[c + _7]


@inline
def largest_of(p: Any, c: Any) -> Any:
    return _larger(
        _larger(_larger(p[c], p[c + _1]), _larger(p[c + _2], p[c + _3])),
        _larger(_larger(p[c + _4], p[c + _5]), _larger(p[c + _6], p[c + _7])),
    )


@inline
def least_of(s: Any, c: Any) -> Any:
    return _smaller(
        _smaller(_smaller(s[c], s[c + _1]), _smaller(s[c + _2], s[c + _3])),
        _smaller(_smaller(s[c + _4], s[c + _5]), _smaller(s[c + _6], s[c + _7])),
    )


@kernel
def tree_span(first: int, last: int, levels: Any, out_mass: Any, out_priority: Any, out_least: Any) -> None:
    """As in `reference_tree`."""
    for level in range(1, levels.size):
        below, here = levels[level - 1], levels[level]
        first, last = first >> _SHIFT, ((last - 1) >> _SHIFT) + 1
        for node in range(first, last):
            c, parent = _unsigned(below + (node << _SHIFT)), _unsigned(here + node)
            out_mass[parent], out_priority[parent] = sum_of(out_mass, c), largest_of(out_priority, c)
            if out_least.size > 0:
                out_least[parent] = least_of(out_least, c)


@kernel
def _climb(count: int, levels: Any, out_node: Any, out_mass: Any, out_priority: Any, out_least: Any) -> None:
    # Level by level, each parent from its children. A parent that comes out as it was needs nothing done above it:
    # that ends the climb, and also takes care of parents that several rows share.
    for level in range(1, levels.size):
        below, here = levels[level - 1], levels[level]
        if level < levels.size - 1:
            for i in range(count):
                line = (here << _SHIFT) + ((out_node[i] >> _UP) << _UP)
                prefetch(out_mass.ctypes.data + line)
                prefetch(out_priority.ctypes.data + line)
        kept = 0
        for i in range(count):
            node = out_node[i] >> _SHIFT
            c, parent = _unsigned(below + (node << _SHIFT)), _unsigned(here + node)
            total, largest = sum_of(out_mass, c), largest_of(out_priority, c)
            changed = (total != out_mass[parent]) | (largest != out_priority[parent])
            out_mass[parent], out_priority[parent] = total, largest
            if out_least.size > 0:
                least = least_of(out_least, c)
                changed |= least != out_least[parent]
                out_least[parent] = least
            out_node[kept] = node
            kept += changed
        count = kept


@kernel
def tree_update(
    ids: Any, mass: Any, priority: Any, oldest: int, end: int, capacity: int, levels: Any,
    out_node: Any, out_stale: Any, out_mass: Any, out_priority: Any, out_least: Any,
) -> None:  # fmt: skip
    """As in `reference_tree`."""
    masses, priorities = out_mass.ctypes.data, out_priority.ctypes.data
    first_slot = oldest % capacity
    count = 0
    for i in range(ids.size):
        if oldest <= ids[i] < end:
            slot = first_slot + ids[i] - oldest  # below twice the capacity: no division for each row
            slot -= capacity if slot >= capacity else 0
            out_node[i] = slot
            count += 1
            prefetch(masses + ((slot >> _SHIFT) << _UP))
            prefetch(priorities + ((slot >> _SHIFT) << _UP))
        else:
            out_node[i] = -1
    out_stale[0] = ids.size - count
    count = 0
    for i in range(ids.size):
        slot = out_node[i]
        if slot >= 0:
            out_mass[slot], out_priority[slot] = mass[i], priority[i]
            if out_least.size > 0:
                out_least[slot] = mass[i] if mass[i] > 0.0 else np.inf
            out_node[count] = slot
            count += 1
    _climb(count, levels, out_node, out_mass, out_priority, out_least)


@inline
def share(i: int, u: float, count: int, stratified: bool) -> Any:
    """Which share of the root draw i looks for."""
    return (i + u) / count if stratified else u


@inline
def step_down(c: Any, target: float, mass: Any) -> Any:
    """Which child a target falls on, of those from `c` on, and what is left of the target inside that child.

    The sums up to each child are compared without a branch; taking the first that fits took twice as long.
    """
    s0 = mass[c]
    s1 = s0 + mass[c + _1]
    s2 = s1 + mass[c + _2]
    s3 = s2 + mass[c + _3]
    s4 = s3 + mass[c + _4]
    s5 = s4 + mass[c + _5]
    s6 = s5 + mass[c + _6]
    s7 = s6 + mass[c + _7]
    child = (
        int(s0 <= target) + int(s1 <= target) + int(s2 <= target) + int(s3 <= target)
        + int(s4 <= target) + int(s5 <= target) + int(s6 <= target)
    )  # fmt: skip
    before = s0 if s0 <= target else 0.0
    before = s1 if s1 <= target else before
    before = s2 if s2 <= target else before
    before = s3 if s3 <= target else before
    before = s4 if s4 <= target else before
    before = s5 if s5 <= target else before
    before = s6 if s6 <= target else before
    if s7 <= target:  # by rounding: the last child above 0
        so_far = before = 0.0
        for k in range(8):
            if mass[c + _unsigned(k)] > 0.0:
                child, before = k, so_far
            so_far += mass[c + _unsigned(k)]
    return child, target - before


@inline
def id_of(slot: int, oldest: int, first: int, capacity: int) -> Any:
    distance = slot - first
    return oldest + (distance if distance >= 0 else distance + capacity)


@kernel
def tree_draw(
    u: Any, stratified: bool, oldest: int, capacity: int, levels: Any, mass: Any,
    out_rest: Any, out_id: Any, out_slot: Any,
) -> None:  # fmt: skip
    """As in `reference_tree`."""
    top = levels.size - 1
    total = mass[levels[top]]
    for i in range(u.size):
        out_rest[i] = share(i, u[i], u.size, stratified) * total
        out_slot[i] = 0
    # All draws take one step down before any takes the next: meanwhile the lines that the next step reads arrive.
    for level in range(top - 1, -1, -1):
        start = levels[level]
        below = mass.ctypes.data + 8 * levels[max(level - 1, 0)]
        for i in range(u.size):
            child, rest = step_down(_unsigned(start + (out_slot[i] << _SHIFT)), out_rest[i], mass)
            out_rest[i] = rest
            node = (out_slot[i] << _SHIFT) + child
            out_slot[i] = node
            prefetch(below + (node << _UP))
    first = oldest % capacity
    for i in range(u.size):
        out_id[i] = id_of(out_slot[i], oldest, first, capacity)
