"""delta_merge, final_merge and partial_update: two versions of one record, through the strategy that gets selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import read_field_values
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.reader.buffer.log_buffer import fold_by_rounds
from hoodie_py.reader.merge.strategies import MergeStrategy
from hoodie_py.reader.payloads.merger import PayloadMerger
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.delete_rules import DeleteRules, convert_delete_ordering
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import DELETE, HoodieOperation, encode_operation
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from hoodie_py.reader.schema_evolution.by_name import conform_batch
from hoodie_py.reader.selection import Selection, select_strategy
from tests.reader.merge_cases.case import Case, arrow_type, column, delete_records
from tests.reader.merge_cases.compare import check, expected_ordering, ordering_of, through
from tests.reader.merge_cases.mergers import merger_of
from tests.reader.merge_cases.tables import read_options, table_config


def run(case: Case) -> None:
    """Merge and compare; raises what the merge raises."""
    call = case.config.get("call") or case.api
    scene = _Scene.of(case)
    older = scene.version(case, "older")
    newer = scene.version(case, "newer")
    assert newer is not None
    if case.config.get("phase") == "precombine":
        assert older is not None
        answers = [_precombine(scene, older, newer)]
    elif call == "delta_merge":
        answers = _deltas(scene.strategy, older, newer)
    else:
        answers = [newer if older is None else scene.strategy.final_merge(older, newer)]
    for answer in answers:
        _compare(case, scene, older, newer, answer)


def _deltas(strategy: MergeStrategy, older: BufferedBatch | None, newer: BufferedBatch) -> list[BufferedBatch]:
    """One step by itself, and the fold of a buffer, which knows shortcuts."""
    if older is None:
        return [fold_by_rounds(strategy, newer, np.zeros(1, np.int64), 1)]
    both = BufferedBatch.concat([older, newer])
    return [strategy.delta_merge(older, newer), fold_by_rounds(strategy, both, np.zeros(2, np.int64), 1)]


def _precombine(scene: _Scene, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
    """What a writer does with two versions in one batch: payload classes have a rule of their own for it."""
    merger = scene.selected.merger
    if not isinstance(merger, PayloadMerger):
        return scene.strategy.delta_merge(older, newer)
    scene.context.focus(np.concatenate([older.rows, newer.rows]))
    return merger.pre_combine_batch(older, newer, scene.context, scene.selected.props)


@dataclass(frozen=True)
class _Scene:
    """A reader's context without files: what selects, what holds rows.

    ``types`` are those of ordering values. A writer's records carry some even without ordering fields, and payload
    classes compare them; a reader's never do.
    """

    context: ArrowRecordContext
    types: tuple[pa.DataType, ...]
    selected: Selection
    strategy: MergeStrategy

    @classmethod
    def of(cls, case: Case) -> _Scene:
        config = table_config(case.config)
        options = read_options(case.config)
        selected = select_strategy(
            config, options, merger_of(case.config), writing=case.config.get("engine") != "spark"
        )  # what is not Spark's merges Avro rows, as Hudi's writers do
        parsed = case.schema("reader")
        schema = _with_key(_with_ordering_types(case, parsed.arrow))
        deletes = DeleteRules.of(schema, config.merge_properties, options)
        context = ArrowRecordContext(
            RowStore(schema), schema, RecordKeys.of(True, ()), selected.ordering_fields, deletes, parsed.defaults
        )
        strategy = selected.strategy
        carried = tuple(_given_types(case)[:1]) if case.config.get("phase") == "precombine" else ()
        types = context.ordering_types or carried
        if case.config.get("is_partial"):
            strategy = strategy.switch_to_partial()
        return cls(context, types, selected, strategy)

    def version(self, case: Case, role: str) -> BufferedBatch | None:
        """One version as a batch of one record; None where the case has none."""
        given = case.fields[role]
        if given is None:
            return None
        operation = HoodieOperation(given["op"]) if given.get("op") else None
        code = DELETE if given.get("delete_record") else encode_operation(operation)
        row, order = NO_ROW, None
        if given.get("data") is not None:
            row, batch = self._store(case, role, given)
            order = OrderingColumn.from_columns([read_field_values(batch, n) for n in self.context.ordering_fields], 1)
        if order is None or ("ordering" in given and self.types):
            order = OrderingColumn.from_values(convert_delete_ordering(delete_records([given]), self.types), self.types)
        newest = case.fields["newer"]["key"]  # the engine only ever pairs equal keys
        return BufferedBatch(
            self.context, pa.array([newest], pa.string()), np.array([row]), order, np.array([code], np.int8)
        )

    def _store(self, case: Case, role: str, given: Mapping[str, Any]) -> tuple[int, pa.RecordBatch]:
        """Put a version's data into the store as reading a file of its schema would."""
        own = _with_key(_with_ordering_types(case, case.schema(role).arrow))
        values = {**given["data"], RECORD_KEY_FIELD: given["key"]}
        arrays = [column([values.get(field.name)], field.type) for field in own]
        stored = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in own]))
        batch = conform_batch(stored, self.context.schema)
        absent = {}
        if case.config.get("is_partial"):
            missing = [name for name in self.context.schema.names if name not in own.names]
            absent = {name: np.array([True]) for name in missing}
        return self.context.store.add(batch, absent), batch


def _with_key(schema: pa.Schema) -> pa.Schema:
    """The schema with the meta column that holds keys: cases give keys apart from data."""
    return schema if RECORD_KEY_FIELD in schema.names else schema.insert(0, pa.field(RECORD_KEY_FIELD, pa.string()))


def _with_ordering_types(case: Case, schema: pa.Schema) -> pa.Schema:
    """The schema with the type of the ordering field that the rows' ordering values have.

    Cases give ordering values apart from data and may use another class than the schema's.
    """
    if len(case.ordering_fields) != 1 or case.ordering_fields[0] not in schema.names:
        return schema
    types = _given_types(case, rows_only=True)
    at = schema.get_field_index(case.ordering_fields[0])
    field = schema.field(at)
    if not types or field.type in types or pa.types.is_decimal(field.type):
        return schema
    return schema.set(at, field.with_type(types[0]))


def _given_types(case: Case, *, rows_only: bool = False) -> list[pa.DataType]:
    """The column types of the ordering values that a case gives by themselves, of its rows or of deletes too."""
    given = [case.fields[role] for role in ("older", "newer") if case.fields[role] is not None]
    found = [arrow_type(row.get("ordering")) for row in given if not rows_only or row.get("data") is not None]
    return [type_ for type_ in found if type_ is not None]


def _compare(
    case: Case, scene: _Scene, older: BufferedBatch | None, newer: BufferedBatch, answer: BufferedBatch
) -> None:
    assert len(answer) == 1
    expected = dict(case.expected)
    assert "error" not in expected, f"expected {expected['error']}, got an answer"
    if "chosen" in expected:
        _compare_choice(expected.pop("chosen"), older, newer, answer)
    record = answer.to_records()[0]
    actual: dict[str, Any] = {
        "delete": record.is_delete,
        "op": record.operation.value if record.operation else None,
        "ordering": ordering_of(answer.order.get_value(0), scene.types),
        "data": _data(scene, answer),
    }
    if "ordering" in expected:
        expected["ordering"] = expected_ordering(expected["ordering"])
    if "data" in expected:
        expected["data"] = through(scene.context.schema, expected["data"])
    if case.expected.get("chosen") != "none":  # then nothing is said of a result
        check(expected, actual)


def _compare_choice(chosen: str, older: BufferedBatch | None, newer: BufferedBatch, answer: BufferedBatch) -> None:
    """Which version an answer is: two equal versions cannot be told apart, so both names fit."""
    kept = "older" if chosen == "none" else chosen
    names = {name for name, one in (("older", older), ("newer", newer)) if one is not None and _same(one, answer)}
    assert kept in (names or {"merged"}), f"expected {chosen}, got {' or '.join(sorted(names)) or 'merged'}"


def _same(one: BufferedBatch, answer: BufferedBatch) -> bool:
    told_by = [(batch.rows[0], batch.codes[0], batch.order.get_value(0)) for batch in (one, answer)]
    return bool(told_by[0] == told_by[1])


def _data(scene: _Scene, answer: BufferedBatch) -> dict[str, Any] | None:
    """The columns that a record has, without the key that the cases give apart."""
    if answer.rows[0] == NO_ROW:
        return None
    names = [name for name in scene.context.schema.names if name != RECORD_KEY_FIELD and answer.has_values(name)[0]]
    return {name: answer.column(name)[0].as_py() for name in names}
