"""What every replay memory of this interface is: a handle on a memory of rlmemory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import rlmemory as rlm

from .display import properties
from .layout import packed
from .reading import Reader
from .records import LazyRecords
from .specs import RLDataSpec


class Buffer:
    """A handle: assigned and passed by reference, as MATLAB's handle objects are.

    Parameters
    ----------
    make : callable
        Makes the memory of rlmemory: takes the specs of observation and action, then these:
    obsInfo, actInfo : spec or sequence of specs
    *arguments, **options
        What `make` takes as well.
    """

    __slots__ = ("_action_info", "_memory", "_observation_info", "_reader", "_unread")

    _memory: rlm.ReplayMemory
    #: Whether `sample` gives sequences.
    _sequences: ClassVar[bool] = True

    def __init__(
        self, make: Callable[..., rlm.ReplayMemory], obsInfo: Any, actInfo: Any, *arguments: Any, **options: Any
    ) -> None:
        observation, action = _specs("obsInfo", obsInfo), _specs("actInfo", actInfo)
        self._observation_info = obsInfo if isinstance(obsInfo, RLDataSpec) else observation
        self._action_info = actInfo if isinstance(actInfo, RLDataSpec) else action
        self._reader = Reader([s._channel for s in observation], [s._channel for s in action])
        self._unread: list[weakref.ref[LazyRecords]] = []
        self.memory = make(
            packed(tuple(spec._core() for spec in observation)),
            packed(tuple(spec._core() for spec in action)),
            *arguments,
            **options,
        )

    @property
    def memory(self) -> rlm.ReplayMemory:
        """The memory of rlmemory underneath; one that is assigned must be on the host."""
        return self._memory

    @memory.setter
    def memory(self, value: rlm.ReplayMemory) -> None:
        if not isinstance(value, rlm.ReplayMemory):
            raise TypeError(f"memory: an rlmemory.ReplayMemory was expected; got {type(value).__name__}")
        if value.device != "cpu":
            raise rlm.NotAvailableError(
                f"memory: it is on {value.device}, and a MATLAB buffer is on the host; ReturnGpuArray=True gives what "
                "is drawn there, and a memory there is used as an rlmemory.ReplayMemory, without this interface"
            )
        self._memory = value

    @property
    def MaxLength(self) -> int:
        """How many experiences fit; read-only, ``resize(buffer, n)`` changes it."""
        return self.memory.capacity

    @MaxLength.setter
    def MaxLength(self, value: Any) -> None:
        raise AttributeError(f"MaxLength is read-only: resize(buffer, {value!r}) changes it")

    @property
    def Length(self) -> int:
        """How many experiences are stored; read-only."""
        return len(self.memory)

    @Length.setter
    def Length(self, value: Any) -> None:
        raise AttributeError("Length is read-only: it counts the experiences stored; reset(buffer) makes it 0")

    def __repr__(self) -> str:
        shown = [*self._shown(), ("MaxLength", self.MaxLength), ("Length", self.Length)]
        return properties(f"{type(self).__name__} with properties:", shown)

    def _shown(self) -> list[tuple[str, Any]]:
        """The properties of the kind of memory, which stand before those that all have."""
        return []

    def _remember(self, records: LazyRecords) -> None:
        """Note records that will be read from the memory later, so that they are read before it changes."""
        self._unread = [ref for ref in self._unread if ref() is not None]
        self._unread.append(weakref.ref(records))

    def _settle(self) -> None:
        """Read what `allExperiences` promised, before the memory changes."""
        unread, self._unread = self._unread, []
        for ref in unread:
            records = ref()
            if records is not None:
                records.load()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "memory": self.memory,
            "_observation_info": self._observation_info,
            "_action_info": self._action_info,
            "_reader": self._reader,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._unread = []
        for name, value in state.items():
            setattr(self, name, value)


def _specs(name: str, given: Any) -> list[Any]:
    specs = [given] if isinstance(given, RLDataSpec) else given
    if isinstance(specs, Sequence) and specs and all(isinstance(spec, RLDataSpec) for spec in specs):
        return list(specs)
    hint = ""
    if isinstance(given, (int, float)):
        hint = "; a memory is made as rlReplayMemory(obsInfo, actInfo, maxLength)"
    elif hasattr(given, "shape"):
        hint = "; specs of rlmemory and spaces of Gymnasium have their own class there, rlmemory.ReplayMemory"
    raise rlm.SpecError(
        f"{name}: expected rlNumericSpec or rlFiniteSetSpec, or a list of them, one for each channel; "
        f"got {type(given).__name__}{hint}"
    )


def checked(function: str, buffer: Any) -> Buffer:
    """The buffer, or an error saying that the first argument of `function` must be one."""
    if isinstance(buffer, Buffer):
        return buffer
    raise TypeError(f"{function} expects a replay memory as its first argument; got {type(buffer).__name__}")
