"""Scans as tables of SQL engines in this process: DuckDB, DataFusion, and Ibis on top of DuckDB.

They read through ``ScanDataset``: each query reads the columns and the file slices that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoodie_py.table.dataframes.source import RowSource, import_extra

if TYPE_CHECKING:
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
