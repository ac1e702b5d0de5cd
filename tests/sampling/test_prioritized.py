"""PrioritizedReplayMemory: what it accepts, how it draws, what it keeps."""

from __future__ import annotations

import copy
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

import rlmemory as rlm
from rlmemory import kernels

SCALAR = rlm.NumericSpec(())


@pytest.fixture
def compiled():
    """For numbers of draws that would take the back end in NumPy minutes; that both draw alike is tested elsewhere."""
    with kernels.use("cpu"):
        yield


def memory_of(count, capacity=None, *, source=0, ends=(), **keywords):
    """`count` rows whose observation is their id."""
    keywords = {"seed": 0, **keywords}
    memory = rlm.PrioritizedReplayMemory(SCALAR, SCALAR, capacity or max(count, 1), **keywords)
    add(memory, count, source=source, ends=ends)
    return memory


def add(memory, count, *, source=0, ends=(), priority=None):
    rows = np.arange(memory.next_id, memory.next_id + count, dtype=float)
    ended = np.isin(np.arange(count), list(ends))
    return memory.extend(
        rows, rows, reward=rows, next_observation=rows + 1, terminated=ended, source=source, priority=priority
    )


def one(memory, priority=None):
    return memory.append(0.0, 0.0, reward=0.0, next_observation=0.0, terminated=False, priority=priority)


def tree_bytes(memory):
    tree = memory._priorities.tree
    return b"".join(array.tobytes() for array in (tree._masses, tree._priorities, tree._leasts))


def same(a, b):
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if isinstance(x, np.ndarray)]
    return len(pairs) > 10 and all(x.tobytes() == y.tobytes() for x, y in pairs)


# ---- priorities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0])
def test_a_wrong_priority_names_its_position_and_changes_nothing(backend, wrong):
    # One NaN poisoned every ancestor in MorvanZhou/Reinforcement-learning-with-tensorflow#54.
    memory = memory_of(4)
    memory.update_priorities([0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0])
    before, beta = tree_bytes(memory), memory.current_importance_exponent
    with pytest.raises(ValueError, match=r"position 0\b"):
        memory.update_priorities([0, 1], [wrong, 1.0])
    with pytest.raises(ValueError, match=r"position 1\b"):
        memory.update_priorities([0, 1], [1.0, wrong])
    assert (tree_bytes(memory), memory.current_importance_exponent) == (before, beta)
    with pytest.raises(ValueError, match="priority"):
        one(memory, wrong)
    with pytest.raises(ValueError, match=r"position 2\b"):
        add(memory, 3, priority=[1.0, 2.0, wrong])
    assert (tree_bytes(memory), memory.next_id, len(memory)) == (before, 4, 4)


def test_a_wrong_experience_with_a_priority_stores_nothing(backend):
    memory = memory_of(3, 4)
    before = memory.priorities().tolist()
    with pytest.raises(rlm.ShapeError):
        memory.append([0.0, 1.0], 0.0, reward=0.0, next_observation=0.0, terminated=False, priority=9.0)
    with pytest.raises(rlm.ShapeError):
        memory.extend(
            np.zeros(2), np.zeros(3), reward=np.zeros(2), next_observation=np.zeros(2), terminated=False, priority=9.0
        )
    assert (memory.priorities().tolist(), memory.next_id) == (before, 3)


def test_a_million_priorities_that_large_still_have_a_finite_sum(backend):
    with pytest.raises(ValueError, match=r"1e\+300 at position 0.*at most"):
        memory_of(1).update_priorities([0], [1e300])
    memory = memory_of(64, priority_exponent=100.0, priority_epsilon=100.0)
    memory.update_priorities(np.arange(64), np.full(64, 403.0))
    assert np.isfinite(memory.sample(8).weight).all()


def test_an_id_given_twice_gets_the_last_priority(backend):
    memory = memory_of(20)
    assert memory.update_priorities([7, 3, 7], [1.0, 2.0, 3.0]) == 0
    assert memory.priorities([7, 3]).tolist() == [3.0, 2.0]


def test_stale_ids_and_padding_are_ignored_and_counted(backend):
    memory = memory_of(9, 4)  # live: 5 to 8
    assert memory.update_priorities([-1, 4, 5, 8, 9], [7.0, 7.0, 2.0, 3.0, 7.0]) == 3
    assert memory.priorities().tolist() == [2.0, 1.0, 1.0, 3.0]
    with pytest.raises(rlm.StaleIdError):
        memory.priorities([4])


def test_shapes_as_networks_give_them(backend):
    memory = memory_of(6)
    memory.update_priorities(np.arange(2), np.array([[2.0], [3.0]], np.float32))
    memory.update_priorities(np.array([[2], [3]]), np.array([4.0, 5.0]))
    memory.update_priorities(4, 6.0)
    readonly = np.array([7.0])
    readonly.flags.writeable = False
    memory.update_priorities(np.arange(12)[5:6], readonly)
    assert memory.priorities().tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert memory.priorities([[0, 1], [2, 3]]).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    for ids, priority in (([0, 1], [1.0]), ([0, 1], 1.0), ([0, 1], [[1.0, 2.0]])):
        with pytest.raises(rlm.ShapeError, match="priority"):
            memory.update_priorities(ids, priority)
    with pytest.raises(rlm.ShapeError, match="burn_in"):
        memory.update_priorities(memory.sample(3, sequence_length=2).id, np.ones(3))
    with pytest.raises(rlm.StaleIdError, match="bools"):
        memory.update_priorities([True], [1.0])
    with pytest.raises(rlm.DataTypeError):
        memory.update_priorities([0], [1.0 + 1j])


def test_each_tree_kernel_is_compiled_once_whatever_arrays_come():
    with kernels.use("cpu") as cpu:
        memory = memory_of(6, weight_normalization="memory")
        readonly = np.arange(2.0)
        readonly.flags.writeable = False
        memory.update_priorities(np.arange(8)[::4], readonly)
        memory.update_priorities(np.arange(2, dtype=np.int32), [1, 2])
        memory.sample(2)
        memory_of(3, stratified=False).sample(2)
        for name in ("tree_draw", "tree_span", "tree_update"):
            assert len(getattr(cpu, name).signatures) == 1, name


def test_a_new_row_gets_the_largest_priority_of_those_that_stay(backend):
    memory = memory_of(0, 3, priority_epsilon=0.0)
    one(memory)
    assert memory.priorities().tolist() == [1.0]
    memory.update_priorities([0], [5.0])
    one(memory)  # 0 stays
    one(memory)
    assert memory.priorities().tolist() == [5.0, 5.0, 5.0]
    memory.update_priorities([0, 1, 2], [9.0, 2.0, 3.0])
    one(memory)  # replaces the row of 9: the maximum comes down again
    assert memory.priorities().tolist() == [2.0, 3.0, 3.0]
    memory.update_priorities([1, 2, 3], [0.0, 0.0, 0.0])
    one(memory)
    assert memory.priorities().tolist() == [0.0, 0.0, 1.0]


def test_the_largest_priority_comes_down_when_it_is_updated(backend):
    memory = memory_of(3, 10)
    memory.update_priorities([0, 1, 2], [100.0, 2.0, 1.0])
    memory.update_priorities([0], [0.5])
    one(memory)
    assert memory.priorities().tolist() == [0.5, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("capacity", [1, 2, 7])
def test_priorities_are_the_same_whenever_they_are_caught_up(backend, capacity):
    rng = np.random.default_rng(5)
    eager, lazy = (memory_of(0, capacity, priority_epsilon=0.0) for _ in range(2))
    for step in range(200):
        given = float(rng.integers(0, 5)) if rng.random() < 0.3 else None
        for memory in (eager, lazy):
            one(memory, given)
        eager.priorities()
        if rng.random() < 0.1:
            ids = rng.integers(step - capacity, step + 2, 3)
            for memory in (eager, lazy):
                memory.update_priorities(ids, ids % 4 + 0.0)
    assert eager.priorities().tolist() == lazy.priorities().tolist()
    assert tree_bytes(eager) == tree_bytes(lazy)


def test_priorities_of_more_rows_than_fit(backend):
    memory = memory_of(0, 3)
    add(memory, 5, priority=np.arange(5.0))
    assert memory.priorities().tolist() == [2.0, 3.0, 4.0]
    add(memory, 0, priority=[])
    add(memory, 2, priority=9)
    assert memory.priorities().tolist() == [4.0, 9.0, 9.0]
    with pytest.raises(rlm.ShapeError, match="priority"):
        add(memory, 2, priority=[1.0, 2.0, 3.0])
    one(memory, 0.0)
    memory.extend_from(memory.get([5, 6]))
    assert memory.priorities().tolist() == [0.0, 9.0, 9.0]  # 9 stayed when the first of them came


# ---- draws --------------------------------------------------------------------------------------------------------


def test_probabilities_and_weights_of_four_rows(backend):
    memory = memory_of(4, 8, priority_exponent=0.6, importance_exponent=0.4, priority_epsilon=0.0)
    memory.update_priorities([0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0])
    memory.annealing_steps = 10**15  # so that the one update leaves the exponent where it was
    tree = memory._priorities.tree
    np.testing.assert_allclose(tree.mass[:4] / tree.total, [0.1482, 0.2247, 0.2866, 0.3405], atol=5e-5)
    twin = pickle.loads(pickle.dumps(memory))
    batch = memory.sample(256)
    weight = {int(i): w for i, w in zip(batch.id, batch.weight, strict=True)}
    np.testing.assert_allclose([weight[i] for i in range(4)], [1, 0.8467, 0.7682, 0.7170], atol=5e-5)
    assert same(batch, twin.sample(256))
    for _ in range(3):
        assert same(memory.sample(16), twin.sample(16))
    assert (one(twin), twin.priorities([4]).tolist()) == (4, [4.0])


@pytest.mark.parametrize("whole", [False, True])
def test_weights_are_those_of_the_formula(backend, whole):
    rng = np.random.default_rng(0)
    memory = memory_of(50, 60, weight_normalization="memory" if whole else "batch", annealing_steps=10)
    memory.update_priorities(np.arange(50), rng.random(50) * 3)
    probability = (memory.priorities() + 1e-6) ** 0.6
    probability /= probability.sum()
    beta = 0.4 + 0.6 * 0.1
    assert memory.current_importance_exponent == pytest.approx(beta, abs=1e-15)
    batch = memory.sample(7)
    weight = (50 * probability[batch.id]) ** -beta
    largest = ((50 * probability) ** -beta).max() if whole else weight.max()
    np.testing.assert_allclose(batch.weight, weight / largest, rtol=1e-12)


def test_the_importance_exponent_grows_with_each_update_to_one():
    memory = memory_of(2, annealing_steps=4, importance_exponent=0.2)
    seen = []
    for _ in range(6):
        seen.append(memory.current_importance_exponent)
        memory.sample(1)
        memory.update_priorities([0], [1.0])
    np.testing.assert_allclose(seen, [0.2, 0.4, 0.6, 0.8, 1.0, 1.0], atol=1e-15)
    with pytest.raises(AttributeError):
        memory.current_importance_exponent = 0.5
    memory.clear()
    assert pickle.loads(pickle.dumps(memory)).current_importance_exponent == 1.0


def test_a_row_of_priority_zero_is_never_drawn_not_even_with_exponent_zero(backend):
    for exponent in (0.0, 0.5, 1.0):
        memory = memory_of(5, priority_exponent=exponent, priority_epsilon=0.0, stratified=False)
        memory.update_priorities(np.arange(5), [0.0, 2.0, 0.0, 3.0, 0.0])
        assert set(memory.sample(500).id.tolist()) == {1, 3}
        assert set(memory.sample(500, source=0).id.tolist()) == {1, 3}


class Ends:
    """In place of a Generator: the smallest and the largest uniform."""

    bit_generator = SimpleNamespace(state=None)

    def random(self, count):
        return np.resize([0.0, np.nextafter(1.0, 0.0)], count)


@pytest.mark.parametrize("options", [{}, {"source": 0}, {"sequence_length": 2, "padding": "none"}])
@pytest.mark.parametrize("stratified", [False, True])
def test_the_first_and_the_last_uniform_do_not_reach_zeros(backend, options, stratified):
    memory = memory_of(9, priority_epsilon=0.0, stratified=stratified, ends=[5])
    memory._rng = Ends()
    memory.update_priorities(np.arange(9), [0.0, 0.0, 0.1, 0.3, 0.0, 0.1, 0.7, 0.0, 0.0])
    ids = memory.sample(4, **options).id
    ids = ids if ids.ndim == 1 else ids[:, 0]
    # Stratified, the last target is the whole total: (3 + u) / 4 rounds to 1.
    assert ids.tolist()[::3] == [2, 6]
    assert set(ids.tolist()) <= {2, 3, 5, 6}


def test_all_zero_says_so_and_draws_nothing(backend):
    memory = memory_of(8, priority_epsilon=0.0, ends=[3])
    with pytest.raises(rlm.EmptyMemoryError, match="no experiences"):
        memory_of(0, 4).sample(1)
    memory.update_priorities(np.arange(7), np.zeros(7))
    state = memory._rng.bit_generator.state
    with pytest.raises(rlm.EmptyMemoryError, match=r"all priorities .* are 0"):
        memory.sample(3, sequence_length=2, padding="none")  # row 7 alone begins no full window
    assert memory._rng.bit_generator.state == state
    memory.update_priorities([7], [0.0])
    for options in ({}, {"source": 0}, {"n_step": 2}):
        with pytest.raises(rlm.EmptyMemoryError, match=r"all priorities .* are 0"):
            memory.sample(3, **options)
    assert memory._rng.bit_generator.state == state
    with pytest.raises(rlm.EmptyMemoryError, match="source 4"):
        memory.sample(3, source=4)


def test_no_draws_without_replacement_but_an_epoch_of_equal_weights(backend):
    memory = memory_of(6, priority_epsilon=0.0)
    memory.update_priorities(np.arange(6), np.arange(6.0))
    with pytest.raises(ValueError, match="epoch"):
        memory.sample(2, replace=False)
    batches = list(memory.epoch(4))
    assert sorted(np.concatenate([batch.id for batch in batches])) == list(range(6))
    assert all((batch.weight == 1).all() for batch in batches)


def assert_follows(ids, masses):
    """A million draws: each of the rows as often as its mass says.

    The threshold is exceeded by chance in one of a million runs. The seed is fixed, so the answer is the same each
    time; the threshold says that passing is no luck, and failing no bad luck.
    """
    masses = np.asarray(masses, float)
    counts = np.bincount(ids, minlength=masses.size)
    assert counts.size == masses.size
    assert counts[masses == 0].sum() == 0
    expected = ids.size * masses / masses.sum()
    real = masses > 0
    found = ((counts - expected)[real] ** 2 / expected[real]).sum()
    assert found <= chi2.isf(1e-6, np.count_nonzero(real) - 1)


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize(("capacity", "count"), [(3, 3), (10, 10), (10, 23), (16, 10)])
def test_a_million_draws_follow_the_priorities(compiled, capacity, count, stratified):
    memory = memory_of(count, capacity, stratified=stratified, seed=11)
    first = count - len(memory)
    priority = np.arange(1.0, len(memory) + 1)
    memory.update_priorities(np.arange(first, count), priority)
    ids = np.concatenate([memory.sample(10_000).id for _ in range(100)])
    assert_follows(ids - first, (priority + 1e-6) ** 0.6)


@pytest.mark.parametrize("stratified", [False, True])
def test_a_million_full_windows_follow_the_priorities_of_their_first_rows(compiled, stratified):
    # Episodes of 2, 3 and 7 rows, windows of 3: six starts out of twelve, by redrawing and then from the list.
    memory = memory_of(12, stratified=stratified, seed=12, ends=[1, 4, 11], priority_exponent=1.0)
    priority = np.array([9.0, 9.0, 1.0, 9.0, 9.0, 2.0, 1.0, 3.0, 0.5, 1.0, 9.0, 9.0])
    memory.update_priorities(np.arange(12), priority)
    options = {"sequence_length": 3, "padding": "none"}
    ids = np.concatenate([memory.sample(10_000, **options).id[:, 0] for _ in range(100)])
    legal = np.isin(np.arange(12), [2, 5, 6, 7, 8, 9])
    masses = np.where(legal, priority + 1e-6, 0.0)
    assert_follows(ids, masses)


@pytest.mark.parametrize("stratified", [False, True])
def test_a_million_draws_of_one_source_follow_its_priorities(compiled, stratified):
    memory = memory_of(9, source=np.arange(9) % 3, stratified=stratified, seed=13, priority_exponent=1.0)
    memory.update_priorities(np.arange(9), np.arange(1.0, 10.0))
    ids = np.concatenate([memory.sample(10_000, source=1).id for _ in range(100)])
    assert_follows(ids, np.where(np.arange(9) % 3 == 1, np.arange(1.0, 10.0) + 1e-6, 0.0)[: ids.max() + 1])


def test_the_priority_of_a_window_is_that_of_the_row_that_was_drawn(backend):
    memory = memory_of(10, priority_epsilon=0.0)
    memory.update_priorities(np.arange(10), np.eye(10)[4])  # only row 4 can be drawn
    for options, chosen in (
        ({"n_step": 3}, lambda id: id),
        ({"sequence_length": 3}, lambda id: id[:, 0]),
        ({"sequence_length": 3, "burn_in": 2}, lambda id: id[:, 2]),
        ({"sequence_length": 3, "burn_in": 2, "time_major": True}, lambda id: id[2]),
        ({"sequence_length": 3, "padding": "none"}, lambda id: id[:, 0]),
        ({"sequence_length": 3, "padding": "start"}, lambda id: id[:, -1]),
    ):
        batch = memory.sample(2, **options)
        assert chosen(batch.id).tolist() == [4, 4], options
        assert batch.weight.tolist() == [1.0, 1.0]
        assert memory.update_priorities(chosen(batch.id), np.ones(2)) == 0
    assert memory.sample(1, n_step=3).reward[0] == pytest.approx(4 + 0.99 * 5 + 0.99**2 * 6)


# ---- what stays ---------------------------------------------------------------------------------------------------


def test_resize_keeps_the_priorities_of_the_rows_that_stay(backend):
    memory = memory_of(11, 7)
    memory.update_priorities(np.arange(4, 11), np.arange(4.0, 11.0))
    one(memory)  # pending while the rows move
    for capacity, expected in (
        (9, [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 10.0]),
        (3, [9.0, 10.0, 10.0]),
        (20, [9.0, 10.0, 10.0]),
        (1, [10.0]),
    ):
        memory.resize(capacity)
        assert memory.priorities().tolist() == expected
        twin = memory_of(0, capacity)
        twin._next_id = memory.next_id - len(memory)
        twin._priorities._ranked = twin._next_id
        add(twin, len(memory), priority=expected)
        assert tree_bytes(twin) == tree_bytes(memory)


def test_clear_forgets_priorities(backend):
    memory = memory_of(4, 6)
    memory.update_priorities([3], [50.0])
    one(memory)  # never caught up
    memory.clear()
    assert memory.priorities().size == 0
    one(memory)
    assert memory.priorities().tolist() == [1.0]


@pytest.mark.parametrize("twin_of", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
@pytest.mark.parametrize("whole", [False, True])
def test_a_copy_gives_the_same_batches_from_then_on(backend, twin_of, whole):
    memory = memory_of(30, 20, annealing_steps=9, weight_normalization="memory" if whole else "batch", stratified=False)
    memory.update_priorities(np.arange(12, 25), np.arange(13.0))
    one(memory)
    twin = twin_of(memory)
    assert tree_bytes(twin) == tree_bytes(memory)
    for step in range(4):
        ours, theirs = memory.sample(8), twin.sample(8)
        assert same(ours, theirs)
        for each in (memory, twin):
            each.update_priorities(ours.id, ours.observation + step)
            one(each)
    assert twin.priorities().tolist() == memory.priorities().tolist()
    assert twin.current_importance_exponent == memory.current_importance_exponent


def test_options_can_be_read_and_some_be_set(backend):
    memory = memory_of(5, priority_epsilon=0.25, priority_exponent=1.0, weight_normalization="memory")
    memory.update_priorities(np.arange(5), [0.0, 1.0, 2.0, 3.0, 4.0])
    memory.priority_exponent = 2.0
    assert memory._priorities.tree.mass.tolist() == [(p + 0.25) ** 2 for p in range(5)]
    memory.importance_exponent, memory.annealing_steps = 0.5, 2
    seen = (memory.priority_exponent, memory.priority_epsilon, memory.importance_exponent, memory.annealing_steps)
    assert seen == (2.0, 0.25, 0.5, 2)
    assert (memory.stratified, memory.weight_normalization) == (True, "memory")
    assert memory.current_importance_exponent == 0.75
    for name in ("stratified", "weight_normalization", "priority_epsilon"):
        with pytest.raises(AttributeError):
            setattr(memory, name, getattr(memory, name))


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority_exponent": -0.1},
        {"priority_exponent": np.nan},
        {"importance_exponent": 1.1},
        {"annealing_steps": 0},
        {"priority_epsilon": -1e-9},
        {"priority_epsilon": np.inf},
        {"weight_normalization": "max"},
    ],
)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        memory_of(1, **wrong)


def test_same_seed_same_batches_in_any_thread_and_on_both_back_ends():
    def run(results, place):
        memory = memory_of(200, 100, seed=7)
        ids = []
        for step in range(20):
            np.random.seed(step)  # noqa: NPY002 - global seeds must not matter
            batch = memory.sample(16)
            memory.update_priorities(batch.id, np.abs(np.sin(batch.observation + step)))
            one(memory)
            ids.append((batch.id.tobytes(), batch.weight.tobytes()))
        results[place] = ids

    results = {}
    threads = [threading.Thread(target=run, args=(results, place)) for place in range(3)]
    with kernels.use("cpu"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with kernels.use("reference"):
        run(results, 3)
    assert results[0] == results[1] == results[2] == results[3]


def test_threads_see_whole_calls():
    memory = memory_of(500, 500, seed=1)
    errors = []

    def work(number):
        rng = np.random.default_rng(number)
        try:
            for _ in range(150):
                batch = memory.sample(32)
                assert ((batch.weight > 0) & (batch.weight <= 1)).all()
                memory.update_priorities(batch.id, rng.random(32))
                one(memory)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    tree = memory._priorities.tree
    priority = memory.priorities()
    assert tree.largest == priority.max()
    assert tree.total == pytest.approx(((priority + 1e-6) ** 0.6).sum(), rel=1e-12)
    assert memory.current_importance_exponent == pytest.approx(0.4 + 0.6 * 600 / 1e6)


def test_a_memory_in_a_file_and_one_from_an_environment_draw_by_priority(tmp_path):
    gymnasium = pytest.importorskip("gymnasium")
    memory = rlm.PrioritizedReplayMemory(SCALAR, SCALAR, 4, path=tmp_path / "arena", seed=0, priority_epsilon=0.0)
    add(memory, 6)
    memory.update_priorities([2, 3, 4, 5], [0.0, 0.0, 1.0, 0.0])
    memory.resize(3)
    assert memory.sample(2).id.tolist() == [4, 4]
    env = gymnasium.make("CartPole-v1")
    made = rlm.PrioritizedReplayMemory.from_env(env, 10, priority_exponent=0.7)
    env.close()
    assert (type(made), made.priority_exponent) == (rlm.PrioritizedReplayMemory, 0.7)
