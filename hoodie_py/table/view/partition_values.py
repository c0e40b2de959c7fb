"""Parses typed partition values from a partition's path, so that rows read as in Spark.

The rules (Hudi ``HoodieSparkUtils.parsePartitionColumnValues``, Spark ``PartitioningUtils``):

* With ordinary key generators the path's value counts, cast to the column's type, and not the value in the files. So an
  empty string, which is written to ``__HIVE_DEFAULT_PARTITION__``, reads as null.
* With timestamp and custom key generators the path holds formatted times, so the files' value counts. A partition
  column of the timestamp key generator has the type string, a column of a custom key generator its own type
  (``SparkHoodieTableFileIndex``). The files' value also counts with a user's own key generator class.
* The path of a timestamp may be in any zone, so the files' value counts, except for null.
* If a text cannot be cast, or the path does not fit the partition fields, the files' value counts.
* Files without the column (``drop.partition.columns``) take the path's value, as text if no type is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import split_partition_path, unescape_partition_value

_PATH_SPELLS_VALUE = frozenset({
    None, "SIMPLE", "COMPLEX", "NON_PARTITION", "GLOBAL_DELETE", "AUTO_RECORD", "SPARK_SQL", "SPARK_SQL_UUID",
    "SPARK_SQL_MERGE_INTO",
})  # fmt: skip
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?(?:NaN|Infinity|[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?)")
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)


class UnreadableValueError(Exception):
    """The text is not a value of the column's type."""


def parse_partition_constants(
    config: TableConfig, schema: pa.Schema, path: str, *, whole: bool = False
) -> dict[str, Any]:
    """Parse the columns whose value in every row of a partition is the value in the path.

    Return Python values by column name (None is null); all other columns take the value in the files. Partition fields
    that are nested, or that the schema lacks, are left out.

    ``whole``: take a path segment (in hive style the text after ``field=``) as the value itself, if paths are not
    encoded: ``%XX`` is not decoded, and without hive style an equals sign is part of the value. Java does so for
    filters that name a partition (``names_partition``).
    """
    if not spells_values(config):
        return {}
    whole = whole and not config.url_encode_partitioning
    values = parse_partition_values(config, schema, path, whole=whole)
    return {field: value for field, value in values.items() if not isinstance(value, datetime)}


def spells_values(config: TableConfig) -> bool:
    """Say whether the key generator writes partition values into paths as they are, not as formatted times."""
    return config.key_generator in _PATH_SPELLS_VALUE


def list_decoded_fields(config: TableConfig, path: str) -> tuple[str, ...]:
    """Return the partition fields whose values readers decode from a path although the table does not encode paths."""
    segments = path.split("/")
    fields = config.partition_fields
    if config.url_encode_partitioning or not spells_values(config) or len(segments) != len(fields):
        return ()
    return tuple(name for name, text in zip(fields, segments, strict=True) if unescape_partition_value(text) != text)


def is_formatted_time(config: TableConfig, field: str) -> bool:
    """Say whether the timestamp key generator formats this partition field, so that Spark types it as a string."""
    return config.key_generator == "TIMESTAMP" and field in config.partition_fields


def may_hold_slash(config: TableConfig, schema: pa.Schema) -> bool:
    """Say whether a partition value may span several folders, so that a folder's depth does not identify partitions."""
    if config.url_encode_partitioning:
        return False
    if not spells_values(config) or config.slash_separated_date_partitioning:
        return True
    for field in config.partition_fields:
        index = schema.get_field_index(field)
        type_ = schema.field(index).type if index >= 0 else pa.null()
        if not (pa.types.is_integer(type_) or pa.types.is_boolean(type_)):
            return True
    return False


def parse_partition_values(config: TableConfig, schema: pa.Schema, path: str, *, whole: bool = False) -> dict[str, Any]:
    """Parse the value of every partition column, for files that lack the column."""
    hive_style = config.hive_style_partitioning
    texts = split_partition_path(path, config.partition_fields, whole=whole, hive_style=hive_style)
    values: dict[str, Any] = {}
    for field, text in zip(config.partition_fields, texts or (), strict=False):
        index = schema.get_field_index(field)
        if index < 0:
            continue
        if text is None:
            values[field] = None
            continue
        try:
            values[field] = parse_typed_value(text, schema.field(index).type)
        except UnreadableValueError:
            continue
    return values


def parse_typed_value(text: str, type_: pa.DataType) -> Any:
    """Return the value of a text; raises UnreadableValueError if it is not a value of the type."""
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return text
    if pa.types.is_timestamp(type_):
        return _parse_timestamp(text, with_zone=type_.tz is not None)
    if pa.types.is_decimal(type_):
        return _parse_decimal(text, type_)
    if pa.types.is_integer(type_):
        return _parse_integer(text, type_)
    for matches, parse in _PARSERS:
        if matches(type_):
            return parse(text)
    raise UnreadableValueError


def _parse_integer(text: str, type_: pa.DataType) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise UnreadableValueError
    value = int(text)
    bound = 1 << (type_.bit_width - 1)
    if not -bound <= value < bound:
        raise UnreadableValueError
    return value


def _parse_float(text: str) -> float:
    if _FLOAT.fullmatch(text) is None:
        raise UnreadableValueError
    return float(text)


def _parse_boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise UnreadableValueError
    return text.lower() == "true"


def _parse_date(text: str) -> date:
    """Parse ``2024``, ``2024-1`` and ``2024-01-02``, as Spark casts, and ``2024/01/02`` of slash-separated dates."""
    match = _DATE.fullmatch(text.replace("/", "-"))
    if match is None:
        raise UnreadableValueError
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError as error:
        raise UnreadableValueError from error


def _parse_timestamp(text: str, *, with_zone: bool) -> datetime:
    """Parse an ISO date-time; without a zone in the text it is UTC."""
    if _TIMESTAMP.fullmatch(text) is None:
        raise UnreadableValueError
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise UnreadableValueError from error
    if not with_zone:
        if value.tzinfo is not None:
            raise UnreadableValueError
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _parse_decimal(text: str, type_: pa.DataType) -> Decimal:
    if len(text) > 100:
        raise UnreadableValueError
    try:
        with localcontext() as context:
            context.prec = 76
            value = Decimal(text)
            if not value.is_finite() or value.adjusted() >= type_.precision - type_.scale:
                raise UnreadableValueError
            scaled = value.quantize(Decimal(1).scaleb(-type_.scale))
    except InvalidOperation as error:
        raise UnreadableValueError from error
    if scaled != value:
        raise UnreadableValueError
    return scaled


_PARSERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]], ...] = (
    (pa.types.is_date, _parse_date),
    (pa.types.is_boolean, _parse_boolean),
    (pa.types.is_floating, _parse_float),
    (pa.types.is_binary, str.encode),
)
