"""The kernels, compiled by numba.cuda for NVIDIA's devices. What each does is said in `reference`.

Each takes arrays of the device, or of the host, which are lent to the device for the call. Nothing is compiled before
the first call, and only results for the host are waited for.
"""

from __future__ import annotations

from .cuda_bytes import gather as gather
from .cuda_bytes import move as move
from .cuda_bytes import scatter as scatter
from .cuda_chains import link as link
from .cuda_chains import number_episodes as number_episodes
from .cuda_chains import remaining as remaining
from .cuda_rows import annotate as annotate
from .cuda_rows import distinct as distinct
from .cuda_rows import goal_row as goal_row
from .cuda_rows import nstep as nstep
from .cuda_rows import uniform as uniform
from .cuda_rows import window as window
from .cuda_runs import run_starts as run_starts
from .cuda_runs import scan as scan
from .cuda_tree import tree_draw as tree_draw
from .cuda_tree import tree_span as tree_span
from .cuda_tree import tree_update as tree_update
