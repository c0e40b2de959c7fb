"""What the worker of a distributed engine does with a task of a scan; plain functions, so that they pickle by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.table.dataframes.source import TaskSource
from hoodie_py.table.filter.predicate import Predicate, join_filters

if TYPE_CHECKING:
    import pandas


def narrow_task(task: TaskSource, columns: Sequence[str] | None, predicate: Predicate | None = None) -> TaskSource:
    """Return a task for some columns (None: all), of the rows that pass another filter as well."""
    changed: Any = task  # every task is a dataclass with its columns, filter and settings
    wanted = changed.columns if columns is None else tuple(columns)
    narrowed: TaskSource = replace(
        changed,
        columns=wanted,
        predicate=join_filters(changed.predicate, predicate),
        options=changed.options.fit_columns(len(changed.columns), len(wanted)),
    )
    return narrowed


def read_tables(task: TaskSource) -> Iterator[pa.Table]:
    """Yield a task's rows as tables, at least one."""
    schema, is_empty = task.schema, True
    for batch in task.to_batches():
        is_empty = False
        yield pa.Table.from_batches([batch], schema)
    if is_empty:
        yield schema.empty_table()


def read_frame(task: TaskSource, columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Return a task's rows as a pandas DataFrame with Arrow's types, which hold nulls of every type."""
    return to_frame(pa.concat_tables(read_tables(narrow_task(task, columns))))


def to_frame(table: pa.Table) -> pandas.DataFrame:
    """Return a table as a pandas DataFrame with Arrow's types."""
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)
