"""Making the data source known to a Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.spark.options import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hoodie_py.spark.mergers import Merger

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
        UnsupportedFeatureError: Spark 4.0 found a format of that name by itself, and something is to be added to it.
    """
    from pyspark.errors import AnalysisException

    from hoodie_py.spark.source import source_class

    settings = s3_settings(spark)
    try:
        spark.dataSource.register(source_class(name, tuple(mergers), settings))
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
    **options: Any,
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
        options: what ``spark.read.format("hoodie").options`` takes, e.g. ``**{"as.of.instant": "20260101000000000"}``;
            ``storage_options`` may be a dict.

    Raises:
        HoodieError: no table there, one that cannot be read, or a question that has no meaning.
    """
    from hoodie_py.spark.hybrid import load

    rows: DataFrame = load(spark, {**options, "path": path}, s3_settings(spark), columns, filter, mergers)
    return rows


def s3_settings(spark: Any) -> dict[str, str]:
    """Return the session's settings for S3; those of a classic session's context show only there."""
    settings = dict(spark.conf.getAll)
    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        settings = {**dict(spark.sparkContext.getConf().getAll()), **settings}
    return session_settings(settings.items())
