"""Making the data source known to a Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hoodie_py.spark.options import session_settings

if TYPE_CHECKING:
    from hoodie_py.spark.mergers import Merger


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
    """
    from hoodie_py.spark.source import source_class

    settings = dict(spark.conf.getAll)
    context = getattr(spark, "sparkContext", None) if _is_classic(spark) else None
    if context is not None:
        settings = {**dict(context.getConf().getAll()), **settings}
    spark.dataSource.register(source_class(name, tuple(mergers), session_settings(settings.items())))


def _is_classic(spark: Any) -> bool:
    return not type(spark).__module__.startswith("pyspark.sql.connect")
