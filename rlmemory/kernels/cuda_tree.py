"""The kernels of the priority tree, for a GPU by numba.cuda. What each does is in `reference_tree`.

A level of the tree needs the one below it to be done. Blocks of a grid do not wait for each other, the threads of a
block do: where there is little to do, one block takes all steps in one launch, otherwise each step is a launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cpu_tree
from ._cuda import THREADS, blocks_for, cuda, device, kernel, launch, lent, product

_SHIFT = 3  # 8 children
_LEAVES = 4  # steps that change the leaves
#: Up to so many nodes, or rows to change, for one block: a launch costs as much as some more turns of its threads.
_NARROW = 4 * THREADS
_FEW = 16 * THREADS
_unsigned = np.uint64

_sum_of = device(cpu_tree.sum_of)
_largest_of = device(cpu_tree.largest_of)
_least_of = device(cpu_tree.least_of)
_share = device(cpu_tree.share)
_step_down = device(cpu_tree.step_down)
_id_of = device(cpu_tree.id_of)


@device
def _set_parent(node: int, level: int, levels: Any, out_mass: Any, out_priority: Any, out_least: Any) -> None:
    c, parent = _unsigned(levels[level - 1] + (node << _SHIFT)), _unsigned(levels[level] + node)
    out_mass[parent], out_priority[parent] = _sum_of(out_mass, c), _largest_of(out_priority, c)
    if out_least.size > 0:
        out_least[parent] = _least_of(out_least, c)


# ---- many neighbours ------------------------------------------------------------------------------------------------


@kernel
def _span(
    level: int, stop: int, first: int, last: int, levels: Any, out_mass: Any, out_priority: Any, out_least: Any
) -> None:
    for k in range(level, stop):
        first, last = first >> _SHIFT, ((last - 1) >> _SHIFT) + 1
        for node in range(first + cuda.grid(1), last, cuda.gridsize(1)):
            _set_parent(node, k, levels, out_mass, out_priority, out_least)
        cuda.syncthreads()


def tree_span(first: int, last: int, levels: Any, out_mass: Any, out_priority: Any, out_least: Any) -> None:
    if first >= last:
        return
    with lent((levels,), (out_mass, out_priority, out_least)) as (levels, *trees):
        level, top = 1, levels.size
        while level < top:
            above, end = first >> _SHIFT, ((last - 1) >> _SHIFT) + 1
            narrow = end - above <= _NARROW
            stop = top if narrow else level + 1
            launch(_span, 1 if narrow else blocks_for(end - above))(level, stop, first, last, levels, *trees)
            level, first, last = stop, above, end


# ---- single rows ----------------------------------------------------------------------------------------------------
#
# Of equal ids the last wins. They find that out in the leaf's own place: first each sets it to -1, then to its number
# if that is larger, which an atomic operation does in any order; those that do not find their number there are out.
# Numbers of rows are exact in float64. Nothing is copied to the host for that.
#
# Then the parents, level by level, each from its children. Rows that share a parent all compute it, to the same number.


@device
def _mark(
    begin: int, step: int, ids: Any, oldest: int, end: int, capacity: int, out_node: Any, out_stale: Any, out_mass: Any
) -> None:
    if begin == 0:
        out_stale[0] = 0
    for i in range(begin, ids.size, step):
        live = oldest <= ids[i] < end
        out_node[i] = ids[i] % capacity if live else -1
        if live:
            out_mass[out_node[i]] = -1.0


@device
def _claim(begin: int, step: int, out_node: Any, out_stale: Any, out_mass: Any) -> None:
    for i in range(begin, out_node.size, step):
        if out_node[i] >= 0:
            cuda.atomic.max(out_mass, out_node[i], float(i))
        else:
            cuda.atomic.add(out_stale, 0, 1)


@device
def _leave(begin: int, step: int, out_node: Any, out_mass: Any) -> None:
    for i in range(begin, out_node.size, step):
        if out_node[i] >= 0 and out_mass[out_node[i]] != i:
            out_node[i] = -1


@device
def _set_leaves(
    begin: int, step: int, mass: Any, priority: Any, out_node: Any, out_mass: Any, out_priority: Any, out_least: Any
) -> None:
    for i in range(begin, out_node.size, step):
        slot = out_node[i]
        if slot >= 0:
            out_mass[slot], out_priority[slot] = mass[i], priority[i]
            if out_least.size > 0:
                out_least[slot] = mass[i] if mass[i] > 0.0 else np.inf


@kernel
def _update(
    first: int, stop: int, ids: Any, mass: Any, priority: Any, oldest: int, end: int, capacity: int, levels: Any,
    out_node: Any, out_stale: Any, out_mass: Any, out_priority: Any, out_least: Any,
) -> None:  # fmt: skip
    begin, step = cuda.grid(1), cuda.gridsize(1)
    for k in range(first, stop):
        if k == 0:
            _mark(begin, step, ids, oldest, end, capacity, out_node, out_stale, out_mass)
        elif k == 1:
            _claim(begin, step, out_node, out_stale, out_mass)
        elif k == 2:
            _leave(begin, step, out_node, out_mass)
        elif k == 3:
            _set_leaves(begin, step, mass, priority, out_node, out_mass, out_priority, out_least)
        else:
            level = k - _LEAVES + 1
            for i in range(begin, ids.size, step):
                if out_node[i] >= 0:
                    node = out_node[i] >> (_SHIFT * level)
                    _set_parent(node, level, levels, out_mass, out_priority, out_least)
        cuda.syncthreads()


def tree_update(
    ids: Any, mass: Any, priority: Any, oldest: int, end: int, capacity: int, levels: Any,
    out_node: Any, out_stale: Any, out_mass: Any, out_priority: Any, out_least: Any,
) -> None:  # fmt: skip
    outputs = out_node, out_stale, out_mass, out_priority, out_least
    with lent((ids, mass, priority, levels), outputs) as (ids, mass, priority, levels, *outs):
        steps = _LEAVES + levels.size - 1
        at_once = steps if ids.size <= _FEW else 1
        blocks = 1 if ids.size <= _FEW else blocks_for(ids.size)
        for k in range(0, steps, at_once):
            launch(_update, blocks)(
                k, k + at_once, ids, mass, priority, oldest, end, capacity, levels, *outs
            )  # fmt: skip


# ---- draws ----------------------------------------------------------------------------------------------------------


@kernel
def _draw(
    u: Any, stratified: bool, oldest: int, capacity: int, levels: Any, mass: Any,
    out_rest: Any, out_id: Any, out_slot: Any,
) -> None:  # fmt: skip
    top = levels.size - 1
    total, first = mass[levels[top]], oldest % capacity
    for i in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        rest = product(_share(i, u[i], u.size, stratified), total)
        node = 0
        for level in range(top - 1, -1, -1):
            child, rest = _step_down(_unsigned(levels[level] + (node << _SHIFT)), rest, mass)
            node = (node << _SHIFT) + child
        out_rest[i], out_slot[i] = rest, node
        out_id[i] = _id_of(node, oldest, first, capacity)


def tree_draw(
    u: Any, stratified: bool, oldest: int, capacity: int, levels: Any, mass: Any,
    out_rest: Any, out_id: Any, out_slot: Any,
) -> None:  # fmt: skip
    if not u.size:
        return
    with lent((u, levels, mass), (out_rest, out_id, out_slot)) as (u, levels, mass, *outs):
        launch(_draw, blocks_for(u.size))(u, bool(stratified), oldest, capacity, levels, mass, *outs)
