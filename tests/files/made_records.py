"""Experiences of any layout for the tests of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np

import rlmemory as rlm

SHAPES = ((), (3,), (2, 2), (0,))
DTYPES = ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64")
KEYS = st.sampled_from(["pose", "arm/left", "arm/right", "a b", "ü", "_index_1"])


def array(rng: np.random.Generator, rows: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    raw = rng.integers(-100, 100, (rows, *shape))
    result = (raw > 0) if dtype == "bool" else raw.astype(dtype)
    if result.dtype.kind == "f":
        result = np.where(rng.random(result.shape) < 0.1, np.nan, result).astype(dtype)
    return np.asarray(result)


def leaf_specs() -> st.SearchStrategy[Any]:
    return st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES))


def structures() -> st.SearchStrategy[Any]:
    leaf = leaf_specs()
    return st.one_of(
        leaf.map(lambda one: ("single", one)),
        st.lists(leaf, min_size=1, max_size=3).map(lambda several: ("tuple", several)),
        st.dictionaries(KEYS, leaf, min_size=1, max_size=3).map(lambda named: ("dict", named)),
    )


def draw(rng: np.random.Generator, rows: int, structure: Any) -> Any:
    form, specs = structure
    if form == "single":
        return array(rng, rows, *specs)
    if form == "tuple":
        return tuple(array(rng, rows, *spec) for spec in specs)
    return {key: array(rng, rows, *spec) for key, spec in specs.items()}


@st.composite
def experiences(draw_from: Any, *, single: bool = False) -> rlm.Experience:
    """Whole episodes, one after another, each with an end."""
    kinds = leaf_specs().map(lambda one: ("single", one)) if single else structures()
    observation, action = draw_from(kinds), draw_from(kinds)
    reward = ("single", (draw_from(st.sampled_from([(), (2,)])), draw_from(st.sampled_from(["float32", "float64"]))))
    extra = ("dict", draw_from(st.dictionaries(st.sampled_from(["cost", "state"]), leaf_specs(), max_size=2)))
    lengths = draw_from(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    rng = np.random.default_rng(draw_from(st.integers(0, 2**32)))
    parts = [
        rlm.files.read_simulation_log(
            draw(rng, steps + 1, observation),
            draw(rng, steps, action),
            draw(rng, steps, reward),
            terminated=bool(rng.random() < 0.5),
            extra=draw(rng, steps, extra),
        )
        for steps in lengths
    ]
    memory = rlm.files.memory_from(parts[0], sum(lengths))
    for part in parts[1:]:
        memory.extend_from(part)
    return memory.all()


def flat(value: Any) -> list[tuple[Any, np.ndarray]]:
    if isinstance(value, dict):
        return sorted(value.items())
    return list(enumerate(value)) if isinstance(value, tuple) else [(None, value)]


def assert_same(found: rlm.Experience, wanted: rlm.Experience) -> None:
    """Equal structure, names, dtypes, shapes and bits."""
    for name, a, b in zip(wanted._fields, found, wanted, strict=True):
        assert type(a) is type(b), name
        ours, theirs = flat(a), flat(b)
        assert [key for key, _ in ours] == [key for key, _ in theirs], name
        for (key, x), (_, y) in zip(ours, theirs, strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape), (name, key)
            assert x.tobytes() == y.tobytes(), (name, key)


def small(episodes: int = 3, steps: int = 4) -> rlm.Experience:
    """Observation k of episode e is 10 e + k."""
    memory = None
    for number in range(episodes):
        log = rlm.files.read_simulation_log(
            10.0 * number + np.arange(steps + 1.0), np.arange(steps), np.ones(steps), terminated=number % 2 == 0
        )
        memory = memory or rlm.files.memory_from(log, episodes * steps)
        if number:
            memory.extend_from(log)
    assert memory is not None
    return memory.all()


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.endswith(".part")]
