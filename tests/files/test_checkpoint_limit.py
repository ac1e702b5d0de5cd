"""A memory in a file of four times the RAM that `ulimit -d` gives its process."""

from __future__ import annotations

import os
import sys

import pytest
from core.support import ROOT, python

CODE = """
import resource, sys, numpy as np, rlmemory as rlm

def data():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) << 10

def make(capacity, **keywords):
    return rlm.ReplayMemory(rlm.NumericSpec((1000,), "float64"), rlm.NumericSpec(()), capacity, seed=0, **keywords)

def fill(memory, rows):
    for first in range(0, rows, 500):
        number = np.arange(first, min(first + 500, rows), dtype=float)
        wide = np.broadcast_to(number[:, None], (number.size, 1000))
        memory.extend(wide, number, reward=number, next_observation=wide, terminated=number % 100 == 99)

def use(memory, folder):
    batch = memory.sample(64)
    assert (batch.observation[:, 0] == batch.reward).all()
    memory.sample(8, sequence_length=5)
    seen = 0
    for part in memory.chunks(200):
        assert (part.observation[:, -1] == part.reward).all()
        seen += part.id.size
    assert seen == len(memory)
    memory.save(folder + "/kept")
    return batch

folder = sys.argv[1]
small = make(300)
fill(small, 300)
use(small, folder + "/warm")
limit = data() + (24 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
rows = 4 * limit // 16_021 + 1
memory = make(rows, path=folder + "/arena")
assert memory.nbytes >= 4 * limit
try:
    np.ones(memory.nbytes // 8)
except MemoryError:
    pass
else:
    raise AssertionError("the limit does not hold")
fill(memory, rows + 10)
use(memory, folder)
memory.append(np.zeros(1000), 0.0, reward=-1.0, next_observation=np.zeros(1000), terminated=True)
memory.save(folder + "/kept")  # the little that is new
loaded = rlm.load(folder + "/kept", map=folder + "/again")
assert (loaded.sample(64).reward == memory.sample(64).reward).all()
assert loaded.get([loaded.next_id - 1]).reward[0] == -1.0
print(limit >> 20, memory.nbytes >> 20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux counts private memory against ulimit -d")
def test_a_memory_of_four_times_the_limit_of_its_process(tmp_path, capsys):
    environment = dict(os.environ, PYTHONPATH=str(ROOT), OPENBLAS_NUM_THREADS="1", RLMEMORY_BACKEND="reference")
    code = CODE.replace("sys.argv[1]", repr(str(tmp_path)))
    limit, size = map(int, python(code, env=environment).split())
    assert size >= 4 * limit
    with capsys.disabled():
        print(f"\na limit of {limit} MiB, a memory of {size} MiB")
