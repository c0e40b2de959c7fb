"""``hoodie demo`` makes a small table, changes, reads and compacts it, and shows its files and what merging does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli.options import Debug, EndpointUrl, StorageOptions, storage_options
from hoodie_py.cli.reporting import reported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hoodie_py.cli.demo_views import Page
    from hoodie_py.hoodie_table import HoodieTable

Keep = Annotated[
    str | None, typer.Option("--keep", metavar="TABLE", help="Leave the table there: a new folder, or a URI.")
]
WithSpark = Annotated[
    bool, typer.Option("--spark/--no-spark", help="Read and compact in PySpark too, where it is installed.")
]
Compact = Annotated[bool, typer.Option("--compact/--no-compact", help="Compact the table, or leave its log files.")]

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
    """Make a small table, change it, and show how its rows merge."""
    with reported(debug):
        from hoodie_py.cli.console import stdout
        from hoodie_py.cli.demo_place import demo_place
        from hoodie_py.cli.demo_views import Page

        page = Page(stdout(WIDTH))
        options = storage_options(storage_option, endpoint_url) if keep else {}
        with demo_place(keep, options) as uri, ExitStack() as stack:
            name = keep or "TABLE"
            page.say("A merge-on-read table of Apache Hudi, made, changed and read in Python.")
            table = _make(page, uri, options)
            _change(page, table)
            rows = _look(page, table, name)
            spark = _in_spark(page, stack, uri, options, rows, debug) if with_spark else None
            _merge_otherwise(page, table, rows)
            if compact:
                _compact(page, table, spark, rows)
        _say_what_next(page, keep, compacted=compact)


def _make(page: Page, uri: str, options: Mapping[str, Any]) -> HoodieTable:
    from hoodie_py.cli import demo_steps as steps

    page.part("Make a table")
    page.code(steps.code_of(steps.create))
    table = steps.create(uri, options)
    page.table_facts(table)
    return table


def _change(page: Page, table: HoodieTable) -> None:
    from hoodie_py.cli import demo_steps as steps

    titles = {
        steps.insert: "Write eight rows",
        steps.update: "Update three of them",
        steps.delete: "Delete by keys",
        steps.arrive_late: "Updates out of order: two after the delete, one older than its row",
        steps.delete_some: "Delete by a filter",
    }
    for step in steps.WRITES:
        page.part(titles[step])
        if step is steps.insert:
            page.code(steps.code_of(steps.row, whole=True), "")
            page.code(f"small = {steps.small}  # a small bloom filter in each file")
        page.code(steps.code_of(step))
        page.say(str(step(table)), "dim")


def _look(page: Page, table: HoodieTable, name: str) -> list[dict[str, Any]]:
    """Show files, blocks and merge, and return the merged rows."""
    from hoodie_py.cli.demo_views import SHOWN, merged_rows
    from hoodie_py.cli.merge_view import key_stories

    page.part("Its files: updates and deletes lie in logs", f"hoodie slices {name} --files")
    page.files(table)
    page.part(f"What the logs of {LOOKED_INTO}/ hold", f"hoodie log {name}/{LOOKED_INTO}/.…log…")
    page.blocks(table, LOOKED_INTO)
    page.part("What merging did", f"hoodie read {name}")
    stories = key_stories(table, SHOWN)
    page.merge(stories)
    page.say("The higher ts wins. Deletes by key carry no ts, so they count by their arrival.", "dim")
    return merged_rows(stories)


def _in_spark(
    page: Page, stack: ExitStack, uri: str, options: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], debug: bool
) -> SparkSession | None:
    """Read through PySpark, and return the session; None where there can be none."""
    from hoodie_py.cli import demo_steps as steps
    from hoodie_py.cli.console import note
    from hoodie_py.cli.demo_views import COLUMNS
    from hoodie_py.cli.java import missing_for_spark

    page.part("The same through PySpark")
    missing = missing_for_spark()
    if missing:
        page.say(f"Left out. {missing}", "yellow")
        return None
    from hoodie_py.cli.demo_spark import read_rows, spark_session

    note("starting Spark ...")
    spark = stack.enter_context(spark_session(debug))
    page.code(steps.code_of(steps.read_in_spark))
    found = read_rows(spark, uri, COLUMNS, options)
    page.rows(found)
    _must_be_same(page, found, rows)
    return spark


def _merge_otherwise(page: Page, table: HoodieTable, rows: Sequence[Mapping[str, Any]]) -> None:
    from hoodie_py.cli import demo_steps as steps
    from hoodie_py.cli.demo_views import rows_of

    page.part("Who wins is up to you: a merger of your own")
    page.code(steps.code_of(steps.HighestPrice, whole=True), "", steps.code_of(steps.read_merged_by_price))
    page.rows(rows_of(steps.read_merged_by_price(table).to_arrow()), before=rows)
    page.say("k3 keeps the higher price of its base row, and k6 takes the one that came too late.", "dim")


def _compact(page: Page, table: HoodieTable, spark: SparkSession | None, rows: Sequence[Mapping[str, Any]]) -> None:
    from hoodie_py.cli import demo_steps as steps
    from hoodie_py.cli.demo_spark import spark_problems
    from hoodie_py.cli.demo_views import rows_of

    page.part("Compact: logs become base files" + (", as a Spark job" if spark is not None else ""))
    page.code(steps.code_of(steps.compact) if spark is not None else "table.compact(options=small)")
    with spark_problems("Compaction in PySpark failed"):
        result = steps.compact(table, spark)
    page.say(str(result), "dim")
    after = table.refresh()
    page.files(after)
    page.part("Read it again")
    page.code("table.refresh().scan().to_arrow()")
    found = rows_of(after.scan().to_arrow())
    page.rows(found)
    _must_be_same(page, found, rows)


def _must_be_same(page: Page, found: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> None:
    if list(found) != list(rows):
        raise RuntimeError("these are other rows than merging gave at first")
    page.say("The same rows as above.", "green")


def _say_what_next(page: Page, keep: str | None, *, compacted: bool) -> None:
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
    page.next("Next", commands)
    page.say("\nIn Python: docs/quickstart.md, docs/writing.md; in Spark: docs/spark.md")
