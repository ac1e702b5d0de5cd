"""What the check of PTX rests on, as far as it can be seen without the compilers that it needs."""

from __future__ import annotations

import os

import pytest
from core.support import ROOT, python

HERE = ROOT / "tests" / "device"


def run(code: str, simulated: bool) -> str:
    environment = dict(os.environ, PYTHONPATH=f"{ROOT}{os.pathsep}{HERE}", NUMBA_ENABLE_CUDASIM=str(int(simulated)))
    return python(code, env=environment)


def test_the_simulator_runs_what_no_device_does():
    code = """
import numpy as np, only_in_simulator
from rlmemory.kernels import _cuda
out = _cuda.to_device(np.zeros(1, np.int64))
_cuda.launch(_cuda.kernel(only_in_simulator.plain), 1, 1)(out)
print(out.copy_to_host()[0])
"""
    assert run(code, simulated=True).split() == ["5"]


def test_every_kernel_has_a_signature_for_the_check_and_every_signature_a_kernel():
    # Kernels of the simulator do not say which of them are called by threads only: Numba's own do.
    code = "import compile_ptx; print(compile_ptx.unmatched(compile_ptx.kernels()))"
    assert run(code, simulated=False).split() == ["[]"]


@pytest.mark.parametrize("change", ["del s['cuda_runs']['_scan']", "s['cuda_runs']['_other'] = []"])
def test_a_kernel_without_a_signature_is_missed(change):
    code = f"import compile_ptx; s = compile_ptx.SIGNATURES; {change}; "
    code += "print(len(compile_ptx.unmatched(compile_ptx.kernels())))"
    assert run(code, simulated=False).split() == ["1"]
