"""``hoodie rollback``: undo an instant that has not completed."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import (
    AsJson,
    Debug,
    EndpointUrl,
    HudiOptions,
    StorageOptions,
    TableUri,
    Timezone,
    parse_hudi_options,
    parse_storage_options,
)

Instant = Annotated[str, typer.Argument(metavar="INSTANT", help="Request time of a pending instant.")]


def rollback(
    table: TableUri,
    instant: Instant,
    option: HudiOptions = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Undo an instant that has not completed: a write that failed, or a compaction.

    A compaction under way goes back to requested; a requested one is removed.
    """
    options = parse_hudi_options(option)
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import print_result, show_spinner

        with show_spinner("rolling back"):
            opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
            result = opened.rollback(instant, options)
        print_result(result, as_json)
