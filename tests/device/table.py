"""The table of docs/gpu.md: ``python -m tests.device.table --out table.md``.

Each figure is the median of a few calls that are timed by the wall, from a device that has nothing to do until it has
nothing to do again; so a launch's own time is in them. The yardstick is the driver's copy from device memory to device
memory in the same run; bytes are those that are read and those that are written. "CPU" is the same work on this
machine's processor. In the simulator sizes are tiny and the figures mean nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import rlmemory as rlm
from rlmemory.kernels import _cuda, cpu

from .about import installed

SMALL = _cuda.SIMULATED
ROWS = [4, 9, 6, 12] if SMALL else [256, 4_096, 65_536, 1_000_000]
CAPACITY = 20 if SMALL else 1_000_000
IMAGES = 3 if SMALL else 100_000
ROUNDS = 2 if SMALL else 15
REACHED = 0.7

#: 165 bytes in five fields, and one image of 28 KB.
STEP = [("observation", 72), ("action", 16), ("reward", 4), ("next_observation", 72), ("is_done", 1)]
IMAGE = [("image", 84 * 84 * 4)]


#: Calls of `sample`: the batch size, and options.
CALLS: list[tuple[int, dict[str, Any]]] = [
    (256, {}), (256, {"n_step": 3}), (32, {"sequence_length": 64}), (ROWS[-2], {}),
]  # fmt: skip


class Row(NamedTuple):
    """A line of the table; times in seconds, `moved` in bytes read and written."""

    what: str
    device: float
    cpu: float | None
    moved: int | None = None
    goal: bool = False


def timed(call: Callable[[], Any], rounds: int = ROUNDS, wait: bool = True) -> float:
    """Seconds of a call: the median."""
    call()
    taken = []
    for _ in range(rounds):
        _cuda.synchronize()
        begin = perf_counter()
        call()
        if wait:
            _cuda.synchronize()
        taken.append(perf_counter() - begin)
    return median(taken)


def copying() -> tuple[float, int]:
    """The driver's copy within device memory: bytes a second, read and written, and the bytes of a copy."""
    free = 1 << 20 if SMALL else int(_cuda.cuda.current_context().get_memory_info()[0])
    size = min(1 << 30, free // 8) // 64 * 64
    here, there = _cuda.allocate(size), _cuda.allocate(size)
    return 2 * size / timed(lambda: _cuda.transfer(here, 0, size, there, 0)), size


def table_of(fields: list[tuple[str, int]], capacity: int, count: int) -> tuple[np.ndarray[Any, Any], int, int]:
    """What gather reads, and the bytes of the memory and of the result."""
    rows, here, there = [], 0, 0
    for _, width in fields:
        rows.append((here, width, there))
        here, there = (-(-(at + width * n) // 64) * 64 for at, n in ((here, capacity), (there, count)))
    return np.array(rows, np.int64), here, there


def gathers(kernels: Any) -> list[Row]:
    """The kernel `gather`, for rows of two sizes, at random."""
    rng, found = np.random.default_rng(0), []
    for name, fields, capacity in (("165 B", STEP, CAPACITY), ("28 KB", IMAGE, IMAGES)):
        width = sum(size for _, size in fields)
        block = _cuda.allocate(table_of(fields, capacity, 1)[1])
        host = np.zeros(table_of(fields, capacity, 1)[1], np.uint8)
        for count in ROWS:
            table, _, size = table_of(fields, capacity, count)
            if not SMALL and size > _cuda.cuda.current_context().get_memory_info()[0] // 2:
                continue
            slots, out = rng.integers(0, capacity, count), _cuda.allocate(size)
            lent = _cuda.to_device(table), _cuda.to_device(slots)
            on_cpu = None
            if size < 1 << 30:
                target = np.zeros(size, np.uint8)
                on_cpu = timed(partial(cpu.gather, host, table, slots, target))
            device = timed(partial(kernels.gather, block, *lent, out))
            found.append(Row(f"gather {count:,} x {name}", device, on_cpu, 2 * width * count, count >= 65_536))
    return found


def memory(device: str) -> rlm.ReplayMemory:
    """A full memory of 165 bytes a row."""
    specs = rlm.NumericSpec((18,), "float32"), rlm.NumericSpec((4,), "float32")
    made = rlm.ReplayMemory(*specs, CAPACITY, reward="float32", seed=0, device=device)
    rng = np.random.default_rng(1)
    seen, act = rng.random((CAPACITY, 18), np.float32), rng.random((CAPACITY, 4), np.float32)
    made.extend(
        seen, act, reward=act[:, 0].copy(), next_observation=seen, terminated=np.arange(CAPACITY) % 200 == 199
    )  # fmt: skip
    return made


def calls() -> list[Row]:
    """What a user calls, whole: the choice of rows, the launch, the copy of the books, the wait."""
    host, there = memory("cpu"), memory("cuda")
    found = []
    for size, options in CALLS:
        given = ", ".join([f"{size:,}", *(f"{key}={value}" for key, value in options.items())])
        device, on_cpu = (
            timed(partial(m.sample, size, out=m.sample(size, **options), **options), 2 if SMALL else 50)
            for m in (there, host)
        )
        found.append(Row(f"sample({given})", device, on_cpu))
    whole = host.all()
    moved = 2 * sum(array.nbytes for array in whole[:4])
    device, on_cpu = timed(partial(there.all, out=there.all())), timed(partial(host.all, out=whole))
    found.append(Row("all(out=)", device, on_cpu, moved, True))
    return found + writes(host, there)


def writes(host: rlm.ReplayMemory, there: rlm.ReplayMemory) -> list[Row]:
    """Into a memory: from the host, and from the device."""
    rows = ROWS[1]
    part = host.get(host.ids[:rows])
    lifted = rlm.to_device(part)
    fast = timed(lambda: host.extend_from(part))
    return [
        Row(f"extend of {rows:,} from the host", timed(lambda: there.extend_from(part)), fast),
        Row(f"extend of {rows:,} from the device", timed(lambda: there.extend_from(lifted)), fast),
    ]


def moves(kernels: Any) -> list[Row]:
    """The kernel `move`: a whole memory, and a million steps padded; and the call that pads."""
    found = []
    table, size, _ = table_of(STEP, CAPACITY, CAPACITY)
    block, out = _cuda.allocate(size), _cuda.allocate(size)
    runs = np.stack((table[:, 0], table[:, 1] * CAPACITY, table[:, 0]), axis=1)
    lent = _cuda.to_device(runs)
    found.append(Row("export, the kernel", timed(lambda: kernels.move(block, lent, out)), None, 2 * size, True))
    rng = np.random.default_rng(2)
    ends = np.cumsum(rng.integers(*((1, 5) if SMALL else (100, 301)), CAPACITY))
    starts = np.append(0, ends[ends < CAPACITY])
    length = np.diff(np.append(starts, CAPACITY))
    longest, width = int(length.max()), 72
    place = np.arange(length.size) * longest
    data = np.stack((starts, length, place), axis=1)
    zeros = np.stack((np.full(length.size, -1), longest - length, place + length), axis=1)
    runs = np.concatenate((data, zeros)) * width
    runs[length.size :, 0] = -1
    lent, padded = _cuda.to_device(runs), _cuda.allocate(length.size * longest * width)
    moved = (CAPACITY + length.size * longest) * width
    found.append(Row("padding, the kernel", timed(lambda: kernels.move(block, lent, padded)), None, moved, True))
    done = np.zeros(CAPACITY, np.bool_)
    done[starts[1:] - 1] = done[-1] = True
    steps = {"observation": rng.random((CAPACITY, 18), np.float32), "done": done}
    lifted = rlm.to_device(steps)
    device, on_cpu = (timed(partial(rlm.split_trajectories, data), 5) for data in (lifted, steps))
    found.append(Row(f"split_trajectories, {CAPACITY:,} steps", device, on_cpu, moved))
    return found


def trees(kernels: Any) -> list[Row]:
    """The kernels of the priority tree, on trees of a million rows."""
    from rlmemory.priority_tree import PriorityTree

    found, rng = [], np.random.default_rng(3)
    tree = PriorityTree(CAPACITY, least=False)
    tree.fill(0, CAPACITY, rng.random(CAPACITY), rng.random(CAPACITY))
    nodes = tree._levels, tree._masses, tree._priorities, tree._leasts
    levels, masses, priorities, leasts = (_cuda.to_device(array) for array in nodes)
    for count in ROWS[:1] + ROWS[2:3]:
        u, ids = rng.random(count), rng.integers(0, CAPACITY, count)
        rest, id_, slot = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
        there = [_cuda.to_device(array) for array in (u, rest, id_, slot)]
        device = timed(partial(kernels.tree_draw, there[0], True, 0, CAPACITY, levels, masses, *there[1:]))
        host = timed(partial(cpu.tree_draw, u, True, 0, CAPACITY, *nodes[:2], rest, id_, slot))
        found.append(Row(f"tree draw, {count:,}", device, host))
        mass, scratch, stale = (_cuda.to_device(array) for array in (u, id_, np.empty(1, np.int64)))
        bounds = 0, CAPACITY, CAPACITY
        device = timed(partial(
            kernels.tree_update, ids, mass, mass, *bounds, levels, scratch, stale, masses, priorities, leasts
        ))  # fmt: skip
        host = timed(partial(cpu.tree_update, ids, u, u, *bounds, nodes[0], id_, np.empty(1, np.int64), *nodes[1:]))
        found.append(Row(f"tree update, {count:,}", device, host))
    return found


def overhead(kernels: Any) -> float:
    """Seconds until a launch of gather for 256 rows returns, when the device has nothing else to do."""
    table, here, size = table_of(STEP, CAPACITY, ROWS[0])
    block, out = _cuda.allocate(here), _cuda.allocate(size)
    lent = _cuda.to_device(table), _cuda.to_device(np.zeros(ROWS[0], np.int64))
    return timed(lambda: kernels.gather(block, *lent, out), 200 if not SMALL else 1, wait=False)


def text(rows: list[Row], speed: float, launch: float, name: str) -> str:
    """The table in Markdown."""
    libraries = ", ".join(f"{n} {installed(n)}" for n in ("numba", "numba-cuda", "numpy") if installed(n))
    lines = [
        f"{name}; {libraries}. Copy within device memory: {speed / 1e9:,.0f} GB/s read and written.",
        f"Until a launch of `gather` for 256 rows returns: {launch * 1e6:.0f} us (goal: below 30).",
        "",
        "| | device | of the copy's speed | CPU | times as fast |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        share = "" if row.moved is None else f"{row.moved / row.device / speed:.0%}"
        if row.goal and row.moved is not None:
            share += " (goal 70 %)" if row.moved / row.device / speed >= REACHED else " (goal 70 %: **not reached**)"
        host = ("", "") if row.cpu is None else (f"{row.cpu * 1e6:,.0f} us", f"{row.cpu / row.device:.1f}")
        lines.append(f"| {row.what} | {row.device * 1e6:,.0f} us | {share} | {host[0]} | {host[1]} |")
    if SMALL:
        lines.append("\nThis is the simulator: none of these figures means anything.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the table to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    number = _cuda.device_number("cuda")
    from rlmemory.kernels import cuda as kernels

    with _cuda.using(number):
        speed, _ = copying()
        rows = [part for measure in (gathers, moves, trees) for part in measure(kernels)] + calls()
        found = text(rows, speed, overhead(kernels), _cuda.device_name(number))
    print(found)
    if out is not None:
        out.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
