"""Arguments and options that several subcommands share, and the functions that parse them.

They are for opening a table (``--storage-option``), for reading rows, and for writing (Hudi's writer options, formats
of files of rows).

``--storage-option K=V`` adds one entry to the storage options. ``client_kwargs.a=b`` adds an entry to a group; other
names with dots (``fs.s3a.endpoint``) are not split. ``true``, ``false``, ``null`` and JSON objects or lists are parsed
as JSON. All other values stay text, so that a key or secret made of digits is not changed. Values are never printed,
because they may be credentials.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli.config import load_config
from hoodie_py.errors import HoodieError
from hoodie_py.options.write import METADATA_MODE

if TYPE_CHECKING:
    from hoodie_py.formats.config.table_config import TableConfig
    from hoodie_py.reader.merge.merger import RecordMerger

_named_options: ContextVar[Mapping[str, Any] | None] = ContextVar("options of the table's store", default=None)


def _resolve_table(context: typer.Context, place: str | None) -> str | None:
    """Return the path of the table that an argument means.

    The table's storage options from the configuration are kept for ``parse_storage_options``.
    """
    if place is None or context.resilient_parsing:
        return place
    from hoodie_py.cli.console import report_errors

    with report_errors():
        found = load_config().resolve(place)
    _named_options.set(found.storage_options)
    return found.path


def complete_table(incomplete: str) -> list[str]:
    """Return the names of tables and the folders that begin with the text, for completion in the shell.

    Errors are not shown there, so a wrong configuration gives no names.
    """
    above, slash, begin = incomplete.rpartition("/")
    try:
        below = [each for each in Path(f"{above}{slash}").iterdir() if each.is_dir() and each.name.startswith(begin)]
    except OSError:
        below = []
    folders = [f"{above}{slash}{each.name}/" for each in sorted(below)]
    try:
        config = load_config()
    except HoodieError:
        return folders
    names = [*config.tables, *(f"{each}:" for each in config.catalogs)]
    return [*(each for each in names if each.startswith(incomplete)), *folders]


_GROUPS = ("client_kwargs", "config_kwargs", "s3_additional_kwargs")
_JSON_WORDS = {"true": True, "false": False, "null": None}
TableUri = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Folder of the table: a path, a URI such as s3://lake/trips, or a name (see hoodie tables).",
        callback=_resolve_table,
        autocompletion=complete_table,
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="Read an earlier state: an instant, an ISO date or time."),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="K=V",
        help="Option for the store, as fsspec takes it, such as anon=true; may be repeated.",
    ),
]
EndpointUrl = Annotated[
    str | None,
    typer.Option("--endpoint-url", metavar="URL", help="Address of an S3-compatible store."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")]


def split_pairs(pairs: Sequence[str] | None, flag: str, example: str = "") -> Iterator[tuple[str, str]]:
    """Yield the key and value of each ``K=V`` given for an option.

    Raises:
        typer.BadParameter: an entry is not K=V.
    """
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"expected K=V{example}", param_hint=flag)
        yield key, value


def parse_storage_options(pairs: Sequence[str] | None, endpoint_url: str | None) -> dict[str, Any]:
    """Return the storage options for the values of ``--storage-option`` and ``--endpoint-url``.

    Options that the configuration file has for the command's table are included; the command line overrides them.

    Raises:
        typer.BadParameter: an entry is not K=V, or two entries contradict each other.
    """
    options: dict[str, Any] = {}
    for key, value in split_pairs(pairs, "--storage-option", ", such as anon=true"):
        group, dot, rest = key.partition(".")
        path = [group, rest] if dot and group in _GROUPS else [key]
        if not all(path):
            raise typer.BadParameter("expected GROUP.K=V", param_hint="--storage-option")
        _put(options, path, _parse_value(key, value))
    if endpoint_url is not None:
        _put(options, ["client_kwargs", "endpoint_url"], endpoint_url)
    return {**(_named_options.get() or {}), **options}


def forget_named_options() -> None:
    """Forget the configured storage options of the previous command's table."""
    _named_options.set(None)


def _put(options: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        inner = options.setdefault(name, {})
        if not isinstance(inner, dict):
            raise typer.BadParameter(f"{name} is given both as a value and as a group", param_hint="--storage-option")
        options = inner
    known = options.get(path[-1])
    if isinstance(known, dict) and isinstance(value, dict):
        known.update(value)
    elif isinstance(known, dict):
        raise typer.BadParameter(f"{path[-1]} is given both as a value and as a group", param_hint="--storage-option")
    else:
        options[path[-1]] = value


def _parse_value(key: str, text: str) -> Any:
    if text in _JSON_WORDS:
        return _JSON_WORDS[text]
    if text[:1] not in {"{", "["}:
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise typer.BadParameter(f"the value of {key} is not valid JSON", param_hint="--storage-option") from None


ROWS_ON_THE_TERMINAL = 50


class OutputFormat(StrEnum):
    """Output format of the rows that a command reads."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B,...", help="Columns to read, in order; default all.")
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Condition for rows: \"price > 10 and city = 'sf'\"."),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Only what commits after this time wrote; 'earliest' for all."),
]
To = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Only what commits up to this time wrote; default now.")
]
Format = Annotated[
    OutputFormat, typer.Option("--format", help="Table for the terminal, CSV, JSON (one object per line) or Parquet.")
]
FormatJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=0, metavar="N", help=f"Most rows to read; default {ROWS_ON_THE_TERMINAL} for tables, else all."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with new commits as they land; --from takes a token, too.")
]
Poll = Annotated[float, typer.Option("--poll", min=0.01, metavar="SECONDS", help="How often --follow looks.")]


def choose_format(format: OutputFormat, as_json: bool) -> OutputFormat:
    """Return the format given by ``--format`` and ``--json``.

    Raises:
        typer.BadParameter: they contradict each other.
    """
    if as_json and format not in {OutputFormat.table, OutputFormat.json}:
        raise typer.BadParameter(f"contradicts --format {format.value}", param_hint="--json")
    return OutputFormat.json if as_json else format


def check_follow(kind: OutputFormat, *, range_end: str | None, has_file: bool, limit: int | None) -> None:
    """Refuse options that need an end together with ``--follow``, which has none.

    Raises:
        typer.BadParameter: there is such an option.
    """
    needs_end = {"--to": range_end is not None, "--limit": limit is not None, "--output": has_file}
    for name in (name for name, is_given in needs_end.items() if is_given):
        raise typer.BadParameter(f"has no end, so it cannot have {name}", param_hint="--follow")
    if kind is OutputFormat.parquet:
        raise typer.BadParameter("has no end, but Parquet needs one: give csv or json", param_hint="--follow")


def check_plot(plot: bool, as_json: bool) -> None:
    """Refuse ``--plot`` together with ``--json``.

    Raises:
        typer.BadParameter: both are asked for.
    """
    if plot and as_json:
        raise typer.BadParameter("contradicts --json", param_hint="--plot")


def split_names(text: str | None) -> list[str] | None:
    """Return the names of ``--columns``; None if it is not given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


class RowFormat(StrEnum):
    """Format of an input file of rows."""

    parquet = "parquet"
    csv = "csv"
    ndjson = "ndjson"


_SUFFIXES = {
    ".parquet": RowFormat.parquet,
    ".csv": RowFormat.csv,
    ".ndjson": RowFormat.ndjson,
    ".jsonl": RowFormat.ndjson,
    ".json": RowFormat.ndjson,
}


def find_format(path: Path) -> RowFormat | None:
    """Return the format for a file's suffix; None for an unknown suffix."""
    return _SUFFIXES.get(path.suffix.lower())


class MetadataMode(StrEnum):
    """What a write does with a metadata table."""

    auto = "auto"
    disable = "disable"
    refuse = "refuse"


HudiOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="K=V", help="Hudi's writer option, such as hoodie.write.lock.provider=...; may be repeated."
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", metavar="ZONE", help="Zone of new instants if the timeline zone is LOCAL; default UTC."),
]
FilterTimezone = Annotated[
    str | None, typer.Option("--timezone", metavar="ZONE", help="Zone of times that name none; default UTC.")
]
Metadata = Annotated[
    MetadataMode | None,
    typer.Option("--metadata-mode", help="Metadata table: update it (auto), disable it, or refuse to write."),
]
Merger = Annotated[
    str | None, typer.Option("--merger", metavar="MODULE.CLASS", help="The RecordMerger of a table that needs one.")
]
OverrideMerger = Annotated[
    bool,
    typer.Option("--override-merger", help="Use --merger although it is not the table's; the result is stored."),
]
Plot = Annotated[bool, typer.Option("--plot", help="Draw bars, too.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; print what would be done, and why.")]


CatalogKind = Annotated[
    str,
    typer.Option(
        "--catalog", metavar="KIND", help="hive, glue, or a catalog of the configuration file.", show_default=True
    ),
]
NamedCatalogs = Annotated[
    str | None,
    typer.Option("--catalog", metavar="NAME", help="Only this catalog: one of the configuration, or hive, or glue."),
]
CatalogUri = Annotated[
    str | None, typer.Option("--uri", metavar="URI", help="Address of a Hive Metastore, such as thrift://host:9083.")
]
CatalogOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog-option", metavar="K=V", help="Option of the catalog's client, such as region_name=eu-west-1."
    ),
]


def parse_hudi_options(pairs: Sequence[str] | None, metadata_mode: MetadataMode | None = None) -> dict[str, str]:
    """Return Hudi's writer options from ``--option``; ``--metadata-mode`` overrides the same entry there.

    Raises:
        typer.BadParameter: an entry is not K=V.
    """
    options = dict(split_pairs(pairs, "--option", ", such as hoodie.write.lock.provider=..."))
    if metadata_mode is not None:
        options[METADATA_MODE] = metadata_mode.value
    return options


def import_given_merger(path: str | None) -> type[RecordMerger] | None:
    """Return the class that ``--merger`` names, for a read; None if the option is not given.

    Raises:
        InvalidQueryError: the class does not exist.
    """
    from hoodie_py.reader.merge.registry import import_merger

    return None if path is None else import_merger(path)


def load_merger(config: TableConfig, path: str | None, *, override: bool = False) -> type[RecordMerger] | None:
    """Return the class that ``--merger`` names, for a write; None if the option is not given.

    Raises:
        InvalidQueryError: the class does not exist, or it is not the table's merger and ``override`` is false.
    """
    if path is None:
        return None
    from hoodie_py.writer.precombine.merge_options import check_merger

    merger = import_given_merger(path)
    check_merger(config, merger, override=override)
    return merger
