"""RecordContext over plain dicts, for tests of mergers and for tools.

The rule: a column that a dict does not have is absent, which is not null. All other rules are those of
``table_context``, so a merger sees the same over dicts and over Arrow rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.reader.record.arrow_context import make_fitting_array
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.table_context import TableRecordContext


class MappingRecordContext(TableRecordContext[dict[str, Any]]):
    """Access to rows that are dicts of Python values by column name.

    Args:
        schema: the columns that rows may have.
        keys: how a record's key is found; by default the meta column ``_hoodie_record_key``.
        ordering_fields: the fields whose values order records; none with commit-time ordering.
        deletes: which rows are deletes.
        table_schema: all columns of the table, where rows hold only some of them.
    """

    def __init__(
        self,
        schema: pa.Schema,
        keys: RecordKeys | None = None,
        ordering_fields: Sequence[str] = (),
        deletes: DeleteRules | None = None,
        table_schema: pa.Schema | None = None,
    ) -> None:
        rules = RecordKeys.of(populate_meta_fields=True, record_key_fields=()) if keys is None else keys
        whole = schema if table_schema is None else table_schema
        super().__init__(schema, whole, rules, ordering_fields, deletes or DeleteRules())

    def _read_cell(self, row: dict[str, Any], name: str) -> Any:
        return row.get(name)

    def _has_column(self, row: dict[str, Any], name: str) -> bool:
        return name in row

    def _change_row(self, row: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, **self._make_row(values)}

    def _make_row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: make_fitting_array([value], self.schema.field(name))[0].as_py() for name, value in values.items()}
