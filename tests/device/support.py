"""What the tests of memories on a GPU share. Without a device they run in Numba's simulator: NUMBA_ENABLE_CUDASIM=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory.device_array import DeviceArray, place_of
from rlmemory.kernels import _cuda

Spec = rlm.NumericSpec


def _is_there() -> bool:
    try:
        _cuda.device_number("cuda")
    except rlm.NotAvailableError:
        return False
    return True


SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
#: Whether memories on a GPU can be made in this process.
RUNS = SIMULATED or _is_there()
needs_device = pytest.mark.skipif(not RUNS, reason="no CUDA device; NUMBA_ENABLE_CUDASIM=1 runs it in the simulator")


# ---- arrays ---------------------------------------------------------------------------------------------------------


def on_host(value: Any) -> Any:
    """The same with a NumPy array for each DeviceArray."""
    if isinstance(value, DeviceArray):
        return value.copy_to_host()
    if isinstance(value, dict):
        return {key: on_host(part) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = [on_host(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


class Foreign:
    """An array of another library on the device, which shows no more than ``__cuda_array_interface__``."""

    def __init__(self, value: Any, *, lifted: Any = None, number: int | None = None, **changed: Any) -> None:
        self.array = rlm.to_device(value) if lifted is None else lifted
        self.shape, self.dtype = self.array.shape, self.array.dtype
        self.changed = changed
        if number is not None:
            self.__dlpack_device__ = lambda: (2, number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__cuda_array_interface__, **self.changed}


class ForeignDlpack:
    """An array of another library on the device, which knows DLPack and nothing else."""

    def __init__(self, value: Any, *, number: int = 0) -> None:
        self.array, self.number = rlm.to_device(value), number
        self.shape = self.array.shape

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        capsule = self.array.__dlpack__()
        place_of(capsule)[:] = self.__dlpack_device__()
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number


WRAPPERS = {"DeviceArray": rlm.to_device, "interface": Foreign, "DLPack": ForeignDlpack}


# ---- records --------------------------------------------------------------------------------------------------------


def leaves(value: Any, name: str = "") -> dict[str, Any]:
    """Every array in a record, by where it stands."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, tuple):
        pairs = list(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
    else:
        return {name: value}
    return {where: leaf for key, part in pairs for where, leaf in leaves(part, f"{name}.{key}").items()}


def agree(here: Any, there: Any) -> None:
    """Two results are equal to the byte: structure, dtypes, shapes, values."""
    assert type(here) is type(there)
    ours, theirs = leaves(here), leaves(on_host(there))
    assert ours.keys() == theirs.keys()
    for name, a in ours.items():
        b = theirs[name]
        if a is None or b is None:
            assert a is b, name
            continue
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), name


def all_on_device(record: Any) -> bool:
    return all(isinstance(leaf, DeviceArray) for leaf in leaves(record).values() if leaf is not None)


def bytes_of(memory: Any) -> tuple[Any, ...]:
    """Everything that a call that fails must leave as it is: rows, dead slots too, books, cursor, draws."""
    arena = memory._arena
    views = [np.asarray(view[0 : memory.capacity]).tobytes() for view in arena.views]
    books = arena.rewards.tobytes() if arena.on_device else b""
    draws = str(memory._rng.bit_generator.state)
    return views, books, memory._length, memory.next_id, memory.capacity, memory._single, draws


@contextmanager
def unchanged(memory: Any) -> Iterator[None]:
    """Check that a block leaves a memory as it was."""
    before = bytes_of(memory)
    yield
    assert bytes_of(memory) == before


# ---- pairs of memories ----------------------------------------------------------------------------------------------


class Pair:
    """Two memories, one on each device; what is asked of the pair is asked of both, and the answers compared."""

    def __init__(self, make: Any, **keywords: Any) -> None:
        self.here, self.there = make(device="cpu", **keywords), make(device="cuda", **keywords)

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **keywords: self.ask(name, *given, **keywords)

    def ask(self, name: str, *given: Any, **keywords: Any) -> Any:
        """Call a method of both; what comes out, or is raised, is the same."""
        results = []
        for memory in (self.here, self.there):
            try:
                results.append(getattr(memory, name)(*given, **keywords))
            except rlm.ReplayMemoryError as error:
                results.append((type(error).__name__, str(error)))
        here, there = results
        if hasattr(here, "__next__"):
            here, there = tuple(here), tuple(there)
        agree(here, there)
        return there

    def compare(self) -> None:
        """Rows, books and draws of both are equal."""
        self.ask("all")
        assert (len(self.here), self.here.ids) == (len(self.there), self.there.ids)
        assert self.here.capacity == self.there.capacity
        assert str(self.here._rng.bit_generator.state) == str(self.there._rng.bit_generator.state)
