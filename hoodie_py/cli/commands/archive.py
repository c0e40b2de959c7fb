"""``hoodie archive``: move the oldest instants from the active timeline to the archive."""

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
    Metadata,
    StorageOptions,
    TableUri,
    Timezone,
    parse_hudi_options,
    parse_storage_options,
)

MinCommits = Annotated[
    int | None,
    typer.Option("--min-commits", min=1, metavar="N", help="Number of commits that stay active; default 20."),
]
MaxCommits = Annotated[
    int | None,
    typer.Option("--max-commits", min=1, metavar="N", help="Archive nothing up to this number; default 30."),
]


def archive(
    table: TableUri,
    min_commits: MinCommits = None,
    max_commits: MaxCommits = None,
    dry_run: DryRun = False,
    option: HudiOptions = None,
    metadata_mode: Metadata = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Move the oldest completed instants from the active timeline to the archive."""
    from hoodie_py.options.write import KEEP_MAX_COMMITS, KEEP_MIN_COMMITS

    options = dict(parse_hudi_options(option, metadata_mode))
    given = {KEEP_MIN_COMMITS: min_commits, KEEP_MAX_COMMITS: max_commits}
    options |= {str(key): str(value) for key, value in given.items() if value is not None}
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import print_result, show_spinner

        with show_spinner("looking at the timeline"):
            opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
            result = opened.archive(options, dry_run)
        print_result(result, as_json)
