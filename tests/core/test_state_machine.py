"""Random histories of one memory beside a Python list, on every back end."""

from __future__ import annotations

import copy
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import rlmemory as rlm
from rlmemory import kernels

from .support import LAYOUTS, Naive, channels, leaves, mapped, pick, same

SEEDS = st.integers(0, 2**32 - 1)
SOURCES = st.integers(0, 2)
CODES = st.sampled_from([0, 0, 0, 1, 2])
CAPACITIES = st.integers(1, 8)
FEW = st.integers(1, 12)


class Histories(RuleBasedStateMachine):
    backend = "reference"

    def __init__(self) -> None:
        super().__init__()
        self._serving = kernels.use(self.backend)
        self._serving.__enter__()

    def teardown(self) -> None:
        self._serving.__exit__(None, None, None)

    @initialize(layout=st.sampled_from(sorted(LAYOUTS)), capacity=CAPACITIES, seed=SEEDS)
    def begin(self, layout: str, capacity: int, seed: int) -> None:
        self.layout = LAYOUTS[layout]
        self.memory = self.layout.memory(capacity, seed=seed)
        self.naive = Naive(capacity, seed)
        self.handed_out: list[tuple[object, list[bytes]]] = []

    # ---- into the memory ----

    def _values(self, rows: dict, i: int) -> list[np.ndarray]:
        return [leaf[i].copy() for value in rows.values() for leaf in leaves(value)]

    @rule(seed=SEEDS, code=CODES, both=st.booleans(), source=st.none() | SOURCES)
    def append(self, seed: int, code: int, both: bool, source: int | None) -> None:
        rows = self.layout.rows(np.random.default_rng(seed), 1)
        flags = {"terminated": code == 1, "truncated": code == 2 or (code == 1 and both)}
        given = self.memory.append(**pick(rows, 0), **flags, source=source)
        assert given == self.naive.append(self._values(rows, 0), code, source or 0)

    @rule(seed=SEEDS, codes=st.lists(CODES, max_size=20), sources=st.data())
    def extend(self, seed: int, codes: list[int], sources: st.DataObject) -> None:
        count = len(codes)
        source = sources.draw(st.none() | SOURCES | st.lists(SOURCES, min_size=count, max_size=count))
        rows = self.layout.rows(np.random.default_rng(seed), count)
        code = np.array(codes, np.uint8)
        given = self.memory.extend(**rows, terminated=code == 1, truncated=code == 2, source=source)
        each = source if isinstance(source, list) else [source or 0] * count
        ids = [self.naive.append(self._values(rows, i), codes[i], each[i]) for i in range(count)]
        assert list(given) == ids
        assert isinstance(given, range)

    @rule(places=st.lists(st.integers(0, 7), max_size=10))
    def extend_from_itself(self, places: list[int]) -> None:
        live = self.naive.rows
        rows = [live[place % len(live)] for place in places] if live else []
        self.memory.extend_from(self.memory.get(np.array([row.id for row in rows], np.int64)))
        for row in rows:
            self.naive.append(list(row.values), row.code, row.source)

    @rule(capacity=CAPACITIES)
    def resize(self, capacity: int) -> None:
        self.memory.resize(capacity)
        self.naive.resize(capacity)

    @rule()
    def clear(self) -> None:
        self.memory.clear()
        self.naive.rows = []

    @rule(source=st.none() | SOURCES)
    def end_episode(self, source: int | None) -> None:
        self.memory.end_episode(source)
        self.naive.cuts.append((self.naive.next_id, source))

    @precondition(lambda self: self.naive.rows)
    @rule(seed=SEEDS, places=st.lists(st.integers(0, 7), min_size=1, max_size=10), which=st.data())
    def set(self, seed: int, places: list[int], which: st.DataObject) -> None:
        rows = [self.naive.rows[place % len(self.naive.rows)] for place in places]
        new = self.layout.rows(np.random.default_rng(seed), len(rows))
        names = which.draw(st.lists(st.sampled_from(sorted(new)), unique=True))
        codes = which.draw(st.none() | st.lists(CODES, min_size=len(rows), max_size=len(rows)))
        sources = which.draw(st.none() | SOURCES | st.lists(SOURCES, min_size=len(rows), max_size=len(rows)))
        fields = {name: new[name] for name in names}
        if codes is not None:
            fields.update(terminated=np.array(codes) == 1, truncated=np.array(codes) == 2)
        if sources is not None:
            fields["source"] = sources
        self.memory.set([row.id for row in rows], **fields)
        for i, row in enumerate(rows):
            for name, values in zip(new, self._by_field(new), strict=True):
                if name in names:
                    for k, value in values:
                        row.values[k] = value[i].copy()
            row.code = row.code if codes is None else codes[i]
            row.source = row.source if sources is None else sources[i] if isinstance(sources, list) else sources

    def _by_field(self, rows: dict) -> list[list[tuple[int, np.ndarray]]]:
        """For each field, its arrays and their numbers in the order of the channels."""
        numbers = iter(range(100))
        return [[(next(numbers), leaf) for leaf in leaves(value)] for value in rows.values()]

    # ---- out of the memory ----

    def _keep(self, record: object) -> None:
        """Remember a result: nothing may ever change it."""
        self.handed_out = [*self.handed_out[-3:], (record, [leaf.tobytes() for leaf in channels(record)])]

    @rule(again=st.booleans())
    def all(self, again: bool) -> None:
        record = self.memory.all()
        if again:
            for leaf in channels(record):
                leaf[...] = 0
            assert self.memory.all(out=record).id is not record.reward
            record = self.memory.all(out=record)
        self.naive.check(record, self.naive.rows)
        self._keep(record)

    @rule(places=st.lists(st.integers(0, 7), max_size=12), two_axes=st.booleans())
    def get(self, places: list[int], two_axes: bool) -> None:
        live = self.naive.rows
        rows = [live[place % len(live)] for place in places] if live else []
        ids = np.array([row.id for row in rows], np.int64)
        if two_axes:
            record = self.memory.get(np.stack([ids, ids]))
            record = rlm.Experience(*(mapped(value, lambda part: part[1]) for value in record))
        else:
            record = self.memory.get(ids)
        self.naive.check(record, rows)
        self._keep(record)

    @precondition(lambda self: self.naive.rows)
    @rule(place=st.integers(0, 7))
    def get_one(self, place: int) -> None:
        row = self.naive.rows[place % len(self.naive.rows)]
        record = self.memory.get(row.id)
        assert all(same(a, b) for a, b in zip(channels(record), row.values, strict=True))
        assert (record.id, record.source) == (row.id, row.source)
        assert (record.terminated, record.truncated) == (row.code == 1, row.code == 2)

    @rule(past=st.integers(1, 3), before=st.booleans())
    def refuse_stale_ids(self, past: int, before: bool) -> None:
        oldest = self.naive.next_id - len(self.naive.rows)
        with pytest.raises(rlm.StaleIdError):
            self.memory.get([oldest - past if before else self.naive.next_id + past - 1])

    @rule(
        size=FEW,
        replace=st.booleans(),
        source=st.none() | st.integers(0, 3),
        again=st.booleans(),
        gamma=st.floats(0, 1),
    )
    def sample(self, size: int, replace: bool, source: int | None, again: bool, gamma: float) -> None:
        options = {"replace": replace, "source": source, "discount": gamma}
        rows = self.naive.sample(size, replace, source)
        if rows is None:
            with pytest.raises(rlm.EmptyMemoryError):
                self.memory.sample(size, **options)
            return
        batch = self.memory.sample(size, **options)
        self.naive.check(batch, rows, discount=gamma)
        if again:
            rows = self.naive.sample(size, replace, source)
            batch = self.memory.sample(size, **options, out=batch)
            self.naive.check(batch, rows, discount=gamma)
        self._keep(batch)

    @rule(size=FEW)
    def chunks(self, size: int) -> None:
        rows = self.naive.rows
        pieces = list(self.memory.chunks(size))
        assert len(pieces) == -(-len(rows) // size)
        for i, piece in enumerate(pieces):
            self.naive.check(piece, rows[i * size : (i + 1) * size])

    @rule(size=FEW, shuffle=st.booleans(), drop_last=st.booleans())
    def epoch(self, size: int, shuffle: bool, drop_last: bool) -> None:
        batches = list(self.memory.epoch(size, shuffle=shuffle, drop_last=drop_last))
        rows = self.naive.rows
        if shuffle:
            rows = Naive.shuffled(rows, self.naive.rng.random(len(rows)))
        count = len(rows) // size if drop_last else -(-len(rows) // size)
        assert len(batches) == count
        for i, batch in enumerate(batches):
            self.naive.check(batch, rows[i * size : (i + 1) * size])

    # ---- the memory itself ----

    @rule(deep=st.booleans())
    def continue_with_a_copy(self, deep: bool) -> None:
        self.memory = copy.deepcopy(self.memory) if deep else pickle.loads(pickle.dumps(self.memory))

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "memory"):
            return
        assert len(self.memory) == len(self.naive.rows)
        assert self.memory.next_id == self.naive.next_id
        assert self.memory.capacity == self.naive.capacity

    @invariant()
    def slot_is_id_modulo_capacity(self) -> None:
        if not hasattr(self, "memory"):
            return
        for row in self.naive.rows:
            slot = row.id % self.naive.capacity
            assert all(same(v[slot], x) for v, x in zip(self.memory._views, row.values, strict=True))

    @invariant()
    def results_are_never_touched_again(self) -> None:
        for record, content in getattr(self, "handed_out", []):
            assert [leaf.tobytes() for leaf in channels(record)] == content


class NumbaHistories(Histories):
    backend = "cpu"


TestHistoriesOnTheReference = Histories.TestCase
TestHistoriesOnNumba = NumbaHistories.TestCase
TestHistoriesOnTheReference.settings = TestHistoriesOnNumba.settings = settings(stateful_step_count=30)
