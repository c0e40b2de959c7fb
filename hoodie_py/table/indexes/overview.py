"""Which indexes a table has: the partitions of its metadata table, for inspection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import overload

import pyarrow as pa

from hoodie_py.files import TableFiles, list_named_folders
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.hfile.reader import HFile
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.reader.base.hfile_file import count_entries
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.view.file_groups import FileGroup, group_files

_METADATA_TABLE = f"{METADATA_FOLDER}/metadata"
COMPLETE, UNFINISHED, DEFINED = "complete", "unfinished", "defined"


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One partition of the metadata table.

    Attributes:
        name: of the partition.
        kind: files, column_stats, partition_stats, bloom_filters, record_index (``partitioned record_index`` if each
            partition of the table has its own), secondary_index or expression_index.
        columns: the indexed columns; empty if there are none to name.
        expression: the function over the column, with its options.
        version: how records are encoded, 1 or 2.
        state: "complete", "unfinished" (a build has not ended), or "defined" (a definition without files, from which
            the next Java writer builds it).
        groups: number of file groups.
        files: number of base and log files.
        records: number of records in base files and log files; a key that was changed counts more than once.
        bytes: size of the files.
    """

    name: str
    kind: str
    columns: tuple[str, ...]
    expression: str | None
    version: int
    state: str
    groups: int
    files: int
    records: int
    bytes: int


SCHEMA = pa.schema({
    "name": pa.string(), "kind": pa.string(), "columns": pa.list_(pa.string()), "expression": pa.string(),
    "version": pa.int64(), "state": pa.string(), "groups": pa.int64(), "files": pa.int64(), "records": pa.int64(),
    "bytes": pa.int64(),
})  # fmt: skip
_HEADINGS = ("index", "kind", "columns", "groups", "files", "records", "bytes", "state")


class IndexOverview(Sequence[IndexInfo]):
    """The indexes of a table, by name; printed as a table."""

    def __init__(self, indexes: Iterable[IndexInfo]) -> None:
        self._indexes = tuple(indexes)

    @overload
    def __getitem__(self, at: int) -> IndexInfo: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[IndexInfo]: ...

    def __getitem__(self, at: int | slice) -> IndexInfo | Sequence[IndexInfo]:
        return self._indexes[at]

    def __len__(self) -> int:
        return len(self._indexes)

    def to_arrow(self) -> pa.Table:
        """Return the indexes as an Arrow table, one row each."""
        return pa.Table.from_pylist([asdict(each) for each in self], SCHEMA)

    def __repr__(self) -> str:
        if not self._indexes:
            return "IndexOverview: the table has no metadata table"
        rows = [tuple(_HEADINGS), *(_format_row(each) for each in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        head = "".join(f"<th>{name}</th>" for name in _HEADINGS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in _format_row(each)) + "</tr>" for each in self
        )
        return f"<table><caption>Indexes</caption><tr>{head}</tr>{rows}</table>"


def list_indexes(base: TableFiles, config: TableConfig, begun: Iterable[str] = ()) -> IndexOverview:
    """Return the indexes of a table, including unfinished and merely defined ones.

    ``base``: the table's files. ``begun``: partitions that pending instants of Java are building.

    Raises:
        CorruptFileError, InvalidTableError: the metadata table, or the file of definitions, is damaged.
        StorageError: the store refused.
    """
    definitions = read_definitions(base, config)
    unfinished = {*config.metadata_partitions_inflight, *begun} - {*config.metadata_partitions}
    defined = {each.name for each in definitions} - {*config.metadata_partitions, *unfinished}
    states = {
        **dict.fromkeys(config.metadata_partitions, COMPLETE),
        **dict.fromkeys(unfinished, UNFINISHED),
        **dict.fromkeys(defined, DEFINED),
    }
    files = base.sub(_METADATA_TABLE)
    built = [name for name in sorted(states) if states[name] != DEFINED]
    groups = {
        name: group_files(name, listing) for name, listing in zip(built, list_named_folders(files, built), strict=True)
    }
    return IndexOverview(
        _describe(files, config, definitions, name, states[name], groups.get(name, [])) for name in sorted(states)
    )


def _describe(
    files: TableFiles, config: TableConfig, definitions: names.IndexDefinitions, name: str, state: str,
    groups: Sequence[FileGroup],
) -> IndexInfo:  # fmt: skip
    bases = [base for group in groups for base in group.base_files]
    logs = [log for group in groups for log in group.log_files]
    definition = definitions.get(names.COLUMN_STATS if name == names.PARTITION_STATS else name)
    return IndexInfo(
        name=name,
        kind=_name_kind(name, definition),
        columns=() if definition is None else definition.columns,
        expression=_format_expression(definition) if name.startswith(names.EXPRESSION_PREFIX) else None,
        version=names.find_index_version(name, definitions, config.version),
        state=state,
        groups=len(groups),
        files=len(bases) + len(logs),
        records=sum(count_entries(files, each) for each in bases) + sum(_count_log(files, each) for each in logs),
        bytes=sum(each.size for each in bases) + sum(each.size for each in logs),
    )


def _name_kind(name: str, definition: names.IndexDefinition | None) -> str:
    if name.startswith(names.SECONDARY_PREFIX):
        return names.SECONDARY_INDEX
    if name.startswith(names.EXPRESSION_PREFIX):
        of = "" if definition is None else f" of {definition.kind}"
        return f"expression_index{of}"
    if name == names.RECORD_INDEX and definition is not None and definition.is_partitioned:
        return "partitioned record_index"
    return name


def _format_expression(definition: names.IndexDefinition | None) -> str | None:
    """Return a function call, such as ``from_unixtime(ts, format=yyyy-MM-dd)``."""
    if definition is None:
        return None
    given = [f"{key}={value}" for key, value in definition.options.items() if key != names.EXPRESSION]
    return f"{definition.function or 'identity'}({', '.join([*definition.columns, *given])})"


def _count_log(files: TableFiles, log: LogFile) -> int:
    blocks = iterate_blocks(read_bounded(files, log.path, "log_bytes"))
    found = [block for block in blocks if isinstance(block, LogBlock) and block.type is BlockType.HFILE_DATA]
    return sum(HFile.from_bytes(block.content).entries for block in found)


def _format_row(index: IndexInfo) -> tuple[str, ...]:
    return (
        index.name,
        index.kind,
        index.expression or ", ".join(index.columns),
        f"{index.groups:,}",
        f"{index.files:,}",
        f"{index.records:,}",
        f"{index.bytes:,}",
        index.state,
    )
