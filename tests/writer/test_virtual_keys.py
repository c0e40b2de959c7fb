"""Tables without meta fields: every write, with keys of every type, against a model of the rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.writer.handles import append
from tests.corpus import corpus_names, unpack
from tests.writer.compaction_tables import QUICK, orphans

NO_META = {"hoodie.populate.meta.fields": "false"}
LOGS = {**QUICK, "hoodie.parquet.small.file.limit": "0"}
BY_KEY = {"hoodie.write.record.positions": "false"}
UTC, MICROS = dt.UTC, (0, 1, 1000, 999_999)
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["a", "b:c", "d,e", "f:g,h"]),
    "int": (pa.int32(), [1, -2, 3, 4]),
    "decimal": (pa.decimal128(20, 9), [Decimal(each) for each in ("1E-9", "0E-9", "0.001000000", "7.000000000")]),
    "date": (pa.date32(), [dt.date(2020, 1, 2), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "time": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 2, 3, 4, 5, each, UTC) for each in MICROS]),
    "local": (pa.timestamp("us"), [dt.datetime(1950, 1, 2, 3, 4, 5, each) for each in MICROS]),
    "float": (pa.float32(), [1.5, -0.0, 3e10, float("inf")]),
    "double": (pa.float64(), [0.1, 1e-5, 1e7, 1234567.891]),
    "bytes": (pa.binary(), [b"ab", b"\x00\xff", b"", b"zz"]),
}  # fmt: skip
CASES = [
    *((kind, version, merged) for kind in KEYS for version, merged in ((9, True), (9, False), (6, True))),
    *(("text", version, merged) for version, merged in ((8, True), (8, False), (6, False))),
]
Model = dict[tuple[Any, str], tuple[int, int]]


class Lake:
    """A table without meta fields, and what must be in it."""

    def __init__(self, base: Path, kind: str, version: int, *, merged: bool, two: bool = False, **create: Any) -> None:
        type_, self.keys = KEYS[kind]
        self.keys = [each for each in self.keys if two or each != b""]
        self.schema = pa.schema(
            [("k", type_), ("x", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]
        )
        self.base = base
        self.model: Model = {}
        properties = {**NO_META, **create.pop("properties", {})}
        HoodieTable.create(
            base, self.schema, record_key=["k", "x"] if two else "k", ordering="ts", table_version=version,
            table_type="MERGE_ON_READ" if merged else "COPY_ON_WRITE", properties=properties,
            **{"partition_by": ["part"], **create},
        )  # fmt: skip

    def open(self) -> HoodieTable:
        return HoodieTable.open(self.base)

    def rows(self, numbers: list[int], ts: int, factor: int) -> pa.Table:
        rows = [
            {"k": self.keys[n], "x": "x", "part": f"p{n % 2}", "ts": ts, "v": n * factor}
            for n in numbers
            if n < len(self.keys)
        ]
        return pa.Table.from_pylist(rows, self.schema)

    def put(self, operation: str, numbers: list[int], ts: int, factor: int, options: Mapping[str, str] = LOGS) -> None:
        rows = self.rows(numbers, ts, factor)
        getattr(self.open(), operation)(rows, options=options)
        if operation == "insert_overwrite":
            parts = set(rows.column("part").to_pylist())
            self.model = {key: value for key, value in self.model.items() if key[1] not in parts}
        for row in rows.to_pylist():
            key = str(row["k"]), row["part"]
            if operation == "delete":
                self.model.pop(key, None)
            elif self.model.get(key, (-1, 0))[0] <= row["ts"]:
                self.model[key] = row["ts"], row["v"]

    def check(self, query_type: str = "snapshot") -> None:
        found = self.open().scan(query_type=query_type).to_arrow()
        assert found.schema.names == self.schema.names
        rows = sorted(((str(row["k"]), row["part"]), (row["ts"], row["v"])) for row in found.to_pylist())
        assert rows == sorted(self.model.items())
        assert orphans(self.base) == []


@pytest.mark.parametrize(("kind", "version", "merged"), CASES)
def test_every_operation_with_every_type_of_key(kind: str, version: int, merged: bool, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", kind, version, merged=merged)
    lake.put("insert", [0, 1, 2, 3], 1, 1)
    lake.put("upsert", [0, 3], 2, 10)
    lake.put("upsert", [2], 0, 99)  # late
    lake.put("delete", [1], 3, 1)
    lake.check()
    lake.open().delete("v = 2", options=LOGS)
    lake.model = {key: value for key, value in lake.model.items() if value[1] != 2}
    lake.check()
    lake.put("upsert", [0, 1], 4, 7, {**LOGS, **BY_KEY})
    lake.open().delete([lake.keys[1]], options={**LOGS, **BY_KEY})
    lake.model.pop((str(lake.keys[1]), "p1"))
    lake.check()
    if merged:
        assert lake.open().compact(options=QUICK).instant is not None
        lake.check("read_optimized")
    lake.put("upsert", [0, 1, 2], 5, 9)
    lake.put("insert_overwrite", [0], 6, 1)
    lake.put("bulk_insert", [2], 6, 1)
    lake.open().clean(retain_commits=1)
    lake.check()


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize(
    "create", [{"partition_by": ()}, {"properties": {"hoodie.datasource.write.hive_style_partitioning": "true"}}]
)
def test_two_key_fields_and_styles_of_paths(create: dict[str, Any], merged: bool, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", "bytes", 9, merged=merged, two=True, **create)
    lake.put("insert", [0, 1, 2, 3], 1, 1, {**LOGS, **BY_KEY})
    lake.put("upsert", [0, 2, 3], 2, 10, {**LOGS, **BY_KEY})
    lake.put("delete", [2], 3, 1, {**LOGS, **BY_KEY})
    lake.check()
    lake.open().delete("v = 30", options={**LOGS, **BY_KEY})
    lake.model.pop((str(lake.keys[3]), "p1"))
    lake.check()
    lake.open().delete(["k:6162,x:x"], options={**LOGS, **BY_KEY})
    lake.model.pop((str(b"ab"), "p0"))
    lake.check()


def test_files_have_empty_meta_columns_as_javas_have(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", "text", 9, merged=True)
    lake.put("insert", [0, 1], 1, 1)
    lake.put("upsert", [0, 1], 2, 1)
    logs = [each for each in lake.base.rglob(".*.log.*") if "/.hoodie/" not in each.as_posix()]
    blocks = [block for path in logs for block in iterate_blocks(path.read_bytes()) if isinstance(block, LogBlock)]
    assert len(blocks) == 2
    for block in blocks:
        names = [field["name"] for field in json.loads(block.schema_text or "")["fields"]]
        assert names == [*META_FIELDS, *lake.schema.names]
    lake.open().compact(options=QUICK)
    for path in lake.base.glob("p*/*.parquet"):
        file = pq.ParquetFile(path)
        assert file.schema_arrow.names == [*META_FIELDS, *lake.schema.names]
        assert all(file.read().column(name).null_count == file.metadata.num_rows for name in META_FIELDS)
        assert set(file.metadata.metadata) == {b"parquet.avro.schema", b"org.apache.spark.version"}
    timeline = lake.open()._snapshot.timeline
    schemas = [timeline.read_metadata(each).schema or "" for each in timeline.list_completed_writes()]
    assert len(schemas) == 3
    assert all("_hoodie" not in each for each in schemas)


@pytest.mark.parametrize("name", [name for name in corpus_names() if name.startswith("nometa_")])
def test_tables_that_java_wrote(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    rows = {row["id"]: row for row in HoodieTable.open(base).scan().to_arrow().to_pylist()}
    one, two = sorted(rows)[:2]
    changed = [{**rows[one], "name": "ours", "ts": 1000}, {**rows[two], "id": "new", "ts": 1}]
    result = HoodieTable.open(base).upsert(changed, options=QUICK)
    assert (result.rows_inserted, result.rows_updated) == (1, 1)
    HoodieTable.open(base).delete([two], options=QUICK)
    rows |= {each["id"]: each for each in changed}
    del rows[two]
    table = HoodieTable.open(base)
    if table.config.is_merge_on_read:
        table.compact(options=QUICK)
    found = {row["id"]: row for row in HoodieTable.open(base).scan(query_type="read_optimized").to_arrow().to_pylist()}
    assert found == rows


def test_deletes_as_java_spells_them_meet_no_row_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java's readers show such rows as well: its delete blocks have dates as texts, its rows have days."""
    encode = append.encode_delete_content
    spelt = pa.array(["2020-01-02"])
    lake = Lake(tmp_path / "t", "date", 6, merged=True)
    lake.put("insert", [0, 1], 1, 1)
    monkeypatch.setattr(append, "encode_delete_content", lambda _, paths, ordering: encode(spelt, paths, ordering))
    assert lake.open().delete([lake.keys[0]], options=LOGS).rows_deleted == 1
    lake.check()
    lake.open().compact(options=QUICK)
    lake.check("read_optimized")


def test_records_move_between_partitions(tmp_path: Path) -> None:
    moving = {**LOGS, "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    lake = Lake(tmp_path / "t", "date", 9, merged=True)
    lake.put("insert", [0, 1, 2], 1, 1)
    rows = [{"k": lake.keys[each], "x": "x", "part": "p9", "ts": each, "v": 5} for each in (0, 1, 2)]
    lake.open().upsert(pa.Table.from_pylist(rows, lake.schema), options=moving)  # the first one is late and loses
    for each in (1, 2):
        lake.model.pop((str(lake.keys[each]), f"p{each % 2}"))
        lake.model[str(lake.keys[each]), "p9"] = each, 5
    lake.check()


@pytest.mark.parametrize("merged", [True, False])
def test_buckets(merged: bool, tmp_path: Path) -> None:
    buckets = {**LOGS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    lake = Lake(tmp_path / "t", "text", 9, merged=merged)
    lake.put("insert", [0, 1, 2, 3], 1, 1, buckets)
    lake.put("upsert", [0, 1, 2], 2, 2, buckets)
    lake.put("delete", [1], 3, 1)
    lake.check()
    dates = Lake(tmp_path / "d", "date", 9, merged=merged)
    with pytest.raises(UnsupportedFeatureError, match="record key has a date"):
        dates.put("insert", [0], 1, 1, buckets)


class AddUp(RecordMerger):
    strategy_id = "0a2f1f54-0001-4c0e-9d4c-000000000001"

    def merge(self, older: Any, newer: Any, context: Any, props: Mapping[str, str]) -> Any:
        assert not set(META_FIELDS) & set(context.schema.names)
        total = context.get_value(older, "v") + context.get_value(newer, "v")
        return context.replace(newer, v=total)


@pytest.mark.parametrize("merged", [True, False])
def test_a_merger_sees_the_same_columns_everywhere(merged: bool, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", "float", 9, merged=merged, merge_strategy_id=AddUp.strategy_id, merge_mode="CUSTOM")
    rows = pa.concat_tables([lake.rows([0, 1, 3], 1, 1), lake.rows([3], 1, 100)])
    lake.open().upsert(rows, options=LOGS, merger=AddUp)
    lake.open().upsert(lake.rows([1, 3], 1, 10), options=LOGS, merger=AddUp)
    if merged:
        lake.open().compact(options=QUICK, merger=AddUp)
    found = lake.open().scan(merger=AddUp).to_arrow()
    assert dict(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True)) == {
        1.5: 0,
        -0.0: 11,
        float("inf"): 333,
    }


def test_change_data(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", "text", 9, merged=False, properties={"hoodie.table.cdc.enabled": "true"})
    lake.put("insert", [0, 1], 1, 1)
    lake.put("upsert", [1], 2, 5)
    lake.put("delete", [0], 3, 1)
    changes = lake.open().changes(as_structs=True).to_arrow().to_pylist()
    told = [(each["op"], (each["before"] or {}).get("v"), (each["after"] or {}).get("v")) for each in changes]
    assert sorted(told, key=str) == [("d", 0, None), ("i", None, 0), ("i", None, 1), ("u", 1, 5)]
    with pytest.raises(UnsupportedFeatureError, match="meta fields"):
        lake.open().incremental()


def test_the_history_of_a_key(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", "int", 9, merged=True)
    lake.put("insert", [0, 1], 1, 1)
    lake.put("upsert", [1], 2, 5)
    lake.put("delete", [1], 3, 1)
    from hoodie_py.table.key_history import trace_key_history

    events = trace_key_history(lake.open()._snapshot, "-2").events
    assert [each.change for each in events] == ["inserted", "updated", "deleted"]


def test_what_is_refused(tmp_path: Path) -> None:
    wanted: dict[str, Any]
    for generator, wanted in (("TIMESTAMP", {}), ("CUSTOM", {"partition_by": ["part:SIMPLE"]})):
        with pytest.raises(UnsupportedFeatureError, match="without meta fields with the key generator"):
            Lake(tmp_path / generator, "text", 9, merged=True, key_generator=generator, **wanted)
    lake = Lake(tmp_path / "t", "text", 9, merged=True)
    with pytest.raises(InvalidQueryError, match="null or empty"):
        lake.open().insert([{"k": None, "x": "x", "part": "p", "ts": 1, "v": 1}], options=LOGS)
