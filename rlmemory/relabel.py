"""New goals for rows of a memory: which, and what follows from them for rewards, ends and windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .accept import accept, accept_flag
from .batch import Batch, Channels, Experience, Generated
from .borrowed import is_on_device
from .errors import DataTypeError, ShapeError
from .goals import Goal
from .memory import ReplayMemory
from .options import Options
from .results import ROW, STEP, Target, as_float64, matrix

Ints = NDArray[np.int64]
#: (observation, action, next_observation), each with a first axis of N, to N rewards or N flags.
Judge = Callable[[Channels, Channels, Channels], Any]

STRATEGIES = ("final", "episode", "future")


class Relabelling(ReplayMemory):
    """How `HindsightReplayMemory` changes goals; see there."""

    _goals: tuple[Goal, ...]
    _judges: tuple[Judge, Judge | None]
    _strategy: str
    _goal_samples: int

    def _goal_rows(self, ids: Ints, u: NDArray[np.float64], oldest: int) -> Ints:
        """The rows after which the new goals were achieved, none of them older than `oldest`."""
        self._sync()
        goal = np.empty(ids.size, np.int64)
        kernels.active().goal_row(
            ids, u, STRATEGIES.index(self._strategy), oldest, self._next_id, self._capacity, self._is_done,
            self._timeline.back, self._timeline.ahead, goal,
        )  # fmt: skip
        return goal

    def _give_goals(self, record: Batch | Experience, place: tuple[Any, ...], goal: Ints) -> NDArray[np.bool_] | None:
        """Put the goals achieved after the rows `goal` into these places, and judge them again.

        Returns whether each goal is met, if there is a function that knows.
        """
        self._write_goals([record.observation, record.next_observation], place, goal)
        observation, action, _, following, _ = self._groups
        judged = [
            group.pack([_at(leaf, place) for leaf in group.flatten(value)])
            for group, value in (
                (observation, record.observation),
                (action, record.action),
                (following, record.next_observation),
            )
        ]
        record.reward[place] = self._rewards(judged, goal.size)
        judge = self._judges[1]
        if judge is None:
            return None
        if not goal.size:
            return np.empty(0, np.bool_)
        return accept_flag("is_done_fn", _on_host("is_done_fn", judge(*judged)), (goal.size,))

    def _write_goals(self, observations: list[Channels], place: tuple[Any, ...], goal: Ints) -> None:
        slots = goal % self._capacity
        observation = self._groups[0]
        for measured, measured_at, leaf, goal_at in self._goals:
            after = matrix(np.take(self._views[self._reward_column + 1 + measured], slots, axis=0))[:, measured_at]
            size = math.prod(observation.specs[leaf].shape)
            entries = (*(part[:, None] if isinstance(part, np.ndarray) else part for part in place), goal_at)
            for value in observations:
                target = observation.flatten(value)[leaf]  # of a fresh block, so that this is a view:
                target.reshape(*target.shape[: len(place)], size)[entries] = after

    def _rewards(self, judged: list[Any], count: int) -> NDArray[Any]:
        spec = self._named[self._reward_column][1]
        if not count:
            return np.empty((0, *spec.shape), spec.dtype)
        given = np.asarray(_on_host("reward_fn", self._judges[0](*judged)))
        if given.shape != (count, *spec.shape):
            raise ShapeError(
                f"reward_fn: expected an array of shape {(count, *spec.shape)}, a reward for each experience, "
                f"got shape {given.shape}"
            )
        return accept("reward_fn", given, spec, (count,))

    # ---- in what is sampled -------------------------------------------------------------------------------------

    def _relabel_batch(self, batch: Batch, u: NDArray[np.float64], options: Options) -> None:
        """Give a share of the rows (or windows) new goals; `u` has two uniforms for each."""
        count = batch.id.shape[0]
        share = 0.5 if self._strategy == "final" else self._goal_samples / (self._goal_samples + 1)
        rows = np.flatnonzero(u[:count] < share)
        wide = batch.mask.ndim > 1
        chosen = batch.id[rows, options.before] if wide else batch.id[rows]
        goal = self._goal_rows(chosen, u[count:][rows], self._oldest)
        which, step = np.nonzero(batch.mask[rows]) if wide else (np.arange(rows.size), np.zeros(rows.size, np.int64))
        place = (rows[which], step) if wide else (rows,)
        met = self._give_goals(batch, place, goal[which])
        if met is None:
            return
        learnt = step >= options.burn_in if wide else np.ones(step.size, np.bool_)
        met &= learnt  # what only warms a network up ends nothing
        batch.terminated[place] = np.where(learnt, met, batch.terminated[place])
        batch.truncated[place] &= ~met
        batch.discount[place] = np.where(batch.terminated[place], 0.0, options.discount)
        if wide:
            self._end_windows(batch, rows)

    def _end_windows(self, batch: Batch, rows: Ints) -> None:
        """Windows end where the new goal is met: what follows becomes padding."""
        ended: Ints = np.cumsum(batch.terminated[rows], axis=1) - batch.terminated[rows]
        which, step = np.nonzero((ended > 0) & batch.mask[rows])
        for array in self._flat(batch):
            if array.ndim > 1 and array.shape[:2] == batch.mask.shape:
                array[rows[which], step] = 0
        batch.id[rows[which], step] = -1

    def _flat(self, batch: Batch) -> list[NDArray[Any]]:
        """The arrays of a batch in the order of its plan."""
        channels = (leaf for group in self._groups for leaf in group.flatten(getattr(batch, group.field)))
        fixed = (getattr(batch, name) for name, _ in (*ROW, *STEP))
        earlier = self._groups[1].flatten(batch.previous_action) if batch.previous_action is not None else ()
        tail = (*earlier, batch.previous_reward) if batch.previous_reward is not None else ()
        return [*channels, *fixed, batch.weight, *tail]

    def _swapped(self, batch: Batch, target: Target) -> Batch:
        """The same batch with time before batch."""
        for i, (to, array) in enumerate(zip(target.arrays, self._flat(batch), strict=True)):
            to[...] = array if i == self._weight_column else np.swapaxes(array, 0, 1)
        return self._as_batch(target.arrays)

    def _folded(self, batch: Batch, options: Options, target: Target) -> Batch:
        """Windows of n steps as single steps that sum them."""
        count, n = batch.id.shape
        arrays = target.arrays
        code = (batch.terminated + 2 * (batch.truncated & ~batch.terminated)).astype(np.uint8).ravel()
        local = np.arange(count * n).reshape(count, n)
        rewards = as_float64(batch.reward, (count * n,))
        sums, last = np.empty((count, rewards.shape[1])), np.empty(count, np.int64)
        terminated, truncated, _, _, _, _, steps, factor = arrays[len(self._views) : self._weight_column]
        kernels.active().nstep(
            np.where(batch.mask, local, -1), rewards, options.discount, code, sums, last, steps, factor,
            terminated, truncated,
        )  # fmt: skip
        done = {id(array) for array in (terminated, truncated, steps, factor)}
        following = range(self._reward_column + 1, self._reward_column + 1 + self._action_column)
        for i, (to, array) in enumerate(zip(arrays, self._flat(batch), strict=True)):
            if i == self._weight_column:
                to[:] = array
            elif i == self._reward_column:
                to[...] = (sums.view(np.complex128) if to.dtype.kind == "c" else sums).reshape(to.shape)
            elif i in following:
                to[...] = array.reshape(count * n, *array.shape[2:])[last]
            elif id(to) not in done:
                to[...] = array[:, 0]
        return self._as_batch(arrays)

    # ---- as experiences of their own ----------------------------------------------------------------------------

    def _episode_of(self, last: int) -> Ints:
        """The ids of the episode that has come to row `last`, oldest first."""
        width = 64
        while True:
            ids, _ = self._windows(np.array([last]), Options(before=width - 1))
            rows: Ints = ids[0, ids[0] >= 0]
            if rows.size < width:
                return rows
            width *= 4

    def _generated(self, rows: Ints) -> tuple[Generated, Target]:
        """Experiences with new goals, made of these rows in their order; goals are no older than the first.

        On the host, also for a memory on a GPU: that is where the functions that judge them work.
        """
        repeats = 1 if self._strategy == "final" else self._goal_samples
        ids = np.repeat(rows, repeats)
        goal = self._goal_rows(ids, self._rng.random(ids.size), int(rows.min()))
        target = self._on_host(self._rows_plan(ids.shape))
        self._fill_experience(target, ids)
        record = Generated(*self._as_experience(target.arrays))
        met = self._give_goals(record, (slice(None),), goal)
        if met is not None:
            record.terminated[:] = met
            record.truncated[:] &= ~met
        return record, target

    def _episode_ended(self, last: Ints) -> None:
        for row in last.tolist():
            if row < self._oldest:  # what is generated takes the room of the oldest rows
                continue
            self._extend_alone(self._generated(self._episode_of(row))[0])


def _on_host(name: str, given: Any) -> Any:
    """What a function of the user's gave back, which has to be on the host."""
    if is_on_device(given):
        raise DataTypeError(
            f"{name}: the function gave back an array on a GPU ({type(given).__name__}). It gets NumPy arrays, also "
            "for a memory on a GPU, and has to give one back: rlmemory.to_host(x) makes one of its result"
        )
    return given


def _at(array: NDArray[Any], place: tuple[Any, ...]) -> NDArray[Any]:
    """The entries at these places; `take` is several times faster than an index for rows."""
    if len(place) == 1 and isinstance(place[0], np.ndarray):
        return np.take(array, place[0], axis=0)
    return np.asarray(array[place])
