"""The Spark data source: opens and pins the table of a load, and plans a write; Java: ``DefaultSource``.

Spark pickles the instance after ``schema()`` and sends the pickle to each worker that plans a query on it. So every
query on the DataFrame reads the snapshot that ``schema()`` opened. If the user gives a schema, Spark does not call
``schema()``. Then the first query opens the table for all (Spark 4.1 and later), or each use opens it (Spark 4.0).

A table of Spark's catalog (``CREATE TABLE t USING hoodie LOCATION '...'``) loses its options before ``reader()``, but
keeps the metadata of its columns. So the metadata of the first column carries the path and the read options, but never
storage options.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructField, StructType

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.spark.load_options import PATH, STORAGE_OPTIONS, LoadOptions, find_names
from hoodie_py.spark.pin import Pin, open_table
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.reading.reader import HoodieReader, find_columns
from hoodie_py.spark.sentence import put_sentence_first
from hoodie_py.spark.types import as_spark_schema

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.spark.staged.batch import HoodieWriter, WriteJob
    from hoodie_py.spark.staged.stream import HoodieStreamWriter
    from hoodie_py.spark.stream.reader import HoodieStreamReader

_NOTE = "hoodie_py"  # key of the metadata that catalog tables carry
_CATALOG_OPTIONS = ("provider", "location", "owner", "external", "is_managed_location", "comment")


class HoodieSource(DataSource):
    """``format("hoodie")`` of ``spark.read``, ``spark.readStream``, ``df.write`` and ``df.writeStream``.

    ``session`` has the session's S3 settings, for tables whose options have none.
    """

    format_name: ClassVar[str] = "hoodie"
    packed_mergers: ClassVar[bytes] = b""
    session: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._pin: Pin | None = None
        self._planned = False

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return cls.format_name

    @put_sentence_first()
    def schema(self) -> StructType:
        """Pin the table's latest snapshot, or the one at the instant of the options, and return the query's columns.

        The pin fixes the end of a range of commits, too. A range that cannot be read shows in ``reader``.

        Raises:
            HoodieError: there is no path or no table, or the table cannot be read.
        """
        options = LoadOptions.parse(self.options, self.session)
        snapshot = open_table(options)
        known = find_columns(snapshot, options)
        names = known.names if options.columns is None else find_names(options.columns, known.names)
        columns = as_spark_schema(pa.schema([known.field(name) for name in names]))
        self._pin = Pin.from_snapshot(snapshot)
        if "provider" in self.options and columns.fields:
            columns = _annotate(columns, {PATH: snapshot.files.uri, **_keep_read_options(self.options)})
        freeze_imports()
        return columns

    @put_sentence_first()
    def reader(self, schema: StructType) -> HoodieReader:
        """Return the reader for a schema: the one that ``schema`` returned, or one that the user gave.

        Raises:
            HoodieError: there is no path or no table, or the table does not have a column.
            UnsupportedFeatureError: a query on a catalog table has options.
        """
        noted = _read_note(schema)
        if noted:
            _refuse_others(self.options, noted)
        given = {**noted, **self.options}
        options = LoadOptions.parse(given, self.session)
        snapshot = open_table(options) if self._pin is None else self._pin.to_snapshot(options)
        self._planned = True
        made = HoodieReader(snapshot, options, schema, self.packed_mergers)
        freeze_imports()
        return made

    @put_sentence_first()
    def writer(self, schema: StructType, overwrite: bool) -> HoodieWriter:
        """Return the writer for rows of a schema, after checking the options against the table.

        Raises:
            HoodieError: there is no path, an option is missing, or options do not fit the rows or the table.
        """
        from hoodie_py.spark.staged.batch import HoodieWriter
        from hoodie_py.spark.staged.staging import Staging

        job = self._plan_job(schema, overwrite=overwrite)
        return HoodieWriter(job, Staging.choose(job.options.open_files()))

    @put_sentence_first()
    def streamWriter(self, schema: StructType, overwrite: bool) -> HoodieStreamWriter:  # noqa: N802 - Spark's name
        """Return the writer for the batches of a stream; errors as for ``writer``."""
        from hoodie_py.spark.staged.staging import Staging
        from hoodie_py.spark.staged.stream import CAN_STREAM, HoodieStreamWriter

        if not CAN_STREAM:
            raise UnsupportedFeatureError("Writing streams with this version of PySpark.", hint="Use 4.1 or newer.")
        job = self._plan_job(schema, overwrite=overwrite)
        return HoodieStreamWriter(job, Staging.choose(job.options.open_files()))

    @put_sentence_first()
    def streamReader(self, schema: StructType) -> HoodieStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream for a schema: the one that ``schema`` returned, or one that the user gave.

        Raises:
            UnsupportedFeatureError: PySpark is too old.
            HoodieError: there is no path, or the options are not those of a stream.
        """
        try:
            from hoodie_py.spark.stream.reader import HoodieStreamReader
        except ImportError as error:
            raise UnsupportedFeatureError(
                "Reading streams with this version of PySpark.", hint="Use 4.2 or newer."
            ) from error
        self._planned = True  # a stream has its own offsets
        made = HoodieStreamReader(LoadOptions.parse(self.options, self.session), schema, self.packed_mergers)
        freeze_imports()
        return made

    def _plan_job(self, schema: StructType, *, overwrite: bool) -> WriteJob:
        from hoodie_py.spark.staged.batch import WriteJob
        from hoodie_py.spark.write_options import WriteOptions

        options = WriteOptions.parse(self.options, self.session, overwrite=overwrite)
        job = WriteJob.plan(options, schema, self.packed_mergers)
        freeze_imports()
        return job

    def __getstate__(self) -> dict[str, Any]:
        """Leave the pin out after ``reader``: the tasks of a planned query do not need it."""
        return {**vars(self), "_pin": None} if self._planned else vars(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options.get(PATH)!r})"


def make_source_class(name: str, mergers: Sequence[Merger], session: Mapping[str, str]) -> type[HoodieSource]:
    """Return a data source class with another name, mergers and S3 settings.

    It is made at run time, so Spark pickles it by value, with these attributes.
    """
    from hoodie_py.spark.mergers import dump_mergers

    members = {
        "format_name": name,
        "packed_mergers": dump_mergers(mergers),
        "session": dict(session),
        "__doc__": HoodieSource.__doc__,
        "__module__": __name__,
    }
    return type("RegisteredHoodieSource", (HoodieSource,), members)


def _keep_read_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return a catalog table's read options without those that may be credentials and those that Spark adds."""
    return {
        name: value
        for name, value in options.items()
        if name not in {PATH, STORAGE_OPTIONS, *_CATALOG_OPTIONS} and not name.startswith(("fs.", "spark.", "option."))
    }


def _refuse_others(options: Mapping[str, str], noted: Mapping[str, str]) -> None:
    """Refuse read options that a query adds to those of a catalog table.

    Spark (4.0; on Connect up to 4.3) resolves a catalog table once per query, by its name. So other uses of the table
    in the query would be read with the same options.
    """
    others = [name for name, value in _keep_read_options(options).items() if noted.get(name) != value]
    if others:
        raise UnsupportedFeatureError(
            f"Options of a query on a catalog table ({', '.join(sorted(others))}): Spark may give them to other uses.",
            hint='Load the table by its path: spark.read.format("hoodie").option(...).load(path).',
        )


def _annotate(schema: StructType, note: Mapping[str, str]) -> StructType:
    first, *others = schema.fields
    metadata = {**(first.metadata or {}), _NOTE: json.dumps(note)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def _read_note(schema: StructType) -> dict[str, str]:
    """Return the options in the metadata of a catalog table's columns."""
    for field in schema.fields:
        note = (field.metadata or {}).get(_NOTE)
        if note:
            return {str(name): str(value) for name, value in json.loads(note).items()}
    return {}
