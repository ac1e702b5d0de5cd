"""What the tests of .mat files share: memories with odd channels, and Octave as a client."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlmemory as rlm

OCTAVE = Path(__file__).parents[1] / "data" / "octave"
VERSIONS = ("6", "7", "7.3")
FORMS = ("batch", "sequence", "struct", "cell")
_DONE = "every check of the script was reached"

OBSERVATION = (rlm.NumericSpec((2,)), rlm.NumericSpec((4, 3, 2), "uint8"), rlm.NumericSpec((), "bool"))
ACTION = {"force": rlm.NumericSpec((1, 4), "complex64"), "gear": rlm.NumericSpec((), "int32")}
EXTRA = {"state": rlm.NumericSpec((3,), "float16"), "cost": rlm.NumericSpec((), "float32")}


def mixed(count: int, capacity: int = 100, *, sources: int = 3, seed: int = 0) -> rlm.ReplayMemory:
    """A memory with a tuple and a dict of channels of six dtypes, several sources and fields of the user's own."""
    rng = np.random.default_rng(seed)
    memory = rlm.ReplayMemory(OBSERVATION, ACTION, capacity, extra=EXTRA)
    if not count:
        return memory

    def observation() -> tuple[Any, ...]:
        image = rng.integers(0, 255, (count, 4, 3, 2)).astype("u1")
        return rng.random((count, 2)), image, rng.random(count) > 0.5

    force = (rng.random((count, 1, 4)) + 1j * rng.random((count, 1, 4))).astype("c8")
    memory.extend(
        observation(),
        {"force": force, "gear": rng.integers(-9, 9, count).astype("i4")},
        reward=rng.normal(size=count),
        next_observation=observation(),
        terminated=rng.random(count) > 0.8,
        truncated=rng.random(count) > 0.8,
        source=rng.integers(0, sources, count),
        extra={"state": rng.random((count, 3)).astype("f2"), "cost": rng.random(count).astype("f4")},
    )
    return memory


def simple(count: int, capacity: int = 100) -> rlm.ReplayMemory:
    """A memory of one observation channel (2,) and a scalar action."""
    memory = rlm.ReplayMemory(rlm.NumericSpec((2,)), rlm.NumericSpec(()), capacity)
    for k in range(count):
        memory.append([k, -k], k / 2, reward=k, next_observation=[k + 1, -k - 1], terminated=k % 3 == 2)
    return memory


def read_like(memory: rlm.ReplayMemory, path: Path, **keywords: Any) -> rlm.Experience:
    return rlm.files.read_mat(
        path,
        memory.observation_spec,
        memory.action_spec,
        reward=memory.reward_spec,
        extra=memory.extra_spec,
        **keywords,
    )


def leaves(experience: rlm.Experience) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for part in experience._replace(id=()):
        values = part.values() if isinstance(part, dict) else part if isinstance(part, tuple) else [part]
        found += values
    return found


def assert_same(a: rlm.Experience, b: rlm.Experience) -> None:
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


needs_octave = pytest.mark.skipif(
    shutil.which("octave-cli") is None, reason="Octave is not installed: apt-get install octave"
)
needs_h5py = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("h5py") is None, reason="h5py is not installed: pip install h5py"
)

#: same(a, b): equal class, size and values, in every cell and every field.
SAME = """
function same(a, b, where)
  assert(strcmp(class(a), class(b)), '%s: class %s, expected %s', where, class(a), class(b));
  assert(isequal(size(a), size(b)), '%s: size %s, expected %s', where, mat2str(size(a)), mat2str(size(b)));
  if isstruct(a)
    assert(isempty(setxor(fieldnames(a), fieldnames(b))), '%s: fields', where);
    for f = fieldnames(b)', for i = 1:numel(b), same(a(i).(f{1}), b(i).(f{1}), [where '.' f{1}]); end, end
  elseif iscell(a)
    for i = 1:numel(b), same(a{i}, b{i}, sprintf('%s{%d}', where, i)); end
  end
  assert(isequal(a, b), '%s: values', where);
end
"""


def octave(folder: Path, script: str) -> str:
    """Run a script in a folder; it must end well and reach its end. Standard error always has a harmless line."""
    (folder / "script.m").write_text(f"1;\n{SAME}\n{script}\nprintf('%s\\n', '{_DONE}');\n")
    ran = subprocess.run(
        ["octave-cli", "--norc", "--eval", "source('script.m')"],
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.endswith(_DONE + "\n"), ran.stdout[-2000:]
    return ran.stdout
