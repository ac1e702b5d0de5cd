"""What a call of `sample` asks for, checked once."""

from __future__ import annotations

from typing import Any, NamedTuple

from .accept import at_least


class Options(NamedTuple):
    """The options of `sample` that say what a window is.

    Attributes
    ----------
    before, after : int
        Rows of a window before the chosen one, and from the chosen one on.
    n_step : int
        Rows that are summed into one.
    discount : float
    previous : bool
        Whether the step before each one is wanted.
    full : bool
        Only windows without padding after the chosen row.
    stop : bool
        Whether a window ends with its episode.
    time_major : bool
        Time before batch in the results.
    burn_in : int
        How many of the first steps are only there to warm a network up.
    """

    before: int = 0
    after: int = 1
    n_step: int = 1
    discount: float = 0.99
    previous: bool = False
    full: bool = False
    stop: bool = True
    time_major: bool = False
    burn_in: int = 0

    @property
    def width(self) -> int:
        """Steps of a window."""
        return self.before + self.after

    @property
    def plain(self) -> bool:
        """Single rows, with nothing beside them."""
        return self.before + self.after + self.n_step == 2 and not self.previous


def checked_options(
    sequence_length: int,
    n_step: int,
    discount: float,
    burn_in: int,
    previous: bool,
    padding: str,
    boundary: str,
    time_major: bool,
) -> Options:
    """The options, or a ValueError that says what is wrong with one."""
    length = at_least("sequence_length", sequence_length, 1)
    steps = at_least("n_step", n_step, 1)
    lead_in = at_least("burn_in", burn_in, 0)
    if padding not in ("end", "start", "none"):
        raise ValueError(f"padding: expected 'end', 'start' or 'none', got {padding!r}")
    if boundary not in ("stop", "cross"):
        raise ValueError(f"boundary: expected 'stop' or 'cross', got {boundary!r}")
    if steps > 1 and length + lead_in > 1:
        raise ValueError(
            f"n_step={n_step} sums rows into single steps, so sequence_length must be 1 and burn_in 0, "
            f"got {sequence_length} and {burn_in}"
        )
    if steps > 1 and padding != "end":
        raise ValueError(f"padding={padding!r} is for sequences: a sum takes the steps that are there, see Batch.steps")
    if steps > 1 and boundary == "cross":
        raise ValueError("boundary='cross' is for sequences: a sum over several steps ends with its episode")
    before, after = (length - 1 + lead_in, 1) if padding == "start" else (lead_in, length)
    return Options(
        before, after, steps, checked_discount(discount), bool(previous), padding == "none" and length > 1,
        boundary == "stop", bool(time_major) and before + after > 1, lead_in,
    )  # fmt: skip


def checked_discount(discount: Any) -> float:
    """A number from 0 to 1."""
    value = float(discount)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"discount: expected a number from 0 to 1, got {discount!r}")
    return value
