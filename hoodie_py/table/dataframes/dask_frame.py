"""A scan as a Dask DataFrame: one partition for each file slice; unused columns are not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoodie_py.table.dataframes.source import RowSource, import_extra
from hoodie_py.table.dataframes.task_reads import read_frame, to_frame

if TYPE_CHECKING:
    import dask.dataframe


def make_dask_frame(source: RowSource) -> dask.dataframe.DataFrame:
    """Return a Dask DataFrame of a scan; nothing is read yet.

    Raises:
        UnsupportedFeatureError: Dask is not installed.
    """
    dd = import_extra("dask.dataframe")
    empty, tasks = to_frame(source.schema.empty_table()), list(source.tasks())
    if not tasks:
        return dd.from_pandas(empty, npartitions=1)
    frame = dd.from_map(read_frame, tasks, meta=empty, label="read-hudi")
    return frame if source.limit is None else frame.head(source.limit, npartitions=-1, compute=False)
