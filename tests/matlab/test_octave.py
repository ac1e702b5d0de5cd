"""Struct arrays that Octave wrote come back as Octave itself concatenates them."""

from typing import Any

import numpy as np
import pytest
import scipy.io

import matlab_compat as mc

from .helpers import OCTAVE

CASES = sorted(path.stem for path in OCTAVE.glob("oracle_*.mat"))
CLASSES = {"float64": "double", "float32": "single"}


def load(name: str) -> dict[str, Any]:
    return scipy.io.loadmat(OCTAVE / f"{name}.mat", mat_dtype=True)


def cell(value: np.ndarray) -> list[np.ndarray]:
    return list(value.ravel(order="F"))


def specs(dimensions: np.ndarray, entries: np.ndarray) -> list[mc.rlNumericSpec]:
    """A spec for each channel: the DataType is the class of the first experience's entry."""
    return [
        mc.rlNumericSpec(dimension.ravel(), DataType=CLASSES.get(entry.dtype.name, entry.dtype.name))
        for dimension, entry in zip(cell(dimensions), cell(entries), strict=True)
    ]


def buffer_for(ex: np.ndarray, spec: np.ndarray) -> mc.rlReplayMemory:
    first = ex.flat[0]
    dimensions = spec.flat[0]
    return mc.rlReplayMemory(
        specs(dimensions["Observation"], first["Observation"]), specs(dimensions["Action"], first["Action"]), 100
    )


def append_whole(buffer: mc.rlReplayMemory, ex: np.ndarray) -> None:
    mc.append(buffer, ex)


def append_one_by_one(buffer: mc.rlReplayMemory, ex: np.ndarray) -> None:
    for element in ex.ravel(order="F"):
        mc.append(buffer, element)


def append_by_hand(buffer: mc.rlReplayMemory, ex: np.ndarray) -> None:
    experience = mc.struct()
    for i, element in enumerate(ex.ravel(order="F")):
        for name in element.dtype.names:
            setattr(experience[i], name, element[name])
    mc.append(buffer, experience)


WAYS = pytest.mark.parametrize("fill", [append_whole, append_one_by_one, append_by_hand])


def assert_same(ours: np.ndarray, octave: np.ndarray, rank: int) -> None:
    """Equal values, dtype and shape, once the trailing ones that files do not keep are back."""
    octave = octave.reshape(octave.shape + (1,) * (rank - octave.ndim))
    assert ours.ndim == rank
    np.testing.assert_array_equal(ours, octave, strict=True)


def assert_concatenated(buffer: mc.rlReplayMemory, mode: str, octave: np.ndarray) -> None:
    ours, octave = mc.allExperiences(buffer, ConcatenateMode=mode), octave.flat[0]
    more = 1 if mode == "batch" else 2
    for field, info in (
        ("Observation", mc.getObservationInfo(buffer)),
        ("Action", mc.getActionInfo(buffer)),
        ("NextObservation", mc.getObservationInfo(buffer)),
    ):
        for mine, theirs, spec in zip(getattr(ours, field), cell(octave[field]), info, strict=True):
            assert_same(mine, theirs, len(spec.Dimension) + more)
    assert_same(ours.Reward, octave["Reward"], 1 + more)
    assert_same(ours.IsDone, octave["IsDone"], 1 + more)


def assert_elements(buffer: mc.rlReplayMemory, ex: np.ndarray) -> None:
    ours, octave = mc.allExperiences(buffer), ex.ravel(order="F")
    assert mc.numel(ours) == octave.size
    for mine, theirs in zip(ours, octave, strict=True):
        for field in ("Observation", "Action", "NextObservation"):
            info = mc.getActionInfo(buffer) if field == "Action" else mc.getObservationInfo(buffer)
            for a, b, spec in zip(getattr(mine, field), cell(theirs[field]), info, strict=True):
                assert_same(a, b, len(spec.Dimension))
        for field in ("Reward", "IsDone"):
            value = getattr(mine, field)
            assert np.ndim(value) == 0
            assert value == theirs[field].item()
            assert value.dtype == theirs[field].dtype


@WAYS
@pytest.mark.parametrize("case", CASES)
def test_a_struct_array_from_octave_is_concatenated_as_octave_does(case: str, fill: Any) -> None:
    file = load(case)
    buffer = buffer_for(file["ex"], file["spec"])
    fill(buffer, file["ex"])
    assert_concatenated(buffer, "batch", file["batch"])
    assert_concatenated(buffer, "sequence", file["sequence"])
    assert_elements(buffer, file["ex"])


def test_all_twelve_files_are_there() -> None:
    assert len(CASES) == 12


def two_by_one_and_one() -> mc.rlReplayMemory:
    return mc.rlReplayMemory([mc.rlNumericSpec([2, 1]), mc.rlNumericSpec([1, 1])], [mc.rlNumericSpec([2, 1])], 100)


@WAYS
@pytest.mark.parametrize(
    ("name", "variable"), [("exp_none_v7", "experience"), ("exp_none_v6", "experience"), ("exp_none_row_v7", "expRow")]
)
def test_a_column_or_a_row_of_experiences_comes_back(name: str, variable: str, fill: Any) -> None:
    ex = load(name)[variable]
    buffer = two_by_one_and_one()
    fill(buffer, ex)
    assert_elements(buffer, ex)
    assert_concatenated(buffer, "batch", load("exp_batch_v7")["expBatch"])
    assert_concatenated(buffer, "sequence", load("exp_sequence_v7")["expSeq"])


@WAYS
def test_one_experience_comes_back(fill: Any) -> None:
    file = load("exp_edge_v7")
    buffer = two_by_one_and_one()
    fill(buffer, file["expOne"])
    assert_elements(buffer, file["expOne"])


@pytest.mark.parametrize("variable", ["expEmpty", "expEmpty01", "expEmpty10"])
def test_an_empty_struct_array_appends_nothing(variable: str) -> None:
    buffer = two_by_one_and_one()
    mc.append(buffer, load("exp_edge_v7")[variable])
    assert buffer.Length == 0


@WAYS
def test_images_and_singles_keep_their_class(fill: Any) -> None:
    file = load("exp_image_v7")
    buffer = mc.rlReplayMemory(
        [mc.rlNumericSpec([4, 3, 2], DataType="uint8"), mc.rlNumericSpec([3, 1], DataType="single")],
        [mc.rlNumericSpec([1, 1])],
    )
    fill(buffer, file["ximg"])
    assert_elements(buffer, file["ximg"])
    assert_concatenated(buffer, "batch", file["xbatch"])


@pytest.mark.parametrize(("name", "variable"), [("exp_batch_v7", "expBatch"), ("exp_sequence_v7", "expSeq")])
def test_a_loaded_batch_or_sequence_is_taken_apart(name: str, variable: str) -> None:
    buffer = two_by_one_and_one()
    mc.append(buffer, mc.unbatch(load(name)[variable]))
    assert_elements(buffer, load("exp_none_v7")["experience"])


def test_a_loaded_batch_of_one_is_taken_apart() -> None:
    file = load("exp_edge_v7")
    buffer = two_by_one_and_one()
    mc.append(buffer, mc.unbatch(file["batch1"]))
    assert_elements(buffer, file["batch1"])
    assert_concatenated(buffer, "batch", file["batch1"])
