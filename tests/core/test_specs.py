"""Specs, and their way from and to Gymnasium's spaces."""

from __future__ import annotations

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import rlmemory as rlm
from rlmemory import FiniteSetSpec, NumericSpec, SpecError

from .support import DTYPES, SHAPES

# ---- NumericSpec ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int8", "uint64", "longdouble", "complex128", ">f8", float, int])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_spec_has_a_shape_and_a_native_dtype(shape, dtype):
    spec = NumericSpec(shape, dtype)
    assert spec.shape == shape
    assert spec.dtype == np.dtype(dtype).newbyteorder("=")
    assert spec.dtype.isnative
    assert spec.low is spec.high is None


def test_the_defaults_are_float64_and_no_limits():
    spec = NumericSpec((2,))
    assert (spec.dtype, spec.low, spec.high, spec.name, spec.description) == (np.float64, None, None, "", "")


@pytest.mark.parametrize(
    ("shape", "wanted"), [(3, (3,)), ([2, 3], (2, 3)), (np.int64(4), (4,)), ((np.uint8(1),), (1,))]
)
def test_a_shape_may_be_a_number_or_any_sequence(shape, wanted):
    spec = NumericSpec(shape)
    assert spec.shape == wanted
    assert all(type(size) is int for size in spec.shape)


@pytest.mark.parametrize("shape", [-1, (2, -1), 2.0, (2.0,), "ab", None, (True,), True, ((2,),), {"a": 1}])
def test_a_shape_that_is_none_is_refused(shape):
    with pytest.raises(SpecError, match=r"NumericSpec 'pos': shape .* whole numbers"):
        NumericSpec(shape, name="pos")


@pytest.mark.parametrize(
    "dtype", ["U3", "S1", object, "datetime64[s]", "m8[s]", [("a", float)], "no such", (float, (2,))]
)
def test_a_dtype_that_cannot_be_stored_is_refused(dtype):
    with pytest.raises(SpecError, match="dtype"):
        NumericSpec((), dtype)


def test_limits_are_broadcast_and_read_only():
    spec = NumericSpec((2, 3), "float32", low=-1, high=[1, 2, 3])
    assert spec.low.tolist() == [[-1] * 3] * 2
    assert spec.high.tolist() == [[1, 2, 3]] * 2
    assert spec.low.dtype == spec.high.dtype == np.float32
    for limit in (spec.low, spec.high):
        with pytest.raises(ValueError, match="read-only"):
            limit[0, 0] = 5


def test_limits_do_not_follow_the_array_that_they_came_from():
    low = np.zeros(3)
    spec = NumericSpec((3,), low=low)
    low[:] = 5
    assert spec.low.tolist() == [0, 0, 0]
    assert low.flags.writeable


@pytest.mark.parametrize(
    ("dtype", "limits"),
    [
        ("float64", {"low": 2, "high": 1}),
        ("float64", {"low": [0, 0, 3], "high": 2}),
        ("float64", {"low": np.nan}),
        ("float64", {"high": [1, 2]}),
        ("float64", {"high": np.zeros((3, 3))}),
        ("float64", {"low": "a"}),
        ("float64", {"low": object()}),
        ("float64", {"low": [1, [2]]}),
        ("float64", {"low": 1j}),
        ("complex64", {"low": 0}),
        ("uint8", {"low": -1}),
        ("uint8", {"high": 256}),
        ("uint8", {"high": 0.5}),
        ("uint8", {"high": np.inf}),
        ("int64", {"low": np.nan}),
        ("bool", {"high": 2}),
    ],
    ids=str,
)
def test_limits_that_do_not_fit_are_refused(dtype, limits):
    with pytest.raises(SpecError, match="NumericSpec"):
        NumericSpec((3,), dtype, **limits)


def test_infinite_limits_of_floats_are_limits():
    spec = NumericSpec((2,), low=-np.inf, high=[np.inf, 1])
    assert spec.high.tolist() == [np.inf, 1]


# ---- FiniteSetSpec --------------------------------------------------------------------------------------------------


def test_a_set_of_scalars_and_a_set_of_vectors():
    spec = FiniteSetSpec([3, 1, 2])
    assert (spec.shape, spec.dtype, spec.elements.tolist()) == ((), np.int64, [3, 1, 2])
    assert (spec.low, spec.high) == (1, 3)
    spec = FiniteSetSpec(([0, 1.5], [1, 0]), "float32")
    assert (spec.shape, spec.dtype) == ((2,), np.float32)
    assert (spec.low.tolist(), spec.high.tolist()) == ([0, 0], [1, 1.5])
    assert FiniteSetSpec(range(4)).elements.tolist() == [0, 1, 2, 3]
    assert FiniteSetSpec([1j, 2j]).low is None
    assert FiniteSetSpec([True, False]).dtype == bool
    assert FiniteSetSpec([[1]]).shape == (1,)
    with pytest.raises(ValueError, match="read-only"):
        spec.elements[0] = 0


def test_elements_may_round_to_a_narrower_float():
    assert FiniteSetSpec([0.1, 0.2], "float32").elements.tolist() == np.float32([0.1, 0.2]).tolist()


@pytest.mark.parametrize(
    ("elements", "dtype"),
    [
        ([], None), (5, None), ([1, 1], None), ([[0, 1], [0, 1]], None), ([[1], [1, 2]], None), (["a"], None),
        ([None], None), ([0.5], "int64"), ([-1], "uint8"), ([1j], "float64"), ([np.nan], None), ([2], "bool"),
        ([2**53 + 1], "float64"), ([1], "U1"), ([[], []], None), (None, None), ([1, 1 + 1e-12], "float32"),
    ],
    ids=str,
)  # fmt: skip
def test_a_set_that_is_none_is_refused(elements, dtype):
    with pytest.raises(SpecError):
        FiniteSetSpec(elements, dtype, name="gear")


# ---- what all specs can do ------------------------------------------------------------------------------------------

ALL = [
    NumericSpec(()),
    NumericSpec((2,), "uint8", low=1, high=[3, 4], name="n", description="d"),
    NumericSpec((0,), "complex64"),
    FiniteSetSpec([1, 2, 4], name="s", description="d"),
    FiniteSetSpec([[0, 1], [1, 0]], "float32"),
    rlm.spec_from_space(spaces.MultiDiscrete([3, 4])),
    rlm.spec_from_space(spaces.MultiBinary(3)),
]


@pytest.mark.parametrize("spec", ALL, ids=repr)
def test_a_spec_cannot_be_changed(spec):
    for name in ("shape", "dtype", "low", "name", "elements", "more", "_space"):
        with pytest.raises(AttributeError, match=f"immutable.*{name}"):
            setattr(spec, name, 1)
        with pytest.raises(AttributeError, match=f"immutable.*{name}"):
            delattr(spec, name)


@pytest.mark.parametrize("spec", ALL, ids=repr)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda spec: pickle.loads(pickle.dumps(spec))])
def test_a_copied_spec_is_equal_and_still_immutable(spec, how):
    twin = how(spec)
    assert twin == spec
    assert hash(twin) == hash(spec)
    assert repr(twin) == repr(spec)
    for limit in (twin.low, twin.high):
        assert limit is None or not limit.flags.writeable
    if spec.dtype.kind != "c":
        try:
            space = spec.to_space()
        except SpecError:
            space = None
        assert space is None or twin.to_space() == space
    with pytest.raises(AttributeError):
        twin.shape = ()


def test_specs_are_equal_when_everything_about_them_is():
    base = NumericSpec((2,), "int64", low=0, high=9, name="a", description="d")
    assert base == NumericSpec([2], np.int64, low=[0, 0], high=9, name="a", description="d")
    others = [
        NumericSpec((3,), "int64", low=0, high=9, name="a", description="d"),
        NumericSpec((2,), "int32", low=0, high=9, name="a", description="d"),
        NumericSpec((2,), "int64", low=1, high=9, name="a", description="d"),
        NumericSpec((2,), "int64", high=9, name="a", description="d"),
        NumericSpec((2,), "int64", low=0, high=[9, 8], name="a", description="d"),
        NumericSpec((2,), "int64", low=0, high=9, name="b", description="d"),
        NumericSpec((2,), "int64", low=0, high=9, name="a"),
        FiniteSetSpec([[0, 0], [9, 9]], "int64", name="a", description="d"),
        "spec",
        None,
    ]
    assert all(base != other for other in others)
    assert all(base.same_layout(other) is (i > 1) for i, other in enumerate(others[:8]))
    assert FiniteSetSpec([1, 2]) != FiniteSetSpec([2, 1])
    assert FiniteSetSpec([1, 2]) == FiniteSetSpec((1, 2))
    assert len({base, NumericSpec((2,), "int64", low=0, high=9, name="a", description="d")}) == 1


def test_a_spec_says_what_it_is():
    assert repr(NumericSpec((2,), "uint8", low=0, name="x")) == "NumericSpec((2,), 'uint8', low=0, name='x')"
    assert repr(NumericSpec((84, 84), low=0, high=255)) == "NumericSpec((84, 84), 'float64', low=0.0, high=255.0)"
    assert len(repr(FiniteSetSpec(range(10_000)))) < 100


# ---- structures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "channels",
    [5, None, "spec", (), [], {}, (NumericSpec(()), 5), {"a": {"b": NumericSpec(())}}, ((NumericSpec(()),),)],
    ids=str,
)
def test_channels_are_specs_on_one_level(channels):
    with pytest.raises(SpecError, match="observation"):
        rlm.ReplayMemory(channels, NumericSpec(()))
    with pytest.raises(SpecError, match="action"):
        rlm.ReplayMemory(NumericSpec(()), channels)


def test_a_space_in_place_of_a_spec_is_an_error_that_names_the_converter():
    with pytest.raises(SpecError, match="spec_from_space"):
        rlm.ReplayMemory(spaces.Discrete(3), NumericSpec(()))


def test_a_reward_is_a_dtype_or_a_spec():
    one = NumericSpec(())
    assert rlm.ReplayMemory(one, one, 3).reward_spec.dtype == np.float64
    assert rlm.ReplayMemory(one, one, 3, reward="float32").reward_spec.dtype == np.float32
    assert rlm.ReplayMemory(one, one, 3, reward=NumericSpec((2,))).reward_spec.shape == (2,)
    for wrong in ("U3", "no such", [one]):
        with pytest.raises(SpecError):
            rlm.ReplayMemory(one, one, 3, reward=wrong)


# ---- Gymnasium ------------------------------------------------------------------------------------------------------

SPACES = [
    spaces.Box(-1, 1, (3,), np.float32),
    spaces.Box(-np.inf, np.inf, (2, 3), np.float64),
    spaces.Box(np.array([0.0, -np.inf]), np.array([1.0, 2.0]), dtype=np.float64),
    spaces.Box(0, 255, (4, 4, 3), np.uint8),
    spaces.Box(-5, 9, (), np.int32),
    spaces.Discrete(4),
    spaces.Discrete(3, start=-1),
    spaces.Discrete(1, start=7),
    spaces.MultiDiscrete([3, 4]),
    spaces.MultiDiscrete([[2, 3], [4, 5]]),
    spaces.MultiDiscrete([3, 4], dtype=np.int32, start=[-1, 2]),
    spaces.MultiBinary(3),
    spaces.MultiBinary((2, 3)),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_a_space_becomes_a_spec_and_comes_back(space):
    spec = rlm.spec_from_space(space)
    assert spec.shape == space.shape
    assert spec.dtype == space.dtype
    back = spec.to_space()
    assert type(back) is type(space)
    assert back == space
    assert isinstance(spec, FiniteSetSpec) is isinstance(space, spaces.Discrete)
    assert rlm.spec_from_space(back) == spec
    memory = rlm.ReplayMemory(spec, spec, 4)
    space.seed(0)
    values = [space.sample() for _ in range(4)]
    for value in values:
        memory.append(value, value, reward=0.0, next_observation=value, terminated=False)
    assert np.array_equal(memory.all().observation, np.array(values))


def test_structures_of_spaces_become_structures_of_specs():
    both = spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Box(0, 1, (2,))})
    specs = rlm.spec_from_space(both)
    assert list(specs) == list(both.spaces)
    assert {key: spec.to_space() for key, spec in specs.items()} == dict(both.spaces)
    specs = rlm.spec_from_space(spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]))
    assert isinstance(specs, tuple)
    assert [spec.to_space() for spec in specs] == [spaces.Discrete(2), spaces.MultiBinary(2)]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(4),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Discrete(2), None),
        spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)]),
    ],
    ids=lambda space: type(space).__name__,
)
def test_spaces_without_one_shape_are_refused(space):
    with pytest.raises(SpecError, match=f"space is a {type(space).__name__}, whose entries have no fixed shape"):
        rlm.spec_from_space(space)
    with pytest.raises(SpecError, match=r"space\['x'\] is a"):
        rlm.spec_from_space(spaces.Dict({"x": space}))


def test_spaces_nested_deeper_than_one_level_are_refused():
    inner = spaces.Dict({"x": spaces.Discrete(2)})
    for outer in (spaces.Dict({"deep": inner}), spaces.Tuple([spaces.Discrete(2), inner])):
        with pytest.raises(SpecError, match="nested deeper than one level; flatten it first"):
            rlm.spec_from_space(outer)


def test_float_dtype_changes_float_channels_only():
    both = spaces.Dict({"a": spaces.Box(0, 1, (2,), np.float64), "b": spaces.Box(0, 9, (2,), np.uint8)})
    specs = rlm.spec_from_space(both, "float32")
    assert (specs["a"].dtype, specs["b"].dtype) == (np.float32, np.uint8)
    wide = rlm.spec_from_space(spaces.Box(-1e300, 1e300, (1,), np.float64), np.float32)
    assert wide.low.tolist() == [-np.inf]


def test_specs_of_ones_own_have_spaces_too():
    assert NumericSpec((2,), low=0).to_space() == spaces.Box(0, np.inf, (2,), np.float64)
    assert NumericSpec((2,), "int16").to_space() == spaces.Box(-32768, 32767, (2,), np.int16)
    assert NumericSpec((3,), "bool").to_space() == spaces.MultiBinary(3)
    assert NumericSpec((2, 3), "bool").to_space() == spaces.MultiBinary((2, 3))
    assert FiniteSetSpec([5, 6, 7]).to_space() == spaces.Discrete(3, start=5)


@pytest.mark.parametrize(
    "spec",
    [NumericSpec((), "complex64"), FiniteSetSpec([1, 3]), FiniteSetSpec([2, 1]), FiniteSetSpec([0.0, 1.0]),
     FiniteSetSpec([[0], [1]]), FiniteSetSpec([1j, 2j])],
    ids=repr,
)  # fmt: skip
def test_specs_without_a_space_say_so(spec):
    with pytest.raises(SpecError, match="Gymnasium"):
        spec.to_space()


# ---- from_env -------------------------------------------------------------------------------------------------------


def test_a_memory_from_an_environment_takes_its_steps():
    env = gymnasium.make("CartPole-v1")
    memory = rlm.ReplayMemory.from_env(env, 50, seed=0)
    assert memory.observation_spec.dtype == memory.reward_spec.dtype == np.float32
    assert (memory.observation_spec.shape, memory.action_spec.elements.tolist()) == ((4,), [0, 1])
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        action = np.int64(1)
        following, reward, terminated, truncated, _ = env.step(action)
        memory.append(
            observation, action, reward=reward, next_observation=following, terminated=terminated, truncated=truncated
        )
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
    whole = memory.all()
    assert len(memory) == 20
    assert whole.terminated.any()
    inside = ~whole.terminated[:-1]
    assert np.array_equal(whole.observation[1:][inside], whole.next_observation[:-1][inside])
    env.close()


def test_from_env_passes_its_options_on():
    env = gymnasium.make("Pendulum-v1")
    memory = rlm.ReplayMemory.from_env(
        env, 7, reward=NumericSpec((2,)), float_dtype="float64", extra={"v": NumericSpec(())}, seed=1
    )
    assert (memory.capacity, memory.reward_spec.shape, list(memory.extra_spec)) == (7, (2,), ["v"])
    assert memory.observation_spec.dtype == memory.action_spec.dtype == np.float64
    assert rlm.ReplayMemory.from_env(env).capacity == 10_000
    env.close()


def test_a_memory_from_a_vector_environment_asks_for_the_source():
    envs = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    memory = rlm.ReplayMemory.from_env(envs, 50)
    observation, _ = envs.reset(seed=0)
    following, reward, terminated, truncated, _ = envs.step(np.array([0, 1, 0]))
    rows = {"reward": reward, "next_observation": following, "terminated": terminated, "truncated": truncated}
    assert memory.observation_spec.shape == (4,)
    with pytest.raises(rlm.StructureError, match=r"made from 3 environments.*source=np.arange\(3\)"):
        memory.extend(observation, np.array([0, 1, 0]), **rows)
    with pytest.raises(rlm.StructureError, match="made from 3 environments"):
        memory.append(observation[0], 0, **{name: value[0] for name, value in rows.items()})
    assert memory.extend(observation, np.array([0, 1, 0]), **rows, source=np.arange(3)) == range(3)
    memory.append(observation[0], 0, **{name: value[0] for name, value in rows.items()}, source=2)
    memory.extend_from(memory.all())
    assert memory.all().source.tolist() == [0, 1, 2, 2] * 2
    twin = pickle.loads(pickle.dumps(memory))
    with pytest.raises(rlm.StructureError, match="made from 3 environments"):
        twin.extend(observation, np.array([0, 1, 0]), **rows)
    envs.close()


def test_a_vector_of_one_environment_needs_no_source():
    envs = gymnasium.make_vec("CartPole-v1", num_envs=1, vectorization_mode="sync")
    memory = rlm.ReplayMemory.from_env(envs, 50)
    observation, _ = envs.reset(seed=0)
    memory.extend(observation, [0], reward=[0.0], next_observation=observation, terminated=[False])
    assert memory.all().source.tolist() == [0]
    envs.close()
