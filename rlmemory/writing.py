"""Into the memory: every write is checked whole before the first byte is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import kernels
from .accept import accept_flag, accept_source
from .arena import Arena
from .batch import Batch, Channels, Experience, Generated
from .borrowed import Borrowed, is_on_device
from .errors import StructureError
from .given import Given, flags, is_done_code
from .structures import Structure

_ndarray = np.ndarray
_BOOLS = frozenset({bool, np.bool_})
_BOOL = np.dtype(np.bool_)
_FLOATS = frozenset({float, np.float64})


class Writing(Given):
    """The methods of `ReplayMemory` that store."""

    _watches_ends = False

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
    ) -> int:
        """Store one experience; when the memory is full, the oldest one goes.

        Parameters
        ----------
        observation, action, next_observation : array_like, tuple or dict of array_like
            Arranged as the specs, each of exactly the spec's shape. Values are copied.
        reward : array_like of the reward's shape (a scalar unless the reward is a vector)
        terminated : bool
            The environment reached an end. No value follows `next_observation`.
        truncated : bool, default False
            The episode was cut, by a time limit say. The value of `next_observation` still counts.
        source : int, optional
            Which environment or worker the experience comes from, 0 up; default 0. Experiences of one source follow
            each other. A memory made from a vector environment asks for it.
        extra : dict, optional
            The user's own fields, all that the memory was made with.

        Returns
        -------
        int
            The id of the experience: its running number since the memory was made.

        Raises
        ------
        ShapeError, StructureError, DataTypeError, ValueNotRepresentableError
            When anything does not fit its spec (shapes are compared, never broadcast; values are never cast to
            something else). Nothing is stored then.

        Notes
        -----
        A memory on a GPU takes arrays of that GPU, of exactly the spec's dtype, without passing them through the host;
        the reward, the ends and the source are copied to the host as well, which waits for the device.

        MATLAB: ``append(buffer, experience)``, with IsDone 1 for `terminated` and 2 for `truncated`.
        Thread-safe.

        Examples
        --------
        >>> import rlmemory as rlm
        >>> memory = rlm.ReplayMemory(rlm.NumericSpec((2,)), rlm.NumericSpec(()), 100)
        >>> memory.append([0.0, 1.0], 0.5, reward=1.0, next_observation=[1.0, 2.0], terminated=False)
        0
        """
        # What most loops do, with no loop and no helper on the way: arrays (or scalars) of exactly the spec's shape and
        # dtype into one observation, one action and one reward. Everything else takes `_append_checked`.
        if self._simple and source is None and extra is None:
            (columns0, dtype0, shape0, _), (columns1, dtype1, shape1, scalars1), (columns2, _, _, scalars2), last = (
                self._accepts
            )
            if (
                observation.__class__ is _ndarray
                and observation.dtype is dtype0
                and observation.shape == shape0
                and next_observation.__class__ is _ndarray
                and next_observation.dtype is dtype0
                and next_observation.shape == shape0
                and (
                    (action.__class__ is _ndarray and action.dtype is dtype1 and action.shape == shape1)
                    or action.__class__ in scalars1
                )
                and (
                    reward.__class__ in scalars2
                    or (reward.__class__ in _FLOATS and -self._reward_limit <= reward <= self._reward_limit)
                )
                and terminated.__class__ in _BOOLS
                and truncated.__class__ in _BOOLS
            ):
                with self._lock:
                    row = self._next_id
                    slot = row % self._capacity
                    if self._length == self._capacity:
                        self._length -= 1  # the oldest row goes first: an interrupt leaves no row half overwritten
                    columns0[slot] = observation
                    columns1[slot] = action
                    columns2[slot] = reward
                    last[0][slot] = next_observation
                    return self._finish(row, slot, 1 if terminated else 2 if truncated else 0, 0)
        given = self._flatten(observation, action, reward, next_observation, extra)
        leaves = self._accept(given, ())
        ended = bool(accept_flag("terminated", self._fetched("terminated", terminated)))
        cut = bool(accept_flag("truncated", self._fetched("truncated", truncated)))
        origin = int(self._accept_source(source, ()))
        if self._arena.on_device and any(map(is_on_device, given)):
            return self._append_rows(leaves, is_done_code(np.array([ended]), np.array([cut])), origin)
        with self._lock:
            self._check_writable()
            row = self._next_id
            slot = row % self._capacity
            self._length = min(self._length, self._capacity - 1)
            for view, leaf in zip(self._views, leaves, strict=True):
                view[slot] = leaf
            return self._finish(row, slot, 1 if ended else 2 if cut else 0, origin)

    def _append_rows(self, leaves: tuple[Any, ...], code: NDArray[np.uint8], source: int) -> int:
        """One experience as a batch of one, for channels that are on the device."""
        rows: list[Any] = [
            leaf._replace(shape=(1, *leaf.shape)) if isinstance(leaf, Borrowed) else leaf[None] for leaf in leaves
        ]
        with self._lock:
            row = self._store(tuple(rows), code, np.array([source], np.int32)).start
            if self._watches_ends and code.any():
                self._episode_ended(np.array([row]))
            return row

    def _finish(self, row: int, slot: int, code: int, source: int) -> int:
        """The last two columns of a new row, and the cursor."""
        self._is_done[slot] = code
        if source or not self._single:
            self._source[slot] = source
            self._single = False
        self._next_id = row + 1
        if self._length < self._capacity:
            self._length += 1
        if code and self._watches_ends:
            self._episode_ended(np.array([row]))
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
    ) -> range:
        """Store N experiences at once, the first the oldest.

        Parameters
        ----------
        observation, action, next_observation : array_like (N, *shape), tuple or dict of them
            Arranged as the specs. Values are copied.
        reward : array_like (N, *shape)
        terminated, truncated : bool array_like (N,)
            A plain ``False`` stands for none of them.
        source : int or int array_like (N,), optional
            Default 0; a memory made from a vector environment asks for it.
        extra : dict of array_like (N, *shape), optional

        Returns
        -------
        range
            The ids, also when more rows than the capacity came, of which the last `capacity` remain.

        Raises
        ------
        ShapeError, StructureError, DataTypeError, ValueNotRepresentableError
            As in `append`, and when the fields differ in their number of rows. Nothing is stored then.

        Notes
        -----
        Costs one memcpy per field; arrays on a GPU as in `append`. MATLAB: ``append`` with a struct array. Thread-safe.
        """
        leaves: tuple[Any, ...] = (observation, action, reward, next_observation)
        code: NDArray[np.uint8]
        sources: NDArray[np.int32] | None = None
        if source is None and extra is None and truncated is False and self._are_exact(leaves, terminated):
            code = terminated.view(np.uint8)
        else:
            given = self._flatten(observation, action, reward, next_observation, extra)
            rows = self._count(given[0])
            leaves = self._accept(given, (rows,))
            terminated, truncated = self._fetched("terminated", terminated), self._fetched("truncated", truncated)
            code = is_done_code(flags("terminated", terminated, rows), flags("truncated", truncated, rows))
            sources = self._accept_source(source, (rows,))
        with self._lock:
            ids = self._store(leaves, code, sources)
            if self._watches_ends:
                self._episode_ended(ids.start + np.flatnonzero(code))
            return ids

    def _are_exact(self, leaves: tuple[Any, ...], terminated: Any) -> bool:
        """Whether these are N rows in exactly the specs' shapes and dtypes: then nothing needs a closer look."""
        if not self._simple or terminated.__class__ is not _ndarray or terminated.dtype is not _BOOL:
            return False
        rows = terminated.shape
        return len(rows) == 1 and all(
            value.__class__ is _ndarray and value.dtype is dtype and value.shape == rows + shape
            for value, (_, dtype, shape, _) in zip(leaves, self._accepts, strict=True)
        )

    def _store(
        self, leaves: tuple[NDArray[Any], ...], code: NDArray[np.uint8], sources: NDArray[np.int32] | None
    ) -> range:
        """Checked rows into the ring. No sources stand for source 0; negative ones for rows that stand alone."""
        self._check_writable()
        rows = code.size
        begin, first = self._next_id, max(0, rows - self._capacity)
        columns: list[Any] = [*leaves, code]
        if not self._single or (sources is not None and sources.any()):
            given = np.zeros((), np.int32) if sources is None else sources
            columns.append(np.broadcast_to(given, (rows,)))
            self._single = False
            self._alone = self._alone or bool((given < 0).any())
        self._length = min(self._length, self._capacity - (rows - first))  # what is overwritten goes first
        for start, end, done in self._spans(begin + first, begin + rows):
            # One column fewer than the arena has, while all sources are 0.
            self._arena.write(start, end, columns, first + done)
        self._next_id = begin + rows
        self._length += rows - first
        return range(begin, begin + rows)

    def _episode_ended(self, last: NDArray[np.int64]) -> None:
        """Called with the last rows of episodes, when `_watches_ends`."""

    def extend_from(self, experience: Experience) -> range:
        """Store what another memory, or this one, gave out.

        Parameters
        ----------
        experience : Experience
            From ``all()``, ``get()`` or ``chunks()`` of a memory with equal specs. Its ids are not kept: an id
            belongs to one memory. What `generate_hindsight` made has no neighbours here either.

        Returns
        -------
        range
            The new ids.

        Raises
        ------
        StructureError
            When `experience` is not an Experience: a Batch may hold padding, or sums over several steps.
        ShapeError, DataTypeError, ValueNotRepresentableError
            When the specs differ. Nothing is stored then.
        """
        if not isinstance(experience, Experience):
            hint = "; take its ids: extend_from(memory.get(batch.id))" if isinstance(experience, Batch) else ""
            raise StructureError(f"experience: expected an Experience, got {type(experience).__name__}{hint}")
        if isinstance(experience, Generated):
            return self._extend_alone(experience)
        return self.extend(
            experience.observation,
            experience.action,
            reward=experience.reward,
            next_observation=experience.next_observation,
            terminated=experience.terminated,
            truncated=experience.truncated,
            source=experience.source,
            extra=experience.extra or None,
        )

    def _extend_alone(self, rows: Experience) -> range:
        """Store rows that no window, sum or episode joins."""
        lead = rows.id.shape
        given = self._flatten(rows.observation, rows.action, rows.reward, rows.next_observation, rows.extra)
        leaves = self._accept(given, lead)
        ended, cut = self._fetched("terminated", rows.terminated), self._fetched("truncated", rows.truncated)
        code = is_done_code(accept_flag("terminated", ended, lead), accept_flag("truncated", cut, lead))
        sources = accept_source(self._fetched("source", rows.source), lead)
        with self._lock:
            return self._store(leaves, code, -1 - sources)

    def set(self, ids: ArrayLike, **fields: Any) -> None:
        """Change fields of stored experiences.

        Parameters
        ----------
        ids : int array_like, any shape
            Ids as `append`, `extend` and samples give them. Of an id given twice, the last values stay.
        **fields : arrays of shape ``(*ids.shape, *shape)``
            Any of observation, action, reward, next_observation, terminated, truncated, source; `extra` may name
            some of the user's fields only. A channel structure is given whole.

        Raises
        ------
        StaleIdError
            When an id was overwritten or never stored.
        TypeError
            For a field that does not exist.
        ShapeError, StructureError, DataTypeError, ValueNotRepresentableError
            As in `append`. Nothing is changed then.

        Notes
        -----
        Arrays on a GPU as in `append`; ids from there are copied to the host.
        """
        known = ("observation", "action", "reward", "next_observation", "terminated", "truncated", "source", "extra")
        for name in fields:
            if name not in known:
                raise TypeError(f"set: no field {name!r}; the fields are {', '.join(known)}")
        fields = {
            name: self._fetched(name, value) if name in ("terminated", "truncated", "source") else value
            for name, value in fields.items()
        }
        with self._lock:
            self._check_writable()
            rows = self._live(ids)
            columns = self._columns_of(fields, rows)
            slots = (rows % self._capacity).ravel()
            if slots.size:
                for index, values in columns.items():
                    self._scatter(index, slots, values)
            self._edits += 1
            if "source" in fields:
                self._single = False
                self._timeline.forget()

    def _scatter(self, column: int, slots: NDArray[np.int64], values: Any) -> None:
        if isinstance(self._arena, Arena):
            self._scatter_there(self._arena, column, slots, values)
        else:
            self._arena.scatter(column, slots, values)

    @staticmethod
    def _scatter_there(arena: Arena, column: int, slots: NDArray[np.int64], values: NDArray[Any]) -> None:
        # A read-only array would compile a second version of the kernel.
        rows = np.require(values, requirements=["C", "W"]).reshape(-1).view(np.uint8)
        start, width = arena.table[column]
        table = np.array([[0, width, start]], np.int64)
        kernels.active().scatter(rows, table, slots, arena.block)

    def _columns_of(self, fields: dict[str, Any], rows: NDArray[np.int64]) -> dict[int, NDArray[Any]]:
        """The number of each arena column that `set` changes, with its new values."""
        lead, columns = rows.shape, {}
        place = {column.name: i for i, column in enumerate(self._arena.columns)}
        for group in self._groups:
            if group.field in fields:
                if group.field == "extra":
                    group = _named_only(group, fields["extra"])
                for name, spec, value in zip(group.names, group.specs, group.flatten(fields[group.field]), strict=True):
                    columns[place[name]] = self._accepted(name, value, spec, lead)
        if "terminated" in fields or "truncated" in fields:
            now = self._is_done[rows % self._capacity]
            ended = accept_flag("terminated", fields["terminated"], lead) if "terminated" in fields else now == 1
            cut = accept_flag("truncated", fields["truncated"], lead) if "truncated" in fields else now == 2
            columns[place["is_done"]] = is_done_code(ended, cut)
        if "source" in fields:
            given = np.broadcast_to(accept_source(fields["source"], lead), lead)
            alone = self._source[rows % self._capacity] < 0  # and stay so
            columns[place["source"]] = np.where(alone, -1 - given, given)
        return columns


def _named_only(extra: Structure, given: Any) -> Structure:
    """The part of the user's fields that `given` names."""
    if not isinstance(given, Mapping) or not given.keys() <= set(extra.keys):
        raise StructureError(f"extra: expected a dict with some of the keys {list(extra.keys)}, got {given!r}")
    return Structure("extra", {key: spec for key, spec in zip(extra.keys, extra.specs, strict=True) if key in given})
