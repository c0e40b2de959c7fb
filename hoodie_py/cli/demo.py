"""``hoodie demo``: a small table that Java Hudi wrote, its files and log blocks, and what merging does to its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli.options import Debug, EndpointUrl, StorageOptions, storage_options
from hoodie_py.cli.reporting import reported
from hoodie_py.cli.values import number_of, size_of

if TYPE_CHECKING:
    from rich.console import Console

    from hoodie_py.cli.merge_view import KeyStory
    from hoodie_py.hoodie_table import HoodieTable

Keep = Annotated[
    str | None, typer.Option("--keep", metavar="TABLE", help="Leave the table there: a new folder, or a URI.")
]
WithSpark = Annotated[
    bool, typer.Option("--spark/--no-spark", help="Read the table through PySpark too, where it is installed.")
]

COLUMNS = ("id", "name", "price", "ts")
KEY, SHOWN = COLUMNS[0], COLUMNS[1:]
WIDTH = 88


def demo(
    keep: Keep = None,
    with_spark: WithSpark = True,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    debug: Debug = False,
) -> None:
    """Show a small table that Java Hudi wrote and how its rows merge."""
    with reported(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import stdout
        from hoodie_py.cli.demo_table import demo_table
        from hoodie_py.cli.merge_view import key_stories

        console = stdout(WIDTH)
        options = storage_options(storage_option, endpoint_url)
        with demo_table(keep, options) as uri:
            table = HoodieTable.open(uri, options if keep else None)
            name = keep or "TABLE"
            _introduce(console, table, name)
            _show_files(console, table, name)
            _show_blocks(console, table, name)
            stories = key_stories(table, SHOWN)
            _show_merge(console, stories, name)
            if with_spark:
                _show_spark(console, uri, options if keep else {}, stories, debug)
        _say_what_next(console, keep)


def _heading(console: Console, number: int, title: str, command: str | None = None) -> None:
    from rich.text import Text

    line = Text(f"\n{number}. {title}", style="bold")
    if command:
        line.append(f"   $ {command}", style="not bold cyan")
    console.print(line)


def _introduce(console: Console, table: HoodieTable, name: str) -> None:
    from rich.text import Text

    from hoodie_py.cli.console import facts

    config = table.config
    console.print(Text("A merge-on-read table that Java Hudi wrote, read in Python."))
    _heading(console, 1, "The table", f"hoodie show {name}")
    pairs = [
        ("name", config.name),
        ("type", f"{config.table_type}, version {config.version}"),
        ("record key", ", ".join(config.record_key_fields)),
        ("partitioned by", ", ".join(config.partition_fields)),
        ("merge mode", f"{config.merge_mode.value} by {', '.join(config.ordering_fields)}"),
        ("columns", ", ".join(column for column in table.schema.names if not column.startswith("_hoodie_"))),
        ("commits", str(len(table.timeline.writes()))),
    ]
    console.print(facts(pairs))


def _show_files(console: Console, table: HoodieTable, name: str) -> None:
    from rich.text import Text
    from rich.tree import Tree

    _heading(console, 2, "Its files", f"hoodie slices {name} --files")
    for file_slice in table.file_slices():
        tree = Tree(Text(file_slice.partition_path + "/", style="bold"), guide_style="dim")
        base = file_slice.base_file
        below = tree
        if base is not None:
            below = tree.add(Text.assemble(("base ", "green"), f"{base.instant}  {size_of(base.size)}"))
        for log in file_slice.log_files:
            below.add(Text.assemble(("log  ", "yellow"), f"{log.name.instant}  {size_of(log.size)}"))
        console.print(tree)


def _show_blocks(console: Console, table: HoodieTable, name: str) -> None:
    from hoodie_py.cli.console import Column, build_table
    from hoodie_py.cli.log import describe, header_summary

    last = table.file_slices()[-1]
    _heading(
        console,
        3,
        f"What the log files of {last.partition_path}/ hold",
        f"hoodie log {name}/{last.partition_path}/.…log…",
    )
    rows = [
        [block["type"], block["instant"], str(block["records"]), header_summary(block["headers"])]
        for log in last.log_files
        for block in describe(table.files.read(log.path))[0]
    ]
    columns = [
        Column("block", style="bold", keep=True),
        Column("instant", style="cyan", keep=True),
        Column("records", "right"),
    ]
    console.print(build_table([*columns, Column("headers")], rows))


def _show_merge(console: Console, stories: Sequence[KeyStory], name: str) -> None:
    from collections import Counter

    from rich.text import Text

    from hoodie_py.cli.merge_view import STYLES, side_by_side

    _heading(console, 4, "What merging did", f"hoodie read {name}")
    console.print(Text(f"Each record's {', '.join(SHOWN[:-1])} and {SHOWN[-1]}:", style="dim"))
    console.print(side_by_side(stories, SHOWN))
    counts = Counter(story.outcome for story in stories)
    summary = Text(f"{number_of(sum(story.base is not None for story in stories), 'base row')}: ")
    parts = [Text(f"{counts[outcome]} {outcome}", style=style) for outcome, style in STYLES.items() if counts[outcome]]
    summary.append_text(Text(", ").join(parts))
    summary.append(f"; {number_of(sum(story.merged is not None for story in stories), 'merged row')}")
    console.print(summary)
    console.print(Text("The higher ts wins. These deletes carry no ts, so they count by their arrival.", style="dim"))


def _show_spark(
    console: Console, uri: str, options: Mapping[str, Any], stories: Sequence[KeyStory], debug: bool
) -> None:
    from rich.text import Text

    from hoodie_py.cli.console import Column, build_table, note
    from hoodie_py.cli.java import missing_for_spark
    from hoodie_py.cli.values import text_of

    _heading(console, 5, "The same through PySpark")
    missing = missing_for_spark()
    if missing:
        console.print(Text(f"Left out. {missing}", style="yellow"))
        return
    from hoodie_py.cli.demo_spark import read_with_spark

    note("starting Spark ...")
    rows = read_with_spark(uri, COLUMNS, options, debug)
    console.print(Text('register(spark); spark.read.format("hoodie").load(path)', style="cyan"))
    console.print(
        build_table([Column(name) for name in COLUMNS], [[text_of(row[name]) for name in COLUMNS] for row in rows])
    )
    merged: list[dict[str, Any]] = [{KEY: story.key, **story.merged} for story in stories if story.merged is not None]
    if rows != merged:
        raise RuntimeError("Spark gave other rows than the read in process")
    console.print(Text("The same rows as above.", style="green"))


def _say_what_next(console: Console, keep: str | None) -> None:
    from rich.text import Text

    console.print(Text("\nNext", style="bold"))
    place = keep or "my_table"
    lines = [
        *([] if keep else [("hoodie demo --keep my_table", "the same table, to keep")]),
        (f"hoodie timeline {place}", "its commits"),
        (f"hoodie read {place} --where \"part = 'p1'\"", "rows that a filter selects"),
        (f"hoodie read {place} --query-type read_optimized", "base files alone"),
        ("hoodie doctor", "what else to install"),
    ]
    for command, what in lines:
        console.print(Text.assemble(("  " + command.ljust(52), "cyan"), what))
    console.print(Text("\nIn Python: HoodieTable.open(path).scan().to_arrow() - see docs/quickstart.md"))
