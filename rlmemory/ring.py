"""The arithmetic of a ring whose slot is always ``id % capacity``."""

from __future__ import annotations


def spans(begin: int, end: int, capacity: int) -> list[tuple[int, int, int]]:
    """The slots of the ids ``begin <= id < end``, as one or two runs.

    Parameters
    ----------
    begin, end : int
        At most `capacity` apart.
    capacity : int

    Returns
    -------
    list of (int, int, int)
        First slot, slot after the last, and how many ids come before the run.

    Examples
    --------
    >>> spans(6, 10, 8)
    [(6, 8, 0), (0, 2, 2)]
    """
    count = end - begin
    if count <= 0:
        return []
    first = begin % capacity
    before_wrap = min(count, capacity - first)
    runs = [(first, first + before_wrap, 0)]
    if before_wrap < count:
        runs.append((0, count - before_wrap, before_wrap))
    return runs
