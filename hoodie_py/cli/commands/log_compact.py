"""``hoodie log-compact``: join many small log files of a file group into one, in this process or on Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.commands.compact import EngineName, On, open_engine
from hoodie_py.cli.options import (
    Merger,
    load_merger,
)
from hoodie_py.cli.table_command import TableCommand, table_command

Blocks = Annotated[
    int | None,
    typer.Option("--blocks", min=1, metavar="N", help="Join the logs that have blocks of so many commits; default 5."),
]


@table_command("option", "metadata_mode", "timezone")
def log_compact(
    command: TableCommand,
    engine: On = EngineName.local,
    blocks: Blocks = None,
    merger: Merger = None,
) -> None:
    """Join many small log files of a file group into one; base files are neither read nor written.

    If there is nothing to plan, the oldest pending plan is carried out.
    """
    from hoodie_py.cli.console import print_result, show_spinner
    from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD

    options = dict(command.options)
    options |= {} if blocks is None else {str(BLOCKS_THRESHOLD): str(blocks)}

    with show_spinner("reading the table's metadata"):
        opened = command.open()
    own = load_merger(opened.config, merger)
    with open_engine(engine, "hoodie log-compact") as chosen, show_spinner("joining log files"):
        result = opened.log_compact(chosen, options, merger=own)
    print_result(result, command.as_json)
