"""``hoodie timeline``: list a table's active instants, oldest first, with the counts of each write."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import AsJson, Debug, EndpointUrl, StorageOptions, TableUri, parse_storage_options
from hoodie_py.cli.values import format_size

if TYPE_CHECKING:
    from rich.text import Text

    from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
    from hoodie_py.formats.timeline.timeline import Instant
    from hoodie_py.table.timeline.loader import TableTimeline


def timeline(
    table: TableUri,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List a table's instants, with what each write did."""
    with report_errors(debug):
        from hoodie_py.cli.console import print_json, show_spinner
        from hoodie_py.table.snapshot import open_snapshot

        with show_spinner("reading the timeline"):
            snapshot = open_snapshot(table, storage_options=parse_storage_options(storage_option, endpoint_url))
            found = describe(snapshot.timeline)
        if as_json:
            print_json(found)
        else:
            _print(found)


def describe(timeline: TableTimeline) -> list[dict[str, Any]]:
    """Return the active instants as JSON values; counts are None for instants that are no completed writes."""
    writes = timeline.list_completed_writes()
    metadata = dict(zip(writes, timeline.read_all_metadata(writes), strict=True))
    return [_describe_instant(instant, metadata) for instant in timeline]


def _describe_instant(instant: Instant, metadata: Mapping[Instant, CommitMetadata]) -> dict[str, Any]:
    commit = metadata.get(instant)
    stats = [] if commit is None else list(commit.iterate_stats())
    return {
        "instant": instant.request_time,
        "action": instant.action,
        "state": instant.state,
        "completion_time": instant.completion_time,
        "operation": None if commit is None else commit.operation_type,
        "files": None if commit is None else len(stats),
        "inserts": None if commit is None else sum(stat.num_inserts for stat in stats),
        "updates": None if commit is None else sum(stat.num_update_writes for stat in stats),
        "deletes": None if commit is None else sum(stat.num_deletes for stat in stats),
        "bytes": None if commit is None else sum(stat.total_write_bytes for stat in stats),
    }


def _print(found: list[dict[str, Any]]) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout, print_note

    if not found:
        print_note("The timeline is empty: nothing has been committed yet.")
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
    make_stdout().print(build_table(columns, rows))


def _format_changes(row: Mapping[str, Any]) -> Text:
    """Return the numbers of inserted, updated and deleted rows of a write, without zeros."""
    from rich.text import Text

    signs = (("+", "inserts", "green"), ("~", "updates", "yellow"), ("-", "deletes", "red"))
    return Text(" ").join(Text(f"{sign}{row[name]}", style=style) for sign, name, style in signs if row[name])


def _format_done(row: Mapping[str, Any]) -> str:
    """Return the state of an instant; for a completed one its duration, or "yes" if the times do not tell it."""
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
