#!/usr/bin/env bash
# Every kernel of the device, compiled to PTX, in an environment of its own: bash tests/device/ptx.sh [FOLDER]
# It takes NVIDIA's compilers but neither device nor driver, and 685 MB: 40 s to install, a minute to compile on 2 cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:-.venv-cuda}
python=${PYTHON:-.venv/bin/python}

# Whether all is there: found but not loaded, since the compilers load their libraries late.
ready='
import importlib.metadata as m, numba_cuda
for name in "numpy", "nvidia-nvvm", "nvidia-cuda-nvrtc":
    m.version(name)
'
if ! "$folder/bin/python" -c "$ready" 2>/dev/null; then
  "$python" -m venv --clear "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    numba-cuda 'nvidia-nvvm==13.*' 'nvidia-cuda-nvrtc==13.*' numpy
fi
# A simulator compiles nothing.
env -u NUMBA_ENABLE_CUDASIM "$folder/bin/python" tests/device/compile_ptx.py
