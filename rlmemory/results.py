"""Results: the blocks that a memory fills and hands out, laid out once for each kind of call and kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .arena import Arena
from .batch import Batch, Experience
from .blocks import Field, Plan
from .device_array import DeviceArray
from .errors import NotAvailableError, StructureError
from .specs import NumericSpec
from .store import Store

if TYPE_CHECKING:
    from .device_arena import DeviceArena

Arrays = tuple[Any, ...]

_BOOL, _INT, _FLOAT, _SOURCE = (np.dtype(kind) for kind in (np.bool_, np.int64, np.float64, np.int32))
#: What an Experience has beside its channels, and what a Batch has beside an Experience, with their dtypes.
ROW = (("terminated", _BOOL), ("truncated", _BOOL), ("source", _SOURCE), ("id", _INT))
STEP = (("mask", _BOOL), ("is_first", _BOOL), ("steps", _INT), ("discount", _FLOAT))


class Target(NamedTuple):
    """Where a result goes: its plan, the bytes, and the arrays cut from them.

    On a GPU, `block` has the bytes there; `arrays` are on the host, and only those of them mean anything which the
    host fills (`Plan.by_host`). `bytes_` is what they are cut from.
    """

    plan: Plan
    block: Any
    arrays: Arrays
    bytes_: Any = None


class Results(Store):
    """How the memory lays out, fills and arranges what it gives."""

    @property
    def _weight_column(self) -> int:
        """Where a batch has its weights, among its arrays."""
        return len(self._views) + len(ROW) + len(STEP)

    def _rows_plan(self, lead: tuple[int, ...]) -> Plan:
        """The layout of an Experience whose arrays begin with the axes `lead`."""
        key = ("rows", lead)
        plan = self._plans.get(key)
        if plan is None:
            channels: list[Field] = [(name, spec.dtype, lead + spec.shape) for name, spec in self._named]
            plan = Plan([*channels, *((name, dtype, lead) for name, dtype in ROW)])
            plan.by_host = [(len(channels), len(plan.columns) - 1)]
            plan.tables["all"] = self._table(plan, range(len(channels)))
            self._keep(key, plan)  # last: an interrupt before this leaves nothing half made behind
        return plan

    def _batch_plan(self, lead: tuple[int, ...], rows: int, *, sums: bool, previous: bool) -> Plan:
        """The layout of a Batch of `rows` windows; with `sums` its rewards are sums over several steps."""
        key = ("batch", lead, rows, sums, previous)
        plan = self._plans.get(key)
        if plan is not None:
            return plan
        fields: list[Field] = [(name, spec.dtype, lead + spec.shape) for name, spec in self._named]
        reward, actions = self._reward_column, range(self._action_column, self._reward_column)
        if sums:
            fields[reward] = ("reward", sum_dtype(self._named[reward][1]), fields[reward][2])
        channels = len(fields)
        fields += [(name, dtype, lead) for name, dtype in (*ROW, *STEP)]
        fields.append(("weight", _FLOAT, (rows,)))
        earlier = [*actions, reward] if previous else []
        fields += [(f"previous_{self._named[i][0]}", self._named[i][1].dtype, fields[i][2]) for i in earlier]
        plan = Plan(fields)
        plan.by_host = [(channels, channels + len(ROW) + len(STEP))] + ([(reward, reward)] if sums else [])
        following = range(reward + 1, channels - len(self._groups[4].specs))
        plan.tables["all"] = self._table(plan, range(channels))
        plan.tables["first"] = self._table(plan, [i for i in range(channels) if i != reward and i not in following])
        plan.tables["last"] = self._table(plan, following)
        plan.tables["previous"] = self._table(plan, earlier, len(fields) - len(earlier))
        self._keep(key, plan)
        return plan

    def _keep(self, key: Any, plan: Plan) -> Plan:
        if len(self._plans) >= 16:  # all() and get() of ever new sizes would pile up
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def _table(self, plan: Plan, columns: Any, to: int | None = None) -> NDArray[np.int64]:
        """What `gather` reads to bring arena columns into the block: to equal numbers there, or from `to` on."""
        places = [i if to is None else to + k for k, i in enumerate(columns)]
        rows = [(*self._arena.table[i].tolist(), plan.columns[k].start) for i, k in zip(columns, places, strict=True)]
        return np.array(rows, np.int64).reshape(-1, 3)

    def _target(self, plan: Plan, out: Experience | Batch | None, *, pinned: bool = False) -> Target:
        """A fresh block, or the one behind `out`."""
        if not isinstance(self._arena, Arena):
            if pinned:
                raise ValueError(f"pinned: the batches of this memory are on {self._device} already; leave it away")
            return self._target_there(self._arena, plan, out)
        if out is None:
            return Target(plan, *(plan.make(_page_locked()) if pinned else plan.make()))
        reused = plan.again(getattr(out, "id", None), pinned=pinned)
        if reused is None:
            raise _unfit(out, ", page-locked (pinned=True) as well" if pinned else "")
        return Target(plan, *reused)

    @staticmethod
    def _target_there(arena: DeviceArena, plan: Plan, out: Experience | Batch | None) -> Target:
        """The same on a GPU: the host's part is fresh in any case."""
        block = arena.make(plan) if out is None else arena.again(plan, getattr(out, "id", None))
        if block is None:
            raise _unfit(out, f", from a memory on cuda:{arena.number} as well")
        bytes_, arrays = plan.make()
        return Target(plan, block, arrays, bytes_)

    def _on_host(self, plan: Plan) -> Target:
        """A fresh block on the host, whatever the memory's device."""
        return Target(plan, *plan.make())

    def _gather(self, table: NDArray[np.int64], slots: NDArray[np.int64], block: Any) -> None:
        if isinstance(self._arena, Arena):
            kernels.active().gather(self._arena.block, table, slots, block)
        else:
            self._arena.gather(table, slots, block)

    def _given(self, target: Target) -> Arrays:
        """The arrays to hand out; what the host has filled of a result on a GPU is brought there first."""
        if isinstance(self._arena, Arena) or target.bytes_ is None:
            return target.arrays
        self._arena.finish(target.plan, target.block, target.bytes_, target.plan.by_host)
        return self._arena.arrays(target.plan, target.block)

    def _lifted(self, filled: Target, target: Target) -> Arrays:
        """A result that was filled on the host, on the GPU."""
        if isinstance(self._arena, Arena) or target.bytes_ is None:
            return filled.arrays
        self._arena.finish(target.plan, target.block, filled.block, [(0, len(target.plan.columns) - 1)])
        return self._arena.arrays(target.plan, target.block)

    def _take_source(self, slots: NDArray[np.int64], out: NDArray[np.int32]) -> None:
        """The sources of the rows at `slots`; 0 for a slot of -1."""
        if self._single:
            out[...] = 0
        else:
            np.take(self._source, slots, out=out, mode="clip")
            out[slots < 0] = 0
            out[...] = self._plain_sources(out)

    def _as_experience(self, arrays: Arrays) -> Experience:
        channels, rest = self._arranged(arrays)
        return Experience(*channels[:4], *rest, extra=channels[4])  # type: ignore[misc]

    def _as_batch(self, arrays: Arrays) -> Batch:
        if self._plain and len(arrays) == _PLAIN_BATCH:  # one array a field: as they are
            return Batch._make((*arrays[:8], {}, *arrays[8:], None, None))
        channels, rest = self._arranged(arrays)
        tail = rest[len(ROW) : len(ROW) + len(STEP) + 1]
        earlier = rest[len(ROW) + len(STEP) + 1 :]
        actions = self._groups[1].pack(earlier[:-1]) if earlier else None
        return Batch._make(
            (*channels[:4], *rest[: len(ROW)], channels[4], *tail, actions, earlier[-1] if earlier else None)
        )

    def _arranged(self, arrays: Arrays) -> tuple[list[Any], Arrays]:
        """The channels in the arrangement of their specs, and the arrays after them."""
        channels, i = [], 0
        for group in self._groups:
            channels.append(group.pack(arrays[i : i + len(group.specs)]))
            i += len(group.specs)
        return channels, arrays[i:]


def _unfit(out: Any, kind: str) -> StructureError:
    there = getattr(out, "id", None)
    came = f"{type(out).__name__}{f' on {there.device}' if isinstance(there, DeviceArray) else ''}"
    return StructureError(
        f"out: expected the result of the same call with the same options and number of rows{kind}, got "
        f"{came}; leave `out` away to get a new one"
    )


def _page_locked() -> Callable[[int], NDArray[np.uint8]]:
    """What allocates page-locked memory, or an error when there is no CUDA to lock it for."""
    from .kernels import _cuda

    try:
        _cuda.device_number("cuda")
    except NotAvailableError as error:
        raise NotAvailableError(f"pinned: memory is page-locked for a GPU. {error}") from error
    return _cuda.pinned


_PLAIN_BATCH = 4 + len(ROW) + len(STEP) + 1


def matrix(array: NDArray[Any]) -> NDArray[Any]:
    """An array with one row for each of its entries; NumPy's ``reshape(n, -1)`` fails for n = 0."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def as_float64(rewards: NDArray[Any], lead: tuple[int, ...]) -> NDArray[np.float64]:
    """Rewards as (*lead, components) of float64, a complex number as two of them."""
    if rewards.dtype.kind == "c":
        return rewards.astype(np.complex128).reshape(*lead, -1).view(np.float64)
    return np.ascontiguousarray(rewards.reshape(*lead, -1), np.float64)


def sum_dtype(spec: NumericSpec) -> np.dtype[Any]:
    """In which dtype sums of discounted rewards are given: the reward's own if it is float or complex, else float64."""
    return spec.dtype if spec.dtype.kind in "fc" else _FLOAT
