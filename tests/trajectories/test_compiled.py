"""One compiled version of each kernel serves all data, and nothing is compiled after a warm-up."""

from __future__ import annotations

import numpy as np

import rlmemory as rlm
from rlmemory import kernels
from rlmemory.kernels import cpu


def versions() -> dict[str, int]:
    return {name: len(getattr(cpu, name).signatures) for name in ("run_starts", "move", "scan")}


def frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def unaligned(array: np.ndarray) -> np.ndarray:
    room = np.zeros(array.nbytes + 1, np.uint8)
    moved = room[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def test_all_kinds_of_arrays_are_served_by_one_version_of_each_kernel():
    with kernels.use("cpu"):
        rlm.warmup()
        before = versions()
        assert before == dict.fromkeys(before, 1)
        ids = np.array([3, 3, 1, 1, 1])
        for change in (
            np.copy,
            frozen,
            unaligned,
            np.asfortranarray,
            lambda a: np.repeat(a, 2)[::2],
            lambda a: a[::-1],
        ):
            for dtype in ("i8", "u8", "i4", ">i8", "f4", "f8", "U3", "?"):
                x = change(ids.astype(dtype))
                split = rlm.split_trajectories({"traj_ids": x, "s": x.astype("U4")}, max_length=2)
                rlm.unsplit_trajectories(split)
            for dtype in ("f2", "f4", "f8", ">f8", "i4"):
                x = change(np.arange(5).astype(dtype))
                done = change(ids == 3)
                rlm.split_trajectories({"done": done, "x": x})
                rlm.returns_to_go(x, done, x, x, mask=done)
                rlm.gae(x, x, next_value=x, terminated=done, discount=x)
        rlm.split_trajectories({"done": np.zeros((2, 0, 1), bool)})
        rlm.returns_to_go(np.zeros((3, 0)), np.zeros((3, 0)))
        assert versions() == before


def test_results_do_not_depend_on_how_the_input_lies_in_memory():
    x, done = np.random.default_rng(0).normal(size=9), np.arange(9) % 4 == 3
    plain = rlm.returns_to_go(x, done, 0.9, x)
    assert np.array_equal(rlm.returns_to_go(unaligned(x), frozen(done.copy()), 0.9, x[::-1].copy()[::-1]), plain)
    assert np.array_equal(rlm.split_trajectories({"x": unaligned(x), "done": done})["x"],
                          rlm.split_trajectories({"x": x, "done": done})["x"])  # fmt: skip
