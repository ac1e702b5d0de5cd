"""What device this is, and with which libraries: ``python -m tests.device.about``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import rlmemory
from rlmemory.kernels import _cuda

LIBRARIES = ("numpy", "numba", "numba-cuda", "cuda-bindings", "cupy-cuda13x", "cupy-cuda12x", "torch", "jax")


def installed(name: str) -> str | None:
    """The version of a library, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def main() -> None:
    """Say it, or fail where there is no device."""
    number = _cuda.device_number("cuda")
    free, total = _cuda.cuda.current_context().get_memory_info()
    print(f"device: {_cuda.device_name(number)}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free")
    print(f"rlmemory {rlmemory.__version__}")
    for name in LIBRARIES:
        found = installed(name)
        if found:
            print(f"{name} {found}")


if __name__ == "__main__":
    main()
