"""The lock of a memory on a GPU: who holds it also works on the memory's device."""

from __future__ import annotations

import os
import threading
from typing import Any

from .errors import NotAvailableError


class DeviceLock:
    """A reentrant lock.

    Parameters
    ----------
    number : int
        The device: each thread has a current one of its own, and it may be another.
    """

    def __init__(self, number: int) -> None:
        self._number, self._lock, self._entered = number, threading.RLock(), []  # type: ignore[var-annotated]
        self._pid = os.getpid()

    def __enter__(self) -> DeviceLock:
        from .kernels import _cuda

        if self._pid != os.getpid():
            raise NotAvailableError(_cuda.FORKED)
        self._lock.acquire()
        try:
            here = _cuda.using(self._number)
            here.__enter__()
            self._entered.append(here)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._entered.pop().__exit__(*error)
        finally:
            self._lock.release()
