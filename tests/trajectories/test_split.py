"""split_trajectories and its relatives: the printed example, options, errors, memory, real data."""

from __future__ import annotations

import tracemalloc
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pytest

import rlmemory as rlm

from .recorded import equal

pytestmark = pytest.mark.usefixtures("backend")


def steps(*lengths: int, finished: bool = True) -> dict:
    """Trajectories of these lengths, one behind the other."""
    done = np.zeros(sum(lengths), bool)
    done[np.cumsum(lengths) - 1] = True
    done[-1] = finished
    return {"obs": np.arange(1, done.size + 1), "next": {"done": done}}


# ---- the printed example --------------------------------------------------------------------------------------------


def test_the_example_of_torchrls_page():
    done = np.zeros(15, bool)
    done[9] = True
    data = {
        "obs": np.concatenate([np.arange(10), np.arange(5)]),
        "next": {"obs": np.concatenate([np.arange(1, 11), np.arange(1, 6)]), "done": done},
        "trajectory": np.concatenate([np.zeros(10, np.int32), np.ones(5, np.int32)]),
    }
    by_done = rlm.split_trajectories(data, done_key="done")
    printed = {
        "mask": "bool", "next": {"done": "bool", "obs": "int64"}, "obs": "int64", "traj_ids": "int64",
        "trajectory": "int32",
    }  # fmt: skip
    assert described(by_done) == printed
    assert (by_done["traj_ids"] == by_done["trajectory"]).all()
    assert by_done["mask"].tolist() == [[True] * 10, [True] * 5 + [False] * 5]
    by_id = rlm.split_trajectories(data, trajectory_key="trajectory")
    del printed["traj_ids"]
    assert described(by_id) == printed
    equal(by_id, {name: value for name, value in by_done.items() if name != "traj_ids"})


def described(data: dict) -> dict:
    """Names and dtypes of leaves, all of which are [2, 10]."""
    found = {}
    for name, value in data.items():
        found[name] = described(value) if isinstance(value, dict) else str(value.dtype)
        assert isinstance(value, dict) or value.shape == (2, 10)
    return found


def test_pieces_of_two_environments_of_which_the_last_are_cut_and_not_done():
    done = np.zeros((6, 2), bool)  # time by environment, as a rollout is collected
    done[3, 0] = done[1, 1] = done[4, 1] = True  # steps 4; 2 and 5, counted from 1
    observation = np.arange(24.0).reshape(6, 2, 2)
    data = {"obs": observation.swapaxes(0, 1), "next": {"done": done.T[..., None]}}
    split = rlm.split_trajectories(data)
    lengths = rlm.trajectory_lengths(split["mask"])
    assert lengths.tolist() == [4, 2, 2, 3, 1]
    assert split["mask"].sum() == 12
    assert (split["obs"][~split["mask"]] == 0).all()
    assert split["next"]["done"][np.arange(5), lengths - 1, 0].tolist() == [True, False, True, True, False]
    back = rlm.unsplit_trajectories(split, batch_shape=(2, 6))
    equal({"obs": back["obs"], "next": back["next"]}, data)


# ---- where things are -----------------------------------------------------------------------------------------------


def test_ends_are_looked_for_under_next_and_then_at_root():
    data = {"x": [1, 2, 3], "done": [True, False, False], "next": {"done": [False, True, False]}}
    assert rlm.split_trajectories(data)["mask"].sum(axis=1).tolist() == [2, 1]
    assert rlm.split_trajectories({**data, "next": {}})["mask"].sum(axis=1).tolist() == [1, 2]


def test_several_ends_are_ored_and_a_tuple_is_one_nested_key():
    data = {"next": {"a": {"end": [True, False, False]}, "b": [0, 2, 0]}, "x": [1, 2, 3]}
    assert rlm.split_trajectories(data, done_key=[("a", "end"), "b"])["x"].tolist() == [[1], [2], [3]]
    assert rlm.split_trajectories(data, done_key=("a", "end"))["x"].tolist() == [[1, 0], [2, 3]]


def test_a_missing_end_is_a_key_error_that_names_what_was_looked_for():
    with pytest.raises(KeyError) as caught:
        rlm.split_trajectories({"obs": [1, 2], "next": {"terminated": [0, 1]}})
    message = str(caught.value)
    for part in ("ids at 'traj_ids'", "('next', 'done') or 'done'", "both terminated and truncated", "['next', 'obs']"):
        assert part in message
    with pytest.raises(rlm.MissingKeyError, match=r"\('next', 'a', 'b'\) or \('a', 'b'\)"):
        rlm.split_trajectories({"obs": [1]}, done_key=("a", "b"))
    with pytest.raises(rlm.MissingKeyError):
        rlm.split_trajectories({"obs": [1]}, done_key=[])


def test_ids_are_made_where_they_were_looked_for():
    data = {"obs": [1, 2], "next": {"done": [True, False]}}
    assert rlm.split_trajectories(data, trajectory_key=("own", "id"))["own"]["id"].tolist() == [[0], [1]]
    assert rlm.split_trajectories({**data, "collector": {}})["collector"]["mask"].tolist() == [[True], [True]]
    assert "mask" in rlm.split_trajectories({**data, "collector": {}}, prefix=())
    flat, _ = rlm.ragged_trajectories(data, prefix="p")
    assert flat["p"]["traj_ids"].tolist() == [0, 1]
    assert "mask" not in flat["p"]


@pytest.mark.parametrize(
    "options", [{"trajectory_key": ("obs", "id")}, {"start_key": ("obs", "first")}, {"prefix": "obs"}]
)
def test_writing_below_an_array_is_an_error(options):
    with pytest.raises(rlm.StructureError, match=r"\('obs', '\w+'\): cannot be written, as 'obs' is an array"):
        rlm.split_trajectories(steps(2), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trajectory_key": 3}, "trajectory_key: expected a string or a tuple of strings, got 3"),
        ({"trajectory_key": ()}, "trajectory_key: expected a string"),
        ({"done_key": ("a", 1)}, "done_key: expected a string"),
        ({"trajectory_key": "mask"}, "trajectory_key: 'mask' is where the mask goes"),
        ({"start_key": "traj_ids"}, "start_key: 'traj_ids' holds something else"),
        ({"start_key": "mask"}, "start_key: 'mask' holds something else"),
        ({"start_key": "obs"}, "start_key: 'obs' holds something else"),
        ({"start_key": "next"}, "start_key: 'next' holds something else"),
        ({"on_repeated_ids": "join"}, 'on_repeated_ids: expected "split" or "raise"'),
        ({"max_length": 0}, "max_length: expected a whole number from 1 up, got 0"),
        ({"batch_dims": 1.0}, "batch_dims: expected a whole number"),
        ({"batch_dims": 2}, r"\('next', 'done'\): batch_dims=2, but its shape is \(3,\)"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        rlm.split_trajectories(steps(3), **options)


@pytest.mark.parametrize(
    ("leaf", "error", "message"),
    [
        (np.array([1, None, 2]), TypeError, r"\('deep', 'x'\): an array of dtype object holds references"),
        (["a", None, "b"], TypeError, "dtype object"),
        (np.array(["a", "b", "c"], np.dtypes.StringDType()), TypeError, "dtype StringDType"),
        (([1, 2, 3], [1, 2, 3]), TypeError, r"\('deep', 'x'\): expected an array or a mapping of arrays, got a tuple"),
        ([[1], [1, 2], []], ValueError, r"\('deep', 'x'\): cannot be read as one array"),
        (np.ma.masked_equal([1, 2, 3], 2), TypeError, "a masked array would lose its mask"),
        (5.0, ValueError, r"\('deep', 'x'\): expected the batch shape \(3,\) first, got \(\)"),
        (np.zeros((2, 3)), ValueError, r"\('deep', 'x'\): expected the batch shape \(3,\) first, got \(2, 3\)"),
    ],
)
def test_a_leaf_that_cannot_be_split_is_named(leaf, error, message):
    with pytest.raises(error, match=message) as caught:
        rlm.split_trajectories({**steps(3), "deep": {"x": leaf}})
    assert isinstance(caught.value, rlm.ReplayMemoryError)


def test_ends_must_be_flags_and_ids_arrays():
    with pytest.raises(rlm.DataTypeError, match="'done': expected flags, got dtype <U1"):
        rlm.split_trajectories({"done": ["a", ""]})
    with pytest.raises(rlm.StructureError, match=r"'traj_ids': expected an array, got a mapping with keys \['a'\]"):
        rlm.split_trajectories({"traj_ids": {"a": [1]}})
    with pytest.raises(rlm.ShapeError, match="'traj_ids': expected at least an axis of time"):
        rlm.split_trajectories({"traj_ids": 3})
    with pytest.raises(rlm.StructureError, match="data: expected a mapping of arrays, got list"):
        rlm.split_trajectories([1])


class Own(Mapping):
    """A mapping that is no dict."""

    def __getitem__(self, key: str) -> list:
        return {"done": [False, True, False], "x": [1, 2, 3]}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("done", "x"))

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize("wrap", [OrderedDict, MappingProxyType, dict])
def test_every_mapping_is_data(wrap):
    data = wrap({"a": wrap({"obs": [1, 2, 3]}), "none": wrap({}), "done": [False, True, False]})
    split = rlm.split_trajectories(data)
    assert type(split["a"]) is dict
    assert split["a"]["obs"].tolist() == [[1, 2], [3, 0]]
    assert split["none"] == {}
    assert rlm.split_trajectories(Own())["x"].tolist() == [[1, 2], [3, 0]]


# ---- options --------------------------------------------------------------------------------------------------------


def test_b_by_one_data_whose_ends_have_no_feature_axis_needs_batch_dims():
    data = {"obs": np.arange(3).reshape(3, 1), "done": np.zeros((3, 1), bool)}
    assert rlm.split_trajectories(data)["obs"].shape == (1, 3, 1)  # one row of three steps
    assert rlm.split_trajectories(data, batch_dims=2)["obs"].shape == (3, 1)  # three rows of one step


def test_max_length_cuts_into_segments_of_equal_ids_and_one_start():
    split = rlm.split_trajectories(steps(5, 2), max_length=2, start_key="first")
    assert split["obs"].tolist() == [[1, 2], [3, 4], [5, 0], [6, 7]]
    assert split["traj_ids"].tolist() == [[0, 0], [0, 0], [0, 0], [1, 1]]
    assert split["first"].tolist() == [[True, False], [False, False], [False, False], [True, False]]
    equal(rlm.unsplit_trajectories(split)["obs"], np.arange(1, 8))


def test_start_flags_replace_flags():
    split = rlm.split_trajectories({**steps(2, 1), "first": np.ones(3, bool)}, start_key="first")
    assert split["first"].tolist() == [[True, False], [True, False]]


def test_a_scalar_pads_numbers_other_than_ids_and_a_mapping_names_leaves():
    data = {**steps(2, 1), "s": ["x", "y", "z"], "f": np.ones((3, 2), np.float32)}
    split = rlm.split_trajectories(data, padding_value=-1)
    assert split["obs"].tolist() == [[1, 2], [3, -1]]
    assert split["f"][1, 1].tolist() == [-1, -1]
    assert (split["traj_ids"][1, 1], split["next"]["done"][1, 1], split["s"][1, 1]) == (0, False, "")
    padding = {"next": {"done": True}, "traj_ids": -1, "s": "q", "f": [5, np.nan]}
    split = rlm.split_trajectories(data, padding_value=padding)
    assert split["obs"].tolist() == [[1, 2], [3, 0]]
    assert (split["traj_ids"][1, 1], split["next"]["done"][1, 1], split["s"][1, 1]) == (-1, True, "q")
    np.testing.assert_array_equal(split["f"][1, 1], [5, np.nan])


@pytest.mark.parametrize(
    ("padding", "error", "message"),
    [
        (np.nan, ValueError, "padding_value of 'obs': nan"),
        ({"obs": 0.5}, ValueError, "padding_value of 'obs': 0.5"),
        ({"obs": "a"}, TypeError, "padding_value of 'obs'.*is no value of dtype int64"),
        ({"s": 1}, TypeError, "padding_value of 's'"),
        ({"s": "long"}, ValueError, "padding_value of 's'.*cannot be kept in dtype <U1"),
        ({"next": {"done": 2}}, ValueError, r"padding_value of \('next', 'done'\)"),
        ({"obs": [1, 2]}, ValueError, r"padding_value of 'obs': shape \(2,\) does not fit"),
        ({"ob": 1}, KeyError, "padding_value: no array 'ob' to pad"),
        ({"next": 1}, KeyError, "padding_value: no array 'next' to pad"),
    ],
)
def test_a_padding_that_does_not_fit_its_leaf_is_an_error(padding, error, message):
    with pytest.raises(error, match=message):
        rlm.split_trajectories({**steps(2, 1), "s": ["x", "y", "z"]}, padding_value=padding)


def test_much_padding_gives_a_warning_with_figures():
    with pytest.warns(
        UserWarning, match=r"padding of 190 steps \(3,230 bytes\) for 30 steps.*longest of 20, 2.7"
    ) as seen:
        rlm.split_trajectories(steps(20, *[1] * 10))
    assert seen[0].filename == __file__


def test_full_rows_are_fresh_memory_and_read_only_input_is_fine():
    data = {"obs": np.arange(6.0).reshape(2, 3), "done": np.zeros((2, 3), bool)}
    for leaf in data.values():
        leaf.setflags(write=False)
    split = rlm.split_trajectories(data)
    assert split["obs"].flags.writeable
    assert not np.shares_memory(split["obs"], data["obs"])
    assert rlm.unsplit_trajectories(split)["obs"].flags.writeable


def test_strided_and_fortran_leaves_are_split_alike():
    plain = np.arange(24).reshape(6, 4)
    for leaf in (np.asfortranarray(plain), np.repeat(plain, 2, axis=0)[::2], plain[::-1, ::-1][::-1, ::-1]):
        split = rlm.split_trajectories({"x": leaf, "done": [0, 0, 1, 0, 0, 0]})
        assert split["x"].tolist() == [plain[:3].tolist(), plain[3:].tolist()]


def test_nothing_is_copied_twice():
    data = {"x": np.ones((1000, 4096), np.uint8), "done": np.arange(1000) % 10 == 9}
    rlm.split_trajectories(data)
    tracemalloc.start()
    split = rlm.split_trajectories(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * split["x"].nbytes


# ---- the way back ---------------------------------------------------------------------------------------------------


def test_the_mask_is_found_wherever_it_was_written():
    for options in ({}, {"trajectory_key": ("data", "ep")}, {"prefix": ("a", "b")}):
        back = rlm.unsplit_trajectories(rlm.split_trajectories(steps(3, 1), **options))
        equal({"obs": back["obs"], "next": back["next"]}, steps(3, 1))
    assert "a" in back
    split = rlm.split_trajectories({**steps(2, 1), "agents": {"mask": np.ones(3, bool)}})
    with pytest.raises(
        rlm.StructureError, match=r"several entries could be the mask: \('agents', 'mask'\), 'mask'; give"
    ):
        rlm.unsplit_trajectories(split)
    back = rlm.unsplit_trajectories(split, mask_key="mask")
    assert back["agents"]["mask"].tolist() == [True] * 3


def test_data_with_ids_comes_back_exactly():
    data = {
        "obs": np.random.default_rng(0).normal(size=(2, 5, 3)),
        "traj_ids": np.array([[1, 1, 2, 2, 2], [7, 8, 8, 8, 1]]),
    }
    equal(rlm.unsplit_trajectories(rlm.split_trajectories(data), batch_shape=(2, 5)), data)
    equal(rlm.unsplit_trajectories(rlm.split_trajectories(data), batch_shape=(-1, 5)), data)


@pytest.mark.parametrize("shape", [5, (2, 3), (-1, 3), (-1, -1), (-2, -2), (0, -1)])
def test_a_batch_shape_that_does_not_hold_the_steps_is_an_error(shape):
    with pytest.raises(rlm.ShapeError, match="does not hold exactly 4 steps"):
        rlm.unsplit_trajectories(rlm.split_trajectories(steps(3, 1)), batch_shape=shape)


def test_what_cannot_be_put_together_is_named():
    with pytest.raises(rlm.MissingKeyError, match="no entry called 'mask'"):
        rlm.unsplit_trajectories({"obs": [[1, 2]]})
    with pytest.raises(rlm.MissingKeyError, match="no entry 'm'"):
        rlm.unsplit_trajectories({"obs": [[1, 2]]}, mask_key="m")
    with pytest.raises(rlm.ShapeError, match=r"'obs': expected the mask's shape \(1, 2\) first, got \(2,\)"):
        rlm.unsplit_trajectories({"obs": [1, 2], "mask": [[True, False]]})
    with pytest.raises(rlm.ShapeError, match="'m': expected a mask of shape"):
        rlm.unsplit_trajectories({"m": [True]}, mask_key="m")
    with pytest.raises(rlm.ShapeError, match="there is padding before a real step"):
        rlm.unsplit_trajectories({"mask": [[False, True]]}, mask_key="mask")


def test_lengths_of_any_mask():
    assert rlm.trajectory_lengths(np.zeros((0, 3), bool)).shape == (0,)
    assert rlm.trajectory_lengths(np.ones((2, 1, 4), bool)).tolist() == [[4], [4]]
    assert rlm.trajectory_lengths([True, False]) == 1
    for wrong in ([1, 0], True):
        with pytest.raises(rlm.ShapeError, match="mask: expected bools"):
            rlm.trajectory_lengths(wrong)


# ---- ids that come back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "first", "again"), [([5, 2, 2, 5, 2], 0, 3), ([1, 2, 3, 3, 2], 1, 4), ([[0, 1], [1, 1]], 1, 2)]
)
def test_an_id_that_comes_back_is_named_with_both_its_places(ids, first, again):
    name = np.ravel(ids)[again]
    with pytest.raises(ValueError, match=f"'traj_ids': id {name} begins at flat step {first} and again at {again};"):
        rlm.split_trajectories({"traj_ids": ids}, on_repeated_ids="raise")


@pytest.mark.parametrize("ids", [[5, 5, 2, 9, 9], ["b", "b", "a", "a", "c"], [0.5, 0.5, 0.5, -1.0, 2.0], [3] * 5])
def test_ids_that_do_not_come_back_raise_nothing(ids):
    data = {"traj_ids": np.array(ids), "x": np.arange(5)}
    equal(rlm.split_trajectories(data, on_repeated_ids="raise"), rlm.split_trajectories(data))
    cut = rlm.split_trajectories(data, on_repeated_ids="raise", max_length=1)  # segments are no repeats
    assert cut["x"].tolist() == [[0], [1], [2], [3], [4]]
