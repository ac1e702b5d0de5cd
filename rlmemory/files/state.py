"""Everything that makes the next batch of a memory the same: out of a memory, and into one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import CheckpointError, NotAvailableError, ReplayMemoryError
from ..hindsight import HindsightReplayMemory
from ..memory import ReplayMemory
from ..priorities import check_priority
from ..prioritized import PrioritizedReplayMemory
from ..prioritized_hindsight import PrioritizedHindsightReplayMemory
from ..ranked import Ranked
from ..structures import Structure
from .columns import Column, channel_names
from .plain import generator_from_plain, generator_to_plain, member, structure_from_plain, structure_to_plain, whole

#: The version of everything that is written. A reader refuses newer ones.
FORMAT = 1
FUNCTIONS = ("reward_fn", "is_done_fn")
_KINDS: dict[str, type[ReplayMemory]] = {
    kind.__name__: kind
    for kind in (ReplayMemory, PrioritizedReplayMemory, HindsightReplayMemory, PrioritizedHindsightReplayMemory)
}
_RANKED = (
    "priority_exponent", "importance_exponent", "annealing_steps", "priority_epsilon", "stratified",
    "weight_normalization",
)  # fmt: skip
_FIELDS = ("observation", "action", "reward", "extra")
RANKS = ["priority", "mass"]
_RELABELLING = ("strategy", "goal_samples", "relabel", "goals")
_MOST = 2**62

Meta = dict[str, Any]


# ---- out of a memory ------------------------------------------------------------------------------------------------


def describe(memory: ReplayMemory) -> Meta:
    """All but the rows, as what JSON knows."""
    kind = type(memory)
    if _KINDS.get(kind.__name__) is not kind:
        raise NotAvailableError(
            f"{kind.__name__} cannot be saved: a reader knows {', '.join(_KINDS)}; save a memory of one of these"
        )
    observation, action, reward, _, extra = memory._groups
    return {
        "format": FORMAT,
        "class": kind.__name__,
        "specs": {group.field: structure_to_plain(group) for group in (observation, action, reward, extra)},
        "environments": memory._environments,
        "capacity": memory._capacity,
        "next_id": memory._next_id,
        "length": memory._length,
        "single": memory._single,
        "alone": memory._alone,
        "cuts": [list(cut) for cut in memory._timeline.cuts if cut[0] > memory._oldest],
        "generator": generator_to_plain(memory._rng),
        "options": _options(memory),
        "updates": memory._updates if isinstance(memory, Ranked) else 0,
        "functions": functions_of(memory),
    }


def _options(memory: ReplayMemory) -> Meta:
    options: Meta = {}
    if isinstance(memory, Ranked):
        options |= {name: getattr(memory, name) for name in _RANKED}
    if isinstance(memory, HindsightReplayMemory):
        options |= {"strategy": memory._strategy, "goal_samples": memory._goal_samples, "relabel": memory._relabel}
        options["goals"] = [[g.measured, g.measured_at.tolist(), g.goal, g.goal_at.tolist()] for g in memory._goals]
    return options


def functions_of(memory: ReplayMemory) -> list[str]:
    """The names of the user's functions in a memory."""
    judges = memory._judges if isinstance(memory, HindsightReplayMemory) else ()
    return [name for name, function in zip(FUNCTIONS, judges, strict=False) if function is not None]


def columns_of(memory: ReplayMemory) -> list[Column]:
    """The columns of the arena, by slot."""
    names = [*channel_names(memory._groups), "is_done", "source"]
    return [Column(name, view) for name, view in zip(names, memory._arena.views, strict=True)]


def all_columns(memory: ReplayMemory) -> list[Column]:
    """Those of the arena, and the priorities."""
    columns = columns_of(memory)
    if isinstance(memory, Ranked):
        priority, mass = memory._in_order()
        columns += [Column("priority", priority, memory._oldest), Column("mass", mass, memory._oldest)]
    return columns


# ---- into one -------------------------------------------------------------------------------------------------------


def checked(meta: Any) -> Meta:
    """What was read, if it can be what `describe` gave."""
    version = whole(meta, "format", 1, _MOST)
    if version > FORMAT:
        raise NotAvailableError(f"saved by a newer version of rlmemory (format {version}; this one reads {FORMAT})")
    if member(meta, "class", str) not in _KINDS:
        raise CheckpointError(f"manifest: no kind of memory {meta['class']!r:.60}")
    capacity, next_id = whole(meta, "capacity", 1, 2**48), whole(meta, "next_id", 0, _MOST)
    whole(meta, "length", 0, min(capacity, next_id))
    whole(meta, "environments", 1, 2**31)
    whole(meta, "updates", 0, _MOST)
    for key in ("single", "alone"):
        member(meta, key, bool)
    for key in ("options", "generator", "specs"):
        member(meta, key, dict)
    last = 0
    for cut in member(meta, "cuts", list):
        if not (isinstance(cut, list) and len(cut) == 2 and type(cut[0]) is int and last <= cut[0] <= next_id):
            raise CheckpointError(f"manifest: no cut {cut!r:.60}")
        if cut[1] is not None and not (type(cut[1]) is int and 0 <= cut[1] < 2**31):
            raise CheckpointError(f"manifest: no source {cut[1]!r:.60}")
        last = cut[0]
    kind = _KINDS[meta["class"]]
    wanted = {*(_RANKED if issubclass(kind, Ranked) else ())}
    hindsight = issubclass(kind, HindsightReplayMemory)
    wanted |= {*(_RELABELLING if hindsight else ())}
    if meta["options"].keys() != wanted:
        raise CheckpointError(f"manifest: options {list(meta['options'])!r:.60}")
    if member(meta, "functions", list) not in ([["reward_fn"], [*FUNCTIONS]] if hindsight else [[]]):
        raise CheckpointError(f"manifest: functions {meta['functions']!r:.60}")
    return dict(meta)


def check_functions(meta: Meta, functions: Mapping[str, Any]) -> None:
    """Exactly those must be given that the memory had."""
    had = meta["functions"]
    lacking = [name for name in had if functions.get(name) is None]
    if lacking:
        raise CheckpointError(
            f"functions are not saved, and this {meta['class']} needs {' and '.join(lacking)} again: "
            f"load(path, {', '.join(name + '=...' for name in lacking)})"
        )
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{name}: expected a function, got {type(function).__name__}")
        if name not in had:
            raise TypeError(f"load: {name} was given, and the {meta['class']} was saved without it; it had {had}")


def specs_of(meta: Meta, room: int) -> dict[str, Any]:
    """The specs, by field. `room`: bytes of all files."""
    specs = meta["specs"]
    return {name: structure_from_plain(member(specs, name, dict, "specs"), name, room) for name in _FIELDS}


def skeleton(meta: Meta, made: Mapping[str, Any]) -> list[Column]:
    """The columns that a memory of these specs has, without rows."""
    given = {**made, "next_observation": made["observation"]}
    groups = tuple(
        Structure(name, given[name]) for name in ("observation", "action", "reward", "next_observation", "extra")
    )
    entries = [(spec.dtype, spec.shape) for group in groups for spec in group.specs]
    names = [*channel_names(groups), "is_done", "source"]
    entries += [(np.dtype(np.uint8), ()), (np.dtype(np.int32), ())]
    if issubclass(_KINDS[meta["class"]], Ranked):
        names += RANKS
        entries += [(np.dtype(np.float64), ())] * 2
    return [Column(name, np.empty((0, *shape), dtype)) for name, (dtype, shape) in zip(names, entries, strict=True)]


def build(meta: Meta, made: Mapping[str, Any], functions: Mapping[str, Any], path: Any) -> ReplayMemory:
    """An empty memory as it was made; its rows and the rest come next."""
    needed = meta["capacity"] * sum(column.width for column in skeleton(meta, made))
    if path is None and needed > _ram():
        raise CheckpointError(
            f"capacity: {meta['capacity']} rows need {needed / 2**30:.1f} GiB, more than this machine has; "
            "load(path, map=...) keeps them in a file"
        )
    options = dict(meta["options"])
    if "goals" in options:
        options["goals"] = parsed_goals(options["goals"], Structure("observation", made["observation"]))
    kind = _KINDS[meta["class"]]
    try:
        memory = kind(
            made["observation"], made["action"], meta["capacity"], reward=made["reward"], extra=made["extra"],
            path=path, **options, **functions,
        )  # fmt: skip
    except ReplayMemoryError:
        raise
    except (TypeError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CheckpointError(f"{meta['class']}: {error}") from error
    memory._serve(meta["environments"])
    return memory


def _ram() -> int:
    """Bytes of RAM of this machine, where that can be known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**62


def parsed_goals(value: Any, observation: Structure) -> list[Any]:
    """Goals as the constructor takes them."""
    keys = observation.keys if observation.form != "single" else (0,)
    try:
        return [(keys[measured], at, keys[goal], goal_at) for measured, at, goal, goal_at in value]
    except (TypeError, ValueError, IndexError) as error:
        raise CheckpointError(f"manifest: goals {value!r:.60}") from error


def check_columns(meta: Meta, columns: list[Column]) -> None:
    """Whether the rows are such that a memory can have written them."""
    begin, end = meta["next_id"] - meta["length"], meta["next_id"]
    for column in columns:
        for piece in column.pieces(begin, end):
            wrong = ""
            if column.name == "is_done" and piece.max(initial=0) > 2:
                wrong = "a code above 2"
            elif column.name == "source" and meta["single"] and piece.any():
                wrong = "sources, and the manifest says there are none"
            elif column.name == "source" and not meta["alone"] and piece.min(initial=0) < 0:
                wrong = "a negative source"
            elif piece.dtype.kind == "b" and piece.view(np.uint8).max(initial=0) > 1:
                wrong = "a bool that is neither 0 nor 1"
            elif column.name == "mass" and not (np.isfinite(piece.sum()) and piece.min(initial=0.0) >= 0.0):
                wrong = "a mass that is not a finite number from 0 up"
            if wrong:
                raise CheckpointError(f"{column.name}: {wrong}")
            if column.name == "priority":
                _check_priorities(piece, float(meta["options"]["priority_exponent"]))


def _check_priorities(piece: Any, exponent: float) -> None:
    try:
        check_priority(piece, exponent)
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def settle(memory: ReplayMemory, meta: Meta, ranks: list[Column], generator: np.random.Generator) -> None:
    """The rows are in their slots: set everything that goes with them. Nothing here can fail."""
    memory._next_id, memory._length = meta["next_id"], meta["length"]
    memory._single, memory._alone = meta["single"], meta["alone"]
    memory._rng = generator
    memory._edits += 1
    timeline = memory._timeline
    timeline.forget()
    timeline.cuts = [(at, source) for at, source in meta["cuts"]]
    newest = (memory._next_id - 1) % memory._capacity
    if memory._length and not (memory._single and memory._is_done[newest]):
        timeline.cut(memory._next_id, None, memory._oldest)  # what was running does not go on
    if isinstance(memory, Ranked):
        memory._updates = meta["updates"]
        memory._lay_out(ranks[0].rows, ranks[1].rows)


def generator_of(meta: Meta) -> np.random.Generator:
    """The generator as it stood."""
    return generator_from_plain(meta["generator"])
