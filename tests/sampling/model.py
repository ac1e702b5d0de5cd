"""A memory as one would write it in an afternoon: a list of rows, and every definition word for word.

`Model` recomputes everything from its list at every call. It draws the uniforms that the memory draws, so that its
answers are the memory's, not only of the same kind.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .layouts import Layout, components, mapped, zeros

TRIES = 4  # how often a draw that begins no full window is repeated before the legal starts are listed


@dataclass(eq=False)
class Row:
    """One experience. `values` has the arguments of `append` by name; a row that stands alone has no neighbours."""

    id: int
    source: int
    code: int
    values: dict[str, Any]
    alone: bool = False


@dataclass
class Cell:
    """One step of a batch. What no row fills is None."""

    row: Row | None
    values: dict[str, Any]
    code: int = 0
    is_first: bool = False
    steps: int = 0
    discount: float = 0.0
    before: Row | None = None


@dataclass(frozen=True)
class Ask:
    """The options of a call of `sample`."""

    size: int = 1
    sequence_length: int = 1
    n_step: int = 1
    discount: float = 0.99
    burn_in: int = 0
    previous: bool = False
    padding: str = "end"
    boundary: str = "stop"
    source: int | None = None
    replace: bool = True
    time_major: bool = False

    def keywords(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "size"}

    @property
    def full(self) -> bool:
        return self.padding == "none" and self.sequence_length > 1

    @property
    def windows(self) -> bool:
        return self.sequence_length + self.burn_in > 1


class Model:
    def __init__(self, layout: Layout, capacity: int, seed: int) -> None:
        self.layout, self.capacity, self.next_id = layout, capacity, 0
        self.rows: list[Row] = []
        self.cuts: list[tuple[int, int | None]] = []
        self.rng = np.random.default_rng(seed)

    # ---- into it ----

    def append(self, values: dict[str, Any], code: int = 0, source: int = 0, alone: bool = False) -> int:
        self.rows.append(Row(self.next_id, source, code, copy.deepcopy(values), alone))
        self.next_id += 1
        self.rows = self.rows[-self.capacity :]
        return self.next_id - 1

    def resize(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows = self.rows[-capacity:]

    def end_episode(self, source: int | None) -> None:
        self.cuts.append((self.next_id, source))

    # ---- what follows what ----

    def of(self, source: int | None) -> list[Row]:
        return [row for row in self.rows if source is None or row.source == source]

    def chain(self, row: Row) -> list[Row]:
        """The rows of its source that are joined to a row, itself included, oldest first."""
        if row.alone:
            return [row]
        mine = [other for other in self.rows if other.source == row.source and not other.alone]
        parts: list[list[Row]] = [[]]
        for other in mine:
            if parts[-1] and self.cut_between(parts[-1][-1], other):
                parts.append([])
            parts[-1].append(other)
        return next(part for part in parts if any(other is row for other in part))

    def cut_between(self, a: Row, b: Row) -> bool:
        return any(a.id < at <= b.id and which in (None, a.source) for at, which in self.cuts)

    def around(self, row: Row, stop: bool = True) -> tuple[list[Row], list[Row]]:
        """The rows before a row, and those from it on; with `stop`, of its episode."""
        chain = self.chain(row)
        at = next(i for i, other in enumerate(chain) if other is row)
        before, after = chain[:at], chain[at:]
        if stop:
            ends = [i for i, other in enumerate(before) if other.code]
            before = before[ends[-1] + 1 :] if ends else before
            ends = [i for i, other in enumerate(after) if other.code]
            after = after[: ends[0] + 1] if ends else after
        return before, after

    def episode(self, row: Row) -> list[Row]:
        before, after = self.around(row)
        return before + after

    def episodes(self) -> list[list[Row]]:
        found = [self.episode(row) for row in self.rows if not row.alone]
        return [episode for i, episode in enumerate(found) if episode[0].id not in {e[0].id for e in found[:i]}]

    def ending(self, episode: list[Row]) -> str:
        last = episode[-1]
        if last.code:
            return "terminated" if last.code == 1 else "truncated"
        cut = any(at > last.id and which in (None, last.source) for at, which in self.cuts)
        return "cut" if cut else "running"

    # ---- which rows ----

    def legal(self, ask: Ask) -> list[Row]:
        rows, stop = self.of(ask.source), ask.boundary == "stop"
        if not ask.full:
            return rows
        return [row for row in rows if len(self.around(row, stop)[1]) >= ask.sequence_length]

    def draw(self, rows: list[Row], count: int) -> list[Row]:
        return [rows[min(int(u * len(rows)), len(rows) - 1)] for u in self.rng.random(count)]

    def choose(self, ask: Ask) -> list[Row] | None:
        """The chosen rows, or None where there are too few."""
        rows, legal = self.of(ask.source), self.legal(ask)
        if not ask.replace:
            return None if len(legal) < max(ask.size, 1) else self.shuffled(legal, ask.size)
        if not rows:
            return None
        state = self.rng.bit_generator.state
        chosen = self.draw(rows, ask.size)
        for _ in range(TRIES):
            bad = [i for i, row in enumerate(chosen) if row not in legal]
            for i, row in zip(bad, self.draw(rows, len(bad)), strict=True):
                chosen[i] = row
        bad = [i for i, row in enumerate(chosen) if row not in legal]
        if bad and not legal:
            self.rng.bit_generator.state = state  # a call that fails draws nothing
            return None
        for i, row in zip(bad, self.draw(legal, len(bad)), strict=True):
            chosen[i] = row
        return chosen

    def shuffled(self, rows: list[Row], count: int) -> list[Row]:
        """Fisher and Yates, from the front."""
        rows = list(rows)
        for i, u in enumerate(self.rng.random(count)):
            j = i + min(int(u * (len(rows) - i)), len(rows) - i - 1)
            rows[i], rows[j] = rows[j], rows[i]
        return rows[:count]

    # ---- what is given of them ----

    def cell(self, row: Row | None, gamma: float) -> Cell:
        if row is None:
            zero = {name: mapped(spec, zeros) for name, spec in self.layout.specs().items()}
            return Cell(None, zero)
        before = self.around(row)[0]
        discount = 0.0 if row.code == 1 else gamma
        return Cell(row, copy.deepcopy(row.values), row.code, not before, 1, discount, before[-1] if before else None)

    def window(self, row: Row, ask: Ask) -> list[Cell]:
        """The steps around a chosen row."""
        stop = ask.boundary == "stop"
        before, after = self.around(row, stop)
        lead, follow = ask.burn_in, max(ask.sequence_length, ask.n_step)
        if ask.padding == "start" and ask.n_step == 1:
            lead, follow = ask.burn_in + ask.sequence_length - 1, 1
        left = ([None] * lead + before)[len(before) :] if len(before) < lead else before[len(before) - lead :]
        right = (after + [None] * follow)[:follow]
        return [self.cell(step, ask.discount) for step in [*left, *right]]

    def sample(self, ask: Ask) -> list[list[Cell]] | None:
        """A window of cells for each chosen row; for single steps and n-step sums, windows of one."""
        chosen = self.choose(ask)
        if chosen is None:
            return None
        windows = self.changed(chosen, [self.window(row, ask) for row in chosen], ask)
        return [[self.folded(window, ask.discount)] for window in windows] if ask.n_step > 1 else windows

    def changed(self, chosen: list[Row], windows: list[list[Cell]], ask: Ask) -> list[list[Cell]]:
        return windows

    def folded(self, window: list[Cell], gamma: float) -> Cell:
        """Several steps as one: the first reward undiscounted, the next one by gamma, and so on."""
        steps = [cell for cell in window if cell.row is not None]
        total, factor = np.zeros(1), 1.0
        for cell in steps:
            total = total + factor * components(cell.values["reward"])
            factor *= gamma
        dtype = self.layout.sum_dtype
        sums = (total.view(np.complex128) if dtype.kind == "c" else total).astype(dtype)
        last = steps[-1]
        values = {
            **window[0].values,
            "reward": sums.reshape(self.layout.reward.shape),
            "next_observation": last.values["next_observation"],
        }
        discount = 0.0 if last.code == 1 else factor
        return replace(window[0], values=values, code=last.code, steps=len(steps), discount=discount)
