"""Output of the subcommands: results go to stdout, everything else to stderr.

Colours and progress bars need a terminal, and there tables are made to fit. If stdout is no terminal, nothing is cut
off, so that ``hoodie ... | grep`` gets whole values (unless COLUMNS sets a width).

Errors and warnings are one line on stderr; only ``--debug`` prints tracebacks. The exit status is 0 (done), 1 (failed)
or 2 (wrong usage, from typer).
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hoodie_py.cli.values import escape_controls
from hoodie_py.errors import HoodieError, HoodieWarning

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

UNLIMITED_WIDTH = 10_000
T = TypeVar("T")


class DataConsole(Console):
    """A console that prints text unchanged: without markup, emoji codes or colours of its own."""

    def __init__(self, file: IO[str] | None = None, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(file=file, width=width, stderr=stderr, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as rich shows it, with control characters escaped.

        Text from a table must not change the terminal.
        """
        return super().render_str(escape_controls(text, lines=True), **options)

    def on_broken_pipe(self) -> None:
        """Raise an error, so that the command ends quietly; rich would end the process with a failure."""
        raise BrokenPipeError


class PlainConsole(DataConsole):
    """A console for files and pipes: wide, and without trailing blanks."""

    def __init__(self, file: IO[str] | None = None, width: int | None = None) -> None:
        super().__init__(file, width or UNLIMITED_WIDTH)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print the objects."""
        with self.capture() as captured:
            super().print(*objects, **options)
        self.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def make_stdout(width: int | None = None) -> Console:
    """Return the console for results; ``width`` applies if stdout is no terminal."""
    console = DataConsole()
    if console.is_terminal or os.environ.get("COLUMNS"):
        return console
    return PlainConsole(width=width)


def make_stderr() -> Console:
    """Return the console for messages."""
    return DataConsole(stderr=True)


def print_note(message: str, style: str = "dim") -> None:
    """Print a message to stderr."""
    make_stderr().print(Text(escape_controls(message), style=style), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a result as JSON."""
    typer.echo(json.dumps(value, indent=2))


def print_text(text: str) -> None:
    """Print a text that may contain names and values of a table, with control characters escaped."""
    typer.echo(escape_controls(text, lines=True))


def print_path(path: str) -> None:
    """Print a path. For a terminal, control characters are escaped; files and pipes get the exact path."""
    typer.echo(escape_controls(path) if sys.stdout.isatty() else path, color=True)  # or typer removes sequences


def print_result(result: DataclassInstance, as_json: bool) -> None:
    """Print the result of a table operation: its fields as JSON, or its text."""
    if as_json:
        print_json(dataclasses.asdict(result))
    else:
        print_text(str(result))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table on the terminal; ``keep`` forbids folding its values into several lines."""

    name: str
    justify: JustifyMethod = "left"
    style: str | None = None
    keep: bool = False


def build_table(columns: Sequence[Column], rows: Iterable[Sequence[str | Text]], title: str | None = None) -> Table:
    """Return a table of values; their text is never read as markup."""
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        title=None if title is None else Text(escape_controls(title)),
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        table.add_column(
            Text(escape_controls(column.name)),
            justify=column.justify,
            style=column.style,
            no_wrap=column.keep,
            overflow="ellipsis" if column.keep else "fold",
        )
    for row in rows:
        table.add_row(*(value if isinstance(value, Text) else Text(escape_controls(value)) for value in row))
    return table


def build_facts(pairs: Iterable[tuple[str, str | Text | None]], title: str | None = None) -> Table:
    """Return names with values, one pair per line; pairs without a value are left out."""
    table = Table.grid(padding=(0, 2, 0, 0))
    if title:
        table.title, table.title_justify, table.title_style = Text(escape_controls(title)), "left", "bold"
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            table.add_row(
                Text(escape_controls(name)), value if isinstance(value, Text) else Text(escape_controls(value))
            )
    return table


@contextmanager
def show_progress(*columns: ProgressColumn) -> Iterator[Progress | None]:
    """Show a progress bar of one task on stderr during the block; yields None if stderr is no terminal."""
    console = make_stderr()
    if not console.is_terminal:
        yield None
        return
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task("", total=None)
        yield bar


def iterate_with_progress(items: Sequence[T], description: str) -> Iterator[T]:
    """Yield the items; a progress bar counts them if there are at least two."""
    if len(items) < 2:
        yield from items
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with show_progress(*columns) as bar:
        if bar is not None:
            bar.update(bar.task_ids[0], description=description, total=len(items))
        for item in items:
            yield item
            if bar is not None:
                bar.advance(bar.task_ids[0])


@contextmanager
def show_spinner(description: str) -> Iterator[None]:
    """Show a spinner on stderr during the block, if stderr is a terminal."""
    console = make_stderr()
    if not console.is_terminal:
        yield
        return
    with console.status(Text(description, style="dim")):
        yield


@contextmanager
def report_errors(debug: bool = False) -> Iterator[None]:
    """Run a subcommand's body; report an error and turn it into exit status 1."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", HoodieWarning)
            warnings.showwarning = _show_warning
            yield
            sys.stdout.flush()
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except BrokenPipeError:
        # The reader of stdout has ended (`hoodie read ... | head`), which is no failure. Python flushes stdout at exit,
        # so it must not point to the broken pipe any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    except Exception as error:  # noqa: BLE001 - users get a message and a status for every error
        _show_error(error, debug)
        raise typer.Exit(1) from None


def _show_error(error: Exception, debug: bool) -> None:
    if debug:
        make_stderr().print(
            Text(escape_controls("".join(traceback.format_exception(error)), lines=True), style="dim"), soft_wrap=True
        )
    line = Text("error: ", style="bold red")
    if isinstance(error, HoodieError):
        line.append(escape_controls(error.message), style="red")
        if error.where:
            place = ", ".join(f"{name}={value}" for name, value in error.where.items())
            line.append(escape_controls(f" [{place}]"), style="red dim")
        if error.hint:
            line.append(escape_controls(f" {error.hint}"), style="default not bold")
    elif isinstance(error, OSError):
        line.append(escape_controls(str(error)), style="red")
    else:
        line.append(escape_controls(f"unexpected {type(error).__name__}: {error}"), style="red")
        if not debug:
            line.append(" This is a bug in hoodie_py; --debug shows where.", style="default not bold")
    make_stderr().print(line, soft_wrap=True)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, HoodieWarning):
        print_note(f"warning: {message}", style="yellow")
