"""The command ``plot``: episode returns and lengths, and histograms of rewards and observations, as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .command_files import add_progress
from .errors import EmptyMemoryError
from .files.assembled import matrix, named, summary_of
from .files.extras import extra
from .files.formats import read_any
from .files.hdf5 import replacing

if TYPE_CHECKING:
    import os

    from .batch import Experience

SUMMARY = "episode returns and lengths, reward and observation histograms, as a PNG file"
#: Numbers of one observation that get a histogram each; more than that are drawn as one.
_SEPARATE = 8
_BINS = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command line."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a file or folder; its format is recognised")
    parser.add_argument("-o", "--output", type=Path, help="the picture (default: FILE's name with .png, here)")
    add_progress(parser)


def run(options: argparse.Namespace) -> int:
    """Draw what a file holds."""
    extra("matplotlib", "plot", "the plot")  # said before a long read, not after it
    output = options.output or Path(f"{options.file.resolve().stem}.png")
    _, experience = read_any(options.file, progress=options.progress)
    draw(experience, output, str(options.file))
    print(output)
    return 0


def draw(experience: Experience, output: str | os.PathLike[str], title: str = "") -> None:
    """Draw an experience into a picture file.

    Parameters
    ----------
    experience : Experience
    output : path-like
        Its suffix says the format: .png, .pdf, .svg. Replaced when the picture is complete.
    title : str, optional

    Raises
    ------
    EmptyMemoryError
        When there is nothing to draw.
    NotAvailableError
        Without matplotlib.
    """
    agg = extra("matplotlib.backends.backend_agg", "plot", "the plot")
    figures = extra("matplotlib.figure", "plot", "the plot")
    if not len(experience.terminated):
        raise EmptyMemoryError(f"{title or 'plot'}: holds no experiences, so there is nothing to draw")
    episodes = summary_of(experience)
    # A figure of its own, and no pyplot: no window, no state that other code could meet.
    figure = figures.Figure(figsize=(11, 7.5), layout="constrained")
    agg.FigureCanvasAgg(figure)
    returns, lengths, rewards, observations = figure.subplots(2, 2).flat
    _line(returns, np.real(episodes.returns), "return")
    _line(lengths, episodes.length, "length")
    _histogram(rewards, {"reward": np.asarray(experience.reward)}, "reward")
    _histogram(observations, _parts(experience), "observation")
    ends = {kind: int((episodes.ended == kind).sum()) for kind in ("terminated", "truncated", "running")}
    counts = ", ".join(f"{count:,} {kind}" for kind, count in ends.items() if count)
    figure.suptitle(f"{title}\n{len(experience.terminated):,} experiences; episodes: {counts}".strip())
    suffix = Path(output).suffix.lstrip(".").lower() or "png"
    with replacing(output) as temporary:
        figure.savefig(temporary, format=suffix, dpi=110)


def _line(axes: Any, values: Any, name: str) -> None:
    axes.plot(np.arange(values.size), values, ".-" if values.size < 200 else "-", linewidth=0.8)
    axes.set(xlabel="episode", ylabel=name, title=f"{name} of each episode")


def _histogram(axes: Any, parts: dict[str, Any], name: str) -> None:
    drawn = {label: values for label, array in parts.items() if (values := _finite(array)).size}
    for label, values in drawn.items():
        axes.hist(values, bins=_BINS, histtype="step" if len(drawn) > 1 else "bar", label=label)
    if 1 < len(drawn) <= _SEPARATE:
        axes.legend(fontsize="small")
    axes.set(xlabel=name, ylabel="rows", title=f"{name}s" if drawn else f"{name}s: no finite numbers")


def _finite(array: Any) -> Any:
    """The numbers that have a place on an axis, as float64."""
    wide = np.abs(array) if array.dtype.kind == "c" else array
    values = wide.astype(np.float64).ravel()
    return values[np.abs(values) < 1e300]


def _parts(experience: Experience) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for label, array in named("observation", experience.observation):
        columns = matrix(np.asarray(array))
        if 1 < columns.shape[1] <= _SEPARATE:
            parts |= {f"{label}[{i}]": columns[:, i] for i in range(columns.shape[1])}
        else:
            parts[label] = columns
    return parts
