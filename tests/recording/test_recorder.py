"""From an environment into a memory: every row against a loop written by hand, in every mode."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import Autoreset, TimeLimit
from hypothesis import given
from hypothesis import strategies as st

import rlmemory as rlm
from rlmemory.wrappers import LastActionObservation
from rlmemory.wrappers.vector import LastActionObservation as VectorLastAction

NEXT, SAME, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
MODES = list(AutoresetMode)


class Counter(gym.Env):
    """Observes `first` plus the steps taken, earns its action, and ends after `limit` steps."""

    def __init__(
        self, limit: int, first: int = 100, cut: bool = False, both: bool = False, reuse: bool = False
    ) -> None:
        self.limit, self.first, self.cut, self.both, self.reuse = limit, first, cut, both, reuse
        self.observation_space, self.action_space = spaces.Box(0, 1e6, (1,)), spaces.Discrete(4)
        self.shown = np.zeros(1, np.float32)

    def observe(self):
        if not self.reuse:  # with it, one array for all, as some environments have it
            self.shown = np.empty(1, np.float32)
        self.shown[:] = self.first + self.t
        return self.shown

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.t += 1
        end = self.t == self.limit
        return self.observe(), float(action), end and not self.cut, end and (self.cut or self.both), {}


class Two(Counter):
    """The same with two channels."""

    def __init__(self, *args, **keywords) -> None:
        super().__init__(*args, **keywords)
        self.observation_space = spaces.Dict({"count": self.observation_space, "odd": spaces.Discrete(2)})

    def observe(self):
        return {"count": super().observe(), "odd": np.int64(self.t % 2)}


def vector(limits, mode, kind=Counter, **keywords) -> SyncVectorEnv:
    makers = [lambda i=i, n=n: kind(n, 100 * (i + 1), cut=i % 2 == 1) for i, n in enumerate(limits)]
    return SyncVectorEnv(makers, autoreset_mode=mode, **keywords)


def by_hand(limits, actions, mode):
    """(observation, action, next observation, terminated, truncated, source) of each experience, by source."""
    rows = []
    for i, limit in enumerate(limits):
        t, over, first = 0, False, 100 * (i + 1)
        for action in actions[:, i]:
            if over and mode == NEXT:  # this step only resets
                t, over = 0, False
                continue
            over = t + 1 == limit
            rows.append((first + t, int(action), first + t + 1, over and i % 2 == 0, over and i % 2 == 1, i))
            t = 0 if over and mode != NEXT else t + 1
    return rows


def stored(memory):
    """The same from the memory."""
    whole = memory.all()
    rows = zip(
        np.ravel(whole.observation), whole.action, np.ravel(whole.next_observation), whole.terminated,
        whole.truncated, whole.source, strict=True,
    )  # fmt: skip
    return sorted((tuple(np.array(row).astype(int).tolist()) for row in rows), key=lambda row: row[-1])


def drive(envs, memory, actions, **options):
    """A loop as a user writes it."""
    with rlm.Recorder(memory, envs, **options) as recorder:
        observation, _ = envs.reset(seed=0)
        recorder.reset(observation)
        for action in actions:
            observation, reward, terminated, truncated, info = envs.step(action)
            recorder.step(action, observation, reward, terminated, truncated, info)
            ended = terminated | truncated
            if envs.metadata["autoreset_mode"] == DISABLED and ended.any():
                observation, _ = envs.reset(options={"reset_mask": ended})
                recorder.reset(observation, mask=ended)


@pytest.mark.parametrize("mode", MODES)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans(), st.integers(0, 2**16))
def test_what_is_stored_is_what_the_loop_by_hand_gives(mode, limits, copy, seed):
    actions = np.random.default_rng(seed).integers(0, 4, (11, len(limits)))
    envs = vector(limits, mode, copy=copy)
    memory = rlm.ReplayMemory.from_env(envs, 1000)
    drive(envs, memory, actions)
    assert stored(memory) == [tuple(map(int, row)) for row in by_hand(limits, actions, mode)]
    assert memory.check().broken.size == 0
    assert np.array_equal(memory.all().reward, memory.all().action)
    lengths = memory.episodes().length
    assert lengths.sum() == len(memory)
    assert lengths.max() <= max(limits)


def test_automatic_resets_give_the_rows_that_they_should():
    """One environment that ends at its second step; actions 1, 2, 1, 2, 1."""
    actions = np.array([[1], [2], [1], [2], [1]])
    for mode, expected in [
        (NEXT, [(100, 101, False), (101, 102, True)] * 2),
        (SAME, [(100, 101, False), (101, 102, True)] * 2 + [(100, 101, False)]),
        (DISABLED, [(100, 101, False), (101, 102, True)] * 2 + [(100, 101, False)]),
    ]:
        envs = vector([2], mode)
        memory = rlm.ReplayMemory.from_env(envs, 10)
        drive(envs, memory, actions)
        whole = memory.all()
        pairs = zip(whole.observation[:, 0], whole.next_observation[:, 0], whole.terminated, strict=True)
        assert [(int(a), int(b), bool(c)) for a, b, c in pairs] == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrapped", [False, True])
def test_dict_observations_and_last_actions(mode, wrapped):
    limits, actions = [2, 3], np.random.default_rng(0).integers(0, 4, (9, 2))
    envs = vector(limits, mode, Two)
    envs = VectorLastAction(envs, default=-1) if wrapped else envs
    memory = rlm.ReplayMemory.from_env(envs, 100)
    drive(envs, memory, actions)
    rows, whole = by_hand(limits, actions, mode), memory.all()
    for source in (0, 1):
        mine = whole.source == source
        expected = np.array([row[:5] for row in rows if row[5] == source])
        assert np.array_equal(whole.observation["count"][mine, 0], expected[:, 0])
        assert np.array_equal(whole.next_observation["count"][mine, 0], expected[:, 2])
        assert np.array_equal(whole.observation["odd"][mine], expected[:, 0] % 2)
        if wrapped:
            ends = expected[:, 3] | expected[:, 4]
            starts = np.concatenate([[True], ends[:-1] > 0])
            assert np.array_equal(whole.next_observation["last_action"][mine], expected[:, 1])
            previous = rlm.shift_actions(expected[:, 1], starts, -1)
            assert np.array_equal(whole.observation["last_action"][mine], previous)
    assert memory.check().broken.size == 0


def test_a_single_environment():
    cases = [(Counter(3), True), (Counter(3, reuse=True), True), (Counter(3, cut=True), True)]
    for env, resets in [*cases, (Autoreset(Counter(3)), False)]:
        memory, actions = rlm.ReplayMemory.from_env(env, 50), np.random.default_rng(1).integers(0, 4, 10)
        recorder = rlm.Recorder(memory, env, source=4)
        recorder.reset(env.reset()[0])
        kept = []
        for action in actions:
            observation, reward, terminated, truncated, info = env.step(action)
            kept.append(len(recorder.step(action, observation, reward, terminated, truncated, info)))
            if resets and (terminated or truncated):
                recorder.reset(env.reset()[0])
        assert kept == ([1] * 10 if resets else [1, 1, 1, 0, 1, 1, 1, 0, 1, 1])
        whole, steps = memory.all(), np.arange(len(memory)) % 3
        assert np.array_equal(whole.observation[:, 0], 100 + steps)
        assert np.array_equal(whole.next_observation[:, 0], 101 + steps)
        assert np.array_equal(whole.action, actions[np.array(kept) > 0])
        cut = isinstance(env, Counter) and env.cut
        assert np.array_equal(whole.truncated if cut else whole.terminated, steps == 2)
        assert not (whole.terminated if cut else whole.truncated).any()
        assert set(whole.source) == {4}
        assert memory.check().broken.size == 0


def test_both_flags_are_a_termination():
    env = Counter(1, both=True)
    memory = rlm.ReplayMemory.from_env(env, 5)
    rlm.record_rollout(env, None, 3, memory)
    assert memory.all().terminated.all()
    assert not memory.all().truncated.any()


def test_a_last_action_single_environment_is_stored_as_it_was_seen():
    env = LastActionObservation(Counter(2))
    memory = rlm.ReplayMemory.from_env(env, 10)
    recorder = rlm.Recorder(memory, env)
    recorder.reset(env.reset()[0])
    for action in (3, 1):
        recorder.step(action, *env.step(action))
    recorder.reset(env.reset()[0])
    recorder.step(2, *env.step(2))
    whole = memory.all()
    assert whole.observation["last_action"].tolist() == [0, 3, 0]
    assert whole.next_observation["last_action"].tolist() == [3, 1, 2]


@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize(
    "action_space",
    [
        spaces.Box(-1, 1, (2,)),
        spaces.MultiDiscrete([3, 2]),
        spaces.MultiBinary(3),
        spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,))]),
        spaces.Dict({"a": spaces.MultiBinary(2), "b": spaces.Discrete(2)}),
    ],
    ids=lambda space: type(space).__name__,
)
def test_every_action_space(action_space, mode):
    class Acting(Counter):
        def __init__(self, *args, **keywords):
            super().__init__(*args, **keywords)
            self.action_space = action_space

        def step(self, action):
            return super().step(0)

    env = Acting(3) if mode is None else vector([2, 3], mode, Acting)
    memory, given = rlm.ReplayMemory.from_env(env, 100), []
    env.action_space.seed(0)

    def policy(_):
        given.append(env.action_space.sample())
        return given[-1]

    rlm.record_rollout(env, policy, 5, memory)
    whole = memory.all()
    first = whole.source == 0
    skipped = [2] if mode == NEXT else []  # the first environment of a vector ends at its second step
    kept = [action for t, action in enumerate(given) if t not in skipped]
    parts = {spaces.Dict: ["a", "b"], spaces.Tuple: [0, 1]}.get(type(action_space), [None])
    for key in parts:
        stored_leaf = whole.action if key is None else whole.action[key]
        expected = np.stack([np.asarray(action if key is None else action[key]) for action in kept])
        assert np.array_equal(stored_leaf[first], expected if mode is None else expected[:, 0])
    assert memory.check().broken.size == 0


# ---- where episodes stop --------------------------------------------------------------------------------------------


def test_an_episode_that_is_abandoned_is_closed():
    env = Counter(9)
    memory = rlm.ReplayMemory.from_env(env, 50, seed=0)
    for _ in range(2):
        with rlm.Recorder(memory, env) as recorder:
            recorder.reset(env.reset()[0])
            for action in (1, 2):
                recorder.step(action, *env.step(action))
            recorder.reset(env.reset()[0])  # in the middle
            recorder.step(3, *env.step(3))
    assert memory.episodes().length.tolist() == [2, 1, 2, 1]
    assert memory.check().broken.size == 0


def test_only_the_environments_that_were_reset_begin_anew():
    envs = vector([9, 9], DISABLED)
    memory = rlm.ReplayMemory.from_env(envs, 50)
    recorder, action = rlm.Recorder(memory, envs), np.array([1, 1])
    recorder.reset(envs.reset()[0])
    recorder.step(action, *envs.step(action))
    mask = np.array([True, False])
    recorder.reset(envs.reset(options={"reset_mask": mask.copy()})[0], mask=mask)
    recorder.step(action, *envs.step(action))
    recorder.close()
    assert sorted(memory.episodes().length.tolist()) == [1, 1, 2]
    assert memory.check().broken.size == 0


@pytest.mark.parametrize("mode", MODES)
def test_recording_stopped_in_the_middle_does_not_run_on(mode):
    envs = vector([4, 7], mode)
    memory = rlm.ReplayMemory.from_env(envs, 100, seed=0)
    for _ in range(3):
        rlm.record_rollout(envs, None, 6, memory, seed=0)
    assert memory.check().broken.size == 0
    assert memory.episodes().length.max() <= 7
    batch = memory.sample(200, sequence_length=12)
    for row, mask in zip(batch.observation[..., 0], batch.mask, strict=True):
        assert (np.diff(row[mask]) == 1).all()


def test_an_exception_closes_the_episode_too():
    env = Counter(9)
    memory = rlm.ReplayMemory.from_env(env, 50)

    def policy(observation):
        if observation[0] == 103:
            raise RuntimeError("no more")
        return 1

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no more"):
            rlm.record_rollout(env, policy, 10, memory)
    assert memory.episodes().length.tolist() == [3, 3]


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_steps_without_a_reset_are_refused():
    env = Counter(1)
    memory = rlm.ReplayMemory.from_env(env, 5)
    recorder = rlm.Recorder(memory, env)
    first, _ = env.reset()
    with pytest.raises(TypeError, match="before the first step"):
        recorder.step(1, first, 0.0, False, False)
    recorder.reset(first)
    recorder.step(1, *env.step(1))
    with pytest.raises(TypeError, match="the episode of the environment has ended"):
        recorder.step(1, first, 0.0, False, False)
    recorder.close()
    with pytest.raises(TypeError, match="before the first step"):
        recorder.step(1, first, 0.0, False, False)
    assert len(memory) == 1
    with pytest.raises(ValueError, match="source"):
        rlm.Recorder(memory, env, source=-1)
    with pytest.raises(ValueError, match="expected 1 bools"):
        recorder.reset(first, mask=[True, False])


def test_a_final_observation_that_is_missing_is_named_and_nothing_is_stored():
    envs = vector([1, 2], SAME)
    memory = rlm.ReplayMemory.from_env(envs, 5)
    recorder = rlm.Recorder(memory, envs)
    recorder.reset(envs.reset()[0])
    *rest, info = envs.step(np.zeros(2, int))
    with pytest.raises(KeyError, match="final_obs"):
        recorder.step(np.zeros(2, int), *rest, {})
    assert len(memory) == 0
    assert recorder.step(np.zeros(2, int), *rest, info) == range(2)


def test_ended_environments_of_a_disabled_vector_must_be_reset():
    envs = vector([2, 1], DISABLED)
    recorder = rlm.Recorder(rlm.ReplayMemory.from_env(envs, 5), envs)
    recorder.reset(envs.reset()[0])
    step = envs.step(np.zeros(2, int))
    recorder.step(np.zeros(2, int), *step)
    with pytest.raises(TypeError, match="environment 1 has ended"):
        recorder.step(np.zeros(2, int), *step)


def test_resetting_one_of_two_ended_environments_is_not_enough():
    envs = vector([1, 1], DISABLED)
    recorder = rlm.Recorder(rlm.ReplayMemory.from_env(envs, 5), envs)
    recorder.reset(envs.reset()[0])
    step = envs.step(np.zeros(2, int))
    recorder.step(np.zeros(2, int), *step)
    mask = np.array([False, True])
    recorder.reset(envs.reset(options={"reset_mask": mask.copy()})[0], mask=mask)
    with pytest.raises(TypeError, match="environment 0 has ended"):
        recorder.step(np.zeros(2, int), *step)


def test_after_a_reset_by_hand_no_step_only_resets():
    for env, action in [(vector([2], NEXT), np.array([1])), (Autoreset(Counter(2)), 1)]:
        memory = rlm.ReplayMemory.from_env(env, 20)
        recorder = rlm.Recorder(memory, env)
        for _ in range(3):
            recorder.reset(env.reset()[0])
            for _ in range(2):
                assert len(recorder.step(action, *env.step(action))) == 1
        assert memory.episodes().length.tolist() == [2, 2, 2]


# ---- rollouts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, *MODES])
def test_a_rollout_with_a_policy_sees_every_observation(mode):
    env = Counter(3) if mode is None else vector([2, 3], mode)
    memory, seen = rlm.ReplayMemory.from_env(env, 100), []

    def policy(observation):
        seen.append(np.array(observation))
        return np.int64(1) if mode is None else np.array([1, 2])

    ids = rlm.record_rollout(env, policy, 7, memory, progress=False)
    assert ids == range(len(memory))
    assert len(seen) == 7
    real = np.ravel(seen) if mode != NEXT else np.ravel(memory.all().observation)
    assert sorted(np.ravel(memory.all().observation)) == sorted(real)
    assert len(memory) == {None: 7, NEXT: 11}.get(mode, 14)
    assert memory.check().broken.size == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_rollout_has_whole_episodes_of_every_environment(mode):
    envs = vector([2, 3], mode)
    memory = rlm.ReplayMemory.from_env(envs, 100)
    rlm.record_rollout(envs, None, 12 if mode == NEXT else 6, memory)
    lengths = memory.episodes()
    per_source = [lengths.length[lengths.source == source].tolist() for source in (0, 1)]
    assert per_source == ([[2] * 4, [3] * 3] if mode == NEXT else [[2] * 3, [3] * 2])


def test_cartpole_cut_by_a_time_limit():
    env = TimeLimit(gym.make("CartPole-v1").unwrapped, 5)
    memory = rlm.ReplayMemory.from_env(env, 100, reward="float64")
    rlm.record_rollout(env, None, 23, memory, seed=3)
    whole = memory.all()
    assert np.flatnonzero(whole.truncated).tolist() == [4, 9, 14, 19]
    assert not whole.terminated.any()
    inner = np.delete(np.arange(22), [4, 9, 14, 19])
    assert np.array_equal(whole.next_observation[inner], whole.observation[inner + 1])
    again = rlm.ReplayMemory.from_env(env, 100, reward="float64")
    rlm.record_rollout(env, None, 23, again, seed=3)
    assert np.array_equal(again.all().observation[:5], whole.observation[:5])
    assert memory.episodes().length.tolist() == [5, 5, 5, 5, 3]


def test_a_memory_smaller_than_the_rollout_keeps_the_last():
    env = Counter(4)
    memory = rlm.ReplayMemory.from_env(env, 5)
    assert rlm.record_rollout(env, None, 12, memory) == range(12)
    assert memory.all().observation[:, 0].tolist() == [103, 100, 101, 102, 103]
    assert rlm.record_rollout(env, None, 0, memory) == range(12, 12)
    with pytest.raises(ValueError, match="steps"):
        rlm.record_rollout(env, None, -1, memory)


def test_a_bar_is_shown_on_a_terminal_only(monkeypatch, capsys):
    env = Counter(4)
    memory = rlm.ReplayMemory.from_env(env, 5)
    rlm.record_rollout(env, None, 3, memory)
    assert capsys.readouterr().err == ""
    for wanted in (True, False):
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        rlm.record_rollout(env, None, 3, memory, progress=wanted)
        assert ("recording" in capsys.readouterr().err) == wanted


def test_no_bar_without_tqdm(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tqdm", None)
    env = Counter(4)
    assert rlm.record_rollout(env, None, 3, rlm.ReplayMemory.from_env(env, 5)) == range(3)
