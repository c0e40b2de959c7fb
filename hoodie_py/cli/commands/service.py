"""``hoodie service``: say which table services are due at one or many tables, and run them, once or in a loop."""

from __future__ import annotations

import dataclasses
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli import options as cli_options
from hoodie_py.cli.commands.compact import EngineName, On, open_engine
from hoodie_py.cli.console import Column, build_table, make_stdout, print_json, print_note, report_errors, show_spinner
from hoodie_py.cli.lake_page import TableState, make_page

if TYPE_CHECKING:
    from hoodie_py import RecordMerger
    from hoodie_py.spark.engine import EngineChoice
    from hoodie_py.writer.upkeep.report import ServiceReport, ServiceStep

Places = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE_OR_FOLDER...", help="Tables, or folders in which tables are looked for; paths, URIs."
    ),
]
Run = Annotated[bool, typer.Option("--run", help="Do what is due. Without it nothing is written.")]
Every = Annotated[
    float | None,
    typer.Option("--every", min=1, metavar="SECONDS", help="Look again so often, until SIGTERM or Ctrl-C."),
]
Only = Annotated[
    str | None,
    typer.Option("--only", metavar="NAMES", help="Services, joined by commas: compaction,clean; default all."),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page of the tables to a file.")]
Depth = Annotated[
    int, typer.Option("--depth", min=0, metavar="N", help="How many levels below a folder tables are looked for.")
]


def service(
    places: Places,
    run: Run = False,
    engine: On = EngineName.local,
    every: Every = None,
    only: Only = None,
    html: Html = None,
    depth: Depth = 4,
    option: cli_options.HudiOptions = None,
    merger: cli_options.Merger = None,
    metadata_mode: cli_options.Metadata = None,
    timezone: cli_options.Timezone = None,
    storage_option: cli_options.StorageOptions = None,
    endpoint_url: cli_options.EndpointUrl = None,
    as_json: cli_options.AsJson = False,
    debug: cli_options.Debug = False,
) -> None:
    """Say which table services are due and why; with --run do it, once or every so many seconds.

    Services: failed-writes, pending-plans, index-builds, metadata-table, compaction, log-compaction, clustering, clean,
    archival.
    """
    if engine is not EngineName.local and not run:
        raise typer.BadParameter("runs services, so it needs --run", param_hint="--engine")
    options = cli_options.parse_hudi_options(option, metadata_mode)
    storage = cli_options.parse_storage_options(storage_option, endpoint_url)
    with report_errors(debug):
        from hoodie_py.reader.merge.registry import import_merger
        from hoodie_py.writer.upkeep.run import check_names

        names = cli_options.split_names(only)
        check_names(names)
        work = Work(
            places, storage, options, timezone, names, depth, run=run, as_json=as_json, html=html,
            merger=None if merger is None else import_merger(merger),
        )  # fmt: skip
        with open_engine(engine, "hoodie service") as chosen, stop_on_signals() as stopped:
            work.engine, work.stopped = chosen, stopped
            failed = work.take_turn()
            while every is not None and not stopped.wait(every):
                failed = work.take_turn()
        if failed and every is None:
            raise typer.Exit(1)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set during the block; a second signal acts as usual."""
    stopped = threading.Event()
    before: dict[int, Any] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        stopped.set()
        # A second signal acts as it would without this block, so a step that hangs can be interrupted.
        signal.signal(number, before[number])

    numbers: tuple[int, ...] = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        before[number] = signal.getsignal(number)
        signal.signal(number, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(slots=True)
class Work:
    """The work of one turn of the command: which tables, which services, and how to report."""

    places: Sequence[str]
    storage: Mapping[str, Any]
    options: Mapping[str, str]
    timezone: str | None
    names: Sequence[str] | None
    depth: int
    run: bool
    as_json: bool
    html: Path | None
    merger: type[RecordMerger] | None
    engine: EngineChoice | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def take_turn(self) -> bool:
        """Examine all tables and run what is due if ``run`` is set; returns whether something failed."""
        from datetime import UTC, datetime

        states: list[TableState] = []
        for uri in self._find():
            if self.stopped.is_set():
                break
            states.append(uri if isinstance(uri, TableState) else self._serve(uri))
        self._print(states)
        if self.html is not None:
            unready = self.html.with_name(f".{self.html.name}.new")  # a browser never sees half a page
            unready.write_text(make_page(states, datetime.now(UTC)), encoding="utf-8")
            unready.replace(self.html)
        return any(each.has_failed for each in states)

    def _find(self) -> Iterator[str | TableState]:
        """Yield the tables, and a failed state for each place that cannot be searched."""
        from hoodie_py.errors import HoodieError
        from hoodie_py.table.lake import find_tables

        for place in self.places:
            try:
                found = find_tables(place, self.storage, self.depth)
            except HoodieError as error:
                yield TableState(place, error=str(error))
                continue
            if not found:
                yield TableState(place, error=f"There is no table up to {self.depth} levels below this folder.")
            yield from found

    def _serve(self, uri: str) -> TableState:
        from hoodie_py import HoodieTable
        from hoodie_py.errors import HoodieError, UnsupportedFeatureError

        try:
            with show_spinner(f"looking at {uri}"):
                table = HoodieTable.open(uri, self.storage, self.timezone)
                if not self.run:
                    return TableState(uri, table.services(options=self.options, only=self.names))
            report = table.services(
                True,
                self.engine,
                self.options,
                self.names,
                self.merger,
                on_step=lambda step: self._tell(table.config.name, step),
                should_stop=self.stopped.is_set,
            )
        except HoodieError as error:
            return TableState(uri, error=str(error), is_refused=isinstance(error, UnsupportedFeatureError))
        return TableState(uri, report)

    def _tell(self, table: str, step: ServiceStep) -> None:
        """Print a step as soon as it is done, because a loop has no end at which to print it."""
        from hoodie_py.cli.values import escape_controls

        style = {"done": "", "conflict": "yellow", "failed": "bold red"}[step.outcome]
        print_note(escape_controls(f"{table}: {step}"), style=style)

    def _print(self, states: Sequence[TableState]) -> None:

        if self.as_json:
            print_json([_to_json(each) for each in states])
            return
        if len(states) == 1 and states[0].report is not None:
            _print_services(states[0].report)
            return
        for each in states:
            make_stdout().print(_make_line(each), soft_wrap=True)


def _to_json(state: TableState) -> dict[str, Any]:
    if state.report is None:
        return {"uri": state.uri, "error": state.error}
    facts = dataclasses.asdict(state.report)
    return {**facts, "due": [each.name for each in state.report.due]}


def _make_line(state: TableState) -> str:
    """Return one line about a table."""
    from hoodie_py.cli.values import escape_controls

    report = state.report
    if report is None:
        return escape_controls(f"{state.uri}: {state.error}")
    told = [
        f"{each.name}" if each.state == "due" else f"{each.name} ({each.state})"
        for each in report.services
        if each.state in ("due", "waits", "unknown")
    ]
    failed = f"; failed: {', '.join(each.service for each in report.failed)}" if report.failed else ""
    return escape_controls(f"{state.uri}: {', '.join(told) or 'nothing is due'}{failed}")


def _print_services(report: ServiceReport) -> None:

    columns = [Column("service", style="bold", keep=True), Column("state", keep=True), Column("why")]
    rows = [[each.name, each.state, each.why] for each in report.services]
    make_stdout().print(build_table(columns, rows))
