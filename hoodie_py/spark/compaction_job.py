"""Compaction as a job for ``spark-submit`` and schedulers, like Java's ``HoodieCompactor`` of hudi-utilities::

    spark-submit .../hoodie_py/spark/compaction_job.py s3a://lake/trips --option hoodie.parquet.compression.codec=snappy
    python -m hoodie_py.spark.compaction_job s3a://lake/trips --remote sc://spark:15002

The job makes a plan and carries it out. If there is nothing to plan, it carries out the oldest pending plan. It uses
the session that ``spark-submit`` or the environment configures, with its ``fs.s3a`` settings. The exit status is 0
(done), 1 (failed) or 2 (wrong usage).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by its path: modules of this folder must not hide others of the same name
    _folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would be among the hidden
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _folder]  # noqa: PTH100

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hoodie_py.writer.services.compaction_report import Progress

_SECONDS_BETWEEN_LINES = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job for some command-line arguments and return its exit status."""
    asked = _make_parser().parse_args(arguments)
    from hoodie_py.errors import HoodieError
    from hoodie_py.spark.process import use_session

    with use_session(lambda: start_session("hoodie compact", asked.remote)) as spark:
        try:
            sys.stdout.write(f"{_compact(spark, asked)}\n")
        except HoodieError as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
    return 0


def _compact(spark: SparkSession, asked: argparse.Namespace) -> str:
    """Schedule or run the compaction and return a sentence about the result."""
    from hoodie_py.options.write import METADATA_MODE
    from hoodie_py.reader.merge.registry import import_merger
    from hoodie_py.spark.engine import SparkEngine
    from hoodie_py.spark.load_options import PATH, STORAGE_OPTIONS, TIMEZONE, LoadOptions, read_s3_settings
    from hoodie_py.spark.pin import open_table
    from hoodie_py.writer.precombine.merge_options import check_compaction_options, check_merger
    from hoodie_py.writer.services.compaction import Compaction
    from hoodie_py.writer.timeline.session import WriteSession

    given = {PATH: asked.table, STORAGE_OPTIONS: asked.storage_options, TIMEZONE: asked.timezone}
    load = {name: value for name, value in given.items() if value is not None}
    snapshot = open_table(LoadOptions.parse(load, read_s3_settings(spark)))
    options = dict(asked.option)
    if asked.metadata_mode is not None:
        options[METADATA_MODE] = asked.metadata_mode
    merger = None if asked.merger is None else import_merger(asked.merger)
    check_merger(snapshot.config, merger, override=asked.override_merger)
    session = WriteSession.open(snapshot, options=options, strategy=asked.strategy, merger=merger)
    check_compaction_options(snapshot.config, session.settings.options)
    service = Compaction(_ProgressLines())
    instant = asked.instant or service.schedule(session)
    if asked.schedule_only:
        return f"Compaction {instant} is planned." if instant else "There was nothing to compact."
    runner = SparkEngine(spark)
    return str(service.run(session, instant, runner=runner, merger=merger, override_merger=asked.override_merger))


class _ProgressLines:
    """Print progress to stderr, a line every ten seconds at most."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = time.monotonic()
        left = "" if progress.seconds_left is None else f", about {progress.seconds_left:.0f} s to go"
        text = (
            f"{progress.file_groups_done} of {progress.file_groups} file groups, "
            f"{progress.bytes_done:,} of {progress.bytes_total:,} bytes, {progress.rows_per_second:,.0f} rows/s{left}"
        )
        sys.stderr.write(f"{text}\n")


def start_session(name: str, remote: str | None = None) -> SparkSession:
    """Start a Spark session as the environment configures it.

    ``remote``: address of a Spark Connect server; None for the address in SPARK_REMOTE or the configuration.
    """
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    if remote is not None:
        builder = builder.remote(remote)
    elif "SPARK_REMOTE" not in os.environ:
        # Workers of a classic session on this machine must run a Python that has this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    spark: SparkSession = builder.getOrCreate()
    return spark


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compaction_job", description="Compact a Hudi table on Spark.")
    parser.add_argument("table", help="base path of the table")
    step = parser.add_mutually_exclusive_group()
    step.add_argument("--schedule-only", action="store_true", help="save a plan and stop")
    step.add_argument("--instant", help="carry out this plan; the default is to make one")
    parser.add_argument("--strategy", help="Hudi's compaction strategy, or several joined by commas")
    parser.add_argument(
        "--option",
        action="append",
        type=_parse_pair,
        default=[],
        metavar="K=V",
        help="writer option of Hudi's; repeatable",
    )
    parser.add_argument("--storage-options", metavar="JSON", help="options for the store, as for the data source")
    parser.add_argument("--timezone", help="zone of new instants where the table says LOCAL; UTC unless given")
    parser.add_argument("--metadata-mode", choices=("auto", "disable", "refuse"), help="see hoodie.metadata.mode")
    parser.add_argument("--merger", metavar="MODULE.CLASS", help="the RecordMerger of a table that needs one")
    parser.add_argument(
        "--override-merger", action="store_true", help="let --merger decide though it is not the table's, for good"
    )
    parser.add_argument("--remote", metavar="URL", help="Spark Connect server, such as sc://host:15002")
    return parser


def _parse_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError("expected K=V, such as hoodie.parquet.compression.codec=snappy")
    return key, value


if __name__ == "__main__":
    raise SystemExit(main())
