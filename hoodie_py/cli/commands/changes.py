"""``hoodie changes``: print what commits inserted, updated and deleted, from the table's change data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import (
    ROWS_ON_THE_TERMINAL,
    Debug,
    EndpointUrl,
    FilterTimezone,
    Follow,
    Format,
    FormatJson,
    From,
    Limit,
    Merger,
    Output,
    OutputFormat,
    Poll,
    StorageOptions,
    TableUri,
    To,
    check_follow,
    choose_format,
    import_given_merger,
    parse_storage_options,
)

if TYPE_CHECKING:
    import pyarrow as pa

Where = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Condition on op and ts_ms, such as \"op = 'd'\".")
]


def changes(
    table: TableUri,
    where: Where = None,
    range_start: From = None,
    range_end: To = None,
    follow: Follow = False,
    poll: Poll = 5.0,
    format: Format = OutputFormat.table,
    as_json: FormatJson = False,
    output: Output = None,
    limit: Limit = None,
    merger: Merger = None,
    timezone: FilterTimezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    debug: Debug = False,
) -> None:
    """Show the inserts, updates and deletes of commits, with rows before and after."""
    kind = choose_format(format, as_json)
    if follow:
        check_follow(kind, range_end=range_end, has_file=output is not None, limit=limit)
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.rows.output import print_scan, stream_rows, write_scan

        opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
        start, as_structs = range_start or "earliest", kind is not OutputFormat.csv
        make = partial(opened.changes, start, range_end, as_structs, filter=where, merger=import_given_merger(merger))
        describe = partial(_describe, opened.config.record_key_fields)
        if follow:
            follower = opened.follow(
                start,
                poll,
                changes=True,
                as_structs=as_structs,
                filter=where,
                merger=import_given_merger(merger),
            )
            stream_rows(follower, kind, describe)
        elif kind is OutputFormat.table:
            most = ROWS_ON_THE_TERMINAL if limit is None else limit
            print_scan(make(limit=most + 1), most, output, describe)
        else:
            write_scan(make(limit=limit), kind, output)


def _describe(key_fields: tuple[str, ...], rows: pa.Table) -> pa.Table:
    from hoodie_py.cli.rows.changes import describe_changes

    return describe_changes(rows, key_fields)
