"""The state of a memory as a dict, for those who checkpoint with other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CheckpointError
from ..hindsight import HindsightReplayMemory
from ..memory import ReplayMemory
from ..priorities import Priorities
from ..ranked import Ranked
from .columns import Column
from .plain import member
from .state import (
    FUNCTIONS,
    RANKS,
    all_columns,
    check_columns,
    checked,
    columns_of,
    describe,
    generator_of,
    parsed_goals,
    settle,
)

_PLACES = ("observation", "action", "reward", "extra")


def state_dict(memory: ReplayMemory) -> dict[str, Any]:
    """What `ReplayMemory.state_dict` gives."""
    with memory._lock:
        state = describe(memory)
        begin, end = memory._oldest, memory._next_id
        rows = {c.name: np.concatenate([c.rows[:0], *c.pieces(begin, end)]) for c in all_columns(memory)}
        return {**state, "columns": rows}


def load_state_dict(memory: ReplayMemory, state: Any) -> None:
    """What `ReplayMemory.load_state_dict` does."""
    meta = checked(state)
    with memory._lock:
        memory._check_writable()
        _compare(meta, describe(memory))
        generator = generator_of(meta)
        given = _given(meta, member(state, "columns", dict, "state"), memory)
        check_columns(meta, given)
        ranks = given[len(memory._arena.views) :]
        options = _options(memory, meta)
        given_rows = [column.rows for column in given[: len(memory._arena.views)]]
        memory.clear()  # an interrupt leaves no mixture of old and new rows
        for first, last, done in memory._spans(meta["next_id"] - meta["length"], meta["next_id"]):
            memory._arena.write(first, last, given_rows, done)
        if meta["single"]:
            memory._arena.forget_sources()
        for name, value in options.items():
            setattr(memory, name, value)
        settle(memory, meta, ranks, generator)


def _compare(meta: dict[str, Any], own: dict[str, Any]) -> None:
    """Whether the state is one of such a memory; else an error naming the field that differs."""
    for field in _PLACES:
        theirs, ours = meta["specs"].get(field), own["specs"][field]
        if theirs != ours:
            raise CheckpointError(f"{field}: the state has the specs {theirs!r:.300}, this memory has {ours!r:.300}")
    for key in ("class", "capacity", "environments"):
        if meta[key] != own[key]:
            raise CheckpointError(f"{key}: the state has {meta[key]!r}, this memory has {own[key]!r}")
    for name in FUNCTIONS:
        if (name in meta["functions"]) != (name in own["functions"]):
            which = "has" if name in meta["functions"] else "does not have"
            raise CheckpointError(f"{name}: the memory of the state {which} one, and this one differs")


def _given(meta: dict[str, Any], columns: dict[str, Any], memory: ReplayMemory) -> list[Column]:
    wanted = columns_of(memory)
    if isinstance(memory, Ranked):
        wanted += [Column(name, np.empty(0)) for name in RANKS]
    if columns.keys() != {column.name for column in wanted}:
        raise CheckpointError(f"columns: expected {[c.name for c in wanted]}, got {list(columns)!r:.300}")
    found = []
    for column in wanted:
        rows = np.asarray(columns[column.name])
        shape = (meta["length"], *column.rows.shape[1:])
        if rows.dtype != column.rows.dtype or rows.shape != shape:
            raise CheckpointError(
                f"columns: {column.name} is {rows.dtype} of shape {rows.shape}, not {column.rows.dtype} of {shape}"
            )
        found.append(Column(column.name, np.ascontiguousarray(rows), meta["next_id"] - meta["length"]))
    return found


def _options(memory: ReplayMemory, meta: dict[str, Any]) -> dict[str, Any]:
    """The attributes that the options of the state make, all of them checked before the first is set."""
    options = meta["options"]
    made: dict[str, Any] = {}
    functions = dict(zip(FUNCTIONS, getattr(memory, "_judges", ()), strict=False))
    if not options:
        return made
    if "goals" in options:
        goals = parsed_goals(options["goals"], memory._groups[0])
        options = {**options, "goals": goals}
    try:
        twin = type(memory)(memory.observation_spec, memory.action_spec, 1, **options, **functions)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"options: {error}") from error
    if isinstance(twin, Ranked):
        made |= {name: getattr(twin, name) for name in ("_beta", "_steps", "_stratified", "_whole")}
        made["_priorities"] = Priorities(
            memory._capacity, twin.priority_exponent, twin.priority_epsilon, least=twin._whole
        )
    if isinstance(twin, HindsightReplayMemory):
        names = ("_goals", "_strategy", "_relabel", "_goal_samples", "_direct", "_watches_ends")
        made |= {name: getattr(twin, name) for name in names}
    return made
