"""Random cases, live against TorchRL: ``python tests/cross_check_torchrl.py [CASES] [SEED]``.

Not a part of the test suite: it needs torch, torchrl and tensordict beside rlmemory, in an environment of its own::

    pip install torch==2.13.0 numpy numba scipy cloudpickle packaging importlib_metadata orjson pyvers
    pip install --no-deps torchrl tensordict

Every case is nested data in ``[N]`` or ``[B, T]``, with ends or with ids, of random dtypes and features. Cases are
drawn where TorchRL is right: its ids do not come back and change at the end of a row. Keys, shapes, dtypes and bytes
are compared, and the rows of nested tensors. Returns and advantages are compared to 1e-12.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

import rlmemory as rlm

DTYPES = ("bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
FEATURES = ((), (1,), (3,), (2, 2), (0,))


def random_leaf(rng: np.random.Generator, batch: tuple[int, ...]) -> np.ndarray:
    dtype, feature = np.dtype(rng.choice(DTYPES)), FEATURES[rng.integers(len(FEATURES))]
    shape = (*batch, *feature)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return (
        (rng.normal(size=shape) * 50).astype(np.float64).astype(dtype)
        if dtype.kind != "u"
        else rng.integers(0, 256, shape, dtype)
    )


def random_case(rng: np.random.Generator) -> tuple[dict[str, Any], tuple[int, ...], dict[str, Any]]:
    """Data, its batch shape, and options."""
    steps = int(rng.integers(1, 13))
    batch = (steps,) if rng.random() < 0.5 else (int(rng.integers(1, 5)), steps)
    data: dict[str, Any] = {f"x{i}": random_leaf(rng, batch) for i in range(rng.integers(1, 4))}
    data["inner"] = {"y": random_leaf(rng, batch), "deep": {"z": random_leaf(rng, batch)}}
    options: dict[str, Any] = {}
    ends = rng.random(batch) < rng.random()
    if rng.random() < 0.5:
        done = ends[..., None] if rng.random() < 0.5 or steps == 1 else ends
        key = rng.choice(["done", "end"])
        data["next"] = {"y": random_leaf(rng, batch), str(key): done}
        if key != "done" or rng.random() < 0.5:
            options["done_key"] = str(key)
        if rng.random() < 0.3:
            options["prefix"] = [("a", "b"), "inner"][rng.integers(2)]
        if rng.random() < 0.2:
            data["collector"] = {"x": random_leaf(rng, batch)}
        if rng.random() < 0.2:
            data["mask"] = ends
    else:
        ends[..., -1] = True
        number = np.append(0, np.cumsum(ends.reshape(-1))[:-1])
        ids = rng.permutation(ends.size + 5)[number].reshape(batch) - 3  # distinct, in no order, negative ones too
        ids = ids.astype(rng.choice(["int64", "int32", "float32"]))
        place = rng.integers(3)
        if place == 0:
            data["traj_ids"] = ids
        elif place == 1:
            data["collector"] = {"traj_ids": ids}
        else:
            data["inner"]["episode"] = ids
            options["trajectory_key"] = ("inner", "episode")
    return data, batch, options


def compare(ours: Any, theirs: Any, where: str = "") -> None:
    """Equal keys, shapes, dtypes and bytes."""
    if isinstance(ours, dict):
        keys = sorted(map(str, theirs.keys()))
        assert sorted(ours) == keys, f"{where}: keys {sorted(ours)} against {keys}"
        for name in ours:
            compare(ours[name], theirs.get(name), f"{where}/{name}")
        return
    array = theirs.resolve_conj().numpy()
    assert (ours.dtype, ours.shape) == (array.dtype, array.shape), f"{where}: {ours.shape} against {array.shape}"
    assert ours.tobytes() == array.tobytes(), f"{where}:\n{ours}\n{array}"


def compare_ragged(flat: dict[str, Any], offsets: np.ndarray, theirs: Any, where: str = "") -> None:
    for name, leaf in flat.items():
        if isinstance(leaf, dict):
            compare_ragged(leaf, offsets, theirs.get(name), f"{where}/{name}")
        else:
            for k, row in enumerate(theirs.get(name).unbind(0)):
                compare(leaf[offsets[k] : offsets[k + 1]], row, f"{where}/{name}[{k}]")


def as_tensors(torch: Any, data: dict[str, Any], batch: tuple[int, ...]) -> Any:
    from tensordict import TensorDict

    fields = {
        name: as_tensors(torch, value, batch) if isinstance(value, dict) else torch.from_numpy(value.copy())
        for name, value in data.items()
    }
    return TensorDict(fields, batch_size=list(batch))


def check_split(torch: Any, rng: np.random.Generator) -> bool:
    """One case; whether its rows were compared as nested tensors too."""
    from torchrl.collectors.utils import split_trajectories

    data, batch, options = random_case(rng)
    theirs = split_trajectories(as_tensors(torch, data, batch), **options)
    compare(rlm.split_trajectories(data, **options), theirs)
    compare(rlm.split_trajectories(data, **options, batch_dims=len(batch)), theirs)
    if not all(leaf.size for leaf in all_leaves(data)) or "mask" in data:
        return False  # nested tensors cannot hold empty features; there a mask stays an entry
    try:
        nested = split_trajectories(as_tensors(torch, data, batch), **options, as_nested=True)
    except (RuntimeError, NotImplementedError):
        return False  # full rows of some dtypes are not supported there
    if any(not leaf.is_nested for leaf in nested.values(True, True)):
        return False  # full rows come back as they were
    compare_ragged(*rlm.ragged_trajectories(data, **options), nested)
    return True


def all_leaves(data: dict[str, Any]) -> list[np.ndarray]:
    return [x for value in data.values() for x in (all_leaves(value) if isinstance(value, dict) else [value])]


def check_returns(torch: Any, rng: np.random.Generator) -> None:
    """Returns and advantages, against TorchRL's on [B, T, 1] data."""
    from torchrl.objectives.value.functional import generalized_advantage_estimate, reward2go

    batch = (int(rng.integers(1, 4)), int(rng.integers(1, 12)))
    reward, value, after = rng.normal(size=(3, *batch))
    terminated, truncated = rng.random((2, *batch)) < 0.2
    # TorchRL keeps factors in float32 and leaves out powers below 1e-7: take such as it can keep, their product too.
    gamma, decay = (float(k) / 256 for k in rng.integers(64, 257, 2))
    done = terminated | truncated
    tensor = lambda array: torch.from_numpy(array[..., None].copy())  # noqa: E731
    # reward2go wants the last step done
    closed = done.copy()
    closed[:, -1] = True
    theirs = reward2go(tensor(reward), tensor(closed), gamma)
    np.testing.assert_allclose(rlm.returns_to_go(reward, closed, gamma), theirs.numpy()[..., 0], rtol=1e-12, atol=1e-12)
    ours = rlm.gae(
        reward, value, next_value=after, terminated=terminated, truncated=truncated, discount=gamma, decay=decay
    )
    both = generalized_advantage_estimate(
        gamma, decay, tensor(value), tensor(after), tensor(reward), done=tensor(done), terminated=tensor(terminated)
    )
    for a, b in zip(ours, both, strict=True):
        np.testing.assert_allclose(a, b.numpy()[..., 0], rtol=1e-12, atol=1e-12)


def main(cases: int = 1000, seed: int = 0) -> int:
    """Run the cases; 0 when all agree."""
    warnings.simplefilter("ignore")
    import tensordict
    import torch
    import torchrl

    print(f"torch {torch.__version__}, torchrl {torchrl.__version__}, tensordict {tensordict.__version__}, seed {seed}")
    nested = wrong = 0
    for number in range(cases):
        try:
            nested += check_split(torch, np.random.default_rng([seed, number]))
            check_returns(torch, np.random.default_rng([seed, number, 1]))
        except AssertionError as error:
            wrong += 1
            print(f"case {number}: {error}")
    print(f"{cases - wrong} of {cases} cases agree, {nested} of them as nested tensors too")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
