"""One run of the demo: experiences into a list and into two memories, everything back, every bit compared."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .memory import ReplayMemory
from .specs import FiniteSetSpec

_SAMPLE = 256
_MATLAB_CLASSES = {"float64": "double", "float32": "single", "bool": "logical"}
_MATLAB_FIELDS = ("Observation", "Action", "Reward", "NextObservation", "IsDone")

Arrays = dict[str, NDArray[Any]]


class Step(NamedTuple):
    """One experience, as it was given."""

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    terminated: Any
    truncated: Any


class Row(NamedTuple):
    """One way back out of a memory, and how it compared: a line of the table."""

    way: str
    seconds: float
    values: int
    wrong: int
    first_wrong: str


class Run:
    """Experiences of one origin, in a list, in a `ReplayMemory` and in an ``rlReplayMemory``.

    Parameters
    ----------
    name, kind : str
        For the table.
    memory : ReplayMemory
        Empty, with room for all.
    steps : callable
        Gives the experiences.
    count : int
        How many there are.
    by_episode : bool
        Whether `memory` gets whole episodes by `extend`, and not single steps by `append`.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        memory: ReplayMemory,
        steps: Callable[[], Iterator[Step]],
        count: int,
        *,
        by_episode: bool = False,
    ) -> None:
        # The core does not know that the facade exists, and must not need it: this comparison of the two is the one
        # place that does, and it asks for it here, when it runs, not when rlmemory is imported.
        self.matlab: Any = importlib.import_module("matlab_compat")
        self.name, self.kind, self.memory = name, kind, memory
        self.buffer = self._matlab_buffer(count)
        self.given: list[Step] = []
        self.seconds = {"core": 0.0, "matlab": 0.0}
        self._steps, self._count, self._by_episode = steps, count, by_episode

    def __len__(self) -> int:
        return self._count

    def _matlab_buffer(self, capacity: int) -> Any:
        specs = []
        for spec in (self.memory.observation_spec, self.memory.action_spec):
            data_type = _MATLAB_CLASSES.get(spec.dtype.name, spec.dtype.name)
            if isinstance(spec, FiniteSetSpec):
                specs.append(self.matlab.rlFiniteSetSpec(spec.elements.tolist(), DataType=data_type))
            else:
                specs.append(self.matlab.rlNumericSpec(_dimension(spec.shape), DataType=data_type))
        return self.matlab.rlReplayMemory(*specs, capacity)

    # ---- in

    def fill(self, tick: Callable[[], object]) -> None:
        """Put everything into the list and both memories."""
        episode: list[Step] = []
        for step in self._steps():
            # Copies: a memory that kept a reference instead of the values could not hide it.
            self.given.append(Step(*(np.array(value) for value in step)))
            start = perf_counter()
            if not self._by_episode:
                self.memory.append(**step._asdict())
            middle = perf_counter()
            self._append_matlab(step)
            self.seconds["core"] += middle - start
            self.seconds["matlab"] += perf_counter() - middle
            episode.append(step)
            if step.terminated or step.truncated:
                self._extend(episode)
                episode = []
            tick()
        self._extend(episode)

    def _extend(self, episode: list[Step]) -> None:
        if self._by_episode and episode:
            columns: dict[str, Any] = columns_of(episode)
            start = perf_counter()
            self.memory.extend(**columns)
            self.seconds["core"] += perf_counter() - start

    def _append_matlab(self, step: Step) -> None:
        e = self.matlab.struct()
        e.Observation, e.Action, e.NextObservation = [step.observation], [step.action], [step.next_observation]
        e.Reward, e.IsDone = step.reward, 1 if step.terminated else 2 * step.truncated
        self.matlab.append(self.buffer, e)

    # ---- out

    def compare(self) -> list[Row]:
        """Everything back out, in every way, against the list."""
        columns = columns_of(self.given)
        columns["truncated"] &= ~columns["terminated"]  # an experience that was both is kept as terminated
        ring = ReplayMemory(
            self.memory.observation_spec,
            self.memory.action_spec,
            max(1, len(self) // 5),
            reward=self.memory.reward_spec,
        )
        for chunk in self.memory.chunks(300):
            ring.extend_from(chunk)
        self.memory.sample(_SAMPLE)  # the first one of a process loads the kernels
        return [
            self._row("rlmemory  all()", self.memory.all, lambda e: (_fields(e), columns)),
            self._row(
                f"rlmemory  sample({_SAMPLE})",
                lambda: self.memory.sample(_SAMPLE),
                lambda batch: (_fields(batch), {key: column[batch.id] for key, column in columns.items()}),
            ),
            self._row(
                f"rlmemory  ring of {ring.capacity:,}, all()",
                ring.all,
                lambda e: (_fields(e), {key: column[-ring.capacity :] for key, column in columns.items()}),
            ),
            *(self._matlab_row(mode, columns) for mode in ("none", "batch", "sequence")),
        ]

    def _matlab_row(self, mode: str, columns: Arrays) -> Row:
        def read() -> Arrays:
            found = self.matlab.allExperiences(self.buffer, ConcatenateMode=mode)
            return _elements(found) if mode == "none" else _matlab_fields(found)

        return self._row(f'matlab_compat  "{mode}"', read, lambda found: (found, _in_matlab_order(columns, mode)))

    def _row(self, way: str, read: Callable[[], Any], pair: Callable[[Any], tuple[Arrays, Arrays]]) -> Row:
        start = perf_counter()
        result = read()
        seconds = perf_counter() - start
        found, wanted = pair(result)
        values = sum(array.size for array in wanted.values())
        notes = {key: differences(found[key], wanted[key]) for key in wanted}
        bad = {key: note for key, note in notes.items() if note[0]}
        first = next((f"{key}: {note}" for key, (_, note) in bad.items()), "")
        return Row(way, seconds, values, sum(count for count, _ in bad.values()), first)

    def table(self, rows: list[Row]) -> str:
        """What was compared, how large it is and how long it took."""
        ends = sum(step.terminated or step.truncated for step in self.given)
        core, matlab = (self.seconds[key] / max(len(self), 1) * 1e6 for key in ("core", "matlab"))
        lines = [
            f"{self.name}, {self.kind}: {len(self.given):,} experiences, {ends:,} episode ends, "
            f"{self.memory.nbytes / 2**20:.2f} MiB",
            f"  stored in {core:.2f} us each by rlmemory ({'extend' if self._by_episode else 'append'}), "
            f"in {matlab:.2f} us each by matlab_compat (struct and append)",
            f"  {'back by':<36}{'ms':>10}{'values':>12}{'different':>12}",
        ]
        for row in rows:
            lines.append(f"  {row.way:<36}{row.seconds * 1e3:>10.2f}{row.values:>12,}{row.wrong:>12,}")
            lines += [f"    {row.first_wrong}"] if row.wrong else []
        return "\n".join([*lines, ""])


def differences(found: NDArray[Any], wanted: NDArray[Any]) -> tuple[int, str]:
    """How many entries differ in any bit, and the first of them in words; all, when shape or dtype differ."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return max(wanted.size, 1), f"{found.dtype}{found.shape} came back, {wanted.dtype}{wanted.shape} was expected"
    bits = [np.frombuffer(array.tobytes(), np.uint8).reshape(-1, array.itemsize) for array in (found, wanted)]
    where = np.flatnonzero((bits[0] != bits[1]).any(axis=1))
    if not where.size:
        return 0, ""
    place = tuple(int(i) for i in np.unravel_index(where[0], wanted.shape))
    return where.size, f"at {place}: {found[place]!r} came back, {wanted[place]!r} was given"


def columns_of(steps: list[Step]) -> Arrays:
    """The list as one array a field."""
    return {key: np.stack([np.asarray(getattr(step, key)) for step in steps]) for key in Step._fields}


def _fields(record: Any) -> Arrays:
    return {key: getattr(record, key) for key in Step._fields}


# ---- MATLAB's order of axes ---------------------------------------------------------------------------------------


def _dimension(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape, *(1,) * (2 - len(shape)))


def _matlab_fields(found: Any) -> Arrays:
    channels = ("Observation", "Action", "NextObservation")
    return {key: getattr(found, key)[0] if key in channels else getattr(found, key) for key in _MATLAB_FIELDS}


def _elements(found: Any) -> Arrays:
    """A struct array, read element by element."""
    rows = [_matlab_fields(element) for element in found]
    return {key: np.stack([row[key] for row in rows]) for key in _MATLAB_FIELDS}


def _in_matlab_order(columns: Arrays, mode: str) -> Arrays:
    """What each mode has to give: Dimension x N, Dimension x 1 x N, or N elements."""
    done = columns["terminated"] + 2.0 * columns["truncated"]
    numbers = {"Reward": columns["reward"], "IsDone": done}
    wanted = {}
    for key in _MATLAB_FIELDS:
        column = numbers.get(key, columns.get({"NextObservation": "next_observation"}.get(key, key.lower())))
        assert column is not None
        count = len(column)
        dimension = (1,) if key in numbers else _dimension(column.shape[1:])
        if mode == "none":
            wanted[key] = column if key in numbers else column.reshape(count, *dimension)
        else:
            lead = (count,) if mode == "batch" else (1, count)
            wanted[key] = np.moveaxis(column, 0, -1).reshape(*dimension, *lead)
    return wanted
