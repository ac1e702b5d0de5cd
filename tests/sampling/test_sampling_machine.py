"""Random histories of a memory, and every kind of sample of it, beside the list of rows."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import rlmemory as rlm
from rlmemory import kernels

from .compare import compare, compare_episodes, compare_experience, compare_sample
from .goals_model import GoalModel, Hindsight
from .layouts import LAYOUTS, given, leaves, mapped
from .model import Ask, Model
from .strategies import CAPACITIES, CODES, GAMMAS, SEEDS, SOURCES, asked


class Histories(RuleBasedStateMachine):
    """Both kinds of memory go through these; `self.model` says what should be."""

    backend = "reference"
    crossing = True

    def __init__(self) -> None:
        super().__init__()
        self._serving = kernels.use(self.backend)
        self._serving.__enter__()

    def teardown(self) -> None:
        try:
            if hasattr(self, "memory"):
                self.look_at_everything()
        finally:
            self._serving.__exit__(None, None, None)

    def look_at_everything(self) -> None:
        """At the end of a history, which the rules alone would seldom do: what has gone wrong shows somewhere."""
        self.episodes()
        for ask in (Ask(20, 4, previous=True), Ask(20, 3, padding="start"), Ask(20, n_step=3, previous=True)):
            compare_sample(self.memory, self.model, ask)
        if self.crossing:
            compare_sample(self.memory, self.model, Ask(20, 5, boundary="cross"))

    # ---- into the memory ----

    def values(self, seed: int, source: int) -> dict[str, Any]:
        """A row, which often goes on from where its source was."""
        rng = np.random.default_rng(seed)
        values = self.model.layout.draw(rng)
        mine = self.model.of(source)
        if mine and rng.random() < 0.7:
            values["observation"] = copy.deepcopy(mine[-1].values["next_observation"])
        return values

    @rule(seed=SEEDS, code=CODES, both=st.booleans(), source=SOURCES)
    def append(self, seed: int, code: int, both: bool, source: int) -> None:
        values = self.values(seed, source)
        flags = {"terminated": code == 1, "truncated": code == 2 or (code == 1 and both)}
        assert self.memory.append(**given(values), **flags, source=source) == self.model.append(values, code, source)
        self.ended([self.model.next_id - 1] if code else [])

    @rule(seed=SEEDS, codes=st.lists(CODES, min_size=1, max_size=16), sources=st.data())
    def extend(self, seed: int, codes: list[int], sources: st.DataObject) -> None:
        count = len(codes)
        source = sources.draw(SOURCES | st.lists(SOURCES, min_size=count, max_size=count))
        each = source if isinstance(source, list) else [source] * count
        first, rows = self.model.next_id, []
        for i in range(count):
            rows.append(self.values(seed + i, each[i]))
            self.model.append(rows[i], codes[i], each[i])
        together = {name: mapped(rows[0][name], lambda *parts: np.stack(parts), *(r[name] for r in rows[1:]))
                    for name in rows[0]}  # fmt: skip
        code = np.array(codes)
        self.memory.extend(**given(together), terminated=code == 1, truncated=code == 2, source=source)
        self.ended([first + i for i in range(count) if codes[i]])

    def ended(self, ids: list[int]) -> None:
        """Episodes have ended with these rows."""

    @rule(source=st.none() | SOURCES)
    def end_episode(self, source: int | None) -> None:
        self.memory.end_episode(source)
        self.model.end_episode(source)

    @rule(capacity=CAPACITIES)
    def resize(self, capacity: int) -> None:
        self.memory.resize(capacity)
        self.model.resize(capacity)

    @rule()
    def clear(self) -> None:
        self.memory.clear()
        self.model.rows = []

    @rule(places=st.lists(st.integers(0, 11), min_size=1, max_size=4), what=st.data())
    def set(self, places: list[int], what: st.DataObject) -> None:
        if not self.model.rows:
            return
        rows = [self.model.rows[place % len(self.model.rows)] for place in places]
        ids = [row.id for row in rows]
        codes = what.draw(st.none() | st.lists(CODES, min_size=len(rows), max_size=len(rows)))
        sources = what.draw(st.none() | st.lists(SOURCES, min_size=len(rows), max_size=len(rows)))
        if codes is not None:
            self.memory.set(ids, terminated=np.array(codes) == 1, truncated=np.array(codes) == 2)
        if sources is not None:
            self.memory.set(ids, source=sources)
        for i, row in enumerate(rows):
            row.code = row.code if codes is None else codes[i]
            row.source = row.source if sources is None else sources[i]

    @rule(deep=st.booleans())
    def continue_with_a_copy(self, deep: bool) -> None:
        self.memory = copy.deepcopy(self.memory) if deep else pickle.loads(pickle.dumps(self.memory))

    # ---- out of it ----

    @invariant()
    def a_call_that_fails_draws_nothing_and_one_that_works_its_uniforms(self) -> None:
        if hasattr(self, "memory"):
            assert self.memory._rng.bit_generator.state == self.model.rng.bit_generator.state

    @rule(data=st.data(), again=st.booleans())
    def sample(self, data: st.DataObject, again: bool) -> None:
        ask = data.draw(asked(self.crossing))
        batch = compare_sample(self.memory, self.model, ask)
        if again and batch is not None:
            for leaf in leaves(batch.next_observation):
                leaf[...] = 0
            windows = self.model.sample(ask)
            second = self.memory.sample(ask.size, **ask.keywords(), out=batch)
            assert np.shares_memory(batch.id, second.id)
            compare(second, windows, self.model.layout, ask)

    @rule(source=st.none() | st.integers(0, 3), gamma=GAMMAS, previous=st.booleans(), time_major=st.booleans())
    def trajectories(self, source: int | None, gamma: float, previous: bool, time_major: bool) -> None:
        ask = Ask(discount=gamma, previous=previous, time_major=time_major)
        batch = self.memory.trajectories(source, discount=gamma, previous=previous, time_major=time_major)
        episodes = [e for e in self.model.episodes() if source in (None, e[0].source)]
        compare(batch, padded(self.model, episodes, ask), self.model.layout, ask, wide=True)

    @rule(count=st.integers(1, 5), gamma=GAMMAS, previous=st.booleans(), time_major=st.booleans())
    def sample_episodes(self, count: int, gamma: float, previous: bool, time_major: bool) -> None:
        ask = Ask(discount=gamma, previous=previous, time_major=time_major)
        keywords = {"discount": gamma, "previous": previous, "time_major": time_major}
        over = [e for e in self.model.episodes() if self.model.ending(e) != "running"]
        if not over:
            with pytest.raises(rlm.EmptyMemoryError):
                self.memory.sample_episodes(count, **keywords)
            return
        episodes = self.model.draw(over, count)
        batch = self.memory.sample_episodes(count, **keywords)
        compare(batch, padded(self.model, episodes, ask), self.model.layout, ask, wide=True)

    @rule()
    def episodes(self) -> None:
        compare_episodes(self.memory.episodes(), self.model)

    @rule()
    def check(self) -> None:
        found = self.memory.check()
        wanted = []
        for row in self.model.rows:
            after = self.model.around(row)[1]
            pair = row.values["next_observation"], after[1].values["observation"] if len(after) > 1 else None
            if pair[1] is not None and not all(map(equal_with_nan, leaves(pair[0]), leaves(pair[1]))):
                wanted.append(row.id)
        assert found.broken.tolist() == wanted

    @rule()
    def all(self) -> None:
        compare_experience(self.memory.all(), self.model.rows)


def padded(model: Model, episodes: list, ask: Ask) -> list:
    length = max(map(len, episodes), default=0)
    return [[model.cell(row, ask.discount) for row in (e + [None] * length)[:length]] for e in episodes]


def equal_with_nan(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


class PlainHistories(Histories):
    @initialize(layout=st.sampled_from(sorted(LAYOUTS)), capacity=CAPACITIES, seed=SEEDS)
    def begin(self, layout: str, capacity: int, seed: int) -> None:
        self.memory = LAYOUTS[layout].memory(capacity, seed=seed)
        self.model = Model(LAYOUTS[layout], capacity, seed)


class HindsightHistories(Histories):
    @initialize(
        strategy=st.sampled_from(["final", "episode", "future"]),
        k=st.integers(1, 3),
        relabel=st.sampled_from(["sample", "store"]),
        judged=st.booleans(),
        capacity=CAPACITIES,
        seed=SEEDS,
    )
    def begin(self, strategy: str, k: int, relabel: str, judged: bool, capacity: int, seed: int) -> None:
        how = Hindsight(strategy, k, relabel, judged)
        self.memory, self.model = how.memory(capacity, seed), GoalModel(how, capacity, seed)
        self.crossing = relabel == "store"

    def ended(self, ids: list[int]) -> None:
        self.model.ended(ids)

    @rule(length=st.none() | st.integers(1, 8), source=st.none() | SOURCES, keep=st.booleans())
    def generate(self, length: int | None, source: int | None, keep: bool) -> None:
        rows = self.model.newest(length, source)
        if not rows:
            with pytest.raises(rlm.EmptyMemoryError):
                self.memory.generate_hindsight(length, source=source)
            return
        wanted = self.model.generated(rows)
        record = self.memory.generate_hindsight(length, source=source)
        compare_experience(record, wanted)
        if keep:
            self.memory.extend_from(record)
            self.model.store(wanted)


class PlainOnNumba(PlainHistories):
    backend = "cpu"


class HindsightOnNumba(HindsightHistories):
    backend = "cpu"


STEPS = settings(stateful_step_count=30, max_examples=2 * settings().max_examples)
TestPlainOnTheReference, TestPlainOnNumba = PlainHistories.TestCase, PlainOnNumba.TestCase
TestHindsightOnTheReference, TestHindsightOnNumba = HindsightHistories.TestCase, HindsightOnNumba.TestCase
TestPlainOnTheReference.settings = TestPlainOnNumba.settings = STEPS
TestHindsightOnTheReference.settings = TestHindsightOnNumba.settings = STEPS
