"""A scan as a polars LazyFrame: columns, conditions and a number of rows are pushed down on collect."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.table.dataframes.polars_predicate import push_down
from hoodie_py.table.dataframes.source import RowSource, import_extra

if TYPE_CHECKING:
    import polars

_LEAST = "1.20"


def make_lazy_frame(source: RowSource) -> polars.LazyFrame:
    """Return a LazyFrame of a scan.

    Raises:
        UnsupportedFeatureError: polars is missing, or too old to take sources from other packages.
    """
    pl = import_extra("polars")
    try:
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise UnsupportedFeatureError(
            f"Version {pl.__version__} of polars takes no sources from other packages.",
            hint=f"Install polars {_LEAST} or newer.",
        ) from error
    wanted = {
        "schema": pl.from_arrow(source.schema.empty_table()).schema,
        "is_pure": True,  # a scan is pinned
        "explain_name": "HUDI",
        "explain_detail": repr(source),
    }
    known = inspect.signature(register_io_source).parameters
    frame: polars.LazyFrame = register_io_source(
        _Source(source), **{name: value for name, value in wanted.items() if name in known}
    )
    return frame


class _Source:
    """The function that polars calls for the rows of a scan."""

    def __init__(self, source: RowSource) -> None:
        self._source = source

    def __call__(
        self, columns: list[str] | None, predicate: polars.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        """Yield frames with some columns, of the rows that pass the predicate; ``rows`` limits the rows before it."""
        pl = import_extra("polars")
        pushed, is_all = None, predicate is None
        # A limit counts rows before the predicate, so with a limit nothing may be pushed down.
        if predicate is not None and rows is None and self._source.limit is None:
            pushed, is_all = push_down(predicate, self._source.schema)
        scan = self._source.narrow(columns, pushed, rows)
        with closing(_as_generator(scan)) as batches:
            for batch in batches:
                frame: polars.DataFrame = pl.from_arrow(batch)
                yield frame if is_all else frame.filter(predicate)


def _as_generator(source: RowSource) -> Any:
    batches: Iterator[pa.RecordBatch] = source.to_batches()
    return batches
