"""What reaches a kernel: how host arrays are described to it, and where arrays of a block begin."""

from __future__ import annotations

import numpy as np
import pytest

from rlmemory.kernels import _cuda, cuda_bytes, cuda_scans

from .support import needs_device

pytestmark = needs_device


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(1.5, (4, 3)).reshape(-1)[:1],
        np.broadcast_to(np.arange(3), (1, 3)),
        np.arange(12).reshape(4, 3)[::-1],
        np.arange(12).reshape(4, 3)[::4],
        np.arange(12).reshape(4, 3)[:, :1],
        np.zeros((0, 3)),
        np.zeros((0,), np.bool_),
    ],
)
def test_host_arrays_lie_in_c_order_and_say_so(array):
    # A single entry may have any strides and still be in C order for NumPy; Numba compiles a kernel for them.
    plain = _cuda._plain(array)
    assert plain.strides == np.zeros(array.shape, array.dtype).strides
    assert (plain == array).all()
    assert (_cuda.to_device(array).copy_to_host() == array).all()


def test_what_is_in_c_order_is_not_copied_for_that():
    array = np.arange(6).reshape(2, 3)
    assert _cuda._plain(array) is array


def test_an_address_is_where_a_part_of_a_block_begins():
    block = _cuda.allocate(100)
    assert [_cuda.address(block[k : k + 5]) - _cuda.address(block) for k in (0, 1, 64)] == [0, 1, 64]


@pytest.mark.parametrize("at", [0, 1, 4, 6])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
def test_numbers_that_do_not_lie_on_multiples_of_their_size_are_moved(at, dtype):
    # A device faults when a thread reads such a one; the simulator does not.
    numbers = np.arange(5).astype(dtype)
    block = _cuda.allocate(100)
    _cuda.upload(numbers.view(np.uint8), block, at)
    seen = cuda_scans.elements(block, at, numbers.dtype, numbers.size)
    assert _cuda.address(seen) % numbers.itemsize == 0
    assert seen.copy_to_host().tolist() == numbers.tolist()
    assert (_cuda.address(seen) == _cuda.address(block) + at) == (at % numbers.itemsize == 0)


@pytest.mark.parametrize(
    ("moved", "runs", "shift"), [(0, 3, 0), (31, 1, 0), (32, 1, 1), (165 * 32, 5, 6), (1 << 40, 1, None)]
)
def test_as_many_threads_share_a_run_as_it_has_work_for(moved, runs, shift):
    most = (_cuda.BLOCKS * _cuda.THREADS).bit_length() - 1
    assert cuda_bytes.shift_for(moved, runs) == min(most, most if shift is None else shift)
