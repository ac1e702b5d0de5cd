"""Name-value options, in both of MATLAB's forms: ``Name=value`` and ``"Name", value``."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
#: Gives the value to use, or raises; the first argument names the option in messages.
Check = Callable[[str, Any], Any]


def name_value(
    *, aliases: Mapping[str, str] | None = None, **checks: Check
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a function take its keyword-only parameters as MATLAB's name-value options.

    Parameters
    ----------
    aliases : mapping, optional
        Other names that an option answers to.
    **checks
        One check for each keyword-only parameter of the function.

    Returns
    -------
    callable
        A decorator. The decorated function takes ``Name=value`` in any case, and ``"Name", value`` after its
        positional arguments; a string where an optional positional argument could stand begins the pairs.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        call = _Call(function, aliases or {}, checks)

        @functools.wraps(function)
        def with_options(*args: Any, **named: Any) -> Result:
            if named or len(args) > call.required:
                args, named = call.read(args, named)
            return function(*args, **named)

        return with_options

    return decorate


class _Call:
    """How one function is called: how many positional arguments, which options."""

    def __init__(self, function: Callable[..., Any], aliases: Mapping[str, str], checks: Mapping[str, Check]) -> None:
        parameters = inspect.signature(function).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.title = function.__qualname__.removesuffix(".__init__")
        self.required = sum(p.default is p.empty for p in positional)
        self.positional = [p.name for p in positional]
        self.checks = {p.name: checks[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}
        self.names = {name.lower(): name for name in self.checks} | {a.lower(): name for a, name in aliases.items()}

    def read(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional arguments, and the options under their own names, checked."""
        first = next((i for i in range(self.required, len(args)) if isinstance(args[i], str)), len(args))
        if first > len(self.positional):
            raise TypeError(
                f"{self.title} takes {', '.join(self.positional)}, then name-value options; "
                f"{args[len(self.positional)]!r} is one argument too many"
            )
        result: dict[str, Any] = {}
        for given, value in [*self._pairs(args[first:]), *named.items()]:
            name = given if given in self.positional else self.option(given)
            if name in result:
                raise TypeError(f"{self.title}: {name} was given twice; give it once")
            result[name] = self.checks[name](f"{self.title}: {name}", value) if name in self.checks else value
        return args[:first], result

    def _pairs(self, rest: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        if len(rest) % 2:
            raise TypeError(f"{self.title}: option {rest[-1]!r} came without a value; options are name, value pairs")
        return list(zip(rest[::2], rest[1::2], strict=True))

    def option(self, given: Any) -> str:
        """The option of that name, whatever its case."""
        if not isinstance(given, str):
            raise TypeError(f"{self.title}: expected the name of an option as text, got {given!r}")
        if given.lower() in self.names:
            return self.names[given.lower()]
        near = difflib.get_close_matches(given.lower(), self.names, n=1, cutoff=0.4)
        hint = f"; did you mean {self.names[near[0]]}?" if near else ""
        raise TypeError(f"{self.title} has no option {given!r}{hint} (options: {', '.join(self.checks)})")


def one_of(*choices: str) -> Check:
    """A check for one of a few texts."""

    def check(title: str, value: Any) -> str:
        if isinstance(value, str) and value in choices:
            return value
        near = difflib.get_close_matches(value.lower(), choices, n=1, cutoff=0.5) if isinstance(value, str) else []
        hint = f'; did you mean "{near[0]}"?' if near else ""
        wanted = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{title} must be one of {wanted}; got {value!r}{hint}")

    return check


def logical(title: str, value: Any) -> bool:
    """A check for true or false; 0 and 1 pass, as in MATLAB."""
    if isinstance(value, (bool, int, float, np.generic)) and value in (0, 1):
        return bool(value)
    raise ValueError(f"{title} must be True or False; got {value!r}")


def whole(low: int) -> Check:
    """A check for a whole number of at least `low`; 32.0 passes for 32, as MATLAB's numbers are doubles."""

    def check(title: str, value: Any) -> int:
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.item()
        is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not is_number or not float(value).is_integer() or value < low:
            raise ValueError(f"{title} must be a whole number, {low} or more; got {value!r}")
        return int(value)

    return check


def between(low: float, high: float) -> Check:
    """A check for a number from `low` to `high`."""

    def check(title: str, value: Any) -> float:
        is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            raise ValueError(f"{title} must be a number from {low} to {high}; got {value!r}")
        return float(value)

    return check


def text(title: str, value: Any) -> str:
    """A check for text."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{title} must be text; got {value!r}")


def anything(_title: str, value: Any) -> Any:
    """No check: the function looks at the value itself."""
    return value
