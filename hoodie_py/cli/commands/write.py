"""The subcommands that change rows: ``hoodie write`` and ``hoodie delete-partition``.

``write`` takes rows from a file; with ``--create`` it creates the table first. ``delete-partition`` deletes all rows of
partitions by one replace commit.
"""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.options import Merger, RowFormat, find_format, load_merger, split_pairs
from hoodie_py.cli.table_command import TableCommand, table_command

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie_py import HoodieTable


class Operation(StrEnum):
    """Write operation."""

    upsert = "upsert"
    insert = "insert"
    bulk_insert = "bulk_insert"
    delete = "delete"
    insert_overwrite = "insert_overwrite"
    insert_overwrite_table = "insert_overwrite_table"


class TableType(StrEnum):
    """Type of the new table."""

    mor = "mor"
    cow = "cow"


From = Annotated[
    Path,
    typer.Option(
        "--from", metavar="FILE", help="File of rows: .parquet, .csv, .ndjson.", exists=True, dir_okay=False,
        readable=True,
    ),
]  # fmt: skip
Format = Annotated[RowFormat | None, typer.Option("--format", help="Format of the file, if its name does not tell.")]
Doing = Annotated[Operation, typer.Option("--operation", help="Write operation.")]
Create = Annotated[bool, typer.Option("--create", help="Create the table first, with the columns of the file.")]
RecordKey = Annotated[
    str | None, typer.Option("--record-key", metavar="FIELDS", help="With --create: fields of the record key.")
]
Ordering = Annotated[str | None, typer.Option("--ordering", metavar="FIELDS", help="With --create: ordering fields.")]
PartitionBy = Annotated[
    str | None, typer.Option("--partition-by", metavar="FIELDS", help="With --create: partition fields.")
]
Type = Annotated[TableType | None, typer.Option("--table-type", help="With --create: default mor.")]
Version = Annotated[int | None, typer.Option("--table-version", help="With --create: 6, 8 or 9; default 9.")]
Name = Annotated[str | None, typer.Option("--name", help="With --create: name of the table; default the folder's.")]
AllowLoss = Annotated[
    bool,
    typer.Option(
        "--allow-loss", help="Let columns take the rows' types, even if values may lose digits or become text."
    ),
]
Property = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="K=V", help="With --create: a table property; may be repeated."),
]


@table_command("option", "metadata_mode", "timezone")
def write(
    command: TableCommand,
    source: From,
    operation: Doing = Operation.upsert,
    format_: Format = None,
    create: Create = False,
    record_key: RecordKey = None,
    ordering: Ordering = None,
    partition_by: PartitionBy = None,
    table_type: Type = None,
    table_version: Version = None,
    name: Name = None,
    property_: Property = None,
    allow_loss: AllowLoss = False,
    merger: Merger = None,
) -> None:
    """Write the rows of a file to a table; --create creates the table first.

    Rows to delete need their key columns only.
    """
    from hoodie_py import HoodieTable
    from hoodie_py.cli.console import print_result, show_spinner
    from hoodie_py.cli.rows.sources import read_rows
    from hoodie_py.options.write import LOSSY, SCHEMA_CHANGES
    from hoodie_py.reader.merge.registry import import_merger
    from hoodie_py.writer.create import CreatedTable

    kind = format_ or find_format(source)
    if kind is None:
        raise typer.BadParameter("the file's name does not tell what it is", param_hint="--format")
    if create and record_key is None:
        raise typer.BadParameter("a new table needs it", param_hint="--record-key")
    about_new = {
        "--record-key": record_key, "--ordering": ordering, "--partition-by": partition_by, "--table-type": table_type,
        "--table-version": table_version, "--name": name, "--property": property_,
    }  # fmt: skip
    needless = [flag for flag, value in about_new.items() if value is not None and not create]
    if needless:
        raise typer.BadParameter("is about a new table; give --create too", param_hint=needless[0])
    properties = dict(split_pairs(property_, "--property"))
    if allow_loss and operation is Operation.delete:
        raise typer.BadParameter("deletes change no column", param_hint="--allow-loss")
    options = command.options
    allowed = {"allow_loss": True} if allow_loss else {}

    if create:
        rows = read_rows(source, kind)
        opened = HoodieTable.create(
            command.uri,
            rows.schema,
            record_key=record_key or "",
            ordering=ordering,
            partition_by=partition_by or (),
            table_type=table_type or TableType.mor,
            table_version=table_version or 9,
            name=name,
            storage_options=command.storage_options,
            properties=properties,
            merger=None if merger is None else import_merger(merger),
            timezone=command.timezone,
        )
    else:
        with show_spinner("reading the table's metadata"):
            opened = command.open()
        may_change = {**options, SCHEMA_CHANGES: LOSSY} if allow_loss else options
        rows = read_rows(source, kind, _choose_columns(opened), may_change)
    with show_spinner("writing"), CreatedTable.load(opened.files).undo_on_failure() if create else nullcontext():
        result = getattr(opened, operation.value)(rows, options, load_merger(opened.config, merger), **allowed)
    print_result(result, command.as_json)


def _choose_columns(opened: HoodieTable) -> pa.Schema:
    """Return the table's columns whose type in the files equals the type that a scan returns."""
    import pyarrow as pa

    from hoodie_py.table.view.partition_values import is_formatted_time

    return pa.schema([field for field in opened.schema if not is_formatted_time(opened.config, field.name)])


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PARTITION...", help="Paths as they are on disk, such as sf, or city=sf; * stands for any characters."
    ),
]


@table_command("option", "metadata_mode", "timezone")
def delete_partition(
    command: TableCommand,
    partitions: Paths,
    merger: Merger = None,
) -> None:
    """Delete all rows of partitions, without reading any; cleans remove the files later."""
    from hoodie_py.cli.console import print_result, show_spinner

    options = command.options

    with show_spinner("deleting partitions"):
        opened = command.open()
        given = load_merger(opened.config, merger)
        result = opened.delete_partition(partitions, options, merger=given, missing_ok=False)
    print_result(result, command.as_json)
