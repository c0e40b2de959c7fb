"""``hoodie timeline``: list a table's instants, oldest first, with the counts of each write.

Without ``--archived``, the active instants are listed. With it, the newest ``PAGE`` instants of both timelines are
listed; ``--before`` goes further back, so that a long archive can be read in parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli.options import Plot, check_plot
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size

if TYPE_CHECKING:
    from rich.text import Text

    from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
    from hoodie_py.table.timeline.loader import TableTimeline
    from hoodie_py.table.timeline.pages import ListedInstant, TimelinePage

PAGE = 100

Archived = Annotated[bool, typer.Option("--archived", help="Also list instants that were moved to the archive.")]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, metavar="N", help=f"List the newest N instants; default {PAGE} with --archived, else all."
    ),
]
Before = Annotated[
    str | None, typer.Option("--before", metavar="INSTANT", help="List only instants requested before this one.")
]


@table_command()
def timeline(
    command: TableCommand,
    archived: Archived = False,
    limit: Limit = None,
    before: Before = None,
    plot: Plot = False,
) -> None:
    """List a table's instants, with what each write did."""
    from hoodie_py.cli.console import print_json, print_note, show_spinner
    from hoodie_py.table.timeline.pages import list_instants

    check_plot(plot, command.as_json)

    if before is not None and not before.isdigit():
        raise typer.BadParameter("expected an instant, which is digits", param_hint="--before")
    most = PAGE if archived and limit is None else limit
    with show_spinner("reading the timeline"):
        snapshot = command.open_snapshot()
        page = list_instants(snapshot.timeline, archived=archived, limit=most, before=before)
        found = describe(page, snapshot.timeline)
    if command.as_json:
        print_json(found)
    else:
        _print(found, archived, before)
    if plot:
        _plot(found)
    if page.has_older:
        print_note(f"There are older instants: --before {page.instants[0].request_time} lists them.")


def describe(page: TimelinePage, timeline: TableTimeline) -> list[dict[str, Any]]:
    """Return a page's instants as JSON values; counts are None unless the instant is a completed write."""
    metadata = page.read_metadata(timeline)
    return [_describe_instant(each, commit) for each, commit in zip(page.instants, metadata, strict=True)]


def _describe_instant(instant: ListedInstant, commit: CommitMetadata | None) -> dict[str, Any]:
    stats = [] if commit is None else list(commit.iterate_stats())
    return {
        "instant": instant.request_time,
        "action": instant.action,
        "state": instant.state,
        "archived": instant.is_archived,
        "completion_time": instant.completion_time,
        "operation": None if commit is None else commit.operation_type,
        "files": None if commit is None else len(stats),
        "inserts": None if commit is None else sum(stat.num_inserts for stat in stats),
        "updates": None if commit is None else sum(stat.num_update_writes for stat in stats),
        "deletes": None if commit is None else sum(stat.num_deletes for stat in stats),
        "bytes": None if commit is None else sum(stat.total_write_bytes for stat in stats),
    }


def _print(found: list[dict[str, Any]], archived: bool, before: str | None) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout, print_note

    if not found:
        empty = "The timeline is empty: nothing has been committed yet."
        print_note(empty if before is None else f"There are no instants before {before}.")
        return
    columns = [
        Column("instant", style="cyan", keep=True),
        Column("action"),
        Column("operation"),
        Column("done", "right"),
        Column("files", "right"),
        Column("+new ~upd -del"),
        Column("bytes", "right"),
    ]
    rows: list[list[str | Text]] = [
        [
            row["instant"],
            row["action"],
            (row["operation"] or "").lower(),
            _format_done(row),
            "" if row["files"] is None else str(row["files"]),
            _format_changes(row),
            format_size(row["bytes"]),
        ]
        for row in found
    ]
    if archived:
        columns.insert(1, Column("timeline", style="dim"))
        for cells, row in zip(rows, found, strict=True):
            cells.insert(1, "archived" if row["archived"] else "active")
    make_stdout().print(build_table(columns, rows))


def _plot(found: list[dict[str, Any]]) -> None:
    """Draw the commits of the page over time."""
    from hoodie_py.cli.bars import count_commits, print_bars

    commits = [(_parse_time(row["instant"]), row) for row in found if row["files"] is not None]
    known = [(time, row) for time, row in commits if time is not None]
    if known:
        unit, bars = count_commits(known)
        print_bars(f"commits by {unit}", bars)


def _format_changes(row: Mapping[str, Any]) -> Text:
    """Return the numbers of inserted, updated and deleted rows of a write, without zeros."""
    from rich.text import Text

    signs = (("+", "inserts", "green"), ("~", "updates", "yellow"), ("-", "deletes", "red"))
    return Text(" ").join(Text(f"{sign}{row[name]}", style=style) for sign, name, style in signs if row[name])


def _format_done(row: Mapping[str, Any]) -> str:
    """Return the state of an instant; for a completed one its duration, or "yes" if the duration is unknown."""
    if row["state"] != "completed":
        return str(row["state"])
    seconds = _count_seconds(row["completion_time"], row["instant"])
    return f"{seconds:.1f} s" if seconds else "yes"


def _count_seconds(end: str | None, start: str) -> float | None:
    times = [_parse_time(text) for text in (start, end or "")]
    if times[0] is None or times[1] is None:
        return None
    return max((times[1] - times[0]).total_seconds(), 0.0)


def _parse_time(instant: str) -> datetime | None:
    if len(instant) not in {14, 17}:
        return None
    try:
        return datetime.strptime(instant.ljust(20, "0"), "%Y%m%d%H%M%S%f")  # noqa: DTZ007 - only differences are used
    except ValueError:
        return None
