"""The one place that knows numba.cuda: how kernels are compiled and launched, and where device memory comes from.

numba-cuda takes the name ``numba.cuda`` over when it is installed; its successor will need another import line here.
With ``NUMBA_ENABLE_CUDASIM=1`` set before numba is loaded, Numba's simulator serves: kernels run as Python, a few
threads at a time, and device memory is host memory. Nothing here asks for a driver when it is imported.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba import cuda as cuda  # for the modules of kernels
from numba.cuda.cudadrv.driver import CudaAPIError, device_memset
from numpy.typing import NDArray

from ..errors import NotAvailableError

#: Whether Numba simulates the device.
SIMULATED = bool(numba.config.ENABLE_CUDASIM)
#: Threads of a block. The simulator runs each as a thread of Python.
THREADS = 4 if SIMULATED else 256
#: Blocks of a grid at most; kernels step through what is left in strides. Enough to fill 132 multiprocessors twice.
BLOCKS = 2 if SIMULATED else 2048

#: Why there is no device in a forked child.
FORKED = (
    "a forked child cannot use the GPU of its parent, nor a memory there: start processes with multiprocessing's "
    "'spawn' or 'forkserver', or fork while the memory is on the CPU"
)

_configured: dict[Any, Any] = {}
_process: int | None = None  # which began to use CUDA


# ---- compiling and launching ----------------------------------------------------------------------------------------


def kernel(function: Callable[..., None]) -> Any:
    """A function that a grid of threads runs; compiled at the first launch, and kept on disk where there is a place."""
    if os.environ.get("RLMEMORY_NUMBA_CACHE", "1") == "0":
        return cuda.jit(function)
    try:
        return cuda.jit(cache=True)(function)
    except RuntimeError:  # no folder to write to, as in `_jit`
        return cuda.jit(function)


def device(function: Any) -> Any:
    """A function that kernels call: the same Python function that the CPU's kernels are compiled with."""
    return cuda.jit(device=True)(getattr(function, "py_func", function))


if SIMULATED:

    def product(x: float, y: float) -> Any:
        """A product that is rounded by itself, whatever it is added to."""
        return x * y

else:
    from numba.cuda import libdevice

    @device
    def product(x: float, y: float) -> Any:
        """A product that is rounded by itself, whatever it is added to.

        Of a plain one and the sum it goes into, the compiler for the device makes one operation that rounds once: other
        numbers than a CPU's.
        """
        return libdevice.dmul_rn(x, y)


def launch(function: Any, blocks: int | tuple[int, int], threads: int = THREADS) -> Any:
    """The kernel with its grid; call the result with the kernel's arguments."""
    if SIMULATED:
        return function[blocks, threads]
    key = function, blocks, threads
    found = _configured.get(key)
    if found is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small grids are meant: a batch of 256 fills no device
            found = _configured.setdefault(key, function[blocks, threads])
    return found


def blocks_for(items: int, threads: int = THREADS) -> int:
    """How many blocks give each item a thread, within the limit."""
    return max(1, min(-(-items // threads), BLOCKS))


@contextmanager
def lent(inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The arrays of a call as the device sees them, inputs first.

    Arrays on the device are taken as they are. Those of the host are copied there, and the outputs among them back at
    the end: that is for tests and for other back ends' callers, who work on host arrays.
    """
    arrays = [_there(array) for array in (*inputs, *outputs)]
    yield tuple(arrays)
    for host, there in zip(outputs, arrays[len(inputs) :], strict=True):
        if isinstance(host, np.ndarray) and host.size:
            host[...] = there.copy_to_host()


def _there(array: Any) -> Any:
    return to_device(array) if isinstance(array, np.ndarray) else array


# ---- devices --------------------------------------------------------------------------------------------------------


def device_number(name: str) -> int:
    """The number in "cuda" or "cuda:1"; an error when there is no such device, or none at all.

    Raises
    ------
    NotAvailableError
        It says what is missing: the driver, every device, or this one.
    """
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number.isdecimal() or name == "cuda"):
        raise NotAvailableError(f"device={name!r}: expected 'cpu', 'cuda' or 'cuda:N'")
    found = _device_count(name)
    index = int(number) if number else _current()
    if index >= found:
        raise NotAvailableError(f"device={name!r}: there is no such device; this machine has {found}, counted from 0")
    return index


def _device_count(name: str) -> int:
    try:
        found = len(cuda.gpus)
    except Exception as error:  # of Numba's many, all of them about the driver
        raise NotAvailableError(
            f"device={name!r}: CUDA cannot be used here, as its driver was not found or does not start "
            f"({_first_line(error)}); install NVIDIA's driver and rlmemory[cuda], or use device='cpu'"
        ) from error
    if not found:
        raise NotAvailableError(f"device={name!r}: there is a CUDA driver, but no device; use device='cpu'")
    return found


def _first_line(error: Exception) -> str:
    lines = [line.strip(" :.") for line in str(error).splitlines() if line.strip() and not line.endswith("init: ")]
    return lines[0] if lines else type(error).__name__


def _current() -> int:
    return int(cuda.current_context().device.id) if not SIMULATED else 0


@contextmanager
def using(number: int) -> Iterator[None]:
    """Work on this device: each thread has a current one of its own.

    Raises
    ------
    NotAvailableError
        In a child that was forked after its parent had begun to use CUDA: the driver does not work there.
    """
    global _process
    if _process is None:
        _process = os.getpid()
    elif _process != os.getpid():
        raise NotAvailableError(FORKED)
    with cuda.gpus[number]:
        yield


def device_name(number: int) -> str:
    """What the maker calls the device."""
    if SIMULATED:
        return "Numba's simulator"
    name = cuda.gpus[number].name
    return name.decode() if isinstance(name, bytes) else str(name)


def synchronize() -> None:
    """Wait until the device has done all that was asked of it here.

    That is the default stream's work. What other libraries have under way on streams of their own, such as a step of
    training, goes on meanwhile.
    """
    if SIMULATED:
        cuda.synchronize()
    else:
        cuda.default_stream().synchronize()


# ---- memory: always as bytes, one axis ------------------------------------------------------------------------------


def allocate(nbytes: int) -> Any:
    """Fresh bytes on the current device, not cleared; at least 64, so that there is an address.

    Raises
    ------
    MemoryError
        When there are not as many; it says how many were asked for and how many are free.
    """
    try:
        return cuda.device_array(max(nbytes, 64), np.uint8)
    except (MemoryError, CudaAPIError) as error:
        if _says_full(error):
            raise out_of_memory(nbytes) from error
        raise


def _says_full(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "OUT_OF_MEMORY" in str(error)


def out_of_memory(nbytes: int) -> MemoryError:
    """The error that says how much was asked for and how much there is."""
    free, total = cuda.current_context().get_memory_info()
    return MemoryError(
        f"the device has no room for {nbytes:,} bytes: {free:,} of {total:,} bytes are free; take a smaller capacity, "
        "batch or dtype, free what other programs and libraries hold there, or keep the memory on the CPU"
    )


def pinned(nbytes: int) -> NDArray[np.uint8]:
    """Fresh page-locked bytes on the host: the device copies from and to them without a detour.

    Raises
    ------
    MemoryError
        When the system does not lock as many.
    """
    try:
        block: NDArray[np.uint8] = cuda.pinned_array(max(nbytes, 64), np.uint8)
    except (MemoryError, CudaAPIError) as error:
        if _says_full(error):
            raise MemoryError(
                f"this machine has no room for {nbytes:,} page-locked bytes on the host; free some, or take smaller "
                "batches"
            ) from error
        raise
    return block


def upload(data: NDArray[np.uint8], block: Any, at: int = 0) -> None:
    """Host bytes into a block on the device, from byte `at` on; done when it returns."""
    if data.size:
        block[at : at + data.size].copy_to_device(_plain(data))


def download(block: Any, at: int, count: int) -> NDArray[np.uint8]:
    """A copy of bytes on the device, on the host."""
    if not count:
        return np.empty(0, np.uint8)
    bytes_: NDArray[np.uint8] = block[at : at + count].copy_to_host()
    return bytes_


def transfer(data: Any, start: int, count: int, block: Any, at: int) -> None:
    """Bytes from one block on the device into another."""
    if count:
        block[at : at + count].copy_to_device(data[start : start + count])


def clear(block: Any, at: int, count: int) -> None:
    """Set bytes on the device to 0."""
    if count:
        device_memset(block[at : at + count], 0, count)


def to_device(array: NDArray[Any]) -> Any:
    """A device array of Numba with a host array's contents."""
    return cuda.to_device(_plain(array))


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """A host array in C order whose strides say so.

    Along an axis of one entry any stride is C order for NumPy, even that of a broadcast number, 0. For Numba that is an
    array of another type, for which it would compile kernels once more.
    """
    array = np.ascontiguousarray(array)
    usual = np.ndarray(array.shape, array.dtype, array).strides if array.size else array.strides
    return array if array.strides == usual else array.copy()


def address(block: Any) -> int:
    """Where a device array begins."""
    if SIMULATED:
        return int(block.ctypes.data)
    return int(block.device_ctypes_pointer.value or 0)  # its interface would be built anew each time


def at_address(pointer: int, nbytes: int, owner: Any) -> Any:
    """The bytes from an address on the device on, as a block that keeps `owner` alive."""
    if not nbytes:
        return allocate(0)
    lent = _Lent(pointer, nbytes, owner)
    if SIMULATED:
        return type(allocate(0))(np.asarray(lent))
    return cuda.as_cuda_array(lent, sync=False)


class _Lent:
    """Bytes on the device that belong to someone else."""

    def __init__(self, pointer: int, nbytes: int, owner: Any) -> None:
        self.owner = owner
        interface = {"shape": (nbytes,), "typestr": "|u1", "data": (pointer, False), "strides": None, "version": 3}
        if SIMULATED:
            self.__array_interface__ = interface
        else:
            self.__cuda_array_interface__ = interface


def wait_for(array: Any, interface: dict[str, Any]) -> None:
    """Let what another library still writes into its array come before what is done here.

    From version 3 on its ``__cuda_array_interface__`` names the stream to wait for. Before that (PyTorch, JAX) DLPack
    is how to ask: the library makes the stream that it is told, the default one, which is ours, wait for its own.
    """
    stream = interface.get("stream")
    if stream and not SIMULATED:
        known = {1: cuda.legacy_default_stream, 2: cuda.per_thread_default_stream}
        (known[stream]() if stream in known else cuda.external_stream(stream)).synchronize()
    elif "stream" not in interface and interface.get("version", 0) < 3:
        try:
            array.__dlpack__(stream=1)
        except Exception:  # it has none, or none for this array: then all of the device's work is waited for
            cuda.synchronize()
