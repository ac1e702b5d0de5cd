"""dlarray, gpuArray and gather."""

from typing import Any

import numpy as np
import pytest
from device.support import RUNS
from hypothesis import given
from hypothesis import strategies as st

import matlab_compat as mc
import rlmemory as rlm

from .helpers import filled, page_specs


@pytest.mark.parametrize(
    ("given_labels", "labels", "order"),
    [("TCB", "CBT", (1, 2, 0)), ("UBS", "SBU", (2, 1, 0)), ("SCS", "SSC", (0, 2, 1)), ("USU", "SUU", (1, 0, 2))],
)
def test_creation_orders_the_labels_and_keeps_equal_ones_in_order(
    given_labels: str, labels: str, order: tuple[int, ...]
) -> None:
    data = np.arange(24.0).reshape(2, 3, 4)
    x = mc.dlarray(data, given_labels)
    assert mc.dims(x) == labels
    np.testing.assert_array_equal(mc.extractdata(x), data.transpose(order))
    assert np.shares_memory(mc.extractdata(x), data)


@given(st.permutations("SSCBTU"), st.integers(1, 6))
def test_any_labels_are_sorted_with_their_axes(labels: list[str], rank: int) -> None:
    labels = labels[:rank]
    x = mc.dlarray(np.zeros(range(2, 2 + rank)), "".join(labels))
    expected = sorted(zip(labels, range(2, 2 + rank), strict=True), key=lambda pair: "SCBTU".index(pair[0]))
    assert list(zip(mc.dims(x), x.shape, strict=True)) == expected


def test_more_labels_than_dimensions_add_dimensions_of_one() -> None:
    assert mc.dlarray(np.zeros((3, 2)), "CBT").shape == (3, 2, 1)
    assert mc.dlarray(np.zeros((3, 2)), "BTC").shape == (1, 3, 2)


def test_small_letters_are_labels_and_a_dlarray_can_be_labelled() -> None:
    assert mc.dims(mc.dlarray(mc.dlarray(np.zeros((3, 2))), "cb")) == "CB"


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ("CX", "letters S, C, B, T, U; got 'CX'"),
        ("CC", "label C may appear once, in 'CC' it appears 2 times"),
        ("C", "2 dimensions need as many labels; got 1 in 'C'"),
        (3, "labels are a text"),
    ],
)
def test_wrong_labels_are_answered(labels: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        mc.dlarray(np.zeros((3, 2)), labels)


def test_finddim_counts_from_one() -> None:
    x = mc.dlarray(np.zeros((5, 4, 3, 2)), "SSCB")
    assert (mc.finddim(x, "C"), mc.finddim(x, "B")) == (3, 4)
    np.testing.assert_array_equal(mc.finddim(x, "S"), [1, 2])
    assert mc.finddim(x, "T").shape == (0,)
    assert mc.finddim(np.zeros(3), "C").shape == (0,)
    with pytest.raises(ValueError, match="a label is one of S, C, B, T, U; got 'X'"):
        mc.finddim(x, "X")


def test_stripdims_and_extractdata() -> None:
    x = mc.dlarray(np.zeros((3, 2)), "CB")
    assert mc.dims(mc.stripdims(x)) == ""
    assert mc.stripdims(5) == 5
    assert type(mc.extractdata(x)) is np.ndarray
    with pytest.raises(TypeError, match="extractdata expects a dlarray; got ndarray"):
        mc.extractdata(np.zeros(3))


def test_arithmetic_keeps_labels() -> None:
    x = mc.dlarray(np.arange(6.0).reshape(3, 2), "CB")
    for y in (x + 1, 1 - x, x * np.ones((3, 1)), x / mc.dlarray(np.ones((3, 2))), -x, abs(x), np.exp(x), x > 2, x**2):
        assert isinstance(y, mc.dlarray)
        assert mc.dims(y) == "CB"
    np.testing.assert_array_equal((2 * x + x).__array__(), 3 * np.arange(6.0).reshape(3, 2))
    assert mc.dims(x + mc.dlarray(np.ones((3, 2)), "CB")) == "CB"
    fraction, whole = np.modf(x)
    assert mc.dims(fraction) == mc.dims(whole) == "CB"


def test_unlike_labels_are_not_combined() -> None:
    x = mc.dlarray(np.zeros((3, 2)), "CB")
    with pytest.raises(ValueError, match=r"labels CB and CT differ; stripdims"):
        x + mc.dlarray(np.zeros((3, 2)), "CT")


def test_what_changes_the_number_of_dimensions_drops_the_labels() -> None:
    x = mc.dlarray(np.arange(6.0).reshape(3, 2), "CB")
    assert mc.dims(np.sum(x, axis=0)) == ""
    assert mc.dims(np.sum(x, axis=0, keepdims=True)) == "CB"
    assert mc.dims(x[0]) == ""
    assert mc.dims(x[:2]) == "CB"
    assert mc.dims(x @ np.ones((2, 2))) == ""
    assert mc.dims(x + np.ones((4, 3, 2))) == ""


def test_a_dlarray_is_not_written_to() -> None:
    x = mc.dlarray(np.zeros(3))
    with pytest.raises(TypeError, match=r"cannot be written to"):
        np.add(np.zeros(3), x, out=np.zeros(3))
    with pytest.raises(TypeError, match=r"cannot be written to"):
        x += 1


def test_numpy_sees_the_array_inside() -> None:
    data = np.arange(6.0).reshape(3, 2)
    x = mc.dlarray(data, "CB")
    assert np.shares_memory(np.asarray(x), data)
    assert np.asarray(x, np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(x), data)
    assert np.shares_memory(np.from_dlpack(x), data)
    assert x.__dlpack_device__() == (1, 0)
    assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((3, 2), 2, 6, np.float64, 3)
    assert float(x[1, 0]) == 2.0
    assert x[1, 0]
    assert np.mean(x) == 2.5


def test_all_fields_become_dlarrays_of_the_same_sizes() -> None:
    buffer = filled(4)
    for mode in ("batch", "sequence"):
        plain, wrapped = (mc.allExperiences(buffer, mode=mode, ReturnDlarray=option) for option in (False, True))
        for name in mc.fieldnames(plain):
            a, b = getattr(plain, name), getattr(wrapped, name)
            pairs = zip(a, b, strict=True) if isinstance(a, list) else [(a, b)]
            for x, y in pairs:
                assert isinstance(y, mc.dlarray)
                assert mc.dims(y) == ""
                np.testing.assert_array_equal(np.asarray(y), x, strict=True)


def test_single_experiences_become_dlarrays_with_scalars_of_one_by_one() -> None:
    e = mc.allExperiences(filled(4), ReturnDlarray=True)[2]
    assert isinstance(e.Observation[0], mc.dlarray)
    assert e.Observation[0].shape == (2, 1)
    assert e.Reward.shape == e.IsDone.shape == (1, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mc.gpuArray(np.zeros(3)),
        lambda: mc.allExperiences(filled(2), ReturnGpuArray=True),
        lambda: mc.allExperiences(filled(2), mode="batch", ReturnGpuArray=True, ReturnDlarray=True),
        lambda: mc.sample(filled(2), 2, ReturnGpuArray=True),
    ],
)
@pytest.mark.skipif(RUNS, reason="there is a device")
def test_without_a_device_nothing_pretends_to_be_on_one(call: Any) -> None:
    with pytest.raises(rlm.NotAvailableError, match=r"ReturnGpuArray\) needs a CUDA device: .*driver.*leave"):
        call()


@pytest.mark.parametrize("value", [mc.struct(a=1), mc.Cell([1, 2]), {"a": np.zeros(2)}, "text", [[1, 2], [3]], None])
def test_a_gpu_array_is_made_of_numbers_only(value: Any) -> None:
    with pytest.raises(rlm.DataTypeError, match=r"gpuArray: expected an array of numbers, got a \w+.* one by one"):
        mc.gpuArray(value)


class DeviceArray:
    """What an array on a device looks like from here."""

    __cuda_array_interface__: dict[str, Any] = {}  # noqa: RUF012
    shape, ndim, size, dtype = (3, 2), 2, 6, np.dtype("float64")

    def transpose(self, order: Any) -> "DeviceArray":
        return self

    def copy_to_host(self) -> np.ndarray:
        return np.ones((3, 2))


def test_gather_brings_back_and_leaves_the_host_alone() -> None:
    x = np.zeros(3)
    assert mc.gather(x) is x
    assert mc.gather(5) == 5
    labelled = mc.dlarray(x, "C")
    assert mc.gather(labelled) is labelled
    assert mc.gather(DeviceArray()).tolist() == [[1.0, 1.0]] * 3
    back = mc.gather(mc.dlarray(DeviceArray(), "CB"))
    assert mc.dims(back) == "CB"
    assert mc.extractdata(back).tolist() == [[1.0, 1.0]] * 3


def entries(container: Any) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else list(np.ravel(np.array(container, object)))


def test_gather_reaches_into_cells_and_leaves_them_as_they_were() -> None:
    x, there = "text", DeviceArray()
    cells = np.empty((1, 2), object)
    cells[0, 0], cells[0, 1] = there, x
    for container in (mc.Cell([there, x]), [there, x], (there, x), {"a": there, "b": x}, cells):
        back = mc.gather(container)
        assert type(back) is type(container)
        first, second = back.values() if isinstance(back, dict) else back[0] if container is cells else back
        assert first.tolist() == [[1.0, 1.0]] * 3
        assert second is x
        assert entries(container) == [there, x]


def test_gather_of_structs_gives_new_ones() -> None:
    s = mc.struct(Reward=DeviceArray(), Inner=mc.struct(Deep=[[DeviceArray()]]), Text="x")
    back = mc.gather(s)
    assert back.Reward.shape == back.Inner.Deep[0][0].shape == (3, 2)
    assert isinstance(back.Inner.Deep[0], mc.Cell)
    assert back.Text == "x"
    assert isinstance(s.Reward, DeviceArray)
    back.Text = "y"
    assert s.Text == "x"
    several = mc.struct()
    several[1].X = DeviceArray()
    assert mc.gather(several)._size() == several._size() == "1×2"
    assert mc.gather(several)[1].X.shape == (3, 2)
    assert mc.gather(several)[0].X.size == 0


def test_gather_of_several_gives_as_many() -> None:
    x = np.zeros(3)
    a, b = mc.gather(DeviceArray(), x)
    assert a.tolist() == [[1.0, 1.0]] * 3
    assert b is x


def test_what_is_on_the_host_altogether_is_returned_itself() -> None:
    buffer = filled(4)
    cells = np.array([None, 1], object)
    every, batch = mc.allExperiences(buffer), mc.sample(buffer, 3)
    for host in (every, every[1], every[1:3], batch, batch.Observation, mc.struct(), [1, 2], cells, "text", None):
        assert mc.gather(host) is host


@pytest.mark.parametrize("make", [mc.rlReplayMemory, mc.rlPrioritizedReplayMemory])
def test_the_memory_of_a_buffer_is_on_the_host(make: Any) -> None:
    buffer = make(*page_specs())

    class Elsewhere(type(buffer.memory)):  # type: ignore[misc]
        device = "cuda:0"

    before, there = buffer.memory, object.__new__(Elsewhere)
    with pytest.raises(rlm.NotAvailableError, match=r"memory: it is on cuda:0, and a MATLAB buffer.*ReturnGpuArray"):
        buffer.memory = there
    with pytest.raises(TypeError, match=r"memory: an rlmemory.ReplayMemory was expected; got dict"):
        buffer.memory = {}
    assert buffer.memory is before
    buffer.memory = before.to("cpu")
    assert buffer.Length == 0
