"""ScanFrames: the rows of a scan in the forms of dataframe libraries and engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hoodie_py.table.dataframes.source import RowSource, import_extra

if TYPE_CHECKING:
    import daft
    import dask.dataframe
    import datafusion
    import duckdb
    import ibis
    import pandas
    import polars
    import pyarrow.dataset as ds
    import ray.data


class ScanFrames:
    """Methods of a scan that hand its rows to other libraries; a library is imported only when its method is called."""

    __slots__ = ()

    def __arrow_c_stream__(self: RowSource, requested_schema: object | None = None) -> object:
        """Return the rows through Arrow's C stream interface, so that polars, duckdb and pandas accept a scan."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self: RowSource, **options: Any) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame; options go to pyarrow's ``Table.to_pandas``.

        Examples:
            >>> trips.scan(columns=["id", "price"]).to_pandas().sort_values("id")["price"].tolist()
            [12.0, 20.0, 30.0]
        """
        import_extra("pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self: RowSource) -> polars.DataFrame:
        """Return the rows as a polars DataFrame.

        Examples:
            >>> trips.scan(columns=["id", "price"]).to_polars().sort("id")["price"].to_list()
            [12.0, 20.0, 30.0]
        """
        frame: polars.DataFrame = import_extra("polars").DataFrame(self.to_arrow())
        return frame

    def to_polars_lazy(self: RowSource) -> polars.LazyFrame:
        """Return a polars LazyFrame, which reads the columns and rows that its query needs when it is collected.

        Conditions that mean the same in both are pushed down and exclude files; polars applies the others.

        Examples:
            >>> import polars as pl
            >>> frame = trips.scan().to_polars_lazy()
            >>> frame.filter(pl.col("city") == "sf").select(pl.col("price").sum()).collect().item()
            32.0
        """
        from hoodie_py.table.dataframes.polars_frame import make_lazy_frame

        return make_lazy_frame(self)

    def to_duckdb(
        self: RowSource, name: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Register the scan as a view of a DuckDB connection (by default a new one) and return the connection.

        Each query of the view reads only the columns that it needs, and its conditions exclude files.

        Examples:
            >>> connection = trips.scan().to_duckdb("trips")
            >>> connection.sql("SELECT city, sum(price) FROM trips GROUP BY city ORDER BY city").fetchall()
            [('la', 30.0), ('sf', 32.0)]
        """
        from hoodie_py.table.dataframes.sql_engines import register_in_duckdb

        return register_in_duckdb(self, name, connection)

    def to_datafusion(
        self: RowSource, name: str, context: datafusion.SessionContext | None = None
    ) -> datafusion.SessionContext:
        """Register the scan as a table of a DataFusion context (a new one by default) and return the context.

        Each query reads only the columns that it needs, excludes files by its conditions, and reads slices in parallel.

        Examples:
            >>> context = trips.scan().to_datafusion("trips")  # doctest: +SKIP
            >>> context.sql("SELECT sum(price) AS total FROM trips WHERE city = 'sf'").to_pydict()  # doctest: +SKIP
            {'total': [32.0]}
        """
        from hoodie_py.table.dataframes.sql_engines import register_in_datafusion

        return register_in_datafusion(self, name, context)

    def to_ibis(self: RowSource, name: str, connection: ibis.backends.duckdb.Backend | None = None) -> ibis.Table:
        """Register the scan in a DuckDB backend of Ibis (a new one by default) and return it as an Ibis table.

        Examples:
            >>> table = trips.scan().to_ibis("trips")  # doctest: +SKIP
            >>> table.filter(table.city == "sf").price.sum().execute()  # doctest: +SKIP
            32.0
        """
        from hoodie_py.table.dataframes.sql_engines import make_ibis_table

        return make_ibis_table(self, name, connection)

    def to_pyarrow_dataset(self: RowSource) -> ds.Dataset:
        """Return a ``pyarrow.dataset.Dataset`` of the rows. A read of it reads only the wanted columns and rows.

        It is not backed by Parquet files: operations that need them (``join``, ``sort_by``, ``files``) are refused.

        Examples:
            >>> dataset = trips.scan().to_pyarrow_dataset()
            >>> dataset.count_rows(filter=pa.compute.field("price") > 15)
            2
        """
        from hoodie_py.table.dataframes.arrow_dataset import ScanDataset

        return ScanDataset(self)

    def to_dask(self: RowSource) -> dask.dataframe.DataFrame:
        """Return a Dask DataFrame with one partition for each file slice, read by Dask's workers.

        Columns have Arrow's types. Columns that the graph does not use are not read.

        Examples:
            >>> frame = trips.scan(filter="city = 'sf'").to_dask()  # doctest: +SKIP
            >>> frame["price"].sum().compute()  # doctest: +SKIP
            32.0
        """
        import_extra("dask")
        from hoodie_py.table.dataframes.sql_engines import make_dask_frame

        return make_dask_frame(self)

    def to_ray(self: RowSource) -> ray.data.Dataset:
        """Return a Ray dataset with one read task for each file slice, read by Ray's workers.

        Examples:
            >>> trips.scan(columns=["price"], filter="city = 'sf'").to_ray().sum("price")  # doctest: +SKIP
            32.0
        """
        import_extra("ray")
        from hoodie_py.table.dataframes.ray_dataset import make_ray_dataset

        return make_ray_dataset(self)

    def to_daft(self: RowSource) -> daft.DataFrame:
        """Return a Daft DataFrame with one task for each file slice; columns and conditions are pushed down.

        Examples:
            >>> frame = trips.scan().to_daft()  # doctest: +SKIP
            >>> frame.where(frame["city"] == "sf").sum("price").to_pydict()  # doctest: +SKIP
            {'price': [32.0]}
        """
        import_extra("daft")
        from hoodie_py.table.dataframes.daft_frame import make_daft_frame

        return make_daft_frame(self)
