"""``hoodie read``: print a table's merged rows, or write them as CSV, JSON lines or Parquet."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli import options
from hoodie_py.cli.console import print_json, print_note, print_text, report_errors

if TYPE_CHECKING:
    from hoodie_py.hoodie_table import HoodieTable
    from hoodie_py.table.scan.scan import Scan


class QueryType(StrEnum):
    """Query type of the scan."""

    snapshot = "snapshot"
    read_optimized = "read_optimized"


Kind = Annotated[QueryType, typer.Option("--query-type", help="Merged rows, or rows of base files only.")]

Explain = Annotated[
    bool,
    typer.Option("--explain", help="Read no rows: say what would be read, and what indexes leave out."),
]

Analyze = Annotated[
    bool,
    typer.Option("--analyze", help="As --explain; read the rows too, drop them, and say what that took."),
]


def read(
    table: options.TableUri,
    columns: options.Columns = None,
    where: options.Where = None,
    as_of: options.AsOf = None,
    range_start: options.From = None,
    range_end: options.To = None,
    query_type: Kind = QueryType.snapshot,
    follow: options.Follow = False,
    poll: options.Poll = 5.0,
    format: options.Format = options.OutputFormat.table,
    as_json: options.FormatJson = False,
    output: options.Output = None,
    limit: options.Limit = None,
    explain: Explain = False,
    analyze: Analyze = False,
    merger: options.Merger = None,
    timezone: options.FilterTimezone = None,
    storage_option: options.StorageOptions = None,
    endpoint_url: options.EndpointUrl = None,
    debug: options.Debug = False,
) -> None:
    """Read a table's rows, merged as Hudi merges them; or those that a range of commits wrote."""
    kind = options.choose_format(format, as_json)
    is_range = range_start is not None or range_end is not None
    if (is_range or follow) and (as_of is not None or query_type is not QueryType.snapshot):
        raise typer.BadParameter("a range of commits has no --as-of and no --query-type", param_hint="--from")
    if follow:
        options.check_follow(kind, range_end=range_end, has_file=output is not None, limit=limit)
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.rows.output import print_scan, stream_rows, write_scan

        opened = HoodieTable.open(table, options.parse_storage_options(storage_option, endpoint_url), timezone)
        asked, named = options.split_names(columns), options.import_given_merger(merger)
        on_terminal = kind is options.OutputFormat.table
        shown = _list_user_columns(opened) if on_terminal and asked is None else asked
        if follow:
            stream_rows(opened.follow(range_start or "earliest", poll, columns=shown, filter=where, merger=named), kind)
            return
        most = options.ROWS_ON_THE_TERMINAL if on_terminal and limit is None else limit
        wanted = most if most is None or not on_terminal else most + 1
        if is_range:
            scan = opened.incremental(range_start or "earliest", range_end, shown, where, wanted, named)
        else:
            scan = opened.scan(shown, where, as_of, query_type.value, wanted, named)
        if explain or analyze:
            print_explanation(scan, as_json=kind is options.OutputFormat.json, analyze=analyze)
            return
        if not on_terminal:
            write_scan(scan, kind, output)
            return
        print_scan(scan, most or 0, output)
        if asked is None and len(scan.columns) < len(opened.schema):
            print_note("without Hudi's meta columns; --columns can name them")


def print_explanation(scan: Scan, *, as_json: bool, analyze: bool) -> None:
    """Print how a scan is planned; ``analyze`` also reads the rows and prints what that took."""
    from dataclasses import asdict

    found = scan.explain(analyze=analyze)
    if as_json:
        print_json(asdict(found))
    else:
        print_text(str(found))


def _list_user_columns(table: HoodieTable) -> list[str]:
    """Return the columns without Hudi's meta columns, because a terminal is narrow; ``--columns`` can name them."""
    names = table.schema.names
    return [name for name in names if not name.startswith("_hoodie_")] or names
