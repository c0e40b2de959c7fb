"""``hoodie log-compact``: join many small log files of a file group into one, in this process or on Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.commands.compact import EngineName, On, open_engine
from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import (
    AsJson,
    Debug,
    EndpointUrl,
    HudiOptions,
    Merger,
    Metadata,
    StorageOptions,
    TableUri,
    Timezone,
    load_merger,
    parse_hudi_options,
    parse_storage_options,
)

Blocks = Annotated[
    int | None,
    typer.Option("--blocks", min=1, metavar="N", help="Join the logs that have blocks of so many commits; default 5."),
]


def log_compact(
    table: TableUri,
    engine: On = EngineName.local,
    blocks: Blocks = None,
    merger: Merger = None,
    option: HudiOptions = None,
    metadata_mode: Metadata = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Join many small log files of a file group into one; base files are neither read nor written.

    If there is nothing to plan, the oldest pending plan is carried out.
    """
    from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD

    options = dict(parse_hudi_options(option, metadata_mode))
    options |= {} if blocks is None else {str(BLOCKS_THRESHOLD): str(blocks)}
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import print_result, show_spinner

        with show_spinner("reading the table's metadata"):
            opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
        own = load_merger(opened.config, merger)
        with open_engine(engine, "hoodie log-compact") as chosen, show_spinner("joining log files"):
            result = opened.log_compact(chosen, options, merger=own)
        print_result(result, as_json)
