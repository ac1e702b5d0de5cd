"""A history, then samples of every kind, beside the list of rows.

The state machine mixes everything with everything; here more of each example goes into the draws.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from rlmemory import kernels

from .compare import compare_sample
from .goals_model import GoalModel, Hindsight
from .layouts import LAYOUTS
from .layouts import given as arguments
from .model import Ask, Model
from .strategies import CAPACITIES, CODES, SEEDS, SOURCES, asked

#: Ends, sources, and for some rows an `end_episode` before them.
HISTORY = st.lists(st.tuples(CODES, SOURCES, st.sampled_from(["", "", "", "", "all", "one"])), max_size=25)
HINDSIGHT = st.builds(
    Hindsight, st.sampled_from(["final", "episode", "future"]), st.integers(1, 4), st.just("sample"), st.booleans()
)
MANY = settings(max_examples=6 * settings().max_examples)


def tell(memory: Any, model: Model, history: list, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for code, source, cut in history:
        if cut:
            for teller in (memory, model):
                teller.end_episode(source if cut == "one" else None)
        values = model.layout.draw(rng)
        memory.append(**arguments(values), terminated=code == 1, truncated=code == 2, source=source)
        model.append(values, code, source)


@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    capacity=CAPACITIES,
    history=HISTORY,
    asks=st.lists(asked(), min_size=1, max_size=5),
    seed=SEEDS,
    backend=st.sampled_from(["reference", "cpu"]),
)
@MANY
def test_every_kind_of_sample_is_that_of_the_list(layout, capacity, history, asks, seed, backend):
    memory, model = LAYOUTS[layout].memory(capacity, seed=seed), Model(LAYOUTS[layout], capacity, seed)
    with kernels.use(backend):
        tell(memory, model, history, seed)
        for ask in asks:
            compare_sample(memory, model, ask)


@given(
    how=HINDSIGHT,
    capacity=CAPACITIES,
    history=HISTORY,
    asks=st.lists(asked(crossing=False), min_size=1, max_size=5),
    seed=SEEDS,
    backend=st.sampled_from(["reference", "cpu"]),
)
@MANY
def test_every_kind_of_sample_with_new_goals_is_that_of_the_list(how, capacity, history, asks, seed, backend):
    memory, model = how.memory(capacity, seed), GoalModel(how, capacity, seed)
    with kernels.use(backend):
        tell(memory, model, history, seed)
        for ask in asks:
            compare_sample(memory, model, ask)


@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=12), long=st.integers(3, 6), seed=SEEDS)
def test_full_windows_where_few_rows_begin_one_are_those_of_the_list(lengths, long, seed):
    """Most draws hit no legal start: they are repeated four times, then the starts are listed, and the list is kept."""
    layout = LAYOUTS["one array"]
    memory, model = layout.memory(64, seed=seed), Model(layout, 64, seed)
    tell(memory, model, [(int(t == n - 1), 0, "") for n in [*lengths, long] for t in range(n)], seed)
    ask = Ask(20, long, padding="none")
    for other in (ask, ask, replace(ask, boundary="cross"), replace(ask, sequence_length=2), ask):
        compare_sample(memory, model, other)
        compare_sample(memory, model, replace(other, size=len(model.legal(other)), replace=False))
    last = model.rows[-2]
    memory.set(last.id, truncated=True)
    last.code = 2
    compare_sample(memory, model, ask)
