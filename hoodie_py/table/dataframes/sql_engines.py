"""Scans as tables of engines in this process: DuckDB, DataFusion, and Ibis on top of DuckDB; and as Dask DataFrames.

SQL engines read through ``ScanDataset``: each query reads the columns and the file slices that it needs. A Dask
DataFrame has one partition for each file slice, and reads only the columns that are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoodie_py.table.dataframes.source import RowSource, import_extra
from hoodie_py.table.dataframes.task_reads import read_frame, to_frame

if TYPE_CHECKING:
    import dask.dataframe
    import datafusion
    import duckdb
    import ibis


def register_in_duckdb(
    source: RowSource, name: str, connection: duckdb.DuckDBPyConnection | None
) -> duckdb.DuckDBPyConnection:
    """Register a scan as a view of a connection, by default of a new one, and return the connection."""
    module = import_extra("duckdb")
    from hoodie_py.table.dataframes.arrow_dataset import ScanDataset

    target: duckdb.DuckDBPyConnection = module.connect() if connection is None else connection
    return target.register(name, ScanDataset(source))


def register_in_datafusion(
    source: RowSource, name: str, context: datafusion.SessionContext | None
) -> datafusion.SessionContext:
    """Register a scan as a table of a context, by default of a new one, and return the context."""
    module = import_extra("datafusion")
    from hoodie_py.table.dataframes.arrow_dataset import ScanDataset

    target: datafusion.SessionContext = module.SessionContext() if context is None else context
    target.register_dataset(name, ScanDataset(source, nan_is_greatest=True))
    return target


def make_ibis_table(source: RowSource, name: str, connection: ibis.backends.duckdb.Backend | None) -> ibis.Table:
    """Register a scan in a DuckDB backend of Ibis, by default a new one, and return it as an expression."""
    module = import_extra("ibis", "ibis")
    target = module.duckdb.connect() if connection is None else connection
    register_in_duckdb(source, name, target.con)
    return target.table(name)


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
