"""Hudi's own choice of columns (FileGroupReaderSchemaHandler), of which the product has the part for merging.

* without log files: the columns asked for, plus the commit time when a range of instants filters rows.
* with log files: also what the merge looks at, which is the product's business (``list_merge_columns``).
* rows that pair by position carry their position, if the engine's Parquet reader gives one.
* a bootstrap base file is two files, one with the meta columns and one with the data: where both are needed, the meta
  columns come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie_py.formats.names import COMMIT_TIME_FIELD, META_FIELDS_WITH_OPERATION
from hoodie_py.reader.selection import MergeNeeds, list_merge_columns

ROW_INDEX_FIELD = "_tmp_metadata_row_index"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Columns of one read.

    Attributes:
        required: columns rows have while they merge in Hudi: those asked for first, except where they are reordered.
        output_projection: whether rows have to be cut or reordered to what was asked for.
        bootstrap_meta, bootstrap_data: columns read from the two files of a bootstrap base file.
    """

    required: tuple[str, ...]
    output_projection: bool
    bootstrap_meta: tuple[str, ...] = ()
    bootstrap_data: tuple[str, ...] = ()

    @property
    def bootstrap_merge(self) -> bool:
        """Whether the two files of a bootstrap base file are read side by side."""
        return bool(self.bootstrap_meta and self.bootstrap_data)


def plan_read(
    table_schema: pa.Schema,
    requested: Sequence[str],
    needs: MergeNeeds | None,
    *,
    instant_range: bool = False,
    row_index: bool = False,
    use_positions: bool = False,
    bootstrap: bool = False,
) -> ReadPlan:
    """Return the columns to read.

    Args:
        table_schema: all columns of the table.
        requested: columns the caller wants, in order.
        needs: what the merge looks at; None for a slice without log files.
        instant_range: whether rows are filtered by the instant that wrote them.
        row_index: whether the engine's Parquet reader gives row positions as a column.
        use_positions: whether log rows pair by position.
        bootstrap: whether the base file is a bootstrap one.

    Raises:
        InvalidTableError: a key or ordering field that the table does not have.
        MergeError: a merger's mandatory field that the table does not have.
    """
    required = _required(table_schema, requested, needs, instant_range)
    if needs is not None and use_positions and row_index:
        required = (*required, ROW_INDEX_FIELD)
    meta: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    if bootstrap:
        meta = tuple(name for name in required if name in META_FIELDS_WITH_OPERATION)
        data = tuple(name for name in required if name not in META_FIELDS_WITH_OPERATION and name != ROW_INDEX_FIELD)
        if meta and data:
            required = (*meta, *data, *(name for name in required if name == ROW_INDEX_FIELD))
            if row_index:
                meta, data = (*meta, ROW_INDEX_FIELD), (*data, ROW_INDEX_FIELD)
    return ReadPlan(required, _differ(required, requested), meta, data)


def _required(
    table_schema: pa.Schema, requested: Sequence[str], needs: MergeNeeds | None, instant_range: bool
) -> tuple[str, ...]:
    if needs is None:
        added: tuple[str, ...] = (COMMIT_TIME_FIELD,) if instant_range else ()
    elif needs.custom is not None and not needs.custom[0].projection_compatible:
        return tuple(table_schema.names)
    else:
        added = list_merge_columns(table_schema, needs)
        if instant_range and needs.custom is None:
            added = (COMMIT_TIME_FIELD, *added)
    return tuple(dict.fromkeys((*requested, *added)))


def _differ(required: Sequence[str], requested: Sequence[str]) -> bool:
    """Say whether two lists of columns differ; letter case does not count."""
    return [name.lower() for name in required] != [name.lower() for name in requested]
