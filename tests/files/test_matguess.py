"""The command line on ``.mat`` files, whose specs nobody gives, and on checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory.__main__ import main
from rlmemory.files.matguess import read_mat_by_looks

OCTAVE = Path(__file__).resolve().parent.parent / "data" / "octave"


@pytest.mark.parametrize(
    "name", ["exp_batch_v6.mat", "exp_batch_v7.mat", "exp_sequence_v7.mat", "exp_none_v7.mat", "exp_none_row_v7.mat"]
)
def test_the_forms_of_octave_say_the_same_without_specs(name):
    found = read_mat_by_looks(OCTAVE / name)
    given = rlm.files.read_mat(OCTAVE / name, (rlm.NumericSpec((2,)), rlm.NumericSpec(())), rlm.NumericSpec((2,)))
    for ours, theirs in zip(found.observation, given.observation, strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(found.action, given.action)
    assert np.array_equal(found.reward, given.reward)


def memory() -> rlm.ReplayMemory:
    result = rlm.ReplayMemory(rlm.NumericSpec((3,)), rlm.NumericSpec((2,)), 50, seed=0)
    rows = np.arange(60.0).reshape(20, 3)
    result.extend(rows, rows[:, :2], reward=rows[:, 0], next_observation=rows + 3, terminated=np.arange(20) % 10 == 9)
    return result


@pytest.mark.parametrize("suffix", [".mat", ".npz", ".checkpoint"])
def test_info_and_convert_take_what_was_written(tmp_path, capsys, suffix):
    source, target = tmp_path / f"a{suffix}", tmp_path / "b.hdf5"
    if suffix == ".mat":
        rlm.files.write_mat(source, memory())
    else:
        memory().save(source)
    assert main(["info", str(source)]) == 0
    assert "20" in capsys.readouterr().out
    assert main(["convert", str(source), str(target)]) == 0
    back = rlm.files.read_d4rl(target)
    assert np.array_equal(back.observation, memory().all().observation)
    assert np.array_equal(back.reward, memory().all().reward)


def test_a_mat_file_without_experiences_says_so(tmp_path, capsys):
    rlm.files.write_mat_values(tmp_path / "a.mat", {"x": np.zeros((2, 2))})
    assert main(["info", str(tmp_path / "a.mat")]) == 1
    assert "no variable is a struct" in capsys.readouterr().err
