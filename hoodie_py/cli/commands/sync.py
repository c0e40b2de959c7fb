"""``hoodie sync``: register a table in a catalog, or bring its entry there up to date."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from hoodie_py.cli import options as cli_options
from hoodie_py.cli.config import load_config
from hoodie_py.cli.console import print_json, print_text, report_errors, show_spinner

Database = Annotated[
    str | None, typer.Option("--database", metavar="NAME", help="Database in the catalog; default the table's own.")
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Name in the catalog; default the table's own.")
]


def sync(
    table: cli_options.TableUri,
    catalog: cli_options.CatalogKind = "hive",
    uri: cli_options.CatalogUri = None,
    database: Database = None,
    name: Name = None,
    dry_run: cli_options.DryRun = False,
    catalog_option: cli_options.CatalogOptions = None,
    option: cli_options.HudiOptions = None,
    storage_option: cli_options.StorageOptions = None,
    endpoint_url: cli_options.EndpointUrl = None,
    as_json: cli_options.AsJson = False,
    debug: cli_options.Debug = False,
) -> None:
    """Register a table in a Hive Metastore or in AWS Glue, or bring its entries there up to date.

    Columns, partitions and the newest commit; what is up to date is not written. Trino, Athena and Spark find it there.
    """
    options = cli_options.parse_hudi_options(option)
    clients = dict(cli_options.split_pairs(catalog_option, "--catalog-option", ", such as region_name=eu-west-1"))
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.catalog import open_catalog

        named = load_config().catalogs.get(catalog)
        if named is not None:
            catalog, uri, clients = named.kind, uri or named.uri, {**named.options, **clients}
        opened = HoodieTable.open(table, cli_options.parse_storage_options(storage_option, endpoint_url))
        with show_spinner("comparing with the catalog"), open_catalog(catalog, uri, {**options, **clients}) as chosen:
            result = opened.sync(chosen, database, name, options, dry_run)
        if as_json:
            print_json({"has_changed": result.has_changed, **dataclasses.asdict(result)})
        else:
            lines = ["Dry run: nothing was written to the catalog."] if dry_run else []
            print_text("\n".join([*map(str, result.entries), *lines]))
