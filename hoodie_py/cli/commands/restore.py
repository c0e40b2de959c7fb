"""``hoodie restore``: take a table back to a savepoint."""

from __future__ import annotations

from typing import Annotated

import typer

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

Instant = Annotated[str, typer.Argument(metavar="INSTANT", help="Request time of a savepoint.")]


def restore(
    table: TableUri,
    instant: Instant,
    merger: Merger = None,
    option: HudiOptions = None,
    metadata_mode: Metadata = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take the table back to a savepoint: all later writes are undone, with their files. Stop all writers before."""
    options = parse_hudi_options(option, metadata_mode)
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import print_result, show_spinner

        with show_spinner("restoring"):
            opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
            result = opened.restore(instant, options, merger=load_merger(opened.config, merger))
        print_result(result, as_json)
