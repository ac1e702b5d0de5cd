"""The command line: ``python -m rlmemory COMMAND``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from . import __version__, command_files, demo, plot
from .errors import NotAvailableError, ReplayMemoryError

_EXIT_CODES = """exit status:
  0  done, and nothing was wrong
  1  the command ran, and something was wrong: a file cannot be read or written, a value came back different
  2  the command was not understood
  3  something it needs is not installed; the message says how to get it
"""


class Command(NamedTuple):
    """One subcommand: how it is called, its options, and what it does (returns the exit status)."""

    name: str
    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


#: Modules named here are imported at each start: they keep heavy imports inside their functions.
COMMANDS: tuple[Command, ...] = (
    Command("info", command_files.INFO, command_files.add_info_options, command_files.run_info),
    Command("convert", command_files.CONVERT, command_files.add_convert_options, command_files.run_convert),
    Command("plot", plot.SUMMARY, plot.add_options, plot.run),
    Command("demo", demo.SUMMARY, demo.add_options, demo.run),
)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="python -m rlmemory",
        description="Replay memory for reinforcement learning.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"rlmemory {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        one = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary,
            epilog=_EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_options(one)
        one.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        The exit status, as ``--help`` lists them. Wrong usage leaves by SystemExit(2), as argparse does.
    """
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except NotAvailableError as error:
        print(f"rlmemory: {error}", file=sys.stderr)
        return 3
    except BrokenPipeError:  # whoever read the output has seen enough; Python must not flush it again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ReplayMemoryError, OSError, MemoryError) as error:
        print(f"rlmemory: {_said(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("rlmemory: stopped", file=sys.stderr)
        return 130


def _said(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    return str(error) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
