"""splitTrajectories: D x B x T and a mask, of what allExperiences gives."""

from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import page_buffer, page_experiences

CODES = (0, 0, 1, 0, 2, 2, 0)
LENGTHS = (3, 2, 1, 1)


def buffer_of(codes: tuple[int, ...] = CODES) -> mc.rlReplayMemory:
    buffer, experiences = page_buffer(), page_experiences(len(codes))
    for e, code in zip(experiences, codes, strict=True):
        e.IsDone = code
        mc.append(buffer, e)
    return buffer


def by_hand(buffer: mc.rlReplayMemory, read: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Dimension x B x T, element by element."""
    singles = mc.allExperiences(buffer)
    out = np.zeros((*shape, len(LENGTHS), max(LENGTHS)))
    step = 0
    for b, length in enumerate(LENGTHS):
        for t in range(length):
            out[..., b, t] = read(singles[step])
            step += 1
    return out


@pytest.mark.parametrize("form", ["none", "batch", "sequence", "memory"])
def test_trajectories_are_laid_side_by_side_in_every_form(form: str) -> None:
    buffer = buffer_of()
    given = buffer if form == "memory" else mc.allExperiences(buffer, ConcatenateMode=form)
    split, mask = mc.splitTrajectories(given, nargout=2)
    assert mc.fieldnames(split) == ["Observation", "Action", "Reward", "NextObservation", "IsDone"]
    assert mask.shape == (1, 4, 3)
    assert mask.sum(axis=2).tolist() == [list(LENGTHS)]
    for name in ("Observation", "Action", "NextObservation"):
        for k, array in enumerate(getattr(split, name)):
            dimension = (1, 1) if (name, k) in (("Observation", 1), ("NextObservation", 1)) else (2, 1)
            wanted = by_hand(buffer, lambda e, name=name, k=k: getattr(e, name)[k], dimension)
            np.testing.assert_array_equal(array, wanted, strict=True)
    for name in ("Reward", "IsDone"):
        wanted = by_hand(buffer, lambda e, name=name: getattr(e, name), (1,))
        np.testing.assert_array_equal(getattr(split, name), wanted, strict=True)


def test_one_output_is_the_struct() -> None:
    split = mc.splitTrajectories(mc.allExperiences(buffer_of(), ConcatenateMode="batch"))
    assert split.Reward.shape == (1, 4, 3)
    with pytest.raises(ValueError, match="splitTrajectories: nargout must be 1 or 2; got 3"):
        mc.splitTrajectories(buffer_of(), nargout=3)


@pytest.mark.parametrize("form", ["none", "batch", "memory"])
def test_one_experience_is_one_trajectory_of_one_step(form: str) -> None:
    buffer = buffer_of((0,))
    given = buffer if form == "memory" else mc.allExperiences(buffer, ConcatenateMode=form)
    split, mask = mc.splitTrajectories(given, nargout=2)
    assert split.Observation[0].shape == (2, 1, 1, 1)
    assert mask.tolist() == [[[True]]]


def test_sources_of_a_memory_are_kept_apart() -> None:
    buffer, experiences = page_buffer(), page_experiences(4)
    for i in range(4):
        mc.append(buffer, experiences[i], i % 2)
    split, mask = mc.splitTrajectories(buffer, nargout=2)
    assert mask.shape == (1, 2, 2)
    assert split.Reward[0, :, 0].tolist() == [experiences[0].Reward, experiences[1].Reward]


def test_what_is_no_experience_is_answered() -> None:
    cell: list[Any] = [np.zeros(2)]
    part = {"Observation": cell, "Action": cell, "NextObservation": cell}
    whole = {**part, "Reward": 1, "IsDone": 0}
    with pytest.raises(rlm.StructureError, match=r"splitTrajectories: experience\[1\] has no field Reward, IsDone"):
        mc.splitTrajectories([whole, part])
    experiences = page_experiences(2)
    experiences[1].Action = [np.zeros((3, 1))]
    with pytest.raises(rlm.ShapeError, match=r"splitTrajectories: Action\[0\] does not have the same size"):
        mc.splitTrajectories(experiences)
    with pytest.raises(rlm.ShapeError, match="splitTrajectories: Reward is 4×2"):
        mc.splitTrajectories({**whole, "Reward": np.zeros((4, 2))})
