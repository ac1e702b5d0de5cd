"""Compile every kernel of the device to PTX, for each kind of device, where there is neither device nor driver.

This shows what the simulator cannot: that the compiler takes the code. It needs numba-cuda, nvidia-nvvm and
nvidia-cuda-nvrtc: see ptx.sh. A kernel without a signature here is an error, as is a signature without a kernel.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ["RLMEMORY_NUMBA_CACHE"] = "0"  # PTX alone is never kept

#: Compute capabilities: from Turing, the oldest that CUDA 13 knows, to Blackwell.
TARGETS = ((7, 5), (8, 0), (9, 0), (10, 0), (12, 0))

INTS, LINKS, FLOATS, CODES, FLAGS = ([f"{kind}[:]"] for kind in ("int64", "int32", "float64", "uint8", "boolean"))
NUMBERS = [
    "boolean",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]

#: What each kernel is called with. A scalar is "int", "float" or "bool"; an array is its type and its axes.
SIGNATURES: dict[str, dict[str, list[tuple[str, ...]]]] = {
    "cuda_bytes": {
        "_rows_of_fields": [("uint8[:]", "int64[:,:]", "int64[:]", "uint8[:]", "int", "bool")],
        "_runs": [("uint8[:]", "int64[:,:]", "uint8[:]", "int", "int")],
    },
    "cuda_runs": {
        "_run_starts": [("int", "int", "int", INTS[0], CODES[0], *INTS * 3)],
        "_scan": [("float64[:,:]", FLOATS[0], CODES[0], "float64[:,:]", "float64[:,:]")],
    },
    "cuda_rows": {
        "_uniform": [(*FLOATS, "int", "int", "int", *INTS * 2)],
        "_distinct": [(*FLOATS, "int", *INTS * 3)],
        "_window": [(*INTS, *["int"] * 4, "bool", *CODES, *LINKS * 2, "int64[:,:]", "int64[:,:]")],
        "_annotate": [(*INTS * 2, "int", "int", "float", *CODES, *LINKS, *FLAGS * 4, *INTS, *FLOATS, *INTS)],
        "_nstep": [
            ("int64[:,:]", rewards, "float", *CODES, sums, *INTS * 2, *FLOATS, *FLAGS * 2)
            for rewards, sums in (
                ("float32[:,:]", "float32[:,:]"),
                ("float32[:,:]", "float64[:,:]"),
                ("float64[:,:]", "float64[:,:]"),
            )
        ],
        "_goal_row": [(*INTS, *FLOATS, *["int"] * 4, *CODES, *LINKS * 2, *INTS)],
    },
    "cuda_chains": {
        "_link": [(*INTS, "int", "int", *INTS * 2, *LINKS * 2)],
        "_join": [("int", "int", "int", *LINKS * 2)],
        "_leap": [("int", *INTS * 4)],
        "_point_ahead": [("int", "int", "int", "bool", *CODES, *LINKS, *INTS * 2)],
        "_point_back": [("int", "int", "int", *CODES, *LINKS, *INTS * 3)],
        "_add_up": [("int", *INTS * 2)],
        "_number": [(*INTS * 4,)],
    },
    "cuda_tree": {
        "_span": [(*["int"] * 4, *INTS, *FLOATS * 3)],
        "_update": [("int", "int", *INTS, *FLOATS * 2, *["int"] * 3, *INTS * 3, *FLOATS * 3)],
        "_draw": [(*FLOATS, "bool", "int", "int", *INTS, *FLOATS * 2, *INTS * 2)],
    },
    "cuda_books": {
        "_describe": [(*CODES, "int", "int", "bool", *["int"] * 3, *CODES, *["int"] * 4)],
    },
    "cuda_strided": {"_pack": [(*CODES, "int64[:,:]", "int", "int", "int", *CODES)]},
    "cuda_scans": {
        "_widen": [(f"{kind}[:]", *CODES, "int", *FLOATS) for kind in NUMBERS],
        "_narrow": [(*FLOATS, "int", f"{kind}[:]") for kind in ("float16", "float32")],
        "_scale": [(*FLOATS * 2, "int", *FLOATS)],
        "_follow": [(*FLOATS * 2, *CODES, "int", *FLOATS)],
        "_delta": [(*FLOATS * 3, *CODES, "int", *FLOATS)],
        "_target": [(*FLOATS * 2, *CODES, "int", *FLOATS)],
    },
}
#: Patterns that must stand in a kernel's PTX. A copy in bytes would give the same results at an eighth of the speed.
WIDEST = (r"ld\.global(\.\w+)*\.[bu]64", r"st\.global(\.\w+)*\.[bu]64")
WANTED = {"_rows_of_fields": WIDEST, "_runs": WIDEST}
#: And that must not: the sums of these are the CPU's to the last bit, so their products are rounded by themselves. The
#: assembler, too, fuses a product that does not name its rounding with the sum after it.
FUSED = (r"fma\.rn\.f64",)
UNWANTED = {"_nstep": FUSED, "_scan": FUSED, "_draw": FUSED}


def kernels() -> dict[str, dict[str, Any]]:
    """Every kernel that is made in a module of the device, by module and name."""
    import rlmemory.kernels
    from rlmemory.kernels import _cuda

    made = type(_cuda.kernel(lambda: None))
    found: dict[str, dict[str, Any]] = {}
    for entry in pkgutil.iter_modules(rlmemory.kernels.__path__):
        if entry.name.split("_")[0] == "cuda":
            module = importlib.import_module(f"rlmemory.kernels.{entry.name}")
            for name, value in vars(module).items():
                if isinstance(value, made) and not value.targetoptions.get("device"):
                    home = value.py_func.__module__.rpartition(".")[2]
                    found.setdefault(home, {})[name] = value
    return found


def unmatched(found: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong with the table of signatures."""
    here = {(module, name) for module, names in found.items() for name in names}
    there = {(module, name) for module, names in SIGNATURES.items() for name in names}
    return [f"{module}.{name}: no signature in compile_ptx.py" for module, name in sorted(here - there)] + [
        f"{module}.{name}: a signature, but no such kernel" for module, name in sorted(there - here)
    ]


def argument(kind: str) -> Any:
    from numba import types

    if kind in ("int", "float", "bool"):
        return {"int": types.int64, "float": types.float64, "bool": types.boolean}[kind]
    dtype, _, axes = kind.partition("[")
    return types.Array(getattr(types, dtype), axes.count(":"), "C")


@contextlib.contextmanager
def pretended(target: tuple[int, int]) -> Iterator[None]:
    """Device functions are compiled for the current device, and there is none."""
    from numba.cuda import dispatcher

    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=target)
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def ptx(function: Any, signature: tuple[str, ...], target: tuple[int, int]) -> str:
    from numba import cuda, types

    with pretended(target):
        text, _ = cuda.compile_ptx(function, types.void(*map(argument, signature)), cc=target)
    return text


def compile_all(target: tuple[int, int]) -> int:
    """Compile everything for one kind of device; how many failed."""
    import only_in_simulator

    found, failed = kernels(), 0
    for module, names in SIGNATURES.items():
        for name, signatures in names.items():
            for signature in signatures if name in found.get(module, {}) else ():
                failed += not reported(module, name, found[module][name].py_func, signature, target)
    # The check of the check: what only Python runs must be refused.
    with contextlib.redirect_stderr(None):
        try:
            ptx(only_in_simulator.plain, only_in_simulator.SIGNATURE, target)
        except Exception as error:
            print(f"only_in_simulator: refused as it must be ({type(error).__name__})", flush=True)
        else:
            print("only_in_simulator: compiled, and must not", flush=True)
            failed += 1
    return failed


def reported(module: str, name: str, function: Any, signature: tuple[str, ...], target: tuple[int, int]) -> bool:
    begin, label = time.perf_counter(), f"{module}.{name} for {target[0]}.{target[1]}"
    try:
        text = ptx(function, signature, target)
    except Exception:
        print(f"{label}: FAILED\n{traceback.format_exc()}", flush=True)
        return False
    wrong = [f"nothing there like {pattern}" for pattern in WANTED.get(name, ()) if not re.search(pattern, text)]
    wrong += [f"something there like {pattern}" for pattern in UNWANTED.get(name, ()) if re.search(pattern, text)]
    took = time.perf_counter() - begin
    print(f"{label}: {len(text):,} bytes of PTX, {took:.1f} s{', FAILED' * bool(wrong)}", flush=True)
    for line in wrong:
        print(f"    {line}", flush=True)
    return not wrong


def main() -> int:
    """All targets, each in a process of its own, since device functions are compiled once in each; two at a time."""
    if len(sys.argv) > 1:
        major, minor = sys.argv[1].split(".")
        return int(compile_all((int(major), int(minor))) > 0)
    wrong = unmatched(kernels())
    print("\n".join(wrong) or "every kernel has a signature, and every signature a kernel", flush=True)

    def one(target: tuple[int, int]) -> int:
        return subprocess.run([sys.executable, __file__, "{}.{}".format(*target)], check=False).returncode

    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(one, TARGETS))
    print("everything compiled" if not any(codes) and not wrong else f"FAILED: {codes}, {len(wrong)} unmatched")
    return int(any(codes) or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
