"""``hoodie demo``: create, change, read and compact a small table, and show its files and its merged rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli.console import make_stdout, print_note, report_errors
from hoodie_py.cli.options import Debug, EndpointUrl, StorageOptions, parse_storage_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hoodie_py.cli.demo.views import Page
    from hoodie_py.hoodie_table import HoodieTable

Keep = Annotated[
    str | None, typer.Option("--keep", metavar="TABLE", help="Keep the table here: a new folder or a URI.")
]
WithSpark = Annotated[
    bool, typer.Option("--spark/--no-spark", help="Read and compact with PySpark, too, if it is installed.")
]
Compact = Annotated[bool, typer.Option("--compact/--no-compact", help="Compact the table, or keep its log files.")]

WIDTH = 88
LOOKED_INTO = "p1"


def demo(
    keep: Keep = None,
    with_spark: WithSpark = True,
    compact: Compact = True,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    debug: Debug = False,
) -> None:
    """Create a small table, change it, and show how its rows merge."""
    with report_errors(debug):
        from hoodie_py.cli.demo.views import Page

        page = Page(make_stdout(WIDTH))
        options = parse_storage_options(storage_option, endpoint_url) if keep else {}
        with _open_place(keep, options) as uri, ExitStack() as stack:
            name = keep or "TABLE"
            page.say("A merge-on-read table of Apache Hudi, made, changed and read in Python.")
            table = _make_table(page, uri, options)
            _change_table(page, table)
            rows = _show_merge(page, table, name)
            spark = _read_in_spark(page, stack, uri, options, rows, debug) if with_spark else None
            _read_with_own_merger(page, table, rows)
            if compact:
                _compact(page, table, spark, rows)
        _show_next_steps(page, keep, compacted=compact)


@contextmanager
def _open_place(keep: str | None, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the URI for a table: ``keep``, or a temporary folder that is removed after the block.

    Raises:
        InvalidQueryError: the place is not empty.
        StorageError: the place cannot be listed.
    """
    import tempfile

    from hoodie_py.errors import InvalidQueryError
    from hoodie_py.files import TableFiles

    if keep is None:
        with tempfile.TemporaryDirectory(prefix="hoodie-demo-") as folder:
            yield str(Path(folder) / "demo_table")
        return
    target = TableFiles.open(keep, options)
    if target.list_or_empty(""):
        hint = "Give --keep a new folder."
        raise InvalidQueryError("There is something at that place already.", path=target.uri, hint=hint)
    yield target.uri


def _make_table(page: Page, uri: str, options: Mapping[str, Any]) -> HoodieTable:
    from hoodie_py.cli.demo import steps

    page.start_part("Make a table")
    page.show_code(steps.read_code(steps.create))
    table = steps.create(uri, options)
    page.show_table(table)
    return table


def _change_table(page: Page, table: HoodieTable) -> None:
    from hoodie_py.cli.demo import steps

    titles = {
        steps.insert: "Write eight rows",
        steps.update: "Update three of them",
        steps.delete: "Delete by keys",
        steps.arrive_late: "Updates out of order: two after the delete, one older than its row",
        steps.delete_some: "Delete by a filter",
    }
    for step in steps.WRITES:
        page.start_part(titles[step])
        if step is steps.insert:
            page.show_code(steps.read_code(steps.make_row, whole=True), "")
            page.show_code(f"small = {steps.small}  # a small bloom filter in each file")
        page.show_code(steps.read_code(step))
        page.say(str(step(table)), "dim")


def _show_merge(page: Page, table: HoodieTable, name: str) -> list[dict[str, Any]]:
    """Show the files, log blocks and merged rows of the table, and return the rows."""
    from hoodie_py.cli.demo.merge_view import collect_key_merges
    from hoodie_py.cli.demo.views import SHOWN, list_merged_rows

    page.start_part("Its files: updates and deletes lie in logs", f"hoodie slices {name} --files")
    page.show_files(table)
    page.start_part(f"What the logs of {LOOKED_INTO}/ hold", f"hoodie log {name}/{LOOKED_INTO}/.…log…")
    page.show_blocks(table, LOOKED_INTO)
    page.start_part("What merging did", f"hoodie read {name}")
    stories = collect_key_merges(table, SHOWN)
    page.show_merge(stories)
    page.say("The higher ts wins. Deletes by key carry no ts, so they count by their arrival.", "dim")
    return list_merged_rows(stories)


def _read_in_spark(
    page: Page, stack: ExitStack, uri: str, options: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], debug: bool
) -> SparkSession | None:
    """Read the table with PySpark and return the session; None if PySpark cannot run."""
    from hoodie_py.cli.commands.doctor import find_missing_for_spark
    from hoodie_py.cli.demo import steps
    from hoodie_py.cli.demo.views import COLUMNS

    page.start_part("The same through PySpark")
    missing = find_missing_for_spark()
    if missing:
        page.say(f"Left out. {missing}", "yellow")
        return None
    from hoodie_py.cli.demo.spark import read_rows, start_spark
    from hoodie_py.spark.process import use_session

    print_note("starting Spark ...")
    spark = stack.enter_context(use_session(lambda: start_spark(debug)))
    page.show_code(steps.read_code(steps.read_in_spark))
    found = read_rows(spark, uri, COLUMNS, options)
    page.show_rows(found)
    _check_same_rows(page, found, rows)
    return spark


def _read_with_own_merger(page: Page, table: HoodieTable, rows: Sequence[Mapping[str, Any]]) -> None:
    from hoodie_py.cli.demo import steps
    from hoodie_py.cli.demo.views import to_rows

    page.start_part("Who wins is up to you: a merger of your own")
    page.show_code(steps.read_code(steps.HighestPrice, whole=True), "", steps.read_code(steps.read_merged_by_price))
    page.show_rows(to_rows(steps.read_merged_by_price(table).to_arrow()), before=rows)
    page.say("k3 keeps the higher price of its base row, and k6 takes the one that came too late.", "dim")


def _compact(page: Page, table: HoodieTable, spark: SparkSession | None, rows: Sequence[Mapping[str, Any]]) -> None:
    from hoodie_py.cli.demo import steps
    from hoodie_py.cli.demo.spark import report_spark_errors
    from hoodie_py.cli.demo.views import to_rows

    page.start_part("Compact: logs become base files" + (", as a Spark job" if spark is not None else ""))
    page.show_code(steps.read_code(steps.compact) if spark is not None else "table.compact(options=small)")
    with report_spark_errors("Compaction in PySpark failed"):
        result = steps.compact(table, spark)
    page.say(str(result), "dim")
    after = table.refresh()
    page.show_files(after)
    page.start_part("Read it again")
    page.show_code("table.refresh().scan().to_arrow()")
    found = to_rows(after.scan().to_arrow())
    page.show_rows(found)
    _check_same_rows(page, found, rows)


def _check_same_rows(page: Page, found: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> None:
    if list(found) != list(rows):
        raise RuntimeError("The rows differ from those that merging gave before.")
    page.say("The same rows as above.", "green")


def _show_next_steps(page: Page, keep: str | None, *, compacted: bool) -> None:
    place = keep or "my_table"
    commands = [
        *([] if keep else [("hoodie demo --no-compact --keep my_table", "the same table, to keep")]),
        (f"hoodie timeline {place}", "its commits"),
        (f"hoodie explain {place} k1", "a record's versions, and who won"),
        (f"hoodie read {place} --where \"part = 'p1'\"", "rows that a filter selects"),
        *([] if compacted and keep else [(f"hoodie compact {place}", "merge its logs")]),
        (f"hoodie write {place} --from FILE", "Parquet, CSV or NDJSON"),
        ("hoodie doctor", "what else to install"),
    ]
    page.show_commands("Next", commands)
    page.say("\nIn Python: docs/quickstart.md, docs/writing.md; in Spark: docs/spark.md")
