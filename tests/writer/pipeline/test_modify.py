"""Updates and merges on every kind of table: the rows that a plain model of SQL gives, in files as Java's."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py import Delete, HoodieTable, Insert, RecordMerger, Update
from hoodie_py.errors import ConflictError, HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.log.framing import HeaderKey, LogBlock, iterate_blocks
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema([
    ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("price", pa.float64()),
    ("qty", pa.int32()), ("tags", pa.list_(pa.string())),
])  # fmt: skip
Row = dict[str, Any]
KINDS = [
    (version, table_type, parts)
    for version in (9, 8, 6)
    for table_type in ("MERGE_ON_READ", "COPY_ON_WRITE")
    for parts in (("part",), ())
]
MOR = "MERGE_ON_READ"
PARTIAL = {**QUICK, "hoodie.spark.sql.merge.into.partial.updates": "true"}


def row(number: int, ts: int = 1, **more: Any) -> Row:
    made: Row = {"id": f"k{number}", "part": f"p{number % 2}", "ts": ts, "name": f"n{number}", "price": number * 1.5}
    return {**made, "qty": number, "tags": [str(number)], **more}


def make(
    base: Path, version: int = 9, table_type: str = MOR, parts: tuple[str, ...] = ("part",), **more: Any
) -> HoodieTable:
    arguments: dict[str, Any] = {"record_key": "id", "ordering": "ts", **more}
    table = HoodieTable.create(
        base, SCHEMA, partition_by=parts, table_type=table_type, table_version=version, **arguments
    )
    table.insert([row(number) for number in range(10)], options=QUICK)
    return table


def read(table: HoodieTable) -> dict[str, Row]:
    rows = table.scan(SCHEMA.names).to_arrow().to_pylist()
    found = {each["id"]: each for each in rows}
    assert len(found) == len(rows)
    return found


def partial_columns(table: HoodieTable) -> list[list[str]]:
    """The data columns of each partial log block of the newest commit."""
    found = []
    newest = table.timeline.select_writes().instants[-1].request_time
    for each in table.file_slices():
        for log in each.log_files:
            for block in iterate_blocks(table.files.read(log.path)):
                if isinstance(block, LogBlock) and block.is_partial and block.headers[HeaderKey.INSTANT_TIME] == newest:
                    names = pa.schema(block_schema(block)).names
                    found.append([name for name in names if not name.startswith("_hoodie")])
    return found


def block_schema(block: LogBlock) -> pa.Schema:
    from hoodie_py.formats.avro.data_blocks import AvroSchema

    return AvroSchema.parse(block.schema_text or "").arrow


@pytest.mark.parametrize(("version", "table_type", "parts"), KINDS)
def test_an_update_and_a_merge_of_every_clause(
    version: int, table_type: str, parts: tuple[str, ...], tmp_path: Path
) -> None:
    table = make(tmp_path, version, table_type, parts)
    model = read(table)
    table.update({"price": "price * 2 + qty", "name": "'up ' || name"}, where="qty >= 5 or id = 'k0'", options=PARTIAL)
    for each in model.values():
        if each["qty"] >= 5 or each["id"] == "k0":
            each |= {"price": each["price"] * 2 + each["qty"], "name": f"up {each['name']}"}
    assert read(table) == model
    blocks = partial_columns(table)
    assert blocks == ([["ts", "name", "price"]] * len(blocks) if table_type == MOR and version >= 8 else [])
    assert bool(blocks) == (table_type == MOR and version >= 8)
    source = [row(1, 5, price=None), row(2, 5, qty=77), row(3, 5, name="gone"), row(20, 5), row(21, 5, qty=-1)]
    result = table.merge(
        source,
        on="id",
        when_matched=[
            Delete("source.name = 'gone'"),
            Update({"price": "source.price", "qty": "target.qty + source.qty"}),
        ],
        when_not_matched=Insert(where="qty >= 0"),
        by_source=[Delete("qty = 9"), Update({"qty": 0}, where="qty = 8")],
        options=PARTIAL,
    )
    model["k1"] |= {"price": None, "qty": 2}
    model["k2"] |= {"price": 3.0, "qty": 79}
    model["k8"]["qty"] = 0
    del model["k3"], model["k9"]
    model["k20"] = row(20, 5)
    assert read(table) == model
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 3, 2)
    if table_type == MOR:
        table.compact(options=QUICK)
        assert read(table) == model


@pytest.mark.parametrize("seed", range(6))
def test_random_merges_give_what_a_model_gives(seed: int, tmp_path: Path) -> None:
    lot = random.Random(seed)
    version, table_type, parts = KINDS[(seed * 5 + 1) % len(KINDS)]
    options = {**QUICK, "hoodie.memory.merge.max.size": "4096"} if seed % 3 == 0 else QUICK
    table = make(tmp_path, version, table_type, parts)
    model = read(table)
    for step in range(2, 5):
        source = [row(number, step, qty=lot.choice([None, 1, 50])) for number in lot.sample(range(14), 6)]
        least, inserts, capitals, orders = lot.randrange(10), *(lot.random() < 0.6 for _ in range(3))
        sets = {"qty": "coalesce(source.qty, target.qty + 1)", **({"ts": "source.ts"} if orders else {})}
        table.merge(
            source,
            on=lot.choice(["id", ["id", "part"], "source.id = target.id"]),
            when_matched=[Delete(f"source.qty = 1 and target.qty < {least}"), Update(sets)],
            when_not_matched=Insert(where="source.qty is not null") if inserts else None,
            by_source=Update({"name": "upper(name)"}, where=f"qty > {least}") if capitals else None,
            options=options,
        )
        by_key, after = {each["id"]: each for each in source}, {}
        for key, old in model.items():
            new, had = by_key.get(key), old["qty"]
            if new is None:
                after[key] = {**old, "name": old["name"].upper()} if capitals and (had or 0) > least else old
            elif new["qty"] != 1 or had is None or had >= least:
                value = new["qty"] if new["qty"] is not None else None if had is None else had + 1
                after[key] = {**old, "qty": value, **({"ts": step} if orders else {})}
        if inserts:
            after |= {key: new for key, new in by_key.items() if key not in model and new["qty"] is not None}
        model = after
        assert read(table) == model


def test_a_row_keeps_its_ordering_value_unless_it_is_set(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.update({"price": 5}, where="id = 'k1'", options=QUICK)
    table.update({"ts": 0, "price": 6}, where="id = 'k2'", options=QUICK)  # late: event time decides
    table.update({"ts": "ts + 1", "price": 7}, where=pc.field("id") == "k3", options=QUICK)
    found = read(table)
    assert [(found[key]["ts"], found[key]["price"]) for key in ("k1", "k2", "k3")] == [(1, 5.0), (1, 3.0), (2, 7.0)]


def test_whole_rows_where_partial_ones_may_not_be(tmp_path: Path) -> None:
    """By the option, by event time, with a global index, all columns, new rows in buckets, or virtual keys."""
    off = {**QUICK, "hoodie.spark.sql.merge.into.partial.updates": "false"}
    table = make(tmp_path / "a")
    table.update({"price": 1}, options=off)
    assert partial_columns(table) == []
    table.update({"price": 1.5}, options=QUICK)
    assert partial_columns(table) == []
    table.update({"price": 2}, options={**PARTIAL, "hoodie.index.type": "GLOBAL_SIMPLE"})
    assert partial_columns(table) == []
    table.merge([row(1, 3)], on="id", when_matched="update", options=PARTIAL)
    assert partial_columns(table) == []
    virtual = make(tmp_path / "b", properties={"hoodie.populate.meta.fields": "false"})
    virtual.update({"price": 3}, options=PARTIAL)
    assert partial_columns(virtual) == []
    assert {each["price"] for each in read(virtual).values()} == {3.0}
    buckets = {**PARTIAL, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    third = HoodieTable.create(tmp_path / "c", SCHEMA, record_key="id", ordering="ts")
    third.upsert([row(number) for number in range(6)], options=buckets)
    third.merge(
        [row(5, 2), row(50, 2)], on="id", when_matched=Update({"price": 9}), when_not_matched="insert", options=buckets
    )
    assert partial_columns(third) == []
    third.update({"qty": 4}, where="id = 'k5'", options=buckets)
    assert partial_columns(third) == [["ts", "qty"]]
    assert read(third)["k5"] == {**row(5), "price": 9.0, "qty": 4}
    assert read(third)["k50"] == row(50, 2)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("late_first", [True, False])
def test_versions_that_come_late_do_not_mix_with_an_update(version: int, late_first: bool, tmp_path: Path) -> None:
    """In the log they meet the update before the base row does."""
    table = make(tmp_path, version, parts=())
    table.upsert([row(1, 5)], options=QUICK)
    table.compact(options=QUICK)
    if late_first:
        table.upsert([row(1, 3, name="late", price=0.0)], options=QUICK)
    table.update({"qty": 7}, where="id = 'k1'", options=QUICK)
    if not late_first:
        table.upsert([row(1, 3, name="late", price=0.0)], options=QUICK)
    assert read(table)["k1"] == row(1, 5, qty=7)


@pytest.mark.parametrize("version", [8, 9])
def test_by_commit_time_updates_are_partial(version: int, tmp_path: Path) -> None:
    table = make(tmp_path, version, parts=(), merge_mode="COMMIT_TIME_ORDERING")
    table.upsert([row(1, 5)], options=QUICK)
    table.upsert([row(1, 3, name="later")], options=QUICK)
    table.update({"qty": 7}, where="id = 'k1'", options=QUICK)
    assert partial_columns(table)
    table.upsert([row(2, 0)], options=QUICK)
    assert read(table)["k1"] == row(1, 3, name="later", qty=7)


def test_a_dead_key_that_comes_back_beside_an_update(tmp_path: Path) -> None:
    """Its new row goes into the log of its old file group, so all rows of the commit are whole."""
    table = make(tmp_path, parts=())
    table.delete(["k4"], options=QUICK)
    table.merge(
        [row(4, 9), row(5, 9)], on="id", when_matched=Update({"qty": -5}), when_not_matched="insert", options=QUICK
    )
    found = read(table)
    assert found["k4"] == row(4, 9)
    assert found["k5"] == {**row(5), "qty": -5}
    assert partial_columns(table) == []


@pytest.mark.parametrize("table_type", [MOR, "COPY_ON_WRITE"])
def test_a_partition_changes_with_a_global_index_alone(table_type: str, tmp_path: Path) -> None:
    table = make(tmp_path, table_type=table_type)
    with pytest.raises(InvalidQueryError, match="partitions of rows"):
        table.update({"part": "'p7'"}, where="id = 'k1'", options=QUICK)
    moving = {**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE"}
    table.update({"part": "'p7'", "price": 8}, where="id in ('k1', 'k2')", options=moving)
    found = read(table)
    assert found["k1"] == {**row(1), "part": "p7", "price": 8.0}
    assert [each.partition_path for each in table.file_slices()].count("p7") == 1
    staying = {**moving, "hoodie.simple.index.update.partition.path": "false"}
    with pytest.raises(InvalidQueryError, match="no global index"):
        table.update({"part": "'p8'"}, where="id = 'k3'", options=staying)


def test_partition_columns_are_those_that_a_query_shows(tmp_path: Path) -> None:
    """An upsert that does not move a row stores another value than the path's, which is what readers see."""
    table = make(tmp_path)
    options = {**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    table.upsert([row(3, 2, part="p8")], options=options)
    assert read(table)["k3"]["part"] == "p1"
    assert table.update({"qty": 99}, where="part = 'p8'", options=QUICK).instant is None
    table.update({"qty": 99}, where="part = 'p1' and id = 'k3'", options=QUICK)
    assert read(table)["k3"]["qty"] == 99


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"when_matched": Update({"id": "'other'"})}, "record keys of rows would change"),
    ({"when_matched": Update({"nope": 1})}, "no column of the table"),
    ({"when_matched": Update({"_hoodie_record_key": "'x'"})}, "no column of the table"),
    ({"when_matched": Update({"qty": "'many'"})}, "cannot be stored"),
    ({"when_matched": Update({"price": "qty"})}, "in the target and in the source"),
    ({"when_matched": Update({"qty": "source.qty / 0"})}, "by zero"),
    ({"when_matched": Insert()}, "does not take Insert"),
    ({"when_not_matched": "update"}, "does not take Update"),
    ({"when_not_matched": Insert({"id": "target.id"})}, "unknown column"),
    ({"by_source": Update({"qty": "source.qty"})}, "unknown column"),
    ({"by_source": "update"}, "says which columns"),
    ({"when_matched": [Update(), Delete("true")]}, "never count"),
    ({"when_matched": "remove"}, "takes clauses"),
    ({}, "without clauses"),
    ({"on": "target.qty > source.qty", "when_matched": Delete()}, "no equality"),
    ({"on": "nope", "when_matched": Delete()}, "unknown column"),
    ({"on": "target.part = source.part", "when_matched": Update({"qty": 1})}, "Several rows of the source"),
    ({"on": "target.name = source.name", "when_not_matched": Insert()}, "that the table has"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_is_refused_leaves_the_table_as_it_was(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = make(tmp_path)
    before = read(table)
    source = [row(1, 2, name="x"), row(3, 2, name="y")]
    with pytest.raises(HoodieError, match=message):
        table.merge(source, **{"on": "id", "options": QUICK, **arguments})
    assert read(table.refresh()) == before
    assert len(table.refresh().timeline.select_writes().instants) == 1


def test_several_rows_of_a_source_may_delete_a_row_but_not_insert_one(tmp_path: Path) -> None:
    table = make(tmp_path)
    twice = [row(1), row(1), row(2)]
    table.merge(twice, on="id", when_matched="delete", options=QUICK)
    assert {"k1", "k2"}.isdisjoint(read(table))
    with pytest.raises(InvalidQueryError, match="several rows of one record key"):
        table.merge(twice, on="id", when_not_matched="insert", options=QUICK)


def test_a_group_with_a_key_twice_is_not_changed(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.bulk_insert([row(50), row(50, name="again")], options=QUICK)
    with pytest.raises(UnsupportedFeatureError, match="several rows of one record key"):
        table.update({"qty": "qty + 1"}, where="id = 'k50'", options=QUICK)


def test_only_file_groups_that_can_match_are_read(tmp_path: Path) -> None:
    """A damaged file of another partition does no harm, where the condition names the partition's column."""
    table = make(tmp_path)
    for each in table.file_slices():
        if each.partition_path == "p1" and each.base_file is not None:
            (tmp_path / each.base_file.path).write_bytes(b"damaged")
    table.merge([row(2, 2, qty=5)], on=["id", "part"], when_matched="update", options=QUICK)
    table.update({"qty": 6}, where="part = 'p0'", options=QUICK)
    assert set(table.scan(["qty"], filter="part = 'p0'").to_arrow()["qty"].to_pylist()) == {6}


def test_another_writer_between_look_and_commit_is_a_conflict(tmp_path: Path) -> None:
    table = make(tmp_path)
    late = HoodieTable.open(tmp_path)

    class Source:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            late.upsert([row(1, 2)], options=QUICK)
            return pa.Table.from_pylist([row(1, 3)], SCHEMA).__arrow_c_stream__(requested_schema)

    with pytest.raises(ConflictError):
        table.merge(Source(), on="id", when_matched=Update({"qty": "target.qty + 1"}), options=QUICK)


def test_nothing_to_change_commits_nothing(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert table.update({"qty": 1}, where="id = 'nobody'", options=QUICK).instant is None
    assert table.merge([], on="id", when_matched="update", options=QUICK).instant is None
    empty = HoodieTable.create(tmp_path / "empty", SCHEMA, record_key="id")
    assert empty.update({"qty": 1}, options=QUICK).instant is None
    empty.merge([row(1)], on="id", when_matched="update", when_not_matched="insert", options=QUICK)
    assert read(empty) == {"k1": row(1)}


def test_indexes_follow_partial_updates(tmp_path: Path) -> None:
    table = make(tmp_path)
    for name, column in (("record_index", None), ("column_stats", None), ("secondary_index_qty", "qty")):
        table.index.build(name, column, options=QUICK)
    table.update({"qty": "qty + 100"}, where="qty >= 4", options=PARTIAL)
    assert partial_columns(table)
    table.merge(
        [row(1, 5), row(30, 5)], on="id", when_matched=Update({"qty": 555}), when_not_matched="insert", options=QUICK
    )
    assert table.scan(["id"], filter="qty = 555").to_arrow()["id"].to_pylist() == ["k1"]
    assert table.scan(["id"], filter="qty > 108 and qty < 200").to_arrow()["id"].to_pylist() == ["k9"]
    report = table.verify()
    assert report.is_right, str(report)


class LongestName(RecordMerger):
    """A delete wins, else the version with the longer name."""

    strategy_id = "00000000-0000-0000-0000-00000000cafe"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.is_delete:
            return newer
        longer = len(context.get_value(newer, "name")) >= len(context.get_value(older, "name"))
        return newer if longer else older


@pytest.mark.parametrize("table_type", [MOR, "COPY_ON_WRITE"])
def test_a_custom_merger_decides(table_type: str, tmp_path: Path) -> None:
    table = HoodieTable.create(
        tmp_path, SCHEMA, record_key="id", table_type=table_type, merger=LongestName, merge_mode="CUSTOM"
    )
    table.insert([row(1), row(2, name="a long name")], options=QUICK, merger=LongestName)
    table.update({"name": "'middle'", "qty": 50}, options=QUICK, merger=LongestName)
    rows = table.scan(["id", "name", "qty"], merger=LongestName).to_arrow().sort_by("id").to_pylist()
    assert [(each["name"], each["qty"]) for each in rows] == [("middle", 50), ("a long name", 2)]
    table.merge([row(2)], on="id", when_matched="delete", options=QUICK, merger=LongestName)
    assert table.scan(["id"], merger=LongestName).to_arrow()["id"].to_pylist() == ["k1"]
