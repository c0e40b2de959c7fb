"""Making the data source known to a Spark session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.spark.connect import is_connect
from hoodie_py.spark.options import pick_s3_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hoodie_py.spark.mergers import Merger
    from hoodie_py.writer.lock import Lock
    from hoodie_py.writer.write_result import WriteResult

_TAKEN = "DATA_SOURCE_ALREADY_EXISTS"


def register(spark: Any, mergers: Sequence[Merger] = (), name: str = "hoodie") -> None:
    """Make ``spark.read.format(name)`` read Hudi tables in this session.

    PySpark finds the format "hoodie" by itself as well; registering adds mergers, the session's S3 settings
    (``spark.hadoop.fs.s3a.*``, for tables whose load names no ``storage_options``) or another name.  Registering again
    replaces what was registered under the name before.

    Args:
        spark: a session, classic or Connect.
        mergers: RecordMerger classes or instances, for tables that name one by strategy id or payload class; their
            code goes to the workers, so they may be defined in a notebook.
        name: what to write in ``format``, for instance "hudi".

    Raises:
        TypeError: something that is no RecordMerger, or one that no table can name.
        MergeError: a merger that holds what cannot be pickled.
        UnsupportedFeatureError: PySpark 4.0 found "hoodie" by itself and does not let it be replaced: mergers and S3
            settings need another name there, or go to ``hoodie_py.spark.read``.
    """
    from pyspark.errors import AnalysisException

    from hoodie_py.spark.source import make_source_class

    settings = read_s3_settings(spark)
    try:
        spark.dataSource.register(make_source_class(name, tuple(mergers), settings))
    except AnalysisException as error:
        if _TAKEN not in str(error):
            raise
        if mergers or settings:
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
    """Return a table's rows as a DataFrame, by the faster of two ways for each file slice.

    Slices with log files are merged in Python workers, as ``spark.read.format("hoodie")`` does it; those without go
    to Spark's own Parquet reader where that gives the same rows.  The rows are pinned when the DataFrame is made.
    The table is listed in this process, which has to reach it.

    Args:
        spark: a session, classic or Connect.
        path: base path of the table.
        columns: names of the columns wanted, in order; None for all.
        filter: Spark SQL text; rows that it is true for.
        mergers: RecordMerger classes or instances, as for ``register``.
        options: what ``spark.read.format("hoodie").options`` takes, e.g. ``{"as.of.instant": "20260101000000000"}``;
            ``storage_options`` may be a dict.
        named: more of them, by name.

    Raises:
        HoodieError: no table there, one that cannot be read, or a question that has no meaning.
    """
    from hoodie_py.spark.hybrid import load

    given = {**(options or {}), **named, "path": path}
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
    **named: Any,
) -> WriteResult:
    """Write a DataFrame to a table, and make the table if there is none; Spark's workers do the work.

    Rows are shuffled by key, merged with each other, looked up in the table, and shuffled by the file that they go
    into; each file is written by one Spark task, and this process commits. The DataFrame is computed once, unless Spark
    has to repeat parts of it; rows that differ then are an error. One that is nothing but local Parquet files is read
    by the workers that write it. The session may be classic or Connect. This process and the workers have to reach the
    table.

    Args:
        df: the rows; to delete, rows with the key columns.
        path: base path of the table.
        operation: "upsert" (default), "insert", "bulk_insert", "delete", "insert_overwrite" or
            "insert_overwrite_table"; short for the option ``hoodie.datasource.write.operation``.
        mode: "append"; "overwrite" replaces all rows by one commit; "errorifexists" and "ignore" only write where there
            is no table yet.
        merger: a RecordMerger that decides instead of the table's merge mode; its code goes to the workers, so it may
            be defined in a notebook.
        lock: the lock that the table's other writers use, where it is not one of Hudi's that are handled here.
        options: what ``df.write.format("hoodie").options`` takes, e.g.
            ``{"hoodie.datasource.write.recordkey.field": "id"}``; ``storage_options`` may be a dict.
        named: more of them, by name.

    Raises:
        InvalidQueryError: rows without key, columns or values that do not fit the table, or a bad option.
        UnsupportedFeatureError: the table has a feature that writing does not handle.
        ConflictError: another writer came between, or is at work; or there is a table and the mode says not to write.
        MergeError: the table needs a merger that nobody supplied, or versions do not merge.
        CommitStateUnknownError: the store did not say whether the commit landed; nothing was taken back.
        HoodieError: Spark did not carry out the tasks; the table is as it was.
    """
    from hoodie_py.options.source import OPERATION
    from hoodie_py.spark.write_table import write_table

    given = {**(options or {}), **named, "path": path}
    if operation is not None:
        given[OPERATION] = operation
    return write_table(df, given, read_s3_settings(df.sparkSession), mode, merger, lock)


def read_s3_settings(spark: Any) -> dict[str, str]:
    """Return the session's settings for S3; those of a classic session's context show only there."""
    settings = dict(spark.conf.getAll)
    if not is_connect(spark):
        settings = {**dict(spark.sparkContext.getConf().getAll()), **settings}
    return pick_s3_settings(settings.items())
