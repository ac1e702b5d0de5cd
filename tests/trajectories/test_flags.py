"""What ends a trajectory is a yes or a no: NaN is neither, wherever ends are read."""

from __future__ import annotations

import numpy as np
import pytest

import rlmemory as rlm

ENDS = np.array([0.0, np.nan, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: rlm.split_trajectories({"x": np.arange(3), "done": ENDS}),
        lambda: rlm.ragged_trajectories({"x": np.arange(3), "next": {"done": ENDS}}),
        lambda: rlm.returns_to_go(np.ones(3), ENDS),
        lambda: rlm.LastAction().forward({"action": np.ones(3), "next": {"done": ENDS}}),
    ],
)
def test_a_nan_is_no_end(call):
    with pytest.raises(rlm.DataTypeError, match="expected flags, got a NaN"):
        call()
