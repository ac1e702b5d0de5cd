"""The state of a memory whose rows have priorities: the options, and what moving and copying the memory does to it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .accept import at_least
from .memory import ReplayMemory
from .priorities import HIGHEST, Priorities, check_priority
from .specs import SpecStructure

if TYPE_CHECKING:
    from .store import AnyArena

Floats = NDArray[np.float64]


class Ranked(ReplayMemory):
    """What `PrioritizedReplayMemory` is made of; see there for the parameters."""

    def __init__(
        self,
        observation: SpecStructure,
        action: SpecStructure,
        capacity: int = 10_000,
        *,
        priority_exponent: float = 0.6,
        importance_exponent: float = 0.4,
        annealing_steps: int = 1_000_000,
        priority_epsilon: float = 1e-6,
        stratified: bool = True,
        weight_normalization: Literal["batch", "memory"] = "batch",
        **keywords: Any,
    ) -> None:
        if weight_normalization not in ("batch", "memory"):
            raise ValueError(f"weight_normalization: expected 'batch' or 'memory', got {weight_normalization!r}")
        exponent = _between("priority_exponent", priority_exponent, HIGHEST)
        epsilon = _between("priority_epsilon", priority_epsilon, HIGHEST)
        self._beta = _between("importance_exponent", importance_exponent, 1.0)
        self._steps = at_least("annealing_steps", annealing_steps, 1)
        self._updates = 0  # calls of update_priorities
        self._stratified = bool(stratified)
        self._whole = weight_normalization == "memory"
        super().__init__(observation, action, capacity, **keywords)
        self._priorities = Priorities(self._capacity, exponent, epsilon, least=self._whole)

    # ---- options ------------------------------------------------------------------------------------------------

    @property
    def priority_exponent(self) -> float:
        """To which power priorities are raised."""
        return self._priorities.exponent

    @priority_exponent.setter
    def priority_exponent(self, value: float) -> None:
        exponent = _between("priority_exponent", value, HIGHEST)
        with self._lock:
            priority, _ = self._in_order()
            check_priority(priority, exponent)
            self._priorities.exponent = exponent
            self._lay_out(priority, self._priorities.masses(priority))

    @property
    def importance_exponent(self) -> float:
        """The exponent of the weights to begin with; `current_importance_exponent` is what it is now."""
        return self._beta

    @importance_exponent.setter
    def importance_exponent(self, value: float) -> None:
        self._beta = _between("importance_exponent", value, 1.0)

    @property
    def annealing_steps(self) -> int:
        """Calls of `update_priorities` until beta is 1."""
        return self._steps

    @annealing_steps.setter
    def annealing_steps(self, value: int) -> None:
        self._steps = at_least("annealing_steps", value, 1)

    @property
    def current_importance_exponent(self) -> float:
        """The exponent of the weights now: from `importance_exponent` to 1, linear in calls of `update_priorities`."""
        if self._updates >= self._steps:
            return 1.0
        return self._beta + (1.0 - self._beta) * (self._updates / self._steps)

    @property
    def priority_epsilon(self) -> float:
        """What is added to each priority before the exponent."""
        return self._priorities.epsilon

    @property
    def stratified(self) -> bool:
        """Whether a batch takes one draw from each of B equal parts of the total mass."""
        return self._stratified

    @property
    def weight_normalization(self) -> Literal["batch", "memory"]:
        """Which weight becomes 1: the largest of the batch, or of the memory."""
        return "memory" if self._whole else "batch"

    # ---- what the memory does to its rows -----------------------------------------------------------------------

    def _sync_priorities(self) -> None:
        self._priorities.sync(self._oldest, self._next_id)

    def clear(self) -> None:
        """Forget every experience and its priority; ids go on counting, and so does the importance exponent.

        Notes
        -----
        MATLAB: ``reset``.
        """
        with self._lock:
            super().clear()
            self._lay_out(np.empty(0), np.empty(0))

    def _lay_out(self, priority: Floats, mass: Floats) -> None:
        """The priorities of the live rows, oldest first, into slots that have changed."""
        self._priorities.rebuild(self._capacity, self._oldest, self._next_id, priority, mass)

    def _in_order(self) -> tuple[Floats, Floats]:
        self._sync_priorities()
        return self._priorities.in_order(self._oldest, self._next_id)

    def _moved_to(self, arena: AnyArena, capacity: int, length: int) -> None:
        priority, mass = self._in_order()
        super()._moved_to(arena, capacity, length)
        self._priorities = copy(self._priorities)  # the other one stays as it is until all of this is done
        self._lay_out(priority[priority.size - length :], mass[mass.size - length :])

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = super().__getstate__()
            # In place of the tree. The masses too: the power function of another machine may round otherwise, and
            # then draw otherwise.
            ranks = self._priorities
            state["_priorities"] = (ranks.exponent, ranks.epsilon, *self._in_order())
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        exponent, epsilon, priority, mass = state["_priorities"]
        super().__setstate__({key: value for key, value in state.items() if key != "_priorities"})
        self._priorities = Priorities(self._capacity, exponent, epsilon, least=self._whole)
        self._lay_out(priority, mass)


def _between(name: str, value: Any, highest: float) -> float:
    number = float(value)
    if not 0.0 <= number <= highest:
        raise ValueError(f"{name}: expected a number from 0 to {highest:g}, got {value!r}")
    return number
