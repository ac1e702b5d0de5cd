"""sample: shapes, outputs, sources, seeds."""

from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

from .helpers import filled, page_buffer, page_experiences, page_specs, reached, reward, step, unchanged


def test_shapes_of_a_mini_batch() -> None:
    batch = mc.sample(filled(10), 32)
    assert [x.shape for x in batch.Observation] == [(2, 1, 32), (1, 1, 32)]
    assert [x.shape for x in batch.NextObservation] == [(2, 1, 32), (1, 1, 32)]
    assert [x.shape for x in batch.Action] == [(2, 1, 32)]
    assert batch.Reward.shape == batch.IsDone.shape == (1, 32)
    assert mc.fieldnames(batch) == ["Observation", "Action", "Reward", "NextObservation", "IsDone"]


def test_outputs_are_as_many_as_nargout_says() -> None:
    buffer = filled(10)
    assert isinstance(mc.sample(buffer, 8, nargout=1), mc.struct)
    batch, mask = mc.sample(buffer, 8, nargout=2)
    assert mask.shape == (1, 8)
    assert mask.dtype == bool
    assert mask.all()
    batch, mask, weights = mc.sample(buffer, 8, nargout=3)
    assert weights.tolist() == [[1.0] * 8]
    batch, mask, weights, ids = mc.sample(buffer, 8, nargout=4)
    assert ids.shape == (1, 8)
    np.testing.assert_array_equal(buffer.memory.get(ids[0]).reward, batch.Reward[0])


def test_two_outputs_without_nargout_are_answered() -> None:
    with pytest.raises(TypeError, match=r"mb, mask = sample\(buffer, n, nargout=2\)"):
        _mb, _mask = mc.sample(filled(10), 32)


def test_only_stored_experiences_are_drawn_with_replacement() -> None:
    buffer = filled(3)
    batch = mc.sample(buffer, 100)
    stored = mc.allExperiences(buffer, ConcatenateMode="batch")
    assert set(batch.Reward[0]) == set(stored.Reward[0])
    for j in range(100):
        i = stored.Reward[0].tolist().index(batch.Reward[0, j])
        np.testing.assert_array_equal(batch.Observation[0][..., j], stored.Observation[0][..., i])
        np.testing.assert_array_equal(batch.NextObservation[1][..., j], stored.NextObservation[1][..., i])


def test_one_source_can_be_drawn_from() -> None:
    buffer = page_buffer()
    for source in (0, 1, 2):
        mc.append(buffer, page_experiences(5, seed=source), source)
    ids = mc.sample(buffer, 50, DataSourceID=1, nargout=4)[3]
    assert set(ids[0]) == set(range(5, 10))
    assert set(mc.sample(buffer, 200, "DataSourceID", -1, "nargout", 4)[3][0]) == set(range(15))
    with pytest.raises(rlm.EmptyMemoryError, match="source 7"):
        mc.sample(buffer, 5, DataSourceID=7)


def test_an_empty_memory_cannot_be_sampled() -> None:
    with pytest.raises(rlm.EmptyMemoryError):
        mc.sample(page_buffer(), 5)


def test_a_seed_makes_batches_repeat_and_global_seeds_do_not() -> None:
    def draws(seed: Any) -> list[Any]:
        buffer = mc.rlReplayMemory(*page_specs(), Seed=seed)
        mc.append(buffer, page_experiences(50))
        return [mc.sample(buffer, 8, nargout=4)[3].tolist() for _ in range(3)]

    assert draws(3) == draws(3)
    assert draws(3) != draws(4)
    assert draws(None) != draws(None)
    assert draws(np.random.default_rng(3)) == draws(np.random.default_rng(3))


def test_the_facade_draws_what_the_memory_underneath_draws() -> None:
    a, b = filled(10), filled(10)
    batch, core = mc.sample(a, 16), b.memory.sample(16)
    np.testing.assert_array_equal(batch.Reward[0], core.reward)
    np.testing.assert_array_equal(np.moveaxis(batch.Observation[0], -1, 0)[..., 0], core.observation[0])


def test_fields_of_a_mini_batch_can_be_changed_and_are_kept() -> None:
    batch = mc.sample(filled(10), 4)
    batch.IsDone[0, 0] = 2
    batch.Reward = batch.Reward * 0
    batch.Observation[1] = 5
    batch.Note = "new"
    assert batch.IsDone[0, 0] == 2
    assert not batch.Reward.any()
    assert batch.Observation[1] == 5
    assert mc.fieldnames(batch)[-1] == "Note"
    assert mc.numel(batch) == 1


def test_dlarrays() -> None:
    batch, mask = mc.sample(filled(10), 4, ReturnDlarray=True, nargout=2)
    arrays = [*batch.Observation, *batch.Action, *batch.NextObservation, batch.Reward, batch.IsDone]
    assert all(isinstance(x, mc.dlarray) and mc.dims(x) == "" for x in arrays)
    assert batch.Observation[0].shape == (2, 1, 4)
    assert isinstance(mask, np.ndarray)


def two_sources() -> tuple[mc.rlReplayMemory, list[tuple[int, float, int]]]:
    """Two interleaved sources whose episodes end differently; and (source, reward, IsDone) of each experience."""
    buffer, rows = page_buffer(), []
    for i, e in enumerate(page_experiences(40)):
        source = int(i % 3 == 0)
        e.Reward = float(i)
        e.IsDone = 1 if i % 11 == 10 else 2 if i % 13 == 12 else 0
        mc.append(buffer, e, source)
        rows.append((source, e.Reward, e.IsDone))
    return buffer, rows


def window(rows: list[tuple[int, float, int]], start: int, most: int) -> list[int]:
    """Naively: the experience and what follows it in its source, up to the end of the episode."""
    found = []
    for i in range(start, len(rows)):
        if rows[i][0] == rows[start][0]:
            found.append(i)
            if rows[i][2] or len(found) == most:
                break
    return found


def test_sequences_follow_one_source_to_the_end_of_the_episode_and_are_padded() -> None:
    buffer, rows = two_sources()
    stored = mc.allExperiences(buffer)
    batch, mask, weights, ids = mc.sample(buffer, 64, SequenceLength=5, nargout=4)
    assert batch.Observation[0].shape == (2, 1, 64, 5)
    assert batch.Reward.shape == batch.IsDone.shape == mask.shape == ids.shape == (1, 64, 5)
    assert weights.shape == (1, 64)
    for b in range(64):
        expected = window(rows, ids[0, b, 0], 5)
        real, padding = expected + [-1] * (5 - len(expected)), len(expected)
        assert ids[0, b].tolist() == real
        assert mask[0, b].tolist() == [i >= 0 for i in real]
        for t, i in enumerate(expected):
            np.testing.assert_array_equal(batch.Observation[0][..., b, t], stored[i].Observation[0])
            assert (batch.Reward[0, b, t], batch.IsDone[0, b, t]) == rows[i][1:]
        assert not batch.Observation[0][..., b, padding:].any()
        assert not batch.NextObservation[1][..., b, padding:].any()
        assert not batch.Reward[0, b, padding:].any()


def test_several_steps_are_folded_into_one() -> None:
    buffer, rows = two_sources()
    stored = mc.allExperiences(buffer)
    batch, mask, _, ids = mc.sample(buffer, 64, NStepHorizon=3, DiscountFactor=0.5, nargout=4)
    assert batch.Observation[0].shape == (2, 1, 64)
    assert batch.Reward.shape == mask.shape == ids.shape == (1, 64)
    assert mask.all()
    for b in range(64):
        steps = window(rows, ids[0, b], 3)
        first, last = stored[steps[0]], stored[steps[-1]]
        assert batch.Reward[0, b] == sum(0.5**k * rows[i][1] for k, i in enumerate(steps))
        assert batch.IsDone[0, b] == last.IsDone
        np.testing.assert_array_equal(batch.Observation[0][..., b], first.Observation[0])
        np.testing.assert_array_equal(batch.Action[0][..., b], first.Action[0])
        np.testing.assert_array_equal(batch.NextObservation[0][..., b], last.NextObservation[0])


ALONE = [{}, {"NStepHorizon": 3, "DiscountFactor": 0.5}, {"DataSourceID": 0}, {"ReturnDlarray": True}]
SEQUENCES = [
    {"SequenceLength": 4},
    {"SequenceLength": 4, "DataSourceID": 1},
    {"SequenceLength": 2, "DiscountFactor": 1},
]


@pytest.mark.parametrize("nargout", [1, 2, 3, 4])
@pytest.mark.parametrize("options", [*ALONE, *SEQUENCES], ids=str)
@pytest.mark.parametrize(
    "kind",
    [
        mc.rlReplayMemory, mc.rlPrioritizedReplayMemory, mc.rlHindsightReplayMemory,
        mc.rlHindsightPrioritizedReplayMemory,
    ],
)  # fmt: skip
def test_every_kind_of_memory_gives_every_output_with_every_option(
    kind: Any, options: dict[str, Any], nargout: int
) -> None:
    place = mc.rlNumericSpec([1, 1])
    goals = [reward, reached, [[1, 1, 2, 1]]] if "Hindsight" in kind.__name__ else []
    buffer = kind([place, place], place, *goals, Seed=0)
    for x in range(12):
        mc.append(buffer, step(x, done=int(x % 6 == 5)), x % 2)
    length = options.get("SequenceLength", 1)
    pairs = [word for pair in options.items() for word in pair]
    if length > 1 and "Prioritized" in kind.__name__:
        with pytest.raises(ValueError, match="SequenceLength must be 1"):
            mc.sample(buffer, 5, *pairs, nargout=nargout)
        return
    outputs = mc.sample(buffer, 5, *pairs, nargout=nargout)
    assert nargout == 1 or len(outputs) == nargout
    batch, *others = (outputs,) if nargout == 1 else outputs
    lead = (5,) if length == 1 else (5, length)
    assert batch.Observation[1].shape == batch.Action[0].shape == (1, 1, *lead)
    assert batch.Reward.shape == batch.IsDone.shape == (1, *lead)
    assert [x.shape for x in others] == [(1, *lead), (1, 5), (1, *lead)][: nargout - 1]
    assert [x.dtype for x in others] == [np.bool_, np.float64, np.int64][: nargout - 1]


@pytest.mark.parametrize(
    "name", ["SequenceLenght", "NStepHorizont", "DiscountFacter", "DataSource", "Nargout_", "Mask"]
)
def test_misspelt_options_change_nothing(name: str) -> None:
    buffer, twin = filled(10), filled(10)
    with unchanged(buffer, TypeError, f"sample has no option '{name}'"):
        mc.sample(buffer, 4, **{name: 1})
    ids = [mc.sample(x, 9, nargout=4)[3].tolist() for x in (buffer, twin)]
    assert ids[0] == ids[1]


def test_a_sequence_length_gives_its_axis_whatever_the_data() -> None:
    batch, mask = mc.sample(filled(1), 3, SequenceLength=2, nargout=2)
    assert batch.Reward.shape == (1, 3, 2)
    assert mask.tolist() == [[[True, False]] * 3]
    with pytest.raises(rlm.ShapeError, match="several sequences has padding"):
        mc.unbatch(batch)


def test_options_of_the_timeline_reach_the_memory_underneath(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer, seen = filled(10), {}

    def sample(self: Any, batch_size: int, **options: Any) -> rlm.Batch:
        seen.update(options, batch_size=batch_size)
        return windows(batch_size, options["sequence_length"])

    monkeypatch.setattr(rlm.ReplayMemory, "sample", sample)
    mc.sample(buffer, 3, NStepHorizon=4, DiscountFactor=0.5, DataSourceID=2)
    assert seen == {"batch_size": 3, "sequence_length": 1, "n_step": 4, "discount": 0.5, "source": 2}
    batch, mask, weights, ids = mc.sample(buffer, 3, SequenceLength=5, nargout=4)
    assert seen == {"batch_size": 3, "sequence_length": 5, "n_step": 1, "discount": 0.99, "source": None}
    assert [x.shape for x in batch.Observation] == [(2, 1, 3, 5), (1, 1, 3, 5)]
    assert batch.Reward.shape == batch.IsDone.shape == mask.shape == ids.shape == (1, 3, 5)
    assert weights.shape == (1, 3)
    assert batch.Observation[0][1, 0, 2, 4] == 1_000_000 * 2 + 1_000 * 4 + 1
    assert mc.toBatchFirst(batch).observation[0].shape == (3, 5, 2)


def windows(size: int, steps: int) -> rlm.Batch:
    """A batch as a memory would give it, whose observation holds its own row, step and place."""
    lead = (size,) if steps == 1 else (size, steps)
    row, step, place = np.ogrid[:size, :steps, :2]
    observation = (1_000_000.0 * row + 1_000 * step + place).reshape(*lead, 2)
    zeros = np.zeros(lead)
    flags = zeros.astype(bool)
    scalars = (zeros, flags, flags, zeros.astype(np.int32), zeros.astype(int))
    reward, terminated, truncated, source, ids = scalars
    channels = (observation, zeros)
    return rlm.Batch(
        channels, observation, reward, channels, terminated, truncated, source, ids, {},
        ~flags, flags, ids, zeros, np.ones(size), None, None,
    )  # fmt: skip
