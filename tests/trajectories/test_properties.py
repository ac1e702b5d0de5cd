"""Random nested data split, padded, and put together again, against a naive loop."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import rlmemory as rlm
from rlmemory import kernels

from .support import batches, flat_paths, naive_padded, naive_pieces, nested, random_array, same

SEEDS = st.integers(0, 2**32 - 1)
BACKENDS = st.sampled_from(["reference", "cpu"])
ID_DTYPES = st.sampled_from(["i8", "u8", "i4", "u1", ">i2", "f4", "f8", "?", "U3", "S4", "c8"])

pytestmark = pytest.mark.filterwarnings("ignore:padding of:UserWarning")


def ids_for(rng: np.random.Generator, batch: tuple[int, ...], dtype: str) -> np.ndarray:
    few = {"U3": ["x", "yy", "zzz"], "S4": [b"x", b"yy"], "f4": [0.5, -0.0, 0.0], "u8": [0, 2**64 - 1]}
    return rng.choice(np.array(few.get(dtype, [0, 1]), dtype), batch)


@given(data=st.data(), batch=batches(), seed=SEEDS, by_id=st.booleans(), backend=BACKENDS)
def test_split_is_the_naive_loop_and_unsplit_its_inverse(data, batch, seed, by_id, backend):
    rng = np.random.default_rng(seed)
    content = data.draw(nested(batch, seed=seed))
    limit = data.draw(st.none() | st.integers(1, 4))
    if by_id:
        content["traj_ids"] = keys = ids_for(rng, batch, data.draw(ID_DTYPES))
        pieces = naive_pieces(batch, lambda i: keys.reshape(-1)[i] != keys.reshape(-1)[i - 1], limit)
    else:
        ends = rng.random(batch) < 0.3
        content["next"] = {"done": ends[..., None] if data.draw(st.booleans()) or batch[-1] == 1 else ends}
        pieces = naive_pieces(batch, lambda i: ends.reshape(-1)[i - 1], limit)
    before = {path: leaf.copy() for path, leaf in flat_paths(content).items()}
    with kernels.use(backend):
        split = rlm.split_trajectories(content, max_length=limit, start_key=("own", "first"))
        back = rlm.unsplit_trajectories(split, batch_shape=batch)
        flat, offsets = rlm.ragged_trajectories(content, max_length=limit)
    assert np.diff(offsets).tolist() == rlm.trajectory_lengths(split["mask"]).tolist() == [len(p) for p in pieces]
    for path, leaf in before.items():
        one_axis = leaf.reshape((offsets[-1], *leaf.shape[len(batch) :]))
        for found, wanted in ((split, naive_padded(leaf, batch, pieces)), (back, leaf), (flat, one_axis)):
            array = flat_paths(found)[path]
            assert same(array, wanted), path
            assert array.flags.c_contiguous
            assert not np.shares_memory(array, flat_paths(content)[path])
        assert same(flat_paths(content)[path], leaf)


@given(data=st.data(), batch=batches(), seed=SEEDS, backend=BACKENDS)
def test_no_trajectory_crosses_an_end_and_made_ids_count_them(data, batch, seed, backend):
    ends = np.random.default_rng(seed).random(batch) < 0.3
    limit = data.draw(st.none() | st.integers(1, 4))
    content = {"next": {"done": ends[..., None]}, "row": np.arange(ends.size).reshape(batch) // max(batch[-1], 1)}
    with kernels.use(backend):
        split = rlm.split_trajectories(content, max_length=limit, start_key="first", padding_value={"row": -1})
    mask, done, ids = split["mask"], split["next"]["done"][..., 0], split["traj_ids"]
    for k, length in enumerate(rlm.trajectory_lengths(mask).tolist()):
        assert not done[k, : length - 1].any()
        assert not done[k, length:].any()
        assert len(set(split["row"][k, :length].tolist())) == 1
        assert (split["row"][k, length:] == -1).all()
        assert len(set(ids[k, :length].tolist())) == 1
        if limit is None:
            assert ids[k, 0] == k
            assert split["first"][k].tolist() == [True] + [False] * (mask.shape[1] - 1)
    begins = np.unique(ids[mask], return_index=True)[1]
    assert np.flatnonzero(split["first"][mask]).tolist() == begins.tolist()


@given(batch=batches(), seed=SEEDS, dtype=st.sampled_from(["?", "i1", "u8", "f2", "f8", "c8", "U3", "S4", "M8[s]"]))
def test_padding_of_every_kind_of_leaf(batch, seed, dtype):
    rng = np.random.default_rng(seed)
    values = {"?": True, "i1": -7, "u8": 2**63, "f2": np.nan, "f8": -0.0, "c8": 1 + 2j, "U3": "ab", "S4": b"xyz",
              "M8[s]": np.datetime64("NaT", "s")}  # fmt: skip
    ends = rng.random(batch) < 0.3
    leaf = random_array(rng, (*batch, 2), dtype)
    split = rlm.split_trajectories(
        {"x": {"leaf": leaf}, "done": ends[..., None]}, padding_value={"x": {"leaf": values[dtype]}}
    )
    pieces = naive_pieces(batch, lambda i: ends.reshape(-1)[i - 1], None)
    assert split["x"]["leaf"].tobytes() == naive_padded(leaf, batch, pieces, values[dtype]).tobytes()


@given(lengths=st.lists(st.integers(1, 12), max_size=6), backend=BACKENDS)
def test_a_mask_gives_its_lengths_back(lengths, backend):
    done = np.zeros(sum(lengths), bool)
    done[np.cumsum(lengths, dtype=int) - 1] = True
    with kernels.use(backend), warnings.catch_warnings():
        split: Any = rlm.split_trajectories({"done": done})
    assert rlm.trajectory_lengths(split["mask"]).tolist() == lengths
    assert rlm.trajectory_lengths(split["mask"]).dtype == np.int64
