"""``hoodie show``: print a table's properties, the number and size of its files, and its columns. ``hoodie tables``:
list the tables that have names in the configuration or in catalogs.

Whatever can be found out of a table is shown. Columns may be unknown, because no commit has them and the data files are
gone, or unsupported; then the reason is printed in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from hoodie_py.cli.config import NamedCatalog, find_config_file, load_config
from hoodie_py.cli.console import Column, build_table, make_stdout, print_json, print_note, report_errors
from hoodie_py.cli.options import AsJson, CatalogUri, Debug, NamedCatalogs, Plot, check_plot
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size
from hoodie_py.runtime.wording import format_count

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie_py.reader.file_slice import FileSlice
    from hoodie_py.table.snapshot import Snapshot


@table_command()
def show(
    command: TableCommand,
    plot: Plot = False,
) -> None:
    """Show what a table is: type, keys, merge mode, files, columns."""
    from hoodie_py.cli.console import print_json, show_spinner

    check_plot(plot, command.as_json)

    with show_spinner("reading the table's metadata"):
        snapshot = command.open_snapshot()
        found = describe(snapshot)
    if command.as_json:
        print_json(found)
    else:
        _print(found)
    if plot:
        _plot(snapshot.list_slices())


def describe(snapshot: Snapshot) -> dict[str, Any]:
    """Return a table's facts as JSON values."""
    config = snapshot.config
    columns, problem = snapshot.find_columns()
    return {
        "name": config.name,
        "database": config.database or None,
        "path": snapshot.files.uri,
        "type": config.table_type,
        "version": config.version,
        "record_key": list(config.record_key_fields),
        "partitioned_by": list(config.partition_fields),
        "ordering": list(config.ordering_fields),
        "merge_mode": config.merge_mode.value,
        "merge_strategy_id": config.merge_strategy_id,
        "payload_class": config.payload_class if config.is_payload_based else None,
        "partial_update_mode": config.partial_update_mode,
        "key_generator": config.key_generator,
        "meta_fields": config.populate_meta_fields,
        "cdc": config.cdc_mode if config.cdc_enabled else None,
        "metadata_partitions": list(config.metadata_partitions),
        "timeline_timezone": config.timezone,
        "instant": snapshot.instant,
        "files": _count_files(snapshot),
        "columns": None if columns is None else [_describe_column(each) for each in columns],
        "columns_problem": problem,
    }


def _describe_column(field: pa.Field) -> dict[str, str]:
    """Return the name and Arrow type of a column, and Hudi's type if it has one of its own: VECTOR, VARIANT, BLOB."""
    from hoodie_py.formats.logical_types import read_type_name

    kind = read_type_name(field)
    return {"name": field.name, "type": str(field.type), **({} if kind is None else {"hudi_type": kind})}


def _count_files(snapshot: Snapshot) -> dict[str, Any]:
    slices = snapshot.list_slices()
    bases = [each.base_file for each in slices if each.base_file is not None]
    logs = [log for each in slices for log in each.log_files]
    return {
        "partitions": len({each.partition_path for each in slices}),
        "file_groups": len(slices),
        "base_files": len(bases),
        "base_bytes": sum(base.size for base in bases),
        "base_formats": sorted({base.name.rpartition(".")[2] for base in bases}),
        "log_files": len(logs),
        "log_bytes": sum(log.size for log in logs),
    }


def _print(found: dict[str, Any]) -> None:
    from hoodie_py.cli.console import Column, build_facts, build_table, make_stdout, print_note

    console = make_stdout()
    console.print(build_facts(_make_pairs(found)))
    console.print()
    if not found["columns"]:
        print_note(found["columns_problem"] or "The table has no columns yet: nothing has been written to it.")
        return
    rows = [(column["name"], column.get("hudi_type", column["type"])) for column in found["columns"]]
    console.print(build_table([Column("column", style="bold"), Column("type")], rows))


def _plot(slices: Sequence[FileSlice]) -> None:
    """Draw the sizes of base files, and the share of logs in each partition.

    If there is one partition, the share of logs is drawn for each file group.
    """
    from hoodie_py.cli.bars import compare_logs, count_sizes, print_bars

    files = count_sizes(each.base_file.size or 0 for each in slices if each.base_file is not None)
    if files:
        print_bars("base files by size", files)
    partitions = len({each.partition_path for each in slices})
    sizes: dict[str, tuple[int, int]] = {}
    for each in slices:
        place = each.partition_path or "(the table)" if partitions > 1 else each.file_id[:8]
        base, log = sizes.get(place, (0, 0))
        size = 0 if each.base_file is None else each.base_file.size or 0
        sizes[place] = base + size, log + sum(file.size or 0 for file in each.log_files)
    logs = compare_logs(sizes)
    if logs:
        print_bars(
            f"bytes of logs for a byte of base files, by {'partition' if partitions > 1 else 'file group'}", logs
        )


def _make_pairs(found: dict[str, Any]) -> list[tuple[str, str | None]]:
    files = found["files"]
    merge = found["merge_mode"]
    if merge == "CUSTOM":
        merge += f" ({found['payload_class'] or found['merge_strategy_id'] or 'no strategy id'})"
    counts = [format_count(files["partitions"], "partition"), format_count(files["file_groups"], "file group")]
    formats = ", ".join(("", *files["base_formats"])) if set(files["base_formats"]) - {"parquet"} else ""
    sizes = [
        f"{format_count(files['base_files'], 'base file')} ({format_size(files['base_bytes'])}{formats})",
        f"{format_count(files['log_files'], 'log file')} ({format_size(files['log_bytes'])})",
    ]
    return [
        ("table", f"{found['database']}.{found['name']}" if found["database"] else found["name"]),
        ("path", found["path"]),
        ("type", f"{found['type']}, version {found['version']}"),
        ("record key", ", ".join(found["record_key"]) or "(none)"),
        ("partitioned by", ", ".join(found["partitioned_by"]) or "(nothing)"),
        ("ordering", ", ".join(found["ordering"]) or "(nothing)"),
        ("merge mode", merge),
        ("partial updates", found["partial_update_mode"]),
        ("key generator", found["key_generator"]),
        ("meta fields", None if found["meta_fields"] else "not stored"),
        ("change data", found["cdc"]),
        ("metadata table", ", ".join(found["metadata_partitions"])),
        ("instant", found["instant"] or "(no commits yet)"),
        ("files", ", ".join(counts)),
        ("", ", ".join(sizes)),
    ]


def tables(
    catalog: NamedCatalogs = None,
    uri: CatalogUri = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the named tables of the configuration file and of its catalogs.

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
            _print_tables(found)
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


def _print_tables(found: list[dict[str, Any]]) -> None:

    columns = [Column("name", style="bold"), Column("synced to"), Column("rows"), Column("path")]
    kinds = {"snapshot": "merged", "read_optimized": "base files"}
    rows = [(each["name"], each["instant"] or "", kinds[each["query_type"]], each["path"]) for each in found]
    make_stdout().print(build_table(columns, rows))
