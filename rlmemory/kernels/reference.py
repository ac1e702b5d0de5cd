"""The kernels in plain NumPy: slow and obvious, the oracle of the others.

A kernel is a pure function on arrays and scalars. Outputs are arguments, last, named ``out...``. It allocates
nothing that it returns, draws nothing (uniforms come in), raises nothing and knows no class.

A *block* is a 1-D uint8 array. A *table* has one int64 row per field: where the field starts in the block that
holds the memory, how many bytes one of its rows has, and where it starts in the other block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def gather(block: Bytes, table: Ints, slots: Ints, out: Bytes) -> None:
    """Take the rows at `slots`, in this order; a slot of -1 is a row of zeros."""
    for start, width, at in table.tolist():
        rows = np.zeros((slots.size, width), np.uint8)
        real = slots >= 0
        rows[real] = block[start + slots[real, None] * width + np.arange(width)]
        out[at : at + rows.size] = rows.ravel()


def scatter(rows: Bytes, table: Ints, slots: Ints, out: Bytes) -> None:
    """Put row i of `rows` into slot ``slots[i]`` of `out`; the last of equal slots wins, -1 is left out."""
    for at, width, start in table.tolist():
        for i, slot in enumerate(slots.tolist()):
            if slot >= 0:
                source = at + i * width
                target = start + slot * width
                out[target : target + width] = rows[source : source + width]


def uniform(u: Floats, oldest: int, length: int, capacity: int, out_id: Ints, out_slot: Ints) -> None:
    """Ids drawn with replacement from the `length` rows that begin with id `oldest`, and their slots."""
    out_id[:] = oldest + np.minimum(np.floor(u * length).astype(np.int64), length - 1)
    out_slot[:] = out_id % capacity


def distinct(u: Floats, length: int, out_keys: Ints, out_values: Ints, out_index: Ints) -> None:
    """Distinct indices below `length`, one for each of `u`, all orders equally likely.

    Fisher and Yates' shuffle, stopped early: draw i swaps position i with one at or after it. Only positions that
    were swapped differ from their own number; the compiled version keeps those in a hash table, for which
    `out_keys` and `out_values` (scratch, a power of 2 and at least twice as long as `u`) have the room.
    """
    moved: dict[int, int] = {}
    for i, x in enumerate(u.tolist()):
        j = i + min(int(x * (length - i)), length - i - 1)
        out_index[i] = moved.get(j, j)
        moved[j] = moved.get(i, i)


def link(
    position: Ints, begin: int, capacity: int, tail: Ints, out_tail: Ints, out_back: NDArray[np.int32],
    out_ahead: NDArray[np.int32],
) -> None:  # fmt: skip
    """Chain the rows from id `begin` on, each to the one before it of its own source.

    ``position[i]`` is the place of row i's source in `tail`, which holds each source's last id so far (-1: none).
    ``out_back[slot]`` is how many ids before a row its predecessor lies, ``out_ahead[slot]`` how many after it its
    successor; 0 where there is none.
    """
    out_tail[:] = tail
    for i, k in enumerate(position.tolist()):
        row = begin + i
        last = int(out_tail[k])
        distance = row - last if last >= 0 and row - last < capacity else 0
        out_back[row % capacity] = distance
        out_ahead[row % capacity] = 0
        if distance:
            out_ahead[last % capacity] = distance
        out_tail[k] = row


def annotate(
    ids: Ints, slots: Ints, oldest: int, capacity: int, discount: float, is_done: Bytes, back: NDArray[np.int32],
    out_terminated: Bools, out_truncated: Bools, out_mask: Bools, out_first: Bools, out_steps: Ints,
    out_discount: Floats, out_weight: Floats,
) -> None:  # fmt: skip
    """What a batch of single steps says beside its channels.

    `back` is empty when all rows are of one source and follow each other: then every distance is 1.
    """
    distance = back[slots] if back.size else np.ones(ids.size, np.int64)
    before = ids - distance
    has_before = (distance > 0) & (before >= oldest)
    out_terminated[:] = is_done[slots] == 1
    out_truncated[:] = is_done[slots] == 2
    out_mask[:] = True
    out_first[:] = ~has_before | (is_done[before % capacity] != 0)
    out_steps[:] = 1
    out_discount[:] = np.where(out_terminated, 0.0, discount)
    out_weight[:] = 1.0
