"""The subcommands for log files: ``hoodie compact`` and ``hoodie log-compact``, in this process or on Spark.

A compaction merges log files into new base files; a log compaction joins the small log files of a file group into one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli import console
from hoodie_py.cli import options as cli_options
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size
from hoodie_py.runtime.wording import format_count

if TYPE_CHECKING:
    from hoodie_py import HoodieTable
    from hoodie_py.spark.engine import EngineChoice
    from hoodie_py.writer.services.compaction_report import OnProgress, PlannedSlice, PlanReport, Progress


class EngineName(StrEnum):
    """The engine that runs a table service."""

    local = "local"
    spark = "spark"


ScheduleOnly = Annotated[bool, typer.Option("--schedule-only", help="Save a plan and run nothing.")]
Instant = Annotated[
    str | None, typer.Option("--instant", metavar="INSTANT", help="Run this pending plan and make none.")
]
On = Annotated[
    EngineName, typer.Option("--engine", help="Threads of this process, or Spark as the environment configures it.")
]
Strategy = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help="Hudi's compaction strategy, or several joined by commas."),
]


@table_command("option", "metadata_mode", "timezone")
def compact(
    command: TableCommand,
    schedule_only: ScheduleOnly = False,
    instant: Instant = None,
    engine: On = EngineName.local,
    dry_run: cli_options.DryRun = False,
    strategy: Strategy = None,
    merger: cli_options.Merger = None,
    override_merger: cli_options.OverrideMerger = False,
) -> None:
    """Merge a table's log files into new base files: plan it and carry it out.

    If there is nothing to plan, the oldest pending plan is carried out.
    """
    from hoodie_py.cli.console import print_result, show_spinner

    if instant is not None and (schedule_only or dry_run or strategy):
        raise typer.BadParameter("names an existing plan, so nothing can be planned", param_hint="--instant")
    if override_merger and merger is None:
        raise typer.BadParameter("needs --merger", param_hint="--override-merger")
    options = command.options

    with show_spinner("reading the table's metadata"):
        opened = command.open()
    named = cli_options.load_merger(opened.config, merger, override=override_merger)
    if dry_run:
        _print_report(opened, opened.schedule_compaction(strategy, options, dry_run=True), command.as_json)
    elif schedule_only:
        _print_plan(opened.schedule_compaction(strategy, options), command.as_json)
    else:
        with open_engine(engine) as chosen:
            planned = instant or opened.schedule_compaction(strategy, options)
            with _show_progress() as told:
                result = opened.run_compaction(
                    planned, chosen, options, named, on_progress=told, override_merger=override_merger
                )
        print_result(result, command.as_json)


@contextmanager
def open_engine(name: EngineName, job: str = "hoodie compact") -> Iterator[EngineChoice | None]:
    """Yield the engine of a table service; ``job`` is the name that Spark shows."""
    if name is EngineName.local:
        yield None
        return
    from hoodie_py.errors import UnsupportedFeatureError

    try:
        import pyspark  # noqa: F401 - looked for, not used
    except ImportError as error:
        raise UnsupportedFeatureError(
            "PySpark is not installed.", hint="pip install 'hoodie_py[spark]'; `hoodie doctor` checks Java, too."
        ) from error
    from hoodie_py.spark.compaction_job import start_session
    from hoodie_py.spark.process import use_session

    with use_session(lambda: start_session(job)) as spark:
        yield spark


_WIDE = 100  # columns of a terminal that has room for a title beside a bar and its figures


@contextmanager
def _show_progress() -> Iterator[OnProgress | None]:
    """Show a progress bar on stderr during the block; yields None if stderr is no terminal."""
    from rich.progress import BarColumn, TextColumn

    figures = BarColumn(), TextColumn("{task.description}")
    columns = (TextColumn("compacting"), *figures) if console.make_stderr().width >= _WIDE else figures
    with console.show_progress(*columns) as bar:

        def tell(progress: Progress) -> None:
            assert bar is not None
            text, total, done = format_progress(progress), progress.bytes_total, progress.bytes_done
            bar.update(bar.task_ids[0], description=text, total=total, completed=done)

        yield None if bar is None else tell


def format_progress(progress: Progress) -> str:
    """Return the progress of a compaction as text: file groups, bytes, rows per second, time left."""
    parts = [
        f"{progress.file_groups_done}/{progress.file_groups} file groups",
        f"{format_size(progress.bytes_done)} of {format_size(progress.bytes_total)}",
        f"{progress.rows_per_second:,.0f} rows/s",
    ]
    if progress.seconds_left is not None:
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    return ", ".join(parts)


# Output -------------------------------------------------------------------------------------------------------------


def _print_plan(instant: str | None, as_json: bool) -> None:
    from hoodie_py.cli.console import print_json, print_note

    if as_json:
        print_json({"instant": instant})
    elif instant is None:
        print_note("There is nothing to compact, or it is not due; --dry-run says why.")
    else:
        typer.echo(instant)


def _print_report(opened: HoodieTable, report: PlanReport, as_json: bool) -> None:
    from hoodie_py.cli.console import print_json, print_note, print_text

    pending = [each.request_time for each in opened.timeline.select_pending_compactions()]
    if as_json:
        facts = {**dataclasses.asdict(report), "cost_bytes": report.cost_bytes, "pending": pending}
        costs = [each.cost_bytes for each in report.slices]
        facts["slices"] = [{**each, "cost_bytes": cost} for each, cost in zip(facts["slices"], costs, strict=True)]
        print_json(facts)
        return
    if report.slices:
        _print_slices(report.slices)
    print_text(str(report))
    if pending:
        print_note(f"{format_count(len(pending), 'plan')} pending, which --instant carries out: {', '.join(pending)}")


def _print_slices(slices: tuple[PlannedSlice, ...]) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout

    columns = [
        Column("", style="bold"),
        Column("partition", style="bold"),
        Column("file group", keep=True),
        Column("base file", justify="right"),
        Column("logs", justify="right"),
        Column("log bytes", justify="right"),
        Column("cost", justify="right"),
        Column("why"),
    ]
    rows = [
        [
            "in" if each.taken else "out",
            each.partition_path or "(the table)",
            each.file_id[:8],
            format_size(each.base_bytes) if each.base_bytes else "none",
            str(each.log_files) if each.log_files else "",
            format_size(each.log_bytes) if each.log_files else "",
            format_size(each.cost_bytes) if each.taken else "",
            each.reason,
        ]
        for each in slices
    ]
    make_stdout().print(build_table(columns, rows))


Blocks = Annotated[
    int | None,
    typer.Option("--blocks", min=1, metavar="N", help="Join the logs that have blocks of so many commits; default 5."),
]


@table_command("option", "metadata_mode", "timezone")
def log_compact(
    command: TableCommand,
    engine: On = EngineName.local,
    blocks: Blocks = None,
    merger: cli_options.Merger = None,
) -> None:
    """Join many small log files of a file group into one; base files are neither read nor written.

    If there is nothing to plan, the oldest pending plan is carried out.
    """
    from hoodie_py.cli.console import print_result, show_spinner
    from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD

    options = dict(command.options)
    options |= {} if blocks is None else {str(BLOCKS_THRESHOLD): str(blocks)}

    with show_spinner("reading the table's metadata"):
        opened = command.open()
    own = cli_options.load_merger(opened.config, merger)
    with open_engine(engine, "hoodie log-compact") as chosen, show_spinner("joining log files"):
        result = opened.log_compact(chosen, options, merger=own)
    print_result(result, command.as_json)
