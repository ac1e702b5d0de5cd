"""The priority tree: right leaves, exact sums, nothing of mass 0."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from rlmemory import kernels
from rlmemory.priority_tree import PriorityTree

LAST = float(np.nextafter(1.0, 0.0))  # the largest uniform


@pytest.fixture
def compiled():
    """For numbers of draws that would take the back end in NumPy minutes; that both draw alike is tested elsewhere."""
    with kernels.use("cpu"):
        yield


def tree_of(masses, *, least=False):
    masses = np.asarray(masses, np.float64)
    tree = PriorityTree(masses.size, least=least)
    tree.fill(0, masses.size, masses, masses)
    return tree


def everything(tree):
    return b"".join(array.tobytes() for array in (tree._masses, tree._priorities, tree._leasts))


@pytest.mark.parametrize("capacity", [1, 3, 5, 6, 7, 8, 9, 64, 65, 1000])
@pytest.mark.parametrize("equal", [True, False])
def test_the_middle_of_each_leafs_mass_finds_that_leaf(backend, capacity, equal):
    # In vwxyzjn/cleanrl#546 a tree whose capacity was no power of two visited its leaves out of order.
    masses = np.ones(capacity) if equal else 1.0 + np.arange(capacity) % 7
    middle = np.cumsum(masses) - masses / 2
    ids, slots = tree_of(masses).draw(middle / masses.sum(), False, 0)
    assert ids.tolist() == slots.tolist() == list(range(capacity))


@pytest.mark.parametrize("oldest", [0, 4, 5, 17])
def test_ids_count_from_the_oldest_wherever_it_lies(backend, oldest):
    ids, slots = tree_of(np.ones(5)).draw((np.arange(5) + 0.5) / 5, False, oldest)
    assert slots.tolist() == [0, 1, 2, 3, 4]
    assert (ids % 5 == slots).all()
    assert sorted(ids) == list(range(oldest, oldest + 5))


ZEROS_AND_MORE = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-12, 1e12), st.sampled_from([0.1, 1.0, 5e-324, 1e260])), min_size=1, max_size=80
)


@given(ZEROS_AND_MORE, st.lists(st.one_of(st.sampled_from([0.0, LAST, 0.5]), st.floats(0, LAST)), min_size=1))
def test_a_leaf_of_zero_is_never_drawn(masses, uniforms):
    u = np.array([0.0, LAST, *uniforms])
    drawn = []
    for name in ("reference", "cpu"):
        for stratified in (False, True):
            with kernels.use(name):
                tree = tree_of(masses)
                if tree.total == 0.0:
                    return
                ids, slots = tree.draw(u, stratified, 3)
            assert (tree.mass[slots] > 0.0).all()
            drawn.append((ids.tolist(), slots.tolist()))
    assert drawn[:2] == drawn[2:]  # the same on both back ends


def test_no_zero_at_either_end_of_any_node(backend):
    # One leaf above 0 at each place in turn; and all but one.
    ends = np.array([0.0, LAST])
    for capacity in (1, 7, 8, 9, 65):
        for place in range(capacity):
            alone = np.zeros(capacity)
            alone[place] = 0.1
            assert tree_of(alone).draw(ends, False, 0)[1].tolist() == [place, place]


def test_a_target_that_rounding_brings_past_a_node_stays_in_front_of_zeros(backend):
    # The subtraction on the way down can leave more than the chosen node holds: 1e16 + 1 rounds to 1e16.
    masses = np.zeros(128)
    masses[0], masses[8], masses[16] = 1e16, 1.0, 1e16
    tree = tree_of(masses)
    u = np.unique(np.concatenate([np.linspace(0, LAST, 999), 0.5 + np.arange(-9, 9) * 2.0**-53]))
    assert set(tree.draw(u, False, 0)[1].tolist()) <= {0, 8, 16}


@given(st.data())
def test_updates_leave_the_tree_that_building_it_anew_gives(data):
    capacity = data.draw(st.integers(1, 150))
    value = st.one_of(st.just(0.0), st.floats(0, 1e9))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    begin = [data.draw(value) for _ in range(3)]
    states = []
    rounds = [
        (rng.integers(-2, capacity + 9, size), rng.choice([*begin, 0.3, 7.0], size)) for size in rng.integers(0, 40, 4)
    ]
    for name in ("reference", "cpu"):
        with kernels.use(name):
            tree = PriorityTree(capacity, least=True)
            plain = np.zeros(capacity)
            for ids, values in rounds:
                stale = tree.update(ids, values**0.6, values, 4, 4 + capacity)
                live = (ids >= 4) & (ids < 4 + capacity)
                assert stale == np.count_nonzero(~live)
                for i, v in zip(ids[live], values[live], strict=True):  # the last of equal ids wins
                    plain[i % capacity] = v
                anew = PriorityTree(capacity, least=True)
                anew.fill(0, capacity, plain**0.6, plain)
                assert everything(tree) == everything(anew)
                assert tree.largest == plain.max()
                assert tree.least == min((plain**0.6)[plain > 0], default=math.inf)
            states.append(everything(tree))
    assert states[0] == states[1]


def test_each_tree_follows_though_the_others_do_not_change(backend):
    capacity = 600
    tree = PriorityTree(capacity, least=True)
    masses = np.full(capacity, 1e16)
    tree.fill(0, capacity, masses, np.ones(capacity))
    row = np.array([77])
    for mass, priority in ((0.5, 1.0), (0.25, 1.0), (0.25, 7.0), (0.25, 2.0), (0.125, 2.0)):
        total = tree.total
        tree.update(row, np.array([mass]), np.array([priority]), 0, capacity)
        assert (tree.least, tree.largest) == (mass, priority)
        assert mass == 0.5 or tree.total == total  # too small to show in the sum
    tree.update(row, np.array([0.0]), np.array([0.0]), 0, capacity)
    assert (tree.least, tree.largest) == (1e16, 1.0)


def test_a_parent_is_the_sum_of_its_children_in_order(backend):
    rng = np.random.default_rng(0)
    tree = tree_of(rng.random(9) * 10.0 ** rng.integers(-9, 9, 9))
    first = 0.0
    for mass in tree.mass[:8].tolist():
        first += mass
    assert tree.total == first + tree.mass[8]


def test_a_tree_of_ten_million_keeps_its_sum_through_a_million_updates(compiled):
    rng = np.random.default_rng(1)
    capacity, batch = 10_000_000, 4096
    tree = PriorityTree(capacity, least=False)
    masses = rng.random(capacity)
    tree.fill(0, capacity, masses, masses)
    for _ in range(-(-1_000_000 // batch)):
        values = rng.random(batch) * 10.0 ** rng.integers(-6, 6)
        tree.update(rng.integers(0, capacity, batch), values, values, 0, capacity)
    exact = math.fsum(tree.mass.tolist())
    assert abs(tree.total - exact) <= 1e-9 * exact
    assert tree.largest == tree.priority.max()
    # And every node is the sum of its children, to the last bit.
    before = everything(tree)
    tree.fill(0, capacity, tree.mass, tree.priority)
    assert everything(tree) == before


# ---- distribution -------------------------------------------------------------------------------------------------


def chi_square(counts, probabilities):
    expected = counts.sum() * probabilities
    return float(((counts - expected) ** 2 / expected).sum())


def limit(freedom):
    """Above this, chi-square is by chance in one of a million runs.

    The seed is fixed, so that a test gives the same answer each time; the threshold says that passing is no luck, and
    failing no bad luck.
    """
    return chi2.isf(1e-6, freedom)


@pytest.mark.parametrize("capacity", [1, 3, 64, 65, 1024, 1025])
@pytest.mark.parametrize("stratified", [False, True])
def test_a_million_draws_follow_the_masses(compiled, capacity, stratified):
    rng = np.random.default_rng(2)
    masses = rng.random(capacity) + 0.05
    masses[1::3] = 0.0
    tree = tree_of(masses)
    counts = np.zeros(capacity)
    batches, size = (1000, 1000) if stratified else (1, 1_000_000)
    for _ in range(batches):
        counts += np.bincount(tree.draw(rng.random(size), stratified, 0)[1], minlength=capacity)
    assert counts[masses == 0].sum() == 0
    positive = masses > 0
    freedom = np.count_nonzero(positive) - 1
    found = chi_square(counts[positive], masses[positive] / masses.sum())
    assert found <= limit(max(freedom, 1))
    if stratified and capacity > 3:  # each stratum holds its one draw, so counts vary less than independent ones
        assert found <= freedom


def test_the_test_of_the_distribution_sees_a_wrong_one(compiled):
    rng = np.random.default_rng(3)
    masses = rng.random(64) + 0.05
    counts = np.bincount(tree_of(masses).draw(rng.random(1_000_000), False, 0)[1], minlength=64)
    wrong = masses.copy()
    wrong[5] *= 1.1
    assert chi_square(counts, wrong / wrong.sum()) > limit(63)
