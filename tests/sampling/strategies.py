"""What hypothesis draws: seeds, ends, sources, and any options of `sample` that go together."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from .model import Ask

SEEDS = st.integers(0, 2**32 - 1)
SOURCES = st.integers(0, 2)
CODES = st.sampled_from([0, 0, 0, 0, 1, 2])
CAPACITIES = st.integers(1, 12)
GAMMAS = st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0])
LENGTHS = st.sampled_from([1, 2, 2, 3, 4, 7, 13])


@st.composite
def asked(draw: Any, crossing: bool = True) -> Ask:
    """Any options of `sample` that go together."""
    kind = draw(st.sampled_from(["single", "window", "sum"]))
    window = kind == "window"
    return Ask(
        size=draw(st.integers(1, 9)),
        sequence_length=draw(LENGTHS) if window else 1,
        burn_in=draw(st.sampled_from([0, 0, 1, 3])) if window else 0,
        n_step=draw(st.integers(2, 5)) if kind == "sum" else 1,
        boundary=draw(st.sampled_from(["stop", "cross"])) if window and crossing else "stop",
        padding="end" if kind == "sum" else draw(st.sampled_from(["end", "start", "none"])),
        discount=draw(GAMMAS),
        previous=draw(st.booleans()),
        source=draw(st.none() | st.integers(0, 3)),
        replace=draw(st.sampled_from([True, True, False])),
        time_major=draw(st.booleans()),
    )
