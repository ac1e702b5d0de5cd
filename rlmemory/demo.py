"""The demo: real experiences go in, everything comes back, and every value is compared with what was given.

What an environment gives is kept in a plain list as well. It goes step by step into a `ReplayMemory` and, through
MATLAB's names, into an ``rlReplayMemory``; then both give back what they hold in every way there is, and each bit of
it must be the list's.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .demo_run import Run, Step
from .errors import NotAvailableError
from .memory import ReplayMemory
from .specs import NumericSpec

SUMMARY = "experiences of real environments through rlmemory and matlab_compat, every value compared"
ENVIRONMENTS = ("CartPole-v1", "Pendulum-v1")
FIXTURES = ("imitation_cartpole", "imitation_pendulum")

# ---- the command --------------------------------------------------------------------------------------------------


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command line."""
    parser.add_argument("--steps", type=_from(1), default=5000, help="steps in each environment (default: 5000)")
    parser.add_argument("--seed", type=_from(0), default=0, help="seed of environments and memories (default: 0)")
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show a progress bar (default: when the standard error is a terminal)",
    )


def _from(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least} up, got {text!r}")
        return int(text)

    return whole


def run(options: argparse.Namespace) -> int:
    """Run the demo; the exit status is 1 when any value came back different."""
    gymnasium, bar = _extra("gymnasium"), _extra("tqdm").tqdm
    silent = None if options.progress is None else not options.progress  # None: tqdm asks whether it is a terminal
    values = wrong = 0
    runs = [_from_environment(gymnasium, name, options) for name in ENVIRONMENTS]
    runs += [_from_file(path) for path in _fixture_files()]
    for one in runs:
        with bar(total=len(one), desc=one.name, unit="step", disable=silent, leave=False) as progress:
            one.fill(progress.update)
        rows = one.compare()
        print(one.table(rows), flush=True)
        values += sum(row.values for row in rows)
        wrong += sum(row.wrong for row in rows)
    if len(runs) == len(ENVIRONMENTS):
        print("expert trajectories: none found (RLMEMORY_FIXTURES names the folder that has them)\n")
    print(f"{wrong:,} of {values:,} values DIFFER" if wrong else f"all {values:,} values came back bit for bit")
    return 1 if wrong else 0


def _extra(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise NotAvailableError(
            f'the demo needs {module}, which comes with the extra "gym": pip install "rlmemory[gym]" '
            '(in a clone: pip install -e ".[gym]")'
        ) from error


# ---- where experiences come from ----------------------------------------------------------------------------------


def _from_environment(gymnasium: Any, name: str, options: argparse.Namespace) -> Run:
    env = gymnasium.make(name)
    # The rewards of these environments are float64, and nothing is to be rounded here.
    memory = ReplayMemory.from_env(env, options.steps, reward="float64", seed=options.seed)
    return Run(name, "random actions", memory, lambda: _rollout(env, options.steps, options.seed), options.steps)


def _rollout(env: Any, steps: int, seed: int) -> Iterator[Step]:
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        yield Step(observation, action, reward, following, terminated, truncated)
        observation = env.reset()[0] if terminated or truncated else following
    env.close()


def _fixture_files() -> list[Path]:
    beside_the_repository = Path(__file__).resolve().parents[2] / "shared" / "fixtures"
    folder = Path(os.environ.get("RLMEMORY_FIXTURES", beside_the_repository)) / "real"
    return [path for path in (folder / f"{name}.npz" for name in FIXTURES) if path.is_file()]


def _from_file(path: Path) -> Run:
    with np.load(path, allow_pickle=False) as file:
        # One more observation than actions in each episode; `infos` is pickled and stays closed.
        obs, acts, rews, ended, cuts = (file[key] for key in ("obs", "acts", "rews", "terminal", "indices"))
    memory = ReplayMemory(
        NumericSpec(obs.shape[1:], obs.dtype), NumericSpec(acts.shape[1:], acts.dtype), len(acts), reward=rews.dtype
    )

    def episodes() -> Iterator[Step]:
        bounds = [0, *cuts.tolist(), len(acts)]
        for number, (first, last) in enumerate(pairwise(bounds)):
            for i in range(first, last):
                end, before = i + 1 == last, i + number
                done = bool(ended[number])
                yield Step(obs[before], acts[i], float(rews[i]), obs[before + 1], end and done, end and not done)

    return Run(path.stem, "expert trajectories", memory, episodes, len(acts), by_episode=True)
