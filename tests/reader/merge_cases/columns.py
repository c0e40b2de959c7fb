"""schema_handler and delete_context: which columns are read, which rows are deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from hoodie_py import RecordMerger
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import OPERATION_FIELD
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record import is_delete_code
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.selection import MergeNeeds, select_strategy
from tests.reader.merge_cases.case import Case, column
from tests.reader.merge_cases.compare import check
from tests.reader.merge_cases.mergers import OverwriteWithLatest
from tests.reader.merge_cases.read_plan import plan_read
from tests.reader.merge_cases.tables import read_options, table_config


class Compatible(OverwriteWithLatest):
    """Names the columns it needs; by default those that every merger gets."""

    projection_compatible = True
    fields: ClassVar[tuple[str, ...] | None] = None

    def mandatory_fields(self, schema: pa.Schema, config: TableConfig, props: Mapping[str, str]) -> Sequence[str]:
        return super().mandatory_fields(schema, config, props) if self.fields is None else self.fields


def run_schema_handler(case: Case) -> None:
    """Plan a read and compare; columns that a merge adds may come in any order."""
    config = case.config
    table = case.schema("table").arrow
    requested = case.schema("requested").arrow.names
    needs = _needs(case, table) if config["has_log_files"] else None
    plan = plan_read(
        table,
        requested,
        needs,
        instant_range=bool(config.get("instant_range")),
        row_index=bool(config.get("supports_row_index")),
        use_positions=bool(config.get("use_positions")),
        bootstrap=bool(config.get("bootstrap")),
    )
    assert "error" not in case.expected, f"expected {case.expected['error']}, got {plan}"
    expected = dict(case.expected)
    if "required" in expected:
        _check_required(expected.pop("required"), plan.required, requested)
    check(
        expected,
        {
            "needs_output_projection": plan.output_projection,
            "needs_bootstrap_merge": plan.bootstrap_merge,
            "bootstrap_meta": list(plan.bootstrap_meta),
            "bootstrap_data": list(plan.bootstrap_data),
        },
    )


def _needs(case: Case, table: pa.Schema) -> MergeNeeds:
    config = case.config
    fields = None if config["populate_meta_fields"] else config["record_key_fields"]
    properties = table_config(config, fields)
    merger = _merger(config) if properties.merge_mode is MergeMode.CUSTOM else None
    options = read_options(config)
    selected = select_strategy(properties, options, merger)
    return MergeNeeds(
        RecordKeys.of(properties.populate_meta_fields, properties.record_key_fields),
        selected.ordering_fields,
        DeleteRules.of(table, properties.merge_properties, options),
        None if selected.merger is None else (selected.merger, properties, selected.props),
    )


def _merger(config: Mapping[str, Any]) -> type[RecordMerger]:
    """A merger as projection compatible as the case says; Hudi's own mergers of payload classes are not."""
    if not config.get("merger_projection_compatible"):
        return OverwriteWithLatest
    mandatory = config.get("merger_mandatory_fields")
    return type("Compatible", (Compatible,), {"fields": None if mandatory is None else tuple(mandatory)})


def _check_required(expected: Sequence[str], required: Sequence[str], requested: Sequence[str]) -> None:
    """The columns asked for come in order, then added ones in any; a reordered list must fit as it is."""
    asked = len(requested) if list(expected[: len(requested)]) == list(requested) else len(expected)
    assert list(required[:asked]) == list(expected[:asked])
    assert sorted(required[asked:]) == sorted(expected[asked:])


def run_delete_context(case: Case) -> None:
    """Find the rules and apply them to the case's row."""
    table, rows = case.schema("table").arrow, case.schema().arrow
    options = read_options(case.config)
    found = DeleteRules.of(table, {}, options)
    reads_operation = OPERATION_FIELD in rows.names and not case.config.get("writer")  # a writer knows operations
    rules = replace(found, operation=reads_operation)
    newer = case.fields["newer"]
    actual: dict[str, Any] = {
        "has_builtin": rules.flag,
        "marker": None if rules.marker_field is None else [rules.marker_field, rules.marker],
        "operation_pos": rows.get_field_index(OPERATION_FIELD) if rules.operation else -1,
    }
    if newer is not None:
        columns = [column([newer["data"].get(f.name)], f.type) for f in rows]
        batch = pa.RecordBatch.from_arrays(columns, schema=rows)
        actual["is_delete"] = bool(is_delete_code(rules.read_operations(batch))[0])
    assert "error" not in case.expected, f"expected {case.expected['error']}, got {actual}"
    check(case.expected, actual)
