"""Any sequence of calls against a model that keeps a list and recomputes everything, on both back ends at once.

Priorities are small whole numbers, the exponent is 1 and epsilon 0: then sums are exact in any order, and the model,
which adds up a list, draws the same rows from the same uniforms to the last bit.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import rlmemory as rlm
from rlmemory import kernels

BACKENDS = ("reference", "cpu")
PRIORITY = st.integers(0, 6).map(float)
BETA, STEPS = 0.5, 5


class Model:
    """A list of rows, oldest first."""

    def __init__(self, capacity, stratified, whole, seed):
        self.capacity, self.stratified, self.whole = capacity, stratified, whole
        self.rows, self.next_id, self.updates = [], 0, 0
        self.rng = np.random.default_rng(seed)

    def append(self, source, ended, priority):
        self.rows = self.rows[max(0, len(self.rows) - self.capacity + 1) :]
        if priority is None:
            priority = max((row["priority"] for row in self.rows), default=0.0) or 1.0
        self.rows.append({"id": self.next_id, "source": source, "ended": ended, "priority": priority})
        self.next_id += 1

    def row(self, id):
        return next((row for row in self.rows if row["id"] == id), None)

    def window(self, id, length):
        """Ids of at most `length` rows from `id` on, of its source, to the end of its episode."""
        first = self.row(id)
        chain = [row for row in self.rows if row["id"] >= id and row["source"] == first["source"]]
        taken = []
        for row in chain[:length]:
            taken.append(row["id"])
            if row["ended"]:
                break
        return taken

    def _draw(self, rows, size):
        total = sum(row["priority"] for row in rows)
        if total == 0.0:
            raise rlm.EmptyMemoryError
        ids = []
        for i, u in enumerate(self.rng.random(size)):
            target = ((i + u) / size if self.stratified else u) * total
            for row in rows:
                if target < row["priority"]:
                    ids.append(row["id"])
                    break
                target -= row["priority"]
            else:
                ids.append([row["id"] for row in rows if row["priority"]][-1])
        return ids

    def _propose(self, size, source):
        if source is None:
            return self._draw(sorted(self.rows, key=lambda row: row["id"] % self.capacity), size)
        return self._draw([row for row in self.rows if row["source"] == source], size)

    def choose(self, size, source, full):
        ids = self._propose(size, source)
        if full == 1:
            return ids
        bad = [i for i, id in enumerate(ids) if len(self.window(id, full)) < full]
        for _ in range(4):
            if not bad:
                return ids
            for i, id in zip(bad, self._propose(len(bad), source), strict=True):
                ids[i] = id
            bad = [i for i in bad if len(self.window(ids[i], full)) < full]
        if bad:
            legal = [
                row for row in self.rows
                if (source is None or row["source"] == source) and len(self.window(row["id"], full)) == full
            ]  # fmt: skip
            for i, id in zip(bad, self._draw(legal, len(bad)), strict=True):
                ids[i] = id
        return ids

    def weights(self, ids):
        masses = [self.row(id)["priority"] for id in ids]
        pool = [row["priority"] for row in self.rows if row["priority"]] if self.whole else masses
        count, total = len(self.rows), sum(row["priority"] for row in self.rows)
        beta = BETA + (1 - BETA) * min(1.0, self.updates / STEPS)
        highest = max((count * mass / total) ** -beta for mass in pool)
        return [(count * mass / total) ** -beta / highest for mass in masses]


class Machine(RuleBasedStateMachine):
    @initialize(
        capacity=st.integers(1, 20), stratified=st.booleans(), whole=st.booleans(), seed=st.integers(0, 2**32 - 1)
    )
    def begin(self, capacity, stratified, whole, seed):
        self.model = Model(capacity, stratified, whole, seed)
        self.memories = {}
        for name in BACKENDS:
            with kernels.use(name):
                self.memories[name] = rlm.PrioritizedReplayMemory(
                    rlm.NumericSpec(()), rlm.NumericSpec(()), capacity, seed=seed, stratified=stratified,
                    priority_exponent=1.0, priority_epsilon=0.0, importance_exponent=BETA, annealing_steps=STEPS,
                    weight_normalization="memory" if whole else "batch",
                )  # fmt: skip

    def each(self, call):
        """The same call on both back ends; their results, or the kind of error."""
        results = []
        for name, memory in self.memories.items():
            with kernels.use(name):
                try:
                    results.append(call(memory))
                except rlm.EmptyMemoryError:
                    results.append(rlm.EmptyMemoryError)
        return results

    @rule(source=st.integers(0, 1), ended=st.booleans(), priority=st.none() | PRIORITY)
    def append(self, source, ended, priority):
        self.each(
            lambda m: m.append(
                0.0, 0.0, reward=1.0, next_observation=0.0, terminated=ended, source=source, priority=priority
            )
        )
        self.model.append(source, ended, priority)

    @rule(data=st.data(), count=st.integers(0, 45), kind=st.sampled_from(["none", "one", "each"]))
    def extend(self, data, count, kind):
        rng = np.random.default_rng(data.draw(st.integers(0, 999)))
        source, ended = rng.integers(0, 2, count), rng.random(count) < 0.2
        given = {"none": None, "one": 3.0, "each": rng.integers(0, 7, count).astype(float)}[kind]
        zeros = np.zeros(count)
        self.each(
            lambda m: m.extend(
                zeros, zeros, reward=zeros, next_observation=zeros, terminated=ended, source=source, priority=given
            )
        )
        for i in range(count):
            priority = {"none": None, "one": 3.0, "each": given[i] if kind == "each" else None}[kind]
            self.model.append(int(source[i]), bool(ended[i]), priority)

    @rule(data=st.data(), count=st.integers(0, 12))
    def update(self, data, count):
        oldest = self.model.next_id - len(self.model.rows)
        ids = data.draw(st.lists(st.integers(oldest - 3, self.model.next_id + 1), min_size=count, max_size=count))
        values = data.draw(st.lists(PRIORITY, min_size=count, max_size=count))
        stale = 0
        for id, value in zip(ids, values, strict=True):
            row = self.model.row(id)
            if row is None:
                stale += 1
            else:
                row["priority"] = value
        self.model.updates += 1
        given = np.array(ids, np.int64), np.array(values)
        assert self.each(lambda m: m.update_priorities(*given)) == [stale, stale]

    @rule(value=st.sampled_from([np.nan, np.inf, -1.0]))
    def refuse(self, value):
        for name, memory in self.memories.items():
            with kernels.use(name), pytest.raises(ValueError, match="priority"):
                memory.update_priorities([self.model.next_id - 1] * 2, [4.0, value])

    @rule(capacity=st.integers(1, 20))
    def resize(self, capacity):
        self.each(lambda m: m.resize(capacity))
        self.model.capacity = capacity
        self.model.rows = self.model.rows[-capacity:]

    @rule()
    def clear(self):
        self.each(lambda m: m.clear())
        self.model.rows = []

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data(), source=st.integers(0, 1))
    def set(self, data, source):
        row = data.draw(st.sampled_from(self.model.rows))
        row["source"] = source
        self.each(lambda m: m.set([row["id"]], source=[source], reward=[5.0]))

    @rule(deep=st.booleans())
    def copied(self, deep):
        for name in BACKENDS:
            with kernels.use(name):
                memory = self.memories[name]
                self.memories[name] = copy.deepcopy(memory) if deep else pickle.loads(pickle.dumps(memory))

    @rule()
    def look(self):
        # At any moment: that priorities are caught up now and not later changes nothing.
        expected = [row["priority"] for row in self.model.rows]
        assert [p.tolist() for p in self.each(lambda m: m.priorities())] == [expected, expected]

    @rule(
        size=st.integers(1, 9),
        source=st.none() | st.integers(0, 1),
        options=st.sampled_from(
            [
                {},
                {"n_step": 3},
                {"sequence_length": 3},
                {"sequence_length": 2, "padding": "none"},
                {"sequence_length": 3, "padding": "none", "burn_in": 2, "time_major": True},
                {"sequence_length": 2, "padding": "start"},
            ]
        ),
    )
    def sample(self, size, source, options):
        results = self.each(lambda m: m.sample(size, source=source, **options))
        full = options.get("sequence_length", 1) if options.get("padding") == "none" else 1
        state = self.model.rng.bit_generator.state
        try:
            expected = self.model.choose(size, source, full)
        except rlm.EmptyMemoryError:
            self.model.rng.bit_generator.state = state  # a call that fails draws nothing
            assert results == [rlm.EmptyMemoryError] * 2
            return
        for batch in results:
            ids = batch.id.T if options.get("time_major") else batch.id
            if ids.ndim == 2:
                ids = ids[:, -1 if options.get("padding") == "start" else options.get("burn_in", 0)]
            assert ids.tolist() == expected
            np.testing.assert_allclose(batch.weight, self.model.weights(expected), rtol=1e-12)
        for ours, theirs in zip(*results, strict=True):
            if isinstance(ours, np.ndarray):
                assert ours.tobytes() == theirs.tobytes()
            else:  # no extra fields, no step before
                assert ours == theirs


TestMachine = Machine.TestCase
TestMachine.settings = settings(stateful_step_count=25)
