"""``hoodie upgrade`` and ``hoodie downgrade``: bring a table to another table version."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import (
    AsJson,
    Debug,
    DryRun,
    EndpointUrl,
    HudiOptions,
    Merger,
    StorageOptions,
    TableUri,
    Timezone,
    load_merger,
    parse_hudi_options,
    parse_storage_options,
)

To = Annotated[int, typer.Option("--to", metavar="VERSION", help="Table version: 6, 8 or 9.")]


def upgrade(
    table: TableUri,
    to: To = 9,
    dry_run: DryRun = False,
    merger: Merger = None,
    option: HudiOptions = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Bring the table to a later table version. Stop writers of older releases before."""
    _run(True, table, to, dry_run, merger, option, timezone, storage_option, endpoint_url, as_json, debug)


def downgrade(
    table: TableUri,
    to: To,
    dry_run: DryRun = False,
    merger: Merger = None,
    option: HudiOptions = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Bring the table to an earlier table version, 8 or 6. Indexes that it does not know are dropped."""
    _run(False, table, to, dry_run, merger, option, timezone, storage_option, endpoint_url, as_json, debug)


def _run(
    upwards: bool,
    table: str,
    to: int,
    dry_run: bool,
    merger: str | None,
    option: list[str] | None,
    timezone: str | None,
    storage_option: list[str] | None,
    endpoint_url: str | None,
    as_json: bool,
    debug: bool,
) -> None:
    options = parse_hudi_options(option)
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import print_result, show_spinner

        with show_spinner("upgrading" if upwards else "downgrading"):
            opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
            change = opened.upgrade if upwards else opened.downgrade
            result = change(to, dry_run=dry_run, options=options, merger=load_merger(opened.config, merger))
        print_result(result, as_json)
