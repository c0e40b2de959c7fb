"""HoodieMetadataPayload: each kind of record merges by its own rule, row by row and in batches alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import BufferedBatch, MergeError
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.reader.payloads.classes import make_builtin_payload_merger
from hoodie_py.reader.payloads.metadata_table import HoodieMetadataPayload
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING, DELETE, NO_OPERATION
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from tests.reader.payloads.test_column_statistics import STATISTICS, statistics
from tests.reader.payloads.test_file_lists import LIST

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
