"""What is stored and what is refused; and that a refusal leaves the memory as it was, to the byte."""

from __future__ import annotations

import re
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import rlmemory as rlm
from rlmemory.accept import accept, accept_source

from .support import DTYPES, LAYOUTS, PLAIN, Spec, counted, pick, random_array, same, unchanged

NO = rlm.ValueNotRepresentableError
KIND = rlm.DataTypeError
SHAPE = rlm.ShapeError
STRUCTURE = rlm.StructureError
BIG = 2**53 + 1


# ---- values that do not fit -----------------------------------------------------------------------------------------

REFUSED = [
    ("uint8", 300, NO),
    ("uint8", -1, NO),
    ("uint8", np.int64(256), NO),
    ("int64", 0.5, NO),
    ("int64", np.float32(-2.5), NO),
    ("float64", BIG, NO),
    ("float32", 2**24 + 1, NO),
    ("float16", 70_000, NO),
    ("complex64", 2**24 + 1, NO),
    ("complex128", BIG, NO),
    ("float64", np.uint64(2**64 - 1), NO),
    ("float64", np.int64(2**63 - 1), NO),
    ("uint64", -1, NO),
    ("uint64", -1.0, NO),
    ("int64", np.uint64(2**63), NO),
    ("int64", float(2**63), NO),
    ("uint64", float(2**64), NO),
    ("int8", 128, NO),
    ("int32", np.nan, NO),
    ("int64", np.inf, NO),
    ("int64", np.float32(-np.inf), NO),
    ("int64", np.float16(-np.inf), NO),
    ("int32", np.float16(np.inf), NO),
    ("uint8", np.nan, NO),
    ("bool", 2, NO),
    ("bool", 0.5, NO),
    ("bool", np.nan, NO),
    ("float32", 1e39, NO),
    ("float32", np.float64(-1e39), NO),
    ("float16", 1e6, NO),
    ("complex64", 1e39, NO),
    ("complex64", 1e39j, NO),
    ("float64", 1j, KIND),
    ("float64", 1 + 0j, KIND),
    ("int64", np.complex64(1), KIND),
    ("bool", 1j, KIND),
    ("float64", "1.0", KIND),
    ("float64", b"1.0", KIND),
    ("float64", None, KIND),
    ("float64", object(), KIND),
    ("int64", 2**70, KIND),
    ("int64", np.datetime64("2020-01-01"), KIND),
    ("float64", np.timedelta64(1, "s"), KIND),
    ("float64", np.ma.masked_array(1.0, mask=True), KIND),
    ("float64", np.zeros((), [("a", float)]), KIND),
]

STORED = [
    ("uint8", 255, 255),
    ("uint8", 3.0, 3),
    ("uint8", True, 1),
    ("int64", BIG, BIG),
    ("int64", -(2.0**63), -(2**63)),
    ("uint64", 2**64 - 1, 2**64 - 1),
    ("int8", np.uint64(127), 127),
    ("bool", 1, True),
    ("bool", 0.0, False),
    ("float64", True, 1.0),
    ("float64", 2**53, 2.0**53),
    ("float64", np.int64(-(2**63)), -(2.0**63)),
    ("float32", 0.1, np.float32(0.1)),
    ("float32", np.float64(1e-60), np.float32(0)),
    ("float32", np.inf, np.inf),
    ("float16", np.float32(np.nan), np.nan),
    ("float16", 2048, 2048.0),
    ("float64", np.float16(-np.inf), -np.inf),
    ("complex64", 3, 3.0),
    ("complex64", 0.1, np.complex64(0.1)),
    ("complex64", np.inf, np.inf),
    ("complex128", np.complex64(1 + 2j), 1 + 2j),
]


def case(value: Any) -> str:
    return f"{type(value).__name__} {value}".replace("\n", "")[:40]


def memory_of(dtype: str) -> rlm.ReplayMemory:
    """One experience is in it, and every channel has the dtype."""
    memory = rlm.ReplayMemory(
        (Spec((2,), dtype), Spec((), dtype)), Spec((), dtype), 3, reward=dtype, extra={"own": Spec((), dtype)}, seed=0
    )
    one = np.ones((), dtype)
    two = (np.ones(2, dtype), one)
    memory.append(two, one, reward=one, next_observation=two, terminated=False, extra={"own": one})
    return memory


def places(one: Any, value: Any) -> list[dict[str, Any]]:
    """Arguments of `append` with `value` in one channel after another."""
    fine = {
        "observation": (np.array([one, one]), one),
        "action": one,
        "reward": one,
        "next_observation": (np.array([one, one]), one),
        "extra": {"own": one},
        "terminated": False,
    }
    return [
        {**fine, "observation": (array_with(value, one), one)},
        {**fine, "observation": (fine["observation"][0], value)},
        {**fine, "action": value},
        {**fine, "reward": value},
        {**fine, "next_observation": (fine["observation"][0], value)},
        {**fine, "extra": {"own": value}},
    ]


def array_with(value: Any, one: Any) -> Any:
    """Two entries with `value` as the second, in the dtype of `value`: NumPy itself would round [1.0, 2**53 + 1]."""
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.masked_array([1.0, 1.0], mask=[False, True])
    if isinstance(value, np.ndarray):
        return np.stack([value, value])
    if isinstance(value, np.generic):
        return np.array([value, value])
    return [value if type(value) is int else one.item(), value]


@pytest.mark.parametrize(("dtype", "value", "error"), REFUSED, ids=case)
def test_a_value_that_would_change_is_refused_everywhere_and_nothing_is_stored(dtype, value, error):
    memory, one = memory_of(dtype), np.ones((), dtype)
    for arguments in places(one, value):
        with unchanged(memory), pytest.raises(error):
            memory.append(**arguments)
    pair = {
        "observation": (np.ones((2, 2), dtype), np.ones(2, dtype)),
        "action": np.ones(2, dtype),
        "next_observation": (np.ones((2, 2), dtype), np.ones(2, dtype)),
        "extra": {"own": np.ones(2, dtype)},
        "terminated": False,
    }
    with unchanged(memory), pytest.raises(error):
        memory.extend(**pair, reward=array_with(value, one))
    with unchanged(memory), pytest.raises(error):
        memory.set([0, 0], action=np.ones(2, dtype), extra={"own": array_with(value, one)})


@pytest.mark.parametrize(("dtype", "value", "wanted"), STORED, ids=case)
def test_a_value_that_keeps_its_meaning_is_stored(dtype, value, wanted):
    memory = memory_of(dtype)
    for arguments in places(np.ones((), dtype), value):
        memory.append(**arguments)
    memory.extend_from(memory.get([memory.next_id - 1]))
    assert same(memory.get([memory.next_id - 1]).extra["own"], np.array([wanted], dtype))


@given(source=st.sampled_from(DTYPES), target=st.sampled_from(DTYPES), seed=st.integers(0, 999), small=st.booleans())
def test_what_is_accepted_casts_back_to_what_was_given(source, target, seed, small):
    given_array = random_array(np.random.default_rng(seed), (3,), source)
    if small and given_array.dtype.kind != "b":
        given_array = np.arange(3).astype(source)
    with np.errstate(all="ignore"):
        try:
            stored = accept("x", given_array, Spec((3,), target))
        except rlm.ReplayMemoryError:
            assert not small or target == "bool" or np.dtype(source).kind == "c"
            return
        assert stored.dtype == target
        rounding = np.dtype(target).kind in "fc" and np.dtype(source).kind in "fc"
        if rounding:
            assert np.isfinite(stored).tolist() == np.isfinite(given_array).tolist()
            assert np.allclose(stored, given_array, rtol=1e-6, atol=1e-37, equal_nan=True)
        else:
            assert [complex(x) for x in stored] == [complex(x) for x in given_array]
            back = stored.real if np.dtype(target).kind == "c" else stored
            assert [int(x) for x in back] == [int(x) for x in given_array] or np.dtype(source).kind in "fc"


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("target", ["int", "uint"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int64", "uint64", "int8"])
def test_the_ends_of_every_integer_range_are_where_they_are(bits, target, source):
    info = np.iinfo(f"{target}{bits}")
    spec = Spec((), info.dtype)
    near = [info.min - 1, info.min, info.min + 1, 0, info.max - 1, info.max, info.max + 1, 2 * info.max]
    for number in near:
        with np.errstate(over="ignore"):
            try:
                value = np.array(number, source) if source[0] != "f" else np.array(float(number)).astype(source)
            except OverflowError:
                continue
        inside = bool(np.isfinite(value)) and info.min <= int(value) <= info.max
        if inside:
            assert int(accept("x", value, spec)) == int(value)
        else:
            with pytest.raises(NO):
                accept("x", value, spec)


@pytest.mark.parametrize(
    "mixed", [[1.0, BIG], [BIG, 0.5], (1, 2**63 + 1), [0.5, np.int64(BIG)], [1j, BIG], [np.array(0.5), np.array(BIG)]]
)
@pytest.mark.parametrize("dtype", ["float64", "uint64", "complex128"])
def test_whole_numbers_are_not_rounded_by_the_reading_of_a_list(mixed, dtype):
    with pytest.raises((NO, KIND), match="x: "):
        accept("x", mixed, Spec((2,), dtype))
    assert accept("x", [0.5, 2**60], Spec((2,), "float64")).tolist() == [0.5, 2.0**60]
    assert accept("x", [[1e300, 1], [np.nan, 3]], Spec((2, 2))).shape == (2, 2)


# ---- CASES A13 ------------------------------------------------------------------------------------------------------


def test_float64_values_come_back_bit_for_bit():
    memory = rlm.ReplayMemory(Spec((2,)), Spec((), "int64"), 4)
    values = np.array([16777217.0, 1700000000.123])
    memory.append(values, BIG, reward=-92.0, next_observation=values, terminated=False)
    stored = memory.all()
    assert stored.observation.tolist() == [[16777217.0, 1700000000.123]]
    assert (stored.action.tolist(), stored.reward.tolist()) == ([BIG], [-92.0])


def test_pixels_out_of_range_are_an_error_and_never_wrap():
    memory = rlm.ReplayMemory(Spec((3,), "uint8"), Spec(()), 4)
    fine = np.zeros(3, np.uint8)
    for bad in ([-1, 256, 300], np.array([-1, 256, 300]), np.array([-1.0, 256.0, 300.0])):
        with unchanged(memory), pytest.raises(NO, match=r"observation: .*-1.* at position \[0\].*uint8"):
            memory.append(bad, 0.0, reward=0.0, next_observation=fine, terminated=False)


# ---- messages -------------------------------------------------------------------------------------------------------


def test_an_error_names_the_field_the_value_its_dtype_and_where_it_is():
    layout = LAYOUTS["dict"]
    memory = layout.memory(3)
    rows = layout.rows(np.random.default_rng(0), 2)
    rows["next_observation"]["image"] = np.zeros((2, 2, 3), np.int32)
    rows["next_observation"]["image"][1, 0, 2] = 300
    with pytest.raises(NO) as caught:
        memory.extend(**rows, terminated=False)
    for part in ("next_observation['image']", "300", "[1, 0, 2]", "int32", "uint8"):
        assert part in str(caught.value)


def test_errors_are_also_the_builtin_errors_of_the_same_mistake():
    for ours, builtin in (
        (rlm.ShapeError, ValueError), (rlm.ValueNotRepresentableError, ValueError), (rlm.DataTypeError, TypeError),
        (rlm.StructureError, TypeError), (rlm.StaleIdError, IndexError), (rlm.EmptyMemoryError, ValueError),
        (rlm.SpecError, ValueError), (rlm.ArenaError, OSError), (rlm.NotPickleableError, TypeError),
        (rlm.NotAvailableError, NotImplementedError),
    ):  # fmt: skip
        assert issubclass(ours, builtin)
        assert issubclass(ours, rlm.ReplayMemoryError)


# ---- shapes and structures ------------------------------------------------------------------------------------------


def plain_row(**changes: Any) -> dict[str, Any]:
    row = {"observation": np.zeros(2), "action": 1, "reward": 1.0, "next_observation": np.zeros(2), "terminated": False}
    return {**row, **changes}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"observation": np.zeros(3)}, SHAPE, "observation: expected shape (2,), got (3,)"),
        ({"observation": 0.0}, SHAPE, "observation: expected shape (2,), got ()"),
        ({"observation": np.zeros((1, 2))}, SHAPE, "batch of one: use extend()"),
        ({"observation": np.zeros((5, 2))}, SHAPE, "for 5 experiences at once use extend()"),
        ({"next_observation": np.zeros((2, 1))}, SHAPE, "next_observation: expected shape (2,), got (2, 1)"),
        ({"action": [1]}, SHAPE, "action: expected shape (), got (1,)"),
        ({"reward": np.zeros(1)}, SHAPE, "reward: expected shape (), got (1,)"),
        ({"observation": [[1.0], [1.0, 2.0]]}, SHAPE, "observation: cannot be read as one array"),
        ({"observation": {"a": np.zeros(2)}}, STRUCTURE, "observation: expected one array, got a mapping"),
        ({"next_observation": {"a": np.zeros(2)}}, (STRUCTURE, KIND), "next_observation: expected"),
        ({"extra": {"own": 1.0}}, STRUCTURE, "extra: expected a dict with keys [], got keys ['own']"),
        ({"extra": 3}, STRUCTURE, "extra: expected a dict"),
        ({"terminated": 2}, NO, "terminated: expected bools"),
        ({"terminated": np.nan}, NO, "terminated: expected bools"),
        ({"terminated": "yes"}, KIND, "terminated: expected numbers"),
        ({"terminated": None}, KIND, "terminated: expected numbers"),
        ({"terminated": [True]}, SHAPE, "terminated: expected shape (), got (1,)"),
        ({"truncated": 2}, NO, "truncated: expected bools"),
        ({"truncated": [False]}, SHAPE, "truncated: expected shape (), got (1,)"),
        ({"source": -1}, NO, "source: -1 is negative"),
        ({"source": 0.5}, NO, "source: "),
        ({"source": 2**31}, NO, "source: "),
        ({"source": True}, KIND, "source: expected the number"),
        ({"source": "a"}, KIND, "source: expected numbers"),
        ({"source": [0]}, SHAPE, "source: expected a whole number"),
    ],
    ids=str,
)
def test_append_refuses_what_is_not_like_its_specs(changes, error, message):
    memory = PLAIN.memory(3, seed=0)
    counted(memory, 4)
    with unchanged(memory), pytest.raises(error, match=re.escape(message)):
        memory.append(**plain_row(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action": np.zeros(3, int)}, "action: expected shape (4,), got (3,)"),
        ({"reward": np.zeros(5)}, "reward: expected shape (4,), got (5,)"),
        ({"reward": 1.0}, "reward: expected shape (4,), got ()"),
        ({"next_observation": np.zeros((3, 2))}, "next_observation: expected shape (4, 2), got (3, 2)"),
        ({"next_observation": np.zeros((1, 2))}, "every field needs the same number of rows"),
        ({"observation": np.zeros(2)}, "append() stores a single experience"),
        ({"observation": np.zeros((4, 3))}, "observation: expected shape (N, 2"),
        ({"terminated": [True]}, "terminated: expected shape (4,), got (1,)"),
        ({"terminated": True}, "terminated: expected shape (4,), got ()"),
        ({"truncated": np.zeros(5, bool)}, "truncated: expected shape (4,), got (5,)"),
        ({"source": [0, 1]}, "source: expected a whole number or an array of shape (4,), got shape (2,)"),
    ],
    ids=str,
)
def test_extend_refuses_fields_of_unequal_lengths(changes, message):
    memory = PLAIN.memory(3, seed=0)
    counted(memory, 4)
    rows = {
        "observation": np.ones((4, 2)), "action": np.ones(4, int), "reward": np.ones(4),
        "next_observation": np.ones((4, 2)), "terminated": np.zeros(4, bool),
    }  # fmt: skip
    with unchanged(memory), pytest.raises(SHAPE, match=re.escape(message)):
        memory.extend(**{**rows, **changes})


@pytest.mark.parametrize("layout", ["tuple", "dict"])
def test_channels_arranged_otherwise_are_refused(layout):
    layout = LAYOUTS[layout]
    memory = layout.memory(3, seed=0)
    rows = layout.rows(np.random.default_rng(0), 1)
    memory.extend(**rows, terminated=False)
    row = pick(rows, 0)
    for field in ("observation", "action", "next_observation"):
        parts = list(row[field].values()) if isinstance(row[field], dict) else list(row[field])
        bad = [parts[0], tuple(parts[:1]), (*parts, parts[0]), dict(enumerate(parts)), None]
        if isinstance(row[field], dict):
            bad += [tuple(parts), {**row[field], "more": 1}, dict(list(row[field].items())[:1])]
        for value in bad:
            with unchanged(memory), pytest.raises(STRUCTURE, match=f"{field}: expected"):
                memory.append(**{**row, field: value}, terminated=False)


def test_the_users_own_fields_must_all_be_there():
    memory = LAYOUTS["dict"].memory(3, seed=0)
    row = pick(LAYOUTS["dict"].rows(np.random.default_rng(0), 1), 0)
    wrong = [None, {}, {"log_prob": 0.0}, {**row["extra"], "more": 0}, [1, 2], 5]
    for extra in wrong:
        with unchanged(memory), pytest.raises(STRUCTURE, match="extra: expected a dict with keys"):
            memory.append(**{**row, "extra": extra}, terminated=False)


def test_append_is_all_or_nothing_when_the_last_field_is_wrong(backend):
    layout = LAYOUTS["dict"]
    memory = layout.memory(3, seed=0)
    rows = layout.rows(np.random.default_rng(0), 5)
    memory.extend(**rows, terminated=False)
    rows["extra"]["state"] = np.zeros((5, 2, 3), "U1")
    with unchanged(memory), pytest.raises(KIND):
        memory.extend(**rows, terminated=False)
    with unchanged(memory), pytest.raises(KIND):
        memory.append(**pick(rows, 1), terminated=False)
    with unchanged(memory), pytest.raises(KIND):
        memory.set([2, 3, 4, 2, 3], **rows)


def test_extend_from_takes_experiences_only():
    memory = PLAIN.memory(5, seed=0)
    counted(memory, 4)
    batch = memory.sample(2)
    with unchanged(memory), pytest.raises(STRUCTURE, match="got Batch; take its ids"):
        memory.extend_from(batch)
    for wrong in (None, tuple(memory.all()), memory):
        with unchanged(memory), pytest.raises(STRUCTURE, match="expected an Experience"):
            memory.extend_from(wrong)
    other = rlm.ReplayMemory(Spec((3,)), Spec((), "int64"), 4)
    with unchanged(other), pytest.raises(SHAPE):
        other.extend_from(memory.all())
    with unchanged(memory), pytest.raises(SHAPE, match="append"):
        memory.extend_from(memory.get(2))


# ---- ids ------------------------------------------------------------------------------------------------------------

IDS = [
    (0, rlm.StaleIdError, "0 was overwritten; the live ids are 2 to 4"),
    ([2, 1], rlm.StaleIdError, "1 was overwritten"),
    ([2, 5], rlm.StaleIdError, "5 was never stored"),
    ([[2, 3], [4, -1]], rlm.StaleIdError, "-1 stands for padding"),
    (-2, rlm.StaleIdError, "-2 was never stored"),
    (2**62, rlm.StaleIdError, "was never stored"),
    (True, rlm.StaleIdError, "got bools"),
    ([True, False], rlm.StaleIdError, "got bools"),
    (2.5, NO, "ids: "),
    (np.nan, NO, "ids: "),
    (np.uint64(2**63), NO, "ids: "),
    ("2", KIND, "ids: "),
    (None, KIND, "ids: "),
    (3 + 0j, KIND, "ids: "),
]


@pytest.mark.parametrize(("ids", "error", "message"), IDS, ids=str)
def test_get_and_set_refuse_ids_that_are_not_live(backend, ids, error, message):
    memory = PLAIN.memory(3, seed=0)
    counted(memory, 5)
    with unchanged(memory), pytest.raises(error, match=message):
        memory.get(ids)
    with unchanged(memory), pytest.raises(error, match=message):
        memory.set(ids, reward=np.zeros(np.shape(ids)))


def test_ids_of_a_resized_memory_are_stale_where_rows_went():
    memory = PLAIN.memory(5)
    counted(memory, 5)
    memory.resize(2)
    assert memory.get([3, 4]).action.tolist() == [3, 4]
    with pytest.raises(rlm.StaleIdError):
        memory.get(2)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"rewards": [0.0, 0.0]}, TypeError),
        ({"id": [0, 1]}, TypeError),
        ({"is_done": [0, 1]}, TypeError),
        ({"reward": 0.0}, SHAPE),
        ({"reward": [0.0]}, SHAPE),
        ({"reward": [0.0, 1j]}, KIND),
        ({"action": [0, 0.5], "reward": [5.0, 6.0]}, NO),
        ({"reward": [5.0, 6.0], "observation": np.zeros(2)}, SHAPE),
        ({"reward": [5.0, 6.0], "terminated": True}, SHAPE),
        ({"reward": [5.0, 6.0], "source": [0, -1]}, NO),
        ({"reward": [5.0, 6.0], "extra": {"no": [1, 2]}}, STRUCTURE),
        ({"reward": [5.0, 6.0], "extra": None}, STRUCTURE),
    ],
    ids=str,
)
def test_set_changes_all_or_nothing(backend, fields, error):
    memory = PLAIN.memory(3, seed=0)
    counted(memory, 5)
    with unchanged(memory), pytest.raises(error):
        memory.set([2, 4], **fields)


# ---- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [0, -1, 1.0, 2.5, True, "10", None, np.float64(3)], ids=repr)
def test_a_capacity_is_a_whole_number_from_one_up(capacity):
    with pytest.raises(ValueError, match="capacity: expected a whole number from 1 up"):
        PLAIN.memory(capacity)
    memory = PLAIN.memory(3)
    counted(memory, 2)
    with unchanged(memory), pytest.raises(ValueError, match="capacity"):
        memory.resize(capacity)


@pytest.mark.parametrize("number", [np.int32(4), np.uint8(4)])
def test_numpys_whole_numbers_are_whole_numbers(number):
    memory = PLAIN.memory(number, seed=0)
    counted(memory, 6)
    memory.resize(number)
    assert memory.sample(number).mask.size == next(memory.chunks(number)).id.size == memory.capacity == 4


@pytest.mark.parametrize("seed", [-1, 1.5, "seed", object()], ids=repr)
def test_a_bad_seed_is_an_error_that_says_what_a_seed_is(seed):
    with pytest.raises((TypeError, ValueError), match="seed: expected an int from 0 up"):
        PLAIN.memory(3, seed=seed)


@pytest.mark.parametrize("size", [0, -1, 2.0, True, None, "3"], ids=repr)
def test_a_batch_size_is_a_whole_number_from_one_up(size):
    memory = PLAIN.memory(3, seed=0)
    counted(memory, 2)
    for call, name in ((memory.sample, "batch_size"), (memory.epoch, "batch_size"), (memory.chunks, "rows")):
        with unchanged(memory), pytest.raises(ValueError, match=f"{name}: expected a whole number from 1 up"):
            call(size)


@pytest.mark.parametrize("discount", [-0.1, 1.1, np.nan, np.inf], ids=repr)
def test_a_discount_lies_between_zero_and_one(discount):
    memory = PLAIN.memory(3, seed=0)
    counted(memory, 2)
    with unchanged(memory), pytest.raises(ValueError, match="discount: expected a number from 0 to 1"):
        memory.sample(1, discount=discount)


@pytest.mark.parametrize("source", [-1, 0.5, "a", True, [0], [0, 1], 2**40], ids=repr)
def test_a_source_to_draw_from_or_to_cut_is_one_whole_number(source):
    memory = PLAIN.memory(3, seed=0)
    counted(memory, 2)
    for call in (lambda: memory.sample(1, source=source), lambda: memory.end_episode(source)):
        with unchanged(memory), pytest.raises(rlm.ReplayMemoryError, match="source"):
            call()


def test_drawing_from_nothing_is_an_error_and_draws_no_uniform():
    memory = PLAIN.memory(5, seed=0)
    with unchanged(memory), pytest.raises(rlm.EmptyMemoryError):
        memory.sample(1)
    counted(memory, 3, source=[0, 0, 1])
    for options in ({"source": 2}, {"replace": False, "source": 1}):
        with unchanged(memory), pytest.raises(rlm.EmptyMemoryError, match="of source"):
            memory.sample(2, **options)
    with unchanged(memory), pytest.raises(rlm.EmptyMemoryError, match=r"4 different .* 3"):
        memory.sample(4, replace=False)


def test_an_option_that_does_not_exist_is_an_error():
    memory = PLAIN.memory(3)
    with pytest.raises(TypeError, match="unexpected keyword"):
        memory.sample(1, sequencelength=3)
    with pytest.raises(TypeError, match="unexpected keyword"):
        memory.append(**plain_row(done=False))
    with pytest.raises(TypeError, match="unexpected keyword"):
        PLAIN.memory(3, prioritized=True)
    with pytest.raises(rlm.NotAvailableError, match="device='cuda'"):
        PLAIN.memory(3, device="cuda")
    with pytest.raises(rlm.SpecError, match="extra: expected a dict"):
        rlm.ReplayMemory(Spec(()), Spec(()), 3, extra=[Spec(())])


def test_a_memory_too_large_for_any_machine_says_how_large_it_would_be():
    with pytest.raises(MemoryError, match="more than a machine can address"):
        rlm.ReplayMemory(Spec((2**40,)), Spec(()), 2**40)


def test_sources_are_stored_as_given():
    assert accept_source(2**31 - 1).dtype == np.int32
    assert accept_source(np.array([1.0, 2.0]), (2,)).tolist() == [1, 2]
    assert accept_source([], (0,)).size == 0
