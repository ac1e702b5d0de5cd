"""What a new process pays before its first result, and what a memory weighs."""

from __future__ import annotations

import subprocess
import sys

from .scenes import transitions

_FIRST = """
import numpy as np, rlmemory as rlm
memory = rlm.ReplayMemory(rlm.NumericSpec((3,)), rlm.NumericSpec(()), 100)
memory.append(np.zeros(3), 0.0, reward=0.0, next_observation=np.zeros(3), terminated=False)
"""


class Import:
    """Seconds of a whole process, so that NumPy's share can be subtracted."""

    def timeraw_numpy_alone(self):
        return "import numpy"

    def timeraw_rlmemory(self):
        return "import numpy, rlmemory"

    def timeraw_matlab_compat(self):
        return "import numpy, matlab_compat"


class First:
    """A process from its start to its first result. Kernels come from Numba's cache on disk, where it has one."""

    number, repeat, rounds, warmup_time = 1, (3, 5, 20.0), 1, 0

    def setup(self):
        self._run("memory.sample(32)")  # fills the cache

    def time_append(self):
        self._run("")

    def time_all(self):
        self._run("memory.all()")

    def time_sample(self):
        self._run("memory.sample(32)")

    def _run(self, last):
        subprocess.run([sys.executable, "-c", _FIRST + last], check=True)


class Weight:
    """Bytes of a memory of 165-byte rows."""

    params = (10_000, 1_000_000)
    param_names = ("capacity",)

    def track_arena_bytes_per_row(self, capacity):
        return transitions(capacity).memory.nbytes / capacity

    track_arena_bytes_per_row.unit = "bytes"

    def peakmem_fill(self, capacity):
        transitions(capacity)

    def peakmem_fill_and_all(self, capacity):
        transitions(capacity).memory.all()
