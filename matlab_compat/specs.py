"""`rlNumericSpec` and `rlFiniteSetSpec`: what the channels of an environment look like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rlmemory as rlm

from .cells import Cell
from .channels import DTYPES, Channel, core_shape, is_vector_of
from .display import properties, size_text
from .options import anything, name_value, one_of, text

_DATA_TYPE = one_of(*DTYPES)


class RLDataSpec:
    """What the two kinds of spec share.

    A spec is its own only element, as every MATLAB value is a 1-by-1 array: ``actInfo[0]`` works whether there
    is one channel or several.
    """

    __slots__ = ("Description", "Name", "_channel")

    Name: str
    Description: str
    _channel: Channel

    def _describe(self, dimension: tuple[int, ...], data_type: str) -> None:
        self._channel = Channel.of(dimension, DTYPES[data_type])

    @property
    def Dimension(self) -> tuple[int, ...]:
        """Size of the channel's data, two sizes or more; read-only."""
        return self._channel.dimension

    @property
    def DataType(self) -> str:
        """MATLAB class of the channel's data; read-only, given when the spec is made."""
        return next(name for name, dtype in DTYPES.items() if self._channel.dtype == dtype)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return [self][index]

    def __iter__(self) -> Iterator[Any]:
        yield self

    def __array__(self, *_arguments: Any, **_keywords: Any) -> Any:
        # Its first element is the spec again, so NumPy would look into it without end.
        raise TypeError("a spec is not an array: its size is spec.Dimension")

    def __repr__(self) -> str:
        named = [(name, getattr(self, name)) for name in self._shown]
        return properties(f"{type(self).__name__} with properties:", [
            *named, ("Name", self.Name), ("Description", self.Description),
            ("Dimension", np.array(self.Dimension)), ("DataType", self.DataType),
        ])  # fmt: skip

    _shown: tuple[str, ...] = ()


class rlNumericSpec(RLDataSpec):
    """A channel of continuous data.

    Parameters
    ----------
    dimension : sequence of int
        Size of the data, two sizes or more: ``[4, 1]`` is a column of four.
    LowerLimit, UpperLimit : number or array of `dimension`, default -inf and inf
        Kept as given; n numbers in a row are taken for a channel ``[n, 1]`` or ``[1, n]``. Data are not checked
        against them.
    Name, Description : str, default ""
    DataType : str, default "double"
        "double", "single", "int8" to "uint64", or "logical".

    Returns
    -------
    rlNumericSpec
        With the properties LowerLimit, UpperLimit, Name, Description (which can be assigned), Dimension and
        DataType (which cannot).

    Raises
    ------
    ValueError
        For a dimension that is not two or more whole numbers above 0, a limit of another size, an unknown DataType.

    Notes
    -----
    MATLAB counterpart: ``rlNumericSpec``. Dimension is a tuple. The rlmemory counterpart is ``NumericSpec``, where
    a shape has no trailing ones: ``[4, 1]`` here is ``(4,)`` there.

    Examples
    --------
    >>> obsInfo = rlNumericSpec([2, 1], LowerLimit=0, UpperLimit=[[1], [5]])
    >>> obsInfo
    rlNumericSpec with properties:
         LowerLimit: 0
         UpperLimit: [2×1 double]
               Name: ""
        Description: ""
          Dimension: [2 1]
           DataType: "double"
    >>> (obsInfo.UpperLimit * np.random.rand(2, 1)).shape
    (2, 1)
    """

    __slots__ = ("_lower", "_upper")

    _shown = ("LowerLimit", "UpperLimit")

    @name_value(LowerLimit=anything, UpperLimit=anything, Name=text, Description=text, DataType=_DATA_TYPE)
    def __init__(
        self,
        dimension: Sequence[int],
        *,
        LowerLimit: Any = -np.inf,
        UpperLimit: Any = np.inf,
        Name: str = "",
        Description: str = "",
        DataType: str = "double",
    ) -> None:
        self._describe(_checked_dimension(dimension), DataType)
        self.LowerLimit, self.UpperLimit = LowerLimit, UpperLimit
        self.Name, self.Description = Name, Description
        self._core()  # limits that contradict each other, or do not fit the DataType, are found here

    @property
    def LowerLimit(self) -> Any:
        """Smallest value: a number, or an array of the size Dimension."""
        return self._lower

    @LowerLimit.setter
    def LowerLimit(self, value: Any) -> None:
        self._lower = self._limit("LowerLimit", value)

    @property
    def UpperLimit(self) -> Any:
        """Largest value: a number, or an array of the size Dimension."""
        return self._upper

    @UpperLimit.setter
    def UpperLimit(self, value: Any) -> None:
        self._upper = self._limit("UpperLimit", value)

    def _limit(self, name: str, value: Any) -> Any:
        limit = np.array(value)
        if limit.dtype.kind not in "biuf":
            raise ValueError(f"rlNumericSpec: {name} must be a number or an array of numbers; got {value!r}")
        if limit.ndim == 0:
            return limit.item()
        limit = limit if limit.dtype.kind == "f" else limit.astype(np.float64)  # MATLAB's literals are doubles
        if core_shape(limit.shape) == self._channel.shape:
            return limit.reshape(self.Dimension)
        if limit.ndim == 1 and is_vector_of(limit.size, self.Dimension):
            return limit.reshape(self.Dimension)
        raise ValueError(
            f"rlNumericSpec: {name} has size {size_text(limit.shape)}; expected a number, or an array of the "
            f"size Dimension, {size_text(self.Dimension)}"
        )

    def _core(self) -> rlm.NumericSpec:
        low, high = (self._core_limit(limit) for limit in (self.LowerLimit, self.UpperLimit))
        shape, dtype = self._channel.shape, self._channel.dtype
        try:
            return rlm.NumericSpec(shape, dtype, low=low, high=high, name=self.Name, description=self.Description)
        except rlm.SpecError as error:
            raise rlm.SpecError(f"rlNumericSpec: LowerLimit or UpperLimit does not fit ({error})") from error

    def _core_limit(self, limit: Any) -> Any:
        infinite, values = np.isinf(limit), np.asarray(limit)
        if infinite.all() or (infinite.any() and self._channel.dtype.kind != "f"):
            return None  # integers have no infinity, and a limit of rlmemory is for all entries or for none
        return values if values.ndim == 0 else values.reshape(self._channel.shape)


class rlFiniteSetSpec(RLDataSpec):
    """A channel whose data are one of a few values.

    Parameters
    ----------
    elements : sequence of numbers, or cell of arrays of one size
        ``[1, 2, 3]`` allows three numbers; ``[[0, 1], [1, 0]]``, a cell of arrays, two columns of two.
    Name, Description : str, default ""
    DataType : str, default "double"
        "double", "single", "int8" to "uint64", or "logical".

    Returns
    -------
    rlFiniteSetSpec
        With the properties Elements (an array (n,), or a Cell of arrays; read-only), Name, Description, Dimension
        and DataType. Data are not checked against the elements.

    Raises
    ------
    ValueError
        For a single number, equal elements, or arrays of several sizes.

    Notes
    -----
    MATLAB counterpart: ``rlFiniteSetSpec``. A 1-D array of n in a cell is a column, Dimension ``[n, 1]``. The
    rlmemory counterpart is ``FiniteSetSpec``.

    Examples
    --------
    >>> rlFiniteSetSpec([1, 2, 3])
    rlFiniteSetSpec with properties:
           Elements: [1 2 3]
               Name: ""
        Description: ""
          Dimension: [1 1]
           DataType: "double"
    """

    __slots__ = ("_elements",)

    _shown = ("Elements",)

    @name_value(Name=text, Description=text, DataType=_DATA_TYPE)
    def __init__(self, elements: Any, *, Name: str = "", Description: str = "", DataType: str = "double") -> None:
        dimension, arrays = _checked_elements(elements)
        self._describe(dimension, DataType)
        self._elements = [array.reshape(dimension) for array in arrays]
        self.Name, self.Description = Name, Description
        self._core()  # equal elements, and those that do not fit the DataType, are found here

    @property
    def Elements(self) -> NDArray[Any] | Cell:
        """The values to choose from: an array (n,) of numbers, or a Cell of arrays; read-only."""
        dtype = self._channel.dtype
        if self.Dimension == (1, 1):
            return np.array([element.item() for element in self._elements], dtype)
        return Cell(element.astype(dtype) for element in self._elements)

    def _core(self) -> rlm.FiniteSetSpec:
        elements = np.stack([element.reshape(self._channel.shape) for element in self._elements])
        try:
            return rlm.FiniteSetSpec(elements, self._channel.dtype, name=self.Name, description=self.Description)
        except rlm.SpecError as error:
            shown = ", ".join(str(element.tolist()) for element in self._elements)
            raise rlm.SpecError(
                f"rlFiniteSetSpec: the elements {shown} must all be different and fit the DataType "
                f"{self.DataType!r}; a size such as [1 1] is not given here, it follows from the elements ({error})"
            ) from error


def _checked_dimension(dimension: Any) -> tuple[int, ...]:
    sizes = np.array(dimension)
    if sizes.ndim == 0 and sizes.dtype.kind in "iuf":
        raise ValueError(
            f"rlNumericSpec: dimension must have two sizes or more; got {dimension!r}: "
            f"write [{dimension}, 1] for a column, [1, {dimension}] for a row"
        )
    sizes = sizes.ravel()
    if sizes.size == 1 and sizes.dtype.kind in "iuf":
        raise ValueError(
            f"rlNumericSpec: dimension must have two sizes or more; got {dimension!r}: write [n, 1] or [1, n]"
        )
    if sizes.dtype.kind not in "iuf" or sizes.size < 2 or not ((sizes >= 1) & (sizes == np.floor(sizes))).all():
        raise ValueError(f"rlNumericSpec: dimension must be whole numbers above 0, as in [2, 1]; got {dimension!r}")
    return tuple(int(size) for size in sizes)


def _checked_elements(elements: Any) -> tuple[tuple[int, ...], list[NDArray[Any]]]:
    if isinstance(elements, (int, float, np.number)):
        raise ValueError(
            f"rlFiniteSetSpec: elements must be a list of values; got the number {elements!r}: "
            f"for the choices 1 to {elements!r} write list(range(1, {elements!r} + 1))"
        )
    if isinstance(elements, np.ndarray) and elements.dtype != object:
        if elements.ndim > 2 or (elements.ndim == 2 and 1 not in elements.shape):
            raise ValueError(
                f"rlFiniteSetSpec: elements came as an array of size {size_text(elements.shape)}; give a vector of "
                "numbers, or a list of arrays of one size"
            )
        elements = elements.ravel()
    entries = [
        np.asarray(entry) for entry in (elements.ravel(order="F") if isinstance(elements, np.ndarray) else elements)
    ]
    if not entries or any(entry.dtype.kind not in "biuf" for entry in entries):
        raise ValueError(
            f"rlFiniteSetSpec: elements must be one number or more, or arrays of numbers; got {elements!r}"
        )
    sizes = {_column_size(entry.shape) for entry in entries}
    if len(sizes) > 1:
        found = ", ".join(sorted(size_text(size) for size in sizes))
        raise ValueError(f"rlFiniteSetSpec: all elements must have one size; got {found}")
    return sizes.pop(), entries


def _column_size(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape + (1,) * (2 - len(shape))
