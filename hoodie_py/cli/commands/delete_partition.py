"""``hoodie delete-partition``: delete all rows of partitions by one replace commit."""

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

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PARTITION...", help="Paths as they are on disk, such as sf, or city=sf; * stands for any characters."
    ),
]


def delete_partition(
    table: TableUri,
    partitions: Paths,
    merger: Merger = None,
    option: HudiOptions = None,
    metadata_mode: Metadata = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Delete all rows of partitions, without reading any; cleans remove the files later."""
    options = parse_hudi_options(option, metadata_mode)
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import print_result, show_spinner

        with show_spinner("deleting partitions"):
            opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
            given = load_merger(opened.config, merger)
            result = opened.delete_partition(partitions, options, merger=given, missing_ok=False)
        print_result(result, as_json)
