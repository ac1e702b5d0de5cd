"""Arrays to CuPy, PyTorch and JAX and back, without a copy: ``python -m tests.device.libraries``.

What is not installed is named and passed over. On the simulator device memory is host memory, and the libraries' CPU
arrays share it through the same capsules.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import rlmemory as rlm
from rlmemory.kernels import _cuda

ROWS = 64
Take = Callable[[Any], Any]


def filled(device: str) -> rlm.ReplayMemory:
    """A memory with a few channels of the usual dtypes."""
    specs = {"image": rlm.NumericSpec((4, 4), "uint8"), "state": rlm.NumericSpec((3,), "float32")}
    memory = rlm.ReplayMemory(specs, rlm.NumericSpec((), "int64"), 100, reward="float32", seed=0, device=device)
    rng = np.random.default_rng(0)
    seen = {"image": rng.integers(0, 256, (ROWS, 4, 4), np.uint8), "state": rng.random((ROWS, 3), np.float32)}
    memory.extend(
        seen, rng.integers(0, 5, ROWS), reward=rng.random(ROWS, np.float32), next_observation=seen,
        terminated=rng.random(ROWS) < 0.1,
    )  # fmt: skip
    return memory


def leaves(batch: rlm.Batch) -> dict[str, tuple[Any, ...]]:
    """The arrays of a batch that are compared."""
    return {
        "image": batch.observation["image"], "state": batch.observation["state"], "action": batch.action,
        "reward": batch.reward, "terminated": batch.terminated, "id": batch.id, "discount": batch.discount,
    }  # fmt: skip


def round_trip(
    name: str, take: Callable[[Any], Any], look: Callable[[Any], Any], address: Callable[[Any], int]
) -> None:
    """Out of a memory, into the library, into another memory, and the same numbers at each place."""
    host, there = filled("cpu"), filled("cuda")
    expected, given = leaves(host.sample(32)), leaves(there.sample(32))
    taken = {key: take(array) for key, array in given.items()}
    for key, array in taken.items():
        # JAX copies host arrays that do not begin on 64 bytes; those of a device do.
        if given[key]._address() % 64 == 0:
            assert address(array) == given[key]._address(), f"{name}: {key} was copied"
        assert np.array_equal(np.asarray(look(array)), expected[key]), f"{name}: {key} differs"
    del given, there
    gc.collect()  # what the library has taken must outlive the memory
    assert np.array_equal(np.asarray(look(taken["state"])), expected["state"]), f"{name}: gone with the memory"
    again = filled("cuda")
    seen = {"image": taken["image"], "state": taken["state"]}
    ids = again.extend(
        seen, taken["action"], reward=taken["reward"], next_observation=seen, terminated=taken["terminated"]
    )
    back = rlm.to_host(again.get(ids))
    for key, array in (("image", back.observation["image"]), ("action", back.action), ("reward", back.reward)):
        assert np.array_equal(array, expected[key]), f"{name}: {key} came back otherwise"
    print(f"{name}: {len(taken)} arrays out without a copy and back")


def cupy() -> None:
    """CuPy, through ``__cuda_array_interface__`` and DLPack."""
    if _cuda.SIMULATED:
        return
    library = importlib.import_module("cupy")
    for take in (library.asarray, library.from_dlpack):
        round_trip(f"cupy.{take.__name__}", take, library.asnumpy, lambda array: array.data.ptr)


def torch() -> None:
    """PyTorch, through DLPack and ``__cuda_array_interface__``; pinned batches."""
    library = importlib.import_module("torch")
    takes = [library.from_dlpack] if _cuda.SIMULATED else [library.from_dlpack, library.as_tensor]
    for take in takes:
        if take is library.as_tensor:
            take = lambda array: library.as_tensor(array, device=array.device)  # noqa: E731
        round_trip("torch", take, lambda array: array.cpu().numpy(), lambda array: array.data_ptr())
    if not _cuda.SIMULATED:
        pinned = library.from_numpy(filled("cpu").sample(32, pinned=True).observation["state"])
        assert pinned.is_pinned(), "torch: sample(pinned=True) gave pageable memory"
        pinned.to("cuda", non_blocking=True)
        print("torch: pinned batches are pinned")


def jax() -> None:
    """JAX, through DLPack. Without x64 it would round int64 and float64."""
    library = importlib.import_module("jax")
    library.config.update("jax_enable_x64", True)
    round_trip("jax", library.dlpack.from_dlpack, np.asarray, lambda array: array.unsafe_buffer_pointer())


def main() -> None:
    """All three, as far as they are installed."""
    tried = 0
    for check in (cupy, torch, jax):
        try:
            importlib.import_module(check.__name__)
        except ModuleNotFoundError:
            print(f"{check.__name__}: not installed")
            continue
        check()
        tried += 1
    print(f"{tried} libraries tried")


if __name__ == "__main__":
    main()
