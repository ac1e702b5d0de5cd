"""D4RL and Minari: what is written comes back, and files are read as their formats say."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given

import rlmemory as rlm
from rlmemory.batch import Generated
from rlmemory.files import read_d4rl, read_minari, write_d4rl, write_minari

from .made_records import assert_same, experiences, leftovers, small
from .made_records import flat as flat_of

h5py = pytest.importorskip("h5py")


def minari(path: Path, episodes: list[dict], *, first: int = 0) -> Path:
    with h5py.File(path, "w") as file:
        for number, columns in enumerate(episodes, first):
            for name, value in columns.items():
                file.create_dataset(f"episode_{number}/{name}", data=value)
    return path


def episode(steps: int, *, offset: float = 0.0, ended: bool = False, cut: bool = True, **more) -> dict:
    flags = np.arange(steps) == steps - 1
    return {
        "observations": offset + np.arange(steps + 1.0),
        "actions": np.arange(steps),
        "rewards": np.ones(steps),
        "terminations": flags & ended,
        "truncations": flags & cut,
        **more,
    }


def d4rl(path: Path, **columns) -> Path:
    with h5py.File(path, "w") as file:
        for name, value in columns.items():
            file.create_dataset(name.replace("__", "/"), data=value)
    return path


def flat(rows: int = 6, *, terminals=(), timeouts=(), **more) -> dict:
    place = np.arange(rows)
    return {
        "observations": np.arange(float(rows)),
        "actions": -np.arange(float(rows)),
        "rewards": np.arange(rows) / 2,
        "terminals": np.isin(place, terminals),
        "timeouts": np.isin(place, timeouts),
        **more,
    }


# ---- round trips ----------------------------------------------------------------------------------------------------


@given(experiences())
def test_minari_gives_back_what_was_written(experience):
    with TemporaryDirectory() as folder:
        write_minari(Path(folder) / "set", experience)
        found = read_minari(Path(folder) / "set", extra=list(experience.extra))
        assert leftovers(Path(folder)) == []
    assert_same(found, experience)


@given(experiences(single=True))
def test_d4rl_gives_back_what_was_written(experience):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "set.hdf5"
        write_d4rl(path, experience)
        assert_same(read_d4rl(path, extra=list(experience.extra)), experience)


@given(experiences())
def test_a_memory_of_any_kind_takes_what_was_read(experience):
    memory = rlm.files.memory_from(experience, seed=0)
    assert_same(memory.all(), experience)
    prioritized = rlm.PrioritizedReplayMemory(
        memory.observation_spec, memory.action_spec, 100, reward=memory.reward_spec, extra=dict(memory.extra_spec)
    )
    prioritized.extend_from(experience)
    assert prioritized.episodes().length.tolist() == memory.episodes().length.tolist()
    assert memory.check().broken.size == 0


def test_sources_that_were_mixed_come_out_one_after_another(tmp_path):
    memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 20)
    for step in range(4):
        for source in (1, 0):
            at = 100.0 * source + step
            memory.append(at, 0.0, reward=at, next_observation=at + 1, terminated=step == 3, source=source)
    for write, read, name in ((write_minari, read_minari, "set"), (write_d4rl, read_d4rl, "set.hdf5")):
        write(tmp_path / name, memory.all())
        found = read(tmp_path / name)
        assert found.observation.tolist() == [0, 1, 2, 3, 100, 101, 102, 103]
        assert np.flatnonzero(found.terminated).tolist() == [3, 7]
        assert not found.truncated.any()


def test_an_episode_that_was_running_or_broken_off_comes_back_truncated(tmp_path):
    whole = small()
    cut = whole._replace(terminated=np.zeros(12, bool), truncated=np.zeros(12, bool))
    for write, read, name in ((write_minari, read_minari, "set"), (write_d4rl, read_d4rl, "set.hdf5")):
        write(tmp_path / name, cut)
        assert np.flatnonzero(read(tmp_path / name).truncated).tolist() == [3, 7, 11]


def test_generated_rows_have_no_neighbours(tmp_path):
    whole = small(1)
    write_minari(
        tmp_path / "set", Generated(*whole._replace(terminated=np.zeros(4, bool), truncated=np.zeros(4, bool)))
    )
    assert read_minari(tmp_path / "set").truncated.all()


def test_nothing_is_left_and_the_old_file_stays_when_writing_fails(tmp_path):
    write_d4rl(tmp_path / "set.hdf5", small())
    before = (tmp_path / "set.hdf5").read_bytes()
    broken = small()._replace(reward=np.array([object()] * 12))
    with pytest.raises(TypeError):
        write_d4rl(tmp_path / "set.hdf5", broken)
    assert (tmp_path / "set.hdf5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["set.hdf5"]


@pytest.mark.parametrize("keys", [["a/../b"], [""], ["."], ["a", "a/b"], ["_index_0"], [3], ["a\0"], ["\ud800"]])
def test_keys_that_a_file_would_not_give_back_are_refused(keys, tmp_path):
    experience = small(1)
    channels = dict.fromkeys(keys, experience.observation)
    with pytest.raises(rlm.StructureError, match="observation"):
        write_minari(tmp_path / "set", experience._replace(observation=channels, next_observation=channels))
    assert not (tmp_path / "set").exists()


def test_d4rl_has_no_place_for_several_channels(tmp_path):
    experience = small(1)
    with pytest.raises(rlm.StructureError, match="write_minari"):
        write_d4rl(tmp_path / "x.hdf5", experience._replace(action=(experience.action,)))


# ---- Minari ---------------------------------------------------------------------------------------------------------


def test_episodes_come_in_the_order_of_their_numbers(tmp_path):
    path = minari(tmp_path / "main_data.hdf5", [episode(1, offset=10.0 * i) for i in range(12)])
    assert read_minari(tmp_path).observation.tolist() == [10.0 * i for i in range(12)]
    assert read_minari(path, source=3).source.tolist() == [3] * 12


def test_both_flags_are_read_and_an_end_without_one_is_a_truncation(tmp_path):
    path = minari(
        tmp_path / "x.hdf5",
        [episode(2, ended=True, cut=False), episode(2), episode(2, cut=False), episode(2, ended=True)],
    )
    found = read_minari(path)
    assert np.flatnonzero(found.terminated).tolist() == [1, 7]
    assert np.flatnonzero(found.truncated).tolist() == [3, 5]
    assert found.next_observation.tolist() == [1, 2] * 4


def test_infos_with_and_without_the_reset(tmp_path):
    path = minari(tmp_path / "x.hdf5", [episode(2, **{"infos/a": [7, 8, 9], "infos/deep/b": [5, 6]})])
    found = read_minari(path, extra=["a", "deep/b"])
    assert {key: value.tolist() for key, value in found.extra.items()} == {"a": [8, 9], "deep/b": [5, 6]}


def test_spaces_in_spaces_become_one_dict(tmp_path):
    columns = episode(2)
    both = {"observations/arm/left": columns["observations"], "observations/eye": columns["observations"]}
    path = minari(tmp_path / "x.hdf5", [{**{k: v for k, v in columns.items() if k != "observations"}, **both}])
    assert list(read_minari(path).observation) == ["arm/left", "eye"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observations": np.arange(3.0)}, "expected 4 entries, got 3.*one observation more"),
        ({"observations": np.arange(5.0)}, "expected 4 entries, got 5"),
        ({"rewards": np.ones(2)}, "rewards: expected 3 entries, got 2"),
        ({"terminations": np.ones(4, bool)}, "terminations"),
        ({"truncations": np.full(3, 2)}, "truncations: expected bools"),
        ({"actions": 1.0}, "actions"),
        ({"observations": np.array([b"a"] * 4)}, "not an array of numbers"),
    ],
)
def test_what_is_not_aligned_is_named(change, message, tmp_path):
    path = minari(tmp_path / "x.hdf5", [episode(3), {**episode(3), **change}])
    with pytest.raises(rlm.FileFormatError, match=f"episode_1.*{message}"):
        read_minari(path)


def test_episodes_of_different_spaces_are_refused(tmp_path):
    path = minari(tmp_path / "x.hdf5", [episode(2), episode(2) | {"actions": np.zeros((2, 2))}])
    with pytest.raises(rlm.FileFormatError, match="episode_1 has other arrays than episode_0"):
        read_minari(path)


def test_what_is_no_data_set_says_so(tmp_path):
    with pytest.raises(rlm.FileFormatError, match="no data/main_data"):
        read_minari(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_minari(tmp_path / "nowhere")
    with pytest.raises(rlm.FileFormatError, match="no episodes"):
        read_minari(d4rl(tmp_path / "x.hdf5", **flat()))


def test_the_metadata_describe_the_arrays(tmp_path):
    experience = small(2)
    write_minari(tmp_path / "walk-v3", experience._replace(action=(experience.action,)))
    facts = json.loads((tmp_path / "walk-v3" / "data" / "metadata.json").read_text())
    assert (facts["dataset_id"], facts["total_episodes"], facts["total_steps"]) == ("walk-v3", 2, 8)
    assert json.loads(facts["action_space"])["subspaces"][0]["dtype"] == "int64"


# ---- D4RL -----------------------------------------------------------------------------------------------------------


def test_terminals_and_timeouts_are_read_and_the_row_without_a_successor_is_left_out(tmp_path):
    found = read_d4rl(d4rl(tmp_path / "x.hdf5", **flat(8, terminals=[2], timeouts=[5])))
    assert found.observation.tolist() == [0, 1, 2, 3, 4, 6]
    assert found.next_observation.tolist() == [1, 2, 2, 4, 5, 7]
    assert np.flatnonzero(found.terminated).tolist() == [2]
    assert np.flatnonzero(found.truncated).tolist() == [4, 5]


def test_with_next_observations_every_row_stays(tmp_path):
    columns = flat(6, terminals=[1], timeouts=[3], next_observations=np.arange(6.0) + 1)
    found = read_d4rl(d4rl(tmp_path / "x.hdf5", **columns))
    assert found.next_observation.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.flatnonzero(found.truncated).tolist() == [3, 5]
    del columns["timeouts"]
    columns["next_observations"][3] = 99.0
    found = read_d4rl(d4rl(tmp_path / "y.hdf5", **columns))
    assert np.flatnonzero(found.truncated).tolist() == [3, 5], "what does not follow is an end"


def test_columns_of_one_and_infos(tmp_path):
    columns = flat(4, timeouts=[3], infos__log_probs=np.arange(4.0))
    columns |= {name: columns[name][:, None] for name in ("rewards", "terminals")}
    found = read_d4rl(d4rl(tmp_path / "x.hdf5", **columns), extra=["log_probs"], source=2)
    assert found.reward.tolist() == [0, 0.5, 1]
    assert found.extra["log_probs"].tolist() == [0, 1, 2]
    assert set(found.source.tolist()) == {2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observations": np.zeros(7)}, "observations: expected 6 entries, got 7"),
        ({"terminals": np.zeros(5)}, "terminals: expected 6 entries, got 5"),
        ({"timeouts": np.full(6, 3)}, "timeouts: expected bools"),
        ({"next_observations": np.zeros(6, "float32")}, "next_observations"),
        ({"rewards": 1.0}, "rewards: expected an array"),
    ],
)
def test_columns_that_do_not_fit_are_named(change, message, tmp_path):
    with pytest.raises(rlm.FileFormatError, match=message):
        read_d4rl(d4rl(tmp_path / "x.hdf5", **{**flat(), **change}))


def test_a_column_that_is_missing_is_named(tmp_path):
    columns = flat()
    del columns["actions"]
    with pytest.raises(rlm.FileFormatError, match="has no actions; there are"):
        read_d4rl(d4rl(tmp_path / "x.hdf5", **columns))
    with pytest.raises(rlm.FileFormatError, match="has no infos"):
        read_d4rl(d4rl(tmp_path / "y.hdf5", **flat()), extra=["x"])


@pytest.mark.filterwarnings("ignore")  # those of Minari are its own
@given(experiences())
def test_minari_itself_reads_what_was_written(experience):
    theirs = pytest.importorskip("minari")
    for _, part in (*flat_of(experience.observation), *flat_of(experience.action)):
        assume(part.dtype.kind != "c")  # no Gymnasium space is complex
    with TemporaryDirectory() as folder:
        write_minari(Path(folder) / "set-v0", experience)
        found = theirs.MinariDataset(Path(folder) / "set-v0" / "data")
        assert found.total_steps == len(experience.reward)
        reward = np.concatenate([episode.rewards for episode in found.iterate_episodes()])
        assert reward.tobytes() == experience.reward.tobytes()
        if isinstance(experience.observation, tuple):
            for number in range(len(experience.observation)):
                seen = np.concatenate([episode.observations[number][:-1] for episode in found.iterate_episodes()])
                assert seen.tobytes() == experience.observation[number].tobytes()


@pytest.mark.slow
def test_real_trajectories_go_through_both_formats(shared_fixtures, tmp_path):
    with np.load(shared_fixtures / "real" / "imitation_cartpole.npz") as file:
        obs, acts, rews, ended, cuts = (file[key] for key in ("obs", "acts", "rews", "terminal", "indices"))
    memory = None
    for number, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(acts)], strict=True)):
        log = rlm.files.read_simulation_log(
            obs[first + number : last + number + 1], acts[first:last], rews[first:last], terminated=ended[number]
        )
        memory = memory or rlm.files.memory_from(log, len(acts))
        if number:
            memory.extend_from(log)
    whole = memory.all()
    assert len(whole.reward) == 26_964
    write_minari(tmp_path / "set", whole)
    write_d4rl(tmp_path / "set.hdf5", whole)
    assert_same(read_minari(tmp_path / "set"), whole)
    assert_same(read_d4rl(tmp_path / "set.hdf5"), whole)


# ---- writing that fails ---------------------------------------------------------------------------------------------


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


FAULTS = {"episodes_of": 1, "_put_episode": 2, "_metadata": 1, "put": 3, "created": 1}


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.parametrize("name", ["set", "deep/er/set", "deep/x.hdf5"])
@pytest.mark.parametrize("error", [OSError("full"), rlm.NotAvailableError("no h5py"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("there", [False, True])
def test_a_failed_write_of_minari_leaves_what_was_there(fault, name, error, there, tmp_path, monkeypatch):
    from rlmemory.files import minari as module

    if fault == "_metadata" and name.endswith(".hdf5"):
        pytest.skip("a file alone has none")
    rows = read_minari(minari(tmp_path / "from.hdf5", [episode(2), episode(3)]))
    target = tmp_path / "in" / name
    if there:
        write_minari(target, rows)
    before, calls, usual = everything(tmp_path), [], getattr(module, fault)

    def failing(*given, **keywords):
        calls.append(given)
        if len(calls) >= FAULTS[fault]:
            raise error
        return usual(*given, **keywords)

    monkeypatch.setattr(module, fault, failing)
    with pytest.raises(type(error)):
        write_minari(target, rows._replace(reward=-rows.reward))
    assert everything(tmp_path) == before
    monkeypatch.undo()
    write_minari(target, rows)
    assert_same(read_minari(target), rows)


@pytest.mark.parametrize("blocked", ["metadata.json", "main_data.hdf5"])
def test_a_name_that_is_taken_by_a_folder_leaves_no_half_of_a_set(blocked, tmp_path):
    rows = read_minari(minari(tmp_path / "from.hdf5", [episode(2)]))
    (tmp_path / "set" / "data" / blocked).mkdir(parents=True)
    before = everything(tmp_path)
    with pytest.raises(OSError, match=blocked):
        write_minari(tmp_path / "set", rows)
    assert everything(tmp_path) == before


def test_what_others_put_into_a_new_folder_meanwhile_stays(tmp_path, monkeypatch):
    from rlmemory.files import minari as module

    rows = read_minari(minari(tmp_path / "from.hdf5", [episode(2)]))

    def failing(*_):
        (tmp_path / "set" / "theirs").touch()
        raise OSError

    monkeypatch.setattr(module, "_put_episode", failing)
    with pytest.raises(OSError):  # noqa: PT011
        write_minari(tmp_path / "set", rows)
    assert list((tmp_path / "set").rglob("*")) == [tmp_path / "set" / "theirs"]
