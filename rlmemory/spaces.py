"""Between specs and Gymnasium's spaces. Gymnasium is imported when a space is at hand, not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .errors import SpecError
from .specs import FiniteSetSpec, NumericSpec

if TYPE_CHECKING:
    import gymnasium


def structure_from_space(
    space: gymnasium.Space[Any], float_dtype: DTypeLike | None
) -> NumericSpec | tuple[NumericSpec, ...] | dict[str, NumericSpec]:
    """One spec for a plain space; a tuple or dict of specs for a Tuple or Dict space."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {str(key): _leaf(part, f"[{key!r}]", float_dtype) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_leaf(part, f"[{i}]", float_dtype) for i, part in enumerate(space.spaces))
    return _leaf(space, "", float_dtype)


def _leaf(space: gymnasium.Space[Any], where: str, float_dtype: DTypeLike | None) -> NumericSpec:
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        dtype = space.dtype
        if float_dtype is not None and np.dtype(dtype).kind == "f":
            dtype = np.dtype(float_dtype)
        return NumericSpec(space.shape, dtype, low=space.low, high=space.high)
    if isinstance(space, spaces.Discrete):
        choices = np.arange(space.start, space.start + space.n, dtype=space.dtype)
        return FiniteSetSpec(choices)
    if isinstance(space, spaces.MultiDiscrete):
        spec = NumericSpec(space.shape, space.dtype, low=space.start, high=space.start + space.nvec - 1)
        return _of_kind(spec, "multidiscrete")
    if isinstance(space, spaces.MultiBinary):
        return _of_kind(NumericSpec(space.shape, space.dtype, low=0, high=1), "multibinary")
    nested = isinstance(space, (spaces.Dict, spaces.Tuple))
    raise SpecError(
        f"space{where} is a {type(space).__name__}, "
        + ("nested deeper than one level" if nested else "whose entries have no fixed shape and dtype")
        + "; flatten it first (gymnasium.wrappers.FlattenObservation, gymnasium.spaces.flatten_space)"
    )


def _of_kind(spec: NumericSpec, kind: str) -> NumericSpec:
    object.__setattr__(spec, "_space", kind)  # the spec is ours and not yet seen by anyone
    return spec


def space_from_spec(spec: NumericSpec) -> gymnasium.Space[Any]:
    """The inverse of `structure_from_space` for one spec."""
    from gymnasium import spaces

    if spec.dtype.kind == "c":
        raise SpecError(f"{spec!r}: Gymnasium has no space of complex numbers")
    if isinstance(spec, FiniteSetSpec):
        return _discrete(spec)
    if spec._space == "multidiscrete":
        assert spec.low is not None
        assert spec.high is not None
        return spaces.MultiDiscrete(spec.high - spec.low + 1, dtype=spec.dtype.type, start=spec.low)
    if spec._space == "multibinary" or spec.dtype.kind == "b":
        return spaces.MultiBinary(spec.shape[0] if len(spec.shape) == 1 else spec.shape)
    limits = np.iinfo(spec.dtype) if spec.dtype.kind in "iu" else None
    low = (limits.min if limits else -np.inf) if spec.low is None else spec.low
    high = (limits.max if limits else np.inf) if spec.high is None else spec.high
    return spaces.Box(low, high, shape=spec.shape, dtype=spec.dtype.type)


def _discrete(spec: FiniteSetSpec) -> gymnasium.Space[Any]:
    from gymnasium import spaces

    run = np.arange(len(spec.elements)) + spec.elements.ravel()[0] if spec.shape == () else None
    if spec.dtype.kind not in "iu" or run is None or not np.array_equal(run, spec.elements):
        raise SpecError(
            f"{spec!r}: Gymnasium's Discrete holds consecutive integers only; "
            "store the index into the elements instead, as FiniteSetSpec(range(n))"
        )
    return spaces.Discrete(len(spec.elements), start=int(spec.elements[0]), dtype=spec.dtype.type)
