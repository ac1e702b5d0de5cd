"""Arrays on a host and on a GPU in one call: what is said, also where there is no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rlmemory as rlm


class OnDevice:
    """An array of another library on its device, at an address that nobody looks at here."""

    shape, ndim, dtype = (2,), 1, np.dtype(float)
    __cuda_array_interface__: dict[str, Any] = {  # noqa: RUF012
        "shape": (2,), "typestr": "<f8", "data": (64, False), "strides": None, "version": 3,
    }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1


THERE, HERE, ENDS = OnDevice(), np.ones(2), np.array([False, True])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rlm.split_trajectories({"x": {"a": HERE}, "done": THERE}),
            r"\('x', 'a'\): this ndarray is on the host, and is needed on the GPU that .done. is on.*to_device",
        ),
        (lambda: rlm.split_trajectories({"x": THERE, "done": ENDS}), "'done': this ndarray is on the host"),
        (lambda: rlm.split_trajectories({"x": THERE, "done": [0, 1]}), "'done': this list is on the host"),
        (lambda: rlm.ragged_trajectories({"x": 1.0, "done": THERE}), "'x': this float is on the host"),
        (lambda: rlm.unsplit_trajectories({"x": THERE, "mask": ENDS[None]}), "'mask': this ndarray is on the host"),
        (
            lambda: rlm.split_trajectories({"x": HERE, "done": ENDS}, padding_value={"x": THERE}),
            r"padding_value of 'x': expected an array on the host, got one on a GPU \(OnDevice\); rlmemory\.to_host",
        ),
        (lambda: rlm.shift_actions(THERE, ENDS), "starts: this ndarray is on the host.*GPU that actions is on"),
        (lambda: rlm.shift_actions(HERE, THERE), "actions: this ndarray is on the host.*GPU that starts is on"),
        (lambda: rlm.shift_actions((THERE, {"a": HERE}), THERE), r"actions\[1\]\['a'\]: this ndarray is on the host"),
        (lambda: rlm.shift_actions(HERE, ENDS, THERE), "default: expected an array on the host"),
        (lambda: rlm.returns_to_go(THERE, ENDS), "ends: this ndarray is on the host.*GPU that x is on"),
        (lambda: rlm.returns_to_go(HERE, THERE), "x: this ndarray is on the host.*GPU that ends is on"),
        (lambda: rlm.returns_to_go(THERE, THERE, mask=ENDS), "mask: this ndarray is on the host"),
        (lambda: rlm.discounted_scan(THERE, None, HERE, mask=THERE), "discount: this ndarray is on the host"),
        (lambda: rlm.returns_to_go(HERE, ENDS, 0.9, THERE), "x: this ndarray is on the host.*that bootstrap is on"),
        (lambda: rlm.gae(THERE, HERE, next_value=THERE, terminated=THERE), "value: this ndarray is on the host"),
        (lambda: rlm.LastAction().forward({"action": THERE, "done": ENDS}), "action: expected an array on the host"),
        (lambda: rlm.LastAction().forward({"action": HERE, "done": THERE}), "done: expected an array on the host"),
        (
            lambda: rlm.LastAction().forward({"action": HERE, "traj_ids": THERE}, trajectory_key="traj_ids"),
            "traj_ids: expected an array on the host.*to_host",
        ),
    ],
)  # fmt: skip
def test_it_names_the_array_where_it_is_and_what_to_do(call, message):
    with pytest.raises(rlm.DataTypeError, match=message):
        call()
