"""How an environment begins its next episode, without importing Gymnasium."""

from __future__ import annotations

import warnings
from typing import Any, Literal

Mode = Literal["manual", "next_step", "same_step", "disabled"]
_MODES: dict[str, Mode] = {"nextstep": "next_step", "samestep": "same_step", "disabled": "disabled"}


def autoreset_mode(env: Any) -> Mode:
    """Who resets, and when.

    Parameters
    ----------
    env : gymnasium.Env or gymnasium.vector.VectorEnv

    Returns
    -------
    {"manual", "next_step", "same_step", "disabled"}
        "manual" for a single environment that its caller resets; "next_step" for one inside ``Autoreset``.

    Raises
    ------
    ValueError
        For a mode that Gymnasium does not have.
    """
    if not is_vector(env):
        return "next_step" if _resets_itself(env) else "manual"
    given = (getattr(env, "metadata", None) or {}).get("autoreset_mode")
    if given is None:
        warnings.warn(f"{env} does not say its autoreset mode; taken for NEXT_STEP, as Gymnasium does", stacklevel=3)
        return "next_step"
    word = str(getattr(given, "value", given)).lower().replace("_", "")
    if word not in _MODES:
        raise ValueError(f"{env}: unknown autoreset mode {given!r}")
    return _MODES[word]


def is_vector(env: Any) -> bool:
    """Whether `env` steps several environments at once."""
    return hasattr(env, "single_action_space")


def _resets_itself(env: Any) -> bool:
    layer = env
    while layer is not None:
        if type(layer).__name__ == "Autoreset":
            return True
        layer = getattr(layer, "env", None)
    return False
