"""Drawing experiences: which rows, and what is given of each.

A draw chooses rows; a window is what lies around a chosen row in its chain. Memories that choose otherwise (by
priority, say) replace `_propose` and `_propose_legal`; everything else here serves them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .accept import at_least, one_source
from .batch import Batch
from .blocks import Plan
from .errors import EmptyMemoryError
from .options import Options, checked_discount, checked_options
from .results import Results, Target, as_float64

Ints = NDArray[np.int64]

#: Draws that hit no legal start are drawn again this often; then the legal starts are listed. Where most starts are
#: legal the list is never needed, and the cost does not grow with the memory.
_TRIES = 4
_NO_ROWS = np.empty(0, np.int64)
_SUMMED = (np.dtype(np.float32), np.dtype(np.float64))


class Sampling(Results):
    """The methods of `ReplayMemory` that draw."""

    #: Whether `sample` may fill single rows itself; a memory that changes what it gives does so in `_batch`.
    _direct = True

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
        pinned: bool = False,
    ) -> Batch:
        """Draw experiences, each equally likely, alone or with those around them.

        Parameters
        ----------
        batch_size : int
            B, from 1 up.
        sequence_length : int, default 1
            T: steps of a window. A window follows the rows of its own source, ends with their episode, and never runs
            past the newest row or over an `end_episode`.
        n_step : int, default 1
            Sum up to so many rewards into one step: ``sum of discount**k * reward[k]`` over the steps that are really
            there, `next_observation` and the ends from the last of them, all else from the first. Sums of integer
            rewards are float64. Not together with `sequence_length` or `burn_in`.
        discount : float, default 0.99
            gamma in [0, 1], for ``Batch.discount`` and the sums.
        burn_in : int, default 0
            k: the window has k steps more, and they come before the chosen row. Where the episode has none, they are
            zeros with mask False.
        previous : bool, default False
            Also give the action and the reward of the step before each one, zeros at an episode's start.
        padding : {"end", "start", "none"}
            "end": any row may be the first of a window, zeros follow where its episode ends. "start": any row may be
            the last, zeros before. "none": full windows only, each of them equally likely.
        boundary : {"stop", "cross"}
            "cross" lets windows run on into the next episode of their source; ``is_first`` says where.
        source : int, optional
            Draw from the experiences of this source only.
        replace : bool, default True
            With replacement; False gives B different chosen rows.
        time_major : bool, default False
            ``[time, batch, ...]`` instead of ``[batch, time, ...]``, for windows.
        out : Batch, optional
            A result of the same call with the same options: its block is filled again. Use what is returned; do not
            pass what torch or JAX took without copying.
        pinned : bool, default False
            Give page-locked memory, which a GPU copies from without a detour and while the processor goes on
            (``torch.from_numpy(x).to("cuda", non_blocking=True)``). Locking a fresh block takes much longer than
            filling it: use `out` in a loop, once the copies of the block are done. Needs a CUDA device; not for a
            memory on one.

        Returns
        -------
        Batch
            Arrays ``(B, *shape)``, or ``(B, k + T, *shape)`` for windows, cut from one fresh block: a copy, never a
            view of the memory. They are `DeviceArray` for a memory on a GPU.

        Raises
        ------
        EmptyMemoryError
            When there is nothing to draw from: no rows, no full window, or too few for ``replace=False``.
        ValueError
            For an option out of its range, or two that contradict each other.
        NotAvailableError
            For `pinned` without a CUDA driver or device.

        Notes
        -----
        Draws B uniforms ``u`` of the memory's own generator. With replacement, row i is ``floor(u[i] * n)`` counted
        from the oldest; without, Fisher and Yates' shuffle. For ``padding="none"``, rows that begin no full window are
        drawn again up to four times, then from the list of those that do. Same seed and same calls: same batches, on
        every back end.

        MATLAB: ``sample(buffer, batchSize, SequenceLength=, NStepHorizon=, DiscountFactor=)``. Thread-safe.
        """
        size = at_least("batch_size", batch_size, 1)
        if (sequence_length, n_step, burn_in, previous, padding, boundary) == (1, 1, 0, False, "end", "stop"):
            options = Options(discount=checked_discount(discount))
        else:
            options = checked_options(
                sequence_length, n_step, discount, burn_in, previous, padding, boundary, time_major
            )
        source = one_source(source)
        with self._lock:
            target = self._prepared(size, options, out, pinned)  # before anything is drawn: it may refuse `out`
            if not (options.plain and replace and self._direct):
                return self._batch(self._choose(size, options, source, replace), options, target)
            chosen, slots = self._propose(size, source)  # the usual call, with nothing on the way
            self._fill_rows(target, chosen, slots, options.discount)
            target.arrays[self._weight_column][:] = self._weights(chosen)
            return self._as_batch(self._given(target))

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
            Over what is stored now: later appends do not show. The arrays are as those of `sample`.

        Raises
        ------
        StaleIdError
            On reaching experiences that were overwritten since.

        Notes
        -----
        The order is drawn when `epoch` is called, with one uniform for each experience.
        """
        step = at_least("batch_size", batch_size, 1)
        with self._lock:
            oldest, length = self._oldest, self._length
            order = _distinct(self._rng.random(length), length) if shuffle else np.arange(length)
        stop = length - length % step if drop_last else length
        return (self._batch_of(oldest + order[first : first + step]) for first in range(0, stop, step))

    def _batch_of(self, ids: Ints) -> Batch:
        with self._lock:
            rows = self._live(ids)
            target = self._prepared(rows.size, Options(), None, False)
            return self._batch_of_rows(rows, rows % self._capacity, Options(), target, 1.0)

    # ---- which rows ---------------------------------------------------------------------------------------------

    def _propose(self, size: int, source: int | None) -> tuple[Ints, Ints]:
        """Ids and slots of `size` rows drawn with replacement; no uniform is drawn when there is nothing to draw."""
        ids, slots = np.empty(size, np.int64), np.empty(size, np.int64)
        if source is None:
            self._check_any(self._length, source)
            u = self._rng.random(size)
            kernels.active().uniform(u, self._oldest, self._length, self._capacity, ids, slots)
            return ids, slots
        rows = self._rows_of(source)
        self._check_any(rows.size, source)
        ids = self._pick(rows, size)
        return ids, ids % self._capacity

    def _propose_legal(self, size: int, options: Options, source: int | None) -> Ints:
        """Like `_propose`, from the list of the rows that begin a full window."""
        return self._pick(self._legal_rows(options, source), size)

    def _weights(self, ids: Ints) -> Any:
        """Importance weights of the drawn rows: an array, or a number that holds for all."""
        return 1.0

    def _pick(self, rows: Ints, size: int) -> Ints:
        """`size` of `rows`, each equally likely, with replacement."""
        index, same = np.empty(size, np.int64), np.empty(size, np.int64)
        kernels.active().uniform(self._rng.random(size), 0, rows.size, rows.size, index, same)
        return rows[index]

    def _check_any(self, count: int, source: int | None) -> None:
        if count == 0:
            raise EmptyMemoryError(f"sample: there are no experiences{_of(source)} to draw from; append some first")

    def _choose(self, size: int, options: Options, source: int | None, replace: bool) -> Ints:
        """The ids of `size` chosen rows, each of which begins a window of the wanted kind."""
        if not replace:
            rows = self._legal_rows(options, source)
            if rows.size < size:
                raise EmptyMemoryError(
                    f"replace=False: {size} different experiences{_of(source)} were asked for, "
                    f"and there are {rows.size}" + (" that begin a full window" if options.full else "")
                )
            return rows[_distinct(self._rng.random(size), rows.size)]
        if not options.full:
            return self._propose(size, source)[0]
        state = self._rng.bit_generator.state
        ids, _ = self._propose(size, source)
        bad = np.flatnonzero(~self._begins_full(ids, options))
        for _ in range(_TRIES):
            if not bad.size:
                return ids
            ids[bad], _ = self._propose(bad.size, source)
            bad = bad[~self._begins_full(ids[bad], options)]
        if bad.size:
            try:
                ids[bad] = self._propose_legal(bad.size, options, source)
            except EmptyMemoryError:
                self._rng.bit_generator.state = state  # a call that fails draws nothing
                raise
        return ids

    def _begins_full(self, ids: Ints, options: Options) -> NDArray[np.bool_]:
        rows, _ = self._windows(ids, options._replace(before=0))
        full: NDArray[np.bool_] = rows[:, -1] >= 0
        return full

    def _legal_rows(self, options: Options, source: int | None) -> Ints:
        """The ids that may be chosen, oldest first. Lists are kept until the memory changes."""
        width = options.after if options.full else 1
        key = (self._next_id, self._length, self._edits, source, width, options.stop)
        if self._candidates is None or self._candidates[0] != key:
            rows = np.arange(self._oldest, self._next_id) if source is None else self._rows_of(source)
            if options.full:
                self._sync()
                count = np.empty(self._length, np.int64)
                kernels.active().remaining(
                    self._oldest,
                    self._next_id,
                    self._capacity,
                    options.stop,
                    self._is_done,
                    self._timeline.ahead,
                    count,
                )
                rows = rows[count[rows - self._oldest] >= options.after]
                if not rows.size:
                    raise EmptyMemoryError(
                        f"padding='none': no episode{_of(source)} in the memory has {options.after} steps; "
                        "padding='end' or 'start' takes shorter ones"
                    )
            self._candidates = (key, rows)
        return self._candidates[1]

    def _rows_of(self, source: int) -> Ints:
        """The live ids of one source, oldest first; kept until the memory changes."""
        key = (self._next_id, self._length, self._edits, source)
        if self._by_source is None or self._by_source[0] != key:
            runs = self._spans(self._oldest, self._next_id)
            parts = [self._oldest + done + np.flatnonzero(self._is_from(source, slice(a, b))) for a, b, done in runs]
            self._by_source = (key, np.concatenate([_NO_ROWS, *parts]))
        return self._by_source[1]

    # ---- what is given of them ----------------------------------------------------------------------------------

    def _sync(self) -> None:
        self._timeline.sync(self._oldest, self._next_id, self._source, self._single)

    def _windows(self, chosen: Ints, options: Options) -> tuple[Ints, Ints]:
        """Ids and slots (B, width) of the rows around each chosen one; -1 where there is none."""
        self._sync()
        ids, slots = (np.empty((chosen.size, options.before + options.after), np.int64) for _ in range(2))
        kernels.active().window(
            chosen, self._oldest, self._next_id, self._capacity, options.before, options.stop, self._is_done,
            self._timeline.back, self._timeline.ahead, ids, slots,
        )  # fmt: skip
        return ids, slots

    def _prepared(self, windows: int, options: Options, out: Batch | None, pinned: bool) -> Target:
        """Where the batch of this call goes."""
        return self._target(self._plan_of(windows, options), out, pinned=pinned)

    def _plan_of(self, windows: int, options: Options) -> Plan:
        """How the batch of a call lies in its block."""
        lead: tuple[int, ...] = (windows,)
        if options.n_step == 1 and options.width > 1:
            lead = (options.width, windows) if options.time_major else (windows, options.width)
        return self._batch_plan(lead, windows, sums=options.n_step > 1, previous=options.previous)

    def _batch(self, chosen: Ints, options: Options, target: Target) -> Batch:
        """Everything about the chosen rows, and about those in their windows."""
        weights = self._weights(chosen)
        if options.n_step > 1:
            self._fill_sums(target, chosen, options)
            target.arrays[self._weight_column][:] = weights
            return self._as_batch(self._given(target))
        if options.width > 1:
            ids, slots = self._windows(chosen, options)
            if options.time_major:
                ids, slots = np.ascontiguousarray(ids.T), np.ascontiguousarray(slots.T)
        else:
            ids, slots = chosen, chosen % self._capacity
        return self._batch_of_rows(ids, slots, options, target, weights)

    def _batch_of_rows(self, ids: Ints, slots: Ints, options: Options, target: Target, weights: Any) -> Batch:
        """The batch of these rows, one-dimensional or in windows, -1 at padding."""
        self._fill_rows(target, ids, slots, options.discount, options.previous)
        target.arrays[self._weight_column][:] = weights
        return self._as_batch(self._given(target))

    def _fill_rows(self, target: Target, ids: Ints, slots: Ints, discount: float, previous: bool = False) -> None:
        """All fields but the weights, for rows that each stand for themselves."""
        plan, block, arrays, _ = target
        rest = arrays[len(self._views) : self._weight_column]
        if ids.ndim > 1:
            ids, slots = ids.reshape(-1), slots.reshape(-1)
            rest = tuple(array.reshape(-1) for array in rest)
        terminated, truncated, source, out_ids, *notes = rest
        self._sync()
        self._gather(plan.tables["all"], slots, block)
        out_ids[:] = ids
        self._take_source(slots, source)
        before = np.empty(slots.size, np.int64) if previous else _NO_ROWS
        kernels.active().annotate(
            ids, slots, self._oldest, self._capacity, discount, self._is_done, self._timeline.back,
            terminated, truncated, *notes, before,
        )  # fmt: skip
        if previous:
            self._gather(plan.tables["previous"], before, block)

    def _fill_sums(self, target: Target, chosen: Ints, options: Options) -> None:
        """All fields but the weights, for sums over up to n steps."""
        plan, block, arrays, _ = target
        _, slots = self._windows(chosen, options._replace(after=min(options.n_step, self._length)))
        first = np.ascontiguousarray(slots[:, 0])
        # Of the first step: what was seen and done, and whether it begins an episode.
        self._gather(plan.tables["first"], first, block)
        terminated, truncated, source, out_ids, mask, is_first, steps, factor = arrays[
            len(self._views) : self._weight_column
        ]
        out_ids[:] = chosen
        self._take_source(first, source)
        before = np.empty(first.size, np.int64) if options.previous else _NO_ROWS
        kernels.active().annotate(
            out_ids, first, self._oldest, self._capacity, options.discount, self._is_done, self._timeline.back,
            terminated, truncated, mask, is_first, steps, factor, before,
        )  # fmt: skip
        # Of the last: where it led, and how it ended.
        last = self._sums(slots, options.discount, arrays[self._reward_column], steps, factor, terminated, truncated)
        self._gather(plan.tables["last"], last, block)
        if options.previous:
            self._gather(plan.tables["previous"], before, block)

    def _sums(self, slots: Ints, discount: float, reward: NDArray[Any], *out: NDArray[Any]) -> Ints:
        """The discounted sums over the windows at `slots` (B, n), and the slot of each one's last step."""
        rewards, last = self._reward_view, np.empty(slots.shape[0], np.int64)
        if rewards.dtype in _SUMMED:  # the two dtypes that the kernel knows; the sum has the same one
            sums = reward.reshape(last.size, -1)
            kernels.active().nstep(
                slots, rewards.reshape(self._capacity, -1), discount, self._is_done, sums, last, *out
            )  # fmt: skip
            return last
        at = np.maximum(slots, 0).ravel()
        places = np.where(slots < 0, -1, np.arange(at.size).reshape(slots.shape))
        taken = as_float64(rewards[at], (at.size,))
        sums = np.empty((last.size, taken.shape[1]))
        kernels.active().nstep(places, taken, discount, self._is_done[at], sums, last, *out)
        reward[...] = (sums.view(np.complex128) if reward.dtype.kind == "c" else sums).reshape(reward.shape)
        return slots.ravel()[last]


def _of(source: int | None) -> str:
    return "" if source is None else f" of source {source}"


def _distinct(u: NDArray[np.float64], length: int) -> Ints:
    index = np.empty(u.size, np.int64)
    room = 1 << max(1, (2 * u.size).bit_length())
    kernels.active().distinct(u, length, np.empty(room, np.int64), np.empty(room, np.int64), index)
    return index
