"""Simulation logs and historical tables."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlmemory as rlm
from rlmemory.files import memory_from, read_simulation_log, read_table

from .made_records import assert_same

# ---- simulation logs ------------------------------------------------------------------------------------------------


def test_a_log_of_one_more_observation_gives_as_many_transitions_as_actions():
    log = read_simulation_log(np.arange(5.0), np.arange(4), np.ones(4), terminated=True, source=2)
    assert log.observation.tolist() == [0, 1, 2, 3]
    assert log.next_observation.tolist() == [1, 2, 3, 4]
    assert log.terminated.tolist() == [False, False, False, True]
    assert not log.truncated.any()
    assert log.source.tolist() == [2] * 4


def test_a_log_that_was_cut_is_truncated():
    for flag in (False, [0, 0, 0], np.zeros(3, bool)):
        assert read_simulation_log(np.arange(4.0), np.ones(3), np.ones(3), terminated=flag).truncated.tolist() == [
            False, False, True,
        ]  # fmt: skip


def test_time_may_be_the_last_axis():
    observation = np.arange(12.0).reshape(3, 1, 4)
    log = read_simulation_log({"x": observation}, np.arange(3)[None], np.ones(3), time_axis=-1)
    assert log.observation["x"].shape == (3, 3, 1)
    assert log.next_observation["x"][0].ravel().tolist() == [1, 5, 9]
    assert log.action.shape == (3, 1)


def test_what_was_read_is_not_what_was_given(tmp_path):
    memory = memory_from(read_simulation_log(given := np.arange(4.0), np.ones(3), np.ones(3)))
    given[:] = 9
    assert memory.all().observation.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3), np.zeros(3), np.zeros(3)), "3 actions need 4 entries.*leave out the last action"),
        ((np.zeros(6), np.zeros(3), np.zeros(3)), "got 6"),
        (((np.zeros(4), np.zeros(3)), np.zeros(3), np.zeros(3)), "different numbers of rows"),
        ((np.zeros(4), np.zeros(3), np.zeros(2)), "reward: expected 3 entries, got 2"),
        ((np.zeros(4), 1.0, np.zeros(3)), "action: expected an array"),
    ],
)
def test_a_log_that_is_not_aligned_is_refused(arguments, message):
    with pytest.raises(rlm.ShapeError, match=message):
        read_simulation_log(*arguments)


def test_an_end_in_the_middle_of_a_log_is_refused():
    with pytest.raises(rlm.ShapeError, match="step 1 of 3 ends an episode"):
        read_simulation_log(np.zeros(4), np.zeros(3), np.zeros(3), terminated=[0, 1, 0])
    with pytest.raises(rlm.ShapeError, match="no axis 1"):
        read_simulation_log(np.zeros(4), np.zeros(3), np.zeros(3), time_axis=1)


# ---- tables ---------------------------------------------------------------------------------------------------------

COLUMNS = {
    "run": [1, 1, 1, 2, 2, 2],
    "x": [0.0, 0.5, 1.0, 5.0, 5.5, 6.0],
    "v": [1, 2, 3, 4, 5, 6],
    "u": [0, 1, 0, 1, 0, 1],
    "r": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
    "done": [0, 0, 1, 0, 0, 0],
}
PICK = {"observation": ["x", "v"], "action": "u", "reward": "r", "terminated": "done"}


def structured(columns):
    result = np.zeros(6, [(name, "f8") for name in columns])
    for name, column in columns.items():
        result[name] = column
    return result


def csv_file(folder: Path, columns: dict, **options) -> Path:
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, **options)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_a_table_without_next_observations_is_shifted_within_its_episodes():
    found = read_table(COLUMNS, **PICK, episode="run")
    assert found.observation.tolist() == [[0, 1], [0.5, 2], [1, 3], [5, 4], [5.5, 5]]
    assert found.next_observation[:, 0].tolist() == [0.5, 1, 1, 5.5, 6]
    assert found.terminated.tolist() == [False, False, True, False, False]
    assert found.truncated.tolist() == [False] * 4 + [True]
    assert found.action.dtype == np.int64


@pytest.mark.parametrize("kind", ["structured", "csv", "semicolons", "text flags"])
def test_the_same_table_in_every_form(kind, tmp_path):
    wanted = read_table({key: np.asarray(value, float) for key, value in COLUMNS.items()}, **PICK, episode="run")
    if kind == "structured":
        found = read_table(structured(COLUMNS), **PICK, episode="run")
    elif kind == "csv":
        found = read_table(csv_file(tmp_path, COLUMNS | {"note": ['a, "b"'] * 6}), **PICK, episode="run")
    elif kind == "semicolons":
        found = read_table(str(csv_file(tmp_path, COLUMNS, delimiter=";")), **PICK, episode="run", delimiter=";")
    else:
        flags = {"done": [bool(flag) for flag in COLUMNS["done"]]}
        found = read_table(csv_file(tmp_path, COLUMNS | flags), **PICK, episode="run")
    assert_same(found, wanted)


def test_next_observations_codes_sources_and_structures():
    table = {**COLUMNS, "nx": np.arange(6.0), "code": [0, 0, 2, 0, 0, 1], "who": [0, 0, 0, 4, 4, 4]}
    found = read_table(
        table, observation={"x": "x", "both": ["x", "v"]}, action=("u",), reward="r", extra={"speed": "v"},
        next_observation={"x": "nx", "both": ["nx", "v"]}, is_done="code", source="who",
    )  # fmt: skip
    assert found.next_observation["x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert np.flatnonzero(found.truncated).tolist() == [2]
    assert np.flatnonzero(found.terminated).tolist() == [5]
    assert found.source.tolist() == [0, 0, 0, 4, 4, 4]
    assert found.extra["speed"].tolist() == [1, 2, 3, 4, 5, 6]
    assert len(memory_from(found, 100)) == 6


def test_rows_of_mixed_sources_follow_their_own():
    table = {"who": [1, 0, 1, 0, 1, 0], "x": [10.0, 0.0, 11.0, 1.0, 12.0, 2.0], "u": np.arange(6), "r": np.arange(6)}
    found = read_table(table, observation="x", action="u", reward="r", source="who")
    assert found.source.tolist() == [0, 0, 1, 1]
    assert found.observation.tolist() == [0, 1, 10, 11]
    assert found.next_observation.tolist() == [1, 2, 11, 12]
    assert found.action.tolist() == [1, 3, 0, 2]


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=5))
def test_a_table_of_episodes_is_what_their_logs_are(episodes):
    rows, wanted = [], []
    for number, (steps, ended) in enumerate(episodes):
        place = 100.0 * number + np.arange(steps + 1.0)
        for step in range(steps + (not ended)):  # the last row of a cut episode only has an observation
            last = step == steps - 1 and ended
            rows.append((number, place[step], step, 2.0 * step, last))
        wanted += [*place[1:steps], place[steps - 1] if ended else place[steps]]
    with TemporaryDirectory() as folder:
        names = ("run", "x", "u", "r", "done")
        table = csv_file(Path(folder), dict(zip(names, zip(*rows, strict=True), strict=True)))
        found = read_table(table, observation="x", action="u", reward="r", terminated="done", episode="run")
    assert found.next_observation.tolist() == wanted
    lengths = memory_from(found).episodes().length.tolist()
    assert lengths == [steps for steps, _ in episodes]
    assert (found.terminated | found.truncated).sum() == len(episodes)


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({}, {"action": "w"}, rlm.MissingKeyError, "no column 'w'; there are"),
        ({}, {"action": []}, rlm.SpecError, "names of columns"),
        ({}, {"action": 3}, rlm.SpecError, "name of a column"),
        ({"u": [0, 1]}, {}, rlm.ShapeError, "expected 2 entries, got 6"),
        ({"u": ["a"] * 6}, {}, rlm.DataTypeError, "u: expected numbers"),
        ({"u": np.array([[1], None], object)}, {}, rlm.DataTypeError, "u: expected numbers"),
        ({"done": [0, 0, 2, 0, 0, 0]}, {}, rlm.ValueNotRepresentableError, "done: expected bools"),
        ({"v": [2**60 + 1] * 6}, {}, rlm.DataTypeError, "rounded"),
        ({"done": [3] * 6}, {"terminated": None, "is_done": "done"}, rlm.ShapeError, "codes of 0, 1 or 2"),
        ({}, {"is_done": "done"}, rlm.SpecError, "both flags"),
        ({}, {"source": "x"}, rlm.ValueNotRepresentableError, "source"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change, options, error, message):
    with pytest.raises(error, match=message):
        read_table(COLUMNS | change, **{**PICK, **options})


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (b"", rlm.MissingKeyError, "no column"),
        (b"x,u,r\n1,2\n", rlm.FileFormatError, "table.csv"),
        (b"x,u,r\n1,,3\n", rlm.FileFormatError, "could not convert"),
        (b"x,u,r,x\n1,2,3,4\n", rlm.FileFormatError, "2 times"),
        (b"\xff\xfe\x00x,u", rlm.FileFormatError, "decode"),
        (b"x,u,r\n\x00\xff,1,1\n", rlm.FileFormatError, "table.csv"),
    ],
)
def test_a_damaged_csv_file_is_refused(text, error, message, tmp_path):
    (tmp_path / "table.csv").write_bytes(text)
    with pytest.raises(error, match=message):
        read_table(tmp_path / "table.csv", observation="x", action="u", reward="r")


@given(st.binary(max_size=200))
def test_random_bytes_are_no_table(data):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(data)
        with pytest.raises(rlm.ReplayMemoryError):
            read_table(path, observation="x", action="u", reward="r")


def test_what_is_no_table_says_so():
    with pytest.raises(rlm.StructureError, match="got list"):
        read_table([1, 2], **PICK)
    with pytest.raises(FileNotFoundError):
        read_table("nowhere.csv", **PICK)
