"""Parses the options of a write: the operation, the path, and the table to create if there is none.

The names are Java Hudi's (``DataSourceWriteOptions``). If there is a table, options that contradict its properties are
an error, as in Java (``HoodieWriterUtils.validateTableConfig``). Two things differ from Java: all columns of a new
table are nullable, as in Spark's own file sources, and the mode "overwrite" replaces the rows in a commit, while Java
deletes the table. An option selects Java's behaviour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie_py.errors import ConflictError, InvalidQueryError, TableNotFoundError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config import table_config as properties
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options import source as source_keys
from hoodie_py.options.check import check_write_options
from hoodie_py.options.write import COMBINE_BEFORE_INSERT
from hoodie_py.spark.load_options import PATH, LoadOptions
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.create import NewTable, create_table, make_default_name, split_field_names
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.remove_table import remove_table

_DEFAULT_TYPE = "COPY_ON_WRITE"  # Java's for a data source
_DEFAULT_VERSION = "9"
_SHORT_TYPES = {"MOR": "MERGE_ON_READ", "COW": "COPY_ON_WRITE"}
_INSERTS = (WriteOperation.INSERT, WriteOperation.BULK_INSERT)
_ON_TABLES = (WriteOperation.DELETE, WriteOperation.DELETE_PARTITION)
_OVERWRITES = (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE)


# A Python data source does not learn the location of the catalog table of an INSERT.
_PATH_HINT = (
    'Write .save("/path/of/the/table"). INSERT INTO a table of Spark\'s catalog does not reach the table: write a '
    "DataFrame with hoodie_py.spark.write(df, path)."
)


@dataclass(frozen=True, slots=True, repr=False)
class WriteOptions:
    """The options of one write; its repr shows no storage options.

    ``load``: the options for the store, the zone of times, and all of Hudi's. ``settings``: Hudi's writer options.
    ``recreates``: the table is made anew, whatever it was.
    """

    path: str
    load: LoadOptions
    operation: WriteOperation
    settings: Mapping[str, str]
    table: TableDescription
    recreates: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str], session: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
        """Parse the options of a write.

        Names are in lower case. ``session``: the session's S3 settings, used for S3 tables if ``options`` has none.

        Raises:
            InvalidQueryError: there is no path, a value is not valid, or the operation contradicts the mode.
            UnsupportedFeatureError: the operation is not handled.
        """
        if not options.get(PATH, "").strip():
            raise InvalidQueryError("No path was given.", hint=_PATH_HINT)
        load = LoadOptions.parse(options, session)
        check_write_options(load.hoodie, warn=False)  # the write session warns
        recreates = source_keys.RECREATE.read(load.hoodie)
        if recreates and not overwrite:
            raise InvalidQueryError(f"{source_keys.RECREATE} goes with the mode overwrite.", hint="Leave it out.")
        operation, settings = _choose_operation(load.hoodie, overwrite=overwrite and not recreates)
        return cls(load.path, load, operation, settings, TableDescription.from_options(load.hoodie), recreates)

    def open(self) -> Snapshot | None:
        """Open the table's latest snapshot; None if there is no table, or if it is made anew.

        Raises:
            InvalidQueryError: the options contradict the table.
            HoodieError: the table cannot be read.
        """
        if self.recreates:
            return None
        found = self._find()
        if found is not None:
            self.table.check(found.config)
        return found

    def _find(self) -> Snapshot | None:
        options = self.load
        try:
            return open_snapshot(self.path, storage_options=options.storage_options, timezone=options.timezone)
        except TableNotFoundError:
            return None

    def check_new(self, schema: pa.Schema) -> None:
        """Check that a table can be created from the options and these columns.

        Raises:
            InvalidQueryError: an option is missing, or options do not fit the columns.
            UnsupportedFeatureError: this kind of table is not handled.
        """
        if self.operation in _ON_TABLES:
            raise TableNotFoundError("There is no Hudi table to delete from.", path=self.open_files().uri)
        self.table.make_new_table(schema, self._default_name).make_properties()

    @contextmanager
    def open_or_create(self, schema: pa.Schema, kept: str | None = None) -> Iterator[Snapshot]:
        """Run the block with the table, which is created from the options and these columns if there is none.

        A table that is made anew is removed first, except for the folder ``kept``, which has the rows. If the block,
        the first write of a new table, is refused, the new table is removed.

        Raises:
            HoodieError: as for ``open`` and ``check_new``.
        """
        found = self.open()
        if found is not None:
            yield found
            return
        self.check_new(schema)
        old = self._find() if self.recreates else None
        if old is not None:
            remove_table(WriteSession.open(old, options=self.settings), old, kept)
        new, options = self.table.make_new_table(schema, self._default_name), self.load
        try:
            made = create_table(self.open_files(), new)
        except ConflictError:  # another writer has just created the table: use that one
            found = self.open()
            if found is None:
                raise
        if found is not None:
            yield found
            return
        with made.undo_on_failure():
            yield open_snapshot(self.path, storage_options=options.storage_options, timezone=options.timezone)

    def open_files(self) -> TableFiles:
        """Return the files at the path."""
        return TableFiles.open(self.path, self.load.storage_options)

    @property
    def _default_name(self) -> str:
        return make_default_name(self.open_files())

    def __repr__(self) -> str:
        return f"WriteOptions({self.path!r}, {self.operation.value!r})"


@dataclass(frozen=True, slots=True)
class TableDescription:
    """The options that describe a table.

    ``given``: values by the first name of each option. ``properties``: table properties that are given as options.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> TableDescription:
        """Collect the options that describe the table.

        Raises:
            InvalidQueryError: two names of one option have different values.
        """
        found: dict[str, str] = {}
        for names in source_keys.DESCRIBED:
            values = {name: options[name].strip() for name in names if name in options}
            if len(set(values.values())) > 1:
                raise InvalidQueryError(f"The options {' and '.join(values)} are the same, but say different things.")
            if values:
                found[names[0]] = next(iter(values.values()))
        kept = {
            name: value.strip()
            for name, value in options.items()
            if name in source_keys.TABLE_PROPERTIES or name.startswith(source_keys.TABLE_PROPERTY_PREFIXES)
        }
        return cls(found, kept)

    def make_new_table(self, schema: pa.Schema, default_name: str) -> NewTable:
        """Return the table that a write with these options creates.

        Raises:
            InvalidQueryError: an option is missing or not valid.
            UnsupportedFeatureError: the key generator is not handled.
        """
        version = self._get_text(source_keys.TABLE_VERSION) or _DEFAULT_VERSION
        if not (version.isascii() and version.isdigit()):
            raise InvalidQueryError(
                f"{source_keys.TABLE_VERSION[0]} cannot be {version[:100]!r}.", hint="Give 6, 8 or 9."
            )
        payload = self._get_text(source_keys.PAYLOAD)
        return NewTable(
            name=self._get_text(source_keys.TABLE_NAME) or default_name,
            schema=pa.schema([each.with_nullable(True) for each in schema]),
            record_key=self._get_names(source_keys.RECORD_KEY),
            ordering=self._get_names(source_keys.ORDERING),
            partition_by=self._get_names(source_keys.PARTITION_PATH),
            table_type=self._get_text(source_keys.TABLE_TYPE) or _DEFAULT_TYPE,
            version=int(version),
            merge_mode=(self._get_text(source_keys.RECORD_MERGE_MODE) or "").upper() or None,
            merge_strategy_id=self._get_text(source_keys.RECORD_MERGE_STRATEGY),
            key_generator=self._find_key_generator(),
            properties={**self.properties, **({properties.PAYLOAD_CLASS: payload} if payload else {})},
        )

    def check(self, config: TableConfig) -> None:
        """Refuse options that contradict the table.

        Raises:
            InvalidQueryError: an option differs from the table; the error has both values.
        """
        untyped = tuple(each.partition(":")[0] for each in self._get_names(source_keys.PARTITION_PATH))
        type_ = (self._get_text(source_keys.TABLE_TYPE) or "").upper()
        self._check_agreement(source_keys.TABLE_NAME, config.name)
        self._check_agreement(source_keys.TABLE_VERSION, str(config.version))
        self._check_agreement(source_keys.TABLE_TYPE, config.table_type, _SHORT_TYPES.get(type_, type_))
        self._check_agreement(source_keys.RECORD_KEY, ",".join(config.record_key_fields))
        self._check_agreement(source_keys.PARTITION_PATH, ",".join(config.partition_fields), ",".join(untyped))
        self._check_agreement(source_keys.ORDERING, ",".join(config.ordering_fields))
        self._check_agreement(source_keys.RECORD_MERGE_MODE, config.merge_mode.value)
        if config.merge_strategy_id:
            self._check_agreement(source_keys.RECORD_MERGE_STRATEGY, config.merge_strategy_id)
        for key, has in _read_styles(config).items():
            said = self.properties.get(key)
            if said and (said.lower() == "true") != has:
                raise _make_disagreement(key, said, str(has).lower())

    def _check_agreement(self, names: tuple[str, ...], has: str, said: str | None = None) -> None:
        text = self._get_text(names)
        if text is None:
            return
        given = ",".join(self._get_names(names)) if said is None else said
        if given.lower() != has.lower() if names in _CASELESS else given != has:
            raise _make_disagreement(names[0], text, has)

    def _get_text(self, names: tuple[str, ...]) -> str | None:
        return self.given.get(names[0]) or None

    def _get_names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return split_field_names(self.given.get(names[0], ""))

    def _find_key_generator(self) -> str | None:
        named = self._get_text(source_keys.KEY_GENERATOR_TYPE)
        class_name = self._get_text(source_keys.KEY_GENERATOR_CLASS)
        if named is not None or class_name is None:
            return named
        config = TableConfig.from_properties(
            {properties.NAME: "t", properties.VERSION: _DEFAULT_VERSION, properties.KEY_GENERATOR_CLASS: class_name}
        )
        return config.key_generator


_CASELESS = (source_keys.TABLE_TYPE, source_keys.RECORD_MERGE_MODE)


def _read_styles(config: TableConfig) -> dict[str, bool]:
    return {
        properties.HIVE_STYLE_PARTITIONING: config.hive_style_partitioning,
        properties.URL_ENCODE_PARTITIONING: config.url_encode_partitioning,
        properties.DROP_PARTITION_COLUMNS: config.drop_partition_columns,
        properties.POPULATE_META_FIELDS: config.populate_meta_fields,
    }


def _make_disagreement(key: str, said: str, has: str) -> InvalidQueryError:
    return InvalidQueryError(
        f"The option {key} says {said[:200]!r}, but the table has {has!r}.",
        hint="Leave the option out, or write to another path.",
    )


def _choose_operation(options: Mapping[str, str], *, overwrite: bool) -> tuple[WriteOperation, Mapping[str, str]]:
    """Return the write operation, and the writer options for it."""
    named = source_keys.OPERATION.read(options)
    known = {each.value: each for each in WriteOperation if each is not WriteOperation.ALTER_SCHEMA}
    operation = known.get((named or WriteOperation.UPSERT).lower())
    if operation is None:
        raise UnsupportedFeatureError(
            f"The write operation {str(named)[:100]!r}.", hint=f"Set {source_keys.OPERATION} to {', '.join(known)}."
        )
    if not overwrite or operation in _OVERWRITES:
        return operation, options
    if operation in _ON_TABLES:
        raise InvalidQueryError("Deleting goes with the mode append, not with overwrite.")
    dynamic = source_keys.OVERWRITE_MODE.read(options) == "DYNAMIC"
    replacing = WriteOperation.INSERT_OVERWRITE if dynamic else WriteOperation.INSERT_OVERWRITE_TABLE
    if operation in _INSERTS:
        return replacing, options
    return replacing, {COMBINE_BEFORE_INSERT: "true", **options}
