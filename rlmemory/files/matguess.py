"""Experiences of a ``.mat`` file whose specs nobody gives: for the command line, which only looks and converts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..batch import Experience
from ..errors import MatFileError
from ..specs import NumericSpec
from .matfile import read_mat
from .matvalues import read_mat_values

_FIELDS = {"Observation", "Action", "Reward", "NextObservation", "IsDone"}


def read_mat_by_looks(path: str | os.PathLike[str]) -> Experience:
    """The experiences of the first variable that holds some; shapes and dtypes are those of the file.

    Raises
    ------
    MatFileError
        When no variable is a struct of experiences.

    Notes
    -----
    A MATLAB file does not say how many sizes of an array are the channel's: what is left when the experiences' axes are
    taken off is the Dimension, less its trailing ones. `read_mat` takes the specs and guesses nothing.
    """
    for name, value in read_mat_values(path).items():
        if isinstance(value, np.ndarray) and set(value.dtype.names or ()) >= _FIELDS and value.size:
            one = value.ravel()[0]
            observation, action = (_specs(one[field], one["Reward"]) for field in ("Observation", "Action"))
            return read_mat(path, observation, action, variable=name)
    raise MatFileError(
        f"{path}: no variable is a struct with the fields {', '.join(sorted(_FIELDS))}; "
        "rlmemory.files.read_mat looks further, and takes the specs of the channels"
    )


def _specs(cell: Any, reward: Any) -> Any:
    """The specs of a cell's entries, which may hold many experiences along their last one or two axes."""
    count, axes = np.size(reward), max(0, np.ndim(reward) - 1)
    found = []
    for entry in np.asarray(cell).ravel():
        size = list(np.shape(entry))
        if count > 1:
            del size[len(size) - axes :]
        while size and size[-1] == 1:
            size.pop()
        found.append(NumericSpec(tuple(size), np.asarray(entry).dtype))
    return found[0] if len(found) == 1 else tuple(found)
