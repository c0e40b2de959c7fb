"""Which columns of a table a write measures for its column statistics (Hudi ``HoodieTableMetadataUtil``)."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.formats.avro.schema import Record, parse_record
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.metadata_table.index_definitions import (
    COLUMN_STATS,
    PARTITION_STATS,
    IndexDefinitions,
    choose_index_version,
    find_index_version,
)
from hoodie_py.formats.metadata_table.indexed_columns import (
    META_COLUMNS,
    IndexedColumns,
    choose_columns,
    choose_first_columns,
)
from hoodie_py.options.write import STATISTICS_COLUMNS, STATISTICS_MOST_COLUMNS
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.snapshot import Snapshot


def find_indexed_columns(snapshot: Snapshot, avro_schema: str, options: Mapping[str, str]) -> IndexedColumns | None:
    """Return the columns of a write with a schema (JSON, meta columns first); None if the table has no statistics.

    Raises:
        CorruptFileError, InvalidTableError, StorageError, UnsupportedFeatureError: as ``read_definitions``.
    """
    config = snapshot.config
    if not {COLUMN_STATS, PARTITION_STATS} & {*config.metadata_partitions, *config.metadata_partitions_inflight}:
        return None
    definitions = read_definitions(snapshot.files, config)
    return choose_indexed_columns(config, definitions, avro_schema, options, _read_schema(snapshot))


def choose_indexed_columns(
    config: TableConfig,
    definitions: IndexDefinitions,
    avro_schema: str,
    options: Mapping[str, str],
    before: Record | None = None,
) -> IndexedColumns:
    """Return the columns by the options and definitions; ``before`` as for ``choose_columns``."""
    version = find_index_version(COLUMN_STATS, definitions, config.version)
    defined = definitions.get(COLUMN_STATS)
    names = choose_columns(
        parse_record(avro_schema),
        version,
        meta_columns=config.populate_meta_fields,
        listed=STATISTICS_COLUMNS.read(options),
        most=STATISTICS_MOST_COLUMNS.read(options),
        defined=None if defined is None else defined.columns,
        before=before,
    )
    return IndexedColumns(names, version)


def list_known_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """Return all columns of which files may have records: those of the definition, else those of the schema.

    Raises as ``find_indexed_columns``.
    """
    defined = read_definitions(snapshot.files, snapshot.config).get(COLUMN_STATS)
    first = _choose_by_schema(snapshot)
    return tuple(dict.fromkeys((*META_COLUMNS, *(() if defined is None else defined.columns), *first)))


def _choose_by_schema(snapshot: Snapshot) -> tuple[str, ...]:
    before = _read_schema(snapshot)
    version = choose_index_version(COLUMN_STATS, snapshot.config.version)
    return () if before is None else choose_first_columns(before, version)


def _read_schema(snapshot: Snapshot) -> Record | None:
    """Return the schema of the table's newest commit, None if it has none."""
    text = snapshot.schema.text
    return None if text is None else parse_record(text)
