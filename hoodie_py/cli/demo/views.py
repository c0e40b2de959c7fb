"""The output of ``hoodie demo``: headings, code, files, log blocks, and merged rows beside base rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from hoodie_py.cli.commands.log import describe, summarize_headers
from hoodie_py.cli.console import Column, build_facts, build_table
from hoodie_py.cli.demo.merge_view import STYLES, KeyMerge, build_merge_table
from hoodie_py.cli.values import format_size, to_text
from hoodie_py.runtime.wording import format_count
from hoodie_py.table.bounded import read_bounded

if TYPE_CHECKING:
    from hoodie_py.hoodie_table import HoodieTable

COLUMNS = ("id", "name", "price", "ts")
KEY, SHOWN = COLUMNS[0], COLUMNS[1:]

Row = Mapping[str, Any]


class Page:
    """Prints the demo: numbered parts of code, results and remarks."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._parts = 0

    def start_part(self, title: str, command: str | None = None) -> None:
        """Print the title of the next part, and a command that shows the same."""
        self._parts += 1
        line = Text(f"\n{self._parts}. {title}", style="bold")
        if command:
            line.append(f"   $ {command}", style="not bold cyan")
        self._console.print(line)

    def show_code(self, *pieces: str) -> None:
        """Print Python code."""
        for piece in pieces:
            self._console.print(Padding(Text(piece, style="cyan"), (0, 0, 0, 2)))

    def say(self, text: str, style: str = "") -> None:
        """Print a line of text."""
        self._console.print(Text(text, style=style))

    def show_commands(self, title: str, commands: Iterable[tuple[str, str]]) -> None:
        """Print commands with their purpose."""
        self._console.print(Text(f"\n{title}", style="bold"))
        for command, what in commands:
            self._console.print(Text.assemble(("  " + command.ljust(44), "cyan"), what))

    def show_table(self, table: HoodieTable) -> None:
        """Print type, keys and merge mode of a table."""
        config = table.config
        pairs = [
            ("type", f"{config.table_type}, version {config.version}"),
            ("record key", ", ".join(config.record_key_fields)),
            ("partitioned by", ", ".join(config.partition_fields)),
            ("merge mode", f"{config.merge_mode.value} by {', '.join(config.ordering_fields)}"),
        ]
        self._console.print(build_facts(pairs))

    def show_files(self, table: HoodieTable) -> None:
        """Print the base and log files of each file slice."""
        for file_slice in table.file_slices():
            tree = Tree(Text(file_slice.partition_path + "/", style="bold"), guide_style="dim")
            base = file_slice.base_file
            below = tree
            if base is not None:
                below = tree.add(Text.assemble(("base ", "green"), f"{base.instant}  {format_size(base.size)}"))
            for log in file_slice.log_files:
                below.add(Text.assemble(("log  ", "yellow"), f"{log.name.instant}  {format_size(log.size)}"))
            self._console.print(tree)

    def show_blocks(self, table: HoodieTable, partition: str) -> None:
        """Print the blocks of a partition's log files."""
        rows = [
            [block["type"], block["instant"], str(block["records"]), summarize_headers(block["headers"])]
            for file_slice in table.file_slices()
            for log in file_slice.log_files
            if file_slice.partition_path == partition
            for block in describe(read_bounded(table.files, log.path, "log_bytes"))[0]
        ]
        columns = [
            Column("block", style="bold", keep=True),
            Column("instant", style="cyan", keep=True),
            Column("records", "right"),
        ]
        self._console.print(build_table([*columns, Column("headers")], rows))

    def show_merge(self, stories: Sequence[KeyMerge]) -> None:
        """Print base rows, log entries and merged rows side by side."""
        self.say(f"Each record's {', '.join(SHOWN[:-1])} and {SHOWN[-1]}:", "dim")
        self._console.print(build_merge_table(stories, SHOWN))
        counts = Counter(story.outcome for story in stories)
        summary = Text(f"{format_count(sum(story.base is not None for story in stories), 'base row')}: ")
        parts = [
            Text(f"{counts[outcome]} {outcome}", style=style) for outcome, style in STYLES.items() if counts[outcome]
        ]
        summary.append_text(Text(", ").join(parts))
        summary.append(f"; {format_count(sum(story.merged is not None for story in stories), 'merged row')}")
        self._console.print(summary)

    def show_rows(self, rows: Sequence[Row], before: Sequence[Row] | None = None) -> None:
        """Print rows; rows that are not in ``before`` are yellow."""
        lines = []
        for row in rows:
            style = "" if before is None or row in before else "yellow"
            lines.append([Text(to_text(row[name]), style=style) for name in COLUMNS])
        self._console.print(build_table([Column(name) for name in COLUMNS], lines))


def to_rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows of an Arrow table, sorted by key."""
    rows: list[dict[str, Any]] = table.select(COLUMNS).to_pylist()
    return sorted(rows, key=lambda row: str(row[KEY]))


def list_merged_rows(stories: Sequence[KeyMerge]) -> list[dict[str, Any]]:
    """Return the merged rows, sorted by key."""
    return [{KEY: story.key, **story.merged} for story in stories if story.merged is not None]
