"""What MATLAB's names and shapes cost against the core's same calls: ``python -m asv_bench.ratios_matlab``.

Measured as in `asv_bench.ratios`: interleaved, order rotated, median and spread. A measurement takes well under a
millisecond, so that on a busy machine most of them are not interrupted. Nothing here fails: a target that is missed is
printed as missed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import matlab_compat as mc

from .benchmarks.matlab_scene import matlab_transitions
from .ratios import Case, Line, show
from .timing import interleaved, readable


def append_one(buffer: mc.rlReplayMemory, experience: mc.struct) -> Case:
    """One struct, against the core's append of the same arrays."""
    memory = buffer.memory
    observation, action, after = (
        getattr(experience, name)[0][:, 0].copy() for name in ("Observation", "Action", "NextObservation")
    )
    reward = experience.Reward

    def core() -> None:
        memory.append(observation, action, reward=reward, next_observation=after, terminated=False)

    operations = {"append(buffer, e)": lambda: mc.append(buffer, experience), "append": core}
    return Case("facade", operations, [Line("append(buffer, e)", "append", 4.0)], rounds=600, inner=50)


def sample_256(buffer: mc.rlReplayMemory) -> Case:
    """A mini-batch; its fields are made when they are read, so once without and once with all of them read."""

    def read() -> tuple[object, ...]:
        batch = mc.sample(buffer, 256)
        return batch.Observation, batch.Action, batch.Reward, batch.NextObservation, batch.IsDone

    operations = {
        "sample(buffer, 256)": lambda: mc.sample(buffer, 256),
        "sample, all fields read": read,
        "sample": lambda: buffer.memory.sample(256),
    }
    lines = [Line("sample(buffer, 256)", "sample", 1.2), Line("sample, all fields read", "sample")]
    return Case("facade", operations, lines, rounds=600, inner=5)


def all_experiences(buffer: mc.rlReplayMemory) -> Case:
    """Everything, concatenated; with every field read as well."""

    def read(mode: str) -> tuple[object, ...]:
        batch = mc.allExperiences(buffer, ConcatenateMode=mode)
        return batch.Observation, batch.Action, batch.Reward, batch.NextObservation, batch.IsDone

    operations = {
        "all, batch": lambda: mc.allExperiences(buffer, ConcatenateMode="batch"),
        "all, sequence": lambda: mc.allExperiences(buffer, ConcatenateMode="sequence"),
        "all, batch, fields read": lambda: read("batch"),
        "all": lambda: buffer.memory.all(),
    }
    lines = [Line("all, batch", "all", 1.2), Line("all, sequence", "all", 1.2), Line("all, batch, fields read", "all")]
    return Case("facade", operations, lines, rounds=200)


def cases(*, quick: bool) -> Iterator[Case]:
    """All comparisons, one after another."""
    buffer, experience = matlab_transitions(10_000 if quick else 1_000_000)
    yield append_one(buffer, experience)
    yield sample_256(buffer)
    yield all_experiences(buffer)
    single = interleaved({"none": lambda: mc.allExperiences(buffer)}, rounds=200)["none"]
    reached = "yes" if single.median < 5e-3 else "NO"
    print(f'allExperiences "none" of {buffer.Length:,}: {readable(single.median)} (target 5 ms: {reached})')


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m asv_bench.ratios_matlab", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small memories and few rounds: to see that it runs")
    quick = parser.parse_args().quick
    show(lambda: cases(quick=quick), quick=quick)


if __name__ == "__main__":
    main()
