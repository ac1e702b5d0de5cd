"""Every kernel on every back end: the same bytes from the same random input."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from rlmemory import NotAvailableError, kernels
from rlmemory.kernels import cpu, cuda, cuda_bytes, reference

from .backends import CUDA, SIMULATED, on_all
from .support import ROOT, python

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.lists(st.integers(0, 40) | st.integers(41, 200) | st.sampled_from([1, 4, 8, 16, 64, 128]), max_size=5)


def python_function(module: ModuleType, name: str) -> Any:
    function = getattr(module, name)
    return getattr(function, "py_func", function)


def noise(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.integers(0, 256, size, np.uint8)


@st.composite
def slots_of(draw: Any, capacity: int) -> np.ndarray:
    """Runs of neighbours, stretches of padding, single rows and rows given twice."""
    slots: list[int] = []
    for _ in range(draw(st.integers(0, 8))):
        first, length = draw(st.integers(-1, capacity - 1)), draw(st.integers(1, 12))
        kind = draw(st.sampled_from(["run", "same", "backwards"]))
        if first < 0 or kind == "same":
            slots += [first] * length
        elif kind == "run":
            slots += range(first, min(first + length, capacity))
        else:
            slots += range(first, max(first - length, -1), -1)
    return np.array(slots, np.int64)


def table_of(widths: list[int], capacity: int, count: int, gap: int) -> tuple[np.ndarray, int, int]:
    """A table (start in the memory, width, start in the rows) with gaps between the columns, and both sizes."""
    rows, here, there = [], gap, gap
    for width in widths:
        rows.append((here, width, there))
        here, there = here + width * capacity + gap, there + width * count + gap
    return np.array(rows, np.int64).reshape(-1, 3), here, there


# ---- the list of kernels --------------------------------------------------------------------------------------------


def exported(module: ModuleType) -> set[str]:
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    # A back end may keep some of its kernels in modules beside it: cpu.py and cpu_tree.py.
    return {
        name for name, value in public.items() if (getattr(value, "__module__", None) or "").startswith(module.__name__)
    }


@pytest.mark.parametrize("module", [reference, cpu, cuda])
def test_back_ends_export_the_listed_kernels_and_no_others(module):
    assert exported(module) == set(kernels.NAMES)


@pytest.mark.parametrize("name", kernels.NAMES)
def test_back_ends_name_their_parameters_alike(name):
    oracle, *others = (list(inspect.signature(python_function(m, name)).parameters) for m in (reference, cpu, cuda))
    assert others == [oracle, oracle]


@pytest.mark.parametrize("name", kernels.NAMES)
def test_outputs_come_last_and_nothing_is_returned(name):
    parameters = list(inspect.signature(python_function(reference, name)).parameters)
    outputs = [parameter.startswith("out") for parameter in parameters]
    assert any(outputs)
    assert outputs == sorted(outputs)
    assert inspect.signature(python_function(reference, name)).return_annotation == "None"


def test_a_back_end_that_does_not_exist_is_an_error_that_says_which_do(monkeypatch):
    monkeypatch.setattr(kernels, "_chosen", None)
    monkeypatch.setenv("RLMEMORY_BACKEND", "abacus")
    with pytest.raises(NotAvailableError, match="'abacus': expected one of reference, cpu"):
        kernels.active()


@pytest.mark.skipif(CUDA is not None, reason="there is a device, or a simulator")
def test_the_device_without_a_device_is_an_error_that_says_what_is_missing():
    with pytest.raises(NotAvailableError, match="driver"), kernels.use("cuda"):
        pass


LOADED = "import sys; print(sorted(name for name in sys.modules if name.startswith('rlmemory.kernels.')))"


def test_the_other_back_ends_load_nothing_of_the_device():
    loaded = python("import rlmemory, rlmemory.kernels as k; k._load('cpu'); k._load('reference'); " + LOADED)
    assert "kernels.cpu'" in loaded
    assert "cuda" not in loaded


def test_loading_the_kernels_of_the_device_compiles_and_launches_nothing():
    environment = dict(os.environ, PYTHONPATH=str(ROOT), NUMBA_ENABLE_CUDASIM="1")
    watch = """
from rlmemory.kernels import _cuda
def fail(*_): raise AssertionError("launched")
_cuda.launch = _cuda.device_number = fail
from rlmemory.kernels import cuda
"""
    python(watch, env=environment)
    # Nor does it ask for a driver, which a compiler would.
    assert "'rlmemory.kernels.cuda'" in python("import rlmemory.kernels.cuda; " + LOADED)


def test_the_environment_chooses_the_back_end(monkeypatch):
    monkeypatch.setattr(kernels, "_chosen", None)
    monkeypatch.setenv("RLMEMORY_BACKEND", "reference")
    assert kernels.active() is reference


def test_use_goes_back_to_the_back_end_before_also_after_an_error():
    with kernels.use("reference"):
        with kernels.use("cpu"):
            assert kernels.active() is cpu
        assert kernels.active() is reference
        with pytest.raises(KeyError), kernels.use("cpu"):
            raise KeyError
        assert kernels.active() is reference


# ---- bytes ----------------------------------------------------------------------------------------------------------


@given(data=st.data(), widths=WIDTHS, capacity=st.integers(1, 60), gap=st.integers(0, 3), seed=SEEDS)
def test_gather_takes_the_same_bytes(data, widths, capacity, gap, seed):
    rng = np.random.default_rng(seed)
    slots = data.draw(slots_of(capacity))
    table, here, there = table_of(widths, capacity, slots.size, gap)
    block = noise(rng, here)
    (out,) = on_all("gather", block, table, slots, out=[noise(rng, there)])
    for start, width, at in table.tolist():
        for i, slot in enumerate(slots.tolist()):
            row = out[at + i * width : at + (i + 1) * width].tobytes()
            wanted = bytes(width) if slot < 0 else block[start + slot * width :][:width].tobytes()
            assert row == wanted


@pytest.mark.parametrize("width", [*range(34), 40, 64, 66, 80, 96, 200] if SIMULATED else range(201))
def test_gather_and_scatter_move_rows_of_every_width(width):
    rng = np.random.default_rng(width)
    slots = np.array([3, -1, 0, 1, 2, 3, 3, 39, -1, -1, 17], np.int64)
    for here, there in ((5, 7), (8, 16)):
        table = np.array([[here, width, there]], np.int64)
        on_all("gather", noise(rng, here + 40 * width), table, slots, out=[noise(rng, there + slots.size * width + 9)])
        table = np.array([[there, width, here]], np.int64)
        on_all("scatter", noise(rng, there + slots.size * width), table, slots, out=[noise(rng, here + 40 * width + 9)])


@given(data=st.data(), widths=WIDTHS, capacity=st.integers(1, 60), gap=st.integers(0, 3), seed=SEEDS)
def test_scatter_puts_the_same_bytes_and_touches_no_others(data, widths, capacity, gap, seed):
    rng = np.random.default_rng(seed)
    slots = data.draw(slots_of(capacity))
    table, here, there = table_of(widths, capacity, slots.size, gap)
    rows, block = noise(rng, there), noise(rng, here)
    (out,) = on_all("scatter", rows, np.ascontiguousarray(table[:, ::-1]), slots, out=[block])
    wanted = block.copy()
    for start, width, at in table.tolist():
        for i, slot in enumerate(slots.tolist()):
            if slot >= 0:
                wanted[start + slot * width : start + (slot + 1) * width] = rows[at + i * width : at + (i + 1) * width]
    assert out.tobytes() == wanted.tobytes()


# The widest has an odd number of bytes: in the simulator every one of them is a line of Python.
@pytest.mark.parametrize("width", [4095, 4096, 5000] + [70_001] * (not SIMULATED))
@pytest.mark.parametrize("shift", [0, 1, 63])
def test_gather_of_results_larger_than_the_caches_takes_the_same_bytes(width, shift):
    rng = np.random.default_rng(width)
    capacity, count = 9, (20 << 10 if SIMULATED else 5 << 20) // width + 9
    block = noise(rng, shift + (width + 3) * capacity + 7)
    slots = rng.integers(-1, capacity, count)
    slots[3:9] = [2, 3, 4, 5, -1, -1]
    table = np.array([[shift, width, 64 - shift], [shift + width * capacity, 3, 64 + width * count]], np.int64)
    on_all("gather", block, table, slots, out=[noise(rng, 64 + (width + 3) * count + 130)])


@given(data=st.data(), seed=SEEDS)
def test_move_copies_the_same_runs(data, seed):
    start = st.integers(-1, 90) | st.sampled_from([-1, 0, 8, 12, 16])
    sizes = data.draw(st.sampled_from([200, 12]))  # few long runs, or many short ones
    runs = data.draw(st.lists(st.tuples(start, st.integers(0, sizes), st.integers(0, 9)), max_size=1000 // sizes))
    table, at = [], 0
    for begin, count, gap in runs:
        table.append((begin, count, at + gap))
        at += gap + count
    rng = np.random.default_rng(seed)
    (out,) = on_all("move", noise(rng, 300), np.array(table, np.int64).reshape(-1, 3), out=[noise(rng, at + 9)])
    for begin, count, at in table:
        assert begin >= 0 or not out[at : at + count].any()


@pytest.mark.parametrize("where", range(17))
@pytest.mark.parametrize("shift", [0, 1, 2, 4, 8])
def test_move_copies_runs_of_every_length_wherever_they_begin(shift, where):
    rng = np.random.default_rng(where)
    table = [(where, count, 40 * count + where + shift) for count in range(29)]
    table += [(-1, count, 40 * (29 + count) + where) for count in range(29)]
    on_all("move", noise(rng, 80), np.array(table, np.int64), out=[noise(rng, 40 * 60)])


@pytest.mark.parametrize("count", [9000] if SIMULATED else [(1 << 22) - 1, 1 << 22, (1 << 22) + 65])
@pytest.mark.parametrize(("start", "at"), [(0, 0), (1, 0), (0, 1), (5, 63)])
def test_move_of_many_bytes_copies_the_same_runs(count, start, at):
    rng = np.random.default_rng(0)
    table = np.array([[start, count, at], [3, 4095, at + count], [3, 4096, at + count + 4095 + 1]], np.int64)
    on_all("move", noise(rng, start + count), table, out=[noise(rng, at + count + 9000)])


@pytest.mark.parametrize("bits", [*range(1, 70), -1, -2, -4, -12, -64, 1 << 40, (1 << 40) + 4, -(1 << 40)])
def test_a_word_is_the_widest_that_divides(bits):
    assert cuda_bytes.word_of(bits) == max(word for word in (1, 2, 4, 8) if bits % word == 0)


@given(numbers=st.lists(st.integers(-(2**40), 2**40), max_size=4))
def test_a_word_divides_all_numbers_that_are_or_ed_together(numbers):
    together = int(np.bitwise_or.reduce(np.array(numbers, np.int64))) if numbers else 0
    divides = [word for word in (1, 2, 4, 8) if all(number % word == 0 for number in numbers)]
    assert cuda_bytes.word_of(together) == divides[-1]


@given(slots=st.lists(st.integers(-1, 9), max_size=20))
def test_of_equal_slots_the_last_stays(slots):
    given_slots = np.array(slots, np.int64)
    left = cuda_bytes.last_of_each(given_slots).tolist()
    assert left == [-1 if slot in slots[i + 1 :] else slot for i, slot in enumerate(slots)]
    assert given_slots.tolist() == slots


@pytest.mark.skipif(CUDA is None, reason="neither a device nor a simulator")
@pytest.mark.parametrize(("here", "there", "word"), [(0, 0, 8), (8, 64, 8), (4, 8, 4), (8, 6, 2), (3, 0, 1)])
def test_blocks_that_begin_anywhere_are_copied_in_words_that_lie_right(monkeypatch, here, there, word):
    from rlmemory.kernels._cuda import launch, to_device

    bases = []

    def noting(*grid):
        return lambda *arguments: (bases.append(arguments[-2]), launch(*grid)(*arguments))

    monkeypatch.setattr(cuda_bytes, "launch", noting)
    data, slots = noise(np.random.default_rng(0), 96), np.array([1, 0], np.int64)
    table = np.array([[0, 16, 0]], np.int64)
    for name, inputs in (("gather", [table, slots]), ("scatter", [table, slots]), ("move", [table])):
        wanted, out = np.zeros(32, np.uint8), to_device(np.zeros(128, np.uint8))
        getattr(reference, name)(data[here:], *inputs, wanted)
        getattr(cuda, name)(to_device(data)[here:], *inputs, out[there : there + 32])
        assert out.copy_to_host()[there : there + 32].tobytes() == wanted.tobytes()
    assert bases == [word] * 3


@pytest.mark.skipif(CUDA is None, reason="neither a device nor a simulator")
def test_moving_nothing_launches_nothing(monkeypatch):
    monkeypatch.setattr(cuda_bytes, "launch", None)
    rows, none = np.array([[0, 4, 0]], np.int64), np.empty((0, 3), np.int64)
    block, slots = np.zeros(64, np.uint8), np.zeros(3, np.int64)
    for table, which, out in ((none, slots, block), (rows, slots[:0], block), (rows, slots, block[:0])):
        cuda.gather(block, table, which, out)
        cuda.scatter(out, table, which, block)
    cuda.move(block, none, block.copy())
    cuda.move(block, rows, block[:0])


# ---- draws ----------------------------------------------------------------------------------------------------------

UNIFORM = st.floats(0, 1, exclude_max=True) | st.sampled_from([0.0, np.nextafter(1, 0)])
UNIFORMS = st.lists(UNIFORM, max_size=40)


@given(u=UNIFORMS, capacity=st.integers(1, 20) | st.integers(1, 2**40), data=st.data())
def test_uniform_draws_the_same_ids(u, capacity, data):
    length = data.draw(st.integers(1, capacity))
    oldest = data.draw(st.integers(0, 40) | st.integers(0, 2**50))
    out = [np.empty(len(u), np.int64) for _ in range(2)]
    ids, slots = on_all("uniform", np.array(u, float), oldest, length, capacity, out=out)
    assert ids.tolist() == [oldest + min(int(np.floor(x * length)), length - 1) for x in u]
    assert slots.tolist() == [i % capacity for i in ids.tolist()]


@given(u=UNIFORMS, more=st.integers(0, 30) | st.integers(0, 2**40))
def test_distinct_draws_the_same_indices_and_each_once(u, more):
    length = len(u) + more
    room = 1 << max(1, (2 * len(u)).bit_length())
    scratch = [np.empty(room, np.int64), np.empty(room, np.int64), np.empty(len(u), np.int64)]
    index = on_all("distinct", np.array(u, float), length, out=scratch, compared=slice(2, 3))[2]
    assert len(set(index.tolist())) == len(u)
    assert all(0 <= i < length for i in index.tolist())


def test_distinct_is_the_shuffle_of_fisher_and_yates():
    rng = np.random.default_rng(1)
    for length in range(12):
        u, deck = rng.random(length), list(range(length))
        for i in range(length):
            j = i + int(u[i] * (length - i))
            deck[i], deck[j] = deck[j], deck[i]
        scratch = [np.empty(64, np.int64), np.empty(64, np.int64), np.empty(length, np.int64)]
        assert on_all("distinct", u, length, out=scratch, compared=slice(2, 3))[2].tolist() == deck


# ---- the timeline ---------------------------------------------------------------------------------------------------


@st.composite
def chains(draw: Any) -> dict[str, Any]:
    """A ring of rows from a few sources, linked: what the kernels of the timeline read."""
    capacity, sources = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    oldest = draw(st.integers(0, 50))
    length = draw(st.integers(1, capacity))
    position = np.array(draw(st.lists(st.integers(-1, sources - 1), min_size=length, max_size=length)), np.int64)
    tail = np.array(draw(st.lists(st.integers(-1, oldest - 1), min_size=sources, max_size=sources)), np.int64)
    code = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=capacity, max_size=capacity)), np.uint8)
    linked = [np.empty(sources, np.int64), np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)]
    _, back, ahead = on_all("link", position, oldest, capacity, tail, out=linked)
    if draw(st.booleans()):  # one chain of all rows
        back = ahead = np.empty(0, np.int32)
    return {
        "capacity": capacity, "oldest": oldest, "end": oldest + length, "code": code, "back": back, "ahead": ahead,
    }  # fmt: skip


@given(data=st.data(), sources=st.integers(1, 5), capacity=st.integers(1, 12))
def test_link_chains_alike_whatever_pieces_it_comes_in(data, sources, capacity):
    places = data.draw(st.lists(st.integers(-1, sources - 1), max_size=30))  # a row of -1 stands alone
    tail = np.full(sources, -1, np.int64)
    back, ahead = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
    begin = 0
    while begin < len(places):
        piece = places[begin : begin + data.draw(st.integers(1, capacity))]
        out = [np.empty(sources, np.int64), back, ahead]
        tail, back, ahead = on_all("link", np.array(piece, np.int64), begin, capacity, tail, out=out)
        begin += len(piece)
    for row in range(max(0, begin - capacity), begin):
        like = [other for other in range(begin) if places[other] == places[row] >= 0]
        before = [other for other in like if row - capacity < other < row]
        after = [other for other in like if other > row]
        assert back[row % capacity] == (row - before[-1] if before else 0)
        assert ahead[row % capacity] == (after[0] - row if after else 0)


@given(ring=chains(), data=st.data(), before=st.integers(0, 5), after=st.integers(1, 5), stop=st.booleans())
def test_windows_and_what_is_said_of_their_rows_are_alike(ring, data, before, after, stop):
    rows = st.integers(ring["oldest"], ring["end"] - 1)
    chosen = np.array(data.draw(st.lists(rows, min_size=1, max_size=10)), np.int64)
    capacity, oldest, code, back = (ring[key] for key in ("capacity", "oldest", "code", "back"))
    shape = (chosen.size, before + after)
    ids, slots = on_all(
        "window", chosen, oldest, ring["end"], capacity, before, stop, code, back, ring["ahead"],
        out=[np.empty(shape, np.int64), np.empty(shape, np.int64)],
    )  # fmt: skip
    assert ids[:, before].tolist() == chosen.tolist()
    annotations = [np.empty(ids.size, kind) for kind in (bool, bool, bool, bool, np.int64, float)]
    for room in (0, ids.size):
        on_all(
            "annotate", ids.ravel(), slots.ravel(), oldest, capacity, 0.9, code, back,
            out=[*annotations, np.empty(room, np.int64)],
        )  # fmt: skip


@given(
    ring=chains(), data=st.data(), steps=st.integers(1, 5), gamma=st.floats(0, 1), seed=SEEDS,
    dtype=st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_sums_over_n_steps_are_alike_to_the_last_bit(ring, data, steps, gamma, seed, dtype):
    rows = st.integers(ring["oldest"], ring["end"] - 1)
    chosen = np.array(data.draw(st.lists(rows, min_size=1, max_size=10)), np.int64)
    shape = (chosen.size, steps)
    _, slots = on_all(
        "window", chosen, ring["oldest"], ring["end"], ring["capacity"], 0, True, ring["code"], ring["back"],
        ring["ahead"], out=[np.empty(shape, np.int64), np.empty(shape, np.int64)],
    )  # fmt: skip
    rewards = np.random.default_rng(seed).normal(size=(ring["capacity"], 2)).astype(dtype)
    kinds = (np.int64, np.int64, float, bool, bool)
    on_all(
        "nstep", slots, rewards, gamma, ring["code"],
        out=[np.empty((chosen.size, 2)), *(np.empty(chosen.size, kind) for kind in kinds)],
    )  # fmt: skip


@given(ring=chains(), stop=st.booleans())
def test_counts_of_episodes_and_of_what_remains_are_alike(ring, stop):
    oldest, end, capacity, code = (ring[key] for key in ("oldest", "end", "capacity", "code"))
    count = np.empty(end - oldest, np.int64)
    on_all("remaining", oldest, end, capacity, stop, code, ring["ahead"], out=[count])
    outputs = [count, count, np.empty(1, np.int64)]
    on_all("number_episodes", oldest, end, capacity, code, ring["back"], out=outputs)


@given(ring=chains(), data=st.data(), strategy=st.integers(0, 2))
def test_goals_are_taken_from_the_same_rows(ring, data, strategy):
    rows = st.integers(ring["oldest"], ring["end"] - 1)
    ids = np.array(data.draw(st.lists(rows, max_size=10)), np.int64)
    u = np.array(data.draw(st.lists(UNIFORM, min_size=ids.size, max_size=ids.size)), float)
    (goal,) = on_all(
        "goal_row", ids, u, strategy, *(ring[key] for key in ("oldest", "end", "capacity", "code", "back", "ahead")),
        out=[np.empty(ids.size, np.int64)],
    )  # fmt: skip
    assert all(ring["oldest"] <= row < ring["end"] for row in goal.tolist())


# ---- the priority tree ----------------------------------------------------------------------------------------------

MASS = st.one_of(st.just(0.0), st.floats(1e-9, 1e9), st.sampled_from([0.1, 5e-324, 1e200]))


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Leaves in the layout of the kernels, with or without the tree of minima."""
    masses = draw(st.lists(MASS, min_size=1, max_size=90))
    sizes = [len(masses)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 8))
    levels = np.cumsum([0, *(8 * -(-size // 8) for size in sizes[:-1])])
    mass = np.zeros(levels[-1] + 1)
    mass[: sizes[0]] = masses
    least = np.where(mass > 0.0, mass, np.inf)[: mass.size * draw(st.booleans())]
    return {"levels": levels, "nodes": [mass, np.sqrt(mass), least], "capacity": sizes[0]}


@given(tree=trees(), data=st.data())
def test_trees_are_built_changed_and_drawn_from_alike(tree, data):
    capacity, levels = tree["capacity"], tree["levels"]
    nodes = on_all("tree_span", 0, capacity, levels, out=tree["nodes"])
    oldest = data.draw(st.integers(0, 30))
    ids = np.array(data.draw(st.lists(st.integers(-1, oldest + capacity + 3), max_size=20)), np.int64)
    given_masses = np.array(data.draw(st.lists(MASS, min_size=ids.size, max_size=ids.size)), np.float64)
    scratch = [np.zeros(ids.size, np.int64), np.zeros(1, np.int64)]
    changed = on_all(
        "tree_update", ids, given_masses, np.sqrt(given_masses), oldest, oldest + capacity, capacity, levels,
        out=[*scratch, *nodes], compared=slice(1, None),
    )  # fmt: skip
    assert changed[1].tolist() == [int(((ids < oldest) | (ids >= oldest + capacity)).sum())]
    if changed[2][levels[-1]] > 0.0:
        u = np.array(data.draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=9)))
        out = [np.zeros(u.size), np.zeros(u.size, np.int64), np.zeros(u.size, np.int64)]
        drawn = on_all("tree_draw", u, data.draw(st.booleans()), oldest, capacity, levels, changed[2], out=out)
        assert (changed[2][drawn[2]] > 0.0).all()


# ---- runs of steps --------------------------------------------------------------------------------------------------


@given(data=st.data(), rows=st.integers(0, 4), row=st.integers(1, 8), limit=st.integers(0, 4))
def test_runs_begin_at_the_same_steps(data, rows, row, limit):
    count = rows * row
    some = [np.array(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)), k) for k in ("i8", "u1")]
    for codes, ends in ((some[0], some[1][:0]), (some[0][:0], some[1]), some):
        out = [np.empty(count, np.int64), np.empty(count, np.int64), np.empty(1, np.int64)]
        for array in out:
            array[:] = -7  # what is not written stays
        results = on_all("run_starts", count, row, limit, codes, ends, out=out)
        start, run, pieces = results[0].tolist(), results[1].tolist(), int(results[2][0])
        assert start[:pieces] == sorted(set(start[:pieces]))
        assert start[pieces:] == [-7] * (count - pieces)
        assert (start[:pieces][:1], run[:pieces][:1]) == (([0], [0]) if count else ([], []))
        lengths = np.diff([*start[:pieces], count])
        assert not limit or (lengths <= limit).all()


@pytest.mark.parametrize("limit", [0, 1, 3, 64])
@pytest.mark.parametrize("row", [1, 7, 100, 10**9])
def test_many_runs_begin_at_the_same_steps(row, limit):
    rng = np.random.default_rng(row + limit)
    count = 1400 - 1400 % min(row, 1400)
    codes = np.cumsum(rng.random(count) < 0.02)
    for often in (0.0, 0.01):  # also runs that go on from one thread's steps into the next one's
        ends = (rng.random(count) < often).astype(np.uint8)
        out = [np.full(count, -7), np.full(count, -7), np.full(1, -7)]
        on_all("run_starts", count, row, limit, codes[:0], ends, out=out)
    on_all("run_starts", count, row, limit, codes, ends, out=out)


@given(data=st.data(), count=st.integers(0, 12), width=st.integers(0, 3), single=st.booleans(), seed=SEEDS)
def test_sums_along_runs_are_alike_to_the_last_bit(data, count, width, single, seed):
    rng = np.random.default_rng(seed)
    x, after = rng.normal(size=(count, width)), rng.normal(size=(count, width))
    ends = rng.integers(0, 2, count).astype(np.uint8)
    ends[-1:] = 1
    factor = rng.random(1 if single else count)
    if factor.size:
        on_all("scan", x, factor, ends, after, out=[np.empty_like(x)])
        on_all("scan", x, factor, ends, after[:0], out=[np.empty_like(x)])


def test_every_kernel_is_compared_in_this_file():
    assert set(re.findall(r'on_all\(\s*"(\w+)"', Path(__file__).read_text(encoding="utf-8"))) == set(kernels.NAMES)
