"""The functions of ``hoodie_py.spark``: register the data source, read a table, write and change a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.spark.catalog_entries import watch_catalog
from hoodie_py.spark.load_options import read_s3_settings
from hoodie_py.spark.process import is_connect
from hoodie_py.spark.session_options import add_session_options, call_on_change, read_session_options
from hoodie_py.spark.worker_python import warn_of_worker_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.commit.result import WriteResult
    from hoodie_py.writer.dml.clauses import Clauses
    from hoodie_py.writer.lock.lock import Lock

_NAME = "hoodie"
_NAMES_OF_HUDI = ("hudi", "org.apache.hudi")
_SOURCE_OF_HUDI = "org.apache.hudi.DefaultSource"
_TAKEN = "DATA_SOURCE_ALREADY_EXISTS"


def register(spark: Any, mergers: Sequence[Merger] = (), name: str = _NAME) -> None:
    """Make ``spark.read.format(name)`` read Hudi tables in this session.

    Without a name this is the format "hoodie". In a classic session "hudi" and "org.apache.hudi" are registered too,
    unless Java Hudi's jar, which owns these names, is present. PySpark also finds the format "hoodie" without
    ``register``. Registering adds mergers, the session's S3 settings (``spark.hadoop.fs.s3a.*``, for tables whose load
    has no ``storage_options``), Hudi's read options that are set on the session, or another name. In a classic session
    it keeps the entries of Spark's catalog correct (``saveAsTable``, ``ALTER TABLE ... SET LOCATION``). A second call
    with the same name replaces the first. Warnings are given if the session's workers on this machine run a Python
    that cannot read tables, and if a Connect server has S3 credentials, which it does not reveal.

    Args:
        spark: a session, classic or Connect.
        mergers: RecordMerger classes or instances, for tables that name one by strategy id or payload class. Their
            code is sent to the workers, so they may be defined in a notebook. All functions of this module and the
            services of ``HoodieTable`` with ``engine=spark`` take them, too.
        name: another name for ``format``.

    Raises:
        TypeError: a value is no RecordMerger, or no table can name it.
        MergeError: a merger cannot be pickled.
        UnsupportedFeatureError: PySpark 4.0 found "hoodie" without ``register`` and cannot replace it. There, mergers
            and S3 settings need another name, or ``hoodie_py.spark.read``.

    Examples:
        >>> register(spark)
        >>> spark.read.format("hoodie").load(trips.uri).count()
        3
    """
    from hoodie_py.spark.mergers import remember_mergers

    warn_of_worker_python(spark)
    settings = read_s3_settings(spark)
    also = _NAMES_OF_HUDI if name == _NAME and not _may_have_java_hudi(spark) else ()

    def register_all() -> None:
        options = read_session_options(spark)
        for each in (*also, name):
            _register(spark, mergers, each, settings, options)

    register_all()
    watch_catalog(spark, (*also, name))
    call_on_change(spark, name, register_all)
    remember_mergers(spark, name, mergers)


def _may_have_java_hudi(spark: Any) -> bool:
    """Whether Java Hudi's source may be in the session; a Connect server cannot be asked.

    Spark refuses a format that two sources have (``DataSource.lookupDataSource``).
    """
    return is_connect(spark) or bool(spark._jvm.org.apache.spark.util.Utils.classIsLoadable(_SOURCE_OF_HUDI))  # noqa: SLF001


def _register(
    spark: Any, mergers: Sequence[Merger], name: str, settings: Mapping[str, str], options: Mapping[str, str]
) -> None:
    from pyspark.errors import AnalysisException

    from hoodie_py.spark.data_source import make_source_class

    try:
        spark.dataSource.register(make_source_class(name, tuple(mergers), settings, options))
    except AnalysisException as error:
        if _TAKEN not in str(error):
            raise
        if mergers or settings or options:
            raise UnsupportedFeatureError(
                f"This version of Spark found the format {name!r} by itself and does not let it be replaced.",
                hint='Register under another name, such as name="hudi", or use PySpark 4.1 or newer.',
            ) from error


def read(
    spark: Any,
    path: str,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 - the name users know from HoodieTable.scan
    mergers: Sequence[Merger] = (),
    options: Mapping[str, Any] | None = None,
    **named: Any,
) -> DataFrame:
    """Return a table's rows as a DataFrame; each file slice is read by the faster of two readers.

    Python workers merge file slices with log files, as ``spark.read.format("hoodie")`` does. Spark's own Parquet reader
    reads the others if that gives the same rows. The snapshot is pinned when the DataFrame is made. This process lists
    the table and needs access to it.

    Args:
        spark: a session, classic or Connect.
        path: base path of the table.
        columns: names of the columns to read, in order; None for all.
        filter: a condition in Spark SQL; only rows for which it is true are read.
        mergers: RecordMerger classes or instances, as for ``register``; they take precedence over the session's.
        options: options as for ``spark.read.format("hoodie").options``, e.g. ``{"as.of.instant":
            "20260101000000000"}``; ``storage_options`` may be a dict.
        named: more options, by name.

    Raises:
        HoodieError: there is no table, it cannot be read, or the query is not valid.

    Examples:
        >>> read(spark, trips.uri, columns=["id", "price"], filter="price > 15").orderBy("id").show()
        +---+-----+
        | id|price|
        +---+-----+
        |  b| 20.0|
        |  c| 30.0|
        +---+-----+
    """
    from hoodie_py.spark.reading.hybrid import load

    given = {**(options or {}), **named, "path": path}
    given = add_session_options(given, read_session_options(spark))
    rows: DataFrame = load(spark, given, read_s3_settings(spark), columns, filter, mergers)
    return rows


def write(
    df: DataFrame,
    path: str,
    operation: str | None = None,
    mode: str = "append",
    merger: Merger | None = None,
    lock: Lock | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    allow_loss: bool = False,
    **named: Any,
) -> WriteResult:
    """Write a DataFrame to a table with Spark's workers; create the table if there is none.

    Spark shuffles the rows by key. Workers merge rows with equal keys and look the keys up in the table. Then Spark
    shuffles the rows by target file. One Spark task writes each file, and this process commits. The DataFrame is
    computed once, unless Spark has to repeat parts of it; if the repeated rows differ, the write fails. A DataFrame
    that only loads local Parquet files is read by the workers that write it. The session may be classic or Connect.
    This process and the workers need access to the table.

    Args:
        df: the rows; for deletes, rows with the key columns.
        path: base path of the table.
        operation: "upsert" (default), "insert", "bulk_insert", "delete", "insert_overwrite" or
            "insert_overwrite_table"; short for the option ``hoodie.datasource.write.operation``.
        mode: "append"; "overwrite" replaces all rows in one commit; "errorifexists" and "ignore" write only if there
            is no table.
        merger: a RecordMerger that is used instead of the table's merge mode. Its code is sent to the workers, so it
            may be defined in a notebook.
        lock: the lock that the table's other writers use, if it is not one of Hudi's locks that this package supports.
        options: options as for ``df.write.format("hoodie").options``, e.g.
            ``{"hoodie.datasource.write.recordkey.field": "id"}``; ``storage_options`` may be a dict.
        allow_loss: as for ``HoodieTable.upsert``; short for the option ``hoodie.write.schema.changes=LOSSY``.
        named: more options, by name.

    Raises:
        InvalidQueryError: a row has no key, columns or values do not fit the table, or an option is not valid.
        UnsupportedFeatureError: the table has a feature that writing does not handle.
        ConflictError: another writer committed or is writing; or the table exists and the mode forbids writing.
        MergeError: the table needs a merger that was not supplied, or record versions cannot be merged.
        CommitStateUnknownError: the store did not say whether the commit was written; nothing was rolled back.
        HoodieError: Spark did not run the tasks; the table is unchanged.

    Examples:
        >>> rows = spark.createDataFrame([("d", "la", 5.0, 1)], "id string, city string, price double, ts long")
        >>> write(rows, trips.uri).rows_inserted
        1
    """
    from hoodie_py.options.source import OPERATION
    from hoodie_py.options.write import LOSSY, SCHEMA_CHANGES
    from hoodie_py.spark.write_table import write_table

    given = {**(options or {}), **named, "path": path}
    if operation is not None:
        given[OPERATION] = operation
    if allow_loss:
        given[SCHEMA_CHANGES] = LOSSY
    return write_table(df, given, read_s3_settings(df.sparkSession), mode, merger, lock)


def update(
    spark: Any,
    path: str,
    set: Mapping[str, Any],  # noqa: A002 - users know the name from SQL
    where: str | None = None,
    merger: Merger | None = None,
    lock: Lock | None = None,
    options: Mapping[str, Any] | None = None,
    **named: Any,
) -> WriteResult:
    """Set columns of the rows that match a filter, with Spark's workers, as ``HoodieTable.update`` does.

    Args:
        spark: a session, classic or Connect.
        path: base path of the table.
        set: a Spark SQL expression for each column; a value that is not text is used as it is.
        where: Spark SQL filter; None for all rows.
        merger: a RecordMerger that is used instead of the table's merge mode.
        lock: the lock that the table's other writers use.
        options: options as for ``write``.
        named: more options, by name.

    Raises:
        HoodieError: see ``write``.

    Examples:
        >>> update(spark, trips.uri, {"price": "price * 2"}, where="city = 'sf'").rows_updated
        2
    """
    from hoodie_py.spark.write_table import open_modifier

    given = {**(options or {}), **named, "path": path}
    return open_modifier(spark, given, read_s3_settings(spark), merger, lock).update(set, where)


def delete(
    spark: Any,
    path: str,
    where: str | None = None,
    merger: Merger | None = None,
    lock: Lock | None = None,
    options: Mapping[str, Any] | None = None,
    **named: Any,
) -> WriteResult:
    """Delete the rows that match a Spark SQL filter, with Spark's workers; other arguments and errors as ``update``.

    Examples:
        >>> delete(spark, trips.uri, where="price > 25").rows_deleted
        1
    """
    from hoodie_py.spark.write_table import open_modifier

    given = {**(options or {}), **named, "path": path}
    return open_modifier(spark, given, read_s3_settings(spark), merger, lock).delete(where)


def merge_into(
    source: DataFrame,
    path: str,
    on: str | Sequence[str],
    *,
    when_matched: Clauses = None,
    when_not_matched: Clauses = None,
    by_source: Clauses = None,
    source_alias: str = "source",
    target_alias: str = "target",
    merger: Merger | None = None,
    lock: Lock | None = None,
    options: Mapping[str, Any] | None = None,
    **named: Any,
) -> WriteResult:
    """Update, delete and insert rows by a DataFrame's rows, with Spark's workers, as ``HoodieTable.merge`` does.

    The DataFrame is collected, so it must fit into the memory of the driver and of each worker. Workers read and write
    the file groups that change. This process writes the files of new rows.

    Args:
        source: the rows to merge.
        path: base path of the table.
        on: a column or columns that both sides have, or a Spark SQL condition with an equality of both sides.
        when_matched: ``Update`` and ``Delete`` clauses for rows of the table with a match.
        when_not_matched: ``Insert`` clauses for rows of the source without a match.
        by_source: ``Update`` and ``Delete`` clauses for rows of the table without a match.
        source_alias: name of the source in expressions.
        target_alias: name of the table in expressions.
        merger: a RecordMerger that is used instead of the table's merge mode.
        lock: the lock that the table's other writers use.
        options: options as for ``write``.
        named: more options, by name.

    Raises:
        HoodieError: see ``write``.

    Examples:
        >>> news = spark.createDataFrame([("a", 15.0)], "id string, price double")
        >>> merge_into(news, trips.uri, on="id", when_matched=Update({"price": "source.price"})).rows_updated
        1
    """
    from hoodie_py.spark.write_table import open_modifier
    from hoodie_py.writer.pipeline.modify import MergeRequest

    given = {**(options or {}), **named, "path": path}
    request = MergeRequest(on, when_matched, when_not_matched, by_source, source_alias, target_alias)
    spark = source.sparkSession
    return open_modifier(spark, given, read_s3_settings(spark), merger, lock).merge(source.toArrow(), request)
