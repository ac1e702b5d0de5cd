"""The state of a memory: its specs, its arena, its cursor, its lock. What is done with it is in the modules above."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .accept import as_numeric, at_least, cast_exactly
from .arena import Arena, Mode
from .blocks import Field, Plan
from .borrowed import is_on_device, viewed
from .errors import ArenaError, NotAvailableError, NotPickleableError, SpecError, StaleIdError
from .ring import spans
from .specs import NumericSpec, SpecStructure
from .structures import Structure
from .timeline import Timeline

if TYPE_CHECKING:
    from .device_arena import DeviceArena

    AnyArena: TypeAlias = Arena | DeviceArena

_CODE = np.dtype(np.uint8)
_SOURCE = np.dtype(np.int32)


class Store:
    """What `ReplayMemory` is made of; see there for the parameters."""

    def __init__(
        self,
        observation: SpecStructure,
        action: SpecStructure,
        capacity: int = 10_000,
        *,
        reward: DTypeLike | NumericSpec = "float64",
        extra: Mapping[str, NumericSpec] | None = None,
        device: str = "cpu",
        path: str | os.PathLike[str] | None = None,
        mode: Mode = "x",
        seed: int | np.random.SeedSequence | np.random.Generator | None = None,
    ) -> None:
        self._device = checked_device(device, path)
        self._groups = (
            Structure("observation", observation),
            Structure("action", action),
            Structure("reward", _reward_spec(reward)),
            Structure("next_observation", observation),
            Structure("extra", {} if extra is None else _checked_extra(extra)),
        )
        self._environments = 1
        self._rng = _generator(seed)
        self._next_id = self._length = 0
        rows = at_least("capacity", capacity, 1)
        self._open(rows, self._new_arena(rows, path, mode))
        if mode == "r+":
            self._source[:] = 0  # the file may hold those of its earlier use
        self._timeline = Timeline(self._capacity)
        self._renew_lock()

    # ---- layout -------------------------------------------------------------------------------------------------

    def _channels(self) -> list[tuple[str, NumericSpec]]:
        """Every array that a caller gives for an experience, in the order of the arena's first columns."""
        return [pair for group in self._groups for pair in zip(group.names, group.specs, strict=True)]

    def _fields(self) -> list[Field]:
        channels = [(name, spec.dtype, spec.shape) for name, spec in self._channels()]
        return [*channels, ("is_done", _CODE, ()), ("source", _SOURCE, ())]

    def _new_arena(self, capacity: int, path: str | os.PathLike[str] | None = None, mode: Mode = "x") -> AnyArena:
        if self._device == "cpu":
            return Arena(self._fields(), capacity, path, mode)
        from .device_arena import DeviceArena
        from .kernels._cuda import device_number

        reward = len(self._groups[0].specs) + len(self._groups[1].specs)
        return DeviceArena(self._fields(), capacity, device_number(self._device), reward)

    def _open(self, capacity: int, arena: AnyArena) -> None:
        """Take `arena` into use."""
        self._capacity = capacity
        self._arena = arena
        self._views: list[Any] = arena.views[:-2]
        self._is_done: NDArray[np.uint8] = arena.views[-2]
        self._source: NDArray[np.int32] = arena.views[-1]
        # While every row has source 0, the column holds zeros and nobody needs to look at it.
        self._single = True
        # Whether some rows stand alone: no row follows or precedes them. Their source s is kept as -1 - s.
        self._alone = False
        self._edits = 0  # counts the changes that next_id does not show
        self._plans: dict[Any, Plan] = {}
        self._candidates: tuple[Any, NDArray[np.int64]] | None = None
        self._by_source: tuple[Any, NDArray[np.int64]] | None = None
        self._named = self._channels()
        # What the fast path of append compares with: column, dtype, shape, and the scalar types that are stored as
        # they are. A Python float is a float64; a Python int may be too large and is looked at first.
        self._accepts = [
            (view, spec.dtype, spec.shape, _exact_scalars(spec))
            for view, (_, spec) in zip(self._views, self._named, strict=True)
        ]
        counts = [len(group.specs) for group in self._groups]
        self._action_column, self._reward_column = counts[0], counts[0] + counts[1]
        self._reward_view: NDArray[Any] = self._views[self._reward_column]
        if not isinstance(arena, Arena):
            self._reward_view = arena.rewards
        # A Python float (or float64) within these bounds is a float reward, rounded; outside, it is looked at first.
        reward = self._groups[2].specs[0]
        scalar = reward.shape == () and reward.dtype.kind == "f"
        self._reward_limit = float(np.finfo(reward.dtype).max) if scalar else -1.0
        *channels, extra = self._groups
        self._plain = all(group.form == "single" for group in channels) and not extra.specs
        self._simple = self._plain and self._environments == 1 and arena.path is None

    def _serve(self, environments: int) -> None:
        """Take experiences of this many environments: from two on, each must say where it comes from."""
        self._environments = environments
        self._simple = self._simple and environments == 1

    # ---- cursor -------------------------------------------------------------------------------------------------

    @property
    def _oldest(self) -> int:
        return self._next_id - self._length

    def _plain_sources(self, column: NDArray[np.int32]) -> NDArray[np.int32]:
        """Sources as the user knows them."""
        return np.where(column < 0, -1 - column, column) if self._alone else column

    def _is_from(self, source: int, rows: slice | NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the rows in these slots are of one source."""
        mine: NDArray[np.bool_] = self._plain_sources(self._source[rows]) == source
        return mine

    def _spans(self, begin: int, end: int) -> list[tuple[int, int, int]]:
        return spans(begin, end, self._capacity)

    def _live(self, ids: ArrayLike) -> NDArray[np.int64]:
        """`ids` as int64, each of them the id of a stored experience."""
        given = as_numeric("ids", self._fetched("ids", ids))
        if given.dtype.kind == "b":
            raise StaleIdError("ids: expected whole numbers, got bools; for a mask use ids[mask]")
        rows = cast_exactly("ids", given, np.dtype(np.int64))
        stale = (rows < self._oldest) | (rows >= self._next_id)
        if stale.any():
            bad = int(rows[stale].flat[0])
            why = "was overwritten" if 0 <= bad < self._oldest else "was never stored"
            why = "stands for padding" if bad == -1 else why
            live = f"the live ids are {self._oldest} to {self._next_id - 1}" if self._length else "the memory is empty"
            raise StaleIdError(f"ids: {bad} {why}; {live}")
        return rows

    def _fetched(self, name: str, value: Any) -> Any:
        """What a memory on a device looks at on the host: ends, sources, ids, priorities. Others as they are."""
        if isinstance(self._arena, Arena) or not is_on_device(value):
            return value
        with self._lock:
            return viewed(name, value, self._arena.number).copy_to_host()

    def _moved_to(self, arena: AnyArena, capacity: int, length: int) -> None:
        """Lay the newest `length` rows out in another arena, so that ``slot = id % capacity`` holds there too."""
        begin, capacity_now = self._next_id - length, self._capacity
        for first, last, done in spans(begin, self._next_id, capacity_now):
            piece = begin + done
            for to, to_end, skipped in spans(piece, piece + last - first, capacity):
                arena.copy_rows(to, to_end, self._arena, first + skipped)
        single, alone, edits = self._single, self._alone, self._edits
        self._open(capacity, arena)
        self._single, self._alone, self._edits = single, alone, edits + 1
        self._length = length
        cuts, self._timeline = self._timeline.cuts, Timeline(capacity)
        self._timeline.cuts = cuts

    # ---- lock, fork, pickle -------------------------------------------------------------------------------------

    def _renew_lock(self) -> None:
        self._lock: Any = threading.RLock()
        if not isinstance(self._arena, Arena):
            from .device_lock import DeviceLock

            self._lock = DeviceLock(self._arena.number)
        self._owner_pid = os.getpid()
        _living.add(self)

    def _check_writable(self) -> None:
        if self._arena.path is not None and self._owner_pid != os.getpid():
            raise ArenaError(
                f"the memory in {self._arena.path} belongs to the process that made it; a forked child may only read"
            )

    def __getstate__(self) -> dict[str, Any]:
        if self._arena.path is not None:
            raise NotPickleableError(
                f"a memory whose arena is a file ({self._arena.path}) cannot be pickled or copied: two memories would "
                "share the file; make a memory in RAM and extend_from(memory.all())"
            )
        with self._lock:
            state = {key: self.__dict__[key] for key in _PICKLED}
            runs = self._spans(self._oldest, self._next_id)
            state["rows"] = [np.concatenate([v[:0], *(v[a:b] for a, b, _ in runs)]) for v in self._arena.views]
            state["cuts"] = list(self._timeline.cuts)
            state.update({key: value for key, value in self.__dict__.items() if key not in _OWN})
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {"_device": "cpu", **state}  # pickles from before there were devices do not say
        rows, cuts = state.pop("rows"), state.pop("cuts")
        single, alone = state.pop("_single"), state.pop("_alone")
        self.__dict__.update(state)
        self._open(self._capacity, self._new_arena(self._capacity))
        self._renew_lock()
        with self._lock:
            for first, last, done in self._spans(self._oldest, self._next_id):
                self._arena.write(first, last, rows, done)
        self._single, self._alone = single, alone
        self._timeline = Timeline(self._capacity)
        self._timeline.cuts = cuts


_PICKLED = (
    "_groups", "_device", "_environments", "_rng", "_next_id", "_length", "_capacity",
    "_single", "_alone",
)  # fmt: skip
_DERIVED = (
    "_arena", "_views", "_is_done", "_source", "_edits", "_plans", "_candidates", "_by_source", "_accepts",
    "_action_column", "_reward_column", "_reward_view", "_reward_limit", "_plain", "_simple", "_named", "_timeline",
    "_lock", "_owner_pid",
)  # fmt: skip
_OWN = frozenset(_PICKLED + _DERIVED)
_living: weakref.WeakSet[Store] = weakref.WeakSet()


def _after_fork() -> None:
    # Another thread may have held a lock at the moment of the fork; in the child nobody would ever release it.
    for store in list(_living):
        if not store._arena.on_device:  # the lock of a device says that the child cannot use it
            store._lock = threading.RLock()
        # A generator has a lock of its own. If another thread was drawing, its state is in motion, and newer NumPys
        # would wait for ever to tell it: then the child draws from a stream of its own.
        taken = store._rng.bit_generator
        if taken.lock.acquire(blocking=False):
            taken.lock.release()
            fresh = type(taken)()
            fresh.state = taken.state
        else:
            fresh = type(taken)(np.random.SeedSequence())
        store._rng = np.random.Generator(fresh)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def checked_device(device: Any, path: Any = None) -> str:
    """A device as it is called: "cpu", or "cuda:0"; an error when it is not there."""
    if device == "cpu":
        return "cpu"
    if not isinstance(device, str):
        raise NotAvailableError(f"device={device!r}: expected 'cpu', 'cuda' or 'cuda:N'")
    if path is not None:
        raise NotAvailableError(f"path: a file cannot be in the memory of {device}; give one of the two")
    from .kernels._cuda import device_number

    return f"cuda:{device_number(device)}"


def _reward_spec(reward: DTypeLike | NumericSpec) -> NumericSpec:
    return reward if isinstance(reward, NumericSpec) else NumericSpec((), reward, name="reward")


def _checked_extra(extra: Mapping[str, NumericSpec]) -> Mapping[str, NumericSpec]:
    if not isinstance(extra, Mapping):
        raise SpecError(f"extra: expected a dict of names and specs, got {type(extra).__name__}")
    return extra


def _generator(seed: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"seed: expected an int from 0 up, a SeedSequence or a numpy.random.Generator, got {seed!r}"
        ) from error


def _exact_scalars(spec: NumericSpec) -> frozenset[type]:
    if spec.shape != ():
        return frozenset()
    python: dict[str, tuple[type, ...]] = {"float64": (float,), "bool": (bool,), "complex128": (complex, float)}
    return frozenset({spec.dtype.type, *python.get(spec.dtype.name, ())})
