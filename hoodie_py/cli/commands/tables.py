"""``hoodie tables``: list the tables that have names in the configuration or in catalogs."""

from __future__ import annotations

from typing import Any

import typer

from hoodie_py.cli.config import NamedCatalog, find_config_file, load_config
from hoodie_py.cli.console import Column, build_table, make_stdout, print_json, print_note, report_errors
from hoodie_py.cli.options import AsJson, CatalogUri, Debug, NamedCatalogs


def tables(
    catalog: NamedCatalogs = None,
    uri: CatalogUri = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the tables that have names: those of the configuration file and those of its catalogs.

    Every command takes such a name as TABLE. A catalog that fails is reported, and makes the exit status 1.
    """
    with report_errors(debug):
        from hoodie_py.errors import HoodieError

        config = load_config()
        catalogs = config.catalogs
        if catalog is not None:
            catalogs = {catalog: config.catalogs.get(catalog, NamedCatalog(catalog, uri))}
        found = [] if catalog is not None else [_describe(name, each.path) for name, each in config.tables.items()]
        failed = False
        for name, each in catalogs.items():
            try:
                found += _list_catalog(name, each, is_configured=name in config.catalogs)
            except HoodieError as error:
                if catalog is not None:
                    raise
                print_note(f"The catalog {name} failed: {error}", style="yellow")
                failed = True
        if as_json:
            print_json(found)
        elif found:
            _print(found)
        else:
            print_note(f"No table has a name. Names go into {find_config_file()}, as [tables.NAME] with path = ...")
    if failed:
        raise typer.Exit(1)


def _list_catalog(name: str, catalog: NamedCatalog, *, is_configured: bool) -> list[dict[str, Any]]:
    from hoodie_py.catalog import open_catalog

    with open_catalog(catalog.kind, catalog.uri, catalog.options) as opened:
        prefix = f"{name}:" if is_configured else ""
        return [_describe(f"{prefix}{each.name}", each.uri, each.instant, each.query_type) for each in opened.list()]


def _describe(name: str, path: str, instant: str | None = None, query_type: str = "snapshot") -> dict[str, Any]:
    return {"name": name, "path": path, "instant": instant, "query_type": query_type}


def _print(found: list[dict[str, Any]]) -> None:

    columns = [Column("name", style="bold"), Column("synced to"), Column("rows"), Column("path")]
    kinds = {"snapshot": "merged", "read_optimized": "base files"}
    rows = [(each["name"], each["instant"] or "", kinds[each["query_type"]], each["path"]) for each in found]
    make_stdout().print(build_table(columns, rows))
