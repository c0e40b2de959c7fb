"""HoodieMetadataPayload: each kind of record merges by its own rule, row by row and in batches alike.

Column statistics of the metadata table merge as Hudi's do, with Java's order of values.

File lists of the metadata table merge as Hudi's do, by example and against a model in plain Python.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import BufferedBatch, MergeError
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.reader.payloads.classes import make_builtin_payload_merger
from hoodie_py.reader.payloads.metadata_table import HoodieMetadataPayload, merge_file_lists, merge_statistics
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING, DELETE, NO_OPERATION
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore

MEMBERS = {
    "member0": pa.bool_(), "member1": pa.int32(), "member2": pa.int64(), "member3": pa.float32(),
    "member4": pa.float64(), "member5": pa.binary(), "member6": pa.string(), "member7": pa.date32(),
    "member10": pa.timestamp("us", "UTC"),
}  # fmt: skip
WRAPPED = pa.struct([pa.field(name, pa.struct([("value", type_)])) for name, type_ in MEMBERS.items()])
STATISTICS = pa.struct(
    [
        ("fileName", pa.string()),
        ("columnName", pa.string()),
        ("minValue", WRAPPED),
        ("maxValue", WRAPPED),
        ("valueCount", pa.int64()),
        ("nullCount", pa.int64()),
        ("totalSize", pa.int64()),
        ("totalUncompressedSize", pa.int64()),
        ("isDeleted", pa.bool_()),
        ("isTightBound", pa.bool_()),
        ("valueType", pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())])),
    ]
)
DECIMAL, UUID = 10, 11


def statistics(
    least: Any, greatest: Any, member: str = "member2", kind: int | None = None, **more: Any
) -> dict[str, Any]:
    def wrap(value: Any) -> Any:
        return None if value is None else {**dict.fromkeys(MEMBERS), member: {"value": value}}

    plain = {"fileName": "f", "columnName": "c", "valueCount": 3, "nullCount": 1, "totalSize": 10}
    plain |= {"totalUncompressedSize": 20, "isDeleted": False, "isTightBound": False}
    value_type = None if kind is None else {"typeOrdinal": kind, "additionalInfo": None}
    return {**plain, "minValue": wrap(least), "maxValue": wrap(greatest), "valueType": value_type, **more}


def merge_both(older: dict[str, Any] | None, newer: dict[str, Any] | None) -> Any:
    arrays = (pa.array([None, each, each], STATISTICS)[1:] for each in (older, newer))
    merged = merge_statistics(*arrays)
    merged.validate(full=True)
    assert merged.type == STATISTICS
    rows = merged.to_pylist()
    return rows[0]


def bounds(row: dict[str, Any], member: str) -> tuple[Any, Any]:
    found = [row[name] and row[name][member]["value"] for name in ("minValue", "maxValue")]
    return found[0], found[1]


def test_values_widen_and_counts_add_up() -> None:
    older = statistics(1, 9, fileName="old")
    newer = statistics(3, 12, fileName="new", valueCount=5)
    assert merge_both(older, newer) == statistics(
        1, 12, fileName="new", valueCount=8, nullCount=2, totalSize=20, totalUncompressedSize=40
    )


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (statistics(1, 9, isDeleted=True), statistics(3, 4)),
        (statistics(1, 9), statistics(3, 4, isDeleted=True)),
        (statistics(1, 9), statistics(3, 4, isTightBound=True)),
        (None, statistics(3, 4)),
        (statistics(3, 4), None),
    ],
)
def test_the_newer_ones_count_alone(older: Any, newer: Any) -> None:
    assert merge_both(older, newer) == newer


def test_a_side_without_values_takes_the_others() -> None:
    assert bounds(merge_both(statistics(None, None), statistics(3, 4)), "member2") == (3, 4)
    assert bounds(merge_both(statistics(3, 4), statistics(None, None)), "member2") == (3, 4)
    assert merge_both(statistics(None, None), statistics(None, None))["minValue"] is None


def java_text(value: str) -> bytes:
    return value.encode("utf-16-be")


def java_double(value: float) -> Any:
    return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))


def java_bytes(value: bytes) -> list[int]:
    return [octet - 256 if octet > 127 else octet for octet in value]


KINDS: list[tuple[str, int | None, st.SearchStrategy[Any], Callable[[Any], Any]]] = [
    ("member0", None, st.booleans(), bool),
    ("member1", 3, st.integers(-9, 9), int),
    ("member2", None, st.integers(-(1 << 63), (1 << 63) - 1), int),
    ("member4", 6, st.sampled_from([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan]), java_double),
    ("member3", 5, st.sampled_from([0.0, -0.0, 1.5, math.inf, math.nan]), java_double),
    ("member5", None, st.binary(max_size=3), java_bytes),
    ("member5", 8, st.binary(max_size=3), java_bytes),
    ("member5", DECIMAL, st.integers(-(1 << 70), 1 << 70).map(
        lambda n: n.to_bytes(n.bit_length() // 8 + 1, "big", signed=True)),
        lambda octets: int.from_bytes(octets, "big", signed=True)),
    ("member6", None, st.text(max_size=3) | st.sampled_from(["\ud7ff", "\U00010000", "\uffff"]), java_text),
    ("member6", UUID, st.uuids().map(str), lambda text: (
        int.from_bytes(uuid.UUID(text).bytes[:8], "big", signed=True),
        int.from_bytes(uuid.UUID(text).bytes[8:], "big", signed=True))),
]  # fmt: skip


@pytest.mark.parametrize(("member", "kind", "values", "order"), KINDS)
@given(data=st.data())
def test_values_compare_as_in_java(
    member: str, kind: int | None, values: st.SearchStrategy[Any], order: Callable[[Any], Any], data: st.DataObject
) -> None:
    least, other, greatest, last = (data.draw(values) for _ in range(4))
    merged = bounds(
        merge_both(statistics(least, greatest, member, kind), statistics(other, last, member, kind)), member
    )
    assert order(merged[0]) == min(order(least), order(other))
    assert order(merged[1]) == max(order(greatest), order(last))


def test_values_of_different_types_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="different value types"):
        merge_both(statistics(1, 2, "member1"), statistics(1, 2, "member2"))
    with pytest.raises(UnsupportedFeatureError, match="different value types"):
        merge_both(statistics(1, 2, kind=4), statistics(1, 2, kind=16))
    with pytest.raises(UnsupportedFeatureError, match="UUID"):
        merge_both(statistics("x", "x", "member6", UUID), statistics("y", "y", "member6", UUID))


INFO = pa.struct([pa.field("size", pa.int64(), False), pa.field("isDeleted", pa.bool_(), False)])
LIST = pa.map_(pa.string(), pa.field("value", INFO, nullable=False))
Files = dict[str, tuple[int, bool]]

lists = st.none() | st.dictionaries(
    st.sampled_from(["a", "b", "c", "é"]), st.tuples(st.integers(0, 9), st.booleans()), max_size=4
)


def to_array(given: list[Files | None]) -> pa.Array:
    rows = [
        None if each is None else [(name, {"size": size, "isDeleted": gone}) for name, (size, gone) in each.items()]
        for each in given
    ]
    return pa.array(rows, LIST)


def to_dicts(merged: pa.Array) -> list[Files]:
    return [{name: (info["size"], info["isDeleted"]) for name, info in row} for row in merged.to_pylist()]


def model(older: Files | None, newer: Files | None) -> Files:
    combined = dict(older or {})
    for name, (size, gone) in (newer or {}).items():
        if name not in combined:
            combined[name] = (size, gone)
        elif not gone:
            combined[name] = (max(size, combined[name][0]), False)
        elif combined[name][1]:
            combined[name] = (size, gone)
        else:
            del combined[name]
    return combined


def test_lists_are_joined_and_sizes_only_grow() -> None:
    older = to_array([{"x": (5, False), "y": (9, False)}])
    assert to_dicts(merge_file_lists(older, to_array([{"x": (3, False), "z": (1, False)}]))) == [
        {"x": (5, False), "y": (9, False), "z": (1, False)}
    ]


def test_a_deleted_name_goes_and_one_that_is_not_known_stays_deleted() -> None:
    older = to_array([{"x": (5, False), "z": (0, True)}])
    merged = merge_file_lists(older, to_array([{"x": (0, True), "y": (0, True), "z": (0, True)}]))
    assert to_dicts(merged) == [{"y": (0, True), "z": (0, True)}]
    assert to_dicts(merge_file_lists(to_array([{"x": (0, True)}]), to_array([{"x": (7, False)}]))) == [
        {"x": (7, False)}
    ]


@given(st.lists(st.tuples(lists, lists), max_size=8), st.integers(0, 3))
def test_pairs_merge_as_the_model_does(pairs: list[tuple[Files | None, Files | None]], skipped: int) -> None:
    older, newer = (to_array([pair[side] for pair in pairs])[skipped:] for side in (0, 1))
    merged = merge_file_lists(older, newer)
    assert merged.type == LIST
    merged.validate(full=True)
    assert to_dicts(merged) == [model(*pair) for pair in pairs[skipped:]]


def test_maps_of_something_else_are_an_error() -> None:
    wrong: Any = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(CorruptFileError, match="sizes"):
        merge_file_lists(wrong, wrong)


SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("type", pa.int32()),
        ("filesystemMetadata", LIST),
        ("ColumnStatsMetadata", STATISTICS),
        ("recordIndexMetadata", pa.struct([("partitionName", pa.string())])),
    ]
)
MERGER = HoodieMetadataPayload()
Row = dict[str, Any] | None


def context(columns: Sequence[str] = tuple(SCHEMA.names)) -> ArrowRecordContext:
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    return ArrowRecordContext(RowStore(schema), schema, RecordKeys.of(False, ("key",)), (), DeleteRules(), {})


def batch(ctx: ArrowRecordContext, rows: Sequence[Row]) -> BufferedBatch:
    """Rows with the keys k0, k1, ...; None is a delete without data."""
    named = [None if row is None else {"key": f"k{i}", **row} for i, row in enumerate(rows)]
    there = [row for row in named if row is not None]
    first = ctx.store.add(pa.RecordBatch.from_pylist(there, ctx.schema))
    handles = np.full(len(rows), NO_ROW, np.int64)
    handles[[i for i, row in enumerate(named) if row is not None]] = first + np.arange(len(there))
    codes = np.array([DELETE if row is None else NO_OPERATION for row in rows], np.int8)
    keys = pa.array([f"k{i}" for i in range(len(rows))])
    return BufferedBatch(ctx, keys, handles, OrderingColumn.from_columns([], len(rows)), codes)


def merge(older: Row, newer: Row) -> Row:
    ctx = context()
    (record,) = MERGER.merge_batch(batch(ctx, [older]), batch(ctx, [newer]), ctx, {}).to_records()
    return None if record.is_delete else {name: ctx.get_value(record, name) for name in SCHEMA.names}


def files(kind: int = 2, **names: int) -> dict[str, Any]:
    infos = [(name, {"size": size, "isDeleted": not size}) for name, size in names.items()]
    return {"type": kind, "filesystemMetadata": infos}


def test_the_class_is_built_in_for_metadata_tables() -> None:
    found = make_builtin_payload_merger("org.apache.hudi.metadata.HoodieMetadataPayload")
    assert isinstance(found, HoodieMetadataPayload)
    assert make_builtin_payload_merger("org.apache.hudi.metadata.Other") is None


def test_each_kind_has_its_rule() -> None:
    assert (merge(files(a=1, b=2), files(b=0, c=3)) or {})["filesystemMetadata"] == [
        ("a", {"size": 1, "isDeleted": False}), ("c", {"size": 3, "isDeleted": False}),
    ]  # fmt: skip
    assert (merge(files(1, p=1), files(1, q=1)) or {})["type"] == 1
    for kind in (3, 6):
        both = merge(*({"type": kind, "ColumnStatsMetadata": statistics(n, n)} for n in (1, 5)))
        assert (both or {})["ColumnStatsMetadata"]["minValue"]["member2"] == {"value": 1}
    places = [{"type": 5, "recordIndexMetadata": {"partitionName": name}} for name in "ab"]
    assert (merge(*places) or {})["recordIndexMetadata"] == {"partitionName": "b"}


def test_a_delete_deletes_and_what_follows_starts_anew() -> None:
    assert merge(files(a=1), None) is None
    assert merge(None, files(b=2)) == merge(files(b=2), files())


def test_columns_that_are_not_read_are_not_needed() -> None:
    ctx = context(("key", "type"))
    older, newer = batch(ctx, [{"type": 2}, {"type": 3}]), batch(ctx, [{"type": 2}, {"type": 3}])
    result = MERGER.merge_batch(older, newer, ctx, {})
    assert result.rows.tolist() == newer.rows.tolist()
    assert "type" in MERGER.mandatory_fields(SCHEMA, config(), {})


def config() -> Any:
    from hoodie_py.formats.config.table_config import TableConfig

    text = (
        b"hoodie.table.name=t\nhoodie.table.version=9\nhoodie.table.type=MERGE_ON_READ\nhoodie.record.merge.mode=CUSTOM\n"
        b"hoodie.compaction.payload.class=org.apache.hudi.metadata.HoodieMetadataPayload\n"
        b"hoodie.table.recordkey.fields=key\nhoodie.populate.meta.fields=false\n"
    )
    return TableConfig.from_bytes(text)


def test_what_cannot_be_merged_is_an_error() -> None:
    with pytest.raises(MergeError, match="different types"):
        merge(files(a=1), {"type": 5})
    with pytest.raises(UnsupportedFeatureError, match="type 8"):
        merge({"type": 8}, {"type": 8})


rows = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)).map(lambda names: files(**names)),
    st.builds(
        lambda low, gone, tight: {
            "type": 3, "ColumnStatsMetadata": statistics(low, low, isDeleted=gone, isTightBound=tight)
        },
        st.none() | st.integers(-3, 3), st.booleans(), st.booleans(),
    ),
    st.sampled_from("xy").map(lambda name: {"type": 5, "recordIndexMetadata": {"partitionName": name}}),
)  # fmt: skip


@given(st.lists(st.tuples(rows, rows), min_size=1, max_size=8))
@settings(deadline=None)
def test_rows_and_batches_merge_alike(pairs: list[tuple[Row, Row]]) -> None:
    same = [(a, b) for a, b in pairs if a is None or b is None or a["type"] == b["type"]]
    ctx = context()
    older, newer = (batch(ctx, [pair[side] for pair in same]) for side in (0, 1))
    together = [describe(ctx, each) for each in MERGER.merge_batch(older, newer, ctx, {}).to_records()]
    one_by_one = [
        describe(ctx, MERGER.merge(a, b, ctx, {})) for a, b in zip(older.to_records(), newer.to_records(), strict=True)
    ]
    assert together == one_by_one


def describe(ctx: ArrowRecordContext, record: Any) -> Any:
    assert record.ordering_value is DEFAULT_ORDERING or record.ordering_value is not None
    values = {name: ctx.get_value(record, name) for name in SCHEMA.names} if record.record is not None else None
    if values and values["filesystemMetadata"] is not None:
        values["filesystemMetadata"] = dict(values["filesystemMetadata"])
    return record.is_delete, values
