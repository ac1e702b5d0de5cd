"""Returns and advantages against Python loops."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import rlmemory as rlm
from rlmemory import kernels

SEEDS = st.integers(0, 2**32 - 1)
BACKENDS = st.sampled_from(["reference", "cpu"])
BATCHES = st.one_of(
    st.tuples(st.integers(0, 9)), st.tuples(st.integers(0, 4), st.integers(0, 7)),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 5)),
)  # fmt: skip
DTYPES = st.sampled_from(["f2", "f4", "f8", "i4", "?", "u1", ">f4"])


def loop(x, ends, discount, bootstrap, mask):
    """Row by row, from the last step to the first, in Python floats (float64)."""
    batch, width = ends.shape, int(np.prod(x.shape[ends.ndim :]))
    rows = int(np.prod(batch[:-1]))
    x, bootstrap = (a.astype(float).reshape(rows, batch[-1], width) for a in (x, bootstrap))
    ends, mask = (a.reshape(rows, batch[-1]) for a in (ends, mask))
    discount = np.broadcast_to(discount, batch).reshape(rows, batch[-1])
    out = np.zeros_like(x)
    for b in range(rows):
        for c in range(width):
            for t in range(batch[-1] - 1, -1, -1):
                if not mask[b, t]:
                    continue
                last = ends[b, t] or t + 1 == batch[-1] or not mask[b, t + 1]
                after = bootstrap[b, t, c] if last else out[b, t + 1, c]
                out[b, t, c] = float(x[b, t, c]) + float(discount[b, t]) * float(after)
    return out.reshape(*batch, *([width] if width != 1 else []))


def numbers(rng, shape, dtype):
    return (
        rng.integers(0, 2, shape).astype(dtype)
        if np.dtype(dtype).kind in "?bu"
        else (rng.normal(size=shape) * 8).astype(dtype)
    )


@given(
    batch=BATCHES,
    dtype=DTYPES,
    seed=SEEDS,
    backend=BACKENDS,
    vector=st.booleans(),
    each=st.booleans(),
    masked=st.booleans(),
)
def test_scan_is_the_loop_to_the_last_bit(batch, dtype, seed, backend, vector, each, masked):
    rng = np.random.default_rng(seed)
    shape = (*batch, 2) if vector else batch
    x, bootstrap, ends = numbers(rng, shape, dtype), rng.normal(size=shape), rng.random(batch) < 0.3
    discount = rng.random(batch) if each else 0.9
    length = rng.integers(0, batch[-1] + 1, batch[:-1])
    mask = np.arange(batch[-1]) < length[..., None] if masked else np.ones(batch, bool)
    given_x, given_after = x.copy(), bootstrap.copy()
    if masked and x.dtype.kind == "f":
        given_x[~mask] = np.nan
        given_after[~mask] = np.nan
    with kernels.use(backend):
        options = {"bootstrap": given_after, "mask": mask if masked else None}
        ours = rlm.discounted_scan(given_x, ends, discount, **options)
        rows = rlm.returns_to_go(given_x, None, discount, given_after, mask=mask) if masked else None
    wanted = x.dtype.newbyteorder("=") if x.dtype.kind == "f" else np.dtype(float)
    assert (ours.dtype, ours.shape) == (wanted, shape)
    with np.errstate(over="ignore"):
        assert np.array_equal(ours, loop(x, ends, discount, bootstrap, mask).reshape(shape).astype(wanted))
        if rows is not None:
            plain = loop(x, np.zeros(batch, bool), discount, bootstrap, mask)
            assert np.array_equal(rows, plain.reshape(shape).astype(wanted))


@given(batch=BATCHES, dtype=DTYPES, seed=SEEDS, backend=BACKENDS, each=st.booleans(), masked=st.booleans())
def test_advantages_are_the_formula(batch, dtype, seed, backend, each, masked):
    rng = np.random.default_rng(seed)
    reward, value, after = numbers(rng, batch, dtype), rng.normal(size=batch), rng.normal(size=batch)
    terminated, truncated = rng.random(batch) < 0.2, rng.random(batch) < 0.2
    gamma = rng.random(batch) if each else 0.9
    length = rng.integers(0, batch[-1] + 1, batch[:-1])
    mask = np.arange(batch[-1]) < length[..., None] if masked else np.ones(batch, bool)
    with kernels.use(backend):
        advantage, target = rlm.gae(
            reward, value, next_value=np.where(terminated, np.inf, after), terminated=terminated, truncated=truncated,
            discount=gamma, decay=0.7, mask=mask if masked else None,
        )  # fmt: skip
    delta = reward.astype(float) + np.where(terminated, 0.0, gamma * after) - value
    wide = loop(delta, terminated | truncated, np.asarray(gamma) * 0.7, np.zeros(batch), mask).reshape(batch)
    dtype = reward.dtype.newbyteorder("=") if reward.dtype.kind == "f" else np.dtype(float)
    assert (advantage.dtype, target.dtype) == (dtype, dtype)
    with np.errstate(over="ignore"):
        assert np.array_equal(advantage, wide.astype(dtype))
        assert np.array_equal(target, np.where(mask, wide + value, 0.0).astype(dtype))


def test_a_decay_of_one_gives_returns_and_of_zero_one_step_advantages():
    rng = np.random.default_rng(0)
    reward, value, after = rng.normal(size=(3, 20))
    terminated, truncated = np.arange(20) % 7 == 6, np.arange(20) % 5 == 4
    alive = np.where(terminated, 0.0, after)
    options = {"next_value": after, "terminated": terminated, "truncated": truncated, "discount": 0.9}
    one = rlm.gae(reward, value, **options, decay=0.0)[0]
    np.testing.assert_allclose(one, reward + 0.9 * alive - value)
    inside = value.copy()
    inside[:-1] = np.where(terminated | truncated, after, np.roll(value, -1))[:-1]
    inside[-1] = after[-1]  # next values that agree with the values inside: sums telescope
    target = rlm.gae(reward, value, **{**options, "next_value": inside}, decay=1.0)[1]
    np.testing.assert_allclose(target, rlm.returns_to_go(reward, terminated | truncated, 0.9, alive))


def test_generalized_advantages_of_a_hand_written_example():
    advantage, target = rlm.gae(
        [1.0, 2.0, 3.0], [0.5, 1.0, 1.5], next_value=[1.0, 1.5, 4.0], terminated=[False, False, False],
        truncated=[False, False, True], discount=0.5, decay=0.5,
    )  # fmt: skip
    last = 3 + 0.5 * 4 - 1.5
    middle = 2 + 0.5 * 1.5 - 1 + 0.25 * last
    first = 1 + 0.5 * 1 - 0.5 + 0.25 * middle
    assert advantage.tolist() == [first, middle, last]
    assert target.tolist() == [first + 0.5, middle + 1, last + 1.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rlm.returns_to_go([1.0, 2.0], None), "ends: say where trajectories end"),
        (lambda: rlm.returns_to_go([1.0, 2.0], [True]), r"ends: expected the first axes of \(2,\), got \(1,\)"),
        (lambda: rlm.returns_to_go([1.0, 2.0], True), r"ends: expected the first axes of \(2,\), got \(\)"),
        (lambda: rlm.returns_to_go(1.0, [True]), "x: expected at least an axis of time"),
        (lambda: rlm.returns_to_go([1j], [True]), "x: expected real numbers, got complex128"),
        (lambda: rlm.returns_to_go(["a"], [True]), "x: expected numbers"),
        (lambda: rlm.returns_to_go([1.0], [True], [[0.9]]), r"discount: expected a number or shape \(1,\)"),
        (lambda: rlm.returns_to_go([1.0, 2.0], [0, 1], 0.9, [1.0]), r"bootstrap: expected shape \(2,\), got \(1,\)"),
        (lambda: rlm.returns_to_go([[1.0, 2.0]], [[0, 1]], mask=[True]), r"mask: expected the shape of ends, \(1, 2\)"),
        (lambda: rlm.gae([1.0], [1.0], next_value=[1.0], terminated=[True], decay=1.5), "decay: expected a number"),
        (lambda: rlm.gae([1.0], [[1.0]], next_value=[1.0], terminated=[True]), r"value: expected shape \(1,\)"),
        (lambda: rlm.gae([1.0], [1.0], next_value=[1.0], terminated=[True, False]), "terminated: expected the first"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
