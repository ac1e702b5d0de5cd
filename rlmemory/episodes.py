"""Whole episodes: what there is, all of them padded, or some at random; and what looks wrong in a memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .accept import at_least, one_source
from .batch import Batch
from .errors import EmptyMemoryError
from .options import Options, checked_discount
from .results import matrix, sum_dtype
from .sampling import Sampling
from .statistics import constant_or_nan

Ints = NDArray[np.int64]

_PIECE = 1 << 14


class Episodes(NamedTuple):
    """The episodes in a memory, in the order of their first rows; one entry each.

    Attributes
    ----------
    first_id : int64 array (K,)
        Id of the oldest row that is still there.
    length : int64 array (K,)
        Rows.
    returns : float array (K,), or (K, *shape) for a vector reward
        Sums of the rewards, undiscounted, in the order of time.
    source : int32 array (K,)
    ended : str array (K,)
        "terminated", "truncated", "cut" (by `end_episode`), or "running".
    """

    first_id: Ints
    length: Ints
    returns: NDArray[Any]
    source: NDArray[np.int32]
    ended: NDArray[np.str_]


class Findings(NamedTuple):
    """What `check` found; all empty when nothing is wrong.

    Attributes
    ----------
    broken : int64 array
        Ids of running rows whose next observation is not the next observation of their source.
    nan : dict of int
        Channels with NaNs, and how many.
    constant : tuple of str
        Channels that have the same value everywhere.
    """

    broken: Ints
    nan: dict[str, int]
    constant: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not (self.broken.size or self.nan or self.constant)


class Episodic(Sampling):
    """The methods of `ReplayMemory` that know episodes."""

    def episodes(self) -> Episodes:
        """The episodes in the memory: where each begins, how long it is, what it earned and how it ended.

        Returns
        -------
        Episodes
            In the order of their first rows. An episode whose beginning was overwritten counts with what is left of
            it. Generated hindsight rows belong to none. NumPy arrays, also for a memory on a GPU.

        Notes
        -----
        Reads one code and one reward per row. MATLAB has no counterpart. Thread-safe.
        """
        with self._lock:
            rows, number, _, count = self._numbered()
            slots = rows % self._capacity
            length = np.bincount(number, minlength=count)
            first, last = np.empty(count, np.int64), np.empty(count, np.int64)
            first[number[::-1]] = rows[::-1]
            last[number] = rows
            spec = self._named[self._reward_column][1]
            rewards = matrix(self._reward_view[slots])
            wide = rewards.astype(np.complex128 if spec.dtype.kind == "c" else np.float64)
            sums = np.zeros((count, wide.shape[1]), wide.dtype)
            np.add.at(sums, number, wide)  # one row after another: the order of time
            returns = sums.reshape(count, *spec.shape).astype(sum_dtype(spec), copy=False)
            source = np.empty(count, np.int32)
            self._take_source(first % self._capacity, source)
            return Episodes(first, length, returns, source, self._endings(last))

    def _endings(self, last: Ints) -> NDArray[np.str_]:
        code = self._is_done[last % self._capacity]
        running = np.isin(last, self._timeline.tails(self._next_id))
        named: NDArray[np.str_] = np.select(
            [code == 1, code == 2, running], ["terminated", "truncated", "running"], "cut"
        ).astype("<U10")
        return named

    def trajectories(
        self, source: int | None = None, *, discount: float = 0.99, previous: bool = False, time_major: bool = False
    ) -> Batch:
        """Every episode in the memory, padded with zeros to the longest.

        Parameters
        ----------
        source : int, optional
            Those of this source only.
        discount, previous, time_major
            As in `sample`.

        Returns
        -------
        Batch
            Arrays ``(K, T, *shape)``: K episodes in the order of their first rows, T the longest; ``mask`` is True for
            real steps. Fresh arrays, `DeviceArray` for a memory on a GPU; nothing in them crosses an end or joins two
            sources.

        Notes
        -----
        TorchRL: ``split_trajectories`` of the data in time order. Thread-safe; draws nothing.
        """
        which = one_source(source)
        with self._lock:
            rows, number, step, count = self._numbered()
            if which is not None:
                mine = self._source[rows % self._capacity] == which
                rows, step = rows[mine], step[mine]
                kept, number = np.unique(number[mine], return_inverse=True)
                count = kept.size
            ids = np.full((count, int(step.max(initial=-1)) + 1), -1, np.int64)
            ids[number, step] = rows
            return self._episode_batch(ids, discount, previous, time_major)

    def sample_episodes(
        self, count: int, *, discount: float = 0.99, previous: bool = False, time_major: bool = False
    ) -> Batch:
        """Draw episodes that have ended, each equally likely, with replacement.

        Parameters
        ----------
        count : int
            B, from 1 up.
        discount, previous, time_major
            As in `sample`.

        Returns
        -------
        Batch
            Arrays ``(B, T, *shape)``, padded with zeros to the longest of the drawn ones; `DeviceArray` for a memory on
            a GPU.

        Raises
        ------
        EmptyMemoryError
            When no episode in the memory has ended.

        Notes
        -----
        An episode whose beginning was overwritten counts with what is left of it. Draws B uniforms.
        """
        size = at_least("count", count, 1)
        gamma = checked_discount(discount)
        with self._lock:
            rows, number, _, total = self._numbered()
            last = np.empty(total, np.int64)
            last[number] = rows
            ended = np.flatnonzero(self._endings(last) != "running")
            if not ended.size:
                raise EmptyMemoryError("sample_episodes: no episode in the memory has ended")
            chosen = self._pick(ended, size)
            order = np.argsort(number, kind="stable")
            length = np.bincount(number, minlength=total)
            start = np.cumsum(length) - length
            step = np.arange(int(length[chosen].max()))
            real = step < length[chosen, None]
            ids = np.where(real, rows[order[np.where(real, start[chosen, None] + step, 0)]], -1)
            return self._episode_batch(ids, gamma, previous, time_major)

    def _episode_batch(self, ids: Ints, discount: float, previous: bool, time_major: bool) -> Batch:
        options = Options(discount=checked_discount(discount), previous=bool(previous))
        slots = np.where(ids < 0, -1, ids % self._capacity)
        if time_major:
            ids, slots = np.ascontiguousarray(ids.T), np.ascontiguousarray(slots.T)
        plan = self._batch_plan(ids.shape, ids.shape[1 if time_major else 0], sums=False, previous=options.previous)
        return self._batch_of_rows(ids, slots, options, self._target(plan, None), 1.0)

    def _numbered(self) -> tuple[Ints, Ints, Ints, int]:
        """Ids of the rows that lie in episodes, their episode's number, their step in it, and how many there are."""
        self._sync()
        number, step, count = np.empty(self._length, np.int64), np.empty(self._length, np.int64), np.zeros(1, np.int64)
        kernels.active().number_episodes(
            self._oldest, self._next_id, self._capacity, self._is_done, self._timeline.back, number, step, count
        )
        rows = np.arange(self._oldest, self._next_id)
        alone = self._source[rows % self._capacity] < 0 if self._alone else np.zeros(0, np.bool_)
        if not alone.any():
            return rows, number, step, int(count[0])
        kept, number = np.unique(number[~alone], return_inverse=True)
        return rows[~alone], number, step[~alone], kept.size

    def check(self) -> Findings:
        """Look for what goes wrong when a memory is filled.

        Returns
        -------
        Findings
            ``broken``: running rows whose next observation differs from the observation that follows in their source
            (an episode's end was not reported, or rows of several sources were stored as one); ``nan`` and
            ``constant`` channels. A reset that was stored as a step fits its neighbours and does not show. NumPy
            arrays, also for a memory on a GPU.

        Notes
        -----
        Reads every byte a few times, on the host: for a look at a filled memory, not for a training loop. Thread-safe.
        """
        with self._lock:
            named = {name: view for (name, _), view in zip(self._named, self._views, strict=True)}
            constant, nan = constant_or_nan(named, self._spans(self._oldest, self._next_id))
            broken = [self._broken(first) for first in range(self._oldest, self._next_id, _PIECE)]
            return Findings(np.concatenate([np.empty(0, np.int64), *broken]), nan, constant)

    def _broken(self, first: int) -> Ints:
        rows = np.arange(first, min(first + _PIECE, self._next_id))
        _, slots = self._windows(rows, Options(after=2))
        linked = slots[:, 1] >= 0
        rows, here, there = rows[linked], slots[linked, 0], slots[linked, 1]
        differs = np.zeros(rows.size, np.bool_)
        for i in range(self._action_column):
            after = matrix(self._views[self._reward_column + 1 + i][here])
            seen = matrix(self._views[i][there])
            differs |= ((after != seen) & ~(np.isnan(after) & np.isnan(seen))).any(axis=1)
        return rows[differs]
