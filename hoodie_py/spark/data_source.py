"""The Spark data source: opens and pins the table of a load, and plans a write; Java: ``DefaultSource``.

Spark pickles the instance after ``schema()`` and sends the pickle to each worker that plans a query on it. So every
query on the DataFrame reads the snapshot that ``schema()`` opened. If the user gives a schema, Spark does not call
``schema()``. Then the first query opens the table for all (Spark 4.1 and later), or each use opens it (Spark 4.0).

For a table of Spark's catalog the columns carry the path and the read options (``catalog_note``). Read options set on
the session are those at the time when the source was registered (``session_options``).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.spark.catalog_note import annotate, keep_read_options, read_note, refuse_others
from hoodie_py.spark.load_options import PATH, LoadOptions, find_names
from hoodie_py.spark.pin import Pin, open_table
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.reading.reader import HoodieReader, find_columns
from hoodie_py.spark.sentence import put_sentence_first
from hoodie_py.spark.session_options import add_session_options
from hoodie_py.spark.types import as_spark_schema

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.spark.staged.batch import HoodieWriter, WriteJob
    from hoodie_py.spark.staged.stream import HoodieStreamWriter
    from hoodie_py.spark.stream.reader import HoodieStreamReader


class HoodieSource(DataSource):
    """``format("hoodie")`` of ``spark.read``, ``spark.readStream``, ``df.write`` and ``df.writeStream``.

    ``session``: the session's S3 settings, for tables whose options have none. ``read_options``: the read options that
    are set on the session.
    """

    format_name: ClassVar[str] = "hoodie"
    packed_mergers: ClassVar[bytes] = b""
    session: ClassVar[Mapping[str, str]] = {}
    read_options: ClassVar[Mapping[str, str]] = {}

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
        """Pin the table's latest snapshot, or the one at the options' instant, and return the query's columns.

        The pin fixes the end of a range of commits, too. A range that cannot be read is an error in ``reader``.

        Raises:
            HoodieError: there is no path or no table, or the table cannot be read.
        """
        is_entry = "provider" in self.options  # Spark's catalog keeps the columns, and the session may change
        given = self.options if is_entry else add_session_options(self.options, self.read_options)
        options = LoadOptions.parse(given, self.session)
        snapshot = open_table(options)
        known = find_columns(snapshot, options)
        names = known.names if options.columns is None else find_names(options.columns, known.names)
        columns = as_spark_schema(pa.schema([known.field(name) for name in names]))
        self._pin = Pin.from_snapshot(snapshot)
        if is_entry and columns.fields:
            columns = annotate(columns, {PATH: snapshot.files.uri, **keep_read_options(given)})
        freeze_imports()
        return columns

    @put_sentence_first()
    def reader(self, schema: StructType) -> HoodieReader:
        """Return the reader for a schema: the one that ``schema`` returned, or one that the user gave.

        Raises:
            HoodieError: there is no path or no table, or the table does not have a column.
            UnsupportedFeatureError: a query on a catalog table has options.
        """
        noted = read_note(schema)
        if noted:
            refuse_others(self.options, noted)
        given = add_session_options({**noted, **self.options}, self.read_options)
        options = LoadOptions.parse(given, self.session)
        snapshot = open_table(options) if self._pin is None else self._pin.to_snapshot(options)
        self._planned = True
        made = HoodieReader(snapshot, options, schema, self.packed_mergers, noted)
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
            HoodieError: there is no path, or the options do not fit a stream.
        """
        try:
            from hoodie_py.spark.stream.reader import HoodieStreamReader
        except ImportError as error:
            raise UnsupportedFeatureError(
                "Reading streams with this version of PySpark.", hint="Use 4.2 or newer."
            ) from error
        self._planned = True  # a stream has its own offsets
        given = {**read_note(schema), **self.options}
        made = HoodieStreamReader(LoadOptions.parse(given, self.session), schema, self.packed_mergers)
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
        """Leave out the pin after ``reader``: the tasks of a planned query do not need it."""
        return {**vars(self), "_pin": None} if self._planned else vars(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options.get(PATH)!r})"


def make_source_class(
    name: str,
    mergers: Sequence[Merger],
    session: Mapping[str, str],
    read_options: Mapping[str, str] | None = None,
) -> type[HoodieSource]:
    """Return a data source class with another name, mergers, S3 settings and read options.

    It is made at run time, so Spark pickles it by value, with these attributes.
    """
    from hoodie_py.spark.mergers import dump_mergers

    members = {
        "format_name": name,
        "packed_mergers": dump_mergers(mergers),
        "session": dict(session),
        "read_options": dict(read_options or {}),
        "__doc__": HoodieSource.__doc__,
        "__module__": __name__,
    }
    return type("RegisteredHoodieSource", (HoodieSource,), members)
