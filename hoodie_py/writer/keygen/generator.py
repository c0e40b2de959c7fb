"""Make record keys and partition paths of rows, character for character as Java Hudi does.

Agrees with Hudi's column key generators (``SimpleAvroKeyGenerator``, ``ComplexAvroKeyGenerator`` and others),
``KeyGenUtils`` and ``KeyGenerator.constructRecordKey``:

* A single key field gives the text of its value. Several fields, and the complex generator, give ``f1:v1,f2:v2``, with
  ``__null__`` and ``__empty__`` for missing and empty values. A key whose fields are all null or empty is an error.
* A partition field gives the text of its value, or ``__HIVE_DEFAULT_PARTITION__`` for null and empty values. The
  table's properties define whether the value is URL-encoded, and whether ``field=`` precedes it. A timestamp key
  generator gives a formatted time.
* A date becomes its ISO text, a decimal the text with all digits of its scale, a timestamp its microseconds. A
  timestamp with a zone may become the text of Java's ``Timestamp`` instead, in milliseconds and in the writer's zone:
  Java's row writer (``bulk_insert``) always writes it so, except with the custom generator; its other writers follow an
  option.
* Partition fields of a custom key generator have types: ``SIMPLE``, a value, or ``TIMESTAMP``
  (``CustomAvroKeyGenerator``). Tables of version 8 and later store them with the fields in their properties,
  ``at:TIMESTAMP,lv:SIMPLE``. Up to version 6 the properties contain the fields alone, and every writer passes the types
  by an option, in Java, too.

A write to a table without record key fields generates keys (Hudi ``AutoRecordGenWrapperKeyGenerator``). A key is
``<time>_<task>_<row>``, as in Java. Java takes the time of the commit and the number of the Spark task. Here
keys are made before the commit has its time. So the time is the current one, and the number of the task is random: no
two writes make the same key, whatever their clocks show.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks
from hoodie_py.arrow.fields import find_field_type, read_field_values
from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TableConfig, find_timestamp_keygen_settings
from hoodie_py.formats.names import DEFAULT_PARTITION, escape_partition_value
from hoodie_py.options import write as write_keys
from hoodie_py.options.source import PARTITION_PATH
from hoodie_py.reader.record.record_key import format_key_values
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.keygen.timestamp import LAST_MILLI, UTC_MILLIS, PartitionTime
from hoodie_py.writer.row_errors import refuse_rows

_TYPES = ("SIMPLE", "TIMESTAMP")


def find_partition_types(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the type of each partition field: as stored in the table, else as given by the options.

    Raises:
        InvalidQueryError: the option names other fields or an unknown type, or contradicts the table.
        UnsupportedFeatureError: neither the table nor the options give the types.
    """
    stored = tuple(type_ for type_ in config.partition_field_types if type_ in _TYPES)
    is_stored = len(stored) == len(config.partition_fields)
    given = parse_partition_types(config, options)
    if is_stored and given not in (None, stored):
        raise _make_disagreement(config, options, "the table has other types")
    if is_stored:
        return stored
    if given is None or any(config.partition_field_types):
        raise UnsupportedFeatureError(
            "Writing with a custom key generator whose table does not record the types of its partition fields.",
            hint=f"Give the option {PARTITION_PATH[0]}={','.join(f'{name}:TYPE' for name in config.partition_fields)} "
            f"as the table's other writers do, with TYPE {' or '.join(_TYPES)}. An upgrade with it stores the types.",
            table=config.name,
        )
    return given


def parse_partition_types(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the types that the options give for the table's partition fields; None if they give none.

    Raises:
        InvalidQueryError: the option names other fields, or unknown types.
    """
    text = options.get(PARTITION_PATH[0], "")
    pairs = [each.partition(":") for each in text.split(",") if each.strip()]
    if not any(colon for _, colon, _ in pairs):
        return None
    if tuple(name.strip() for name, _, _ in pairs) != config.partition_fields:
        raise _make_disagreement(config, options, f"the table's fields are {','.join(config.partition_fields)}")
    types = tuple(type_.strip().upper() for _, _, type_ in pairs)
    if not set(types) <= set(_TYPES):
        raise _make_disagreement(config, options, f"each field needs a type, {' or '.join(_TYPES)}")
    return types


def _make_disagreement(config: TableConfig, options: Mapping[str, str], why: str) -> InvalidQueryError:
    given = options[PARTITION_PATH[0]][:200]
    return InvalidQueryError(f"{PARTITION_PATH[0]}={given} does not fit the table: {why}.", table=config.name)


_NULL, _EMPTY = "__null__", "__empty__"
_PLAIN_KEY = ("SIMPLE", "TIMESTAMP")
_HANDLED = (*_PLAIN_KEY, "COMPLEX", "NON_PARTITION", "CUSTOM")
VIRTUAL_KEY_GENERATORS = ("SIMPLE", "COMPLEX", "NON_PARTITION")
"""Key generators of tables without meta fields (Hudi ``HoodieTableMetaClient.validateTableProperties``)."""
_FIRST_MILLI = -12_219_292_800_000  # 1582-10-15; for days before it Java uses the Julian calendar
_MICROS_IN_MILLI = 1000
_FIRST_WITH_NAMED_KEYS = 9  # from this table version on, a complex key of one field always names the field
_BAD_PATH = (
    r"(^|[/\\])\.{0,2}([/\\]|$)|^\.hoodie([/\\]|$)|[:\x00]"  # empty, . or .., Hudi's own folder, no path in Java
)
_LOOKS_ENCODED = "%[0-9A-Fa-f]{2}"


@dataclass(frozen=True, slots=True)
class KeyGenerator:
    """Make record keys and partition paths.

    Attributes:
        key_fields: in order; empty in a table whose keys writers generate.
        named: whether a key is ``f1:v1,f2:v2``.
        partition_fields: in path order.
        times: the format of each partition field that is a formatted time.
        hive_style, url_encode: the style of partition paths.
        times_in_millis: partition fields whose values count milliseconds, as in files.
        virtual: whether the table stores no keys. Then keys are the ones that readers compute from rows
            (``RecordKeys``).
        slashed_dates: whether ``-`` becomes ``/`` in the parts of the path.
        text_zone: the zone of timestamps written as texts; None if they are written as microseconds.
    """

    key_fields: tuple[str, ...]
    named: bool
    partition_fields: tuple[str, ...] = ()
    times: Mapping[str, PartitionTime] = field(default_factory=dict)
    hive_style: bool = False
    url_encode: bool = False
    slashed_dates: bool = False
    text_zone: str | None = None
    times_in_millis: frozenset[str] = frozenset()
    virtual: bool = False

    @classmethod
    def from_config(
        cls, config: TableConfig, options: Mapping[str, str] | None = None, timezone: str | None = None
    ) -> KeyGenerator:
        """Make the key generator that a table's properties name.

        ``timezone``: the writer's zone, for timestamps written as texts; None for UTC.

        Raises:
            UnsupportedFeatureError: the key generator is not handled.
            InvalidTableError: the table's fields do not fit its key generator.
            InvalidQueryError: neither the table nor the options say how keys are made.
        """
        given = options or {}
        fields = config.record_key_fields
        typed = any(type_ is not None for type_ in config.partition_field_types[:1])
        generator = config.key_generator or infer_key_generator(fields, config.partition_fields, typed=typed)
        if generator not in _HANDLED:
            raise UnsupportedFeatureError(f"Writing with the key generator {generator[:100]}.", table=config.name)
        if generator in _PLAIN_KEY and len(fields) > 1:
            raise InvalidTableError(f"Key generator {generator} takes one key field.", table=config.name)
        virtual = not config.populate_meta_fields
        if virtual and generator not in VIRTUAL_KEY_GENERATORS:
            raise make_virtual_keys_error(generator).locate(table=config.name)
        as_texts = write_keys.CONSISTENT_TIMESTAMPS.read(given)
        partitioned = generator != "NON_PARTITION"
        partition_fields = config.partition_fields if partitioned else ()
        return cls(
            key_fields=fields,
            named=len(fields) > 1 or (not virtual and generator == "COMPLEX" and _is_single_key_named(config, given)),
            partition_fields=partition_fields,
            times=_read_partition_times(config, generator, given),
            hive_style=config.hive_style_partitioning,
            url_encode=config.url_encode_partitioning,
            slashed_dates=config.slash_separated_date_partitioning
            and (generator == "CUSTOM" or len(partition_fields) == 1),
            text_zone=(timezone or "UTC") if as_texts else None,
            virtual=virtual,
        )

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, options: Mapping[str, str]) -> KeyGenerator:
        """Make the key generator of a table; errors as for ``from_config``."""
        found = cls.from_config(snapshot.config, options, snapshot.timezone)
        if not found.times:
            return found
        units = {
            name: None if snapshot.times is None else find_field_type(snapshot.times, name) for name in found.times
        }
        in_millis = {name for name, type_ in units.items() if type_ is not None and type_.unit == "ms"}
        return replace(found, times_in_millis=frozenset(in_millis))

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields used in record keys and partition paths."""
        return tuple(dict.fromkeys((*self.key_fields, *self.partition_fields)))

    def make_keys(self, table: pa.Table) -> pa.ChunkedArray:
        """Make the record key of every row.

        Raises:
            InvalidQueryError: a key field is missing, or rows have no key; names the first rows.
            UnsupportedFeatureError: keys cannot be made of a key field's type, or there are no key fields.
        """
        if not self.key_fields:
            raise UnsupportedFeatureError("Keys of rows in a table without record key fields.")
        texts = [self._format_key_field(_read_column(table, name, "record key"), name) for name in self.key_fields]
        columns = ",".join(self.key_fields)
        missing = [pc.fill_null(pc.equal(each, ""), True) for each in texts]
        nowhere = missing[0]
        for each in missing[1:]:
            nowhere = pc.and_(nowhere, each)
        refuse_rows(nowhere, "Rows whose record key is null or empty.", column=columns)
        if not self.named:
            return texts[0]
        parts: list[pa.ChunkedArray | pa.Scalar] = []
        for at, (name, text) in enumerate(zip(self.key_fields, texts, strict=True)):
            parts.append(pa.scalar(f"{',' if at else ''}{name}:"))
            parts.append(pc.fill_null(pc.if_else(pc.equal(text, ""), _EMPTY, text), _NULL))
        return _join_columns(parts, "")

    def _format_key_field(self, values: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        if not self.virtual:
            return format_values(values, name, self.text_zone)
        return pa.chunked_array([format_key_values(chunk, name) for chunk in values.chunks], pa.string())

    def make_partition_paths(self, table: pa.Table) -> pa.ChunkedArray:
        """Make the relative partition path of every row.

        Raises:
            InvalidQueryError: a partition field is missing, or a value cannot be part of a path; names the first rows.
            UnsupportedFeatureError: paths cannot be made of a partition field's type.
        """
        if not self.partition_fields:
            return pa.chunked_array([pa.repeat(pa.scalar(""), table.num_rows)])
        parts: list[pa.ChunkedArray | pa.Scalar] = []
        for at, name in enumerate(self.partition_fields):
            values = _read_column(table, name, "partition")
            if at:
                parts.append(pa.scalar("/"))
            parts.append(self._make_path_part(name, values))
        return parts[0] if len(parts) == 1 else _join_columns(parts, "")

    def _make_path_part(self, name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        time = self.times.get(name)
        if name in self.times_in_millis:
            values = values.cast(pa.timestamp("ms", values.type.tz), safe=False)
        if time is None:
            texts = format_values(values, name, self.text_zone)
        elif self.text_zone is not None and pa.types.is_timestamp(values.type):
            raise UnsupportedFeatureError(
                f"{write_keys.CONSISTENT_TIMESTAMPS} beside a timestamp key generator over a timestamp.", column=name
            )
        else:
            texts = time.format_texts(values, name)
        coded = texts.combine_chunks().dictionary_encode()  # each distinct text is made once: few partitions, many rows
        distinct = [self._format_part(name, each.as_py(), time is not None) for each in coded.dictionary]
        spelt = pa.array([*distinct, self._format_part(name, None, time is not None)], pa.string())
        found = spelt.take(pc.fill_null(coded.indices, len(distinct)))
        bad = pc.match_substring_regex(spelt, _BAD_PATH)
        if time is None and not self.hive_style and not self.url_encode:
            bad = pc.or_(bad, pc.match_substring(spelt, "="))  # Java reads it as hive style, shows the text behind it
        if time is None and not self.url_encode:
            bad = pc.or_(bad, pc.match_substring_regex(spelt, _LOOKS_ENCODED))  # Java decodes it in what it shows
        if pc.any(bad).as_py():
            refuse_rows(
                bad.take(pc.fill_null(coded.indices, len(distinct))),
                "Values that cannot be part of a partition path: empty folders, '.', '..', '.hoodie', colons, NUL, '=' "
                "in a table whose paths are not in hive style, '%' before two hex digits in one whose paths are not "
                "encoded.",
                column=name,
                values=values,
                hint="Make the table with URL-encoded partition paths, or change the values.",
            )
        return pa.chunked_array([found])

    def _format_part(self, name: str, text: str | None, is_time: bool) -> str:
        part = text or DEFAULT_PARTITION
        if self.url_encode:
            part = escape_partition_value(part)
        if self.hive_style:
            part = f"{name}={part}"
        if self.slashed_dates and not is_time and not part.startswith("-"):
            part = part.replace("-", "/")
        return part


def make_virtual_keys_error(generator: str) -> UnsupportedFeatureError:
    """Make the error for a table without meta fields whose keys cannot be computed from its columns."""
    return UnsupportedFeatureError(
        f"A table without meta fields with the key generator {generator}.",
        hint=f"Java Hudi refuses it as well; give one of {', '.join(VIRTUAL_KEY_GENERATORS)}.",
    )


def format_values(values: pa.ChunkedArray, name: str, text_zone: str | None = None) -> pa.ChunkedArray:
    """Return every value's text in keys; null stays null.

    ``text_zone``: the zone of the texts of timestamps that have a zone; None: their microseconds.

    Raises:
        InvalidQueryError: a time is outside the range that has a text; names the first rows.
        UnsupportedFeatureError: keys cannot be made of the type.
    """
    type_ = values.type
    if pa.types.is_string(type_):
        return values
    if pa.types.is_timestamp(type_):
        if text_zone is not None and type_.tz is not None:
            return format_java_timestamps(values, name, text_zone)
        return values.cast(pa.timestamp("us", type_.tz)).cast(pa.int64()).cast(pa.string())
    if (
        pa.types.is_integer(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_null(type_)
    ):
        return values.cast(pa.string())
    raise UnsupportedFeatureError(f"Keys and partition paths made of a column of type {type_}.", column=name)


def _read_column(table: pa.Table, name: str, role: str) -> pa.ChunkedArray:
    if find_field_type(table.schema, name) is None:
        raise InvalidQueryError(
            f"The {role} field {name!r} is not in the rows.",
            hint=f"They have the columns {', '.join(table.schema.names[:20])}.",
            column=name,
        )
    return read_field_values(table, name)


def _join_columns(parts: list[pa.ChunkedArray | pa.Scalar], separator: str) -> pa.ChunkedArray:
    whole = [join_chunks(each) if isinstance(each, pa.ChunkedArray) else each for each in parts]
    return pa.chunked_array([pc.binary_join_element_wise(*whole, separator)])


def infer_key_generator(key_fields: Sequence[str], partition_fields: Sequence[str], *, typed: bool) -> str:
    """Infer the key generator of a table that does not name one (Hudi ``KeyGenUtils.inferKeyGeneratorType``).

    ``typed``: whether partition fields have types, which only a custom key generator gives them.
    """
    if not partition_fields:
        return "NON_PARTITION"
    if typed:
        return "CUSTOM"
    return "COMPLEX" if len(partition_fields) > 1 or len(key_fields) > 1 else "SIMPLE"


def _is_single_key_named(config: TableConfig, options: Mapping[str, str]) -> bool:
    """Whether a complex key of one field names the field. Below version 9 the table does not say.

    Hudi 0.14.1 to 1.0.2 did not name it, releases before and after do. So Hudi 1.2.0 asks for an option as well.
    """
    if config.version >= _FIRST_WITH_NAMED_KEYS:
        return True
    told = write_keys.COMPLEX_KEY_VALUE_ONLY.read_given(options) is not None
    if not told and write_keys.COMPLEX_KEY_CHECK.read(options):
        raise InvalidQueryError(
            "The table has the complex key generator with one key field, which releases of Hudi encode differently.",
            hint=f"Look at its _hoodie_record_key and set {write_keys.COMPLEX_KEY_VALUE_ONLY} to false where keys are "
            "'field:value', to true where they are bare values.",
            table=config.name,
        )
    return not write_keys.COMPLEX_KEY_VALUE_ONLY.read(options)


def _read_partition_times(config: TableConfig, generator: str, options: Mapping[str, str]) -> dict[str, PartitionTime]:
    """Return each timestamp field's format: from the table, else from the options, as Flink stores none."""
    if generator == "TIMESTAMP":
        fields = config.partition_fields
    elif generator == "CUSTOM":
        typed = zip(config.partition_fields, find_partition_types(config, options), strict=True)
        fields = tuple(name for name, type_ in typed if type_ == "TIMESTAMP")
    else:
        return {}
    settings = {**find_timestamp_keygen_settings(options), **config.timestamp_keygen}
    try:
        return {name: PartitionTime.from_settings(settings) for name in fields}
    except InvalidTableError as error:
        raise error.locate(table=config.name) from None


def format_java_timestamps(values: pa.ChunkedArray, column: str, zone: str) -> pa.ChunkedArray:
    """Format timestamps that have a zone as Java's ``java.sql.Timestamp.toString`` does: ``2020-01-02 03:04:05.678``.

    Values are milliseconds, truncated towards 1970. Zeros at the end of the fraction are dropped, except for its first
    digit. Null stays null. ``zone`` is the zone of the texts, which is the one of the writer's JVM.

    Raises:
        InvalidQueryError: times before 1582-10-15 or after the year 9999; names the first rows.
    """
    micros = values.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    millis = pc.divide(micros, _MICROS_IN_MILLI)
    outside = pc.or_(pc.less(millis, _FIRST_MILLI), pc.greater(millis, LAST_MILLI))
    refuse_rows(outside, "Times in keys outside the years 1582 to 9999.", column=column, values=values)
    local = pc.local_timestamp(millis.cast(UTC_MILLIS).cast(pa.timestamp("ms", zone)))
    return pc.replace_substring_regex(local.cast(pa.string()), r"(\.\d+?)0+$", r"\1")


_TASK_BITS = 40
_SPARK_TASKS = 1_000_000


@dataclass(frozen=True, slots=True)
class GeneratedKeys:
    """Makes keys for rows in their order. ``first`` is the number of the next row. Small and picklable."""

    time: str
    task: int
    first: int = 0

    @classmethod
    def begin(cls) -> Self:
        """Return a maker of keys that no other maker makes."""
        return cls(datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")[:17], secrets.randbits(_TASK_BITS))

    def for_task(self, number: int, first: int) -> GeneratedKeys:
        """Return the maker for a Spark task, which may be repeated: the same rows get the same keys."""
        return replace(self, task=self.task * _SPARK_TASKS + number, first=first)

    def make(self, count: int) -> pa.ChunkedArray:
        """Make the keys of ``count`` rows."""
        numbers = from_numpy(np.arange(self.first, self.first + count)).cast(pa.string())
        return pa.chunked_array([pc.binary_join_element_wise(f"{self.time}_{self.task}_", numbers, "")], pa.string())
