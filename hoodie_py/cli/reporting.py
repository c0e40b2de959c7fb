"""Report errors and warnings of a subcommand in one line on stderr, and set the exit status.

The status is 0 (done), 1 (failed) or 2 (wrong usage, from typer). Only ``--debug`` prints tracebacks.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from hoodie_py.errors import HoodieError, HoodieWarning


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
    from rich.text import Text

    from hoodie_py.cli.console import make_stderr
    from hoodie_py.cli.values import escape_controls

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
    from hoodie_py.cli.console import print_note

    if issubclass(category, HoodieWarning):
        print_note(f"warning: {message}", style="yellow")
