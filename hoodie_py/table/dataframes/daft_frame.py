"""A scan as a Daft DataFrame: one task for each file slice, with columns and conditions pushed down.

Daft filters the rows again, so a condition that Arrow cannot express is only not used to skip files. Callers import
Daft by name first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import daft
import pyarrow as pa
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import RecordBatch

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.dataframes.source import RowSource, TaskSource
from hoodie_py.table.dataframes.task_reads import narrow_task
from hoodie_py.table.filter.as_predicate import as_predicate
from hoodie_py.table.filter.predicate import Predicate


class HudiTask(DataSourceTask):  # type: ignore[misc]
    """One file slice, for Daft's workers."""

    def __init__(self, task: TaskSource) -> None:
        self._task = task

    @property
    def schema(self) -> Any:
        """Daft's schema of the rows."""
        return daft.Schema.from_pyarrow_schema(self._task.schema)

    async def read(self) -> AsyncIterator[Any]:
        """Yield the rows."""
        for batch in self._task.to_batches():
            yield RecordBatch.from_arrow_record_batches([batch], batch.schema)


class HudiSource(DataSource):  # type: ignore[misc]
    """A scan, for Daft's plans."""

    def __init__(self, source: RowSource) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """The name that Daft's plans show."""
        return "Hudi"

    @property
    def schema(self) -> Any:
        """Daft's schema of the rows."""
        return daft.Schema.from_pyarrow_schema(self._source.schema)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[HudiTask]:
        """Plan the scan with what Daft knows of its query."""
        found, columns = self._source, pushdowns.columns
        if columns is not None:  # Daft's own filter needs its columns, too
            columns = list(dict.fromkeys([*columns, *sorted(pushdowns.filter_required_column_names())]))
        if found.limit is None:
            found = found.narrow(None, _bind(pushdowns.filters, found.schema))
        for task in found.tasks():
            yield HudiTask(narrow_task(task, columns))


def _bind(condition: Any, schema: pa.Schema) -> Predicate | None:
    """Return a condition of Daft as a filter; None if there is none, or Arrow has no such expression."""
    if condition is None:
        return None
    try:
        return as_predicate(condition.to_arrow_expr(), schema, nan_is_greatest=True)
    except (ValueError, NotImplementedError, TypeError, AttributeError, InvalidQueryError, pa.ArrowException):
        return None


def make_daft_frame(source: RowSource) -> daft.DataFrame:
    """Return a Daft DataFrame of a scan; nothing is read yet."""
    frame = HudiSource(source).read()
    return frame if source.limit is None else frame.limit(source.limit)
