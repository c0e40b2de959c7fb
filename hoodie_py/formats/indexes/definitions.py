"""The definitions of a table's indexes, and which columns have statistics.

The file ``.hoodie/.index_defs/index.json`` contains the definitions (Hudi HoodieIndexMetadata, HoodieIndexDefinition,
HoodieIndexVersion); the property ``hoodie.table.index.defs.path`` names it, relative to the table's base path. Java
never writes definitions of the partitions ``files``, ``partition_stats`` and ``bloom_filters``. The file may also keep
definitions of partitions that are gone, so it does not say which indexes a table has:
``hoodie.table.metadata.partitions`` does.

    name                    kind              function        columns             options
    record_index            record_index      ""              none                isPartitioned
    column_stats            column_stats      column_stats    indexed columns     none
    secondary_index_<name>  secondary_index   identity        one                 none
    expr_index_<name>       column_stats      a function      one                 expr, format, ...
                            bloom_filters

The version says how the records of the partition are encoded: 2 from table version 9 on for statistics and secondary
keys, else 1. Definitions of Hudi 1.0 have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie_py.errors import CorruptFileError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.schema import AvroType, Record
from hoodie_py.formats.config.table_config import INDEX_DEFINITIONS_PATH, TableConfig
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.names import METADATA_FOLDER, check_inside

INDEX_DEFINITIONS_FILE = f"{METADATA_FOLDER}/.index_defs/index.json"

FILES_PARTITION = "files"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
SECONDARY_INDEX = "secondary_index"
SECONDARY_PREFIX = "secondary_index_"
EXPRESSION_PREFIX = "expr_index_"

IS_PARTITIONED = "isPartitioned"  # option of the record index
EXPRESSION = "expr"  # option of an expression index: the name of its function

_FIRST_TABLE_VERSION_OF_V2 = 9
_VERSIONS = {"V1": 1, "V2": 2}
_UNREADABLE = "The file of index definitions cannot be read."
_HINT = "Drop the table's indexes with Java Hudi, or restore the file."


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index. ``name`` is its partition of the metadata table, with prefix."""

    name: str
    kind: str  # record_index, column_stats, bloom_filters or secondary_index
    function: str = ""
    columns: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: int | None = None

    @property
    def is_partitioned(self) -> bool:
        """Whether this is a record index with separate keys for each partition of the table."""
        return self.options.get(IS_PARTITIONED, "").lower() == "true"

    @property
    def is_expression(self) -> bool:
        """Whether the index covers the results of an expression."""
        return self.name.startswith(EXPRESSION_PREFIX)


@dataclass(frozen=True, slots=True)
class IndexDefinitions:
    """The definitions of a table by name, in the order of the file."""

    by_name: Mapping[str, IndexDefinition] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, data: bytes) -> IndexDefinitions:
        """Parse the file; an empty one contains no definitions, as in Java.

        Raises:
            CorruptFileError: the file is truncated, larger than the limit, or not a file of index definitions.
            InvalidTableError: column_stats and partition_stats have different versions.
            UnsupportedFeatureError: a definition has a later version.
        """
        if len(data) > get_limits().properties_bytes:
            raise_limit_error(
                CorruptFileError, f"A file of index definitions has {len(data)} bytes", "properties_bytes"
            )
        if not data:
            return cls()
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CorruptFileError(_UNREADABLE, hint=_HINT) from error
        entries = content.get("indexDefinitions", {}) if isinstance(content, dict) else None
        if not isinstance(entries, dict):
            raise CorruptFileError(_UNREADABLE, hint=_HINT)
        definitions = (_read_definition(name, entry) for name, entry in entries.items() if entry is not None)
        return cls.of(definitions)

    @classmethod
    def of(cls, definitions: Iterable[IndexDefinition]) -> IndexDefinitions:
        """Collect definitions. Raises InvalidTableError if versions contradict (Java: ``validateIndexMetadata``)."""
        by_name = {each.name: each for each in definitions}
        columns, partitions = by_name.get(COLUMN_STATS), by_name.get(PARTITION_STATS)
        if columns is not None and partitions is not None and columns.version != partitions.version:
            raise InvalidTableError("The definitions of column_stats and partition_stats have different versions.")
        return cls(by_name)

    def to_bytes(self) -> bytes:
        """Return the file's content, with Java's layout."""
        entries = ",\n".join(_format_definition(each) for each in self)
        body = f"{{\n{entries}\n  }}" if entries else "{ }"
        return f'{{\n  "indexDefinitions" : {body}\n}}'.encode()

    def get(self, name: str) -> IndexDefinition | None:
        """Return the definition of a partition of the metadata table."""
        return self.by_name.get(name)

    def put(self, definition: IndexDefinition) -> IndexDefinitions:
        """Return these definitions with one added or replaced."""
        return self.of({**self.by_name, definition.name: definition}.values())

    def drop(self, name: str) -> IndexDefinitions:
        """Return these definitions without the named one."""
        return self.of(each for each in self if each.name != name)

    def __iter__(self) -> Iterator[IndexDefinition]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)


def find_definitions_path(config: TableConfig) -> str | None:
    """Return the path of the file relative to the base path; None if the table's properties do not name it.

    For Java there are no definitions then. Raises InvalidTableError if the path leads out of the table.
    """
    path = config.properties.get(INDEX_DEFINITIONS_PATH, "").strip()
    return check_inside(path) if path else None


def choose_index_version(partition: str, table_version: int) -> int:
    """Return the version of a new index in tables of a version (HoodieIndexVersion.getCurrentVersion)."""
    changed = partition in (COLUMN_STATS, PARTITION_STATS) or partition.startswith(
        (SECONDARY_PREFIX, EXPRESSION_PREFIX)
    )
    return 2 if changed and table_version >= _FIRST_TABLE_VERSION_OF_V2 else 1


def find_index_version(partition: str, definitions: IndexDefinitions, table_version: int) -> int:
    """Return the version of an existing partition: its definition's, or 1 if that has none.

    ``partition_stats`` has the version of ``column_stats``. Without a definition the table's version decides.
    """
    definition = definitions.get(partition)
    if definition is None and partition == PARTITION_STATS:
        definition = definitions.get(COLUMN_STATS)
    if definition is None:
        return choose_index_version(partition, table_version)
    return definition.version or 1


def define_record_index(*, partitioned: bool) -> IndexDefinition:
    """Return the definition of a record index (HoodieTableMetadataUtil.createRecordIndexDefinition)."""
    options = {IS_PARTITIONED: "true" if partitioned else "false"}
    return IndexDefinition(RECORD_INDEX, RECORD_INDEX, options=options, version=1)


def define_column_stats(columns: Iterable[str], table_version: int) -> IndexDefinition:
    """Return the definition of column statistics; ``columns`` include the meta columns that Java adds."""
    version = choose_index_version(COLUMN_STATS, table_version)
    return IndexDefinition(COLUMN_STATS, COLUMN_STATS, COLUMN_STATS, tuple(columns), version=version)


def define_secondary_index(name: str, column: str, table_version: int) -> IndexDefinition:
    """Return the definition of a secondary index; the prefix of ``name`` may be left out."""
    full = name if name.startswith(SECONDARY_PREFIX) else SECONDARY_PREFIX + name
    version = choose_index_version(full, table_version)
    return IndexDefinition(full, SECONDARY_INDEX, "identity", (column,), version=version)


def define_expression_index(
    name: str, kind: str, column: str, options: Mapping[str, str], table_version: int
) -> IndexDefinition:
    """Return the definition of an expression index of the kind ``column_stats`` or ``bloom_filters``.

    The prefix of ``name`` may be left out. The option ``expr`` names the function; without it the column itself is
    indexed.
    """
    full = name if name.startswith(EXPRESSION_PREFIX) else EXPRESSION_PREFIX + name
    function = options.get(EXPRESSION, "identity")
    version = choose_index_version(full, table_version)
    return IndexDefinition(full, kind, function, (column,), dict(options), version)


def _read_definition(name: str, entry: Any) -> IndexDefinition:
    if not isinstance(entry, dict) or entry.get("indexName") != name:
        raise CorruptFileError(f"The index definition {name[:100]!r} does not name itself.", hint=_HINT)
    columns = _read_value(name, entry, "sourceFields", list) or []
    options = _read_value(name, entry, "indexOptions", dict) or {}
    if not all(isinstance(each, str) for each in (*columns, *options.values())):
        raise CorruptFileError(
            f"The index definition {name[:100]!r} has a column or option that is no text.", hint=_HINT
        )
    kind = _read_value(name, entry, "indexType", str)
    if not kind:
        raise CorruptFileError(f"The index definition {name[:100]!r} has no type.", hint=_HINT)
    version = _read_value(name, entry, "version", str)
    if version is not None and version not in _VERSIONS:
        raise UnsupportedFeatureError(f"The index {name[:100]!r} has the version {version[:40]!r}.")
    return IndexDefinition(
        name=name,
        kind=kind,
        function=_read_value(name, entry, "indexFunction", str) or "",
        columns=tuple(columns),
        options=options,
        version=None if version is None else _VERSIONS[version],
    )


def _read_value(name: str, entry: Mapping[str, Any], key: str, type_: type[Any]) -> Any:
    value = entry.get(key)
    if value is not None and not isinstance(value, type_):
        raise CorruptFileError(f"The index definition {name[:100]!r} has a wrong {key}.", hint=_HINT)
    return value


def _format_definition(definition: IndexDefinition) -> str:
    """Lay out one definition as Jackson's default pretty printer does."""
    columns = ", ".join(_quote(each) for each in definition.columns)
    options = ",\n".join(f"        {_quote(key)} : {_quote(text)}" for key, text in definition.options.items())
    version = "null" if definition.version is None else f'"V{definition.version}"'
    lines = (
        f'      "indexName" : {_quote(definition.name)}',
        f'      "indexType" : {_quote(definition.kind)}',
        f'      "indexFunction" : {_quote(definition.function)}',
        f'      "sourceFields" : {f"[ {columns} ]" if columns else "[ ]"}',
        f'      "indexOptions" : {f"{{{chr(10)}{options}{chr(10)}      }}" if options else "{ }"}',
        f'      "version" : {version}',
    )
    return f"    {_quote(definition.name)} : {{\n" + ",\n".join(lines) + "\n    }"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


MOST_COLUMNS: Final = 32
META_COLUMNS: Final = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_NEVER_FIRST = frozenset(
    {
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "_hoodie_operation",
    }
)


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns that have statistics, as paths with dots, and the version of the index."""

    names: tuple[str, ...]
    version: int


def can_have_statistics(node: AvroType, version: int) -> bool:
    """Whether columns of a type can have statistics in an index version.

    Version 1 stores decimals with 15 decimal places and 30 digits in all.
    """
    # Here, as every open of a table imports this module, and few need ranges.
    from hoodie_py.formats.indexes.bounds import DECIMAL_PRECISION, DECIMAL_SCALE, V1, ValueType, find_avro_kind

    kind = find_avro_kind(node)
    if kind is None:
        return False
    if version == V1 and kind.type == ValueType.DECIMAL:
        return kind.scale <= DECIMAL_SCALE and kind.precision + DECIMAL_SCALE - kind.scale <= DECIMAL_PRECISION
    return True


def choose_first_columns(schema: Record, version: int, most: int = MOST_COLUMNS) -> tuple[str, ...]:
    """Return the columns that have statistics if no list selects them, without meta columns."""
    names = (
        field.name
        for field in schema.fields
        if field.name not in _NEVER_FIRST and can_have_statistics(field.type, version)
    )
    return tuple(names)[:most]


def choose_columns(
    schema: Record,
    version: int,
    *,
    meta_columns: bool,
    listed: Sequence[str] = (),
    most: int = MOST_COLUMNS,
    defined: Sequence[str] | None = None,
    before: Record | None = None,
) -> tuple[str, ...]:
    """Return the columns that get statistics, as paths with dots (Hudi ``HoodieTableMetadataUtil.getColumnsToIndex``).

    Three meta columns always come first, unless the table has none. Then come the listed columns, or else the first 32
    top-level columns whose type can have statistics. The index's definition names the columns of the last commit, but
    not whether a list selected them. Java takes a file with statistics of other columns, but not of one, as all null in
    that column. So a writer without a list covers at least the columns of the definition.

    Args:
        schema: schema of the records that are written.
        version: version of the index.
        meta_columns: whether the table has meta columns.
        listed: columns in the option's list; empty if it is not given.
        most: how many columns are selected without a list.
        defined: the columns of the index's definition; None if there is none.
        before: the schema of the table before this write, None if it is the same. If the definition contains its first
            columns, no list selected them, and new columns are added. Columns of the definition that it lacks come
            from a write that did not complete.
    """
    chosen: Sequence[str] = listed
    if not listed:
        chosen = choose_first_columns(schema, version, most)
        if defined is not None:
            plain = tuple(name for name in defined if name not in META_COLUMNS)
            was_first = before is not None and _are_first(plain, before, version, most)
            chosen = (*plain, *(chosen if was_first else ()))
    found = (name for name in dict.fromkeys(chosen) if name not in META_COLUMNS)
    known = tuple(name for name in found if _is_known(schema, name, version))
    return (*META_COLUMNS, *known) if meta_columns else known


def _are_first(names: Sequence[str], schema: Record, version: int, most: int) -> bool:
    known = {name for name in names if _is_known(schema, name, version)}
    return known == set(choose_first_columns(schema, version, most))


def _is_known(schema: Record, name: str, version: int) -> bool:
    from hoodie_py.formats.indexes.measure import find_field

    node = find_field(schema, name)
    return node is not None and can_have_statistics(node, version)


# Names in the partition ``files`` of the metadata table (Hudi ``MetadataPartitionType``, ``HoodieTableMetadata``).
ALL_PARTITIONS = "__all_partitions__"
NO_PARTITION = "."
