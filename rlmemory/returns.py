"""Returns and advantages: sums of discounted rewards that run backwards along trajectories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import device_returns, kernels
from .rawbytes import raw
from .steps import FLOAT, Bools, Floats, factor, flags, last_steps, like, numbers, result_dtype

_NONE = np.zeros((0, 0))


def discounted_scan(
    x: ArrayLike,
    ends: ArrayLike | None,
    discount: ArrayLike,
    *,
    bootstrap: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> NDArray[Any]:
    r"""Sum what follows, each step discounted by one factor more.

    Parameters
    ----------
    x : array_like [*batch, *component]
        Numbers, real; batch is ``[N]``, or ``[B, T]``, whose last axis is time.
    ends : bool array_like [*batch], or None
        True at the last step of a trajectory: nothing beyond it is summed. The end of a row is one in any case. None
        (with a mask, whose shape is the batch shape): none but those.
    discount : float or array_like [*batch]
        Factor of what follows a step, for all steps or for each.
    bootstrap : float or array_like of x's shape, optional
        What follows the last step of a trajectory, such as the value of the state where it was cut; read at last steps
        only, multiplied by `discount` there. Default 0.
    mask : bool array_like [*batch], optional
        True at real steps. Padding is not read, cuts, and gets 0.

    Returns
    -------
    array of x's shape
        Fresh memory; x's dtype if that is a float, else float64.

    Raises
    ------
    ShapeError
        When shapes do not agree, and when there is neither `ends` nor `mask`.
    DataTypeError
        For complex numbers, for what is no number, and when only some arrays are on a GPU.

    Notes
    -----
    .. math:: y_t = x_t + d_t \, y_{t+1}, \qquad y_{t+1} = b_t \text{ at the last step}

    computed in float64, from the last step to the first, each component for itself. Arrays on a GPU, all of them, give
    a `DeviceArray`; ends and masks are copied to the host, the numbers stay where they are. TorchRL spreads this over
    ``reward2go`` and the value functions; there a trajectory's end needs a reshape or a mask.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> rlm.discounted_scan([1.0, 1.0, 1.0, 1.0], [False, False, True, False], 0.5, bootstrap=10.0)
    array([3., 4., 6., 6.])
    """
    number = device_returns.device_of(x=x, ends=ends, discount=discount, bootstrap=bootstrap, mask=mask)
    if number is not None:
        return device_returns.discounted_scan(number, x, ends, discount, bootstrap, mask)  # type: ignore[return-value]
    array = numbers("x", x)
    last, real = last_steps(array, ends, mask)
    after = None if bootstrap is None else like("bootstrap", bootstrap, array.shape)
    total = _scan(_wide(array), _wide(factor("discount", discount, last.shape)), last, after, real)
    return total.astype(result_dtype(array.dtype), copy=False)


def returns_to_go(
    reward: ArrayLike,
    ends: ArrayLike | None,
    discount: ArrayLike = 1.0,
    bootstrap: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
) -> NDArray[Any]:
    r"""Sum the discounted rewards from each step to the end of its trajectory.

    Parameters
    ----------
    reward : array_like [*batch, *component]
        Flat ``[N]``, or a trajectory a row ``[K, T]``; vector rewards have axes after those.
    ends : bool array_like [*batch], or None
        True at the last step of a trajectory, terminated or truncated. None: the rows of `mask` are the trajectories.
    discount : float or array_like [*batch], default 1.0
    bootstrap : float or array_like of reward's shape, optional
        Value of the state after the last step where a trajectory was cut, and 0 where it terminated. Default 0.
    mask : bool array_like [*batch], optional
        True at real steps; padding is not read and gets 0.

    Returns
    -------
    array of reward's shape
        Fresh memory; the reward's dtype if that is a float, else float64.

    Raises
    ------
    ShapeError, DataTypeError
        As `discounted_scan`.

    Notes
    -----
    .. math:: G_t = \sum_{k \ge 0} \gamma^k r_{t+k}

    up to the last step of the trajectory, plus the discounted bootstrap (Sutton and Barto 2018, equation 3.8).
    Arrays on a GPU stay there, as for `discounted_scan`. TorchRL: ``reward2go(reward, done, gamma)`` and the
    transform ``Reward2GoTransform``, which know no bootstrap.

    References
    ----------
    R. S. Sutton and A. G. Barto, Reinforcement Learning: An Introduction, second edition, MIT Press, 2018.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> rlm.returns_to_go([1, 2, 3, 4], [False, True, False, True])
    array([3., 2., 7., 4.])

    From a memory, the value of the next observation where an episode was cut:

    >>> memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 10)
    >>> for end in (False, True, False):
    ...     _ = memory.append(0.0, 0.0, reward=1.0, next_observation=0.0, terminated=end)
    >>> batch = memory.trajectories()
    >>> value = 10.0 * ~batch.terminated  # of batch.next_observation
    >>> rlm.returns_to_go(batch.reward, batch.terminated | batch.truncated, 0.9, value, mask=batch.mask)
    array([[ 1.9,  1. ],
           [10. ,  0. ]])
    """
    return discounted_scan(reward, ends, discount, bootstrap=bootstrap, mask=mask)


def gae(
    reward: ArrayLike,
    value: ArrayLike,
    *,
    next_value: ArrayLike,
    terminated: ArrayLike,
    truncated: ArrayLike | None = None,
    discount: ArrayLike = 0.99,
    decay: float = 0.95,
    mask: ArrayLike | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""Estimate advantages as an exponentially weighted mean of n-step ones.

    Parameters
    ----------
    reward : array_like [*batch, *component]
        Flat ``[N]``, or a trajectory a row ``[K, T]``.
    value, next_value : array_like of reward's shape
        Estimated values of the observation, and of the next observation, which is not that of the next row where a
        trajectory was cut.
    terminated : bool array_like [*batch]
        The state after this step has no value; the trajectory ends.
    truncated : bool array_like [*batch], optional
        The trajectory ends, but the state after this step has its value. So it is at the end of a row and of a mask.
    discount : float or array_like [*batch], default 0.99
        :math:`\gamma`.
    decay : float, default 0.95
        :math:`\lambda`, 0 to 1: 0 gives one-step advantages, 1 returns minus values.
    mask : bool array_like [*batch], optional
        True at real steps; padding is not read and gets 0.

    Returns
    -------
    advantage, target : arrays of reward's shape
        ``target = advantage + value``, what a value function is fitted to. Fresh memory; the reward's dtype if that is
        a float, else float64.

    Raises
    ------
    ShapeError, DataTypeError
        As `discounted_scan`.
    ValueError
        When `decay` is outside 0 to 1.

    Notes
    -----
    .. math::
        \delta_t = r_t + \gamma (1 - \text{terminated}_t) V(s'_t) - V(s_t), \qquad
        A_t = \delta_t + \gamma \lambda A_{t+1}

    with :math:`A_{t+1} = 0` at the last step of a trajectory (Schulman et al. 2016, equations 11 to 16), in float64.
    Arrays on a GPU stay there, as for `discounted_scan`.
    TorchRL: ``generalized_advantage_estimate(gamma, lmbda, state_value, next_state_value, reward, done, terminated)``,
    with time as the last axis but one and no mask.

    References
    ----------
    J. Schulman, P. Moritz, S. Levine, M. Jordan, P. Abbeel, High-Dimensional Continuous Control Using Generalized
    Advantage Estimation, ICLR 2016, arXiv:1506.02438.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> advantage, target = rlm.gae(
    ...     [1.0, 1.0], [0.5, 0.5], next_value=[0.5, 9.0], terminated=[False, True], discount=0.5, decay=1.0
    ... )
    >>> advantage, target
    (array([1. , 0.5]), array([1.5, 1. ]))
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"decay: expected a number from 0 to 1, got {decay!r}")
    number = device_returns.device_of(
        reward=reward, value=value, next_value=next_value, terminated=terminated, truncated=truncated,
        discount=discount, mask=mask,
    )  # fmt: skip
    if number is not None:
        return device_returns.gae(  # type: ignore[return-value]
            number, reward, value, next_value, terminated, truncated, discount, decay, mask
        )
    array = numbers("reward", reward)
    dead = flags("terminated", terminated, array)
    last, real = last_steps(array, dead if truncated is None else dead | flags("truncated", truncated, array), mask)
    now, then = (_wide(like(name, v, array.shape)) for name, v in (("value", value), ("next_value", next_value)))
    gamma = _wide(factor("discount", discount, last.shape))
    components = (1,) * (array.ndim - last.ndim)
    alive = np.where(dead, 0.0, gamma).reshape(last.shape + components)
    # A terminal state's value may be anything, infinite too: it is left out, not multiplied by 0.
    following = np.where(alive == 0.0, 0.0, alive * np.where(alive == 0.0, 0.0, then))
    advantage = _scan(_wide(array) + following - now, gamma * decay, last, None, real)
    target = advantage + now if real is None else np.where(real.reshape(real.shape + components), advantage + now, 0.0)
    dtype = result_dtype(array.dtype)
    return advantage.astype(dtype, copy=False), target.astype(dtype, copy=False)


def _scan(x: Floats, weight: Floats, last: Bools, after: NDArray[Any] | None, real: Bools | None) -> Floats:
    """The kernel on batches: one axis of steps, one of components."""
    width = math.prod(x.shape[last.ndim :])
    flat = x.reshape(last.size, width)
    following = _NONE if after is None else _wide(after).reshape(last.size, width)
    if real is not None:  # padding ends at once, with 0 and nothing after it
        kept = real.reshape(-1, 1)
        flat = np.where(kept, flat, 0.0)
        following = following if after is None else np.where(kept, following, 0.0)
    out = np.empty((last.size, width))
    if out.size:
        wide = [np.require(array, FLOAT, ["C", "A", "W"]) for array in (flat, weight.reshape(-1), following)]
        kernels.active().scan(wide[0], wide[1], raw(last), wide[2], out)
    return out.reshape(x.shape)


def _wide(array: NDArray[Any]) -> Floats:
    return array.astype(FLOAT, copy=False)
