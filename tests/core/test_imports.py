"""What is loaded when, and what is compiled how often."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory import kernels
from rlmemory.kernels import cpu

from .support import LAYOUTS, PLAIN, ROOT, Spec, counted, pick, python

HEAVY = ("numba", "llvmlite", "scipy", "gymnasium", "h5py", "ray", "torch", "matplotlib", "tqdm")
LOADED = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules])"

USE = """
import numpy as np, rlmemory as rlm
memory = rlm.ReplayMemory(rlm.NumericSpec((3,)), rlm.FiniteSetSpec([0, 1]), 5, extra={"own": rlm.NumericSpec(())})
row = dict(reward=1.0, next_observation=np.ones(3), terminated=False, extra={"own": 2.0})
for _ in range(7):
    memory.append(np.zeros(3), 1, **row)
rows = dict(reward=np.ones(3), next_observation=np.ones((3, 3)), terminated=np.eye(3)[0] > 0)
memory.extend(np.zeros((3, 3)), np.ones(3, int), **rows, extra={"own": np.ones(3)})
whole = memory.all()
memory.all(out=whole)
memory.extend_from(whole)
memory.resize(9)
memory.clear()
memory.end_episode()
memory.statistics()
"""

SAMPLE = """
import time
begin = time.perf_counter()
import numpy as np, rlmemory as rlm
memory = rlm.ReplayMemory(rlm.NumericSpec((3,)), rlm.NumericSpec(()), 5, seed=0)
memory.append(np.zeros(3), 1.0, reward=1.0, next_observation=np.ones(3), terminated=False)
memory.sample(2)
took = time.perf_counter() - begin
from rlmemory.kernels import NAMES, cpu
stats = [getattr(cpu, name).stats for name in NAMES]
hits, misses = (sum(sum(getattr(s, kind).values()) for s in stats) for kind in ("cache_hits", "cache_misses"))
print(hits, misses, f"{took:.2f}")
"""


@pytest.mark.parametrize("package", ["rlmemory", "matlab_compat"])
def test_importing_a_package_loads_nothing_heavy(package):
    assert python(f"import {package}; {LOADED}").strip() == "[]"


def test_writing_and_reading_everything_loads_no_numba():
    assert python(USE + LOADED).strip() == "[]"


def test_a_first_sample_loads_numba():  # or the two tests above would say nothing
    assert "numba" in python(SAMPLE + LOADED)


def test_the_reference_back_end_needs_no_numba():
    environment = dict(os.environ, PYTHONPATH=str(ROOT), RLMEMORY_BACKEND="reference")
    code = USE + "memory.append(np.zeros(3), 1, **row); memory.sample(3); memory.get([memory.next_id - 1])\n"
    assert python(code + LOADED, env=environment).strip() == "[]"


def test_a_new_process_takes_its_kernels_from_the_cache(capsys, tmp_path):
    environment = dict(os.environ, PYTHONPATH=str(ROOT), NUMBA_CACHE_DIR=str(tmp_path))
    environment.pop("RLMEMORY_NUMBA_CACHE", None)
    cold_hits, cold_misses, cold = python(SAMPLE, env=environment).split()
    assert (int(cold_hits), int(cold_misses) > 0) == (0, True)
    hits, misses, warm = python(SAMPLE, env=environment).split()
    assert int(misses) == 0
    assert int(hits) == int(cold_misses)
    with capsys.disabled():
        print(f"\nfirst sample of a process, import included: {cold} s compiling, {warm} s from the cache")


def test_the_cache_on_disk_can_be_switched_off(tmp_path):
    environment = dict(os.environ, PYTHONPATH=str(ROOT), NUMBA_CACHE_DIR=str(tmp_path), RLMEMORY_NUMBA_CACHE="0")
    code = SAMPLE.replace("memory.sample(2)", "from rlmemory.kernels import active; active()")
    assert python(code, env=environment).split()[0] == "0"
    assert not list(tmp_path.rglob("*.nb?"))


# ---- one compilation serves every spec ------------------------------------------------------------------------------


def versions() -> dict[str, int]:
    return {name: len(getattr(cpu, name).signatures) for name in kernels.NAMES}


def compiled() -> int:
    return sum(sum(getattr(cpu, name).stats.cache_misses.values()) for name in kernels.NAMES)


def use_everything(memory: rlm.ReplayMemory, rows: dict, count: int) -> None:
    memory.extend(**rows, terminated=np.arange(count) % 3 == 0)
    memory.append(**pick(rows, 0), terminated=True)
    ids = memory.all().id
    memory.get(ids[::2])
    memory.get(ids[-1])
    memory.get(ids.reshape(1, -1)[:, ::-1])
    for options in ({}, {"replace": False}, {"source": 0}, {"discount": 1}, {"discount": 0}):
        for size in (1, 2, np.int64(3)):
            batch = memory.sample(size, **options)
            memory.sample(size, **options, out=batch)
    list(memory.epoch(2))
    list(memory.chunks(2))
    frozen = {key: value for key, value in rows.items() if key == "reward"}
    frozen["reward"] = frozen["reward"][:2].copy()
    frozen["reward"].setflags(write=False)
    memory.set(ids[:2], **frozen, source=3)
    memory.set(ids[:2], reward=np.stack([frozen["reward"]] * 2, -1)[..., 0], source=[1, 2])
    memory.set(ids[-1], terminated=True)
    memory.end_episode(3)
    memory.extend(**rows, terminated=False, source=np.arange(count))
    memory.sample(5, source=2)
    memory.resize(memory.capacity + 2)
    memory.sample(5)


def test_a_second_and_a_third_spec_and_a_file_compile_nothing_more(tmp_path):
    rlm.warmup()
    rng = np.random.default_rng(0)
    with kernels.use("cpu"):
        memory = PLAIN.memory(8, seed=0)
        use_everything(memory, PLAIN.rows(rng, 6), 6)
        before, count = versions(), compiled()
        for layout in LAYOUTS.values():
            for place in ({}, {"path": tmp_path / f"{id(layout)}.bin"}):
                memory = layout.memory(8, seed=0, **place)
                use_everything(memory, layout.rows(rng, 6), 6)
        spec = Spec((4, 5), "float16")
        memory = rlm.ReplayMemory(spec, Spec((7,), "int8"), 100)
        memory.extend(
            np.zeros((9, 4, 5), "f2"), np.zeros((9, 7), "i1"), reward=np.zeros(9), next_observation=np.ones((9, 4, 5)),
            terminated=False,
        )  # fmt: skip
        memory.sample(64)
        assert versions() == before
        assert compiled() == count


def test_every_kernel_has_one_version():
    code = (
        "import rlmemory as rlm; rlm.warmup(); from rlmemory.kernels import NAMES, cpu;"
        "print({name: len(getattr(cpu, name).signatures) for name in NAMES})"
    )
    for count in (eval(python(code)), versions()):
        # nstep is the one kernel that knows dtypes: rewards of float32 and of float64.
        assert count.pop("nstep") <= 2
        assert set(count.values()) <= {0, 1}


def test_warmup_leaves_nothing_to_compile_for_the_calls_of_a_training_loop():
    lines = [line for line in SAMPLE.splitlines() if line.startswith(("memory", "import numpy"))]
    code = f"""
import rlmemory as rlm
from rlmemory.kernels import NAMES, cpu
count = lambda: sum(len(getattr(cpu, name).signatures) for name in NAMES)
rlm.warmup()
before = count()
{chr(10).join(lines)}
memory.sample(1, replace=False)
memory.sample(1, source=0)
memory.get([0])
memory.set([0], reward=[1.0])
print(before, count())
"""
    before, after = python(code).split()
    assert before == after


def test_the_package_says_which_names_it_has():
    code = "import rlmemory; print('Batch' in dir(rlmemory), hasattr(rlmemory, 'Bach'))"
    assert python(code).split() == ["True", "False"]
    with pytest.raises(AttributeError, match="no attribute 'Bach'"):
        _ = rlm.Bach
    assert sys.modules["rlmemory"] is rlm
    counted(PLAIN.memory(2), 1)
