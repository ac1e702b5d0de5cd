"""Returns and advantages on a device: the same numbers as on the host."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import rlmemory as rlm
from rlmemory.kernels import _cuda

from .support import RUNS, Foreign, ForeignDlpack, on_host

pytestmark = pytest.mark.skipif(not RUNS, reason="no CUDA device, and NUMBA_ENABLE_CUDASIM is not set")
SEEDS = st.integers(0, 2**32 - 1)
BATCHES = st.one_of(st.tuples(st.integers(0, 9)), st.tuples(st.integers(0, 3), st.integers(0, 5)))
DTYPES = st.sampled_from(["f2", "f4", "f8", "i4", "?", "u1"])
FEW = settings(max_examples=15 if _cuda.SIMULATED else 200)


def lifted(value: Any) -> Any:
    """An array on the device; numbers and None as they are."""
    return rlm.to_device(value) if isinstance(value, np.ndarray) else value


def agree(ours: Any, theirs: np.ndarray) -> None:
    assert isinstance(ours, rlm.DeviceArray)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    if _cuda.SIMULATED or theirs.itemsize > 2:
        assert on_host(ours).tobytes() == theirs.tobytes()
    else:  # a device may round to float32 on the way
        np.testing.assert_allclose(on_host(ours), theirs, rtol=1e-3, atol=1e-3)


def rewards(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(0, 2, shape).astype(dtype) if dtype == "?" else (9 * rng.random(shape)).astype(dtype)


@FEW
@given(data=st.data(), batch=BATCHES, dtype=DTYPES, feature=st.sampled_from([(), (2,), (0,)]), seed=SEEDS)
def test_sums_are_those_of_the_host(data, batch, dtype, feature, seed):
    rng = np.random.default_rng(seed)
    x, ends = rewards(rng, (*batch, *feature), dtype), rng.random(batch) < 0.3
    discount = data.draw(st.sampled_from([0.9, 1, np.float32(0.5), rng.random(batch), np.array(0.25)]))
    bootstrap = data.draw(st.sampled_from([None, 2.5, 3, rng.normal(size=x.shape).astype("f4")]))
    mask = data.draw(st.sampled_from([None, rng.random(batch) < 0.7]))
    ends = None if mask is not None and data.draw(st.booleans()) else ends
    arguments = x, ends, discount
    theirs = rlm.discounted_scan(*arguments, bootstrap=bootstrap, mask=mask)
    ours = rlm.discounted_scan(*map(lifted, arguments), bootstrap=lifted(bootstrap), mask=lifted(mask))
    agree(ours, theirs)
    agree(rlm.returns_to_go(*map(lifted, arguments), lifted(bootstrap), mask=lifted(mask)), theirs)


@FEW
@given(data=st.data(), batch=BATCHES, dtype=DTYPES, feature=st.sampled_from([(), (2,)]), seed=SEEDS)
def test_advantages_are_those_of_the_host(data, batch, dtype, feature, seed):
    rng = np.random.default_rng(seed)
    reward = rewards(rng, (*batch, *feature), dtype)
    value, after = data.draw(st.sampled_from([rng.normal(size=(2, *reward.shape)), (0.5, 2)]))
    terminated = rng.random(batch) < 0.2
    if isinstance(after, np.ndarray):
        after[terminated] = np.inf
    given = {
        "next_value": after, "terminated": terminated,
        "truncated": data.draw(st.sampled_from([None, rng.random(batch) < 0.2])),
        "discount": data.draw(st.sampled_from([0.99, 0, rng.random(batch)])),
        "mask": data.draw(st.sampled_from([None, rng.random(batch) < 0.7])),
    }  # fmt: skip
    decay = data.draw(st.sampled_from([0.0, 0.95, 1]))
    theirs = rlm.gae(reward, value, **given, decay=decay)
    ours = rlm.gae(lifted(reward), lifted(value), **{k: lifted(v) for k, v in given.items()}, decay=decay)
    for a, b in zip(ours, theirs, strict=True):
        agree(a, b)


def test_padding_is_not_read():
    nan = np.nan
    real = np.array([True, True, False])
    x, value = np.array([1.0, 2.0, nan]), np.array([0.5, 0.5, nan])
    ours = rlm.returns_to_go(*map(lifted, (x, None, 0.5)), mask=lifted(real))
    assert on_host(ours).tolist() == [2.0, 2.0, 0.0]
    given = {"next_value": value, "terminated": ~real, "mask": real}
    for a, b in zip(
        rlm.gae(lifted(x), lifted(value), **{k: lifted(v) for k, v in given.items()}), rlm.gae(x, value, **given),
        strict=True,
    ):  # fmt: skip
        agree(a, b)


def test_arrays_of_any_library_are_taken_and_left_as_they_are():
    x, ends = np.arange(6.0), np.arange(6) % 3 == 2
    for kind in (Foreign, ForeignDlpack):
        given = kind(x)
        agree(rlm.returns_to_go(given, kind(ends.astype(np.uint8)), 0.9), rlm.returns_to_go(x, ends, 0.9))
        assert on_host(given.array).tolist() == x.tolist()
    view = rlm.to_device(np.arange(10, dtype=np.float32))[4:]
    agree(rlm.returns_to_go(view, lifted(ends)), rlm.returns_to_go(np.arange(4, 10, dtype=np.float32), ends))


def test_the_numbers_do_not_come_to_the_host(monkeypatch):
    came: list[int] = []
    real = _cuda.download
    monkeypatch.setattr(_cuda, "download", lambda block, at, count: came.append(count) or real(block, at, count))
    x, ends = np.zeros((5, 8)), np.zeros(5, bool)
    given = {"next_value": lifted(x), "terminated": lifted(ends), "discount": lifted(np.ones(5))}
    rlm.gae(lifted(x), lifted(x), **given)
    rlm.returns_to_go(lifted(x), lifted(ends), 0.9, lifted(x))
    rlm.split_trajectories({"x": lifted(x), "done": lifted(ends)})
    rlm.shift_actions(lifted(x), lifted(ends))
    assert came == [5] * 4


def test_what_does_not_fit_is_named():
    x, ends = lifted(np.ones(2)), lifted(np.ones(2, bool))
    for call, message in (
        (lambda: rlm.returns_to_go(x, np.ones(2, bool)), "ends: this ndarray is on the host.*GPU that x is on"),
        (lambda: rlm.returns_to_go([1.0, 2.0], ends), "x: this list is on the host"),
        (lambda: rlm.returns_to_go(x, ends, [0.9, 0.9]), "discount: this list is on the host"),
        (lambda: rlm.returns_to_go(x, ends, 0.9, np.ones(2)), "bootstrap: this ndarray is on the host"),
        (lambda: rlm.gae(x, x, next_value=np.ones(2), terminated=ends), "next_value: this ndarray is on the host"),
        (lambda: rlm.returns_to_go(x, None), "ends: say where trajectories end"),
        (lambda: rlm.returns_to_go(1.0, ends), "x: expected at least an axis of time"),
        (lambda: rlm.returns_to_go(x, True), r"ends: expected the first axes of \(2,\)"),
        (lambda: rlm.returns_to_go(x, lifted(np.ones(3, bool))), r"ends: expected the first axes of \(2,\)"),
        (lambda: rlm.returns_to_go(x, ends, lifted(np.ones(3))), r"discount: expected a number or shape \(2,\)"),
        (lambda: rlm.returns_to_go(x, ends, 1, lifted(np.ones(3))), r"bootstrap: expected shape \(2,\), got \(3,\)"),
        (lambda: rlm.returns_to_go(lifted(np.ones(2, "c8")), ends), "x: expected real numbers, got complex64"),
        (lambda: rlm.gae(x, lifted(np.ones(3)), next_value=x, terminated=ends), r"value: expected shape \(2,\)"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()
