"""What the programs of the benchmarks share on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from tests.benchmarks.bench_tables import TablesAbsentError


def say(text: str) -> None:
    """Print a line on stderr, at once."""
    print(text, file=sys.stderr, flush=True)


def make_parser(doc: str, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with ``--groups`` and ``--rounds``; its description is the first line of a module's docstring."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--groups", type=int, default=10, help="how many times the file groups")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def finish(run: Callable[[], bool]) -> int:
    """Return the exit status: 1 when an answer or rows were wrong, or the tables are absent."""
    try:
        return 0 if run() else 1
    except TablesAbsentError as error:
        say(str(error))
        return 1
