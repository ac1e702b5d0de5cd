"""The recorded cases of TorchRL's split_trajectories, read into NumPy; see tests/data/torchrl/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "data" / "torchrl"
FILES = {int(path.name.split("_")[2]): path for path in sorted(FOLDER.glob("split_trajectories_*.json"))}


def load(number: int) -> dict[str, Any]:
    case = json.loads(FILES[number].read_text(encoding="utf-8"))
    case["kwargs"] = {name: value_of(value) for name, value in case["kwargs"].items()}
    case["batch_dims"] = len(case["input"]["batch_size"])
    return {**case, "input": value_of(case["input"]), "output": value_of(case.get("output"))}


def value_of(value: Any) -> Any:
    """Dicts, arrays, ragged ones as lists of arrays, tuple keys, and strings for TorchRL's other data."""
    if not isinstance(value, dict):
        return value
    kind = value["kind"]
    if kind == "dict":
        return {name: value_of(field) for name, field in value["fields"].items()}
    if kind == "array":
        return array_of(value)
    if kind == "key":
        return tuple(value["data"])
    if kind == "nested":
        return [value_of(row) for row in value["rows"]]
    assert kind == "nontensor"
    data = np.array(value["data"], object)
    return np.where(data == None, "", data).astype(str)  # noqa: E711


def array_of(value: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(value["dtype"])
    if dtype.kind == "c":
        pairs = np.array(value["data"], float).reshape(*value["shape"], 2)
        return (pairs[..., 0] + 1j * pairs[..., 1]).astype(dtype)
    # The strings "NaN" and "Infinity" are read by float().
    return (
        np.array(value["data"], object)
        .reshape(value["shape"])
        .astype(float if dtype.kind == "f" else dtype)
        .astype(dtype)
    )


def equal(ours: Any, theirs: Any) -> None:
    """Equal keys, shapes, dtypes and bytes."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict)
        assert sorted(ours) == sorted(theirs)
        for name in theirs:
            equal(ours[name], theirs[name])
        return
    assert isinstance(ours, np.ndarray)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ours.tobytes() == theirs.tobytes(), f"\n{ours}\n{theirs}"


def copied(data: Any) -> Any:
    return {name: copied(value) for name, value in data.items()} if isinstance(data, dict) else data.copy()


def leaves(data: Any) -> list[np.ndarray]:
    return [leaf for value in data.values() for leaf in leaves(value)] if isinstance(data, dict) else [data]
