"""An arena in the memory of a GPU.

The columns that are looked at to choose rows (reward, is_done, source) are on the host as well, 13 bytes a row for
most memories: choosing 256 rows takes the processor a few microseconds, and asking a device for anything takes more.
So the device moves bytes, and every draw, sum and weight is, bit for bit, that of a memory on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .blocks import Column, Field, Plan, lay_out
from .borrowed import Borrowed
from .device_array import DeviceArray
from .errors import SpecError

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

#: Appended rows wait on the host, in page-locked memory, until there are this many bytes of them or they are needed.
_STAGED = 1 << 18


class DeviceColumn:
    """One column as the rest of the package sees it: rows are read and written through the host.

    Attributes
    ----------
    dtype, shape
        As of the array (capacity, *shape) that it stands for.
    """

    __slots__ = ("_arena", "_layout", "_mirror", "_waiting", "dtype", "shape")

    def __init__(self, arena: DeviceArena, layout: Column, waiting: NDArray[Any], mirror: NDArray[Any] | None) -> None:
        self._arena, self._layout, self._waiting, self._mirror = arena, layout, waiting, mirror
        self.dtype, self.shape = layout.dtype, (arena.capacity, *layout.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __setitem__(self, slot: int, value: Any) -> None:
        self._waiting[self._arena.wait(slot, 1)] = value
        if self._mirror is not None:
            self._mirror[slot] = value

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if self._mirror is not None:
            seen: NDArray[Any] = self._mirror[key]
            return seen
        if isinstance(key, slice):
            first, end, _ = key.indices(len(self))
            return self._arena.rows(self._layout, first, max(first, end))
        return self.take(key)

    def take(self, slots: Any, axis: int = 0, **_: Any) -> NDArray[Any]:
        """The rows at these slots, on the host: what ``np.take(column, slots, axis=0)`` asks for."""
        wanted = np.asarray(slots, np.int64, order="C")
        if self._mirror is not None:
            return np.take(self._mirror, wanted, axis)
        table = np.array([[self._layout.start, self._layout.width, 0]], np.int64)
        raw = np.empty(wanted.size * self._layout.width, np.uint8)
        self._arena.gather(table, wanted.ravel(), raw)
        return raw.view(self.dtype).reshape(*wanted.shape, *self.shape[1:])


class DeviceArena:
    """Columns for `capacity` rows on a GPU.

    Parameters
    ----------
    fields : sequence of (name, dtype, shape)
        The columns, in their order; the last two are is_done and source.
    capacity : int
    number : int
        Of the device.
    mirrored : int
        A column that is kept on the host as well: the reward.

    Attributes
    ----------
    block : device array of bytes
    columns, nbytes, table, views
        As of `Arena`; the last two views are plain arrays on the host.
    """

    path = None

    def __init__(self, fields: Sequence[Field], capacity: int, number: int, mirrored: int) -> None:
        from .kernels import _cuda, cuda

        for name, dtype, _ in fields:
            if dtype.char in "gG":  # long doubles are the processor's own
                raise SpecError(f"{name}: no GPU knows numbers of dtype {dtype}; use float64 or complex128")
        self.number, self.capacity, self.on_device = number, capacity, True
        self._cuda, self._kernels = _cuda, cuda
        self.columns, self.nbytes = lay_out(fields, capacity)
        self.table = np.array([(c.start, c.width) for c in self.columns], np.int64)
        with _cuda.using(number):
            self.block = _cuda.allocate(self.nbytes)
            _cuda.clear(self.block, 0, self.nbytes)
            width = sum(c.width for c in self.columns)
            self._room = min(capacity, max(1, _STAGED // max(1, width)))
            self._waiting, staged = lay_out([(c.name, c.dtype, c.shape) for c in self.columns], self._room)
            self._staged, self._landing = _cuda.pinned(staged), _cuda.allocate(staged)
        self._first = self._count = 0
        self._cuts = [np.ndarray((self._room, *c.shape), c.dtype, self._staged, c.start) for c in self._waiting]
        self._lent: dict[Any, Any] = {}
        books = [np.zeros((capacity, *c.shape), c.dtype) for c in self.columns[-2:]]
        reward = self.columns[mirrored]
        self.rewards = np.zeros((capacity, *reward.shape), reward.dtype)
        self.views: list[Any] = [
            DeviceColumn(self, column, view, self.rewards if i == mirrored else None)
            for i, (column, view) in enumerate(zip(self.columns[:-2], self._cuts, strict=False))
        ]
        self.views += books

    # ---- in -----------------------------------------------------------------------------------------------------

    def wait(self, slot: int, rows: int) -> int:
        """Where in the staging block the rows from `slot` on belong, at most `_room` of them; makes room for them."""
        place = slot - self._first
        if self._count and 0 <= place <= self._count and place + rows <= self._room:
            self._count = max(self._count, place + rows)
            return place
        self.flush()
        self._first, self._count = slot, rows
        return 0

    def flush(self) -> None:
        """Bring the rows that wait to their places: one copy to the device and one kernel, for all columns."""
        count = self._count
        if not count:
            return
        table = [
            (here.start, count * here.width, there.start + self._first * there.width)
            for here, there in zip(self._waiting, self.columns, strict=True)
        ]
        for waiting, book in zip(self._cuts[-2:], self.views[-2:], strict=True):  # written on the host only
            waiting[:count] = book[self._first : self._first + count]
        self._landing.copy_to_device(self._staged)
        there = self._kept("move", np.array(table, np.int64), renewed=True)
        self._kernels.move(self._landing, there, self.block)
        self._count = 0  # last: after an error or an interrupt the rows still wait

    def write(self, first: int, end: int, columns: Sequence[Any], begin: int = 0) -> None:
        """The rows from `begin` on into the slots ``first <= slot < end``: host arrays or borrowed ones."""
        rows = end - first
        columns = [_rows_of(column, begin, begin + rows) for column in columns]
        on_host = all(isinstance(column, np.ndarray) for column in columns)
        if on_host and rows <= self._room:
            place = self.wait(first, rows)
            for view, column in zip(self._cuts, columns, strict=False):
                view[place : place + rows] = column
        else:
            self.flush()
            for layout, column in zip(self.columns, columns, strict=False):
                self.put(layout, first, end, column)
            self._cuda.synchronize()  # whoever owns a borrowed column may use it for something else from here on
        for view, column in zip(self.views, columns, strict=False):
            mirror = view._mirror if isinstance(view, DeviceColumn) else view
            if mirror is not None:
                mirror[first:end] = column.copy_to_host() if isinstance(column, Borrowed) else column

    def put(self, column: Column, first: int, end: int, values: Any) -> None:
        """Rows of one column, at once."""
        at = column.start + first * column.width
        if isinstance(values, Borrowed):
            self._cuda.transfer(values.block, values.at, values.nbytes, self.block, at)
            return
        whole = np.empty((end - first, *column.shape), column.dtype)
        whole[...] = values
        self._cuda.upload(_bytes_of(whole), self.block, at)

    def scatter(self, column: int, slots: Ints, values: Any) -> None:
        """Row i of `values` into ``slots[i]``; the last of equal slots wins."""
        view = self.views[column]
        self.flush()
        start, width = self.table[column]
        at, rows = (values.at, values.block) if isinstance(values, Borrowed) else (0, _bytes_of(values))
        self._kernels.scatter(rows, np.array([[at, width, start]], np.int64), slots, self.block)
        self._cuda.synchronize()
        mirror = view._mirror if isinstance(view, DeviceColumn) else view
        if mirror is not None:  # after the device, which may refuse
            host = values.copy_to_host() if isinstance(values, Borrowed) else values
            for slot, row in zip(slots.tolist(), host.reshape(slots.size, *mirror.shape[1:]), strict=True):
                mirror[slot] = row

    def copy_rows(self, first: int, end: int, old: Any, origin: int) -> None:
        """Rows of another arena of equal columns, from its slot `origin` on."""
        old.flush()
        for here, there in zip(self.columns, old.columns, strict=True):
            count = (end - first) * here.width
            at = here.start + first * here.width
            self._cuda.transfer(old.block, there.start + origin * there.width, count, self.block, at)
        for mine, theirs in zip((self.rewards, *self.views[-2:]), (old.rewards, *old.views[-2:]), strict=True):
            mine[first:end] = theirs[origin : origin + end - first]

    # ---- out ----------------------------------------------------------------------------------------------------

    def rows(self, column: Column, first: int, end: int) -> NDArray[Any]:
        """A copy of some rows of one column, on the host."""
        self.flush()
        raw = self._cuda.download(self.block, column.start + first * column.width, (end - first) * column.width)
        return raw.view(column.dtype).reshape(end - first, *column.shape)

    def gather(self, table: Ints, slots: Ints, block: Any) -> None:
        """What the kernel `gather` does, into a block on the device or on the host."""
        self.flush()
        table_there = self._kept(table.tobytes(), table)
        slots_there = self._kept(slots.size, slots, renewed=True)
        if not isinstance(block, np.ndarray):
            self._kernels.gather(self.block, table_there, slots_there, block)
            return
        there = self._cuda.allocate(block.size)
        self._kernels.gather(self.block, table_there, slots_there, there)
        for _, width, at in table.tolist():
            block[at : at + width * slots.size] = self._cuda.download(there, at, width * slots.size)

    def _kept(self, key: Any, array: Ints, *, renewed: bool = False) -> Any:
        """An array on the device, in memory that is used again: allocating costs more than a small launch."""
        there = self._lent.get(key)
        if there is None:
            if len(self._lent) >= 64:  # batches of ever new sizes would pile up
                self._lent.clear()
            there = self._lent[key] = self._cuda.to_device(array)
        elif renewed and array.size:  # in the order of the stream: after whatever still reads it
            there.copy_to_device(array)
        return there

    def describe(self, plan: Plan, block: Any, first: int, oldest: int, count: int, single: bool) -> None:
        """Ends, sources and ids of all rows, into the columns of a result from number `first` on; waits for it."""
        from .kernels.cuda_books import describe

        codes, sources = (column.start for column in self.columns[-2:])
        places = (column.start for column in plan.columns[first:])
        describe(self.block, codes, sources, single, oldest, count, self.capacity, block, *places)
        self._cuda.synchronize()

    def forget_sources(self) -> None:
        """Let all rows be of source 0."""
        self.views[-1][:] = 0
        self._cuda.clear(self.block, self.columns[-1].start, self.columns[-1].width * self.capacity)

    def move(self, table: Ints, block: Any) -> None:
        """What the kernel `move` does, into a block on the device."""
        self.flush()
        self._kernels.move(self.block, table, block)

    def make(self, plan: Plan) -> Any:
        """Bytes on the device for a result."""
        return self._cuda.allocate(plan.size)

    def again(self, plan: Plan, array: Any) -> Any:
        """The bytes behind a result of such a plan, to be filled again; else None."""
        laid_out = getattr(array, "_plan", None)
        if laid_out is None or array._number != self.number or laid_out.columns != plan.columns:
            return None
        return array._block

    def arrays(self, plan: Plan, block: Any) -> tuple[DeviceArray, ...]:
        """The arrays of a result, as it is handed out."""
        return tuple(DeviceArray(block, c.start, c.shape, c.dtype, self.number, None, plan) for c in plan.columns)

    def finish(self, plan: Plan, block: Any, bytes_: Bytes, pieces: Sequence[tuple[int, int]]) -> None:
        """Bring the parts that the host has filled to the device, and wait until all is there."""
        for first, last in pieces:
            start, end = plan.columns[first].start, plan.columns[last]
            self._cuda.upload(bytes_[start : end.start + end.width], block, start)
        self._cuda.synchronize()


def _rows_of(column: Any, first: int, end: int) -> Any:
    return column.rows(first, end) if isinstance(column, Borrowed) else column[first:end]


def _bytes_of(array: NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
