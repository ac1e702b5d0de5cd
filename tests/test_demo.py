"""The demo finds what is wrong, says what is missing, and reports success only when every bit is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import matlab_compat
import rlmemory as rlm
from rlmemory import demo
from rlmemory.__main__ import main
from rlmemory.demo_run import Run, Step, differences

DEMO = ["demo", "--steps", "60"]


@pytest.fixture(autouse=True)
def no_fixtures(monkeypatch, tmp_path):
    monkeypatch.setenv("RLMEMORY_FIXTURES", str(tmp_path))


def steps_of_two_episodes(count=9):
    rng = np.random.default_rng(3)
    observation = rng.random((count + 1, 2)).astype(np.float32)
    for i in range(count):
        yield Step(observation[i], i % 3, rng.random(), observation[i + 1], i == 4, i in (4, count - 1))


def filled_run(*, by_episode=False):
    memory = rlm.ReplayMemory(rlm.NumericSpec((2,), "float32"), rlm.FiniteSetSpec([0, 1, 2]), 9, seed=0)
    run = Run("two episodes", "made up", memory, steps_of_two_episodes, 9, by_episode=by_episode)
    run.fill(lambda: None)
    return run


def write_expert_file(folder: Path, name: str) -> None:
    (folder / "real").mkdir(exist_ok=True)
    np.savez(
        folder / "real" / f"{name}.npz",
        obs=np.arange(14, dtype=np.float32).reshape(7, 2),
        acts=np.arange(5, dtype=np.int64),
        rews=np.linspace(0, 1, 5),
        terminal=np.array([True, False]),
        indices=np.array([2]),
        infos=np.array([{"not": "to be unpickled"}], dtype=object),
    )


def test_demo_succeeds_and_prints_a_table_for_each_environment(capsys):
    assert main(DEMO) == 0
    out, err = capsys.readouterr()
    for name in demo.ENVIRONMENTS:
        assert f"{name}, random actions: 60 experiences" in out
    assert "values came back bit for bit" in out
    assert "expert trajectories: none found" in out
    assert err == "", "no progress bar where nobody looks"


def test_demo_shows_a_progress_bar_when_told_to(capsys):
    assert main([*DEMO, "--progress"]) == 0
    assert "CartPole-v1" in capsys.readouterr().err


@pytest.mark.parametrize("by_episode", [False, True])
def test_everything_comes_back_in_every_way(by_episode):
    rows = filled_run(by_episode=by_episode).compare()
    assert len(rows) == 6
    assert [row.wrong for row in rows] == [0] * 6
    assert all(row.values > 0 for row in rows)


def test_a_changed_reward_in_the_memory_is_found():
    run = filled_run()
    run.memory.set(4, reward=np.nextafter(run.given[4].reward, 2))
    rows = run.compare()
    assert rows[0].wrong == 1
    assert "reward: at (4,)" in rows[0].first_wrong
    assert [row.wrong for row in rows[3:]] == [0, 0, 0]
    assert "was given" in run.table(rows)


def test_a_changed_action_behind_the_facade_is_found_in_all_three_modes():
    run = filled_run()
    run.buffer.memory.set(0, action=2)
    assert [row.wrong for row in run.compare()] == [0, 0, 0, 1, 1, 1]


def test_a_changed_end_of_an_episode_is_found():
    run = filled_run()
    run.memory.set(8, truncated=False)
    run.buffer.memory.set(8, truncated=False)
    assert all(row.wrong for row in run.compare() if "sample" not in row.way and "ring" not in row.way)


def test_demo_fails_when_a_value_differs(capsys, monkeypatch):
    whole = rlm.ReplayMemory.all

    def off_by_a_bit(self, **options):
        experience = whole(self, **options)
        experience.observation.view(np.uint32)[0] ^= 1
        return experience

    monkeypatch.setattr(rlm.ReplayMemory, "all", off_by_a_bit)
    assert main(DEMO) == 1
    assert "values DIFFER" in capsys.readouterr().out


def test_demo_fails_when_the_facade_loses_an_experience(monkeypatch):
    append, calls = matlab_compat.append, []

    def forgetful(buffer, experience):
        calls.append(None)
        if len(calls) != 7:
            append(buffer, experience)

    monkeypatch.setattr(matlab_compat, "append", forgetful)
    assert main(DEMO) == 1


def test_expert_trajectories_are_read_as_episodes(tmp_path, capsys):
    for name in demo.FIXTURES:
        write_expert_file(tmp_path, name)
    run = demo._from_file(tmp_path / "real" / f"{demo.FIXTURES[0]}.npz")
    run.fill(lambda: None)
    experience = run.memory.all()
    np.testing.assert_array_equal(experience.observation[:, 0], [0, 2, 6, 8, 10])
    np.testing.assert_array_equal(experience.next_observation[:, 0], [2, 4, 8, 10, 12])
    np.testing.assert_array_equal(experience.terminated, [False, True, False, False, False])
    np.testing.assert_array_equal(experience.truncated, [False, False, False, False, True])
    assert main(DEMO) == 0
    assert "imitation_pendulum, expert trajectories: 5 experiences, 2 episode ends" in capsys.readouterr().out


@pytest.mark.slow
def test_the_real_expert_trajectories_come_back(shared_fixtures):
    for name in demo.FIXTURES:
        run = demo._from_file(shared_fixtures / "real" / f"{name}.npz")
        run.fill(lambda: None)
        assert sum(row.wrong for row in run.compare()) == 0


@pytest.mark.parametrize("module", ["gymnasium", "tqdm"])
def test_a_missing_package_is_named_with_its_extra(module, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(DEMO) == 3
    err = capsys.readouterr().err
    assert module in err
    assert "rlmemory[gym]" in err


@pytest.mark.parametrize(
    "arguments", [[], ["unknown"], ["demo", "--steps", "0"], ["demo", "--steps", "many"], ["demo", "--seed", "-1"]]
)
def test_wrong_usage_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_help_lists_the_exit_codes(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--help"])
    assert stop.value.code == 0
    assert "exit status" in capsys.readouterr().out


def test_the_command_line_loads_no_facade_and_no_extra_before_it_runs():
    code = (
        "import sys, rlmemory.__main__; "
        "print([m for m in ('matlab_compat', 'gymnasium', 'tqdm', 'numba', 'scipy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_differences_are_bits_not_values():
    zero = np.zeros(3)
    assert differences(zero, -zero)[0] == 3
    assert differences(np.array([np.nan]), np.array([np.nan])) == (0, "")
    count, text = differences(zero.astype(np.float32), zero)
    assert count == 3
    assert "float32" in text
    assert differences(zero[None], zero)[0] == 3
    assert differences(np.zeros((0, 2)), np.zeros((0, 2))) == (0, "")
