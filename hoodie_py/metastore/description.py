"""The entries that a table should have in a catalog (Hudi ``HiveSyncTool``, ``HMSDDLExecutor``).

A COPY_ON_WRITE table has one entry. A MERGE_ON_READ table has three: ``name_ro`` shows its base files; ``name_rt`` and
``name`` show merged rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.schema import Field, Primitive, Union
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import META_FIELDS, OPERATION_FIELD
from hoodie_py.metastore.entry import READ_OPTIMIZED, SERDE_PATH, Column, Entry
from hoodie_py.metastore.hive_types import make_hive_type
from hoodie_py.metastore.settings import SyncSettings, parse_properties
from hoodie_py.metastore.spark_schema import make_spark_properties
from hoodie_py.options import sync as options
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.partition_values import is_formatted_time

_HIVE_IO = "org.apache.hadoop.hive.ql.io."
_OUTPUT, _SERDE = f"{_HIVE_IO}parquet.MapredParquetOutputFormat", f"{_HIVE_IO}parquet.serde.ParquetHiveSerDe"
# Input format of base files, of merged rows, output format, serde (HoodieInputFormatUtils)
_CLASSES = {
    "PARQUET": (
        "org.apache.hudi.hadoop.HoodieParquetInputFormat",
        "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
        _OUTPUT,
        _SERDE,
    ),
    "LANCE": (
        "org.apache.hudi.hadoop.HoodieLanceInputFormat",
        "org.apache.hudi.hadoop.realtime.HoodieLanceRealtimeInputFormat",
        _OUTPUT,
        _SERDE,
    ),
    "ORC": (
        f"{_HIVE_IO}orc.OrcInputFormat",
        f"{_HIVE_IO}orc.OrcInputFormat",
        f"{_HIVE_IO}orc.OrcOutputFormat",
        f"{_HIVE_IO}orc.OrcSerde",
    ),
}
_STRING = Primitive(1, 1, "string")
_NULLABLE_STRING = Union(1, 2, (Primitive(0, 1, "null"), _STRING))


def describe_entries(snapshot: Snapshot, settings: SyncSettings, location: str) -> list[Entry]:
    """Return the entries of a table, without the parameters that record the sync's progress.

    Raises:
        InvalidTableError: the table has no columns, or no commit.
        UnsupportedFeatureError: catalogs cannot describe a column or a file format.
    """
    given = settings.given
    partition_fields = find_partition_fields(snapshot.config, settings)
    fields = _order_fields(_list_fields(snapshot, settings), partition_fields)
    timestamps = options.SUPPORT_TIMESTAMP.read(given)
    typed = {each.name: _make_column(each, timestamps) for each in fields}
    for name in partition_fields:
        if is_formatted_time(snapshot.config, name):
            typed[name] = Column(name, "string")
    parameters = parse_properties(given, options.TABLE_PROPERTIES)
    serde = parse_properties(given, options.SERDE_PROPERTIES) | {"serialization.format": "1"}
    as_source = options.AS_DATA_SOURCE.read(given)
    if as_source:
        spark = options.SPARK_VERSION.read(given)
        parameters |= make_spark_properties(fields, partition_fields, options.SCHEMA_PART_LENGTH.read(given), spark)
    found = []
    for name, merged, read_optimized in _list_names(snapshot.config, settings):
        base, realtime, output, serde_class = _find_classes(snapshot.config)
        found.append(
            Entry(
                database=settings.database,
                name=name,
                location=location,
                columns=tuple(typed[each.name] for each in fields if each.name not in partition_fields),
                partition_columns=tuple(typed[each] for each in partition_fields),
                parameters=parameters,
                serde_parameters=serde
                | ({SERDE_PATH: location, READ_OPTIMIZED: str(read_optimized).lower()} if as_source else {}),
                input_format=realtime if merged else base,
                output_format=output,
                serde=serde_class,
                managed=options.MANAGED.read(given),
            )
        )
    return found


def find_partition_fields(config: TableConfig, settings: SyncSettings) -> tuple[str, ...]:
    """Return the partition columns of the entries."""
    found = options.PARTITION_FIELDS.read(settings.given) or config.partition_fields
    for name in found:
        if "." in name:
            raise UnsupportedFeatureError(f"Catalogs cannot have the partition column {name}, a field of a struct.")
    return tuple(found)


def _list_names(config: TableConfig, settings: SyncSettings) -> list[tuple[str, bool, bool]]:
    """Return the entries as (name, whether it shows merged rows, whether it is marked as read-optimized)."""
    name = settings.table
    if not config.is_merge_on_read:
        return [(name, False, False)]
    if settings.strategy == "RO":
        return [(name, False, True)]
    if settings.strategy == "RT":
        return [(name, True, False)]
    if options.SKIP_RO_SUFFIX.read(settings.given):
        return [(name, False, True), (f"{name}_rt", True, False)]
    return [(f"{name}_ro", False, True), (f"{name}_rt", True, False), (name, True, False)]


def _find_classes(config: TableConfig) -> tuple[str, str, str, str]:
    found = _CLASSES.get(config.base_file_format)
    if found is None:
        raise UnsupportedFeatureError(f"Tables with base files of format {config.base_file_format} are not synced.")
    return found


def _list_fields(snapshot: Snapshot, settings: SyncSettings) -> list[Field]:
    """Return the table's columns as Avro fields, meta columns first.

    Partition columns that the data files leave out are strings.
    """
    schema = snapshot.schema
    if not schema.arrow.names or snapshot.timeline.select_writes().select_completed().last is None:
        raise InvalidTableError(
            "The table has no commits yet, so a catalog has nothing to say of it.", hint="Write to it first."
        )
    text = schema.text
    if text is None:  # a data file gave the columns
        from hoodie_py.formats.avro.from_arrow import make_schema_text

        kept = [each for each in schema.arrow if each.name not in META_FIELDS and each.name != OPERATION_FIELD]
        text = make_schema_text(pa.schema(kept), snapshot.config.name)
    found = [each for each in AvroSchema.parse(text).record.fields if each.name not in META_FIELDS]
    names = {each.name for each in found}
    left_out = [each for each in find_partition_fields(snapshot.config, settings) if each not in names]
    found += [Field(name, _NULLABLE_STRING, True, None) for name in left_out]
    if options.OMIT_META_FIELDS.read(settings.given):
        return found
    return [*(Field(name, _NULLABLE_STRING, True, None) for name in META_FIELDS), *found]


def _order_fields(fields: Sequence[Field], partition_fields: Sequence[str]) -> list[Field]:
    """Return the fields with the partition columns last, in the order of the partition path."""
    by_name = {each.name: each for each in fields}
    rest = [each for each in fields if each.name not in partition_fields]
    return [*rest, *(by_name[name] for name in partition_fields)]


def _make_column(field: Field, timestamps: bool) -> Column:
    try:
        return Column(field.name, make_hive_type(field.type, timestamps=timestamps))
    except UnsupportedFeatureError as error:
        raise error.locate(column=field.name) from None
