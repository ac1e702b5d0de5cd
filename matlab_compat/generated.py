"""Experiences that did not happen, and how `append` keeps them out of what did."""

from __future__ import annotations

from typing import Any

import numpy as np

import rlmemory as rlm

from .buffers import Buffer
from .reading import FIELDS, Reader
from .records import LazyRecords
from .results import PLAIN, columns_of
from .structs import from_records, rows_of, struct


class GeneratedRecords(LazyRecords):
    """Rows that remember what rlmemory made them as.

    Parameters
    ----------
    origin : rlmemory.Experience
        As `generate_hindsight` gives it: wherever it is stored, no window, sum or episode joins its rows.
    reader : Reader
        Of the memory that it came from.
    """

    __slots__ = ("origin",)

    def __init__(self, origin: rlm.Experience, reader: Reader) -> None:
        super().__init__(FIELDS, len(origin.id), lambda: columns_of(origin, reader, PLAIN))
        self.origin = origin

    @property
    def untouched(self) -> bool:
        """Whether nothing was assigned or added."""
        return not self._changed and not self.rows


def generated(origin: rlm.Experience, buffer: Buffer) -> struct:
    """An N-by-1 struct array of generated experiences."""
    return from_records(GeneratedRecords(origin, buffer._reader))


def standing_alone(given: Any, reader: Reader) -> rlm.Experience | None:
    """What was given, as rlmemory made it, if it is generated experiences or some of them; else None.

    What the user assigned to their fields is in it.
    """
    records = given._records if isinstance(given, struct) else None
    if not isinstance(records, GeneratedRecords):
        return None
    origin, at = records.origin, given._at
    if at is None and records.untouched:
        return origin
    rows = np.arange(len(records)) if at is None else np.array(at, np.int64)
    if not rows.size or rows.max() >= len(origin.id):  # the user added some, of which nothing is known
        return None
    observation, action, reward, following, terminated, truncated = reader.many(rows_of(given))
    return origin._replace(
        observation=observation,
        action=action,
        reward=reward,
        next_observation=following,
        terminated=terminated,
        truncated=truncated,
        id=origin.id[rows],
    )
