"""``hoodie log``: list the blocks of one log file, which need not belong to a table.

Incomplete blocks, which readers skip, are listed as corrupt. Records are counted without decoding them where the
block's format allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli.console import (
    Column,
    build_facts,
    build_table,
    make_stdout,
    print_json,
    print_note,
    report_errors,
    show_spinner,
)
from hoodie_py.cli.options import AsJson, Debug, EndpointUrl, StorageOptions, parse_storage_options
from hoodie_py.cli.values import format_size
from hoodie_py.runtime.wording import format_count

if TYPE_CHECKING:
    from rich.text import Text

    from hoodie_py.errors import HoodieError
    from hoodie_py.formats.log.framing import CorruptBlock, LogBlock

LogUri = Annotated[str, typer.Argument(metavar="FILE", help="Path or URI of a log file.")]
Headers = Annotated[bool, typer.Option("--headers", help="Print every block's headers in full.")]

_SHORT_HEADER = 40  # characters
CORRUPT = "CORRUPT"


def log(
    file: LogUri,
    headers: Headers = False,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the blocks of a log file."""
    with report_errors(debug):
        with show_spinner("reading the log file"):
            data = read_file(file, parse_storage_options(storage_option, endpoint_url))
        found, error = describe(data)
        if as_json:
            print_json(found)
        elif found or error is None:
            print_blocks(found, headers)
        if error is not None:
            raise error.locate(path=file)


def read_file(uri: str, options: dict[str, Any]) -> bytes:
    """Read a whole file, given its path or URI."""
    from hoodie_py.errors import InvalidQueryError, StorageError
    from hoodie_py.files import TableFiles

    folder, slash, name = uri.rstrip("/").rpartition("/")
    files = TableFiles.open(folder or slash or ".", options)
    try:
        return files.read(name)
    except StorageError:
        if not files.list_or_empty(name):
            raise
        raise InvalidQueryError(
            "This is a folder, not a log file.", path=uri, hint="`hoodie slices TABLE --files` lists the files."
        ) from None


def describe(data: bytes) -> tuple[list[dict[str, Any]], HoodieError | None]:
    """Return the blocks of a log file as JSON values, and the error that stopped the reading, or None."""
    from hoodie_py.errors import HoodieError
    from hoodie_py.formats.log.framing import CorruptBlock, iterate_blocks

    found: list[dict[str, Any]] = []
    blocks = iterate_blocks(data)
    try:
        found.extend(
            _describe_corrupt(block) if isinstance(block, CorruptBlock) else _describe_block(block) for block in blocks
        )
    except HoodieError as error:
        return found, error
    return found, None


def _describe_block(block: LogBlock) -> dict[str, Any]:
    records, problem = _count_records(block)
    return {
        "offset": block.offset,
        "type": block.type.name,
        "instant": block.instant_time,
        "records": records,
        "bytes": block.size,
        "partial": block.is_partial,
        "problem": problem,
        "headers": {key.name: value for key, value in sorted(block.headers.items())},
    }


def _describe_corrupt(block: CorruptBlock) -> dict[str, Any]:
    return {
        "offset": block.offset,
        "type": CORRUPT,
        "instant": None,
        "records": None,
        "bytes": block.end - block.offset,
        "partial": False,
        "problem": block.reason,
        "headers": {},
    }


def _count_records(block: LogBlock) -> tuple[int | None, str | None]:
    """Return a block's number of records or deletes (None if unknown), and what prevents counting, or None."""
    from hoodie_py.errors import HoodieError
    from hoodie_py.formats.log.framing import BlockType
    from hoodie_py.formats.parquet.decoder import count_parquet_rows
    from hoodie_py.table.inspect import count_records

    try:
        return count_parquet_rows(block.content) if block.type is BlockType.PARQUET_DATA else count_records(block), None
    except HoodieError as error:
        return None, error.message


def print_blocks(found: list[dict[str, Any]], headers: bool = False) -> None:
    """Print the blocks as a table; ``headers`` also prints all headers of each block."""
    from rich.text import Text

    if not found:
        print_note("The file has no blocks.")
        return
    columns = [
        Column("offset", justify="right"),
        Column("block", keep=True),
        Column("instant", style="cyan", keep=True),
        Column("records", justify="right"),
        Column("bytes", justify="right"),
        Column("headers"),
    ]
    rows: list[list[str | Text]] = [
        [
            str(block["offset"]),
            Text(block["type"], style="bold red" if block["type"] == CORRUPT else "bold"),
            block["instant"] or "",
            "" if block["records"] is None else str(block["records"]),
            format_size(block["bytes"]),
            block["problem"] or summarize_headers(block["headers"]),
        ]
        for block in found
    ]
    console = make_stdout()
    console.print(build_table(columns, rows))
    for block in found if headers else ():
        console.print()
        console.print(build_facts(block["headers"].items(), title=f"{block['type']} at {block['offset']}"))
    corrupt = sum(block["type"] == CORRUPT for block in found)
    if corrupt:
        print_note(f"{format_count(corrupt, 'corrupt block')}: readers skip such stretches", style="yellow")


def summarize_headers(headers: dict[str, str]) -> str:
    """Return a block's headers as a short text, without instant and schema, which every block has."""
    parts = []
    for name, value in headers.items():
        match name:
            case "INSTANT_TIME" | "SCHEMA" | "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS":
                continue
            case "RECORD_POSITIONS":
                parts.append("record positions")
            case "COMMAND_BLOCK_TYPE":
                parts.extend([] if value.strip() == "0" else [f"command {value}"])
            case "TARGET_INSTANT_TIME":
                parts.append(f"rolls back {value}")
            case "COMPACTED_BLOCK_TIMES":
                parts.append(f"compacts {value}")
            case "IS_PARTIAL":
                parts.extend(["partial"] if value.lower() == "true" else [])
            case _:
                parts.append(f"{name.lower()}={value if len(value) <= _SHORT_HEADER else value[:_SHORT_HEADER] + '…'}")
    return ", ".join(parts)
