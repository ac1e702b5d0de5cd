"""A kernel that the simulator runs and the compiler must refuse: it is Python, not a program for a device."""

from __future__ import annotations

from typing import Any

SIGNATURE = ("int64[:]",)


def plain(out: Any) -> None:
    """The lengths of some words: threads have neither lists of strings nor dicts."""
    words = {word: len(word) for word in ["one", "three"]}
    try:
        out[0] = words["three"]
    except KeyError:
        out[0] = 0
