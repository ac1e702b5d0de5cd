"""`save`, `load`, `saveExperiences` and `loadExperiences`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import everything, filled, page_buffer, page_experiences, page_specs, walk

VERSIONS = pytest.mark.parametrize("version", ["v6", "v7", "v7.3"])


@pytest.fixture(autouse=True)
def _h5py(request: pytest.FixtureRequest) -> None:
    if getattr(request.node, "callspec", None) and request.node.callspec.params.get("version") == "v7.3":
        pytest.importorskip("h5py", reason="h5py is not installed: pip install h5py")


def assert_equal(a: mc.rlReplayMemory, b: mc.rlReplayMemory) -> None:
    for x, y in zip(everything(a)[:-1], everything(b)[:-1], strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


@VERSIONS
@pytest.mark.parametrize("mode", ["none", "batch", "sequence"])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_buffer_comes_back(tmp_path: Path, version: str, mode: str, count: int) -> None:
    buffer, other = filled(count), page_buffer()
    mc.saveExperiences(tmp_path / "x", buffer, ConcatenateMode=mode, Version=version)
    mc.loadExperiences(tmp_path / "x", other)
    assert_equal(buffer, other)


@VERSIONS
@pytest.mark.parametrize("mode", ["none", "batch", "sequence"])
@pytest.mark.parametrize("count", [1, 7])
def test_what_all_experiences_gives_is_saved_and_loaded(tmp_path: Path, version: str, mode: str, count: int) -> None:
    buffer, other, third = filled(count), page_buffer(), page_buffer()
    mc.save(tmp_path / "x.mat", f"-{version}", experience=mc.allExperiences(buffer, ConcatenateMode=mode))
    mc.loadExperiences(tmp_path / "x.mat", other)
    assert_equal(buffer, other)
    loaded = mc.load(tmp_path / "x.mat", "experience").experience
    mc.append(third, loaded if mode == "none" else mc.unbatch(loaded))
    assert_equal(buffer, third)


@VERSIONS
def test_sources_come_back_or_are_given(tmp_path: Path, version: str) -> None:
    buffer, other, third = page_buffer(), page_buffer(), page_buffer()
    mc.append(buffer, page_experiences(4), [3, 0, 3, 1])
    mc.saveExperiences(tmp_path / "x.mat", buffer, Version=version)
    mc.loadExperiences(tmp_path / "x.mat", other)
    assert_equal(buffer, other)
    mc.loadExperiences(tmp_path / "x.mat", third, 7)
    assert third.memory.all().source.tolist() == [7, 7, 7, 7]


def test_trailing_ones_of_a_dimension_stay(tmp_path: Path) -> None:
    spec = mc.rlNumericSpec
    buffer = mc.rlReplayMemory(spec([8, 6, 1], DataType="uint8"), spec([1, 1, 1]))
    e = mc.struct(Observation=[np.zeros((8, 6))], Action=[1], NextObservation=[np.ones((8, 6))], Reward=1, IsDone=2)
    mc.append(buffer, mc.hcat(e, e))
    mc.saveExperiences(tmp_path / "x.mat", buffer)
    batch = mc.load(tmp_path / "x.mat").experience
    assert (batch.Observation[0].shape, batch.Action[0].shape) == ((8, 6, 1, 2), (1, 1, 1, 2))
    mc.loadExperiences(tmp_path / "x.mat", buffer)
    assert buffer.Length == 4


def test_what_was_promised_is_read_before_a_file_is_loaded(tmp_path: Path) -> None:
    buffer = filled(3, 3)
    mc.saveExperiences(tmp_path / "x.mat", filled(3))
    before = mc.allExperiences(buffer)
    rewards = buffer.memory.all().reward.tolist()
    mc.loadExperiences(tmp_path / "x.mat", buffer)
    assert [x.Reward for x in before] == rewards


def test_what_does_not_fit_is_named_in_matlabs_words(tmp_path: Path) -> None:
    mc.saveExperiences(tmp_path / "x.mat", filled(3))
    other = mc.rlReplayMemory([mc.rlNumericSpec([3, 1]), mc.rlNumericSpec([1, 1])], mc.rlNumericSpec([2, 1]))
    with pytest.raises(rlm.ShapeError, match=r"experience\.Observation\{1\}: 2x1x3 came; expected 3x1x3"):
        mc.loadExperiences(tmp_path / "x.mat", other)
    small = mc.rlReplayMemory([mc.rlNumericSpec([2, 1]), mc.rlNumericSpec([1, 1])],
                              mc.rlNumericSpec([2, 1], DataType="int8"))  # fmt: skip
    with pytest.raises(rlm.ValueNotRepresentableError, match=r"Action\[0\]"):
        mc.loadExperiences(tmp_path / "x.mat", small)
    with pytest.raises(FileNotFoundError):
        mc.loadExperiences(tmp_path / "none", other)
    with pytest.raises(TypeError, match="loadExperiences expects a replay memory"):
        mc.loadExperiences(tmp_path / "x.mat", 3)  # type: ignore[arg-type]


def test_slips_are_answered(tmp_path: Path) -> None:
    def raises(error: type[Exception], words: str, *args: Any, **named: Any) -> None:
        with pytest.raises(error, match=words):
            mc.save(tmp_path / "x.mat", *args, **named)

    raises(TypeError, r"saveExperiences\(filename, buffer\)", buffer=filled(1))
    raises(ValueError, "nothing to save; name the variables")
    raises(ValueError, r"expected .-v6., .-v7. or .-v7\.3. .* got 'experience'", "experience", experience=1)
    raises(rlm.MatFileError, "MATLAB has no None", x=[None])
    raises(rlm.MatFileError, "cannot be the name of a variable", _x=1)
    with pytest.raises(ValueError, match="ConcatenateMode must be one of"):
        mc.saveExperiences(tmp_path / "x.mat", filled(1), ConcatenateMode="rows")
    assert not any(tmp_path.iterdir())


@VERSIONS
def test_cells_structs_text_and_numbers_come_back(tmp_path: Path, version: str) -> None:
    inner = mc.struct(name="a", values=[1.5, np.arange(3)])
    mc.save(
        tmp_path / "x.mat", f"-{version}", s=inner, many=mc.hcat(inner, inner), flag=True, number=3, text="two words"
    )
    loaded = mc.load(tmp_path / "x.mat")
    assert set(mc.fieldnames(loaded)) == {"s", "many", "flag", "number", "text"}
    assert isinstance(loaded.s.values, mc.Cell)
    assert (loaded.s.name, loaded.text, mc.numel(loaded.many)) == ("a", "two words", 2)
    assert loaded.many[1].values[1].tolist() == [[0, 1, 2]]
    assert (loaded.flag.dtype, loaded.number.dtype, loaded.number.shape) == (np.bool_, np.float64, (1, 1))


@VERSIONS
@pytest.mark.parametrize("kind", ["rlPrioritizedReplayMemory", "rlReplayMemory"])
def test_every_kind_of_buffer_is_saved_and_filled(tmp_path: Path, version: str, kind: str) -> None:
    buffer, other = (getattr(mc, kind)(*page_specs(), 20, Seed=0) for _ in range(2))
    mc.append(buffer, page_experiences(25))  # wrapped
    mc.saveExperiences(tmp_path / "x.mat", buffer, Version=version)
    mc.loadExperiences(tmp_path / "x.mat", other)
    assert_equal(buffer, other)
    assert mc.sample(other, 4).Reward.shape == (1, 4)


def test_a_hindsight_buffer_is_saved_and_filled(tmp_path: Path) -> None:
    buffer, other = walk(5), walk(1)
    mc.reset(other)
    mc.saveExperiences(tmp_path / "x.mat", buffer)
    mc.loadExperiences(tmp_path / "x.mat", other)
    assert_equal(buffer, other)
    assert mc.numel(mc.generateHindsightExperiences(other, 3)) == 3
