"""Random nested data, and the naive loops that the fast ones must agree with."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np

DTYPES = (
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16", ">f4", ">i2", "M8[s]",
    "m8[ms]", "U3", "S4", "i4,f8",
)  # fmt: skip
FEATURES = ((), (1,), (3,), (2, 2), (0,), (1, 4))


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Any bytes that are values of the dtype: NaNs with payloads, minus zero, missing times."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    if kind.kind == "U":
        return rng.choice(np.array(["", "a", "né", "xyz", "日本"]), shape).astype(kind)
    size = int(np.prod(shape)) * kind.itemsize
    if kind.char == "g":  # its padding bytes do not survive a copy in NumPy itself
        return rng.normal(size=shape).astype(kind)
    return np.frombuffer(rng.bytes(size), kind).reshape(shape)  # read-only, too


@st.composite
def batches(draw: Any) -> tuple[int, ...]:
    """[N], [B, T], [B1, B2, T], without steps now and then."""
    return (*draw(st.lists(st.integers(1, 4), max_size=2)), draw(st.integers(0, 9)))


@st.composite
def nested(draw: Any, batch: tuple[int, ...], *, seed: int) -> dict[str, Any]:
    """Up to three levels of leaves of any dtype."""
    rng = np.random.default_rng(seed)
    leaf = st.tuples(st.sampled_from(DTYPES), st.sampled_from(FEATURES))
    tree = draw(
        st.recursive(
            st.dictionaries(st.sampled_from("abcd"), leaf, max_size=4),
            lambda inner: st.dictionaries(st.sampled_from("efg"), inner, max_size=2),
            max_leaves=4,
        )
    )

    def made(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: made(inner) for name, inner in node.items()}
        return random_array(rng, (*batch, *node[1]), node[0])

    return made(tree)


def flat_paths(data: dict[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], np.ndarray]:
    found: dict[tuple[str, ...], np.ndarray] = {}
    for name, value in data.items():
        found |= flat_paths(value, (*path, name)) if isinstance(value, dict) else {(*path, name): value}
    return found


def naive_pieces(batch: tuple[int, ...], cut_before: Any, limit: int | None) -> list[list[int]]:
    """Flat steps of each piece; ``cut_before(i)`` says whether step i, not the first of a row, begins one."""
    pieces: list[list[int]] = []
    for i in range(int(np.prod(batch))):
        if i % batch[-1] == 0 or cut_before(i) or len(pieces[-1]) == limit:
            pieces.append([])
        pieces[-1].append(i)
    return pieces


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Equal shapes, dtypes and bytes."""
    if theirs.dtype.char == "g":  # bytes that are no part of the number need not be equal
        return ours.shape == theirs.shape and ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    return (ours.shape, ours.dtype, ours.tobytes()) == (theirs.shape, theirs.dtype, theirs.tobytes())


def naive_padded(leaf: np.ndarray, batch: tuple[int, ...], pieces: list[list[int]], fill: Any = None) -> np.ndarray:
    flat = leaf.reshape(int(np.prod(batch)), *leaf.shape[len(batch) :])
    out = np.zeros((len(pieces), max(map(len, pieces), default=0), *flat.shape[1:]), leaf.dtype)
    for k, piece in enumerate(pieces):
        for t in range(out.shape[1]):
            if t < len(piece):
                out[k, t] = flat[piece[t]]
            elif fill is not None:
                out[k, t] = fill
    return out
