"""``hoodie.properties`` as a typed value (Hudi HoodieTableConfig, KeyGeneratorType).

The keys of the file are declared only here. Values that depend on several properties are resolved once, when the file
is parsed: the aliases of older and newer releases, the merge mode (``merge_config``), ``field:TYPE`` partition fields,
and the key generator's type.

The file contains a checksum of database and table name; a wrong one means that the file is torn or belongs to another
table. The caller chooses between ``hoodie.properties`` and its backup, and retries.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config import merge_config
from hoodie_py.formats.config.merge_config import MergeConfig, MergeMode
from hoodie_py.formats.config.properties import parse_properties
from hoodie_py.formats.names import METADATA_FOLDER, check_inside

_KEYGEN = "org.apache.hudi.keygen"
CLASS_OF_TYPE = {
    "SIMPLE": f"{_KEYGEN}.SimpleKeyGenerator",
    "SIMPLE_AVRO": f"{_KEYGEN}.SimpleAvroKeyGenerator",
    "COMPLEX": f"{_KEYGEN}.ComplexKeyGenerator",
    "COMPLEX_AVRO": f"{_KEYGEN}.ComplexAvroKeyGenerator",
    "TIMESTAMP": f"{_KEYGEN}.TimestampBasedKeyGenerator",
    "TIMESTAMP_AVRO": f"{_KEYGEN}.TimestampBasedAvroKeyGenerator",
    "CUSTOM": f"{_KEYGEN}.CustomKeyGenerator",
    "CUSTOM_AVRO": f"{_KEYGEN}.CustomAvroKeyGenerator",
    "NON_PARTITION": f"{_KEYGEN}.NonpartitionedKeyGenerator",
    "NON_PARTITION_AVRO": f"{_KEYGEN}.NonpartitionedAvroKeyGenerator",
    "GLOBAL_DELETE": f"{_KEYGEN}.GlobalDeleteKeyGenerator",
    "GLOBAL_DELETE_AVRO": f"{_KEYGEN}.GlobalAvroDeleteKeyGenerator",
    "AUTO_RECORD": f"{_KEYGEN}.AutoRecordGenWrapperKeyGenerator",
    "AUTO_RECORD_AVRO": f"{_KEYGEN}.AutoRecordGenWrapperAvroKeyGenerator",
    "HOODIE_TABLE_METADATA": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "SPARK_SQL": "org.apache.spark.sql.hudi.command.SqlKeyGenerator",
    "SPARK_SQL_UUID": "org.apache.spark.sql.hudi.command.UuidKeyGenerator",
    "SPARK_SQL_MERGE_INTO": "org.apache.spark.sql.hudi.command.MergeIntoKeyGenerator",
}
_TYPE_OF_CLASS = {name: kind for kind, name in CLASS_OF_TYPE.items()}


def find_type(class_name: str) -> str:
    """Return the type of a key generator's class; a user's own class has the type USER_PROVIDED."""
    return _TYPE_OF_CLASS.get(class_name, "USER_PROVIDED")


PROPERTIES_FILE = "hoodie.properties"
PROPERTIES_BACKUP_FILE = "hoodie.properties.backup"

NAME = "hoodie.table.name"
DATABASE = "hoodie.database.name"
CHECKSUM = "hoodie.table.checksum"
TYPE = "hoodie.table.type"
VERSION = "hoodie.table.version"
INITIAL_VERSION = "hoodie.table.initial.version"
TIMELINE_LAYOUT = "hoodie.timeline.layout.version"
TIMELINE_PATH = "hoodie.timeline.path"
HISTORY_PATH = "hoodie.timeline.history.path"
ARCHIVE_FOLDER = "hoodie.archivelog.folder"
RECORD_KEY_FIELDS = "hoodie.table.recordkey.fields"
PARTITION_FIELDS = "hoodie.table.partition.fields"
ORDERING_FIELDS = "hoodie.table.ordering.fields"  # 1.1 and later
PRECOMBINE_FIELD = "hoodie.table.precombine.field"  # the same before 1.1
MERGE_MODE = "hoodie.record.merge.mode"
MERGE_STRATEGY_ID = "hoodie.record.merge.strategy.id"
MERGE_STRATEGY_ID_ALIAS = "hoodie.compaction.record.merger.strategy"
PAYLOAD_CLASS = "hoodie.compaction.payload.class"
WRITER_PAYLOAD_CLASS = "hoodie.datasource.write.payload.class"
LEGACY_PAYLOAD_CLASS = "hoodie.table.legacy.payload.class"
PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
MERGE_PROPERTY_PREFIX = "hoodie.record.merge.property."
POPULATE_META_FIELDS = "hoodie.populate.meta.fields"
DROP_PARTITION_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
HIVE_STYLE_PARTITIONING = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE_PARTITIONING = "hoodie.datasource.write.partitionpath.urlencode"
SLASH_SEPARATED_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
KEY_GENERATOR_CLASS = "hoodie.table.keygenerator.class"
KEY_GENERATOR_TYPE = "hoodie.table.keygenerator.type"
TIMESTAMP_KEYGEN_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")
PARTITION_EXTRACTOR = "hoodie.table.partition_extractor_class"  # for catalogs
CREATE_SCHEMA = "hoodie.table.create.schema"
BASE_FILE_FORMAT = "hoodie.table.base.file.format"
MULTIPLE_BASE_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"
PARTITION_METAFILE_BASE_FORMAT = "hoodie.partition.metafile.use.base.format"
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
INDEX_DEFINITIONS_PATH = "hoodie.table.index.defs.path"
TIMEZONE = "hoodie.table.timeline.timezone"
BOOTSTRAP_BASE_PATH = "hoodie.bootstrap.base.path"
BOOTSTRAP_INDEX_CLASS = "hoodie.bootstrap.index.class"
BOOTSTRAP_INDEX_TYPE = "hoodie.bootstrap.index.type"
TABLE_FORMAT = "hoodie.table.format"
METADATA_PAYLOAD = "org.apache.hudi.metadata.HoodieMetadataPayload"

FIRST_VERSION_WITH_COMPLETION_TIMES = 8
READABLE_VERSIONS = (1, 2, 3, 4, 5, 6, 8, 9)
WRITABLE_VERSIONS = (6, 8, 9)
FIRST_VERSION_OF_LAYOUT_2 = 8  # of the timeline
_OLD_VERSIONS = ("1", "2", "3", "4", "5", "6", "7")
TABLE_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
CDC_MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")

_KEY_GENERATOR_TYPES = {name: kind.removesuffix("_AVRO") for kind, name in CLASS_OF_TYPE.items()}


def compute_table_checksum(name: str, database: str = "") -> int:
    """Return the checksum of a properties file: CRC-32 of ``database.name`` in UTF-8, unsigned."""
    return zlib.crc32(f"{database}.{name}".encode())


@dataclass(frozen=True, slots=True)
class TableConfig:
    """A table's resolved properties.

    ``ordering_fields`` are the configured fields, ``merge_ordering_fields`` the ones that a merge reads.
    ``partition_fields`` lack the ``:TYPE`` of custom key generators, which is in ``partition_field_types``.
    ``key_generator`` is Hudi's type name without ``_AVRO``, or the class name of a user's generator. ``payload_class``
    has an effect only in ``is_payload_based`` tables, ``legacy_payload_class`` never. ``properties`` contains every key
    of the file with its unchanged value.

    Examples:
        >>> trips.config.name, trips.config.version, trips.config.table_type
        ('trips', 9, 'MERGE_ON_READ')
        >>> trips.config.record_key_fields, trips.config.ordering_fields, trips.config.partition_fields
        (('id',), ('ts',), ('city',))
    """

    name: str
    version: int
    merge_mode: MergeMode
    merge_strategy_id: str | None
    payload_class: str | None
    database: str = ""
    table_type: str = "COPY_ON_WRITE"
    timeline_layout: int = 2
    timeline_path: str = "timeline"
    history_path: str = "history"
    archive_folder: str = "archived"
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    partition_field_types: tuple[str | None, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    legacy_payload_class: str | None = None
    partial_update_mode: str | None = None
    merge_properties: Mapping[str, str] = field(default_factory=dict)
    populate_meta_fields: bool = True
    drop_partition_columns: bool = False
    hive_style_partitioning: bool = False
    url_encode_partitioning: bool = False
    slash_separated_date_partitioning: bool = False
    key_generator: str | None = None
    create_schema: str | None = None
    base_file_format: str = "PARQUET"
    multiple_base_file_formats: bool = False
    cdc_enabled: bool = False
    cdc_mode: str = "DATA_BEFORE_AFTER"
    partition_metafile_base_format: bool = False
    metadata_partitions: tuple[str, ...] = ()
    metadata_partitions_inflight: tuple[str, ...] = ()
    timezone: str = "LOCAL"
    bootstrap_base_path: str | None = None
    table_format: str = "native"
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        facts = [repr(self.name), self.table_type, f"version {self.version}"]
        facts += [
            f"{what} {', '.join(names)}"
            for what, names in (
                ("key", self.record_key_fields),
                ("partitioned by", self.partition_fields),
                ("ordering", self.ordering_fields),
            )
            if names
        ]
        return f"TableConfig({', '.join([*facts, self.merge_mode.value])})"

    @classmethod
    def from_bytes(cls, data: bytes) -> TableConfig:
        """Parse a ``hoodie.properties`` file.

        Raises:
            InvalidTableError: the name is missing, the checksum is wrong, or a value is unknown or contradicts another.
            UnsupportedFeatureError: the table version is not 1 to 6, 8 or 9, or the table format is not Hudi's own.
        """
        return cls.from_properties(parse_properties(data))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TableConfig:
        """Resolve parsed properties. Raises as ``from_bytes``."""
        name = properties.get(NAME, "")
        try:
            return _PropertyReader(properties).read_config(cls)
        except (InvalidTableError, UnsupportedFeatureError) as error:
            raise error.locate(table=name or None, path=PROPERTIES_FILE) from error.__cause__

    @property
    def type(self) -> str:
        """``COPY_ON_WRITE`` or ``MERGE_ON_READ``."""
        return self.table_type

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table has log files."""
        return self.table_type == "MERGE_ON_READ"

    @property
    def has_logs_named_by_commit(self) -> bool:
        """Whether a log file's name contains the instant of the delta commit that wrote it (from table version 8 on).

        Up to version 6 the name contains the base instant of the file slice.
        """
        return self.version >= FIRST_VERSION_WITH_COMPLETION_TIMES

    @property
    def may_mix_commits_in_logs(self) -> bool:
        """Whether a log file may have blocks of several commits, some of them unfinished.

        True up to version 6, and for tables upgraded from there, whose older slices may have such log files.
        """
        return not self.has_logs_named_by_commit or self.properties.get(INITIAL_VERSION, "").strip() in _OLD_VERSIONS

    @property
    def is_partitioned(self) -> bool:
        """Whether the table has partition fields."""
        return bool(self.partition_fields)

    @property
    def is_payload_based(self) -> bool:
        """Whether records merge by the rules of the Java class in ``payload_class``."""
        return self.merge_mode is MergeMode.CUSTOM and self.merge_strategy_id == merge_config.PAYLOAD_STRATEGY_ID

    @property
    def is_metadata_table(self) -> bool:
        """Whether this is the metadata table of another table."""
        return self.payload_class == METADATA_PAYLOAD

    def is_keyed_by(self, column: str) -> bool:
        """Say whether the values of a column, as text, are the record keys."""
        return self.record_key_fields == (column,) and self.key_generator != "COMPLEX"

    @property
    def merge_ordering_fields(self) -> tuple[str, ...]:
        """The ordering fields that a merge reads: none if the order of commits decides."""
        return () if self.merge_mode is MergeMode.COMMIT_TIME_ORDERING else self.ordering_fields

    @property
    def timestamp_keygen(self) -> Mapping[str, str]:
        """Settings of the timestamp key generator without key prefix (``timestamp.type``, ``output.dateformat``)."""
        return find_timestamp_keygen_settings(self.properties)

    def find_timeline_folder(self) -> str:
        """Return the folder of the active timeline, relative to the base path."""
        return METADATA_FOLDER if self.timeline_layout == 1 else f"{METADATA_FOLDER}/{self.timeline_path}"

    def find_history_folder(self) -> str:
        """Return the folder of the archived timeline, relative to the base path."""
        return (
            f"{self.find_timeline_folder()}/{self.archive_folder if self.timeline_layout == 1 else self.history_path}"
        )


def find_timestamp_keygen_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the timestamp key generator in properties or options, without key prefix."""
    found: dict[str, str] = {}
    for prefix in reversed(TIMESTAMP_KEYGEN_PREFIXES):
        found |= {key[len(prefix) :]: text for key, text in properties.items() if key.startswith(prefix)}
    return found


class _PropertyReader:
    """Reads typed values from raw properties, and resolves values that depend on several of them."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def read_text(self, *keys: str) -> str | None:
        """Return the first non-empty value of the keys, stripped."""
        for key in keys:
            value = self._properties.get(key, "").strip()
            if value:
                return value
        return None

    def read_names(self, *keys: str) -> tuple[str, ...]:
        return tuple(name.strip() for name in (self.read_text(*keys) or "").split(",") if name.strip())

    def read_flag(self, key: str, default: bool = False) -> bool:
        value = self.read_text(key)
        return default if value is None else value.lower() == "true"

    def read_number(self, key: str) -> int | None:
        value = self.read_text(key)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise InvalidTableError(f"{key} is not a number.", value=value[:100])
        return int(value)

    def read_choice(self, key: str, choices: tuple[str, ...], default: str | None) -> str | None:
        value = self.read_text(key)
        if value is None:
            return default
        if value not in choices:
            raise InvalidTableError(f"{key} has an unknown value.", value=value[:100], known=", ".join(choices))
        return value

    def read_folder(self, key: str, default: str) -> str:
        return check_inside((self.read_text(key) or default).strip("/") or default)

    def read_class_name(self, *keys: str) -> str | None:
        value = self.read_text(*keys)
        return merge_config.replace_old_package(value) if value else None

    def read_config(self, cls: type[TableConfig]) -> TableConfig:
        name = self.read_name()
        version = self.read_version()
        merge = self.read_merge(version)
        table_type = self.read_choice(TYPE, TABLE_TYPES, "COPY_ON_WRITE")
        cdc_mode = (self.read_text(CDC_MODE) or "DATA_BEFORE_AFTER").upper()
        if cdc_mode not in CDC_MODES:
            raise InvalidTableError(f"{CDC_MODE} has an unknown value.", value=cdc_mode[:100])
        config = cls(
            name=name,
            version=version,
            merge_mode=merge.mode,
            merge_strategy_id=merge.strategy_id,
            payload_class=merge.payload_class,
            database=self._properties.get(DATABASE, ""),
            table_type=table_type or "",
            timeline_layout=self.read_layout(version),
            timeline_path=self.read_folder(TIMELINE_PATH, "timeline"),
            history_path=self.read_folder(HISTORY_PATH, "history"),
            archive_folder=self.read_folder(ARCHIVE_FOLDER, "archived"),
            record_key_fields=self.read_names(RECORD_KEY_FIELDS),
            ordering_fields=self.read_names(ORDERING_FIELDS, PRECOMBINE_FIELD),
            legacy_payload_class=self.read_class_name(LEGACY_PAYLOAD_CLASS),
            partial_update_mode=self.read_choice(PARTIAL_UPDATE_MODE, merge_config.PARTIAL_UPDATE_MODES, None)
            if version >= 9
            else None,
            merge_properties=merge_config.collect_merge_properties(
                self._properties,
                MERGE_PROPERTY_PREFIX,
                (merge_config.DELETE_FIELD, merge_config.DELETE_MARKER),
                version,
                merge.payload_class,
            ),
            populate_meta_fields=self.read_flag(POPULATE_META_FIELDS, default=True),
            key_generator=self.read_key_generator(),
            create_schema=self.read_text(CREATE_SCHEMA),
            base_file_format=(self.read_text(BASE_FILE_FORMAT) or "PARQUET").upper(),
            multiple_base_file_formats=self.read_flag(MULTIPLE_BASE_FORMATS),
            cdc_enabled=self.read_flag(CDC_ENABLED),
            cdc_mode=cdc_mode,
            metadata_partitions=self.read_names(METADATA_PARTITIONS),
            metadata_partitions_inflight=self.read_names(METADATA_PARTITIONS_INFLIGHT),
            timezone=self.read_choice(TIMEZONE, ("LOCAL", "UTC"), "LOCAL") or "LOCAL",
            bootstrap_base_path=self.read_text(BOOTSTRAP_BASE_PATH),
            table_format=self.read_table_format(),
            properties=dict(self._properties),
        )
        return replace(config, **self.read_partitioning())

    def read_name(self) -> str:
        name = self._properties.get(NAME)
        if not name:
            raise InvalidTableError(f"{NAME} is missing, so this is not a table's properties file.")
        stored = self.read_text(CHECKSUM)
        if stored is not None and stored != str(compute_table_checksum(name, self._properties.get(DATABASE, ""))):
            raise InvalidTableError("The checksum does not match: the properties file is torn or was edited by hand.")
        return name

    def read_version(self) -> int:
        version = self.read_number(VERSION)
        if version is None:
            layout = "" if TIMELINE_LAYOUT in self._properties else f" and {TIMELINE_LAYOUT}=1"
            raise InvalidTableError(
                f"{VERSION} is missing.",
                hint=f"Tables of Hudi 0.5 have none: if this is one, add {VERSION}=1{layout} to the file. Else it "
                "is not whole: restore it, or its backup.",
            )
        if version not in READABLE_VERSIONS:
            old = f" A table of Hudi 0.5 can be read with {VERSION}=1." if version == 0 else ""
            raise UnsupportedFeatureError(
                f"Table version {version} is not supported.",
                hint=f"Versions 1 to 6, 8 and 9 are; version 7 was never released.{old}",
            )
        return version

    def read_layout(self, version: int) -> int:
        expected = 1 if version < FIRST_VERSION_OF_LAYOUT_2 else 2
        layout = self.read_number(TIMELINE_LAYOUT)
        if layout not in (None, expected):
            raise InvalidTableError(f"Timeline layout {layout} contradicts table version {version}.")
        return expected

    def read_table_format(self) -> str:
        table_format = self.read_text(TABLE_FORMAT) or "native"
        if table_format.lower() != "native":
            raise UnsupportedFeatureError(f"The table's format is {table_format[:100]!r}, not Hudi's own.")
        return table_format

    def read_merge(self, version: int) -> MergeConfig:
        mode = self.read_choice(MERGE_MODE, tuple(MergeMode), None)
        return merge_config.resolve_merge(
            version,
            MergeMode(mode) if mode else None,
            self.read_class_name(PAYLOAD_CLASS, WRITER_PAYLOAD_CLASS),
            self.read_text(MERGE_STRATEGY_ID, MERGE_STRATEGY_ID_ALIAS),
            has_ordering=bool(self.read_names(ORDERING_FIELDS, PRECOMBINE_FIELD)),
        )

    def read_key_generator(self) -> str | None:
        class_name = self.read_class_name(KEY_GENERATOR_CLASS)
        if class_name is not None:
            return _KEY_GENERATOR_TYPES.get(class_name, class_name)
        kind = self.read_text(KEY_GENERATOR_TYPE)
        return kind.upper().removesuffix("_AVRO") if kind else None

    def read_partitioning(self) -> dict[str, Any]:
        pairs = [entry.partition(":") for entry in self.read_names(PARTITION_FIELDS)]
        return {
            "partition_fields": tuple(pair[0].strip() for pair in pairs),
            "partition_field_types": tuple(pair[2].strip().upper() or None for pair in pairs),
            "drop_partition_columns": self.read_flag(DROP_PARTITION_COLUMNS),
            "hive_style_partitioning": self.read_flag(HIVE_STYLE_PARTITIONING),
            "url_encode_partitioning": self.read_flag(URL_ENCODE_PARTITIONING),
            "slash_separated_date_partitioning": self.read_flag(SLASH_SEPARATED_DATES),
            "partition_metafile_base_format": self.read_flag(PARTITION_METAFILE_BASE_FORMAT),
        }
