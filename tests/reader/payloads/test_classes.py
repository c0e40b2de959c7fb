"""Payload classes by example: one pair of versions, merged as the reader merges it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie_py import BufferedBatch, InvalidQueryError, MergeError
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID
from hoodie_py.options.read import (
    DELETE_FIELD,
    DELETE_MARKER,
    ORDERING_FIELD_PROPERTY,
    SAME_ORDERING_UPDATES,
    UNAVAILABLE_VALUE,
)
from hoodie_py.reader.payloads.classes import _BY_NAME, make_builtin_payload_merger
from hoodie_py.reader.payloads.merger import PayloadMerger
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.ordering import ForeignValue
from hoodie_py.reader.record.record import DEFAULT_ORDERING, DELETE, NO_OPERATION, UPDATE_BEFORE
from hoodie_py.reader.record.row_store import NO_ROW
from tests.reader.payload_pairs import PLACEHOLDER, Version, both, context

MODEL = "org.apache.hudi.common.model."
OVERWRITE, DEFAULT, EVENT_TIME, REVERSE, NON_DEFAULTS, PARTIAL, DMS, EMPTY = (
    f"{MODEL}{name}"
    for name in (
        "OverwriteWithLatestAvroPayload",
        "DefaultHoodieRecordPayload",
        "EventTimeAvroPayload",
        "ReverseOrderHoodieRecordPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "PartialUpdateAvroPayload",
        "AWSDmsAvroPayload",
        "EmptyHoodieRecordPayload",
    )
)
MYSQL, POSTGRES = f"{MODEL}debezium.MySqlDebeziumAvroPayload", f"{MODEL}debezium.PostgresDebeziumAvroPayload"


def live(**values: Any) -> Version:
    return _version(NO_OPERATION, values)


def deleted(**values: Any) -> Version:
    return _version(DELETE, values)


def _version(code: int, values: Mapping[str, Any]) -> Version:
    names = context(()).schema.names
    return Version({**dict.fromkeys(names), **values}, code)


def bare(*ordering: Any) -> Version:
    """A delete without data; without an ordering value commit time orders it."""
    return Version(None, DELETE, ordering or None)


def merger(name: str) -> PayloadMerger:
    found = make_builtin_payload_merger(name)
    assert found is not None
    return found


class Outcome:
    """What became of one pair."""

    def __init__(self, result: BufferedBatch, older: BufferedBatch, newer: BufferedBatch) -> None:
        self.is_older = result.rows[0] == older.rows[0] != NO_ROW
        self.is_newer = result.rows[0] == newer.rows[0] and result.codes[0] == newer.codes[0]
        self.deleted = bool(result.deletes[0])
        self.has_data = result.rows[0] != NO_ROW
        self.code = int(result.codes[0])
        self.ordering = result.order.get_value(0)
        self._result = result

    def __getitem__(self, name: str) -> Any:
        return self._result.column(name)[0].as_py()


def merged(
    name: str,
    older: Version,
    newer: Version,
    props: Mapping[str, str] | None = None,
    ordering: tuple[str, ...] = ("ts",),
) -> Outcome:
    ctx = context(ordering)
    a, b = both(ctx, [(older, newer)])
    return Outcome(merger(name).merge_batch(a, b, ctx, props or {}), a, b)


def test_every_payload_class_that_java_ships_for_tables_is_built_in() -> None:
    names = {name.rpartition(".")[2] for name in sorted(_BY_NAME)}
    assert names == {
        "AWSDmsAvroPayload",
        "DefaultHoodieRecordPayload",
        "EmptyHoodieRecordPayload",
        "EventTimeAvroPayload",
        "HoodieAvroPayload",
        "HoodieJsonPayload",
        "MySqlDebeziumAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "OverwriteWithLatestAvroPayload",
        "PartialUpdateAvroPayload",
        "PostgresDebeziumAvroPayload",
        "ReverseOrderHoodieRecordPayload",
        "RewriteAvroPayload",
    }
    assert make_builtin_payload_merger("com.example.OwnPayload") is None
    assert all(merger(name).strategy_id == PAYLOAD_STRATEGY_ID for name in sorted(_BY_NAME))


@pytest.mark.parametrize("name", [name for name in sorted(_BY_NAME) if "Debezium" not in name])
def test_a_delete_that_commit_time_orders_wins_and_is_forgotten(name: str) -> None:
    assert merged(name, live(ts=9), bare()).is_newer
    assert merged(name, bare(), live(ts=1)).is_newer
    assert merged(name, deleted(ts=None, a=1), live(ts=1)).is_newer


@pytest.mark.parametrize("name", [DEFAULT, PARTIAL, POSTGRES])
def test_nothing_orders_a_version_against_an_older_delete_without_data(name: str) -> None:
    assert merged(name, bare(9), live(ts=1, _event_lsn=1)).is_newer


def test_overwrite_takes_the_newer_version_whatever_its_ordering() -> None:
    assert merged(OVERWRITE, live(ts=5), live(ts=1)).is_newer
    assert merged(OVERWRITE, live(ts=None), live(ts=1)).is_newer


def test_a_delete_that_only_the_payload_class_sees_has_no_data_and_the_greater_ordering() -> None:
    outcome = merged(DMS, live(ts=5), live(ts=1, Op="d"))
    assert (outcome.deleted, outcome.has_data, outcome.ordering) == (True, False, 5)
    assert merged(DMS, live(ts=5), live(ts=8, Op="D")).ordering == 8


def test_an_older_delete_stands_for_a_result_that_is_nothing() -> None:
    outcome = merged(DMS, deleted(ts=5, a=1), live(ts=1, Op="D"))
    assert outcome.is_older
    assert outcome.deleted


def test_empty_payload_always_deletes() -> None:
    assert merged(EMPTY, live(ts=1), live(ts=2)).deleted


@pytest.mark.parametrize("name", [DEFAULT, EVENT_TIME])
def test_default_payload_orders_by_the_rows(name: str) -> None:
    assert merged(name, live(ts=1), live(ts=2)).is_newer
    assert merged(name, live(ts=2), live(ts=1)).is_older
    assert merged(name, live(ts=2), live(ts=2)).is_newer
    assert merged(name, live(ts=2), live(ts=2), {SAME_ORDERING_UPDATES: "false"}).is_older
    assert merged(name, live(ts=None), live(ts=1)).is_newer
    assert merged(name, live(ts=9), live(ts=1), ordering=()).is_newer
    assert merged(name, live(ts=9), live(ts=1), {ORDERING_FIELD_PROPERTY: "ts"}, ordering=()).is_older


def test_default_payload_orders_deletes_without_data() -> None:
    assert merged(DEFAULT, live(ts=5), bare(4)).is_older
    assert merged(DEFAULT, live(ts=5), bare(5)).is_newer


def test_reverse_order_takes_the_lowest() -> None:
    assert merged(REVERSE, live(ts=1), live(ts=2)).is_older
    assert merged(REVERSE, live(ts=2), live(ts=1)).is_newer
    assert merged(REVERSE, live(ts=2), live(ts=2)).is_newer
    assert merged(REVERSE, live(ts=2), live(ts=2), {SAME_ORDERING_UPDATES: "false"}).is_older


def test_null_in_an_int_column_is_not_the_zero_that_it_compares_as_elsewhere() -> None:
    assert merged(DEFAULT, live(i=None), live(i=-5), ordering=("i",)).is_newer
    assert merged(DEFAULT, live(i=0), live(i=-5), ordering=("i",)).is_older


def test_ordering_values_that_do_not_compare_are_refused() -> None:
    with pytest.raises(MergeError, match=r"do not compare.*k0"):
        merged(DEFAULT, live(ts=1), live(ts=None))
    with pytest.raises(MergeError, match="do not compare"):
        merged(DEFAULT, live(ts=1), Version(None, DELETE, ForeignValue("int", 3)))


def test_what_follows_the_first_difference_is_not_compared() -> None:
    assert merged(DEFAULT, live(ts=1, i=5), live(ts=2, i=None), ordering=("ts", "i")).is_newer
    with pytest.raises(MergeError, match="do not compare"):
        merged(DEFAULT, live(ts=1, i=5), live(ts=1, i=None), ordering=("ts", "i"))


def test_delete_field_is_the_only_mark_the_default_payload_knows() -> None:
    marker = {DELETE_FIELD: "a", DELETE_MARKER: "8"}
    assert merged(DEFAULT, live(ts=1), live(ts=2, a=8), marker).deleted
    assert not merged(DEFAULT, live(ts=1), live(ts=2, _hoodie_is_deleted=True), marker).deleted
    assert not merged(EVENT_TIME, live(ts=1), live(ts=2, a=8), marker).deleted
    assert merged(DEFAULT, live(ts=1), live(ts=2, _hoodie_is_deleted=True)).deleted
    with pytest.raises(InvalidQueryError, match=r"delete\.marker"):
        merged(DEFAULT, live(ts=1), live(ts=2), {DELETE_FIELD: "a"})


def test_non_defaults_keeps_older_values_where_the_newer_row_holds_the_default() -> None:
    older = live(ts=5, a=1, s="old", b=b"old", l=[3], m=[("k", 1)], r={"x": 5}, f=2.5)
    outcome = merged(NON_DEFAULTS, older, live(ts=1, a=7, s="", b=b"", l=[1, 2], m=[], r={"x": 1}, f=None))
    assert (outcome["a"], outcome["s"], outcome["l"], outcome["m"], outcome["f"]) == (1, "old", [3], [("k", 1)], 2.5)
    assert (outcome["b"], outcome["r"]) == (b"", {"x": 1})  # bytes and records never equal a default
    assert (outcome["ts"], outcome.ordering, outcome.code) == (1, 1, NO_OPERATION)


def test_non_defaults_takes_null_where_the_default_is_another_value() -> None:
    outcome = merged(NON_DEFAULTS, live(ts=1, a=1, s="old"), live(ts=2, a=None, s=None))
    assert (outcome["a"], outcome["s"]) == (None, None)


def test_non_defaults_inherits_a_stored_delete_flag_and_inserts_such_a_row_as_a_delete() -> None:
    outcome = merged(NON_DEFAULTS, live(ts=1, _hoodie_is_deleted=True), live(ts=2, _hoodie_is_deleted=False))
    assert outcome["_hoodie_is_deleted"] is True
    assert not outcome.deleted
    assert _inserted(NON_DEFAULTS, live(ts=1, _hoodie_is_deleted=True)).deleted


def test_non_defaults_deletes_with_the_newer_version() -> None:
    assert merged(NON_DEFAULTS, live(ts=9), deleted(ts=1)).is_newer
    assert merged(NON_DEFAULTS, live(ts=9), _version(UPDATE_BEFORE, {"ts": 1})).is_newer
    assert merged(NON_DEFAULTS, live(ts=9), bare(1)).is_newer


def test_partial_update_fills_nulls_of_the_later_version() -> None:
    outcome = merged(PARTIAL, live(ts=1, a=1, s="old"), live(ts=1, a=None, s="new"))
    assert (outcome["a"], outcome["s"], outcome["ts"]) == (1, "new", 1)
    outcome = merged(PARTIAL, live(ts=2, a=None, s="old"), live(ts=1, a=4, s="new"))
    assert (outcome["a"], outcome["s"], outcome["ts"], outcome.ordering) == (4, "old", 2, 2)


def test_partial_update_keeps_the_newer_meta_columns_where_the_older_version_is_later() -> None:
    older, newer = live(ts=2, s="old", _hoodie_commit_time="1"), live(ts=1, s="new", _hoodie_commit_time="2")
    outcome = merged(PARTIAL, older, newer)
    assert (outcome["_hoodie_commit_time"], outcome["s"]) == ("2", "old")
    assert not outcome.is_older


def test_partial_update_lets_the_newer_version_lead_where_orderings_do_not_compare() -> None:
    assert merged(PARTIAL, live(ts=9, s="old"), live(ts=None, s="new"))["s"] == "new"
    assert merged(PARTIAL, live(ts=9, i=None, s="old"), live(ts=1, i=1, s="new"), ordering=("ts", "i"))["s"] == "new"


def test_partial_update_deletes() -> None:
    assert merged(PARTIAL, live(ts=9), deleted(ts=1)).is_newer
    assert merged(PARTIAL, live(ts=9, _hoodie_is_deleted=True), live(ts=1)).deleted
    assert merged(PARTIAL, deleted(ts=9), live(ts=1)).is_older


def test_mysql_compares_file_and_position_as_numbers() -> None:
    assert merged(MYSQL, live(_event_seq="00000.123"), live(_event_seq="0.23")).is_older
    assert merged(MYSQL, live(_event_seq="1.900"), live(_event_seq="2.1")).is_newer
    assert merged(MYSQL, live(_event_seq="1.100"), live(_event_seq="1.100")).is_newer
    assert merged(MYSQL, live(_event_seq=None), live(_event_seq="1.1")).is_newer
    assert merged(MYSQL, live(_event_seq="2.1"), live(_event_seq="1.1", _change_operation_type="d")).is_older
    assert merged(MYSQL, live(_event_seq="1.1"), live(_event_seq="2.1", _change_operation_type="D")).deleted


@pytest.mark.parametrize("text", ["", "1", "1.", ".1", "x.1", "1.x", "9999999999999999999.1", None])
def test_mysql_refuses_what_is_no_log_position(text: str | None) -> None:
    with pytest.raises(MergeError, match=r"_event_seq.*k0"):
        merged(MYSQL, live(_event_seq="1.1"), live(_event_seq=text))


def test_postgres_compares_log_sequence_numbers() -> None:
    assert merged(POSTGRES, live(_event_lsn=5), live(_event_lsn=4)).is_older
    assert merged(POSTGRES, live(_event_lsn=5), live(_event_lsn=5)).is_newer
    assert merged(POSTGRES, live(_event_lsn=None), live(_event_lsn=5)).is_newer
    assert merged(POSTGRES, live(_event_lsn=5), live(_event_lsn=6, _change_operation_type="d")).deleted
    assert merged(POSTGRES, live(_event_lsn=5), bare(1)).is_newer
    with pytest.raises(MergeError, match="_event_lsn must not be null"):
        merged(POSTGRES, live(_event_lsn=5), live(_event_lsn=None))


def test_postgres_fills_what_is_unavailable_on_request_only() -> None:
    older = live(_event_lsn=5, s="text", b=b"bytes")
    newer = live(_event_lsn=6, s=PLACEHOLDER, b=PLACEHOLDER.encode(), ts=3)
    assert merged(POSTGRES, older, newer).is_newer
    outcome = merged(POSTGRES, older, newer, {UNAVAILABLE_VALUE: PLACEHOLDER})
    assert (outcome["s"], outcome["b"], outcome["ts"]) == ("text", b"bytes", 3)


def test_inserting_a_row_that_only_the_payload_class_takes_for_a_delete_deletes_it() -> None:
    assert _inserted(DMS, live(ts=1, Op="d")).deleted
    assert _inserted(DMS, live(ts=1, Op="d")).has_data
    assert _inserted(POSTGRES, live(_change_operation_type="D")).deleted
    assert _inserted(EMPTY, live(ts=1)).deleted
    assert not _inserted(DMS, live(ts=1, Op="I")).deleted
    assert not _inserted(f"{MODEL}HoodieAvroPayload", live(ts=1, _hoodie_is_deleted=True)).deleted


def test_a_batch_of_a_writer_keeps_the_greater_ordering() -> None:
    assert _pre_combined(DEFAULT, live(ts=2), live(ts=1)).is_older
    assert _pre_combined(REVERSE, live(ts=2), live(ts=1)).is_newer
    assert _pre_combined(OVERWRITE, live(ts=2), live(ts=1)).is_newer
    assert _pre_combined(DMS, live(ts=2), live(ts=1, Op="D")).is_older
    assert _pre_combined(NON_DEFAULTS, live(ts=2), bare(1)).is_newer
    assert _pre_combined(PARTIAL, live(ts=2, a=None), live(ts=1, a=4))["a"] == 4
    assert _pre_combined(PARTIAL, live(ts=1), live(ts=2, _hoodie_is_deleted=True))["_hoodie_is_deleted"] is True
    assert _pre_combined(MYSQL, live(_event_seq="1.20"), live(_event_seq="1.3"), ("_event_seq",)).is_older
    assert _pre_combined(DEFAULT, bare(9), live(ts=1)).is_newer


def test_columns_that_a_payload_class_does_not_look_at_need_not_be_read() -> None:
    from hoodie_py.formats.config.table_config import TableConfig

    config = TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": "6",
            "hoodie.compaction.payload.class": POSTGRES,
            "hoodie.table.ordering.fields": "ts",
        }
    )
    wanted = merger(POSTGRES).mandatory_fields(context(()).schema, config, {DELETE_FIELD: "a"})
    assert set(wanted) == {"_hoodie_record_key", "ts", "_change_operation_type", "_event_lsn", "a"}


def test_a_context_of_other_rows_is_refused() -> None:
    from hoodie_py.reader.record.table_context import MappingRecordContext

    other = MappingRecordContext(context(()).schema)
    record = other.construct("k", {"ts": 1})
    with pytest.raises(MergeError, match="own rows only"):
        merger(DEFAULT).merge(record, record, other, {})


def _inserted(name: str, newer: Version) -> Outcome:
    ctx = context(("ts",))
    _, batch = both(ctx, [(bare(), newer)])
    return Outcome(merger(name).insert_batch(batch, ctx, {}), batch, batch)


def _pre_combined(name: str, older: Version, newer: Version, ordering: tuple[str, ...] = ("ts",)) -> Outcome:
    ctx: ArrowRecordContext = context(ordering)
    a, b = both(ctx, [(older, newer)])
    return Outcome(merger(name).pre_combine_batch(a, b, ctx, {}), a, b)


def test_results_keep_the_order_of_their_keys() -> None:
    ctx = context(("ts",))
    given = [(live(ts=1), live(ts=2, Op="d")), (bare(), live(ts=1)), (live(ts=1), live(ts=0, Op="U"))]
    older, newer = both(ctx, given)
    result = merger(DMS).merge_batch(older, newer, ctx, {})
    assert result.keys.equals(pa.array(["k0", "k1", "k2"]))
    assert np.array_equal(result.deletes, [True, False, False])
    assert result.order.to_pylist() == [2, 1, 0]
    assert DEFAULT_ORDERING not in result.order.to_pylist()
