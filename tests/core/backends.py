"""One kernel on every back end there is: the same bytes."""

from __future__ import annotations

import os
import zlib
from types import ModuleType
from typing import Any

import numpy as np

from rlmemory import NotAvailableError, kernels
from rlmemory.kernels import cpu, reference

#: Numba runs the device's kernels as Python, some 2,000 threads a second: sizes that take long are made smaller.
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


def _cuda() -> ModuleType | None:
    try:
        return kernels._load("cuda")
    except NotAvailableError:
        return None


#: The device's kernels, where there is a device or a simulator.
CUDA = _cuda()
#: Sums of products, which a device may round once where a CPU rounds twice.
ROUNDED = {"nstep", "scan"}


def on_all(name: str, *inputs: Any, out: list[np.ndarray], compared: slice = slice(None)) -> list[np.ndarray]:
    """Run one kernel on each back end with equal arguments; they give equal bytes and leave their inputs alone."""
    before = [value.tobytes() for value in inputs if isinstance(value, np.ndarray)]
    results = {}
    for module in (reference, cpu, CUDA):
        if module is not None:
            arrays = [array.copy() for array in out]
            run = _lent if module is CUDA else _plain
            results[module.__name__] = run(getattr(module, name), inputs, arrays)
            assert [value.tobytes() for value in inputs if isinstance(value, np.ndarray)] == before
    wanted = results.pop(reference.__name__)
    for which, arrays in results.items():
        for k, (a, b) in enumerate(zip(wanted[compared], arrays[compared], strict=True)):
            assert _equal(a, b, name in ROUNDED and which.endswith("cuda")), f"{which}.{name}: output {k}\n{a}\n{b}"
    return wanted


def _plain(function: Any, inputs: tuple[Any, ...], out: list[np.ndarray]) -> list[np.ndarray]:
    function(*inputs, *out)
    return out


def _lent(function: Any, inputs: tuple[Any, ...], out: list[np.ndarray]) -> list[np.ndarray]:
    """With some arrays of the host and some of the device: which ones depends on the data, and so on nothing else."""
    from rlmemory.kernels._cuda import to_device

    arguments = [*inputs, *out]
    arrays = [value for value in arguments if isinstance(value, np.ndarray)]
    coin = zlib.crc32(b"".join(array.tobytes()[:1000] for array in arrays) + function.__name__.encode())
    for k, value in enumerate(arguments):
        if isinstance(value, np.ndarray) and (coin >> k) & 1:
            arguments[k] = to_device(value)
    function(*arguments)
    return [value if isinstance(value, np.ndarray) else value.copy_to_host() for value in arguments[len(inputs) :]]


def _equal(a: np.ndarray, b: np.ndarray, rounded: bool) -> bool:
    if rounded and not SIMULATED and a.dtype == np.float64:
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-12, atol=0.0))
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()
