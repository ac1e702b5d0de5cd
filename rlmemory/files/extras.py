"""Packages that are not always there, and the progress bar that one of them draws."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..errors import NotAvailableError

T = TypeVar("T")


def extra(module: str, name: str, purpose: str) -> Any:
    """A module of an optional dependency, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise
        raise NotAvailableError(
            f'{purpose} needs {module}, which comes with the extra "{name}": pip install "rlmemory[{name}]"'
        ) from error


def shown(items: Iterable[T], progress: bool, description: str, total: int | None = None) -> Iterator[T]:
    """The items, with a bar while they last if one is wanted, tqdm is installed and somebody looks."""
    if progress:
        try:
            tqdm = importlib.import_module("tqdm")
        except ModuleNotFoundError:  # the bar is no reason to fail
            progress = False
    if not progress:
        yield from items
        return
    # disable=None: tqdm asks whether the standard error is a terminal.
    yield from tqdm.tqdm(items, desc=description, total=total, disable=None, leave=False)
