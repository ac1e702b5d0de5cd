"""MATLAB's Reinforcement Learning Toolbox interface to `rlmemory`: its names, axis orders and displays.

``from matlab_compat import *`` gives what a script needs. Indices start at 0; everything else reads as in MATLAB::

    buffer = rlReplayMemory(obsInfo, actInfo, 5000)
    append(buffer, experience)
    expBatch = allExperiences(buffer, ConcatenateMode="batch")

What is mirrored, what differs and what is missing: ``python -m matlab_compat.coverage``.
"""

from .arrays import dims, dlarray, extractdata, finddim, stripdims
from .cells import Cell
from .device import gpuArray
from .extensions import merge, toBatchFirst, unbatch
from .fields import fieldnames, hcat, isfield, numel
from .files import load, loadExperiences, save, saveExperiences
from .functions import append, getActionInfo, getObservationInfo, reset, resize, validateExperience
from .gathering import gather
from .hindsight import (
    generateHindsightExperiences,
    rlHindsightPrioritizedReplayMemory,
    rlHindsightReplayMemory,
)
from .memories import rlReplayMemory
from .prioritized import rlPrioritizedReplayMemory, updatePriorities
from .retrieval import allExperiences, sample
from .specs import rlFiniteSetSpec, rlNumericSpec
from .structs import struct
from .trajectories import splitTrajectories

__all__ = [
    "Cell",
    "allExperiences",
    "append",
    "dims",
    "dlarray",
    "extractdata",
    "fieldnames",
    "finddim",
    "gather",
    "generateHindsightExperiences",
    "getActionInfo",
    "getObservationInfo",
    "gpuArray",
    "hcat",
    "isfield",
    "load",
    "loadExperiences",
    "merge",
    "numel",
    "reset",
    "resize",
    "rlFiniteSetSpec",
    "rlHindsightPrioritizedReplayMemory",
    "rlHindsightReplayMemory",
    "rlNumericSpec",
    "rlPrioritizedReplayMemory",
    "rlReplayMemory",
    "sample",
    "save",
    "saveExperiences",
    "splitTrajectories",
    "stripdims",
    "struct",
    "toBatchFirst",
    "unbatch",
    "updatePriorities",
    "validateExperience",
]
