"""Which row follows which. Indices only: nothing here touches what was observed.

The rows of one source form a chain in the order of their ids. A chain is cut where `end_episode` was called. It is
kept as two distances per slot, which is what the kernels walk along, and is caught up with the memory when a call
needs it, not on every append.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .ring import spans

_NONE = np.empty(0, np.int32)


class Timeline:
    """The chains of a memory of `capacity` rows.

    While every row comes from one source and nothing was cut, each row follows the one before it: then the
    distances are not kept at all, and `back` and `ahead` are empty.

    Attributes
    ----------
    back, ahead : int32 array (capacity,) or (0,)
        By slot: how many ids before the row its predecessor lies, and how many after it its successor; 0 for none.
        A predecessor that has been overwritten since counts as none, which the reader sees from its id.
    cuts : list of (int, int or None)
        "Before this id, this source (None: every source) was cut", oldest first.
    """

    def __init__(self, capacity: int, first_id: int = 0) -> None:
        self.capacity = capacity
        self.back = self.ahead = _NONE
        self.cuts: list[tuple[int, int | None]] = []
        self._linked = first_id  # ids below this one are in the chains
        self._sources = np.empty(0, np.int32)  # sorted; _tail[k] is the last id of _sources[k]
        self._tail = np.empty(0, np.int64)

    def cut(self, at: int, source: int | None, oldest: int) -> None:
        """Whatever is appended from id `at` on does not continue what came before it."""
        self._drop(oldest)
        if (at, source) not in self.cuts[-64:]:  # said again and again, it would pile up
            self.cuts.append((at, source))

    def _drop(self, oldest: int) -> None:
        """Forget the cuts before rows that are gone."""
        gone = 0
        while gone < len(self.cuts) and self.cuts[gone][0] <= oldest:
            gone += 1
        del self.cuts[:gone]

    def forget(self) -> None:
        """Link everything again at the next `sync`: rows have been moved, or their sources changed."""
        self.back = self.ahead = _NONE
        self._linked = 0
        self._sources, self._tail = np.empty(0, np.int32), np.empty(0, np.int64)

    def sync(self, oldest: int, end: int, source: NDArray[np.int32], single: bool) -> None:
        """Chain the rows up to id `end` that have come since the last time.

        Parameters
        ----------
        oldest, end : int
            The live ids are ``oldest <= id < end``.
        source : int32 array (capacity,)
            The memory's column.
        single : bool
            Whether every row has source 0.
        """
        self._drop(oldest)
        if single and not self.cuts and not self.back.size:
            return
        if not self.back.size:
            self.back = np.zeros(self.capacity, np.int32)
            self.ahead = np.zeros(self.capacity, np.int32)
            self._linked = 0
        begin = max(self._linked, oldest)
        if self._linked < oldest:
            self._tail[:] = -1  # what they followed is gone
        marks = [(at, which) for at, which in self.cuts if begin <= at < end]
        for at, which in marks:
            self._link(begin, at, source)
            self._end(which)
            begin = at
        self._link(begin, end, source)
        self._linked = end

    def tails(self, end: int) -> NDArray[np.int64]:
        """The newest row of each source, where the next one would follow it; after `sync` up to id `end`."""
        if not self.back.size:
            return np.array([end - 1], np.int64)
        tail = self._tail.copy()
        for at, which in self.cuts:
            if at >= end:
                tail[slice(None) if which is None else self._sources == which] = -1
        return tail[tail >= 0]

    def _end(self, source: int | None) -> None:
        self._tail[slice(None) if source is None else self._sources == source] = -1

    def _link(self, begin: int, end: int, source: NDArray[np.int32]) -> None:
        for first, last, done in spans(begin, end, self.capacity):
            position = self._positions(source[first:last])
            tail = np.empty_like(self._tail)
            kernels.active().link(position, begin + done, self.capacity, self._tail, tail, self.back, self.ahead)
            self._tail = tail

    def _positions(self, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """The place of each row's source among the known ones; new ones are made known.

        Negative sources mark rows that stand alone: they have no place.
        """
        if rows.size and rows.min() < 0:
            place = np.full(rows.size, -1, np.int64)
            place[rows >= 0] = self._positions(rows[rows >= 0])
            return place
        place = np.searchsorted(self._sources, rows)
        known = place < self._sources.size
        known[known] = self._sources[place[known]] == rows[known]
        if not known.all():
            sources = np.union1d(self._sources, rows).astype(np.int32)
            tail = np.full(sources.size, -1, np.int64)
            tail[np.searchsorted(sources, self._sources)] = self._tail
            self._sources, self._tail = sources, tail
            place = np.searchsorted(sources, rows)
        return np.asarray(place, np.int64)
