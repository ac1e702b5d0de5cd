#!/usr/bin/env bash
# The tests with torch and JAX, in an environment of their own: bash tests/array_libraries.sh [FOLDER]
# Measured with CPU builds from a near index: 70 s in all, 4 s of it tests, 1720 MB on disk; minutes from afar.
# (PyPI's own torch for Linux brings CUDA, several GB: set TORCH_INDEX to an index of CPU builds where that is too much.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-.venv-arrays}
python=${PYTHON:-.venv/bin/python}

if ! "$folder/bin/python" -c 'import torch, jax, pytest, gymnasium, h5py, rlmemory' 2>/dev/null; then
  "$python" -m venv --clear "$folder"
  install=("$folder/bin/python" -m pip install --quiet --disable-pip-version-check)
  "${install[@]}" -e . 'pytest>=8' 'hypothesis>=6.100' 'gymnasium>=1.0' 'h5py>=3.10'
  "${install[@]}" ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch==2.13.0
  "${install[@]}" jax
fi
"$folder/bin/python" - <<'PYTHON'
import jax, torch
print(f"torch {torch.__version__}, jax {jax.__version__}")
PYTHON
# -rs names whatever is skipped, and nothing may be: both libraries are here.
out=$(JAX_PLATFORMS=cpu "$folder/bin/python" -m pytest -rs tests/files/test_array_libraries.py | tee >(cat >&2))
if grep -q skipped <<<"$out"; then
  echo 'a test was skipped, and both libraries are here' >&2
  exit 1
fi
