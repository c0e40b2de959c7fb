"""TableFrames: the rows of a table as the objects of dataframe libraries, in one call.

Each method is a scan of the state that the table object shows. ``scan`` takes more arguments, such as a time of the
past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.table.table_queries import TableQueries

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.compute as pc

    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.table.timeline.time_travel import AsOf


class TableFrames(TableQueries):
    """The rows of a table in the state that this object shows, as data frames."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return all rows through Arrow's C stream interface, so that polars, DuckDB and pandas take a table."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
    ) -> pa.Table:
        """Return rows as a ``pyarrow.Table``; ``columns``, ``filter`` and ``merger`` as for ``scan``.

        Examples:
            >>> trips.to_arrow(columns=["id", "price"], filter="city = 'la'").to_pylist()
            [{'id': 'c', 'price': 30.0}]
        """
        return self.scan(columns=columns, filter=filter, merger=merger).to_arrow()

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
        **options: Any,
    ) -> pandas.DataFrame:
        """Return rows as a pandas DataFrame; ``columns``, ``filter`` and ``merger`` as for ``scan``.

        Further options go to pyarrow's ``Table.to_pandas``.

        Examples:
            >>> trips.to_pandas(columns=["id", "price"]).sort_values("id")["price"].tolist()
            [12.0, 20.0, 30.0]
        """
        return self.scan(columns=columns, filter=filter, merger=merger).to_pandas(**options)

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
    ) -> polars.DataFrame:
        """Return rows as a polars DataFrame; ``columns``, ``filter`` and ``merger`` as for ``scan``.

        Examples:
            >>> trips.to_polars(columns=["id", "price"]).sort("id")["price"].to_list()
            [12.0, 20.0, 30.0]
        """
        return self.scan(columns=columns, filter=filter, merger=merger).to_polars()

    def scan_polars(
        self,
        filter: str | pc.Expression | None = None,  # noqa: A002
        as_of: AsOf | None = None,
        query_type: str | None = None,
        merger: Merger | None = None,
        memory_limit: int | None = None,
        integrity: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> polars.LazyFrame:
        """Make a polars LazyFrame; nothing is read until it is collected, and then only what the query needs.

        Columns, slices and the conditions that mean the same in both libraries are pushed down. Arguments and errors
        are those of ``scan``.

        Examples:
            >>> import polars as pl
            >>> trips.scan_polars().filter(pl.col("price") > 15).select("id").collect().height
            2
        """
        return self.scan(
            filter=filter,
            as_of=as_of,
            query_type=query_type,
            merger=merger,
            memory_limit=memory_limit,
            integrity=integrity,
            options=options,
        ).to_polars_lazy()

    def head(
        self,
        n: int = 5,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
    ) -> pa.Table:
        """Return the first rows found, in no order; no more is read than they need.

        Args:
            n: most rows.
            columns: as for ``scan``.
            filter: as for ``scan``.
            merger: as for ``scan``.

        Examples:
            >>> trips.head(2, columns=["id"]).num_rows
            2
        """
        return self.scan(columns=columns, filter=filter, limit=n, merger=merger).to_arrow()
