"""`dlarray`: arrays whose dimensions have labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

import rlmemory as rlm

from .display import class_name, size_text

_LABELS = "SCBTU"
_SEVERAL = "SU"


class dlarray(NDArrayOperatorsMixin):
    """An array whose dimensions may have labels.

    Parameters
    ----------
    X : array_like
        Any array; not copied.
    fmt : str, default ""
        One label a dimension: S spatial, C channel, B batch, T time, U unspecified. S and U may repeat. More labels
        than dimensions add dimensions of 1 at the end. "" gives an array without labels.

    Returns
    -------
    dlarray
        A view of `X`, its dimensions in the order S, C, B, T, U, so that "TCB" becomes "CBT".

    Raises
    ------
    ValueError
        For an unknown label, C, B or T given twice, or fewer labels than dimensions.

    Notes
    -----
    MATLAB counterpart: ``dlarray``. There is no automatic differentiation. NumPy's functions work on it: those
    that keep the number of dimensions keep the labels, others give an array without. Two labelled arrays must have
    the same labels. ``np.asarray(x)`` and ``__dlpack__`` share memory with the array inside.

    Examples
    --------
    >>> x = dlarray(np.zeros((5, 3, 2)), "TCB")
    >>> dims(x), x.shape
    ('CBT', (3, 2, 5))
    """

    __slots__ = ("_data", "_labels")

    _data: Any  # an ndarray, or a device array
    _labels: str

    def __init__(self, X: Any, fmt: str = "") -> None:
        given = X._data if isinstance(X, dlarray) else X
        data = given if hasattr(given, "__cuda_array_interface__") else np.asarray(given)
        labels = _checked_labels(fmt, data.ndim)
        if len(labels) > data.ndim:
            data = data.reshape(data.shape + (1,) * (len(labels) - data.ndim))
        order = sorted(range(len(labels)), key=lambda axis: _LABELS.index(labels[axis]))
        self._data = data.transpose(order) if order else data
        self._labels = "".join(labels[axis] for axis in order)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes, in the order of the labels."""
        return tuple(self._data.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return int(self._data.ndim)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self._data.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements."""
        dtype: np.dtype[Any] = self._data.dtype
        return dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._data, dtype=dtype, copy=copy)

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._data.__dlpack_device__()
        return int(kind), int(number)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if "out" in keywords:
            raise TypeError("a dlarray cannot be written to: assign the result instead of using out= or +=")
        found = {x._labels for x in inputs if isinstance(x, dlarray) and x._labels}
        if len(found) > 1:
            raise ValueError(f"labels {' and '.join(sorted(found))} differ; stripdims(x) removes them")
        labels = "".join(found) if ufunc.signature is None else ""
        plain = [x._data if isinstance(x, dlarray) else x for x in inputs]
        result = getattr(ufunc, method)(*plain, **keywords)
        if isinstance(result, tuple):
            return tuple(_relabelled(part, labels) for part in result)
        return _relabelled(result, labels)

    def __getitem__(self, key: Any) -> dlarray:
        return _relabelled(self._data[key], self._labels)

    def __len__(self) -> int:
        return len(self._data)

    def __float__(self) -> float:
        return float(self._data.item())

    def __bool__(self) -> bool:
        return bool(self._data)

    def __repr__(self) -> str:
        size = size_text(self.shape)
        if self._labels:
            size = "×".join(f"{n}({label})" for n, label in zip(self.shape, self._labels, strict=True))
        kind = "gpuArray dlarray" if hasattr(self._data, "__cuda_array_interface__") else "dlarray"
        return f"{size} {class_name(self.dtype)} {kind}\n{np.array2string(rlm.to_host(self._data))}"


def _relabelled(result: Any, labels: str) -> dlarray:
    return dlarray(result, labels if np.ndim(result) == len(labels) else "")


def _checked_labels(fmt: str, ndim: int) -> str:
    if not isinstance(fmt, str) or not set(fmt.upper()) <= set(_LABELS):
        raise ValueError(f"dlarray: labels are a text of the letters S, C, B, T, U; got {fmt!r}")
    labels = fmt.upper()
    for label in labels:
        if label not in _SEVERAL and labels.count(label) > 1:
            raise ValueError(
                f"dlarray: label {label} may appear once, in {fmt!r} it appears {labels.count(label)} times"
            )
    if labels and len(labels) < ndim:
        raise ValueError(f"dlarray: {ndim} dimensions need as many labels; got {len(labels)} in {fmt!r}")
    return labels


def dims(x: Any) -> str:
    """Labels of an array's dimensions.

    Parameters
    ----------
    x : dlarray or array

    Returns
    -------
    str
        Such as "SSCB"; "" without labels.

    Notes
    -----
    MATLAB counterpart: ``dims``.

    Examples
    --------
    >>> dims(dlarray(np.zeros((3, 2)), "CB"))
    'CB'
    """
    return x._labels if isinstance(x, dlarray) else ""


def finddim(x: dlarray, label: str) -> int | NDArray[np.int64]:
    """Which dimension has a label, counted from 1 as MATLAB counts.

    Parameters
    ----------
    x : dlarray
    label : str
        One of S, C, B, T, U.

    Returns
    -------
    int, or int64 array (k,) where the label appears k times, k not 1
        **Counted from 1**: the axis in NumPy is one less.

    Raises
    ------
    ValueError
        For an unknown label.

    Notes
    -----
    MATLAB counterpart: ``finddim``.

    Examples
    --------
    >>> x = dlarray(np.zeros((3, 2)), "CB")
    >>> finddim(x, "B"), x.shape[finddim(x, "B") - 1]
    (2, 2)
    """
    if label not in tuple(_LABELS):
        raise ValueError(f"finddim: a label is one of S, C, B, T, U; got {label!r}")
    found = [place for place, own in enumerate(dims(x), start=1) if own == label]
    return found[0] if len(found) == 1 else np.array(found, np.int64)


def stripdims(x: Any) -> Any:
    """The same array without labels.

    Parameters
    ----------
    x : dlarray or array

    Returns
    -------
    dlarray without labels, a view; anything else as it is

    Notes
    -----
    MATLAB counterpart: ``stripdims``.

    Examples
    --------
    >>> dims(stripdims(dlarray(np.zeros((3, 2)), "CB")))
    ''
    """
    return dlarray(x._data) if isinstance(x, dlarray) else x


def extractdata(x: dlarray) -> Any:
    """The array inside a dlarray.

    Parameters
    ----------
    x : dlarray

    Returns
    -------
    ndarray, or the device array that was put in; not a copy

    Raises
    ------
    TypeError
        When `x` is not a dlarray.

    Notes
    -----
    MATLAB counterpart: ``extractdata``.

    Examples
    --------
    >>> extractdata(dlarray(np.arange(3.0)))
    array([0., 1., 2.])
    """
    if not isinstance(x, dlarray):
        raise TypeError(f"extractdata expects a dlarray; got {type(x).__name__}, which needs no extraction")
    return x._data
