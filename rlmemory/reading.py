"""Out of the memory, whole, by id or in chunks. Every result is fresh, or the caller's own `out`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import kernels
from .accept import at_least
from .arena import Arena
from .batch import Experience
from .results import Results, Target

#: From this size on a kernel that writes past the caches copies faster than NumPy does column by column.
_WORTH_A_KERNEL = 1 << 22


class Reading(Results):
    """The methods of `ReplayMemory` that hand out."""

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
            memory; one array kept alive keeps the whole block. They are `DeviceArray` for a memory on a GPU.

        Notes
        -----
        Costs one memcpy per field, two when the ring has wrapped. MATLAB: ``allExperiences``; ``matlab_compat``
        gives the same numbers in MATLAB's order of axes. Thread-safe; draws nothing.
        """
        with self._lock:
            oldest = self._oldest
            target = self._target(self._rows_plan((self._length,)), out)
            arrays = target.arrays
            self._copy_channels(target)
            if not isinstance(self._arena, Arena):
                first, arena = len(self._views), self._arena
                arena.describe(target.plan, target.block, first, oldest, self._length, self._single)
                return self._as_experience(arena.arrays(target.plan, target.block))
            terminated, truncated, source, ids = arrays[len(self._views) :]
            for first, last, done in self._spans(oldest, self._next_id):
                piece = slice(done, done + last - first)
                np.equal(self._is_done[first:last], 1, out=terminated[piece])
                np.equal(self._is_done[first:last], 2, out=truncated[piece])
                source[piece] = 0 if self._single else self._plain_sources(self._source[first:last])
            _count_from(oldest, ids)
            return self._as_experience(arrays)

    def _copy_channels(self, target: Target) -> None:
        """All rows of the channels, in their order."""
        runs = self._spans(self._oldest, self._next_id)
        backend = kernels.loaded()
        on_host = isinstance(self._arena, Arena)
        if on_host and (backend is None or target.plan.size < _WORTH_A_KERNEL):  # not worth loading numba
            for first, last, done in runs:
                for view, array in zip(self._views, target.arrays, strict=False):
                    array[done : done + last - first] = view[first:last]
            return
        runs_of_bytes = [
            (start + first * width, (last - first) * width, at + done * width)
            for start, width, at in target.plan.tables["all"].tolist()
            for first, last, done in runs
        ]
        table = np.array(runs_of_bytes, np.int64).reshape(-1, 3)
        if isinstance(self._arena, Arena) and backend is not None:
            backend.move(self._arena.block, table, target.block)
        elif not isinstance(self._arena, Arena):
            self._arena.move(table, target.block)

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
            axis. Fresh arrays, `DeviceArray` for a memory on a GPU.

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
            target = self._target(self._rows_plan(rows.shape), None)
            self._fill_experience(target, rows)
            return self._as_experience(self._given(target))

    def _fill_experience(self, target: Target, rows: NDArray[np.int64]) -> None:
        """All fields for the rows with these ids."""
        slots = np.asarray(rows % self._capacity)
        self._gather(target.plan.tables["all"], slots.ravel(), target.block)
        terminated, truncated, source, out_ids = target.arrays[len(self._views) :]
        code = self._is_done[slots]
        np.equal(code, 1, out=terminated)
        np.equal(code, 2, out=truncated)
        self._take_source(slots, source)
        out_ids[...] = rows

    def chunks(self, rows: int) -> Iterator[Experience]:
        """The experiences from oldest to newest, `rows` at a time.

        Parameters
        ----------
        rows : int
            Experiences in a chunk, from 1 up; the last chunk may have fewer.

        Returns
        -------
        iterator of Experience
            Over what is stored now: later appends do not show. Each chunk is fresh, of `DeviceArray` for a memory on a
            GPU.

        Raises
        ------
        StaleIdError
            On reaching rows that were overwritten since.
        """
        step = at_least("rows", rows, 1)
        with self._lock:
            oldest, end = self._oldest, self._next_id
        return (self.get(np.arange(first, min(first + step, end))) for first in range(oldest, end, step))


def _count_from(first: int, out: NDArray[np.int64]) -> None:
    """Fill `out` with first, first + 1, ...: doubling what is there costs half of an arange and a copy."""
    out[:1] = first
    done = 1
    while done < out.size:
        step = min(done, out.size - done)
        np.add(out[:step], done, out=out[done : done + step])
        done += step
