"""What a channel looks like: shape, dtype and limits.

A spec describes one array of an experience: an observation channel, an action channel, a reward or a field of
the user's own. Specs are immutable; their arrays are read-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .errors import SpecError

if TYPE_CHECKING:
    import gymnasium

_KINDS = {"b": "bool", "i": "integer", "u": "integer", "f": "float", "c": "complex"}


def _checked_dtype(dtype: DTypeLike, owner: str) -> np.dtype[Any]:
    try:
        result = np.dtype(dtype)
    except TypeError as error:
        raise SpecError(f"{owner}: dtype {dtype!r} is not a NumPy dtype") from error
    if result.kind not in _KINDS:
        raise SpecError(
            f"{owner}: dtype {result} cannot be stored; use a bool, integer, float or complex dtype "
            "(text and objects belong into an array of codes)"
        )
    return result if result.isnative else result.newbyteorder("=")


def _checked_shape(shape: int | Sequence[int], owner: str) -> tuple[int, ...]:
    given: Any = shape
    sizes = tuple(given) if isinstance(given, Iterable) else (given,)
    for size in sizes:
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)) or size < 0:
            raise SpecError(f"{owner}: shape {shape!r} must be a tuple of whole numbers that are not negative")
    return tuple(int(size) for size in sizes)


def _as_numbers(value: ArrayLike, what: str, owner: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise SpecError(f"{owner}: {what} must be numbers, or arrays of one shape") from error
    if array.dtype.kind not in _KINDS:
        raise SpecError(f"{owner}: {what} must be numbers, got {value!r} of dtype {array.dtype}")
    return array


def _same_values(given: NDArray[Any], cast: NDArray[Any]) -> bool:
    """Whether a cast changed nothing. Compared both ways, since integers and floats are compared as floats."""
    with np.errstate(all="ignore"):
        return np.array_equal(cast, given) and np.array_equal(cast.astype(given.dtype), given)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


class NumericSpec:
    """An array of numbers, with optional limits.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of one entry; ``()`` is a scalar, ``n`` is short for ``(n,)``. Sizes of 0 are allowed.
    dtype : dtype-like, default "float64"
        Any bool, integer, float or complex dtype. The byte order is made native.
    low, high : array_like, optional
        Smallest and largest value, a scalar or an array that broadcasts to `shape`. They describe the channel
        (for policies, and for :meth:`to_space`); a memory does not enforce them. Not for complex dtypes.
    name, description : str, keyword-only
        For people.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    low, high : numpy.ndarray of `shape` and `dtype`, read-only, or None where no limit was given

    Raises
    ------
    SpecError
        For a dtype of text or objects, a negative size, limits that do not fit, or low above high.

    See Also
    --------
    FiniteSetSpec : a channel with a list of allowed entries.
    spec_from_space : from a Gymnasium space.

    Notes
    -----
    The MATLAB counterpart is ``rlNumericSpec``, whose dimension has at least two sizes: there ``[2 1]`` is what
    ``(2,)`` is here. ``matlab_compat`` translates.

    Examples
    --------
    >>> NumericSpec((2,), low=0, high=[1, 5])
    NumericSpec((2,), 'float64', low=0.0, high=[1. 5.])
    """

    __slots__ = ("_space", "description", "dtype", "high", "low", "name", "shape")

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: NDArray[Any] | None
    high: NDArray[Any] | None
    name: str
    description: str
    _space: str

    def __init__(
        self,
        shape: int | Sequence[int],
        dtype: DTypeLike = "float64",
        *,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        name: str = "",
        description: str = "",
    ) -> None:
        owner = f"NumericSpec {name!r}" if name else "NumericSpec"
        put = object.__setattr__
        put(self, "shape", _checked_shape(shape, owner))
        put(self, "dtype", _checked_dtype(dtype, owner))
        put(self, "low", self._limit(low, "low", owner))
        put(self, "high", self._limit(high, "high", owner))
        put(self, "name", str(name))
        put(self, "description", str(description))
        put(self, "_space", "box")
        if self.low is not None and self.high is not None and bool(np.any(self.low > self.high)):
            raise SpecError(f"{owner}: low {self.low} is above high {self.high}")

    def _limit(self, limit: ArrayLike | None, which: str, owner: str) -> NDArray[Any] | None:
        if limit is None:
            return None
        if self.dtype.kind == "c":
            raise SpecError(f"{owner}: complex numbers have no order, so {which} must be left out")
        given = _as_numbers(limit, which, owner)
        if given.dtype.kind == "c":
            raise SpecError(f"{owner}: {which}={limit!r} is complex, and {self.dtype} is not")
        if self.dtype.kind in "iu" and np.isinf(given).any():
            raise SpecError(
                f"{owner}: {which}={limit!r} is infinite, which {self.dtype} cannot hold; leave it out instead"
            )
        with np.errstate(all="ignore"):
            cast = given.astype(self.dtype)
        if self.dtype.kind in "biu" and not _same_values(given, cast):
            raise SpecError(f"{owner}: {which}={limit!r} does not fit {self.dtype}")
        if np.isnan(cast).any():
            raise SpecError(f"{owner}: {which}={limit!r} holds a NaN")
        try:
            return _frozen(np.broadcast_to(cast, self.shape).copy())
        except ValueError as error:
            raise SpecError(
                f"{owner}: {which} of shape {given.shape} does not fit the shape {self.shape}; "
                "give a scalar or an array of that shape"
            ) from error

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"specs are immutable: make a new {type(self).__name__} instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"specs are immutable: {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {slot: getattr(self, slot) for slot in self._slots()})

    @classmethod
    def _slots(cls) -> list[str]:
        return [slot for base in cls.__mro__ for slot in getattr(base, "__slots__", ())]

    def same_layout(self, other: NumericSpec) -> bool:
        """Whether an array for `other` can be stored here as it is: equal shape and dtype."""
        return self.shape == other.shape and self.dtype == other.dtype

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_equal(getattr(self, slot), getattr(other, slot)) for slot in self._slots())

    def __hash__(self) -> int:
        return hash((type(self), self.shape, self.dtype, self.name))

    def __repr__(self) -> str:
        parts = [repr(self.shape), repr(self.dtype.name)]
        parts += [f"low={_short(self.low)}"] if self.low is not None else []
        parts += [f"high={_short(self.high)}"] if self.high is not None else []
        parts += [f"name={self.name!r}"] if self.name else []
        return f"{type(self).__name__}({', '.join(parts)})"

    def to_space(self) -> gymnasium.Space[Any]:
        """The Gymnasium space of this channel.

        Returns
        -------
        gymnasium.Space
            ``Box``, or the kind of space that the spec was made from (``MultiDiscrete``, ``MultiBinary``). A bool
            channel gives a ``MultiBinary``. Limits that were left out become the widest of the dtype.

        Raises
        ------
        SpecError
            For a complex dtype: Gymnasium has no such space.
        """
        from .spaces import space_from_spec

        return space_from_spec(self)


class FiniteSetSpec(NumericSpec):
    """A channel with a finite list of allowed entries.

    Parameters
    ----------
    elements : sequence of scalars, or of arrays of one shape
        The entries, all different. ``[1, 2, 3]`` allows three scalars, ``[[0, 1], [1, 0]]`` two vectors.
    dtype : dtype-like, optional
        Default: the dtype that NumPy gives to `elements`.
    name, description : str, keyword-only
        For people.

    Attributes
    ----------
    elements : numpy.ndarray of shape ``(n, *shape)``, read-only
    shape, dtype, low, high
        As in :class:`NumericSpec`; the limits are the smallest and largest of the elements.

    Raises
    ------
    SpecError
        When there are no elements, two are equal, or they do not fit `dtype`.

    Notes
    -----
    The MATLAB counterpart is ``rlFiniteSetSpec``. A memory does not check that what it stores is in the set.

    Examples
    --------
    >>> FiniteSetSpec([1, 2, 3])
    FiniteSetSpec([1 2 3], 'int64')
    """

    __slots__ = ("elements",)

    elements: NDArray[Any]

    def __init__(
        self,
        elements: ArrayLike,
        dtype: DTypeLike | None = None,
        *,
        name: str = "",
        description: str = "",
    ) -> None:
        owner = f"FiniteSetSpec {name!r}" if name else "FiniteSetSpec"
        given = _as_numbers(elements, "elements", owner)
        if given.ndim == 0:
            raise SpecError(
                f"{owner}: elements must be a sequence, not the scalar {elements!r}; "
                f"for {elements!r} choices write range({elements!r})"
            )
        target = _checked_dtype(given.dtype if dtype is None else dtype, owner)
        if given.dtype.kind == "c" != target.kind:
            raise SpecError(f"{owner}: the elements are complex, and {target} is not")
        with np.errstate(all="ignore"):
            cast = given.astype(target)
        rounds = given.dtype.kind == target.kind and target.kind in "fc"
        if not rounds and not _same_values(given, cast):
            raise SpecError(f"{owner}: the elements {_short(given)} do not fit {target}")
        if len(cast) == 0:
            raise SpecError(f"{owner}: there must be at least one element")
        if len(np.unique(cast, axis=0)) != len(cast):
            raise SpecError(
                f"{owner}: the elements {_short(given)} are not all different; a set lists each of its entries "
                "once (a shape belongs into NumericSpec)"
            )
        limits = {} if target.kind == "c" else {"low": cast.min(axis=0), "high": cast.max(axis=0)}
        super().__init__(given.shape[1:], target, **limits, name=name, description=description)
        object.__setattr__(self, "elements", _frozen(np.ascontiguousarray(cast)))

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        return f"FiniteSetSpec({_short(self.elements)}, {self.dtype.name!r}{name})"


Spec: TypeAlias = NumericSpec
#: A spec, a tuple (or list) of specs, or a dict of specs: one level.
SpecStructure: TypeAlias = NumericSpec | Sequence[NumericSpec] | Mapping[str, NumericSpec]


def _rebuild(kind: type[NumericSpec], state: dict[str, Any]) -> NumericSpec:
    spec = kind.__new__(kind)
    for slot, value in state.items():
        object.__setattr__(spec, slot, _frozen(value) if isinstance(value, np.ndarray) else value)
    return spec


def _equal(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a is b or (type(a) is type(b) and not isinstance(a, np.ndarray) and a == b))


def _short(array: NDArray[Any] | None) -> str:
    values = np.asarray(array)
    if values.size > 1 and values.ndim > 0 and bool((values == values.flat[0]).all()):
        return str(values.flat[0])
    return np.array2string(values, threshold=8, edgeitems=2).replace("\n", "")


def spec_from_space(
    space: gymnasium.Space[Any], float_dtype: DTypeLike | None = None
) -> NumericSpec | tuple[NumericSpec, ...] | dict[str, NumericSpec]:
    """The spec, or structure of specs, of a Gymnasium space.

    Parameters
    ----------
    space : gymnasium.Space
        Box, Discrete, MultiDiscrete, MultiBinary, or a Tuple or Dict of these.
    float_dtype : dtype-like, optional
        Store float channels in this dtype instead of the space's own.

    Returns
    -------
    NumericSpec, FiniteSetSpec, tuple or dict of them
        ``Discrete(n, start=s)`` is a :class:`FiniteSetSpec` of ``s, ..., s + n - 1``. ``spec.to_space()`` gives
        back a space of the same kind.

    Raises
    ------
    SpecError
        For a space nested deeper than one level, or one whose entries have no fixed shape (Text, Graph,
        Sequence): flatten it first, for example with Gymnasium's ``FlattenObservation``.
    """
    from .spaces import structure_from_space

    return structure_from_space(space, float_dtype)
