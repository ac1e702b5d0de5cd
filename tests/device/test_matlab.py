"""`gpuArray`, `gather` and ReturnGpuArray: MATLAB's sizes, the host's values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matlab.helpers import filled, page_experiences, page_specs

import matlab_compat as mc
import rlmemory as rlm
from matlab_compat.structs import rows_of

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


def alike(ours: Any, theirs: Any) -> None:
    """On the host, of the same kind and of the same values, scalars of struct arrays as 1-by-1 or as numbers."""
    if isinstance(theirs, mc.struct):
        assert (type(ours), len(ours), mc.fieldnames(ours)) == (type(theirs), len(theirs), mc.fieldnames(theirs))
        for a, b in zip(rows_of(ours), rows_of(theirs), strict=True):
            for name in b:
                alike(a[name], b[name])
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs)
        for a, b in zip(ours, theirs, strict=True):
            alike(a, b)
    else:
        assert isinstance(ours, mc.dlarray) == isinstance(theirs, mc.dlarray)
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)
        np.testing.assert_array_equal(np.squeeze(np.asarray(ours)), np.squeeze(np.asarray(theirs)), strict=True)


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
    each = mc.allExperiences(buffer, ReturnGpuArray=True)
    with pytest.raises(rlm.DataTypeError, match=r"splitTrajectories: Observation is on a GPU.*gather"):
        mc.splitTrajectories(each)
    with pytest.raises(rlm.DataTypeError, match=r"gpuArray: expected an array of numbers, got a Cell.*one by one"):
        mc.gpuArray(batch.Observation)
    with pytest.raises(rlm.DataTypeError, match=r"gpuArray: expected an array of numbers, got a MiniBatch"):
        mc.gpuArray(batch)
    with pytest.raises(rlm.DataTypeError, match=r"gpuArray: expected an array of numbers, got a list that is no array"):
        mc.gpuArray([each[0].Reward])


@OPTIONS
@pytest.mark.parametrize("mode", ["none", "batch", "sequence"])
def test_what_needs_the_host_takes_what_gather_brings(mode: str, dlarrays: bool) -> None:
    options = {"mode": mode, "ReturnDlarray": dlarrays}
    buffer = filled(4)
    ours = mc.gather(mc.allExperiences(buffer, ReturnGpuArray=True, **options))
    theirs = mc.allExperiences(buffer, **options)
    alike(ours, theirs)
    functions = [mc.splitTrajectories] if mode == "none" else [mc.splitTrajectories, mc.unbatch, mc.toBatchFirst]
    for function in functions:
        alike(function(ours), function(theirs))


def test_a_sample_comes_back_as_one() -> None:
    first, second = filled(9), filled(9)
    ours = mc.gather(*mc.sample(first, 5, SequenceLength=2, nargout=4, ReturnGpuArray=True))
    theirs = mc.sample(second, 5, SequenceLength=2, nargout=4)
    assert isinstance(ours, tuple)
    for a, b in zip(ours, theirs, strict=True):
        alike(a, b)
    alike(mc.toBatchFirst(ours[0]), mc.toBatchFirst(theirs[0]))
    with pytest.raises(TypeError, match="this is one struct"):
        list(ours[0])


def test_elements_slices_and_changed_fields_come_back_too() -> None:
    each = mc.allExperiences(filled(5), ReturnGpuArray=True)
    host = mc.allExperiences(filled(5), ReturnDlarray=True)
    each[1].Reward, each[2].Note = mc.gpuArray([[7.0]]), "text"
    each[6].Reward = mc.gpuArray([[8.0]])
    back = mc.gather(each)
    assert len(back) == 7
    assert [back[i].Reward.item() for i in (1, 6)] == [7.0, 8.0]
    assert back[2].Note == "text"
    np.testing.assert_array_equal(back[3].Observation[0], np.asarray(host[3].Observation[0]))
    np.testing.assert_array_equal(mc.gather(each[3].Observation)[0], np.asarray(host[3].Observation[0]))
    some = mc.gather(each[1:4])
    assert (len(some), some[0].Reward.item()) == (3, 7.0)
    np.testing.assert_array_equal(mc.gather(each[4]).Action[0], np.asarray(host[4].Action[0]))
    assert isinstance(each[4].Action[0], rlm.DeviceArray)


def test_many_elements_are_brought_a_channel_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    copies, copy = [], rlm.DeviceArray.copy_to_host
    monkeypatch.setattr(rlm.DeviceArray, "copy_to_host", lambda x: copies.append(x) or copy(x))
    buffer = filled(20)
    each = mc.allExperiences(buffer, ReturnGpuArray=True)
    for call in (mc.gather, lambda x: mc.gather(x[3:]), lambda x: mc.append(buffer, x)):
        copies.clear()
        call(each)
        assert len(copies) == 7  # two channels of Observation and of NextObservation, Action, Reward, IsDone


@OPTIONS
def test_experiences_on_the_device_are_appended(dlarrays: bool) -> None:
    origin, ours = filled(5), filled(0)
    options = {"ReturnGpuArray": True, "ReturnDlarray": dlarrays}
    each = mc.allExperiences(origin, **options)
    mc.validateExperience(ours, each)
    mc.validateExperience(ours, each[0])
    mc.append(ours, each[:2])
    mc.append(ours, each[2])
    mc.append(ours, [each[3]], mc.gpuArray([0]))
    row = each[4]
    fields = {name: getattr(row, name) for name in mc.fieldnames(row)}
    mc.append(ours, fields)
    alike(mc.allExperiences(ours, mode="batch"), mc.allExperiences(origin, mode="batch"))
    mc.append(ours, mc.sample(origin, 1, **options))  # a batch of one is an experience
    for mode in ("batch", "sequence"):
        batch = mc.allExperiences(origin, mode=mode, **options)
        with pytest.raises(rlm.ShapeError, match=r"Observation\[0\].*batch of experiences: append.*unbatch"):
            mc.append(ours, batch)
        mc.append(ours, mc.unbatch(mc.gather(batch)))
    assert ours.Length == 16


def test_wrong_experiences_on_the_device_are_answered_as_on_the_host() -> None:
    buffer, e = filled(2), mc.allExperiences(filled(1), ReturnGpuArray=True)[0]
    e.IsDone = mc.gpuArray([[3.0]])
    with pytest.raises(rlm.ValueNotRepresentableError, match=r"IsDone: array\(\[\[3.\]\]\) came; expected 0"):
        mc.append(buffer, e)
    e.IsDone, e.Action = 0, [mc.gpuArray(np.zeros(3))]
    for function in (mc.append, mc.validateExperience):
        with pytest.raises(rlm.ShapeError, match=r"Action\[0\]: 3 numbers came, 2×1 was expected"):
            function(buffer, e)
    for kind in (Foreign, ForeignDlpack):
        e.Action = [kind(np.full((2, 1), 4.0))]
        mc.append(buffer, e)
    assert mc.allExperiences(buffer, mode="batch").Action[0][:, 0, 2:].tolist() == [[4.0, 4.0]] * 2
    assert buffer.Length == 4


@pytest.mark.parametrize("wrap", [lambda x: x, mc.dlarray, mc.gather], ids=["device", "dlarray", "host"])
def test_priorities_are_updated_with_what_is_on_the_device(wrap: Any) -> None:
    ours, theirs = (mc.rlPrioritizedReplayMemory(*page_specs(), Seed=0) for _ in range(2))
    for buffer in (ours, theirs):
        mc.append(buffer, page_experiences(6))
    *_, ids = mc.sample(ours, 4, nargout=4, ReturnGpuArray=True)
    *_, same_ids = mc.sample(theirs, 4, nargout=4)
    values = np.arange(1.0, 5.0).reshape(1, 4)
    assert mc.updatePriorities(ours, wrap(ids), wrap(mc.gpuArray(values))) == 0
    mc.updatePriorities(theirs, same_ids, values)
    alike(mc.sample(ours, 32), mc.sample(theirs, 32))
    with pytest.raises(rlm.ShapeError, match="3 priorities came for 4 ids"):
        mc.updatePriorities(ours, ids, mc.gpuArray(np.ones(3)))
    with pytest.raises(ValueError, match="priorit"):
        mc.updatePriorities(ours, ids, mc.gpuArray(-values))


def test_a_memory_on_the_device_is_not_put_into_a_buffer() -> None:
    buffer = filled(3)
    before = buffer.memory
    with pytest.raises(rlm.NotAvailableError, match=r"memory: it is on cuda:0, and a MATLAB buffer is on the host"):
        buffer.memory = buffer.memory.to("cuda")
    assert buffer.memory is before
    buffer.memory = buffer.memory.to("cuda").to("cpu")
    alike(mc.allExperiences(buffer), mc.allExperiences(filled(3)))


@OPTIONS
@pytest.mark.parametrize("mode", ["none", "batch"])
def test_files_take_what_is_on_the_device(tmp_path: Path, mode: str, dlarrays: bool) -> None:
    pytest.importorskip("scipy")
    buffer, file = filled(3), tmp_path / "x.mat"
    there = mc.allExperiences(buffer, mode=mode, ReturnGpuArray=True, ReturnDlarray=dlarrays)
    mc.save(file, experience=there, cell=[mc.gpuArray([1.0, 2.0])], n=mc.gpuArray(3.0))
    loaded = mc.load(file)
    assert loaded.cell[0].ravel().tolist() == [1.0, 2.0]
    assert loaded.n.item() == 3.0
    ours = filled(0)
    mc.loadExperiences(file, ours)
    alike(mc.allExperiences(ours, mode="batch"), mc.allExperiences(buffer, mode="batch"))
    mc.saveExperiences(file, buffer)  # what is in a buffer is on the host
    with pytest.raises(TypeError, match="saveExperiences expects a replay memory as its first argument"):
        mc.saveExperiences(file, there)
