"""Any experiences, in any mode, equal a naive reading with lists."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import matlab_compat as mc

DTYPES = {"double": "float64", "single": "float32", "uint8": "uint8", "int64": "int64", "logical": "bool"}
DIMENSIONS = st.lists(st.integers(1, 3), min_size=2, max_size=4)
CHANNELS = st.lists(st.tuples(DIMENSIONS, st.sampled_from(sorted(DTYPES))), min_size=1, max_size=3)
FIELDS = ("Observation", "Action", "NextObservation")
MAX_LENGTH = 4


@st.composite
def memories_with_input(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]], list[int]]:
    """Channels of each field, experiences in their full Dimensions, and the sizes of the pieces to append them in."""
    observation, action = draw(CHANNELS), draw(CHANNELS)
    channels = {"Observation": observation, "Action": action, "NextObservation": observation}
    rows = []
    for _ in range(draw(st.integers(0, 7))):
        row: dict[str, Any] = {
            field: [draw(hnp.arrays(DTYPES[kind], tuple(dimension))) for dimension, kind in channels[field]]
            for field in FIELDS
        }
        row["Reward"] = draw(st.floats(-10, 10))
        row["IsDone"] = draw(st.integers(0, 2))
        rows.append(row)
    return channels, rows, draw(st.lists(st.integers(1, 4), max_size=7))


def buffer_for(channels: dict[str, Any]) -> mc.rlReplayMemory:
    return mc.rlReplayMemory(
        [mc.rlNumericSpec(dimension, DataType=kind) for dimension, kind in channels["Observation"]],
        [mc.rlNumericSpec(dimension, DataType=kind) for dimension, kind in channels["Action"]],
        MAX_LENGTH,
        Seed=0,
    )


def struct_array(rows: list[dict[str, Any]]) -> mc.struct:
    e = mc.struct()
    for i, row in enumerate(rows):
        e[i] = row
    return e


def append_in_pieces(buffer: mc.rlReplayMemory, rows: list[dict[str, Any]], pieces: list[int]) -> None:
    for size in [*pieces, len(rows)]:
        piece, rows = rows[:size], rows[size:]
        if piece:
            mc.append(buffer, struct_array(piece))


def equal(ours: Any, naive: Any) -> None:
    np.testing.assert_array_equal(ours, naive, strict=True)


@given(memories_with_input())
def test_any_experiences_come_back_in_every_mode(given_: Any) -> None:
    channels, rows, pieces = given_
    buffer = buffer_for(channels)
    append_in_pieces(buffer, rows, pieces)
    kept = rows[-MAX_LENGTH:] if rows else []

    single = mc.allExperiences(buffer)
    assert mc.numel(single) == len(kept)
    for element, row in zip(single, kept, strict=True):
        for field in FIELDS:
            for ours, naive in zip(getattr(element, field), row[field], strict=True):
                equal(ours, naive)
        assert (element.Reward, element.IsDone) == (row["Reward"], row["IsDone"])

    batch = mc.allExperiences(buffer, ConcatenateMode="batch")
    sequence = mc.allExperiences(buffer, ConcatenateMode="sequence")
    for field in FIELDS:
        for k, (dimension, kind) in enumerate(channels[field]):
            naive = np.zeros((*dimension, len(kept)), DTYPES[kind])
            for i, row in enumerate(kept):
                naive[..., i] = row[field][k]
            equal(getattr(batch, field)[k], naive)
            equal(getattr(sequence, field)[k], naive[..., None, :])
    for field in ("Reward", "IsDone"):
        naive = np.array([[float(row[field]) for row in kept]])
        equal(getattr(batch, field), naive.reshape(1, len(kept)))
        equal(getattr(sequence, field), naive.reshape(1, 1, len(kept)))


@given(memories_with_input())
def test_facade_and_core_agree_in_every_mode(given_: Any) -> None:
    channels, rows, pieces = given_
    buffer, twin = buffer_for(channels), buffer_for(channels)
    for b in (buffer, twin):
        append_in_pieces(b, rows, pieces)
    pairs = [(mc.allExperiences(buffer, mode=mode), twin.memory.all()) for mode in ("batch", "sequence")]
    if rows:
        pairs.append((mc.sample(buffer, 5), twin.memory.sample(5)))
    for ours, core in pairs:
        for field, name in zip(FIELDS, ("observation", "action", "next_observation"), strict=True):
            arrays = getattr(core, name)
            leaves = arrays if isinstance(arrays, tuple) else (arrays,)
            for (dimension, _), mine, array in zip(channels[field], getattr(ours, field), leaves, strict=True):
                full = np.moveaxis(array.reshape(len(array), *dimension), 0, -1)
                equal(mine, full if mine.ndim == len(dimension) + 1 else full[..., None, :])
        equal(ours.Reward.ravel(), core.reward)
        equal(ours.IsDone.ravel(), core.terminated + 2.0 * core.truncated)
    for i, element in enumerate(mc.allExperiences(buffer)):
        core = twin.memory.get(np.array([len(rows) - min(len(rows), MAX_LENGTH) + i]))
        assert element.Reward == core.reward[0]
        assert element.IsDone == core.terminated[0] + 2 * core.truncated[0]


@given(memories_with_input(), st.integers(0, 7), st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_merge_equals_appending_by_hand(given_: Any, split: int, sources: list[int]) -> None:
    channels, rows, _ = given_
    a, b, by_hand = (buffer_for(channels) for _ in range(3))
    for i, row in enumerate(rows):
        mc.append(a if i < split else b, row, sources[i])
    for i, row in [*enumerate(rows)][:split] + [*enumerate(rows)][split:][-MAX_LENGTH:]:
        mc.append(by_hand, row, sources[i])
    mc.merge(a, b)
    for x, y in zip(flat(a), flat(by_hand), strict=True):
        equal(x, y)


def flat(buffer: mc.rlReplayMemory) -> list[np.ndarray]:
    x = buffer.memory.all()
    parts = [p if isinstance(p, tuple) else (p,) for p in (x.observation, x.action, x.next_observation)]
    return [*parts[0], *parts[1], *parts[2], x.reward, x.terminated, x.truncated, x.source]


@given(memories_with_input())
def test_unbatch_inverts_both_modes(given_: Any) -> None:
    channels, rows, pieces = given_
    buffer = buffer_for(channels)
    append_in_pieces(buffer, rows, pieces)
    for mode in ("batch", "sequence"):
        other = buffer_for(channels)
        mc.append(other, mc.unbatch(mc.allExperiences(buffer, ConcatenateMode=mode)))
        for x, y in zip(flat(other), flat(buffer), strict=True):
            equal(x, y)


@given(memories_with_input(), st.integers(0, 7))
def test_one_by_one_and_whole_arrays_store_the_same(given_: Any, split: int) -> None:
    channels, rows, _ = given_
    a, b = buffer_for(channels), buffer_for(channels)
    for row in rows:
        a.append(row)
    append_in_pieces(b, rows, [split] if split else [])
    for x, y in zip(flat(a), flat(b), strict=True):
        equal(x, y)
