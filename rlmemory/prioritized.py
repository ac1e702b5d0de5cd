"""A replay memory that draws by priority."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accept import as_numeric, cast_exactly
from .batch import Channels
from .errors import EmptyMemoryError, ShapeError, StaleIdError
from .options import Options
from .priorities import accept_priority
from .ranked import Ranked
from .sampling import _of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_INT = np.dtype(np.int64)


class PrioritizedReplayMemory(Ranked):
    """A replay memory that draws an experience the more often, the larger its priority is.

    The probability of experience i is ``mass[i] / sum(mass)`` with ``mass = (priority + epsilon) ** exponent``, and a
    batch comes with the importance weights ``(N * probability) ** -beta``, divided by the largest one (Schaul, Quan,
    Antonoglou and Silver, "Prioritized Experience Replay", 2016, sections 3.3 and 3.4, the proportional variant).

    Parameters
    ----------
    observation, action, capacity, **keywords
        As for :class:`ReplayMemory`.
    priority_exponent : float in [0, 100], default 0.6
        alpha: 0 draws all alike (but never one of mass 0), 1 in proportion to the priorities. May be set later; the
        masses are computed again then.
    importance_exponent : float in [0, 1], default 0.4
        beta to begin with. May be set later.
    annealing_steps : int from 1 up, default 1_000_000
        Calls of `update_priorities` over which beta grows linearly to 1. May be set later.
    priority_epsilon : float in [0, 100], default 1e-6
        Added to each priority before the exponent. With 0, an experience of priority 0 is never drawn.
    stratified : bool, default True
        One draw from each of B equal parts of the total mass: the same expectation and less spread, appendix B.2.1.
    weight_normalization : {"batch", "memory"}, default "batch"
        Which weight becomes 1: the largest in the batch, or the largest that any experience of the memory has.

    Raises
    ------
    ValueError
        For an option out of its range.

    Notes
    -----
    `sample` takes all of its options. **The priority of a window belongs to the row that was drawn**: its first row
    for ``n_step``, ``padding="end"`` and ``"none"``, its last row for ``padding="start"``. Its id is what
    `update_priorities` takes: ``batch.id`` for single rows and n-step sums, ``batch.id[:, burn_in]`` for sequences,
    ``batch.id[:, -1]`` with ``padding="start"`` (with ``time_major=True``: ``batch.id[burn_in]``, ``batch.id[-1]``).

    * Draws B uniforms ``u``: target i is ``(i + u[i]) / B`` of the total mass, or ``u[i]`` of it with
      ``stratified=False``. With ``padding="none"``, draws that begin no full window are drawn again up to four times,
      then from the list of those that do: the result is in proportion to mass among them. ``source=`` draws in
      proportion to mass among the rows of that source, and takes a pass over them (milliseconds for a million rows).
    * ``replace=False`` raises ValueError: importance weights hold for draws that do not depend on each other.
    * When every mass to draw from is 0, `sample` raises EmptyMemoryError.
    * `epoch` gives every experience once, whatever its priority, with weights of 1.
    * N does not matter after the division by the largest weight: the weights are ``(smallest mass / mass) ** beta``.
    * A new experience gets the largest priority of those that stay when it is appended, and 1 when there is none or it
      is 0; so the largest priority comes down again. Common implementations keep the largest ever seen.
    * Priorities are in RAM, 16 bytes a row and a seventh more (24 with ``weight_normalization="memory"``), also for a
      memory with a `path` or on a GPU. They are kept through `resize` and pickles; `set` does not change them.

    MATLAB: ``rlPrioritizedReplayMemory``. There, only agents update priorities, the exponents begin at 1 and 0.5, and
    sequences are refused.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> memory = rlm.PrioritizedReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 4, seed=0,
    ...                                      priority_exponent=1.0, priority_epsilon=0.0)
    >>> row = np.arange(4.0)
    >>> memory.extend(row, row, reward=row, next_observation=row + 1, terminated=False)
    range(0, 4)
    >>> memory.update_priorities([0, 1, 2, 3], [0.0, 0.0, 0.0, 5.0])
    0
    >>> memory.sample(3).id
    array([3, 3, 3])
    """

    # ---- in -----------------------------------------------------------------------------------------------------

    def append(
        self,
        observation: Channels,
        action: Channels,
        *,
        reward: ArrayLike,
        next_observation: Channels,
        terminated: bool,
        truncated: bool = False,
        source: int | None = None,
        extra: Mapping[str, Any] | None = None,
        priority: float | None = None,
    ) -> int:
        """Store one experience; when the memory is full, the oldest one goes.

        Parameters
        ----------
        observation, action, reward, next_observation, terminated, truncated, source, extra
            As in :meth:`ReplayMemory.append`.
        priority : float from 0 up, optional
            Default: the largest priority of the experiences that stay, 1 when there is none or it is 0.

        Returns
        -------
        int
            The id of the experience.

        Raises
        ------
        ValueError
            For a priority that is NaN, infinite or negative. Nothing is stored then.
        ShapeError, StructureError, DataTypeError, ValueNotRepresentableError
            As in :meth:`ReplayMemory.append`.
        """
        if priority is None:
            return super().append(
                observation, action, reward=reward, next_observation=next_observation, terminated=terminated,
                truncated=truncated, source=source, extra=extra,
            )  # fmt: skip
        with self._lock:
            given = accept_priority(self._fetched("priority", priority), (), self.priority_exponent)
            self._sync_priorities()
            row = super().append(
                observation, action, reward=reward, next_observation=next_observation, terminated=terminated,
                truncated=truncated, source=source, extra=extra,
            )  # fmt: skip
            self._priorities.rank(range(row, row + 1), given.reshape(1), self._oldest)
            return row

    def extend(
        self,
        observation: Channels,
        action: Channels,
        *,
        reward: ArrayLike,
        next_observation: Channels,
        terminated: ArrayLike,
        truncated: ArrayLike = False,
        source: ArrayLike | None = None,
        extra: Mapping[str, Any] | None = None,
        priority: ArrayLike | None = None,
    ) -> range:
        """Store N experiences at once, the first the oldest.

        Parameters
        ----------
        observation, action, reward, next_observation, terminated, truncated, source, extra
            As in :meth:`ReplayMemory.extend`.
        priority : float or float array_like (N,), from 0 up, optional
            One for all or one for each. Default: as in `append`, one experience after the other.

        Returns
        -------
        range
            The ids.

        Raises
        ------
        ValueError
            For a priority that is NaN, infinite or negative; it says which. Nothing is stored then.
        ShapeError, StructureError, DataTypeError, ValueNotRepresentableError
            As in :meth:`ReplayMemory.extend`.
        """
        with self._lock:
            if priority is not None:
                rows = self._count(self._flatten(observation, action, reward, next_observation, extra)[0])
                priority = self._fetched("priority", priority)
                shape = () if np.ndim(priority) == 0 else (rows,)
                given = accept_priority(priority, shape, self.priority_exponent)
                self._sync_priorities()
            ids = super().extend(
                observation, action, reward=reward, next_observation=next_observation, terminated=terminated,
                truncated=truncated, source=source, extra=extra,
            )  # fmt: skip
            if priority is not None:
                self._priorities.rank(ids, np.broadcast_to(given, (rows,)), self._oldest)
            return ids

    def update_priorities(self, id: ArrayLike, priority: ArrayLike) -> int:
        """Set the priorities of drawn experiences, usually to their absolute TD errors.

        Parameters
        ----------
        id : int array_like, (B,) or any shape
            Of an id given twice, the last priority stays. For windows: the ids of the rows that were drawn, see the
            notes of the class.
        priority : float array_like from 0 up, of the same shape as `id`
            (B, 1) for (B,) is taken as well, as networks give it.

        Returns
        -------
        int
            How many ids were ignored: experiences that were overwritten since or never stored, and -1, which stands for
            padding. More than a few say that these are not ids of this memory.

        Raises
        ------
        ValueError
            For a priority that is NaN, infinite or negative; it says which. Nothing is changed then, not even beta.
        ShapeError
            When the shapes differ.

        Notes
        -----
        Each call is one step of the importance exponent. A memory on a GPU takes arrays from there and copies them to
        the host, which waits for the device. MATLAB has no counterpart: only its agents can do this. Thread-safe.
        """
        ids = as_numeric("id", self._fetched("id", id))
        if ids.dtype.kind == "b":
            raise StaleIdError("id: expected whole numbers, got bools; for a mask use id[mask]")
        ids = cast_exactly("id", ids, _INT) if ids.dtype != _INT else ids
        given = as_numeric("priority", self._fetched("priority", priority))
        if given.shape != ids.shape and _without_last_one(given.shape) != _without_last_one(ids.shape):
            hint = ""
            if ids.ndim == 2 and given.size == ids.shape[0]:
                hint = "; of windows give the ids of the drawn rows: batch.id[:, burn_in], see PrioritizedReplayMemory"
            raise ShapeError(f"priority: expected the shape of id, {ids.shape}, got {given.shape}{hint}")
        with self._lock:
            values = _plain(accept_priority(given, given.shape, self.priority_exponent))
            masses = self._priorities.masses(values)
            self._sync_priorities()
            stale = self._priorities.tree.update(_plain(ids), masses, values, self._oldest, self._next_id)
            self._updates += 1
            return stale

    def priorities(self, id: ArrayLike | None = None) -> Floats:
        """The priorities as they were given, without epsilon and exponent.

        Parameters
        ----------
        id : int array_like, any shape, optional
            Default: of every experience, oldest first.

        Returns
        -------
        float64 array of the shape of `id`, or (len(memory),)
            A copy; a NumPy array, also for a memory on a GPU.

        Raises
        ------
        StaleIdError
            When an id was overwritten or never stored.
        """
        with self._lock:
            if id is None:
                return self._in_order()[0]
            self._sync_priorities()
            return np.asarray(self._priorities.tree.priority[self._live(id) % self._capacity])

    # ---- out ----------------------------------------------------------------------------------------------------

    def _choose(self, size: int, options: Options, source: int | None, replace: bool) -> Ints:
        if not replace:
            raise ValueError(
                "replace=False: draws by priority are made with replacement, since their importance weights hold for "
                "draws that do not depend on each other; epoch() gives every experience once"
            )
        return super()._choose(size, options, source, replace)

    def _propose(self, size: int, source: int | None) -> tuple[Ints, Ints]:
        if source is not None:
            ids = self._pick_by_mass(self._rows_of(source), size, source)
            return ids, ids % self._capacity
        self._check_any(self._length, source)
        self._sync_priorities()
        tree = self._priorities.tree
        if not tree.total > 0.0:
            raise _no_mass(source)
        return tree.draw(self._rng.random(size), self._stratified, self._oldest)

    def _propose_legal(self, size: int, options: Options, source: int | None) -> Ints:
        return self._pick_by_mass(self._legal_rows(options, source), size, source)

    def _pick_by_mass(self, rows: Ints, size: int, source: int | None) -> Ints:
        self._check_any(rows.size, source)
        self._sync_priorities()
        ids = self._priorities.pick(rows, self._rng, size, stratified=self._stratified)
        if ids is None:
            raise _no_mass(source)
        return ids

    def _weights(self, ids: Ints) -> Any:
        # (N P)^-beta / max = (m / m_min)^-beta: N and the total mass cancel.
        tree = self._priorities.tree
        mass = tree.mass[ids % self._capacity]
        least = tree.least if self._whole else np.minimum.reduce(mass)
        return (least / mass) ** self.current_importance_exponent


def _no_mass(source: int | None) -> EmptyMemoryError:
    return EmptyMemoryError(
        f"sample: all priorities{_of(source)} to draw from are 0; set some with update_priorities, or give the memory "
        "a priority_epsilon above 0"
    )


def _without_last_one(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[:-1] if len(shape) == 2 and shape[-1] == 1 else shape


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Flat, contiguous and writable, as the kernels are compiled for; other arrays are copied."""
    return array.reshape(-1) if array.flags.carray else array.flatten()
