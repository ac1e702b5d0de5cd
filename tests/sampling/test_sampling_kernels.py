"""The kernels of the timeline on every back end: the same bytes from the same random input."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from core.backends import on_all
from hypothesis import given

from rlmemory.kernels import reference

NONE = np.empty(0, np.int32)
SEEDS = st.integers(0, 2**32 - 1)


class Chains:
    """A ring of random rows, linked: some sources, some rows that stand alone; or one chain that is not kept."""

    def __init__(self, seed: int, linked: bool) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.capacity = int(rng.integers(1, 14))
        self.end = int(rng.integers(1, 40))
        self.oldest = max(0, self.end - int(rng.integers(1, self.capacity + 1)))
        self.is_done = rng.choice(np.array([0, 0, 0, 1, 2], np.uint8), self.capacity)
        self.back = self.ahead = NONE
        if linked:
            position = rng.integers(-1, 3, self.end)
            self.back, self.ahead = self.linked(position)

    def linked(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Everything from the first id on, in two calls: the second goes on where the first stopped."""
        back, ahead = np.zeros(self.capacity, np.int32), np.zeros(self.capacity, np.int32)
        tail = np.full(3, -1, np.int64)
        cut = int(self.rng.integers(0, position.size + 1))
        for begin, part in ((0, position[:cut]), (cut, position[cut:])):
            out = [np.empty(3, np.int64), back, ahead]
            tail, back, ahead = on_all("link", part, begin, self.capacity, tail, out=out)
        return back, ahead

    def ids(self, size: int) -> np.ndarray:
        return self.rng.integers(self.oldest, self.end, size)

    def padded(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids with -1 among them, and their slots."""
        ids = np.where(self.rng.random(size) < 0.3, -1, self.ids(size))
        return ids, np.where(ids < 0, -1, ids % self.capacity)


def noise(*shape: int, dtype: Any = np.int64) -> np.ndarray:
    """What a kernel must overwrite."""
    return np.full(shape, 77, dtype)


@given(seed=SEEDS, linked=st.booleans(), before=st.integers(0, 4), after=st.integers(1, 5), stop=st.booleans())
def test_window(seed, linked, before, after, stop):
    c = Chains(seed, linked)
    chosen = c.ids(6)
    shape = (6, before + after)
    ids, slots = on_all(
        "window", chosen, c.oldest, c.end, c.capacity, before, stop, c.is_done, c.back, c.ahead,
        out=[noise(*shape), noise(*shape)],
    )  # fmt: skip
    assert (ids[:, before] == chosen).all()
    assert (slots == np.where(ids < 0, -1, ids % c.capacity)).all()


@given(seed=SEEDS, linked=st.booleans(), stop=st.booleans())
def test_remaining_counts_what_a_wide_window_holds(seed, linked, stop):
    c = Chains(seed, linked)
    live = np.arange(c.oldest, c.end)
    out = [noise(live.size)]
    (count,) = on_all("remaining", c.oldest, c.end, c.capacity, stop, c.is_done, c.ahead, out=out)
    ids, slots = noise(live.size, 50), noise(live.size, 50)
    reference.window(live, c.oldest, c.end, c.capacity, 0, stop, c.is_done, c.back, c.ahead, ids, slots)
    assert (count == (ids >= 0).sum(axis=1)).all()


@given(seed=SEEDS, linked=st.booleans(), previous=st.booleans(), gamma=st.floats(0, 1))
def test_annotate(seed, linked, previous, gamma):
    c = Chains(seed, linked)
    ids, slots = c.padded(9)
    out = [noise(9, dtype=bool) for _ in range(4)] + [noise(9), noise(9, dtype=float), noise(9 if previous else 0)]
    terminated, truncated, mask, first, steps, discount, before = on_all(
        "annotate", ids, slots, c.oldest, c.capacity, gamma, c.is_done, c.back, out=out
    )
    assert (mask == (ids >= 0)).all()
    assert (steps == mask).all()
    assert not (terminated | truncated | first)[~mask].any()
    assert (discount == np.where(mask & ~terminated, gamma, 0.0)).all()
    if previous:
        assert ((before < 0) == (first | ~mask)).all()


@given(seed=SEEDS, linked=st.booleans(), n_step=st.integers(1, 6), components=st.integers(1, 3), gamma=st.floats(0, 1))
def test_nstep_is_bit_for_bit_the_same(seed, linked, n_step, components, gamma):
    c = Chains(seed, linked)
    ids, slots = noise(7, n_step), noise(7, n_step)
    reference.window(c.ids(7), c.oldest, c.end, c.capacity, 0, True, c.is_done, c.back, c.ahead, ids, slots)
    shape = (c.capacity, components)
    rewards = c.rng.normal(size=shape) * 10.0 ** c.rng.integers(-9, 9, shape)
    out = [noise(7, components, dtype=float), noise(7), noise(7), noise(7, dtype=float)]
    out += [noise(7, dtype=bool), noise(7, dtype=bool)]
    _, last, steps, *_ = on_all("nstep", slots, rewards, gamma, c.is_done, out=out)
    assert (steps == (ids >= 0).sum(axis=1)).all()
    assert (last == slots[np.arange(7), steps - 1]).all()


@given(seed=SEEDS, linked=st.booleans())
def test_number_episodes(seed, linked):
    c = Chains(seed, linked)
    live = c.end - c.oldest
    number, step, count = on_all(
        "number_episodes", c.oldest, c.end, c.capacity, c.is_done, c.back, out=[noise(live), noise(live), noise(1)]
    )
    assert set(number.tolist()) == set(range(count[0]))
    assert (np.diff(number[step == 0]) == 1).all(), "numbered in the order of their first rows"
    for k in range(count[0]):
        assert step[number == k].tolist() == list(range((number == k).sum()))


@given(seed=SEEDS, linked=st.booleans(), strategy=st.integers(0, 2))
@pytest.mark.parametrize("edge", [None, 0.0, np.nextafter(1.0, 0.0)])
def test_goal_row_is_in_the_episode_and_not_before_where_it_must_not_be(edge, seed, linked, strategy):
    c = Chains(seed, linked)
    ids = c.ids(8)
    u = c.rng.random(8) if edge is None else np.full(8, edge)
    oldest = int(c.rng.integers(c.oldest, ids.min() + 1))
    (goal,) = on_all(
        "goal_row", ids, u, strategy, oldest, c.end, c.capacity, c.is_done, c.back, c.ahead, out=[noise(8)]
    )
    wide = noise(8, 99), noise(8, 99)
    reference.window(ids, oldest, c.end, c.capacity, 49, True, c.is_done, c.back, c.ahead, *wide)
    for i, window in enumerate(wide[0].tolist()):
        assert goal[i] in window
        assert strategy == 1 or goal[i] >= ids[i]
        assert strategy != 0 or goal[i] == max(window)


@given(seed=SEEDS)
def test_link_gives_rows_that_stand_alone_no_neighbours(seed):
    rng = np.random.default_rng(seed)
    capacity, count = int(rng.integers(1, 14)), int(rng.integers(1, 40))
    position = rng.integers(-1, 3, count)
    out = [noise(3), noise(capacity, dtype=np.int32), noise(capacity, dtype=np.int32)]
    tail, back, ahead = on_all("link", position, 0, capacity, np.full(3, -1, np.int64), out=out)
    for row in range(max(0, count - capacity), count):
        mine = [other for other in range(count) if other != row and position[other] == position[row] >= 0]
        before, after = [i for i in mine if i < row], [i for i in mine if i > row]
        near = before and row - before[-1] < capacity
        assert back[row % capacity] == (row - before[-1] if near else 0)
        assert ahead[row % capacity] == (after[0] - row if after else 0)
    assert tail.tolist() == [max([-1, *np.flatnonzero(position == k)]) for k in range(3)]
