"""`gpuArray` and `gather`: to a GPU and back."""

from __future__ import annotations

from typing import Any

import rlmemory as rlm

from .arrays import dlarray


def gpuArray(X: Any) -> Any:
    """An array in the memory of a GPU.

    Parameters
    ----------
    X : array_like

    Returns
    -------
    None
        In this version it always raises.

    Raises
    ------
    rlmemory.NotAvailableError
        Always: this version keeps its arrays in the memory of the host. It never gives a host array instead.

    Notes
    -----
    MATLAB counterpart: ``gpuArray``. A framework moves a batch in one line: ``torch.from_dlpack(x).cuda()``.

    Examples
    --------
    >>> gpuArray(np.zeros(3))
    Traceback (most recent call last):
    ...
    rlmemory.errors.NotAvailableError: gpuArray (ReturnGpuArray) needs a CUDA device...
    """
    raise rlm.NotAvailableError(
        "gpuArray (ReturnGpuArray) needs a CUDA device that rlmemory can use, and this version has none: leave "
        "ReturnGpuArray false, and move the arrays with your framework, as in torch.from_dlpack(x).cuda()"
    )


def gather(X: Any) -> Any:
    """Bring an array from a GPU to the host.

    Parameters
    ----------
    X : dlarray, device array or anything else

    Returns
    -------
    ndarray, a copy, for a device array (one with ``copy_to_host``); a dlarray of it, with its labels, for a dlarray
    around one; whatever is on the host already, as it is

    Notes
    -----
    MATLAB counterpart: ``gather``.

    Examples
    --------
    >>> gather(np.arange(3.0))
    array([0., 1., 2.])
    """
    if isinstance(X, dlarray) and hasattr(X._data, "copy_to_host"):
        return dlarray(X._data.copy_to_host(), X._labels)
    return X.copy_to_host() if hasattr(X, "copy_to_host") else X
