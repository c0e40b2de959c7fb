"""A year of small upserts on one table, with its services: ``make year``. Hours on a busy machine for all 5,000.

    python -m integration.year --commits 5000 --version 9
    python -m integration.year --commits 1000 --version 8 --cow

Prints means of each tenth of the commits, and fails where a read differs from the model, or where the last tenth costs
more than 1.5 times the first.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
from pathlib import Path

from integration.saved import save_json
from integration.year.java import go_on_with_java
from integration.year.model import YearModel
from integration.year.year import Kind, Span, run_year

MOST_GROWTH = 1.5
BOUNDED = ("cpu", "calls", "active_files", "data_files", "metadata_files")


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and return 1 where a cost grew."""
    parser = argparse.ArgumentParser(prog="python -m integration.year", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--commits", type=int, default=5000)
    parser.add_argument("--version", type=int, choices=(6, 8, 9), default=9)
    parser.add_argument("--cow", action="store_true", help="copy-on-write")
    parser.add_argument("--no-metadata", action="store_true", help="without a metadata table")
    parser.add_argument("--no-statistics", action="store_true", help="no statistics in the metadata table")
    parser.add_argument("--no-clustering", action="store_true", help="all services but clustering")
    parser.add_argument("--checks", type=int, default=40, help="how often the past is compared")
    parser.add_argument("--java", action="store_true", help="at the end Java Hudi reads the table and goes on")
    parser.add_argument("--keep", type=Path, help="folder that is free: the table and its model stay there")
    parser.add_argument("--kept", type=Path, help="make no commits: go on with what --keep left")
    parser.add_argument(
        "--base", default="/dev/shm" if Path("/dev/shm").is_dir() else None, help="folder for the table"
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("HOODIE_PY_READ_THREADS", "1")  # the table is small
    kind = Kind(asked.version, not asked.cow, not asked.no_metadata, not asked.no_clustering, not asked.no_statistics)
    model = YearModel()
    with tempfile.TemporaryDirectory(prefix="hoodie-year-", dir=asked.base) as folder:
        if asked.kept is not None:
            print(go_on_with_java(asked.kept / "table", kind, pickle.loads((asked.kept / "model").read_bytes()),
                                  Path(folder)))  # fmt: skip
            return 0
        path = (asked.keep or Path(folder)) / "table"
        year = run_year(path, kind, asked.commits, model=model, checks=asked.checks, on_span=_print_span)
        if asked.json is not None:
            save_json(asked.json, year.as_dict())
        print(f"{kind}: {year.commits:,} commits and {year.reads:,} compared reads in {year.seconds:.0f} s")
        grown = {name: round(year.grown(name), 2) for name in BOUNDED}
        print("the last tenth beside the first:", ", ".join(f"{name} x{ratio}" for name, ratio in grown.items()))
        if asked.keep is not None:
            (asked.keep / "model").write_bytes(pickle.dumps(model))
        if asked.java:
            print(go_on_with_java(path, kind, model, Path(folder)))
    return int(any(ratio > MOST_GROWTH for ratio in grown.values()))


def _print_span(span: Span) -> None:
    print(
        f"{span.commits} commits: cpu {span.cpu * 1000:.1f} ms (median {span.median_cpu * 1000:.1f}), wall "
        f"{span.wall * 1000:.1f} ms, {span.calls:.1f} calls, {span.bytes_read / 1000:.0f} KB read; {span.active} "
        f"active instants in {span.active_files} files, {span.archive_files} of the archive, {span.data_files} of data,"
        f" {span.metadata_files} of the metadata table, {span.table_bytes / 1e6:.1f} MB",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
