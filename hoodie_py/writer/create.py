"""Create a table: make its properties, then write its folders, and last its properties file, which makes it a table.

The properties are the ones that Java Hudi 1.2.0 stores for the same table, version by version
(``HoodieTableMetaClient.TableBuilder``, ``HoodieTableConfig``, ``KeyGenUtils``), with two differences. The create
schema is always stored, so that a table without commits can be read. New instants are in UTC unless the caller chooses
otherwise. Some functions convert the arguments of ``HoodieTable.create`` to the form that ``NewTable`` takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.fields import find_field_type
from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    FileMissingError,
    HoodieError,
    InvalidQueryError,
    InvalidTableError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import DEFAULT_PAYLOAD, OVERWRITE_WITH_LATEST_PAYLOAD, MergeMode, infer_merge
from hoodie_py.formats.config.merge_creation import find_payload_class, make_creation_properties
from hoodie_py.formats.config.properties import format_properties
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.config.whole_properties import parse_whole_table_config, seal_properties
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.options.check import check_table_properties
from hoodie_py.options.write import OUTPUT_DATE_FORMAT, TIMESTAMP_TYPE
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import TableTimeline, load_timeline
from hoodie_py.writer.keygen.generator import VIRTUAL_KEY_GENERATORS, infer_key_generator, make_virtual_keys_error
from hoodie_py.writer.lock.lock import hold
from hoodie_py.writer.lock.machine import MachineLock
from hoodie_py.writer.output_schema import select_user_columns
from hoodie_py.writer.timeline.folder_tree import remove_tree

KEY_GENERATORS = ("SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM")
_EXTRACTORS = "org.apache.hudi.hive"
_PARTITION_TYPES = ("SIMPLE", "TIMESTAMP")
_TYPE_NAMES = {"MOR": "MERGE_ON_READ", "COW": "COPY_ON_WRITE"}

_BY_ARGUMENT = {
    keys.NAME: "name",
    keys.TYPE: "table_type",
    keys.VERSION: "table_version",
    keys.RECORD_KEY_FIELDS: "record_key",
    keys.PARTITION_FIELDS: "partition_by",
    keys.ORDERING_FIELDS: "ordering",
    keys.PRECOMBINE_FIELD: "ordering",
    keys.MERGE_MODE: "merge_mode",
    keys.MERGE_STRATEGY_ID: "merge_strategy_id",
    keys.MERGE_STRATEGY_ID_ALIAS: "merge_strategy_id",
    keys.KEY_GENERATOR_TYPE: "key_generator",
    keys.KEY_GENERATOR_CLASS: "key_generator",
    keys.CREATE_SCHEMA: "schema",
}
_PAYLOAD_CLASS = (keys.PAYLOAD_CLASS, keys.WRITER_PAYLOAD_CLASS)
_NOT_FOR_CALLERS = (
    keys.CHECKSUM, keys.INITIAL_VERSION, keys.TIMELINE_LAYOUT, keys.METADATA_PARTITIONS,
    keys.METADATA_PARTITIONS_INFLIGHT, keys.BOOTSTRAP_BASE_PATH, keys.TABLE_FORMAT,
)  # fmt: skip

PLACEHOLDER = ".keep"
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to create.

    Attributes:
        name: its name.
        schema: its columns; the meta columns of a scan are ignored.
        record_key: key fields; if empty, writers generate keys.
        ordering: ordering fields.
        partition_by: partition fields, ``field:SIMPLE`` or ``field:TIMESTAMP`` for a custom key generator.
        table_type: MERGE_ON_READ or COPY_ON_WRITE, or MOR or COW.
        version: the table version.
        merge_mode: which version of a record wins; None: event time if there are ordering fields, else commit time.
        merge_strategy_id: id of a custom merger.
        key_generator: Hudi's type name; None for the type that follows from the fields.
        properties: further properties, as they are stored.
    """

    name: str
    schema: pa.Schema
    record_key: tuple[str, ...]
    ordering: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    table_type: str = "MERGE_ON_READ"
    version: int = 9
    merge_mode: str | None = None
    merge_strategy_id: str | None = None
    key_generator: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def make_properties(self) -> dict[str, str]:
        """Make the content of the properties file.

        Raises:
            InvalidQueryError: a field is no column, or its type is not allowed; or arguments contradict each other.
            UnsupportedFeatureError: a version, key generator or column type is not handled.
        """
        self._check_arguments()
        columns = select_user_columns(self.schema)
        generator = self._resolve_key_generator()
        self._check_fields(columns)
        found = {
            keys.NAME: self.name,
            keys.TYPE: self._resolve_table_type(),
            keys.VERSION: str(self.version),
            **({keys.RECORD_KEY_FIELDS: ",".join(self.record_key)} if self.record_key else {}),
            keys.PARTITION_FIELDS: ",".join(self.partition_by),
            keys.KEY_GENERATOR_TYPE: generator,
            keys.PARTITION_EXTRACTOR: self._choose_partition_extractor(),
            keys.CREATE_SCHEMA: make_schema_text(columns, self.name),
            keys.TIMEZONE: "UTC",
            **_make_defaults(self.version),
            **({keys.ORDERING_FIELDS: ",".join(self.ordering)} if self.ordering else {}),
            **self._make_merge_properties(),
            **{key: value for key, value in self.properties.items() if key not in _PAYLOAD_CLASS},
        }
        found[keys.CHECKSUM] = str(keys.compute_table_checksum(self.name, found.get(keys.DATABASE, "")))
        _check_result(found)
        return found

    def _check_arguments(self) -> None:
        if not self.name.strip() or any(char in self.name for char in "/\\\0\r\n"):
            raise InvalidQueryError(f"{self.name[:100]!r} cannot be a table's name.", hint="Pass name=.")
        if self.version not in keys.WRITABLE_VERSIONS:
            raise UnsupportedFeatureError(
                f"Tables of version {self.version} cannot be made.", hint="Give table_version=6, 8 or 9."
            )
        if not self.record_key and not self._has_meta_fields:
            raise UnsupportedFeatureError(
                "A table without record key fields and without meta fields: nothing tells its records apart.",
                hint="Give record_key=.",
            )
        for key in self.properties:
            if key in _BY_ARGUMENT and not self._is_for_old_readers(key):
                raise InvalidQueryError(
                    f"The property {key} is an argument of its own.", hint=f"Give {_BY_ARGUMENT[key]}=."
                )
            if key in _NOT_FOR_CALLERS:
                raise InvalidQueryError(f"The property {key} cannot be chosen.", hint="Leave it out.")
        check_table_properties(self.properties)
        modes = tuple(MergeMode)
        if self.merge_mode is not None and self.merge_mode not in modes:
            raise InvalidQueryError(
                f"{self.merge_mode[:100]!r} is no merge mode.", hint=f"Give one of {', '.join(modes)}."
            )
        if self.merge_mode == MergeMode.EVENT_TIME_ORDERING and not self.ordering:
            raise InvalidQueryError("Event-time ordering needs ordering fields.", hint="Give ordering=.")

    @property
    def _has_meta_fields(self) -> bool:
        return self.properties.get(keys.POPULATE_META_FIELDS, "true").strip().lower() != "false"

    def _is_for_old_readers(self, key: str) -> bool:
        """Whether a property repeats the ordering fields under the name that Hudi before 1.1 knows."""
        again = key == keys.PRECOMBINE_FIELD and self.version < keys.FIRST_VERSION_OF_LAYOUT_2
        return again and self.properties[key] == ",".join(self.ordering)

    def _resolve_table_type(self) -> str:
        upper = self.table_type.upper()
        name = _TYPE_NAMES.get(upper, upper)
        if name not in keys.TABLE_TYPES:
            raise InvalidQueryError(
                f"{self.table_type[:100]!r} is no table type.", hint=f"Give one of {', '.join(keys.TABLE_TYPES)}."
            )
        return name

    def _resolve_key_generator(self) -> str:
        """Return the caller's key generator if it fits the fields, else the one that Hudi infers from them."""
        typed = [each for each in self.partition_by if ":" in each]
        if self.key_generator is None:
            chosen = infer_key_generator(self.record_key, self.partition_by, typed=bool(typed))
        else:
            chosen = self.key_generator.upper().removesuffix("_AVRO")
            if chosen not in KEY_GENERATORS:
                raise UnsupportedFeatureError(
                    f"The key generator {self.key_generator[:100]!r}.", hint=f"Give one of {', '.join(KEY_GENERATORS)}."
                )
        self._check_generator(chosen, typed)
        return chosen

    def _check_generator(self, chosen: str, typed: Sequence[str]) -> None:
        if not self._has_meta_fields and chosen not in VIRTUAL_KEY_GENERATORS:
            raise make_virtual_keys_error(chosen)
        if chosen == "CUSTOM":
            self._check_custom(typed)
        elif typed:
            raise InvalidQueryError(f"{typed[0]!r} names a type, which key generator {chosen} does not take.")
        elif (chosen == "NON_PARTITION") != (not self.partition_by):
            raise InvalidQueryError(
                f"Key generator {chosen} contradicts the partition fields ({', '.join(self.partition_by) or 'none'})."
            )
        elif chosen in ("SIMPLE", "TIMESTAMP") and (len(self.record_key) > 1 or len(self.partition_by) > 1):
            raise InvalidQueryError(f"Key generator {chosen} takes one key field and one partition field.")
        if chosen == "TIMESTAMP" or any(_parse_partition_type(each) == "TIMESTAMP" for each in typed):
            given = {
                key for key in self.properties for prefix in keys.TIMESTAMP_KEYGEN_PREFIXES if key.startswith(prefix)
            }
            for name in (TIMESTAMP_TYPE, OUTPUT_DATE_FORMAT):
                if not any(key.endswith(f".{name}") for key in given):
                    wanted = keys.TIMESTAMP_KEYGEN_PREFIXES[0] + name
                    raise InvalidQueryError(f"A timestamp key generator needs the property {wanted}.")

    def _check_custom(self, typed: Sequence[str]) -> None:
        if self.version < keys.FIRST_VERSION_OF_LAYOUT_2:
            raise UnsupportedFeatureError(
                "Custom key generators on table version 6, which does not record the types of partition fields."
            )
        for each in self.partition_by:
            if each not in typed or _parse_partition_type(each) not in _PARTITION_TYPES:
                raise InvalidQueryError(
                    f"{each!r} is no partition field of a custom key generator.",
                    hint="Give field:SIMPLE or field:TIMESTAMP.",
                )

    def _choose_partition_extractor(self) -> str:
        if not self.partition_by:
            return f"{_EXTRACTORS}.NonPartitionedExtractor"
        if len(self.partition_by) > 1:
            return f"{_EXTRACTORS}.MultiPartKeysValueExtractor"
        hive = self.properties.get(keys.HIVE_STYLE_PARTITIONING, "").lower() == "true"
        return f"{_EXTRACTORS}.{'HiveStylePartitionValueExtractor' if hive else 'SinglePartPartitionValueExtractor'}"

    def _check_fields(self, columns: pa.Schema) -> None:
        for argument, names in (
            ("record_key", self.record_key),
            ("partition_by", tuple(each.partition(":")[0] for each in self.partition_by)),
            ("ordering", self.ordering),
        ):
            for name in names:
                type_ = find_field_type(columns, name)
                if type_ is None:
                    raise InvalidQueryError(
                        f"{argument} names {name[:100]!r}, which is no column of the schema.",
                        hint=f"The columns are {', '.join(columns.names[:20])}.",
                        column=name[:100],
                    )
                if argument != "record_key" or self._has_meta_fields or pa.types.is_nested(type_):
                    _check_role(argument, name, type_)
            if len(set(names)) != len(names):
                raise InvalidQueryError(f"{argument} names a column more than once.")

    def _make_merge_properties(self) -> dict[str, str]:
        payload = find_payload_class({key: self.properties.get(key, "") for key in _PAYLOAD_CLASS})
        mode = MergeMode(self.merge_mode) if self.merge_mode else None
        try:
            if self.version >= 9:
                return make_creation_properties(mode, payload, self.merge_strategy_id, self.ordering, self.version)
            if mode is MergeMode.COMMIT_TIME_ORDERING and payload is None and self.merge_strategy_id is None:
                payload = OVERWRITE_WITH_LATEST_PAYLOAD
            merge = infer_merge(self.version, mode, payload, self.merge_strategy_id, has_ordering=bool(self.ordering))
        except InvalidTableError as error:
            raise InvalidQueryError(error.message, hint=error.hint) from None
        stored = {keys.MERGE_STRATEGY_ID: merge.strategy_id or ""}
        if self.version >= keys.FIRST_VERSION_OF_LAYOUT_2:
            stored[keys.MERGE_MODE] = merge.mode.value
        if self.version >= keys.FIRST_VERSION_OF_LAYOUT_2 or merge.mode is not MergeMode.CUSTOM or payload:
            stored[keys.PAYLOAD_CLASS] = merge.payload_class or DEFAULT_PAYLOAD
        return stored


def _check_result(found: Mapping[str, str]) -> None:
    try:
        config = TableConfig.from_properties(found)
    except HoodieError as error:
        raise InvalidQueryError(f"The table's properties do not fit: {error.message}", hint=error.hint) from error
    if config.drop_partition_columns:
        raise UnsupportedFeatureError("Making tables whose files leave out partition columns.")


def _make_defaults(version: int) -> dict[str, str]:
    layout_2 = version >= keys.FIRST_VERSION_OF_LAYOUT_2
    stored = {
        keys.TIMELINE_LAYOUT: "2" if layout_2 else "1",
        keys.TIMELINE_PATH: "timeline",
        keys.HISTORY_PATH: "history",
        keys.ARCHIVE_FOLDER: "history",
        keys.BASE_FILE_FORMAT: "PARQUET",
        keys.TABLE_FORMAT: "native",
        keys.POPULATE_META_FIELDS: "true",
        keys.CDC_ENABLED: "false",
        keys.PARTITION_METAFILE_BASE_FORMAT: "false",
        keys.DROP_PARTITION_COLUMNS: "false",
        keys.HIVE_STYLE_PARTITIONING: "false",
        keys.URL_ENCODE_PARTITIONING: "false",
    }
    if layout_2:
        stored |= {keys.INITIAL_VERSION: str(version), keys.MULTIPLE_BASE_FORMATS: "false"}
    return stored


def _check_role(argument: str, name: str, type_: pa.DataType) -> None:
    value_type = type_.value_type if pa.types.is_dictionary(type_) else type_
    nested = pa.types.is_nested(value_type)
    bytes_ = (
        pa.types.is_binary(value_type)
        or pa.types.is_large_binary(value_type)
        or pa.types.is_fixed_size_binary(value_type)
        or value_type == pa.binary_view()
    )
    if nested or (argument != "ordering" and (bytes_ or pa.types.is_floating(value_type))):
        raise UnsupportedFeatureError(f"{argument} cannot be a column of type {type_}.", column=name)


def _parse_partition_type(entry: str) -> str:
    return entry.partition(":")[2].strip().upper()


@dataclass(frozen=True, slots=True)
class CreatedTable:
    """A new table: its files, and the content of its properties file, which is unique."""

    files: TableFiles
    content: bytes = field(repr=False)

    def open(self, timezone: str | None = None) -> Snapshot:
        """Return the empty table, without asking the store for what was just written. Errors as ``open_snapshot``."""
        config = parse_whole_table_config(self.content)
        timeline = TableTimeline.of_new_table(self.files, config)
        return Snapshot(self.files, config, timeline, timezone=timezone)

    @classmethod
    def load(cls, files: TableFiles) -> CreatedTable:
        """Return a table that the caller has just created."""
        return cls(files, files.read(f"{METADATA_FOLDER}/{keys.PROPERTIES_FILE}"))

    @contextmanager
    def undo_on_failure(self) -> Iterator[None]:
        """Remove the table if the block, which writes to it first, is refused or fails.

        It stays if any writer has begun to write, or if it is unknown whether the write was committed.
        """
        try:
            yield
        except CommitStateUnknownError:
            raise
        except Exception as error:
            try:
                self._undo()
            except HoodieError as problem:
                error.add_note(f"The table that was made for it is still there: {problem}")
            raise

    def _undo(self) -> None:
        path = f"{METADATA_FOLDER}/{keys.PROPERTIES_FILE}"
        with hold(MachineLock(self.files), _WAIT_SECONDS):
            config = TableConfig.from_bytes(self.content)
            # Another process may have made the table anew, or have begun to write: then it is no longer this one's.
            if self.files.read(path, len(self.content) + 1) != self.content or len(load_timeline(self.files, config)):
                return
            self.files.delete_with_checksum(path)
            remove_tree(self.files, METADATA_FOLDER)


def create_table(files: TableFiles, new: NewTable) -> CreatedTable:
    """Create a table without rows; the result can remove it again.

    If several programs create the same table at once, exactly one succeeds.

    Raises:
        ConflictError: a table exists already.
        InvalidQueryError: a field is no column, or properties contradict each other.
        UnsupportedFeatureError: a column type, version or key generator is not handled.
        CommitStateUnknownError: the store did not say whether the table was created.
        StorageError: the store refused or failed.
    """
    stored = new.make_properties()
    _refuse_existing(files)
    config = TableConfig.from_properties(stored)
    if config.timeline_layout > 1:
        # Object stores have no empty folders, and Java lists this folder before anything is archived.
        files.put(f"{config.find_history_folder()}/{PLACEHOLDER}", b"")
    now = datetime.now(UTC).isoformat()
    content = seal_properties(
        format_properties(stored, comment=f"Properties saved on {now}\nMade by hoodie_py, {uuid.uuid4()}")
    )
    try:
        files.put_if_absent(f"{METADATA_FOLDER}/{keys.PROPERTIES_FILE}", content, unique=True)
    except ConflictError as error:
        raise _make_exists_error(files) from error
    return CreatedTable(files, content)


def _refuse_existing(files: TableFiles) -> None:
    try:
        found = {info.name for info in files.list(METADATA_FOLDER)}
    except FileMissingError:
        return
    if found & {keys.PROPERTIES_FILE, keys.PROPERTIES_BACKUP_FILE}:
        raise _make_exists_error(files)


def _make_exists_error(files: TableFiles) -> ConflictError:
    return ConflictError(
        "There is a Hudi table already.",
        hint="Open it with HoodieTable.open, or choose another place.",
        table=files.uri,
    )


def make_default_name(files: TableFiles) -> str:
    """Return the last part of the base path: the default name of a table."""
    return files.uri.rstrip("/").rsplit("/", 1)[-1]


def to_arrow_schema(schema: Any) -> pa.Schema:
    """Convert a schema, or an object that exports one.

    Raises:
        InvalidQueryError: it is neither a schema nor exports one.
    """
    if isinstance(schema, pa.Schema):
        return schema
    if hasattr(schema, "__arrow_c_schema__"):
        return pa.schema(schema)
    raise InvalidQueryError(f"The schema must be an Arrow schema, not {type(schema).__name__}.")


def split_field_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return field names; a single text may list them with commas."""
    names = given.split(",") if isinstance(given, str) else given
    return tuple(each.strip() for each in names if each.strip())


def resolve_strategy_id(merger: Merger | None, strategy_id: str | None) -> str | None:
    """Return the merge strategy id of a merger, or ``strategy_id`` if there is no merger.

    Raises:
        InvalidQueryError: the merger has no strategy id, or another one than ``strategy_id``.
    """
    if merger is None:
        return strategy_id
    named = getattr(merger, "strategy_id", None)
    if not named:
        raise InvalidQueryError(f"The merger {merger!r} has no strategy_id, so the table cannot name it.")
    if strategy_id not in (None, named):
        raise InvalidQueryError(
            "The arguments merger and merge_strategy_id name different mergers.", hint="Give one of them."
        )
    return str(named)


def to_property_texts(properties: Mapping[str, Any] | None) -> dict[str, str]:
    """Convert property values to the stored texts; booleans in lower case."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (properties or {}).items()
    }
