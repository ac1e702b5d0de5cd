"""Arrays on a GPU: what a memory there hands out, and what other libraries bring."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ShapeError

Shape = tuple[int, ...]

CUDA = (2, 13)  # DLPack's numbers for CUDA memory, plain and managed
_content = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_UNSEEN = (
    "a DeviceArray is in the memory of a GPU, where NumPy cannot see it, and has no arithmetic of its own: take it "
    "into CuPy, PyTorch or JAX, as with torch.from_dlpack(x), or copy it with rlmemory.to_host(x)"
)
#: NumPy's functions that look at the shape only.
_ON_SHAPES = frozenset({np.moveaxis, np.transpose, np.reshape, np.shape, np.ndim, np.size})
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

    __slots__ = ("__weakref__", "_at", "_block", "_dtype", "_number", "_plan", "_shape", "_strides")

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
        self._shape, self._dtype = shape, dtype

    # ---- what it is ---------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Its lengths along each axis; `reshape` gives a view of another shape."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """What its entries are."""
        return self._dtype

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

    def _no_numbers(self, *_: Any, **__: Any) -> Any:
        raise TypeError(_UNSEEN)

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _no_numbers
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _no_numbers
    __neg__ = __pos__ = __abs__ = __invert__ = _no_numbers
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_numbers
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _no_numbers
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _no_numbers
    __array_ufunc__ = __array__ = _no_numbers

    def __array_function__(self, function: Any, types: Any, given: Any, keywords: Any) -> Any:
        # Without this, np.array_equal would take the error of __array__ for a "no".
        if function not in _ON_SHAPES:
            raise TypeError(_UNSEEN)
        return function._implementation(*given, **keywords)

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

    def _extent(self) -> tuple[int, int]:
        """The bytes of the block between the first and the last entry."""
        if not self.size:
            return self._at, self._at
        reach = [(length - 1) * step for length, step in zip(self.shape, self.strides, strict=True)]
        below, above = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        return self._at + below, self._at + above + self.dtype.itemsize

    def copy(self) -> DeviceArray:
        """A copy on the same device, its entries one behind the other in C order."""
        from .kernels import _cuda
        from .kernels.cuda_strided import pack

        with _cuda.using(self._number):
            block = _cuda.allocate(self.nbytes)
            if self.contiguous:  # the driver's own copy
                _cuda.transfer(self._block, self._at, self.nbytes, block, 0)
            else:
                pack(self._block, self._at, self.shape, self.strides, self.dtype.itemsize, block)
            _cuda.synchronize()
        return DeviceArray(block, 0, self.shape, self.dtype, self._number)

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

        return (1, 0) if _cuda.SIMULATED else (CUDA[0], self._number)


class _Addressed:
    """A device array for NumPy, as if it were on the host; it keeps the array alive."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.__array_interface__ = array.__cuda_array_interface__


def place_of(capsule: Any) -> Any:
    """The two numbers in a DLPack capsule that say on which device the memory is, to read or to write."""
    # A DLManagedTensor begins with the address of the data; the type and the number of the device follow.
    return (ctypes.c_int32 * 2).from_address(_content(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p))
