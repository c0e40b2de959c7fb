"""Spark's streams of a table with a history: all batches from the beginning, as its reader plans them."""

from __future__ import annotations

import pyarrow as pa

from hoodie_py import HoodieError, HoodieTable, InvalidQueryError
from hoodie_py.spark.load_options import LoadOptions
from hoodie_py.spark.pin import open_table
from hoodie_py.spark.stream.history import History
from hoodie_py.spark.stream.limits import Limits
from hoodie_py.spark.stream.offset import BEGINNING, StreamOffset
from hoodie_py.spark.stream.options import StreamOptions
from integration.histories.findings import Difference, tell_apart
from integration.histories.past import Past, find_columns
from integration.histories.ranges import Way
from integration.histories.rules import Row


def check_stream(past: Past, table: HoodieTable, commits: int) -> None:
    """Read batches of so many commits until none is left, and compare each with the model.

    The first has the rows of its end, the others what their commits changed. One whose files are gone is an error.

    Raises:
        Difference: a batch is wrong.
    """
    if past.kind.virtual or past.merger:  # rows do not say who wrote them; a registered class would be needed
        return
    columns = find_columns(table)
    schema = table.scan().schema
    target = pa.schema([schema.field(name) for name in columns])
    options = StreamOptions.parse(LoadOptions.parse({"path": past.uri}, {}))
    history = History(open_table(options.load), options)
    start = history.find_start()
    while (end := history.choose_end(start, Limits(commits), None)).position != start.position:
        past.counts.ranges["batches of streams"] += 1
        what = f"a batch from {start.position or 'the beginning'} to {end.position} of a stream"
        try:
            found = history.make_scan(start, end, target).to_arrow()
        except HoodieError as error:
            if not (past.is_cleaned or past.is_archived) or not isinstance(error, InvalidQueryError):
                raise Difference(f"{what} fails: {error}") from error
            past.counts.ranges["batches of streams refused"] += 1
            return
        rows = [tuple(-1 if value is None else value for value in row.values()) for row in found.to_pylist()]
        tell_apart(what, sorted(rows), Way().select(_expect(past, start, end), columns))
        start = end


def _expect(past: Past, start: StreamOffset, end: StreamOffset) -> list[tuple[Row, str]]:
    if start.position == BEGINNING:
        return past.model.rows_of(past.commits_in("", end.position))
    return past.model.changed_in(past.commits_in(start.position, end.position) - past.model.folded)
