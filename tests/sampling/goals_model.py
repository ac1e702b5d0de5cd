"""The hindsight memories as a list of rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

import rlmemory as rlm

from .layouts import Layout, Spec
from .model import Ask, Cell, Model, Row

GOALS = Layout(
    {"achieved_goal": Spec((2,)), "desired_goal": Spec((2,)), "other": Spec((), "float32")},
    Spec((), "int64"),
    Spec((), "float32"),
    {"log_prob": Spec(())},
)


def reward_fn(observation: Any, action: Any, next_observation: Any) -> np.ndarray:
    """0 at the goal and less elsewhere. All that it is given has a part in it."""
    return np.where(is_done_fn(observation, action, next_observation), 0.0, -1.0 - action / 4 - observation["other"])


def is_done_fn(observation: Any, action: Any, next_observation: Any) -> np.ndarray:
    """The goal is in both observations: the one before is compared with what was achieved after."""
    met: np.ndarray = (next_observation["achieved_goal"] == observation["desired_goal"]).all(axis=-1)
    assert np.array_equal(observation["desired_goal"], next_observation["desired_goal"], equal_nan=True)
    return met


@dataclass
class Hindsight:
    """How a memory relabels."""

    strategy: str = "final"
    goal_samples: int = 4
    relabel: str = "sample"
    judged: bool = True  # whether a function finds the ends again

    def memory(self, capacity: int, seed: int) -> rlm.HindsightReplayMemory:
        return GOALS.memory(
            capacity, rlm.HindsightReplayMemory, seed=seed, reward_fn=reward_fn, strategy=self.strategy,
            goal_samples=self.goal_samples, relabel=self.relabel, is_done_fn=is_done_fn if self.judged else None,
        )  # fmt: skip


class GoalModel(Model):
    def __init__(self, how: Hindsight, capacity: int, seed: int) -> None:
        super().__init__(GOALS, capacity, seed)
        self.how = how

    # ---- goals ----

    def goal(self, row: Row, u: float, oldest: int) -> np.ndarray:
        """What was achieved after the row that the strategy takes."""
        before, after = self.around(row)
        rows = {"final": after[-1:], "future": after, "episode": [r for r in before if r.id >= oldest] + after}
        choice = rows[self.how.strategy]
        chosen = choice[min(int(u * len(choice)), len(choice) - 1)]
        return np.asarray(chosen.values["next_observation"]["achieved_goal"])

    @staticmethod
    def given(values: dict[str, Any], goal: np.ndarray) -> dict[str, Any]:
        """The values of a row with another goal, and the reward that follows from it."""
        new = copy.deepcopy(values)
        new["observation"]["desired_goal"] = new["next_observation"]["desired_goal"] = goal
        new["reward"] = reward_fn(*GoalModel.judged_by(new)).astype(np.float32)
        return new

    @staticmethod
    def judged_by(values: dict[str, Any]) -> tuple[Any, Any, Any]:
        return values["observation"], values["action"], values["next_observation"]

    def code_of(self, values: dict[str, Any], code: int) -> int:
        """The end of a row with a new goal. A truncation stays one unless the goal is met."""
        if not self.how.judged:
            return code
        return 1 if is_done_fn(*self.judged_by(values)) else 2 if code == 2 else 0

    # ---- in what is sampled ----

    def changed(self, chosen: list[Row], windows: list[list[Cell]], ask: Ask) -> list[list[Cell]]:
        if self.how.relabel == "store":
            return windows
        k = self.how.goal_samples
        share = 0.5 if self.how.strategy == "final" else k / (k + 1)
        which, where = self.rng.random(len(chosen)), self.rng.random(len(chosen))
        oldest = self.rows[0].id
        return [
            self.relabelled(window, self.goal(row, v, oldest), ask) if u < share else window
            for row, window, u, v in zip(chosen, windows, which, where, strict=True)
        ]

    def relabelled(self, window: list[Cell], goal: np.ndarray, ask: Ask) -> list[Cell]:
        over = False
        for t, cell in enumerate(window):
            if cell.row is None:
                continue
            if over:
                window[t] = self.cell(None, ask.discount)
                continue
            cell.values = self.given(cell.values, goal)
            if t >= ask.burn_in:
                cell.code = self.code_of(cell.values, cell.code)
                over = cell.code == 1 and self.how.judged
            cell.discount = 0.0 if cell.code == 1 else ask.discount
        return window

    # ---- as experiences of their own ----

    def generated(self, rows: list[Row]) -> list[Row]:
        """Rows with new goals, and the ids of those that they were made of."""
        repeats = 1 if self.how.strategy == "final" else self.how.goal_samples
        made = [row for row in rows for _ in range(repeats)]
        oldest = min(row.id for row in rows)
        result = []
        for row, u in zip(made, self.rng.random(len(made)), strict=True):
            values = self.given(row.values, self.goal(row, u, oldest))
            result.append(Row(row.id, row.source, self.code_of(values, row.code), values, alone=True))
        return result

    def store(self, rows: list[Row]) -> None:
        for row in rows:
            self.append(row.values, row.code, row.source, alone=True)

    def ended(self, ids: list[int]) -> None:
        """Episodes have ended with these rows."""
        for last in ids if self.how.relabel == "store" else []:
            row = next((row for row in self.rows if row.id == last), None)
            if row is not None:
                self.store(self.generated(self.around(row)[0] + [row]))

    def end_episode(self, source: int | None) -> None:
        running = [e[-1] for e in self.episodes() if self.ending(e) == "running" and source in (None, e[-1].source)]
        self.ended([row.id for row in sorted(running, key=lambda row: row.source)])
        super().end_episode(source)

    def newest(self, length: int | None, source: int | None) -> list[Row]:
        """The rows that `generate_hindsight` makes new ones of."""
        rows = [row for row in self.of(source) if not row.alone]
        if length is not None:
            return rows[-length:]
        return self.around(rows[-1])[0] + [rows[-1]] if rows else []
