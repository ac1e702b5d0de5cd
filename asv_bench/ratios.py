"""How fast rlmemory is against a memcpy of the same bytes, and against NumPy: ``python -m asv_bench.ratios``.

Times say something about a machine, and drift; ratios taken in one process, turn and turn about, say something about
the code. Every yardstick writes into memory that was touched before, and reads its bytes from a random place of a
block as large as the memory, so that neither side finds them in a cache. Nothing here fails: a target that is missed
is printed as missed.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from .benchmarks.scenes import Scene, pixels, transitions
from .timing import Operation, Timing, interleaved, readable


class Line(NamedTuple):
    """A comparison: what is measured, against what, and the ratio that is to be reached (None: for information)."""

    ours: str
    yardstick: str
    target: float | None = None


class Case(NamedTuple):
    """Operations that are timed together, and the lines of the table that they give."""

    title: str
    operations: dict[str, Operation]
    lines: list[Line]
    rounds: int = 400
    inner: int = 1


Row = tuple[str, str, Timing, Timing, float | None]


# ---- yardsticks ---------------------------------------------------------------------------------------------------


class Source:
    """A large block that was touched, and random places in it."""

    def __init__(self, size: int, seed: int = 1) -> None:
        self.block = np.ones(size, np.uint8)
        self._rng = np.random.default_rng(seed)

    def copying(self, size: int) -> Operation:
        """A memcpy of `size` bytes from a random place into a target that was touched."""
        target = np.zeros(size, np.uint8)
        last = self.block.size - size

        def place() -> np.ndarray[Any, Any]:
            start = int(self._rng.integers(0, last + 1))
            return self.block[start : start + size]

        return place, lambda piece: np.copyto(target, piece)


def columns(data: Scene) -> list[np.ndarray[Any, Any]]:
    """Five arrays as a memory written by hand would have them, touched."""
    rows = data.rows.values()
    return [np.ones((data.memory.capacity, *given.shape[1:]), given.dtype) for given in rows]


def slots(capacity: int, step: int) -> Iterator[int]:
    """The cursor of a ring that is written `step` rows at a time."""
    whole = capacity - capacity % step
    return (i * step % whole for i in count())


# ---- cases --------------------------------------------------------------------------------------------------------


def append_one(data: Scene) -> Case:
    """One experience whose arrays have the spec's dtype, against five stores into five arrays."""
    memory, capacity = data.memory, data.memory.capacity
    row = {key: column[0] for key, column in data.rows.items()}
    ended = row["terminated"] = bool(row["terminated"])
    observations, actions, rewards, following, ends = columns(data)
    observation, action, reward, after = (row[key] for key in list(row)[:4])
    cursor = slots(capacity, 1)

    def ours() -> None:
        memory.append(observation, action, reward=reward, next_observation=after, terminated=ended)

    def stores() -> None:
        slot = next(cursor)
        observations[slot] = observation
        actions[slot] = action
        rewards[slot] = reward
        following[slot] = after
        ends[slot] = ended

    lines = [Line("append", "five stores", 2.5)]
    return Case("append of one", {"append": ours, "five stores": stores}, lines, rounds=200, inner=500)


def extend_4096(data: Scene) -> Case:
    """4,096 rows, against the same bytes into a ring of bytes, and against five slices of five arrays."""
    memory, capacity, rows = data.memory, data.memory.capacity, 4096
    given = data.rows
    size = rows * data.row_bytes
    ring, origin = np.ones(capacity * data.row_bytes, np.uint8), np.ones(size, np.uint8)
    arrays = columns(data)
    bytes_cursor, rows_cursor = slots(ring.size, size), slots(capacity, rows)

    def memcpy() -> None:
        start = next(bytes_cursor)
        ring[start : start + size] = origin

    def slices() -> None:
        start = next(rows_cursor)
        for array, column in zip(arrays, given.values(), strict=True):
            array[start : start + rows] = column

    operations: dict[str, Operation] = {
        "extend": lambda: memory.extend(**given),
        "memcpy into a ring": memcpy,
        "five slices": slices,
    }
    lines = [
        Line("extend", "memcpy into a ring", 1.2),
        Line("extend", "five slices"),
        Line("five slices", "memcpy into a ring"),
    ]
    return Case("extend of 4,096", operations, lines)


def uniform(data: Scene, source: Source, batch: int, target: float) -> Case:
    """A uniform sample, against memcpy and against np.take of each of five arrays."""
    memory, rng = data.memory, np.random.default_rng(2)
    arrays = columns(data)
    targets = [np.ones((batch, *array.shape[1:]), array.dtype) for array in arrays]
    again = memory.sample(batch)

    def draw() -> np.ndarray[Any, Any]:
        return rng.integers(0, memory.capacity, batch)

    def take(rows: np.ndarray[Any, Any]) -> None:
        for array, to in zip(arrays, targets, strict=True):
            np.take(array, rows, axis=0, out=to, mode="clip")

    operations: dict[str, Operation] = {
        "sample": lambda: memory.sample(batch),
        "sample(out=)": lambda: memory.sample(batch, out=again),
        "memcpy": source.copying(batch * data.row_bytes),
        "five takes, rows drawn before": (draw, take),
        "draw and five takes": lambda: take(draw()),
    }
    lines = [
        Line("sample", "memcpy", target),
        Line("sample(out=)", "memcpy"),
        Line("sample", "five takes, rows drawn before", 1.0),
        Line("sample", "draw and five takes", 1.0),
    ]
    return Case(f"uniform {batch:,}", operations, lines)


def sampled(title: str, data: Scene, source: Source, rows: int, target: float, *options: Any, **named: Any) -> Case:
    """A sample with options, masks and all, against a memcpy of as many rows as it returns."""
    memory = data.memory
    again = memory.sample(*options, **named)
    operations: dict[str, Operation] = {
        "sample": lambda: memory.sample(*options, **named),
        "sample(out=)": lambda: memory.sample(*options, **named, out=again),
        "memcpy": source.copying(rows * data.row_bytes),
    }
    return Case(title, operations, [Line("sample", "memcpy", target), Line("sample(out=)", "memcpy")])


def everything(data: Scene, source: Source) -> Case:
    """The whole memory into arrays that are there, against one memcpy of the bytes that are returned."""
    memory = data.memory
    again = memory.all()
    leaves = [array for array in again if isinstance(array, np.ndarray)]
    size = sum(array.nbytes for array in leaves)
    pairs = [(np.ones_like(array), np.ones_like(array)) for array in leaves]

    def by_column() -> None:
        for to, origin in pairs:
            np.copyto(to, origin)

    origin, target = np.ones(size, np.uint8), np.ones(size, np.uint8)
    operations: dict[str, Operation] = {
        "all(out=)": lambda: memory.all(out=again),
        "one memcpy": lambda: np.copyto(target, origin),
        "a memcpy for each column": by_column,
    }
    lines = [
        Line("all(out=)", "one memcpy", 1.1),
        Line("all(out=)", "a memcpy for each column", 1.1),
        Line("a memcpy for each column", "one memcpy"),
    ]
    return Case(f"all, {size / 1e6:.0f} MB", operations, lines, rounds=60)


def frames(data: Scene, source: Source, batch: int, target: float) -> Case:
    """Pixels: rows so wide that only the bytes count."""
    again = data.memory.sample(batch)
    operations: dict[str, Operation] = {
        "sample(out=)": lambda: data.memory.sample(batch, out=again),
        "sample": lambda: data.memory.sample(batch),
        "memcpy": source.copying(batch * data.row_bytes),
    }
    lines = [Line("sample(out=)", "memcpy", target), Line("sample", "memcpy")]
    return Case(f"84x84x4 uint8, {batch}", operations, lines, rounds=200)


def cases(*, quick: bool) -> Iterator[Case]:
    """All of them, each made when its turn comes. A new operation: a function above, and a line here."""
    data = transitions(100_000 if quick else 1_000_000)
    source = Source(data.memory.nbytes)
    yield append_one(data)
    yield extend_4096(data)
    yield uniform(data, source, 256, 9.0)
    yield uniform(data, source, 4096, 10.0)
    yield sampled("3-step 256", data, source, 256, 14.0, 256, n_step=3)
    yield sampled("sequences 32 x 64", data, source, 32 * 64, 4.0, 32, sequence_length=64)
    yield everything(data, source)
    del data, source
    data = pixels(1_000 if quick else 10_000)
    source = Source(data.memory.nbytes)
    yield frames(data, source, 32, 1.25)
    yield frames(data, source, 256, 1.15)


# ---- the table ----------------------------------------------------------------------------------------------------


def measured(case: Case, *, quick: bool) -> list[Row]:
    """Time the operations of a case."""
    timings = interleaved(case.operations, max(20, case.rounds // 10) if quick else case.rounds, case.inner)
    return [
        (f"{case.title}: {line.ours}", line.yardstick, timings[line.ours], timings[line.yardstick], line.target)
        for line in case.lines
    ]


HEADER = (
    f"{'operation':<38}{'median':>9}  {'10 - 90 %':<19}{'yardstick':<30}{'median':>9}{'ratio':>8}{'target':>8}  reached"
)


def line_of(row: Row) -> str:
    """One row of the table."""
    name, yardstick, ours, theirs, target = row
    ratio = ours.median / theirs.median
    spread = f"{readable(ours.low)} - {readable(ours.high)}"
    reached = "" if target is None else "yes" if ratio <= target else "NO"
    aim = "" if target is None else f"{target:g}"
    return (
        f"{name:<38}{readable(ours.median):>9}  {spread:<19}{yardstick:<30}{readable(theirs.median):>9}"
        f"{ratio:>8.2f}{aim:>8}  {reached}"
    )


def markdown_of(row: Row) -> str:
    """One row of the README's table: ratios only, times drift."""
    name, yardstick, ours, theirs, _ = row
    return f"| {name} | {yardstick} | {ours.median / theirs.median:.2f} |"


def weight(capacity: int) -> str:
    """What the arena has beyond its columns, of which 64 bytes each are allowed."""
    memory = transitions(capacity).memory
    experience = memory.all()
    stored = (experience.observation, experience.action, experience.reward, experience.next_observation)
    held = sum(array.nbytes for array in stored) + capacity * (1 + 4)  # is_done and source
    extra, allowed = memory.nbytes - held, 64 * (len(stored) + 2)
    return (
        f"arena of {capacity:,} rows: {memory.nbytes:,} bytes, {extra} beyond its {len(stored) + 2} columns "
        f"(allowed {allowed}: {'yes' if extra <= allowed else 'NO'})"
    )


def show(make: Callable[[], Iterator[Case]], *, quick: bool, markdown: bool = False) -> None:
    """Measure and print, case by case."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}")
    print("| operation | against | ratio |\n|---|---|---|" if markdown else HEADER)
    for case in make():
        for row in measured(case, quick=quick):
            if not markdown:
                print(line_of(row), flush=True)
            elif row[-1] is not None:
                print(markdown_of(row), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m asv_bench.ratios", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small memories and few rounds: to see that it runs")
    parser.add_argument("--markdown", action="store_true", help="as in the README: ratios that have a target")
    options = parser.parse_args()
    show(lambda: cases(quick=options.quick), quick=options.quick, markdown=options.markdown)
    print(weight(10_000))


if __name__ == "__main__":
    main()
