"""`gpuArray`, `gather` and ReturnGpuArray: MATLAB's sizes, the host's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matlab.helpers import filled

import matlab_compat as mc
import rlmemory as rlm

from .support import RUNS, Foreign, ForeignDlpack

pytestmark = pytest.mark.skipif(not RUNS, reason="no CUDA device, and NUMBA_ENABLE_CUDASIM is not set")
OPTIONS = pytest.mark.parametrize("dlarrays", [False, True], ids=["", "dlarray"])


def same(ours: Any, theirs: Any, dlarrays: bool) -> None:
    """On the device, perhaps within a dlarray, and of the same shape, dtype and values."""
    if isinstance(theirs, list):
        assert isinstance(ours, mc.Cell)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, dlarrays)
        return
    assert isinstance(ours, mc.dlarray) == dlarrays
    inner = mc.extractdata(ours) if dlarrays else ours
    assert isinstance(inner, rlm.DeviceArray)
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(np.asarray(mc.gather(ours)), np.asarray(theirs), strict=True)


@OPTIONS
@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("mode", ["batch", "sequence"])
def test_all_experiences_at_once(mode: str, count: int, dlarrays: bool) -> None:
    buffer = filled(count)
    ours = mc.allExperiences(buffer, ConcatenateMode=mode, ReturnGpuArray=True, ReturnDlarray=dlarrays)
    theirs = mc.allExperiences(buffer, ConcatenateMode=mode)
    assert mc.fieldnames(ours) == mc.fieldnames(theirs)
    for name in mc.fieldnames(theirs):
        same(getattr(ours, name), getattr(theirs, name), dlarrays)


@OPTIONS
def test_single_experiences_are_on_the_device_when_they_are_asked_for(dlarrays: bool) -> None:
    buffer = filled(4)
    ours = mc.allExperiences(buffer, ReturnGpuArray=True, ReturnDlarray=dlarrays)
    theirs = mc.allExperiences(buffer, ReturnDlarray=True)  # whose scalars are 1-by-1
    assert len(ours) == 4
    for a, b in zip(ours, theirs, strict=True):
        for name in mc.fieldnames(b):
            same(getattr(a, name), getattr(b, name), dlarrays)


@OPTIONS
@pytest.mark.parametrize("options", [{}, {"SequenceLength": 3}, {"NStepHorizon": 2}])
def test_samples_and_all_their_outputs(options: dict[str, Any], dlarrays: bool) -> None:
    first, second = filled(9), filled(9)  # of one seed
    ours, *more = mc.sample(first, 6, **options, nargout=4, ReturnGpuArray=True, ReturnDlarray=dlarrays)
    theirs, *others = mc.sample(second, 6, **options, nargout=4)
    for name in mc.fieldnames(theirs):
        same(getattr(ours, name), getattr(theirs, name), dlarrays)
    for a, b in zip(more, others, strict=True):
        same(a, b, False)
    mb, mask = mc.sample(first, 2, nargout=2, ReturnGpuArray=True)
    assert mask.shape == mb.Reward.shape == (1, 2)


def test_to_the_device_and_back() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for value in (x, x.T, x.tolist(), 5, True, np.array([], np.int8), np.array([1 + 2j])):
        there = mc.gpuArray(value)
        assert isinstance(there, rlm.DeviceArray)
        np.testing.assert_array_equal(mc.gather(there), np.asarray(value), strict=True)
    labelled = mc.gpuArray(mc.dlarray(x, "BC"))
    assert mc.dims(labelled) == "CB"
    assert labelled.shape == (3, 2)
    assert isinstance(mc.extractdata(labelled), rlm.DeviceArray)
    back = mc.gather(labelled)
    assert mc.dims(back) == "CB"
    np.testing.assert_array_equal(np.asarray(back), x.T, strict=True)
    assert isinstance(mc.gpuArray(mc.gpuArray(x)), rlm.DeviceArray)
    for kind in (Foreign, ForeignDlpack):
        np.testing.assert_array_equal(mc.gather(kind(x)), x, strict=True)
    for host in (x, 3, (x, x), {"a": x}, mc.struct(a=1), mc.dlarray(x)):
        assert mc.gather(host) is host


def test_what_is_shown_says_where_it_is() -> None:
    batch = mc.allExperiences(filled(3), mode="batch", ReturnGpuArray=True)
    assert "{[2×1×3 gpuArray]  [1×1×3 gpuArray]}" in repr(batch)
    assert repr(mc.dlarray(mc.gpuArray([1.0, 2.0]), "C")) == "2(C) double gpuArray dlarray\n[1. 2.]"


def test_what_needs_the_host_says_so() -> None:
    buffer = filled(3)
    batch = mc.sample(buffer, 2, ReturnGpuArray=True)
    for function in (mc.unbatch, mc.toBatchFirst, mc.splitTrajectories):
        with pytest.raises(rlm.DataTypeError, match=rf"{function.__name__}: \w+ is on a GPU.*gather"):
            function(batch)
    e = mc.allExperiences(buffer, ReturnGpuArray=True)[0]
    with pytest.raises(rlm.ReplayMemoryError, match=r"Observation\[0\].*GPU.*copy_to_host"):
        mc.append(buffer, e)
    assert buffer.Length == 3
