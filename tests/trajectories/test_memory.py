"""What a memory gives as trajectories is what splitting everything in it gives."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import rlmemory as rlm
from rlmemory import kernels

from .recorded import equal

CODES = st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=1, max_size=30)


def filled(codes: list[int], source: np.ndarray, capacity: int, seed: int = 0) -> rlm.ReplayMemory:
    rng = np.random.default_rng(seed)
    spec = rlm.NumericSpec((3,), "float32")
    memory = rlm.ReplayMemory(
        {"a": spec, "b": rlm.NumericSpec((), "uint8")}, rlm.NumericSpec((2,)), capacity, extra={"cost": spec}
    )
    n = len(codes)
    observation = {"a": rng.normal(size=(n, 3)).astype("f4"), "b": rng.integers(0, 256, n, np.uint8)}
    code = np.array(codes)
    memory.extend(
        observation, rng.normal(size=(n, 2)), reward=rng.normal(size=n), next_observation=observation,
        terminated=code == 1, truncated=code == 2, source=source, extra={"cost": observation["a"] + 1},
    )  # fmt: skip
    return memory


def mapping(record: tuple, names: tuple[str, ...]) -> dict:
    return {name: getattr(record, name) for name in names}


NAMES = (
    "observation", "action", "reward", "next_observation", "terminated", "truncated", "source", "extra",
)  # fmt: skip


@given(codes=CODES, capacity=st.integers(1, 30), backend=st.sampled_from(["reference", "cpu"]))
def test_one_source_is_split_at_its_ends(codes, capacity, backend):
    memory = filled(codes, np.zeros(len(codes), np.int32), capacity)
    with kernels.use(backend):
        batch = memory.trajectories()
        split = rlm.split_trajectories(
            {**mapping(memory.all(), NAMES), "id": memory.all().id}, padding_value={"id": -1}
        )
    equal(split["mask"], batch.mask)
    del split["mask"], split["traj_ids"]
    equal(split, {**mapping(batch, NAMES), "id": batch.id})


@given(codes=CODES, capacity=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
def test_each_of_several_sources_is_split_at_its_ends(codes, capacity, seed):
    source = np.random.default_rng(seed).integers(0, 3, len(codes)).astype(np.int32)
    memory = filled(codes, source, capacity)
    whole = mapping(memory.all(), NAMES)
    for k in np.unique(whole["source"]):
        batch = memory.trajectories(source=int(k))
        mine = whole["source"] == k
        rows = {name: {key: leaf[mine] for key, leaf in value.items()} if isinstance(value, dict) else value[mine]
                for name, value in whole.items()}  # fmt: skip
        split = rlm.split_trajectories(rows)
        equal(split.pop("mask"), batch.mask)
        del split["traj_ids"]
        equal(split, mapping(batch, NAMES))


def test_what_is_cut_at_the_end_is_not_done():
    memory = filled([0, 0, 1, 0], np.zeros(4, np.int32), 10)
    split = rlm.split_trajectories(mapping(memory.all(), NAMES))
    assert split["terminated"].tolist() == [[False, False, True], [False, False, False]]
    assert memory.episodes().ended.tolist() == ["terminated", "running"]


def test_returns_and_advantages_of_a_memory():
    memory = filled([0, 2, 0, 1, 0], np.zeros(5, np.int32), 10)
    batch = memory.trajectories()
    values = np.where(batch.mask, 1.0, np.nan)
    flat = memory.all()
    ends = flat.terminated | flat.truncated
    alive = np.where(flat.terminated, 0.0, 1.0)
    bootstrap = np.where(batch.terminated, 0.0, values)
    padded = rlm.returns_to_go(batch.reward, batch.terminated | batch.truncated, 0.9, bootstrap, mask=batch.mask)
    assert np.array_equal(padded[batch.mask], rlm.returns_to_go(flat.reward, ends, 0.9, alive))
    ours, theirs = (
        rlm.gae(
            of.reward, value, next_value=value, terminated=of.terminated, truncated=of.truncated, mask=mask,
            discount=0.9, decay=0.8,
        )
        for of, value, mask in ((batch, values, batch.mask), (flat, np.ones(5), None))
    )  # fmt: skip
    for a, b in zip(ours, theirs, strict=True):
        assert np.array_equal(a[batch.mask], b)
        assert (a[~batch.mask] == 0).all()
