"""The entries that a table should have in a catalog, with the properties that describe its schema to Spark.

A COPY_ON_WRITE table has one entry. A MERGE_ON_READ table has three: ``name_ro`` shows its base files; ``name_rt`` and
``name`` show merged rows (Hudi ``HiveSyncTool``, ``HMSDDLExecutor``). Columns have
Hive types (Hudi ``HiveSchemaUtil``); Glue uses the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Field, Fixed, Map, Primitive, Record, Union
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.logical_types import BLOB, VARIANT
from hoodie_py.formats.names import META_FIELDS, OPERATION_FIELD
from hoodie_py.metastore.entry import PROVIDER, READ_OPTIMIZED, SERDE_PATH, Column, Entry
from hoodie_py.metastore.settings import SyncSettings, parse_properties
from hoodie_py.options import sync as options
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.partition_values import is_formatted_time

_HIVE_NAMES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_TIMES = frozenset({"timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"})
_GROWS = {
    "int": ("bigint", "float", "double"),
    "bigint": ("float", "double"),
    "float": ("double",),
}
_DECIMAL = re.compile(r"decimal\((\d{1,3}),(\d{1,3})\)")


def make_hive_type(node: AvroType, *, timestamps: bool) -> str:
    """Return the Hive type of a column.

    ``timestamps``: whether times become ``timestamp``; otherwise they are ``bigint``.

    Raises:
        UnsupportedFeatureError: Hive has no such type.
    """
    match node:
        case Union(members=(member,)):
            return make_hive_type(member, timestamps=timestamps)
        case Primitive(kind="int", logical="date"):
            return "date"
        case Primitive(logical=logical) if timestamps and logical in _TIMES:
            return "timestamp"
        case Primitive(kind=kind) if kind in _HIVE_NAMES:
            return _HIVE_NAMES[kind]
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Fixed():
            return "binary"
        case Enum():
            return "string"
        case Array(items=items):
            return f"array<{make_hive_type(items, timestamps=timestamps)}>"
        case Map(values=values):
            return f"map<string,{make_hive_type(values, timestamps=timestamps)}>"
        case Record(fields=fields):
            inner = (f"{each.name.lower()}:{make_hive_type(each.type, timestamps=timestamps)}" for each in fields)
            return f"struct<{','.join(inner)}>"
    raise UnsupportedFeatureError("Catalogs have no type for a union of several types.")


def may_become(known: str, wanted: str) -> bool:
    """Whether a catalog may change a column's type so that engines can still read older files.

    Numbers may widen, scalars may become strings, and decimals may get more digits. Nested types of the same kind
    always pass: engines take their inner types from the files.
    """
    if known == wanted or wanted in _GROWS.get(known, ()) or (wanted == "string" and "<" not in known):
        return True
    nested = known.partition("<")[0]
    if "<" in known and wanted.startswith(f"{nested}<"):
        return True
    before, after = _DECIMAL.fullmatch(known), _DECIMAL.fullmatch(wanted)
    if before is None or after is None:
        return False
    (precision, scale), (more, finer) = map(int, before.groups()), map(int, after.groups())
    return finer >= scale and more - finer >= precision - scale


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

_PREFIX = "spark.sql.sources.schema."
_KINDS = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}


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


def make_spark_properties(
    fields: Sequence[Field], partition_columns: Sequence[str], part_length: int, spark_version: str | None
) -> dict[str, str]:
    """Return the properties by which Spark finds a table's format and columns.

    The schema is JSON in Spark's form (Hudi ``SparkSchemaUtils``), cut into parts because property values have a
    maximum length (Hudi ``SparkDataSourceTableUtils``). The JSON equals Java's to the letter, so that the properties do
    not change if Java and this package sync in turn.

    Args:
        fields: the columns; partition columns come last.
        partition_columns: their names.
        part_length: characters of the schema in one property.
        spark_version: the version of Spark that created the table; None leaves the property out.

    Raises:
        UnsupportedFeatureError: such a schema cannot have a column's type.
    """
    found = {PROVIDER: "hudi"}
    if spark_version:
        found["spark.sql.create.version"] = spark_version
    text = _make_struct(fields)
    parts = [text[start : start + part_length] for start in range(0, len(text), part_length)]
    found[f"{_PREFIX}numParts"] = str(len(parts))
    found |= {f"{_PREFIX}part.{number}": part for number, part in enumerate(parts)}
    if partition_columns:
        found[f"{_PREFIX}numPartCols"] = str(len(partition_columns))
        found |= {f"{_PREFIX}partCol.{number}": name for number, name in enumerate(partition_columns)}
    return found


def _make_struct(fields: Sequence[Field]) -> str:
    return f'{{"type":"struct","fields":[{",".join(map(_make_field, fields))}]}}'


def _make_field(field: Field) -> str:
    node = _get_member(field.type)
    metadata = '{"hudi_type":"BLOB"}' if isinstance(node, Record) and node.logical == BLOB else "{}"
    nullable = _is_nullable(field.type)
    return f'{{"name":"{field.name}","type":{_make_type(node)},"nullable":{nullable},"metadata":{metadata}}}'


def _make_type(node: AvroType) -> str:
    match _get_member(node):
        case Primitive(logical=logical) if logical in _LOGICAL:
            return f'"{_LOGICAL[logical]}"'
        case Primitive(kind=kind) if kind in _KINDS:
            return f'"{_KINDS[kind]}"'
        case Decimal(precision=precision, scale=scale):
            return f'"decimal({precision},{scale})"'
        case Fixed():
            return '"binary"'
        case Enum():
            return '"string"'
        case Array(items=items):
            return f'{{"type":"array", "elementType":{_make_type(items)},"containsNull":{_is_nullable(items)}}}'
        case Map(values=values):
            inner = f'"valueType":{_make_type(values)},"valueContainsNull":{_is_nullable(values)}'
            return f'{{"type":"map", "keyType":"string",{inner}}}'
        case Record(logical=logical, fields=fields) if logical != VARIANT:
            return _make_struct(fields)
    raise UnsupportedFeatureError(
        "A column has a type that Spark's schema in a catalog cannot have: a VARIANT, or a union of several types.",
        hint="Set hoodie.datasource.hive_sync.sync_as_datasource=false to leave that schema out.",
    )


def _get_member(node: AvroType) -> AvroType:
    return node.members[0] if isinstance(node, Union) and len(node.members) == 1 else node


def _is_nullable(node: AvroType) -> str:
    return "true" if isinstance(node, Union) and node.nullable else "false"
