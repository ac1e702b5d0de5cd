"""What every test can use: hypothesis profiles, the fixtures of this repository and the shared ones, the back ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rlmemory import NotAvailableError, kernels

# The first call of a kernel compiles it, which no deadline survives.
settings.register_profile("default", deadline=None, max_examples=60)
settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True, print_blob=True)
settings.register_profile("thorough", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
# Numba's simulator of a device runs some 2,000 threads a second.
settings.register_profile("simulator", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
usual = "ci" if os.environ.get("CI") else "default"
usual = "simulator" if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0") else usual
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"


@pytest.fixture(params=["reference", "cpu"])
def backend(request: pytest.FixtureRequest):
    """Run the test on each back end."""
    with kernels.use(request.param):
        yield request.param


@pytest.fixture(scope="session")
def cuda_device() -> str:
    """A CUDA device, or Numba's simulator of one; the test is skipped without either."""
    from rlmemory.kernels import _cuda

    try:
        return f"cuda:{_cuda.device_number('cuda')}"
    except NotAvailableError as error:
        pytest.skip(f"{error}; NUMBA_ENABLE_CUDASIM=1 switches the simulator on")


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    """The folder of real trajectories that is not part of the repository; the test is skipped without it."""
    folder = Path(os.environ.get("RLMEMORY_FIXTURES", ROOT.parent / "shared" / "fixtures"))
    if not folder.is_dir():
        pytest.skip(f"no shared fixtures at {folder}; say where with RLMEMORY_FIXTURES")
    return folder
