"""Results: the blocks that a memory fills and hands out, laid out once for each kind of call and kept."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .batch import Batch, Experience
from .blocks import Field, Plan
from .errors import StructureError
from .specs import NumericSpec
from .store import Store

Arrays = tuple[NDArray[Any], ...]

_BOOL, _INT, _FLOAT, _SOURCE = (np.dtype(kind) for kind in (np.bool_, np.int64, np.float64, np.int32))
#: What an Experience has beside its channels, and what a Batch has beside an Experience, with their dtypes.
ROW = (("terminated", _BOOL), ("truncated", _BOOL), ("source", _SOURCE), ("id", _INT))
STEP = (("mask", _BOOL), ("is_first", _BOOL), ("steps", _INT), ("discount", _FLOAT))


class Target(NamedTuple):
    """Where a result goes: its plan, the bytes, and the arrays cut from them."""

    plan: Plan
    block: NDArray[np.uint8]
    arrays: Arrays


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

    def _target(self, plan: Plan, out: Experience | Batch | None) -> Target:
        """A fresh block, or the one behind `out`."""
        if out is None:
            return Target(plan, *plan.make())
        reused = plan.again(getattr(out, "id", None))
        if reused is None:
            raise StructureError(
                "out: expected the result of the same call with the same options and number of rows, got "
                f"{type(out).__name__}; leave `out` away to get a new one"
            )
        return Target(plan, *reused)

    def _gather(self, table: NDArray[np.int64], slots: NDArray[np.int64], block: NDArray[np.uint8]) -> None:
        kernels.active().gather(self._arena.block, table, slots, block)

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


_PLAIN_BATCH = 4 + len(ROW) + len(STEP) + 1


def matrix(array: NDArray[Any]) -> NDArray[Any]:
    """An array with one row for each of its entries; NumPy's ``reshape(n, -1)`` fails for n = 0."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def sum_dtype(spec: NumericSpec) -> np.dtype[Any]:
    """In which dtype sums of discounted rewards are given: the reward's own if it is float or complex, else float64."""
    return spec.dtype if spec.dtype.kind in "fc" else _FLOAT
