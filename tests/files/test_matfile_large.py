"""Version 7.3 takes what is larger than the older versions can hold, with little memory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlmemory as rlm

#: GiB.
SIZE = float(os.environ.get("RLMEMORY_TEST_GIB", "3"))
SCRIPT = """
import json, sys, time
import numpy as np, h5py, rlmemory as rlm
from rlmemory.files import matfile

def anonymous():
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines["RssAnon"].split()[0]) * 1024

path, arena, out, gib = sys.argv[1], sys.argv[2], sys.argv[3] == "out", float(sys.argv[4])
specs = rlm.NumericSpec((84, 84), "uint8"), rlm.NumericSpec((2,), "float32")
rows = int(gib * 2**30 / (2 * 84 * 84 + 16))
memory = rlm.ReplayMemory(*specs, rows, path=arena, mode="w")
piece = 2000

def block(first, last):
    image = (np.arange(first, last)[:, None, None] + np.arange(84)[:, None] + 3 * np.arange(84)).astype(np.uint8)
    number = np.arange(first, last)
    return image, np.stack([number, -number], 1).astype("f4"), number * 0.5, number % 100 == 99

if out:
    for first in range(0, rows, piece):
        image, action, reward, ended = block(first, min(first + piece, rows))
        memory.extend(image, action, reward=reward, next_observation=image + np.uint8(1), terminated=ended)
    del image, action, reward, ended
before, peak, wrong = anonymous(), 0, 0

import threading
stop = threading.Event()
def watch():
    global peak
    while not stop.wait(0.005):
        peak = max(peak, anonymous())
watcher = threading.Thread(target=watch)
watcher.start()
begin = time.perf_counter()
if out:
    rlm.files.write_mat(path, memory, version="7.3")
else:
    rlm.files.append_mat(path, memory)
took = time.perf_counter() - begin
stop.set()
watcher.join()
if not out:
    assert len(memory) == rows
    for first in range(0, rows, piece):
        last = min(first + piece, rows)
        image, action, reward, ended = block(first, last)
        there = memory.get(np.arange(first, last))
        wrong += not (np.array_equal(there.observation, image) and np.array_equal(there.action, action)
                      and np.array_equal(there.reward, reward) and np.array_equal(there.terminated, ended)
                      and np.array_equal(there.next_observation, image + np.uint8(1)))
print(json.dumps({"rows": rows, "extra_mib": (peak - before) / 2**20, "seconds": took, "wrong": wrong}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RssAnon is Linux's")
def test_a_memory_larger_than_2_gib_goes_out_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("h5py", reason="h5py is not installed: pip install h5py")
    # The arenas are files, so that anonymous memory shows what writing and reading need for themselves.
    results = {}
    for way in ("out", "back"):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / "x.mat"), str(tmp_path / "arena"), way, str(SIZE)],
            capture_output=True, text=True, check=False, timeout=900, cwd=Path(rlm.__file__).parents[1],
        )  # fmt: skip
        (tmp_path / "arena").unlink(missing_ok=True)
        assert ran.returncode == 0, ran.stderr
        results[way] = json.loads(ran.stdout)
    with capsys.disabled():
        for way, result in results.items():
            print(
                f"\n{SIZE:g} GiB as v7.3, {way}: {result['seconds']:.1f} s, {result['extra_mib']:.0f} MiB extra", end=""
            )
    assert (tmp_path / "x.mat").stat().st_size > SIZE * 2**30 * 0.99
    (tmp_path / "x.mat").unlink()
    for result in results.values():
        assert result["wrong"] == 0
        assert result["extra_mib"] < 0.3 * 1024
