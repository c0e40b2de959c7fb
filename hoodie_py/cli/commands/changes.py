"""``hoodie changes``: print what commits inserted, updated and deleted, from the table's change data.

As text, each change is one line with the record's key and the values that changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli import options
from hoodie_py.cli.console import report_errors
from hoodie_py.cli.values import to_text

if TYPE_CHECKING:
    import pyarrow as pa

_OPERATIONS = {"i": "insert", "u": "update", "d": "delete"}
Where = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Condition on op and ts_ms, such as \"op = 'd'\".")
]


def changes(
    table: options.TableUri,
    where: Where = None,
    range_start: options.From = None,
    range_end: options.To = None,
    follow: options.Follow = False,
    poll: options.Poll = 5.0,
    format: options.Format = options.OutputFormat.table,
    as_json: options.FormatJson = False,
    output: options.Output = None,
    limit: options.Limit = None,
    merger: options.Merger = None,
    timezone: options.FilterTimezone = None,
    storage_option: options.StorageOptions = None,
    endpoint_url: options.EndpointUrl = None,
    debug: options.Debug = False,
) -> None:
    """Show the inserts, updates and deletes of commits, with rows before and after."""
    kind = options.choose_format(format, as_json)
    if follow:
        options.check_follow(kind, range_end=range_end, has_file=output is not None, limit=limit)
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.rows.output import print_scan, stream_rows, write_scan

        opened = HoodieTable.open(table, options.parse_storage_options(storage_option, endpoint_url), timezone)
        start, as_structs = range_start or "earliest", kind is not options.OutputFormat.csv
        make = partial(
            opened.changes, start, range_end, as_structs, filter=where, merger=options.import_given_merger(merger)
        )
        describe = partial(describe_changes, key_fields=opened.config.record_key_fields)
        if follow:
            follower = opened.follow(
                start,
                poll,
                changes=True,
                as_structs=as_structs,
                filter=where,
                merger=options.import_given_merger(merger),
            )
            stream_rows(follower, kind, describe)
        elif kind is options.OutputFormat.table:
            most = options.ROWS_ON_THE_TERMINAL if limit is None else limit
            print_scan(make(limit=most + 1), most, output, describe)
        else:
            write_scan(make(limit=limit), kind, output)


def describe_changes(changes: pa.Table, key_fields: Sequence[str]) -> pa.Table:
    """Return change data as texts in commit order: commit, operation, key and values.

    ``changes`` has its rows before and after as structs.
    """
    import pyarrow as pa

    rows = sorted(changes.to_pylist(), key=lambda row: str(row["ts_ms"]))
    lines = [_describe_change(row["before"] or {}, row["after"] or {}, key_fields) for row in rows]
    return pa.table(
        {
            "commit": pa.array([row["ts_ms"] for row in rows], pa.string()),
            "op": pa.array([_OPERATIONS.get(row["op"], row["op"]) for row in rows], pa.string()),
            "key": pa.array([key for key, _ in lines], pa.string()),
            "values": pa.array([values for _, values in lines], pa.string()),
        }
    )


def _describe_change(before: Mapping[str, Any], after: Mapping[str, Any], key_fields: Sequence[str]) -> tuple[str, str]:
    """Return the key and the values of a change: all of an insert or delete, only the changed ones of an update."""
    shown = after or before
    key = ", ".join(to_text(_read(shown, name)) for name in key_fields)
    names = [name for name in shown if name not in key_fields]
    if before and after:
        changed = [name for name in names if before.get(name) != after[name]]
        return key, ", ".join(f"{name}: {_quote(before.get(name))} → {_quote(after[name])}" for name in changed)
    return key, ", ".join(f"{name}={_quote(shown[name])}" for name in names)


def _read(row: Mapping[str, Any], name: str) -> Any:
    value: Any = row
    for part in [name] if name in row else name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _quote(value: Any) -> str:
    return "null" if value is None else to_text(value)
