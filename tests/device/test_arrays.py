"""Arrays on a GPU: what they show of themselves, views, copies to the host, and what other libraries take."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import rlmemory as rlm
from rlmemory.borrowed import is_on_device
from rlmemory.device_array import DeviceArray
from rlmemory.kernels import _cuda

from .support import SIMULATED, Foreign, ForeignDlpack, needs_device, on_host, unchanged

pytestmark = needs_device

DTYPES = ["bool", "uint8", "int16", "float16", "float32", "int64", "complex64", "complex128"]
SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0, 2), (2, 1, 3, 2)]


def numbers(shape: tuple[int, ...], dtype: str = "int64") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 101).reshape(shape).astype(dtype)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


# ---- there and back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_array_comes_back_as_it_went(shape, dtype):
    host = numbers(shape, dtype)
    there = rlm.to_device(host)
    assert (there.shape, there.dtype, there.ndim, there.size, there.nbytes) == (
        host.shape, host.dtype, host.ndim, host.size, host.nbytes,
    )  # fmt: skip
    assert there.strides == host.strides or not host.size
    assert there.contiguous
    assert there.device == "cuda:0"
    assert same(there.copy_to_host(), host)
    assert same(rlm.to_host(there), host)


def test_the_copy_is_a_copy():
    host = numbers((4,))
    there = rlm.to_device(host)
    host[:] = -1
    back = there.copy_to_host()
    assert back.tolist() == [0, 1, 2, 3]
    back[:] = 9
    assert there.copy_to_host().tolist() == [0, 1, 2, 3]


def test_nestings_keep_their_form_and_what_is_there_stays():
    batch = {"a": (np.ones(2), None), "b": {"c": 3.5}}
    there = rlm.to_device(batch)
    assert isinstance(there["a"], tuple)
    assert there["a"][1] is None
    assert there["b"]["c"].shape == ()
    assert rlm.to_device(there)["a"][0] is there["a"][0]
    assert rlm.to_host(there)["b"]["c"].item() == 3.5
    assert rlm.to_host(batch)["a"][0] is batch["a"][0]
    assert rlm.to_device(batch, "cpu")["a"][0] is batch["a"][0]
    assert same(rlm.to_device(there, "cpu")["a"][0], batch["a"][0])
    assert rlm.to_device([[1, 2], [3, 4]]).shape == (2, 2)


def test_records_keep_their_class():
    memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 4)
    memory.append(1.0, 2.0, reward=3.0, next_observation=4.0, terminated=True)
    for record in (memory.all(), memory.sample(2)):
        there = rlm.to_device(record)
        assert type(there) is type(record)
        assert isinstance(there.reward, DeviceArray)
        assert rlm.to_host(there).reward.tolist() == record.reward.tolist()


@pytest.mark.parametrize("value", ["text", np.array(["a"]), object(), [[1], [1, 2]]])
def test_what_is_no_array_of_numbers_is_refused(value):
    with pytest.raises((rlm.DataTypeError, rlm.ShapeError), match="value"):
        rlm.to_device(value)


# ---- views ----------------------------------------------------------------------------------------------------------

KEYS = [
    0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(4, 0, -2), slice(3, 3), None, ..., (0, 1),
    (..., 0), (slice(1, 3), None, slice(None, None, 2)), (None, 1, ..., -1), (slice(None), slice(1, 3), 0),
    np.int64(2), (), (1, ...),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_basic_indices_give_views_as_in_numpy(key):
    host = numbers((5, 4, 3))
    there = rlm.to_device(host)
    view, wanted = there[key], host[key]
    assert isinstance(view, DeviceArray)
    assert same(view.copy_to_host(), np.array(wanted, order="C"))
    assert view.contiguous == np.asarray(wanted).flags.c_contiguous
    assert view._block is there._block


INDEX = st.one_of(
    st.integers(-3, 2), st.slices(3), st.none(), st.builds(slice, st.none(), st.none(), st.sampled_from([-2, -1, 2]))
)


@given(keys=st.lists(st.lists(INDEX, max_size=3).map(tuple), max_size=4), axes=st.permutations(range(3)))
def test_views_of_views_are_those_of_numpy(keys, axes):
    host = numbers((3, 3, 3), "int32")
    there, view = rlm.to_device(host).transpose(axes), host.transpose(axes)
    for key in keys:
        try:
            whole = key if any(part is ... for part in key) else (*key, ...)
            next_view = view[whole]
        except IndexError:
            with pytest.raises(IndexError):
                there[key]
            continue
        there, view = there[key], next_view
        assert same(there.copy_to_host(), np.array(view, order="C"))
        assert there.contiguous == view.flags.c_contiguous


@pytest.mark.parametrize(
    "key", [[0, 1], np.array([0]), True, np.True_, 1.5, "a", (0, [1]), (slice(None), False)], ids=repr
)
def test_other_indices_are_refused(key):
    with pytest.raises(IndexError, match="CuPy"):
        rlm.to_device(numbers((3, 2)))[key]


def test_indices_out_of_range_are_refused():
    with pytest.raises(IndexError):
        rlm.to_device(numbers((3, 2)))[3]
    with pytest.raises(IndexError):
        rlm.to_device(numbers((3, 2)))[0, 0, 0]


def test_axes_move_and_shapes_change_without_a_copy():
    host = numbers((2, 3, 4))
    there = rlm.to_device(host)
    assert same(np.moveaxis(there, 0, -1).copy_to_host(), np.moveaxis(host, 0, -1).copy())
    assert same(np.transpose(there).copy_to_host(), host.T.copy())
    assert same(there.transpose(1, 0, 2).copy_to_host(), host.transpose(1, 0, 2).copy())
    assert same(there.transpose((2, 0, 1)).copy_to_host(), host.transpose(2, 0, 1).copy())
    for shape in ((6, 4), (-1,), (1, 24), (2, 3, 2, 2)):
        assert same(there.reshape(shape).copy_to_host(), host.reshape(shape))
        assert same(there.reshape(*shape).copy_to_host(), host.reshape(shape))
        assert same(np.reshape(there, shape).copy_to_host(), host.reshape(shape))
    assert there.reshape(24)._block is there._block


@pytest.mark.parametrize("shape", [(5,), (7, -1), (-1, -1)])
def test_a_shape_that_needs_a_copy_is_refused(shape):
    there = rlm.to_device(numbers((2, 3)))
    with pytest.raises(rlm.ShapeError, match="reshape"):
        there.reshape(shape)
    with pytest.raises(rlm.ShapeError, match="copy"):
        there.transpose().reshape(6)
    with pytest.raises(rlm.ShapeError, match="order"):
        there.reshape(6, order="F")


def test_rows_can_be_gone_through():
    host = numbers((3, 2))
    assert [row.copy_to_host().tolist() for row in rlm.to_device(host)] == host.tolist()
    assert len(rlm.to_device(host)) == 3
    for nothing in (len, iter):
        with pytest.raises(TypeError):
            nothing(rlm.to_device(1.0))


# ---- what it does not do --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "look", [np.asarray, bool, np.sum, lambda x: x == 1, lambda x: x != 1, hash, lambda x: np.concatenate([x, x])]
)
def test_nobody_is_told_a_falsehood_about_numbers_that_only_the_device_sees(look):
    """``batch.member == 1`` would else be a plain False."""
    with pytest.raises(TypeError):
        look(rlm.to_device(numbers((3,))))


def test_it_says_what_it_is():
    assert (
        repr(rlm.to_device(numbers((3, 2), "float32"))) == "DeviceArray(shape=(3, 2), dtype=float32, device='cuda:0')"
    )


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_pickles_have_bytes_of_their_own(how):
    there = rlm.to_device(numbers((3, 2)))[::2]
    twin = how(there)
    assert same(twin.copy_to_host(), there.copy_to_host())
    assert twin._block is not there._block


# ---- to other libraries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_interface_says_where_and_what(dtype):
    there = rlm.to_device(numbers((4, 3), dtype))
    shown = there.__cuda_array_interface__
    size = there.dtype.itemsize
    assert shown.keys() == {"shape", "typestr", "data", "strides", "version"}
    assert (shown["shape"], shown["typestr"], shown["strides"], shown["version"]) == ((4, 3), there.dtype.str, None, 3)
    assert shown["data"][0] > 0
    assert shown["data"][1] is False
    part = there[1:, ::2].__cuda_array_interface__
    assert part["data"][0] == shown["data"][0] + 3 * size
    assert (part["shape"], part["strides"]) == ((3, 2), (3 * size, 2 * size))
    assert there[:0].__cuda_array_interface__["data"] == (0, False)


@pytest.mark.skipif(not SIMULATED, reason="NumPy looks into the memory of the simulator only")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_dlpack_gives_the_same_array_without_a_copy(shape, dtype):
    there = rlm.to_device(numbers(shape, dtype))
    seen = np.from_dlpack(there)
    assert same(seen, numbers(shape, dtype))
    assert seen.ctypes.data == there.__cuda_array_interface__["data"][0] or not seen.size
    assert same(np.from_dlpack(there.transpose()).copy(), numbers(shape, dtype).T.copy())


@pytest.mark.skipif(not SIMULATED, reason="NumPy looks into the memory of the simulator only")
def test_what_dlpack_gave_keeps_the_memory_alive():
    there = rlm.to_device(numbers((4,)))
    block = weakref.ref(there._block)
    seen = np.from_dlpack(there)
    del there
    gc.collect()
    assert block() is not None
    assert seen.tolist() == [0, 1, 2, 3]
    del seen
    gc.collect()
    assert block() is None


def test_dlpack_names_the_device_and_gives_no_copies():
    there = rlm.to_device(numbers((4,)))
    assert there.__dlpack_device__() == ((1, 0) if SIMULATED else (2, 0))
    there.__dlpack__(stream=1, max_version=(1, 0), dl_device=there.__dlpack_device__(), copy=False)
    with pytest.raises(BufferError, match="cuda:0"):
        there.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="cuda:0"):
        there.__dlpack__(dl_device=(5, 0))


# ---- from other libraries -------------------------------------------------------------------------------------------


def test_arrays_of_other_libraries_are_known_by_what_they_show():
    for there in (rlm.to_device(1.0), Foreign([1.0]), ForeignDlpack([1.0])):
        assert is_on_device(there)
    for here in (np.ones(2), np.float32(1), 1, 1.0, 1j, True, None, [1], "a", OnHost()):
        assert not is_on_device(here)


class OnHost:
    """An array of another library, on the host."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("wrap", [Foreign, ForeignDlpack])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_of_other_libraries_come_to_the_host(wrap, shape, dtype):
    foreign = wrap(numbers(shape, dtype))
    assert same(rlm.to_host(foreign), numbers(shape, dtype))
    assert same(on_host(rlm.to_device(foreign)), numbers(shape, dtype))


def test_views_of_other_libraries_need_not_be_contiguous():
    host = numbers((4, 3))
    there = rlm.to_device(host)
    for key in ((slice(None, None, -1), slice(None, None, 2)), (slice(None), 1), (slice(3, 0, -2),)):
        foreign = Foreign(0, lifted=there[key])
        assert same(rlm.to_host(foreign), host[key].copy())
        assert same(rlm.to_device(foreign).copy_to_host(), host[key].copy())


def test_an_array_of_another_library_is_shared_and_kept_alive():
    foreign = Foreign(numbers((4,)))
    owner = weakref.ref(foreign)
    shared = rlm.to_device(foreign)
    assert shared.__cuda_array_interface__["data"] == foreign.__cuda_array_interface__["data"]
    del foreign
    gc.collect()
    assert owner() is not None
    assert shared.copy_to_host().tolist() == [0, 1, 2, 3]
    del shared
    gc.collect()
    assert owner() is None


def test_an_array_on_another_device_is_refused():
    for foreign in (Foreign([1.0], number=1), ForeignDlpack([1.0], number=1)):
        with pytest.raises(rlm.DataTypeError, match=r"cuda:1.*cuda:0"):
            rlm.to_device(foreign)


class Unknown(ForeignDlpack):
    """An array of a dtype that NumPy does not have, as bfloat16."""

    def __dlpack__(self, *, stream: int | None = None) -> object:
        raise BufferError("bfloat16")


def test_a_dtype_that_numpy_does_not_know_is_refused():
    with pytest.raises(rlm.DataTypeError, match=r"value.*bfloat16"):
        rlm.to_device(Unknown([1.0]))
    memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 4, device="cuda")
    with pytest.raises(rlm.DataTypeError, match=r"reward.*bfloat16"):
        memory.append(1.0, 1.0, reward=Unknown(1.0), next_observation=1.0, terminated=False)


class WithGradient:
    """A tensor of PyTorch that requires grad."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        raise RuntimeError("use var.detach()")


REFUSED = {
    "gradient": (WithGradient, r"use var\.detach"),
    "mask": (lambda: Foreign([1.0], mask=Foreign([True])), "mask"),
    "bfloat16": (lambda: Foreign(np.ones(1, np.uint16), typestr="<V2"), "<V2"),
}


@pytest.mark.parametrize("what", sorted(REFUSED))
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_another_library_will_not_give_is_refused_by_name(what, device):
    value, words = REFUSED[what]
    memory = rlm.ReplayMemory(rlm.NumericSpec((1,)), rlm.NumericSpec(()), 4, device=device)
    words = words if device == "cuda" else "to_host"
    with unchanged(memory), pytest.raises(rlm.DataTypeError, match=f"observation.*{words}"):
        memory.append(value(), 1.0, reward=1.0, next_observation=[1.0], terminated=False)
    for ask in (rlm.to_device, rlm.to_host):
        with pytest.raises(rlm.DataTypeError, match=f"value.*{REFUSED[what][1]}"):
            ask(value())


@pytest.mark.parametrize("stream", [None, 1, 2])
def test_the_stream_of_another_library_is_waited_for(stream):
    assert rlm.to_host(Foreign([1.0, 2.0], stream=stream)).tolist() == [1.0, 2.0]


class Early(Foreign):
    """An array whose interface is of the second version, which names no stream; `asked` is what its DLPack was told."""

    def __init__(self, value: Any, knows: bool) -> None:
        super().__init__(value, version=2)
        self.asked: list[int] = []
        if knows:
            self.__dlpack__ = lambda *, stream: self.asked.append(stream)


@pytest.mark.parametrize("knows", [True, False])
def test_a_library_that_names_no_stream_is_asked_through_dlpack(knows, monkeypatch):
    waits: list[int] = []
    monkeypatch.setattr(_cuda.cuda, "synchronize", lambda: waits.append(1))
    early = Early([1.0, 2.0], knows)
    waits.clear()
    assert rlm.to_host(early).tolist() == [1.0, 2.0]
    assert (early.asked, bool(waits)) == ([1] if knows else [], not knows)


@needs_device
def test_shape_and_dtype_cannot_be_assigned():
    array = rlm.to_device(np.arange(4.0))
    for name, value in (("shape", (8,)), ("dtype", np.dtype("int64"))):
        with pytest.raises(AttributeError):
            setattr(array, name, value)
    assert array.copy_to_host().tolist() == [0.0, 1.0, 2.0, 3.0]


@needs_device
@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.array_equal(x, x), lambda x: np.array_equiv(x, [1.0]), lambda x: np.allclose(x, x),
        lambda x: np.concatenate([x, x]), lambda x: np.ones(3) + x, lambda x: x + np.ones(3), lambda x: np.sqrt(x),
        lambda x: x + 1, lambda x: 2 * x, lambda x: -x, lambda x: x < 1, lambda x: x == x, lambda x: x != 1, bool,
        float, lambda x: x & 1, lambda x: [1, 2][x[0]], np.asarray, lambda x: np.ones(3) == x,
    ],
)  # fmt: skip
def test_numpy_and_arithmetic_are_refused_with_what_to_do(use):
    with pytest.raises(TypeError, match=r"has no arithmetic of its own.*from_dlpack.*to_host"):
        use(rlm.to_device(np.ones(3)))


@needs_device
def test_numpys_functions_on_shapes_give_views():
    array = rlm.to_device(np.arange(6).reshape(2, 3))
    assert (np.shape(array), np.ndim(array), np.size(array)) == ((2, 3), 2, 6)
    for view in (np.moveaxis(array, 0, -1), np.transpose(array), np.reshape(array, (3, 2)).transpose()):
        assert view._block is array._block
    assert np.moveaxis(array, 0, -1).copy_to_host().tolist() == [[0, 3], [1, 4], [2, 5]]


@needs_device
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int32", "float64", "complex128"])
def test_a_copy_has_no_gaps_and_shares_nothing(dtype):
    host = np.arange(24).reshape(2, 3, 4).astype(dtype)
    array = rlm.to_device(host)
    for key in (
        Ellipsis,
        (slice(None), slice(None, None, -2)),
        (Ellipsis, 1),
        (0, slice(1, None)),
        (1, 2, 3),
        (slice(0),),
    ):
        view, wanted = array[key].transpose(), host[key].T
        copy = view.copy()
        assert copy.contiguous
        assert copy._block is not array._block
        assert (copy.shape, copy.copy_to_host().tolist()) == (wanted.shape, wanted.tolist())


@needs_device
def test_lists_of_arrays_come_to_the_host_as_lists():
    array = rlm.to_device(np.arange(2))
    found = rlm.to_host({"a": [array, (array, 3)], "b": [1, 2]})
    assert found["a"][0].tolist() == found["a"][1][0].tolist() == [0, 1]
    assert (found["a"][1][1], found["b"]) == (3, [1, 2])
