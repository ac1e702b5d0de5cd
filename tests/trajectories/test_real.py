"""Published rollouts of experts: CartPole and Pendulum."""

from __future__ import annotations

import numpy as np
import pytest

import rlmemory as rlm

from .recorded import equal

pytestmark = pytest.mark.usefixtures("backend")
GAMES = pytest.mark.parametrize(("game", "episodes", "steps"), [("cartpole", 57, 26_964), ("pendulum", 56, 11_200)])


def rollouts(folder, game: str) -> dict:
    """All transitions, one episode behind the other, with the episode's number as id."""
    with np.load(folder / "real" / f"imitation_{game}.npz", allow_pickle=False) as file:
        obs, acts, rews, terminal, cuts = (file[name] for name in ("obs", "acts", "rews", "terminal", "indices"))
    lengths = np.diff([0, *cuts, len(acts)])
    episode = np.repeat(np.arange(lengths.size), lengths)
    row = np.arange(len(acts)) + episode  # one observation more than actions in each episode
    done = np.diff(episode, append=-1) != 0
    after = {"obs": obs[row + 1], "reward": rews, "done": done[:, None], "terminated": done & terminal[episode]}
    return {"obs": obs[row], "action": acts, "next": after, "traj_ids": episode}


@GAMES
def test_real_episodes_are_split_and_come_back_to_the_bit(shared_fixtures, game, episodes, steps):
    data = rollouts(shared_fixtures, game)
    by_id = rlm.split_trajectories(data)
    assert by_id["mask"].shape[0] == episodes
    assert by_id["mask"].sum() == steps
    equal(rlm.unsplit_trajectories(by_id), data)
    by_done = rlm.split_trajectories({name: leaf for name, leaf in data.items() if name != "traj_ids"})
    equal(by_done, by_id)
    inside = by_id["mask"][:, 1:]
    assert np.array_equal(by_id["obs"][:, 1:][inside], by_id["next"]["obs"][:, :-1][inside])
    flat, offsets = rlm.ragged_trajectories(data)
    equal(flat, data)
    assert np.diff(offsets).tolist() == rlm.trajectory_lengths(by_id["mask"]).tolist()


@GAMES
def test_real_episodes_in_segments_come_back_to_the_bit(shared_fixtures, game, episodes, steps):
    data = rollouts(shared_fixtures, game)
    split = rlm.split_trajectories(data, max_length=64, start_key="first")
    assert split["mask"].shape[1] == 64
    assert split["first"].sum() == episodes
    back = rlm.unsplit_trajectories(split)
    del back["first"]
    equal(back, data)


@GAMES
def test_real_returns_add_up(shared_fixtures, game, episodes, steps):
    data = rollouts(shared_fixtures, game)
    split = rlm.split_trajectories(data)
    reward, done = data["next"]["reward"], data["next"]["done"][:, 0]
    flat = rlm.returns_to_go(reward, done, 0.99)
    padded = rlm.returns_to_go(split["next"]["reward"], None, 0.99, mask=split["mask"])
    assert np.array_equal(padded[split["mask"]], flat)
    total = rlm.returns_to_go(reward.astype(float), done)[np.flatnonzero(np.r_[True, done[:-1]])]
    np.testing.assert_allclose(total, np.bincount(data["traj_ids"], reward))
    assert flat.dtype == reward.dtype
