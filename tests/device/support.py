"""What the tests on a GPU, or on Numba's simulator of one, share."""

from __future__ import annotations

from typing import Any

import rlmemory as rlm
from rlmemory.device_array import place_of
from rlmemory.kernels import _cuda


def _runs() -> bool:
    try:
        _cuda.device_number("cuda")
    except rlm.NotAvailableError:
        return False
    return True


#: Whether there is a device, or the simulator of one: NUMBA_ENABLE_CUDASIM=1 before the process starts.
RUNS = _runs()


def on_host(value: Any) -> Any:
    """Arrays of the host in the place of those of the device."""
    return rlm.to_host(value)


class Foreign:
    """An array of another library, which shows itself by ``__cuda_array_interface__`` only."""

    def __init__(self, array: Any) -> None:
        self.array = rlm.to_device(array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__


class ForeignCapsule:
    """An array of another library, which shows itself by DLPack only."""

    def __init__(self, array: Any) -> None:
        self.array = rlm.to_device(array)

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self.array.__dlpack__()
        place_of(capsule)[:] = self.__dlpack_device__()
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0
