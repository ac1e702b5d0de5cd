"""Arrays on a GPU: what a memory there hands out, and what other libraries bring."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import DataTypeError, ShapeError

Shape = tuple[int, ...]

_CUDA = (2, 13)  # DLPack's numbers for CUDA memory, plain and managed
_content = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_UNSEEN = "a DeviceArray is in the memory of a GPU, and NumPy cannot see it: x.copy_to_host() copies it to the host"
_BASIC = (int, np.integer, slice, type(None), type(Ellipsis))


class DeviceArray:
    """An array in the memory of a GPU, for CuPy, PyTorch or JAX to take without a copy.

    It knows where its numbers are and nothing to do with them: ``cupy.asarray(x)``, ``torch.as_tensor(x)``,
    ``torch.from_dlpack(x)`` and ``jax.dlpack.from_dlpack(x)`` share its memory, which lives as long as any of them.

    Memories on a GPU and `to_device` make it, from these parameters.

    Parameters
    ----------
    block : device array of bytes
        What it is cut from.
    at : int
        The byte at which it begins.
    shape : tuple of int
    dtype : numpy.dtype
    number : int
        Of the device.
    strides : tuple of int, optional
        Bytes from an entry to the next one, along each axis. Default: one behind the other, in C order.
    plan : optional
        How a result that it is a part of lies in the block, for `out`.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    device : str
        "cuda:0", "cuda:1", ...

    Notes
    -----
    Everything that was to be written here has been written when you get it: no stream needs to wait. Integers, slices,
    None and ``...`` as indices, `reshape` and `transpose` give views. NumPy cannot look into it: `copy_to_host` copies.

    MATLAB: ``gpuArray``.

    Examples
    --------
    >>> batch = rlm.ReplayMemory(spec, spec, 1000, device="cuda").sample(256)    # doctest: +SKIP
    >>> torch.from_dlpack(batch.observation)                                     # doctest: +SKIP
    """

    __slots__ = ("__weakref__", "_at", "_block", "_number", "_plan", "_strides", "dtype", "shape")

    def __init__(
        self,
        block: Any,
        at: int,
        shape: Shape,
        dtype: np.dtype[Any],
        number: int,
        strides: Shape | None = None,
        plan: Any = None,
    ) -> None:
        self._block, self._at, self._number, self._strides = block, at, number, strides
        self._plan = plan
        self.shape, self.dtype = shape, dtype

    # ---- what it is ---------------------------------------------------------------------------------------------

    @property
    def device(self) -> str:
        """Where it is, as `ReplayMemory` takes it."""
        return f"cuda:{self._number}"

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many entries it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its entries."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> Shape:
        """Bytes from an entry to the next one, along each axis."""
        if self._strides is not None:
            return self._strides
        steps, step = [], self.dtype.itemsize
        for length in reversed(self.shape):
            steps.append(step)
            step *= length
        return tuple(reversed(steps))

    @property
    def contiguous(self) -> bool:
        """Whether the entries lie one behind the other, in C order."""
        return self._strides is None or self._ghost().flags.c_contiguous

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[DeviceArray]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError(_UNSEEN)

    def __eq__(self, other: object) -> bool:
        raise TypeError(_UNSEEN)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        from .devices import to_device

        return to_device, (self.copy_to_host(), self.device)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"

    # ---- to the host --------------------------------------------------------------------------------------------

    def copy_to_host(self) -> NDArray[Any]:
        """A NumPy array with the same entries; waits for the device."""
        from .kernels import _cuda

        first, end = self._extent()
        with _cuda.using(self._number):
            raw = _cuda.download(self._block, first, end - first)
        view: NDArray[Any] = np.ndarray(self.shape, self.dtype, raw, self._at - first, self.strides)
        return view if view.flags.c_contiguous else view.copy(order="C")

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise TypeError(_UNSEEN)

    def _extent(self) -> tuple[int, int]:
        """The bytes of the block between the first and the last entry."""
        if not self.size:
            return self._at, self._at
        reach = [(length - 1) * step for length, step in zip(self.shape, self.strides, strict=True)]
        below, above = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        return self._at + below, self._at + above + self.dtype.itemsize

    # ---- views --------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> DeviceArray:
        parts = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(part, _BASIC) and not isinstance(part, bool) for part in parts):
            raise IndexError(
                f"a DeviceArray is indexed by integers, slices, None and ..., not by {key!r}; "
                "for more, take it into CuPy, PyTorch or JAX"
            )
        whole = parts if Ellipsis in parts else (*parts, Ellipsis)  # with it NumPy gives a view, never an entry
        ghost = self._ghost()
        return self._seen(ghost, ghost[whole])

    def reshape(self, *shape: Any, order: str = "C") -> DeviceArray:
        """A view of another shape, in C order.

        Parameters
        ----------
        *shape : int, or one tuple of int
            One of them may be -1.
        order : {"C"}
            As NumPy's function of this name passes it.

        Raises
        ------
        ShapeError
            Where it would need a copy.
        """
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        ghost = self._ghost()
        try:
            if order != "C":
                raise ValueError(f"order={order!r}")
            view = ghost.reshape(wanted, copy=False)
        except ValueError as error:
            raise ShapeError(f"reshape: {self.shape} does not become {wanted} without a copy ({error})") from error
        return self._seen(ghost, view)

    def transpose(self, *axes: Any) -> DeviceArray:
        """A view with the axes in another order; ``np.moveaxis`` works as well.

        Parameters
        ----------
        *axes : int, or one tuple of int
            Default: reversed.
        """
        ghost = self._ghost()
        return self._seen(ghost, ghost.transpose(*axes))

    def _ghost(self) -> NDArray[Any]:
        """An array with this one's shape, dtype and strides, whose entries are nowhere: for arithmetic on views."""
        return np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)

    def _seen(self, ghost: NDArray[Any], view: NDArray[Any]) -> DeviceArray:
        at = self._at + (view.ctypes.data - ghost.ctypes.data if view.size else 0)
        return DeviceArray(self._block, at, view.shape, self.dtype, self._number, view.strides)

    # ---- to other libraries -------------------------------------------------------------------------------------

    def _address(self) -> int:
        from .kernels import _cuda

        return _cuda.address(self._block) + self._at if self.size else 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        where = {"data": (self._address(), False), "strides": self._strides}
        return {"shape": self.shape, "typestr": self.dtype.str, **where, "version": 3}

    def __dlpack__(self, *, dl_device: Any = None, copy: bool | None = None, **_: Any) -> Any:
        """A capsule of DLPack, without a copy. No `stream` needs to wait."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"a DeviceArray is given as it lies on {self.device}; copy it there, or copy_to_host()")
        # NumPy writes it for an array at this address, which it does not look at; then the place is corrected.
        capsule = np.asarray(_Addressed(self)).__dlpack__()
        place_of(capsule)[:] = self.__dlpack_device__()
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        from .kernels import _cuda

        return (1, 0) if _cuda.SIMULATED else (_CUDA[0], self._number)


class _Addressed:
    """A device array for NumPy, as if it were on the host; it keeps the array alive."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.__array_interface__ = array.__cuda_array_interface__


def place_of(capsule: Any) -> Any:
    """The two numbers in a DLPack capsule that say on which device the memory is, to read or to write."""
    # A DLManagedTensor begins with the address of the data; the type and the number of the device follow.
    return (ctypes.c_int32 * 2).from_address(_content(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p))


class Borrowed(NamedTuple):
    """Somebody's array on the device, contiguous, for as long as a call takes.

    Attributes
    ----------
    block : device array of bytes
    at : int
        Where the array begins in `block`.
    shape, dtype
    """

    block: Any
    at: int
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        """Bytes in an entry along the first axis."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def rows(self, first: int, end: int) -> Borrowed:
        """Some of the entries along the first axis."""
        return self._replace(at=self.at + first * self.width, shape=(end - first, *self.shape[1:]))

    def copy_to_host(self) -> NDArray[Any]:
        """A NumPy array of it."""
        from .kernels import _cuda

        raw = _cuda.download(self.block, self.at, self.nbytes)
        return raw.view(self.dtype).reshape(self.shape)


def is_on_device(value: Any) -> bool:
    """Whether something is an array in a GPU's memory."""
    if isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        return False
    try:
        if hasattr(value, "__cuda_array_interface__"):
            return True
    except RuntimeError:  # PyTorch's word for a tensor there that requires grad; `viewed` passes it on
        return True
    where = getattr(value, "__dlpack_device__", None)
    return where is not None and where()[0] in _CUDA


def borrow(name: str, value: Any, number: int) -> Borrowed:
    """An array on device `number`, of any library, as it lies there.

    Raises
    ------
    DataTypeError
        When it is on another device.
    ShapeError
        When its entries do not lie one behind the other.
    """
    seen = viewed(name, value, number)
    if not seen.contiguous:
        raise ShapeError(
            f"{name}: the entries on the device do not lie one behind the other (strides {seen.strides}); "
            "give a copy that does, such as x.contiguous() or cupy.ascontiguousarray(x)"
        )
    return Borrowed(seen._block, seen._at, seen.shape, seen.dtype)


def viewed(name: str, value: Any, number: int) -> DeviceArray:
    """An array on device `number`, of any library, with whichever strides; it keeps its owner alive.

    Raises
    ------
    DataTypeError
        When it is on another device, or of a dtype that NumPy does not know.
    """
    from .kernels import _cuda

    theirs = _number_of(value, number)
    if theirs != number:
        raise DataTypeError(f"{name}: the array is on cuda:{theirs}, and is needed on cuda:{number}")
    if isinstance(value, DeviceArray):
        return value
    found = _interface(name, value)
    dtype, strides = np.dtype(found["typestr"]), found.get("strides")
    if dtype.kind not in "biufc" or found.get("mask") is not None:
        what = f"dtype {found['typestr']}" if found.get("mask") is None else "a mask, which would be lost"
        raise DataTypeError(f"{name}: expected an array of numbers, got one with {what}")
    _cuda.wait_for(value, found)
    array = DeviceArray(None, 0, tuple(found["shape"]), dtype, number, None if strides is None else tuple(strides))
    first, end = array._extent()  # the first may be negative: the address is that of the first entry
    array._block = _cuda.at_address(found["data"][0] + first, end - first, (value, found))
    array._at = -first
    return array


def _number_of(value: Any, otherwise: int) -> int:
    """On which device an array is; one that does not say is taken to be where it is needed."""
    if isinstance(value, DeviceArray):
        return value._number
    where = getattr(value, "__dlpack_device__", None)
    kind, number = where() if where is not None else (None, otherwise)
    return int(number) if kind in _CUDA else otherwise


def _interface(name: str, value: Any) -> dict[str, Any]:
    """What ``__cuda_array_interface__`` says, or would say for an array that knows DLPack only."""
    try:
        if hasattr(value, "__cuda_array_interface__"):
            described: dict[str, Any] = value.__cuda_array_interface__
            return described
        seen = np.from_dlpack(_AsIfOnHost(value))
    except (BufferError, RuntimeError, TypeError) as error:
        raise DataTypeError(
            f"{name}: the array cannot be taken as it is ({error}); convert it on the device"
        ) from error
    return {**seen.__array_interface__, "owner": seen}


class _AsIfOnHost:
    """An array that knows DLPack, for NumPy: NumPy takes the description, and nobody looks at the entries."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self.value.__dlpack__(stream=1)  # ready for the default stream, which is ours
        place_of(capsule)[:] = (1, 0)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0
