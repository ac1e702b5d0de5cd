"""Specs, arrays and generators as what JSON knows, and back; nothing that is read is trusted."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CheckpointError, NotAvailableError
from ..specs import FiniteSetSpec, NumericSpec
from ..structures import Structure

_DTYPE = re.compile(r"[<>|][biufc]\d{1,2}")
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_SPACES = ("box", "multidiscrete", "multibinary")
#: The largest entry, in bytes, that specs may describe when the rows in the files do not have as many.
_ENTRY = 1 << 26


def member(values: Any, key: str, kind: type | tuple[type, ...], what: str = "manifest") -> Any:
    """An entry of a dict, of this type; bools are not ints."""
    if not isinstance(values, dict) or key not in values:
        raise CheckpointError(f"{what}: no entry {key!r}")
    value = values[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CheckpointError(f"{what}: {key} is {_short(value)}")
    return value


def whole(values: Any, key: str, low: int, high: int, what: str = "manifest") -> int:
    """An int of a dict, in these limits."""
    value: int = member(values, key, int, what)
    if not low <= value <= high:
        raise CheckpointError(f"{what}: {key} is {_short(value)}, not between {low} and {high}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:60] + "..."


# ---- arrays ---------------------------------------------------------------------------------------------------------


def array_to_plain(array: NDArray[Any]) -> dict[str, Any]:
    """The bytes as text; one entry's when all are equal."""
    array = np.asarray(array, order="C")
    one = array.reshape(-1)[:1]
    same = array.size > 1 and array.tobytes() == np.full_like(array, one[0]).tobytes()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "hex": (one if same else array).tobytes().hex()}


def array_from_plain(value: Any, what: str) -> NDArray[Any]:
    """As it was, or a scalar for an array of equal entries: then nothing is as large as its shape says."""
    dtype, shape = dtype_from_plain(value, what), shape_from_plain(value, what)
    try:
        data = bytes.fromhex(member(value, "hex", str, what))
    except ValueError as error:
        raise CheckpointError(f"{what}: {error}") from error
    if len(data) == dtype.itemsize * math.prod(shape):
        return np.frombuffer(data, dtype).reshape(shape)
    if len(data) == dtype.itemsize:
        return np.frombuffer(data, dtype)[0]  # type: ignore[no-any-return]
    raise CheckpointError(f"{what}: {len(data)} bytes do not make an array of shape {shape} and dtype {dtype}")


def dtype_from_plain(value: Any, what: str) -> np.dtype[Any]:
    """A dtype that a memory can store."""
    text = member(value, "dtype", str, what)
    if not _DTYPE.fullmatch(text):
        raise CheckpointError(f"{what}: no dtype {_short(text)}")
    try:
        dtype: np.dtype[Any] = np.dtype(text)
    except TypeError as error:
        raise CheckpointError(f"{what}: no dtype {_short(text)}") from error
    if not dtype.isnative:
        raise CheckpointError(f"{what}: written on a machine of the other byte order ({text})")
    return dtype


def shape_from_plain(value: Any, what: str) -> tuple[int, ...]:
    """A shape of at most 32 axes."""
    shape = member(value, "shape", list, what)
    if len(shape) > 32 or not all(type(size) is int and 0 <= size < 2**40 for size in shape):
        raise CheckpointError(f"{what}: no shape {_short(shape)}")
    return tuple(shape)


# ---- specs ----------------------------------------------------------------------------------------------------------


def structure_to_plain(group: Structure) -> dict[str, Any]:
    """The arrangement of a field's channels, and their specs."""
    if not all(isinstance(key, str) for key in group.keys) and group.form == "dict":
        raise NotAvailableError(f"{group.field}: channels whose keys are not strings cannot be saved: {group.keys}")
    return {
        "form": group.form,
        "keys": list(group.keys) if group.form == "dict" else None,
        "specs": [_spec_to_plain(spec) for spec in group.specs],
    }


def _spec_to_plain(spec: NumericSpec) -> dict[str, Any]:
    plain: dict[str, Any] = {"dtype": spec.dtype.str, "shape": list(spec.shape)}
    plain |= {"name": spec.name, "description": spec.description}
    if isinstance(spec, FiniteSetSpec):
        return {**plain, "elements": array_to_plain(spec.elements)}
    limits = {key: getattr(spec, key) for key in ("low", "high")}
    return {
        **plain,
        "space": spec._space,
        **{key: None if value is None else array_to_plain(value) for key, value in limits.items()},
    }


def structure_from_plain(value: Any, field: str, room: int) -> Any:
    """The specs that `structure_to_plain` was given; none with entries much larger than `room` bytes."""
    form = member(value, "form", str, field)
    leaves = [_spec_from_plain(spec, field, room) for spec in member(value, "specs", list, field)]
    if form == "dict":
        keys = member(value, "keys", list, field)
        if len(set(map(repr, keys))) != len(leaves) or not all(isinstance(key, str) for key in keys):
            raise CheckpointError(f"{field}: the keys are {_short(keys)}")
        return dict(zip(keys, leaves, strict=True))
    if form == "tuple":
        return tuple(leaves)
    if form != "single" or len(leaves) != 1:
        raise CheckpointError(f"{field}: {len(leaves)} channels arranged as {_short(form)}")
    return leaves[0]


def _spec_from_plain(value: Any, field: str, room: int) -> NumericSpec:
    dtype, shape = dtype_from_plain(value, field), shape_from_plain(value, field)
    if dtype.itemsize * math.prod(shape) > max(room, _ENTRY):
        raise CheckpointError(f"{field}: entries of shape {shape} are larger than all files")
    texts = {key: member(value, key, str, field) for key in ("name", "description")}
    if "elements" in value:
        elements = array_from_plain(value["elements"], field)
        if not elements.shape:  # of a single one, all entries are equal
            elements = np.full((1, *shape), elements)
        spec: NumericSpec = FiniteSetSpec(elements, dtype, **texts)
        if spec.shape != shape:
            raise CheckpointError(f"{field}: elements of shape {spec.shape}, not {shape}")
        return spec
    low, high = (
        None if member(value, key, (dict, type(None)), field) is None else array_from_plain(value[key], field)
        for key in ("low", "high")
    )
    spec = NumericSpec(shape, dtype, low=low, high=high, **texts)
    space = member(value, "space", str, field)
    if space not in _SPACES:
        raise CheckpointError(f"{field}: no space {_short(space)}")
    object.__setattr__(spec, "_space", space)  # ours, and not yet seen by anyone
    return spec


# ---- generators -----------------------------------------------------------------------------------------------------


def generator_to_plain(generator: np.random.Generator) -> dict[str, Any]:
    """Which kind, and where it stands."""
    state: dict[str, Any] = dict(generator.bit_generator.state)
    if type(generator.bit_generator) is not getattr(np.random, str(state.get("bit_generator")), None):
        raise NotAvailableError(
            f"a generator of the kind {type(generator.bit_generator).__name__} cannot be saved; "
            f"NumPy's own can: {', '.join(_GENERATORS)}"
        )
    plain: dict[str, Any] = _numbers(state)
    return plain


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(entry) for key, entry in value.items()}
    return value if isinstance(value, str) else np.asarray(value, object).tolist()


def generator_from_plain(value: Any) -> np.random.Generator:
    """A generator that goes on where the other one stood."""
    kind = member(value, "bit_generator", str, "generator")
    if kind not in _GENERATORS:
        raise CheckpointError(f"generator: no kind {_short(kind)}")
    fresh = getattr(np.random, kind)(0)
    state = dict(value)
    inner = state["state"] = dict(member(value, "state", dict, "generator"))
    # NumPy believes these; they are places in arrays.
    if kind == "MT19937":
        whole(inner, "pos", 0, 624, "generator")
    if kind == "Philox":
        whole(state, "buffer_pos", 0, 4, "generator")
    try:
        for where, key in ((inner, "key"), (inner, "counter"), (state, "buffer"), (inner, "state")):
            if isinstance(where.get(key), list):
                where[key] = np.array(where[key], np.uint32 if kind == "MT19937" else np.uint64)
        fresh.state = state
        held = _numbers(fresh.state) == value
    except (TypeError, ValueError, KeyError, OverflowError, IndexError) as error:
        raise CheckpointError(f"generator: {error}") from error
    if not held:
        raise CheckpointError(f"generator: not a state of {kind}")
    return np.random.Generator(fresh)
