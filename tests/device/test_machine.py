"""Random histories of two memories with the same seed, one on the CPU and one on a GPU."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sampling.strategies import CAPACITIES, CODES, GAMMAS, SEEDS, SOURCES, asked

import rlmemory as rlm
from rlmemory import device_arena

from .pairs import MAKERS, drawn, make, row_of
from .support import WRAPPERS, Pair, agree, needs_device, on_host

USUAL = device_arena._STAGED
SIDES = st.sampled_from(["host", "host", *WRAPPERS])


class Histories(RuleBasedStateMachine):
    """Whatever is asked of one is asked of the other."""

    @initialize(
        name=st.sampled_from(sorted(MAKERS)), capacity=CAPACITIES, seed=SEEDS, staged=st.sampled_from([1, 150, 999])
    )
    def begin(self, name: str, capacity: int, seed: int, staged: int) -> None:
        device_arena._STAGED = staged
        self.layout = MAKERS[name][0]
        self.crossing = "Hindsight" not in name or "sample" not in name
        self.both = Pair(lambda device: make(name, capacity, device, seed))
        self.handed_out: list[tuple[Any, Any]] = []
        self.batch: tuple[Any, Any] | None = None

    def teardown(self) -> None:
        try:
            if hasattr(self, "both"):
                self.both.compare()
                self.both.sample(20, sequence_length=4, previous=True)
                self.both.sample(20, n_step=3, previous=True)
                agree(self.both.here.episodes(), self.both.there.episodes())
        finally:
            device_arena._STAGED = USUAL

    # ---- in ----

    def given(self, seed: int, codes: list[int], source: Any) -> dict[str, Any]:
        rng, count = np.random.default_rng(seed), len(codes)
        rows = drawn(self.layout, rng, max(count, 1))
        code = np.array(codes, np.uint8)
        rows = {name: row_of({name: value}, slice(0, count))[name] for name, value in rows.items()}
        return {**rows, "terminated": code == 1, "truncated": code == 2, "source": np.full(count, source, np.int32)}

    @rule(seed=SEEDS, codes=st.lists(CODES, max_size=16), source=SOURCES, sides=st.data())
    def extend(self, seed: int, codes: list[int], source: int, sides: st.DataObject) -> None:
        given = self.given(seed, codes, source)
        self.both.here.extend(**given)
        self.both.there.extend(**self.placed(given, sides))

    @rule(seed=SEEDS, code=CODES, source=SOURCES, sides=st.data())
    def append(self, seed: int, code: int, source: int, sides: st.DataObject) -> None:
        given = row_of(self.given(seed, [code], source), 0)
        self.both.here.append(**given)
        self.both.there.append(**self.placed(given, sides))

    @rule(seed=SEEDS, count=st.integers(1, 5))
    def append_in_a_loop(self, seed: int, count: int) -> None:
        given = self.given(seed, [0] * count, 0)
        for i in range(count):
            self.both.append(**row_of(given, i))

    @staticmethod
    def placed(given: dict[str, Any], sides: st.DataObject) -> dict[str, Any]:
        """Some of the fields on the device."""

        def lift(value: Any, wrap: Any) -> Any:
            if isinstance(value, dict):
                return {key: lift(part, wrap) for key, part in value.items()}
            return tuple(lift(part, wrap) for part in value) if isinstance(value, tuple) else wrap(value)

        where = {name: sides.draw(SIDES, label=name) for name in given}
        return {
            name: value if where[name] == "host" else lift(value, WRAPPERS[where[name]])
            for name, value in given.items()
        }

    @rule(places=st.lists(st.integers(0, 11), min_size=1, max_size=6), seed=SEEDS, what=st.data())
    def set(self, places: list[int], seed: int, what: st.DataObject) -> None:
        live = self.both.here.ids
        if len(live):
            ids = np.array([live[place % len(live)] for place in places])
            new = self.given(seed, [what.draw(CODES) for _ in places], what.draw(SOURCES))
            names = what.draw(st.lists(st.sampled_from(sorted(new)), unique=True, min_size=1))
            fields = {name: new[name] for name in names}
            self.both.here.set(ids, **fields)
            self.both.there.set(ids, **self.placed(fields, what))

    @rule(capacity=CAPACITIES)
    def resize(self, capacity: int) -> None:
        self.both.resize(capacity)

    @rule()
    def clear(self) -> None:
        self.both.clear()

    @rule(source=st.none() | SOURCES)
    def end_episode(self, source: int | None) -> None:
        self.both.end_episode(source)

    @rule(places=st.lists(st.integers(0, 11), max_size=8), there=st.booleans())
    def extend_from_itself(self, places: list[int], there: bool) -> None:
        live = self.both.here.ids
        ids = np.array([live[place % len(live)] for place in places if len(live)], np.int64)
        record = self.both.get(ids)
        self.both.here.extend_from(on_host(record))
        self.both.there.extend_from(record if there else on_host(record))

    @rule(
        places=st.lists(st.integers(0, 11), min_size=1, max_size=6), seed=SEEDS, wrap=st.sampled_from(sorted(WRAPPERS))
    )
    def update_priorities(self, places: list[int], seed: int, wrap: str) -> None:
        if isinstance(self.both.here, rlm.PrioritizedReplayMemory):
            ids = np.array(places) + self.both.here.next_id - 10
            errors = np.random.default_rng(seed).random(ids.size)
            stale = self.both.here.update_priorities(ids, errors)
            assert self.both.there.update_priorities(WRAPPERS[wrap](ids), WRAPPERS[wrap](errors)) == stale

    @rule(length=st.none() | st.integers(1, 8), source=st.none() | SOURCES, keep=st.booleans())
    def generate(self, length: int | None, source: int | None, keep: bool) -> None:
        if isinstance(self.both.here, rlm.HindsightReplayMemory) and self.both.here.episodes().length.size:
            record = self.both.generate_hindsight(length, source=source)
            if keep and isinstance(record, rlm.Experience):
                self.both.here.extend_from(type(record)(*on_host(record)))
                self.both.there.extend_from(record)

    # ---- copies ----

    @rule(way=st.sampled_from(["pickle", "deepcopy", "to", "state"]))
    def continue_with_a_copy(self, way: str) -> None:
        here, there = self.both.here, self.both.there
        if way == "pickle":
            self.both.here, self.both.there = pickle.loads(pickle.dumps((here, there)))
        elif way == "deepcopy":
            self.both.there = copy.deepcopy(there)
        elif way == "to":
            self.both.here, self.both.there = there.to("cpu"), here.to("cuda")
        else:
            states = here.state_dict(), there.state_dict()
            here.load_state_dict(states[1])
            there.load_state_dict(states[0])

    # ---- out ----

    @rule(data=st.data(), again=st.booleans())
    def sample(self, data: st.DataObject, again: bool) -> None:
        ask = data.draw(asked(self.crossing))
        options = ask.keywords()
        if not options.get("replace", True) and isinstance(self.both.here, rlm.PrioritizedReplayMemory):
            return
        first = self.both.sample(ask.size, **options)
        if isinstance(first, rlm.Batch):
            if again:
                agree(
                    self.both.here.sample(ask.size, **options), self.both.there.sample(ask.size, **options, out=first)
                )
            self.handed_out = [*self.handed_out[-2:], (first, on_host(first))]

    @rule(count=st.integers(1, 4), gamma=GAMMAS, previous=st.booleans(), time_major=st.booleans())
    def episodes(self, count: int, gamma: float, previous: bool, time_major: bool) -> None:
        options = {"discount": gamma, "previous": previous, "time_major": time_major}
        self.both.sample_episodes(count, **options)
        self.both.trajectories(**options)
        assert repr(self.both.here.check()) == repr(self.both.there.check())

    @rule(rows=st.integers(1, 5))
    def pieces(self, rows: int) -> None:
        self.both.chunks(rows)
        self.both.epoch(rows)

    @invariant()
    def both_agree(self) -> None:
        if hasattr(self, "both"):
            here, there = self.both.here, self.both.there
            assert (here.ids, here.capacity) == (there.ids, there.capacity)
            assert str(here._rng.bit_generator.state) == str(there._rng.bit_generator.state)

    @rule()
    def look_at_all(self) -> None:
        """A rule and no invariant: rows are to wait over many calls."""
        self.both.compare()

    @invariant()
    def results_are_never_touched_again(self) -> None:
        for record, content in getattr(self, "handed_out", []):
            agree(content, record)


TestHistories = needs_device(Histories.TestCase)
TestHistories.settings = settings(stateful_step_count=25)
