"""MATLAB's way of showing values, as text.

One difference: sizes are those of the NumPy array, trailing ones included, so that what is printed is what
``.shape`` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_CLASSES = {"float64": "double", "float32": "single", "bool": "logical", "complex128": "double"}
#: Rows and cells of up to this many entries are written out.
SHORT = 10


def class_name(dtype: np.dtype[Any]) -> str:
    """MATLAB's name of a dtype: ``double`` for float64."""
    return _CLASSES.get(dtype.name, dtype.name)


def size_text(shape: tuple[int, ...]) -> str:
    """``2×1×10`` for ``(2, 1, 10)``; a shape of fewer than two sizes is shown as MATLAB would have it, a row."""
    return "×".join(str(size) for size in (1,) * (2 - len(shape)) + tuple(shape))


def number(value: Any) -> str:
    """A number as ``format short`` has it: whole ones without a point, others with four decimals."""
    if isinstance(value, (complex, np.complexfloating)):
        sign = "-" if value.imag < 0 else "+"
        return f"{number(value.real)} {sign} {number(abs(value.imag))}i"
    real = float(value)
    if np.isnan(real):
        return "NaN"
    if np.isinf(real):
        return "Inf" if real > 0 else "-Inf"
    if real.is_integer() and abs(real) < 1e9:
        return str(int(value))
    return f"{real:.4f}" if 1e-3 < abs(real) < 1e3 else f"{real:.4e}"


def inline(value: Any) -> str:
    """A value on one line, as a field of a struct shows it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return number(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _array(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return _cell(list(np.ravel(value, order="F") if isinstance(value, np.ndarray) else value))
    if hasattr(value, "_inline"):
        return str(value._inline())  # a struct: any other name would be one of its fields
    if hasattr(value, "shape"):
        kind = "gpuArray" if hasattr(value, "__cuda_array_interface__") else type(value).__name__
        return f"[{size_text(value.shape)} {kind}]"
    if callable(value):
        return f"@{getattr(value, '__name__', type(value).__name__)}"
    return repr(value)


def _array(value: np.ndarray[Any, Any]) -> str:
    if value.size == 1 and value.ndim <= 2:
        return number(value.item())
    if value.shape == (0, 0):
        return "[]"
    is_row = value.ndim == 1 or (value.ndim == 2 and value.shape[0] == 1)
    if is_row and 0 < value.size <= SHORT:
        return f"[{' '.join(number(entry) for entry in value.ravel())}]"
    return f"[{size_text(value.shape)} {class_name(value.dtype)}]"


def _cell(entries: list[Any]) -> str:
    if len(entries) > SHORT:
        return f"{{1×{len(entries)} cell}}"
    return f"{{{'  '.join(_in_cell(entry) for entry in entries)}}}"


def _in_cell(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{{1×{len(value)} cell}}"
    text = inline(value)
    return text if text[0] in '["{@' else f"[{text}]"


def properties(title: str, pairs: Iterable[tuple[str, Any]]) -> str:
    """A title and one line a pair, the names flush right."""
    rows = list(pairs)
    width = 4 + max((len(name) for name, _ in rows), default=0)
    return "\n".join([title, *(f"{name:>{width}}: {inline(value)}" for name, value in rows)])
