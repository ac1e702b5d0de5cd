#!/usr/bin/env bash
# Everything to be seen on a machine with a GPU, in one go and in less than 8 minutes: bash tests/device/run.sh [FOLDER]
# Tests on the device; arrays to CuPy, PyTorch and JAX and back; the table of docs/gpu.md. Output goes to FOLDER as well
# (default build/device). Installs nothing: PYTHON (default .venv/bin/python, else python3) needs numba-cuda, pytest and
# hypothesis (`pip install -e '.[cuda,test]'`), and has whichever of CuPy, PyTorch and JAX are to be tried.
# SIMULATE=1: the same on Numba's simulator and tiny sizes, to see that the script runs; its figures mean nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:-build/device}
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
mkdir -p "$folder"
export PYTHONUNBUFFERED=1 XLA_PYTHON_CLIENT_PREALLOCATE=false
patience=1
if [ "${SIMULATE:-0}" = 1 ]; then
  patience=5 # the simulator runs each thread as a thread of Python
  export NUMBA_ENABLE_CUDASIM=1 JAX_PLATFORMS=cpu
fi

failed=0
# A stage that fails or takes too long does not keep the others from being seen.
stage() {
  local limit=$(($1 * patience)) name=$2 begin=$SECONDS
  shift 2
  printf '\n==== %s\n' "$name"
  if ! timeout "$limit" "$@" 2>&1 | tee "$folder/$name.log"; then
    failed=1
    echo "---- $name FAILED"
  fi
  printf -- '---- %s: %d s\n' "$name" "$((SECONDS - begin))"
}

stage 30 device "$python" -m tests.device.about
stage 60 libraries "$python" -m tests.device.libraries
stage 150 table "$python" -m tests.device.table --out "$folder/table.md"
stage 220 tests "$python" -m pytest -x tests/device tests/core/test_kernels.py tests/sampling/test_sampling_kernels.py \
  'tests/test_readme.py::test_the_blocks_of_a_page_run_in_order[gpu.md]'
exit "$failed"
