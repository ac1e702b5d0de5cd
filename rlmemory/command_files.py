"""The commands ``info`` and ``convert``: what a file holds, and the same in another format."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .files.assembled import named, summary_of
from .files.formats import FORMATS, format_for, read_any, write_any
from .statistics import summarise

if TYPE_CHECKING:
    from .batch import Experience

INFO = "what a file holds: episodes, returns, and the range of every channel"
CONVERT = "experiences from one format into another"


def add_progress(parser: argparse.ArgumentParser) -> None:
    """The option that shows or hides progress bars."""
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="show a progress bar on long work, when the standard error is a terminal (default)",
    )


# ---- info -----------------------------------------------------------------------------------------------------------


def add_info_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``info``."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a file or folder; its format is recognised")
    parser.add_argument("--json", action="store_true", help="for programs")
    add_progress(parser)


def run_info(options: argparse.Namespace) -> int:
    """Print what a file holds."""
    one, experience = read_any(options.file, progress=options.progress)
    facts = {"file": str(options.file), "format": one.name, "title": one.title, **facts_of(experience)}
    print(json.dumps(facts) if options.json else text_of(facts))
    return 0


def facts_of(experience: Experience) -> dict[str, Any]:
    """Counts, episodes, and the range of every channel."""
    episodes = summary_of(experience)
    rows = len(experience.terminated)
    channels = {
        label: np.asarray(array)
        for field in ("observation", "action", "reward", "next_observation", "extra")
        for label, array in named(field, getattr(experience, field))
    }
    codes = (experience.terminated + 2 * (experience.truncated & ~experience.terminated)).astype(np.uint8)
    found = summarise(channels, codes, experience.source, [(0, rows, 0)])
    ends = {kind: int((episodes.ended == kind).sum()) for kind in ("terminated", "truncated", "running")}
    return {
        "experiences": rows,
        "episodes": {"count": int(episodes.length.size), **ends},
        "length": _range(episodes.length),
        "return": _range(episodes.returns),
        "sources": len(found["sources"]),
        "bytes": sum(array.nbytes for array in channels.values()),
        "channels": {
            label: {"dtype": channels[label].dtype.name, "shape": list(channels[label].shape[1:]), **_plain(numbers)}
            for label, numbers in found["channels"].items()
        },
    }


def _range(values: Any) -> dict[str, Any]:
    if not values.size or values.dtype.kind == "c":
        return {"min": None, "mean": None, "max": None}
    return _plain({"min": values.min().item(), "mean": values.mean().item(), "max": values.max().item()})


def _plain(numbers: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has: infinities, NaN and complex numbers become text."""
    odd = {
        k: v for k, v in numbers.items() if isinstance(v, complex) or (isinstance(v, float) and not math.isfinite(v))
    }
    return numbers | {key: str(value) for key, value in odd.items()}


def text_of(facts: dict[str, Any]) -> str:
    """The facts as lines and a table."""
    episodes, size = facts["episodes"], facts["bytes"] / 2**20
    kinds = ", ".join(f"{episodes[kind]:,} {kind}" for kind in ("terminated", "truncated", "running"))
    lines = [
        f"{facts['file']}: {facts['title']}",
        f"  experiences  {facts['experiences']:,} in {size:.2f} MiB, of {facts['sources']} source(s)",
        f"  episodes     {episodes['count']:,}: {kinds}",
    ]
    for name in ("length", "return"):
        low, mean, high = (_short(facts[name][key]) for key in ("min", "mean", "max"))
        lines.append(f"  {name:<11}  {low} to {high}, mean {mean}")
    lines.append(f"  {'channel':<32}{'dtype':<12}{'shape':<14}{'min':>12}{'max':>12}{'mean':>12}{'NaN':>8}")
    for label, one in facts["channels"].items():
        numbers = "".join(f"{_short(one[key]):>12}" for key in ("min", "max", "mean"))
        lines.append(f"  {label:<32}{one['dtype']:<12}{tuple(one['shape'])!s:<14}{numbers}{one['nan']:>8}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, (int, float)) else str(value)


# ---- convert --------------------------------------------------------------------------------------------------------


def add_convert_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``convert``."""
    parser.add_argument("source", metavar="IN", type=Path, help="a file or folder; its format is recognised")
    parser.add_argument("target", metavar="OUT", type=Path, help="by its suffix: .hdf5 is D4RL, a folder is Minari")
    parser.add_argument(
        "--to", choices=[one.name for one in FORMATS], help="the format of OUT, where its name does not say it"
    )
    parser.add_argument("--force", action="store_true", help="replace OUT if it is there")
    add_progress(parser)


def run_convert(options: argparse.Namespace) -> int:
    """Read, and write in the other format."""
    one = format_for(options.target, options.to)  # said before a long read, not after it
    if options.target.exists() and not options.force:
        raise FileExistsError(f"{options.target} is there already; --force replaces it")
    before, experience = read_any(options.source, progress=options.progress)
    write_any(options.target, experience, one.name, progress=options.progress)
    rows = len(experience.terminated)
    print(f"{options.source} ({before.title}) -> {options.target} ({one.title}): {rows:,} experiences")
    return 0
