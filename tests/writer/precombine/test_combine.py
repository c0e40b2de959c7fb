"""One record a key: batches merged as a plain fold through the same rules merges them, record by record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import DEFAULT_ORDERING, BufferedRecord, HoodieOperation, HoodieTable, RecordMerger
from hoodie_py.errors import MergeError
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.reader.record.table_context import MappingRecordContext
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.precombine.combine import combine, needs_combining
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.settings import WriteSettings
from integration.corpus_mergers import Accumulate, HighestPrice
from tests.corpus import unpack

COLUMNS = pa.schema(
    [("id", pa.string()), ("name", pa.string()), ("price", pa.float64()), ("qty", pa.int32()), ("ts", pa.int64())]
)
MODES: dict[str, dict[str, Any]] = {
    "event time": {"ordering": "ts"},
    "commit time": {},
    "ignore defaults": {"ordering": "ts", "properties": {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}},
    "highest price": {"ordering": "ts", "merger": HighestPrice},
    "accumulate": {"ordering": "ts", "merger": Accumulate},
}
DEFAULTS = WriteSettings.from_options({})
Row = dict[str, Any]


@cache
def _snapshot(mode: str) -> Snapshot:
    base = Path(mkdtemp(prefix="combine-")) / "table"
    HoodieTable.create(base, COLUMNS, record_key="id", **MODES[mode])
    return open_snapshot(base)


def _records(rows: list[Row], *, ordering: bool = True, partitions: bool = True) -> WriteRecords:
    """Records of rows with the further entries ``part`` and ``gone``; a null ts orders by commit time."""
    table = pa.Table.from_pylist([{name: row.get(name) for name in COLUMNS.names} for row in rows], COLUMNS)
    paths = pa.chunked_array([pa.array([row.get("part", "") for row in rows], pa.string())])
    gone = pa.chunked_array([pa.array([bool(row.get("gone")) for row in rows], pa.bool_())])
    given = (table.column("ts"),) if ordering else ()
    return WriteRecords(table, table.column("id"), paths if partitions else None, gone, given)


def _as_rows(records: WriteRecords) -> list[Row]:
    gone = [False] * len(records) if records.deletes is None else records.deletes.to_pylist()
    paths = [""] * len(records) if records.partition_paths is None else records.partition_paths.to_pylist()
    rows = records.rows.to_pylist() if records.rows.num_columns else [{"id": key} for key in records.keys.to_pylist()]
    return [{**row, "part": part, "gone": dead} for row, part, dead in zip(rows, paths, gone, strict=True)]


def _expected(rows: list[Row], mode: str) -> dict[tuple[str, str], Row]:
    """Fold the rows of each key one by one."""
    folded: dict[tuple[str, str], Row] = {}
    for row in rows:
        place = row["part"], row["id"]
        folded[place] = row if place not in folded else _merged(folded[place], row, mode)
    return folded


def _merged(older: Row, newer: Row, mode: str) -> Row:
    merger = MODES[mode].get("merger")
    if merger is not None:
        return _by_merger(older, newer, merger())
    if mode == "commit time":
        return newer
    commit_time = any(each["gone"] and each["ts"] is None for each in (older, newer))
    newer_wins = commit_time or older["ts"] <= newer["ts"]
    high, low = (newer, older) if newer_wins else (older, newer)
    if mode == "event time" or older["gone"] or newer["gone"]:
        return high
    return {name: low[name] if value is None else value for name, value in high.items()}


def _by_merger(older: Row, newer: Row, merger: RecordMerger) -> Row:
    fields = [
        pa.field(RECORD_KEY_FIELD, pa.string()),
        *COLUMNS,
        pa.field("part", pa.string()),
        pa.field("gone", pa.bool_()),
    ]
    context = MappingRecordContext(pa.schema(fields), ordering_fields=("ts",))
    result = merger.merge(_buffered(older, context), _buffered(newer, context), context, {})
    assert result.record is not None
    row: Row = {name: value for name, value in result.record.items() if name != RECORD_KEY_FIELD}
    return {**row, "gone": result.is_delete, "part": newer["part"]}


def _buffered(row: Row, context: MappingRecordContext) -> BufferedRecord[Row]:
    ordering = DEFAULT_ORDERING if row["ts"] is None else row["ts"]
    operation = HoodieOperation.DELETE if row["gone"] else None
    return BufferedRecord(row["id"], ordering, {**row, RECORD_KEY_FIELD: row["id"]}, context.schema_id, operation)


LIVE = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abc"),
        "name": st.none() | st.sampled_from(["x", "yy"]),
        "price": st.none() | st.sampled_from([1.5, 2.5]),
        "qty": st.none() | st.integers(0, 60),
        "ts": st.integers(0, 4),
        "part": st.sampled_from(["p", "q"]),
        "gone": st.just(False),
    }
)
DEAD = st.builds(lambda row, ts: {**row, "gone": True, "ts": ts}, LIVE, st.none() | st.integers(0, 4))


@pytest.mark.parametrize("mode", list(MODES))
@given(rows=st.lists(LIVE | DEAD, max_size=12))
@settings(max_examples=80)
def test_a_batch_is_folded_in_its_order(mode: str, rows: list[Row]) -> None:
    given_ = _records(rows, ordering=mode != "commit time")
    merger = MODES[mode].get("merger")
    found = combine(given_, _snapshot(mode), DEFAULTS, merger)
    result = _as_rows(found)
    expected = _expected(rows, mode)
    assert {(row["part"], row["id"]): row for row in result} == expected
    assert len(result) == len(expected)
    if found.ordering:
        assert found.ordering[0].to_pylist() == [row["ts"] for row in result]


def test_distinct_keys_pass_as_they_are() -> None:
    records = _records([{"id": "a", "ts": 1}, {"id": "b", "ts": 1}, {"id": "a", "ts": 1, "part": "q"}])
    assert combine(records, _snapshot("event time"), DEFAULTS) is records


def test_with_a_global_index_partitions_do_not_make_keys_distinct() -> None:
    rows = [{"id": "a", "ts": 2, "part": "p"}, {"id": "b", "ts": 1, "part": "p"}, {"id": "a", "ts": 1, "part": "q"}]
    settings_ = WriteSettings.from_options({"hoodie.index.type": "GLOBAL_BLOOM"})
    found = _as_rows(combine(_records(rows), _snapshot("event time"), settings_))
    assert [(row["id"], row["part"], row["ts"]) for row in found] == [("a", "p", 2), ("b", "p", 1)]


def test_deletes_by_bare_keys_stay_once() -> None:
    keys = pa.chunked_array([["a", "b"], ["a"]])
    for mode, creation in MODES.items():
        found = combine(WriteRecords(pa.table({}), keys, None), _snapshot(mode), DEFAULTS, creation.get("merger"))
        assert sorted(found.keys.to_pylist()) == ["a", "b"]
        assert found.rows.num_columns == 0


def test_of_deletes_by_key_the_greatest_ordering_value_stays() -> None:
    keys, gone = pa.chunked_array([["a", "b", "a"]]), pa.chunked_array([[True] * 3])
    records = WriteRecords(pa.table({}), keys, None, gone, (pa.chunked_array([pa.array([5, 1, 3], pa.int64())]),))
    found = combine(records, _snapshot("event time"), DEFAULTS)
    assert dict(zip(found.keys.to_pylist(), found.ordering[0].to_pylist(), strict=True)) == {"a": 5, "b": 1}


def test_a_payload_class_combines_by_its_pre_combine(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("payload_partial_update_mor_v6", tmp_path))
    rows = [{"id": "a", "name": "x", "qty": 1, "ts": 2}, {"id": "a", "name": None, "qty": 2, "ts": 3}]
    (found,) = _as_rows(combine(_records(rows), snapshot, DEFAULTS))
    assert (found["name"], found["qty"], found["ts"]) == ("x", 2, 3)


def test_a_failing_merger_is_an_error_that_names_the_key() -> None:
    class Broken(RecordMerger):
        strategy_id = "4d6f1b0a-0000-4000-8000-000000000001"

        def merge(self, older: Any, newer: Any, context: Any, props: Mapping[str, str]) -> Any:
            raise RuntimeError("no")

    with pytest.raises(MergeError, match=r"no.*key=a"):
        combine(_records([{"id": "a", "ts": 1}] * 2), _snapshot("event time"), DEFAULTS, Broken)


def test_versions_that_do_not_compare_are_an_error() -> None:
    with pytest.raises(MergeError, match=r"do not compare.*key=a"):
        combine(_records([{"id": "a", "ts": 1}, {"id": "a", "ts": None}]), _snapshot("event time"), DEFAULTS)


def test_options_say_which_writes_combine() -> None:
    by_default = {each for each in WriteOperation if needs_combining(each, {})}
    assert by_default == {WriteOperation.UPSERT, WriteOperation.DELETE}
    assert needs_combining(WriteOperation.INSERT_OVERWRITE, {"hoodie.combine.before.insert": "true"})
    assert not needs_combining(WriteOperation.UPSERT, {"hoodie.combine.before.upsert": "false"})


def test_many_rows_are_combined_without_a_loop() -> None:
    count = 20_000
    rng = np.random.default_rng(7)
    keys = pa.array([f"k{number}" for number in rng.integers(0, count // 2, count)])
    ts = pa.array(rng.integers(0, 1 << 40, count))
    table = pa.table([keys, keys, pa.nulls(count, pa.float64()), pa.nulls(count, pa.int32()), ts], schema=COLUMNS)
    paths = pa.chunked_array([pa.repeat("", count)])
    found = combine(
        WriteRecords(table, table.column(0), paths, None, (table.column(4),)), _snapshot("event time"), DEFAULTS
    )
    expected = table.group_by("id").aggregate([("ts", "max")]).to_pydict()
    assert dict(zip(found.keys.to_pylist(), found.ordering[0].to_pylist(), strict=True)) == dict(
        zip(expected["id"], expected["ts_max"], strict=True)
    )
