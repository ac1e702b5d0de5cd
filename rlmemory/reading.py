"""Out of the memory: whole, by id, in chunks, or drawn at random. Every result is fresh, or the caller's own `out`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import kernels
from .batch import Batch, Experience
from .blocks import Field, Plan
from .errors import EmptyMemoryError, NotAvailableError, StructureError
from .store import Store

_INT = np.dtype(np.int64)
_SOURCE: Field = ("source", np.dtype(np.int32), ())
_ROW: tuple[Field, ...] = (
    ("terminated", np.dtype(np.bool_), ()),
    ("truncated", np.dtype(np.bool_), ()),
    _SOURCE,
    ("id", _INT, ()),
)
_SAMPLE: tuple[Field, ...] = (
    ("mask", np.dtype(np.bool_), ()),
    ("is_first", np.dtype(np.bool_), ()),
    ("steps", _INT, ()),
    ("discount", np.dtype(np.float64), ()),
    ("weight", np.dtype(np.float64), ()),
)


class Reading(Store):
    """The methods of `ReplayMemory` that hand out."""

    # ---- whole, by id -------------------------------------------------------------------------------------------

    def all(self, *, out: Experience | None = None) -> Experience:
        """Every experience, oldest first.

        Parameters
        ----------
        out : Experience, optional
            A result of an earlier ``all()`` with the same number of rows: its arrays are filled again and returned.
            Do not pass what torch or JAX took without copying: it would change under them.

        Returns
        -------
        Experience
            With N = ``len(memory)`` rows. Its arrays are cut from one fresh block: a copy, never a view of the
            memory; one array kept alive keeps the whole block.

        Notes
        -----
        Costs one memcpy per field, two when the ring has wrapped. MATLAB: ``allExperiences``; ``matlab_compat``
        gives the same numbers in MATLAB's order of axes. Thread-safe; draws nothing.
        """
        with self._lock:
            length, oldest = self._length, self._oldest
            plan = self._plan(_ROW, (length,))
            _, arrays, result = self._target(plan, out)
            terminated, truncated, source, ids = arrays[len(self._views) :]
            for first, last, done in self._spans(oldest, self._next_id):
                piece = slice(done, done + last - first)
                for view, array in zip(self._views, arrays, strict=False):
                    array[piece] = view[first:last]
                np.equal(self._is_done[first:last], 1, out=terminated[piece])
                np.equal(self._is_done[first:last], 2, out=truncated[piece])
                source[piece] = 0 if self._single else self._source[first:last]
            _count_from(oldest, ids)
            return Experience._make(result)

    def get(self, ids: ArrayLike) -> Experience:
        """The experiences with these ids.

        Parameters
        ----------
        ids : int array_like, any shape
            Ids as `append`, `extend` and samples give them.

        Returns
        -------
        Experience
            Arrays of shape ``(*ids.shape, *shape)``, in the order of `ids`; a single id gives arrays without a batch
            axis. Fresh arrays.

        Raises
        ------
        StaleIdError
            When an id was overwritten or never stored.

        Notes
        -----
        Thread-safe; draws nothing. MATLAB has no counterpart.
        """
        with self._lock:
            rows = self._live(ids)
            plan = self._plan(_ROW, rows.shape)
            block, arrays, result = self._target(plan, None)
            slots = np.ascontiguousarray(rows % self._capacity).ravel()
            self._gather(plan, slots, block)
            terminated, truncated, source, out_ids = arrays[len(self._views) :]
            code = self._is_done[rows % self._capacity]
            np.equal(code, 1, out=terminated)
            np.equal(code, 2, out=truncated)
            source[...] = self._source[rows % self._capacity]
            out_ids[...] = rows
            return Experience._make(result)

    def chunks(self, rows: int) -> Iterator[Experience]:
        """The experiences from oldest to newest, `rows` at a time.

        Parameters
        ----------
        rows : int
            Experiences in a chunk, from 1 up; the last chunk may have fewer.

        Returns
        -------
        iterator of Experience
            Over what is stored now: later appends do not show. Each chunk is fresh.

        Raises
        ------
        StaleIdError
            On reaching rows that were overwritten since.
        """
        step = _at_least("rows", rows, 1)
        with self._lock:
            oldest, end = self._oldest, self._next_id
        return (self.get(np.arange(first, min(first + step, end))) for first in range(oldest, end, step))

    # ---- at random ----------------------------------------------------------------------------------------------

    def sample(
        self,
        batch_size: int,
        *,
        sequence_length: int = 1,
        n_step: int = 1,
        discount: float = 0.99,
        burn_in: int = 0,
        previous: bool = False,
        padding: str = "end",
        boundary: str = "stop",
        source: int | None = None,
        replace: bool = True,
        time_major: bool = False,
        out: Batch | None = None,
    ) -> Batch:
        """Draw experiences, each equally likely.

        Parameters
        ----------
        batch_size : int
            B, from 1 up.
        discount : float, default 0.99
            gamma in [0, 1], for ``Batch.discount``.
        source : int, optional
            Draw from the experiences of this source only.
        replace : bool, default True
            With replacement; False gives B different experiences.
        out : Batch, optional
            A result of the same call with the same options: its arrays are filled again and returned. Do not pass
            what torch or JAX took without copying.
        sequence_length, n_step, burn_in, previous, padding, boundary, time_major
            Windows over several steps; not in this version.

        Returns
        -------
        Batch
            Arrays ``(B, *shape)``, cut from one fresh block: a copy, never a view of the memory.

        Raises
        ------
        EmptyMemoryError
            When there is nothing to draw from, or too little for ``replace=False``.
        NotAvailableError
            For options of a later version.

        Notes
        -----
        Draws B uniforms ``u`` of the memory's own generator. With replacement, experience i is
        ``floor(u[i] * n)`` counted from the oldest; without, Fisher and Yates' shuffle. Same seed and same calls:
        same batches, on every back end. MATLAB: ``sample(buffer, batchSize)``. Thread-safe.
        """
        size = _at_least("batch_size", batch_size, 1)
        if (sequence_length, n_step, burn_in, previous, padding, boundary) != (1, 1, 0, False, "end", "stop"):
            _check_later(sequence_length, n_step, burn_in, previous, padding, boundary)
        gamma = _checked_discount(discount)
        with self._lock:
            plan = self._plan(_ROW + _SAMPLE, (size,))
            block, arrays, result = self._target(plan, out)
            ids, slots = arrays[len(self._views) + 3], np.empty(size, np.int64)
            self._draw(size, source, replace, ids, slots)
            self._fill(plan, block, arrays, slots, gamma)
            return Batch._make((*result, None, None))

    def epoch(self, batch_size: int, *, shuffle: bool = True, drop_last: bool = False) -> Iterator[Batch]:
        """Every experience exactly once, in batches.

        Parameters
        ----------
        batch_size : int
            B, from 1 up.
        shuffle : bool, default True
            In random order; False: oldest first.
        drop_last : bool, default False
            Leave out a last batch that has fewer than B rows.

        Returns
        -------
        iterator of Batch
            Over what is stored now: later appends do not show.

        Raises
        ------
        StaleIdError
            On reaching experiences that were overwritten since.

        Notes
        -----
        The order is drawn when `epoch` is called, with one uniform for each experience.
        """
        step = _at_least("batch_size", batch_size, 1)
        with self._lock:
            oldest, length = self._oldest, self._length
            order = _distinct(self._rng.random(length), length) if shuffle else np.arange(length)
        stop = length - length % step if drop_last else length
        return (self._batch_of(oldest + order[first : first + step]) for first in range(0, stop, step))

    def _batch_of(self, ids: NDArray[np.int64]) -> Batch:
        with self._lock:
            rows = self._live(ids)
            plan = self._plan(_ROW + _SAMPLE, rows.shape)
            block, arrays, result = self._target(plan, None)
            arrays[len(self._views) + 3][:] = rows
            self._fill(plan, block, arrays, rows % self._capacity, 0.99)
            return Batch._make((*result, None, None))

    # ---- parts --------------------------------------------------------------------------------------------------

    def _draw(
        self, size: int, source: int | None, replace: bool, out_ids: NDArray[np.int64], out_slots: NDArray[np.int64]
    ) -> None:
        """Ids and slots of `size` random experiences; no uniform is drawn when it cannot be done."""
        oldest, length = self._oldest, self._length
        rows = None if source is None else self._rows_of(source)
        length = length if rows is None else rows.size
        if length < (1 if replace else size):
            of = "" if source is None else f" of source {source}"
            what = f"{size} different ones were" if length else "a sample was"
            raise EmptyMemoryError(f"the memory holds {length} experiences{of}, and {what} asked for")
        u = self._rng.random(size)
        if replace and rows is None:
            kernels.active().uniform(u, oldest, length, self._capacity, out_ids, out_slots)
            return
        if replace:
            kernels.active().uniform(u, 0, length, length, out_ids, out_slots)
        else:
            out_ids[:] = _distinct(u, length)
        out_ids[:] = out_ids + oldest if rows is None else rows[out_ids]
        np.remainder(out_ids, self._capacity, out=out_slots)

    def _rows_of(self, source: int) -> NDArray[np.int64]:
        """The live ids of one source, oldest first; kept until the memory changes."""
        key = (self._next_id, self._length, self._edits, source)
        if self._candidates is None or self._candidates[0] != key:
            runs = self._spans(self._oldest, self._next_id)
            parts = [self._oldest + done + np.flatnonzero(self._source[a:b] == source) for a, b, done in runs]
            self._candidates = (key, np.concatenate([np.empty(0, np.int64), *parts]))
        return self._candidates[1]

    def _fill(
        self,
        plan: Plan,
        block: NDArray[np.uint8],
        arrays: tuple[NDArray[Any], ...],
        slots: NDArray[np.int64],
        discount: float,
    ) -> None:
        """All fields of a batch of single steps whose ids are in place."""
        self._gather(plan, slots, block)
        self._timeline.sync(self._oldest, self._next_id, self._source, self._single)
        terminated, truncated, source, ids, *rest = arrays[len(self._views) :]
        if self._single:
            source[...] = 0
        else:
            np.take(self._source, slots, out=source, mode="clip")
        kernels.active().annotate(
            ids, slots, self._oldest, self._capacity, discount, self._is_done, self._timeline.back,
            terminated, truncated, *rest,
        )  # fmt: skip

    def _gather(self, plan: Plan, slots: NDArray[np.int64], block: NDArray[np.uint8]) -> None:
        kernels.active().gather(self._arena.block, plan.table, slots, block)

    def _plan(self, tail: tuple[Field, ...], lead: tuple[int, ...]) -> Plan:
        """The layout of a result: the channels, then the fields of `tail`."""
        key = (len(tail), lead)
        plan = self._plans.get(key)
        if plan is None:
            channels: list[Field] = [(name, spec.dtype, spec.shape) for name, spec in self._named]
            plan = Plan([*channels, *tail], lead)
            rows = zip(self._arena.table.tolist(), plan.columns[: len(channels)], strict=False)
            plan.table = np.array([(start, width, c.start) for (start, width), c in rows], np.int64)
            if len(self._plans) >= 16:  # all() and get() of ever new sizes would pile up
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _target(
        self, plan: Plan, out: Experience | Batch | None
    ) -> tuple[NDArray[np.uint8], tuple[NDArray[Any], ...], tuple[Any, ...]]:
        """The bytes to fill, their arrays, and the arrays arranged as fields of an Experience or a Batch."""
        if out is None:
            block, arrays = plan.make()
        else:
            reused = plan.again(getattr(out, "id", None))
            if reused is None:
                raise StructureError(
                    f"out: expected the result of the same call with the same options and {plan.lead[0]} rows, got "
                    f"{type(out).__name__}; leave `out` away to get a new one"
                )
            block, arrays = reused
        return block, arrays, self._arranged(arrays)

    def _arranged(self, arrays: tuple[NDArray[Any], ...]) -> tuple[Any, ...]:
        """The arrays of a result as the fields of an Experience or a Batch."""
        if self._plain:  # one array a field: as they are, with no field of the user's own
            return (*arrays[:8], {}, *arrays[8:])
        fields, i = [], 0
        for group in self._groups:
            fields.append(group.pack(arrays[i : i + len(group.specs)]))
            i += len(group.specs)
        *channels, extra = fields
        return (*channels, *arrays[i : i + len(_ROW)], extra, *arrays[i + len(_ROW) :])


def _count_from(first: int, out: NDArray[np.int64]) -> None:
    """Fill `out` with first, first + 1, ...: doubling what is there costs half of an arange and a copy."""
    out[:1] = first
    done = 1
    while done < out.size:
        step = min(done, out.size - done)
        np.add(out[:step], done, out=out[done : done + step])
        done += step


def _distinct(u: NDArray[np.float64], length: int) -> NDArray[np.int64]:
    index = np.empty(u.size, np.int64)
    room = 1 << max(1, (2 * u.size).bit_length())
    kernels.active().distinct(u, length, np.empty(room, np.int64), np.empty(room, np.int64), index)
    return index


def _at_least(name: str, value: Any, least: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}: expected a whole number from {least} up, got {value!r}")
    return int(value)


def _checked_discount(discount: Any) -> float:
    value = float(discount)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"discount: expected a number from 0 to 1, got {discount!r}")
    return value


def _check_later(sequence_length: int, n_step: int, burn_in: int, previous: bool, padding: str, boundary: str) -> None:
    """The options that need the timeline: known, checked for sense, and not here yet."""
    wanted = {
        "sequence_length": _at_least("sequence_length", sequence_length, 1) > 1,
        "n_step": _at_least("n_step", n_step, 1) > 1,
        "burn_in": _at_least("burn_in", burn_in, 0) > 0,
        "previous": bool(previous),
    }
    if padding not in ("end", "start", "none"):
        raise ValueError(f"padding: expected 'end', 'start' or 'none', got {padding!r}")
    if boundary not in ("stop", "cross"):
        raise ValueError(f"boundary: expected 'stop' or 'cross', got {boundary!r}")
    for name, asked in wanted.items():
        if asked:
            raise NotAvailableError(f"{name}: windows over several steps are not in this version; leave it away")
