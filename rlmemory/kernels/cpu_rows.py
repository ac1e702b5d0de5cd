"""The kernels that choose rows and describe them, compiled by Numba for the CPU. What each does is in `reference`.

Functions marked `inline` are what `cuda_rows` and `cuda_chains` compile for the device as well. Prefetching is not
among it, being the CPU's alone. Most contain the loop, from a row on in steps: called for each row, they counted the
references of their arrays each time (256 rows to annotate: 36.6 against 3.2 us). They call others with numbers only:
Numba's simulator of the device has arrays of its own, which compiled code does not take.
"""

from __future__ import annotations

from typing import Any

from ._bytes import prefetch
from ._jit import inline, kernel

_LINK = 4  # bytes of a distance to the next row


@inline
def uniform_rows(
    begin: int, step: int, u: Any, oldest: int, length: int, capacity: int, out_id: Any, out_slot: Any
) -> None:
    first = oldest % capacity
    for i in range(begin, u.size, step):
        index = min(int(u[i] * length), length - 1)
        out_id[i] = oldest + index
        slot = first + index  # below twice the capacity: no division for each row
        out_slot[i] = slot - capacity if slot >= capacity else slot


@kernel
def uniform(u: Any, oldest: int, length: int, capacity: int, out_id: Any, out_slot: Any) -> None:
    uniform_rows(0, 1, u, oldest, length, capacity, out_id, out_slot)


@inline
def _place(key: int, mask: int) -> Any:
    return (key * 0x9E3779B97F4A7C1) & mask


@inline
def distinct_row(i: int, u: Any, length: int, out_keys: Any, out_values: Any, out_index: Any) -> None:
    # In an open hash table, the place of a key is its own or the free one where it belongs.
    mask = out_keys.size - 1
    j = i + min(int(u[i] * (length - i)), length - i - 1)
    theirs = _place(j, mask)
    while out_keys[theirs] != -1 and out_keys[theirs] != j:
        theirs = (theirs + 1) & mask
    out_index[i] = out_values[theirs] if out_keys[theirs] == j else j
    ours = _place(i, mask)
    while out_keys[ours] != -1 and out_keys[ours] != i:
        ours = (ours + 1) & mask
    value = out_values[ours] if out_keys[ours] == i else i
    out_keys[theirs] = j
    out_values[theirs] = value


@kernel
def distinct(u: Any, length: int, out_keys: Any, out_values: Any, out_index: Any) -> None:
    out_keys[:] = -1
    for i in range(u.size):
        distinct_row(i, u, length, out_keys, out_values, out_index)


@inline
def link_distance(row: int, last: int, capacity: int) -> Any:
    return row - last if last >= 0 and row - last < capacity else 0


@kernel
def link(position: Any, begin: int, capacity: int, tail: Any, out_tail: Any, out_back: Any, out_ahead: Any) -> None:
    out_tail[:] = tail
    for i in range(position.size):
        row = begin + i
        if position[i] < 0:
            out_back[row % capacity] = 0
            out_ahead[row % capacity] = 0
            continue
        last = out_tail[position[i]]
        distance = link_distance(row, last, capacity)
        out_back[row % capacity] = distance
        out_ahead[row % capacity] = 0
        if distance > 0:
            out_ahead[last % capacity] = distance
        out_tail[position[i]] = row


@inline
def step_back(row: int, distance: int, oldest: int) -> Any:
    return row - distance if distance > 0 and row - distance >= oldest else -1


@inline
def step_ahead(row: int, distance: int, end: int) -> Any:
    return row + distance if distance > 0 and row + distance < end else -1


@inline
def window_rows(
    begin: int, step: int, chosen: Any, oldest: int, end: int, capacity: int, before: int, stop: bool, is_done: Any,
    back: Any, ahead: Any, out_id: Any, out_slot: Any,
) -> None:  # fmt: skip
    for b in range(begin, chosen.size, step):
        width = out_id.shape[1]
        for t in range(width):
            out_id[b, t] = -1
            out_slot[b, t] = -1
        middle = chosen[b] % capacity
        row, slot = chosen[b], middle
        for t in range(before, -1, -1):
            out_id[b, t], out_slot[b, t] = row, slot
            previous = step_back(row, back[slot] if back.size > 0 else 1, oldest)
            if previous < 0:
                break
            slot -= row - previous
            slot += capacity if slot < 0 else 0
            row = previous
            if stop and is_done[slot] != 0:
                break
        row, slot = chosen[b], middle
        for t in range(before, width):
            out_id[b, t], out_slot[b, t] = row, slot
            following = step_ahead(row, ahead[slot] if ahead.size > 0 else 1, end)
            if following < 0 or (stop and is_done[slot] != 0):
                break
            slot += following - row
            slot -= capacity if slot >= capacity else 0
            row = following


@kernel
def window(
    chosen: Any, oldest: int, end: int, capacity: int, before: int, stop: bool, is_done: Any, back: Any, ahead: Any,
    out_id: Any, out_slot: Any,
) -> None:  # fmt: skip
    codes, onward, backward = is_done.ctypes.data, ahead.ctypes.data, back.ctypes.data
    for b in range(chosen.size):  # each of these reads would wait for memory by itself
        place = chosen[b] % capacity
        prefetch(codes + place)
        if ahead.size > 0:
            prefetch(onward + place * _LINK)
            prefetch(backward + place * _LINK)
    window_rows(0, 1, chosen, oldest, end, capacity, before, stop, is_done, back, ahead, out_id, out_slot)


@kernel
def remaining(oldest: int, end: int, capacity: int, stop: bool, is_done: Any, ahead: Any, out_count: Any) -> None:
    slot = (end - 1) % capacity
    for row in range(end - 1, oldest - 1, -1):
        following = step_ahead(row, ahead[slot] if ahead.size > 0 else 1, end)
        if following < 0 or (stop and is_done[slot] != 0):
            out_count[row - oldest] = 1
        else:
            out_count[row - oldest] = 1 + out_count[following - oldest]
        slot = slot - 1 if slot > 0 else capacity - 1


@kernel
def number_episodes(
    oldest: int, end: int, capacity: int, is_done: Any, back: Any, out_episode: Any, out_step: Any, out_count: Any
) -> None:
    count = 0
    slot = oldest % capacity
    for row in range(oldest, end):
        before = step_back(row, back[slot] if back.size > 0 else 1, oldest)
        if before < 0 or is_done[before % capacity] != 0:
            out_episode[row - oldest], out_step[row - oldest] = count, 0
            count += 1
        else:
            out_episode[row - oldest] = out_episode[before - oldest]
            out_step[row - oldest] = out_step[before - oldest] + 1
        slot = slot + 1 if slot + 1 < capacity else 0
    out_count[0] = count


@inline
def annotate_rows(
    begin: int, step: int, ids: Any, slots: Any, oldest: int, capacity: int, discount: float, is_done: Any, back: Any,
    out_terminated: Any, out_truncated: Any, out_mask: Any, out_first: Any, out_steps: Any, out_discount: Any,
    out_before: Any,
) -> None:  # fmt: skip
    for i in range(begin, ids.size, step):
        slot = slots[i]
        real = ids[i] >= 0
        code = is_done[slot] if real else 0
        distance = back[slot] if real and back.size > 0 else 1
        before = slot - distance if slot >= distance else slot - distance + capacity
        linked = real and distance > 0 and ids[i] - distance >= oldest
        starts = not linked or is_done[before] != 0
        out_terminated[i] = code == 1
        out_truncated[i] = code == 2
        out_mask[i] = real
        out_first[i] = real and starts
        out_steps[i] = 1 if real else 0
        out_discount[i] = discount if real and code != 1 else 0.0
        if out_before.size > 0:
            out_before[i] = -1 if starts else before


@kernel
def annotate(
    ids: Any, slots: Any, oldest: int, capacity: int, discount: float, is_done: Any, back: Any, out_terminated: Any,
    out_truncated: Any, out_mask: Any, out_first: Any, out_steps: Any, out_discount: Any, out_before: Any,
) -> None:  # fmt: skip
    codes = is_done.ctypes.data
    for i in range(ids.size):
        prefetch(codes + max(slots[i], 0))
    annotate_rows(
        0, 1, ids, slots, oldest, capacity, discount, is_done, back,
        out_terminated, out_truncated, out_mask, out_first, out_steps, out_discount, out_before,
    )  # fmt: skip


@inline
def nstep_row(
    b: int, slots: Any, discount: float, is_done: Any, out_last: Any, out_steps: Any, out_discount: Any,
    out_terminated: Any, out_truncated: Any,
) -> None:  # fmt: skip
    factor, steps = 1.0, 0
    while steps < slots.shape[1] and slots[b, steps] >= 0:
        factor *= discount
        steps += 1
    last = slots[b, steps - 1]
    code = is_done[last]
    out_last[b] = last
    out_steps[b] = steps
    out_discount[b] = 0.0 if code == 1 else factor
    out_terminated[b] = code == 1
    out_truncated[b] = code == 2


@kernel
def nstep(
    slots: Any, rewards: Any, discount: float, is_done: Any, out_reward: Any, out_last: Any, out_steps: Any,
    out_discount: Any, out_terminated: Any, out_truncated: Any,
) -> None:  # fmt: skip
    count, width = slots.shape[0], rewards.itemsize * rewards.shape[1]
    start, codes = rewards.ctypes.data, is_done.ctypes.data
    for b in range(count):
        prefetch(start + slots[b, 0] * width)
        prefetch(codes + slots[b, 0])
    for b in range(count):
        nstep_row(b, slots, discount, is_done, out_last, out_steps, out_discount, out_terminated, out_truncated)
        # Summed up in a register: 4.6 us for 256 rows, against 7.8 where the sum lay in the result all the while.
        for c in range(rewards.shape[1]):
            total, factor = 0.0, 1.0
            for t in range(out_steps[b]):
                total += factor * rewards[slots[b, t], c]
                factor *= discount
            out_reward[b, c] = total


@inline
def goal_rows(
    begin: int, step: int, ids: Any, u: Any, strategy: int, oldest: int, end: int, capacity: int, is_done: Any,
    back: Any, ahead: Any, out_id: Any,
) -> None:  # fmt: skip
    for i in range(begin, ids.size, step):
        row, slot = ids[i], ids[i] % capacity
        while strategy == 1:  # to the episode's first row
            previous = step_back(row, back[slot] if back.size > 0 else 1, oldest)
            before_slot = slot - (row - previous)
            before_slot += capacity if before_slot < 0 else 0
            if previous < 0 or is_done[before_slot] != 0:
                break
            row, slot = previous, before_slot
        first, first_slot = row, slot
        length = 1
        while is_done[slot] == 0:  # to its last
            following = step_ahead(row, ahead[slot] if ahead.size > 0 else 1, end)
            if following < 0:
                break
            slot += following - row
            slot -= capacity if slot >= capacity else 0
            row = following
            length += 1
        if strategy != 0:
            at = min(int(u[i] * length), length - 1)
            row, slot = first, first_slot
            if ahead.size == 0:
                row += at
                at = 0
            for _ in range(at):
                distance = int(ahead[slot])
                row += distance
                slot += distance
                slot -= capacity if slot >= capacity else 0
        out_id[i] = row


@kernel
def goal_row(
    ids: Any, u: Any, strategy: int, oldest: int, end: int, capacity: int, is_done: Any, back: Any, ahead: Any,
    out_id: Any,
) -> None:  # fmt: skip
    goal_rows(0, 1, ids, u, strategy, oldest, end, capacity, is_done, back, ahead, out_id)
