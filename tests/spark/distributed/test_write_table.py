"""Distributed writes without Spark give the same tables as writes in one process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import CorruptFileError, HoodieError, HoodieTable, InvalidQueryError
from hoodie_py.spark.distributed.payloads import _hash_murmur3, choose_labels
from hoodie_py.writer.pipeline import write as write_module
from hoodie_py.writer.pipeline.engine import Engine
from tests.spark.troubled_writes import FailsLast, LosesRows, RunsTwice
from tests.spark.write_engine import HandEngine, write_by_hand
from tests.writer.change_tables import list_change_files, read_records
from tests.writer.compaction_tables import QUICK, leftovers, orphans
from tests.writer.indexes.indexed_rows import make_secondary, read_index, read_places, read_secondary
from tests.writer.pipeline.engines import write_by
from tests.writer.pipeline.test_engine import EngineTests, rows, seen, steps
from tests.writer.written_tables import SCHEMA, Kind


class TestHandEngine(EngineTests):
    """Spark's steps, one after the other in this process."""

    def engine(self) -> Engine:
        return HandEngine()

    def twice(self) -> Engine:
        return HandEngine(step=RunsTwice)

    def failing(self) -> Engine:
        return HandEngine(step=FailsLast)

    def data(self, table: pa.Table) -> Any:
        return [table.slice(0, 17), table.slice(17)]


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False)], ids=str)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete", "insert_overwrite"])
def test_an_index_that_is_built_before_a_write_begins_has_its_rows(
    tmp_path: Path, operation: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable.open(kind.create(tmp_path))
    table.upsert(rows(range(12), 1), QUICK)
    serve = write_module.run_metadata_services

    def build_then_serve(*given: Any) -> None:
        monkeypatch.setattr(write_module, "run_metadata_services", serve)
        HoodieTable.open(tmp_path).index.build("record_index", options=QUICK)
        serve(*given)

    monkeypatch.setattr(write_module, "run_metadata_services", build_then_serve)
    data = rows(range(20, 30), 2) if "insert" in operation else rows(range(8, 20), 2, "new")
    write_by_hand(tmp_path, [data], operation)
    report = HoodieTable.open(tmp_path).verify()
    assert report.is_right, str(report)


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False)], ids=str)
def test_rows_of_other_schemas_make_the_table_grow_as_in_one_process(tmp_path: Path, kind: Kind) -> None:
    for name in ("ours", "want"):
        HoodieTable.open(kind.create(tmp_path / name)).upsert(rows(range(12), 1))
    wider = rows(range(4, 16), 2, "new").append_column("n", pa.array(range(12), pa.int32()))
    other = rows(range(10, 20), 3, "more").append_column("n", pa.array(range(10), pa.int64()))
    other = other.append_column("st", pa.array([{"a": each} for each in range(10)]))
    fewer = rows(range(18, 24), 4, "few").append_column("n", pa.array([1.5] * 6)).drop_columns(["name"])
    given = {"hoodie.write.set.null.for.missing.columns": "true", "hoodie.write.schema.changes": "LOSSY"}
    for operation, data in (
        ("upsert", wider),
        ("bulk_insert", other.select(other.column_names[::-1])),
        ("upsert", fewer),
        ("insert_overwrite", wider.slice(3)),
    ):
        getattr(HoodieTable.open(tmp_path / "want"), operation)(data, options=given)
        options = {name.replace(".", "__"): value for name, value in given.items()}
        write_by_hand(tmp_path / "ours", [data.slice(0, 5), data.slice(5)], operation, **options)
        ours, want = (HoodieTable.open(tmp_path / name).scan().to_arrow() for name in ("ours", "want"))
        assert ours.schema == want.schema
        names = ours.column_names[5:]
        assert sorted(map(repr, ours.select(names).to_pylist())) == sorted(map(repr, want.select(names).to_pylist()))


@pytest.mark.parametrize("kind", [Kind(9, False, captures=True), Kind(6, False, False, captures=True)], ids=str)
def test_change_data_is_what_one_process_writes(tmp_path: Path, kind: Kind) -> None:
    places = {name: kind.create(tmp_path / name) for name in ("ours", "want")}
    known = {name: set[Path]() for name in places}
    counts = []
    for operation, data in steps(3):
        getattr(HoodieTable.open(places["want"]), operation)(data)
        write_by_hand(places["ours"], [data.slice(0, 17), data.slice(17)], operation)
        found: dict[str, list[str]] = {}
        for name, base in places.items():
            fresh = [path for path in list_change_files(base) if path not in known[name]]
            known[name].update(fresh)
            changes = [(each["op"], each["before"], each["after"]) for path in fresh for each in read_records(path)]
            found[name] = sorted(map(repr, changes))
        assert found["ours"] == found["want"], operation
        counts.append(len(found["ours"]))
    assert sum(map(bool, counts)) >= 5
    assert orphans(places["ours"]) == []


def test_moves_between_partitions(tmp_path: Path) -> None:
    for name in ("ours", "want"):
        Kind(9, True).create(tmp_path / name)
    options = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    for data in (rows(range(30), 5), rows(range(10, 20), 6, "moved", part=0), rows(range(5, 15), 4, "late", part=1)):
        HoodieTable.open(tmp_path / "want").upsert(data, options=options)
        write_by_hand(tmp_path / "ours", [data], hoodie__index__type="GLOBAL_SIMPLE")
        assert seen(tmp_path / "ours") == seen(tmp_path / "want")


def test_deletes_that_do_not_say_where(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    write_by_hand(tmp_path, [rows(range(30), 5)])
    result = write_by_hand(tmp_path, [pa.table({"id": ["k003", "k004", "k999"]})], "delete")
    assert result.rows_deleted == 2
    assert len(seen(tmp_path)) == 28


def test_the_table_s_types_survive_the_shuffle(tmp_path: Path) -> None:
    import datetime as dt
    import decimal

    data = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "d": pa.array([dt.date(2026, 1, 1), None]),
            "t": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")),
            "n": pa.array([decimal.Decimal("1.25"), None], pa.decimal128(10, 2)),
            "s": pa.array([{"a": [1, None], "m": [("k", 2.5)]}, None], pa.struct(
                [("a", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.float64()))])),
            "b": pa.array([b"\x00\xff", None]),
        }
    )  # fmt: skip
    HoodieTable.create(tmp_path, data.schema, record_key="id")
    write_by_hand(tmp_path, [data.slice(0, 1), data.slice(1)])
    found = HoodieTable.open(tmp_path).scan(data.schema.names).to_arrow().sort_by("id")
    assert found.to_pylist() == data.to_pylist()


def test_new_records_make_as_many_files_as_they_fill(tmp_path: Path) -> None:
    Kind(9, False, partitioned=False).create(tmp_path)
    result = write_by_hand(tmp_path, [rows(range(2000), 1)], shards=16, hoodie__parquet__max__file__size="10000")
    assert 4 < result.file_groups <= 16
    again = write_by_hand(tmp_path, [rows(range(5000, 5010), 1)], hoodie__parquet__max__file__size="1000000")
    assert again.file_groups == 1  # into an existing small file
    assert len(HoodieTable.open(tmp_path).file_slices()) == result.file_groups
    assert len(seen(tmp_path)) == 2010


@pytest.mark.parametrize("operation", ["upsert", "insert"])
@pytest.mark.parametrize("kind", [Kind(9, True, False), Kind(6, True, False), Kind(9, False, False)], ids=str)
def test_new_records_fill_a_small_file(tmp_path: Path, kind: Kind, operation: str) -> None:
    kind.create(tmp_path)
    write_by_hand(tmp_path, [rows(range(20), 1)], shards=1)
    [before] = HoodieTable.open(tmp_path).file_slices()
    old = range(5) if operation == "upsert" else range(0)
    data = pa.concat_tables([rows(old, 2), rows(range(20, 30), 2)])
    limit = {"hoodie__parquet__small__file__limit": "104857600"}
    result = write_by_hand(tmp_path, [data.slice(0, 8), data.slice(8)], operation, **limit)
    assert (result.rows_inserted, result.rows_updated, result.rows_in_logs) == (10, len(old), 0)
    [after] = HoodieTable.open(tmp_path).file_slices()
    assert (after.file_id, after.log_files) == (before.file_id, ())
    assert len(seen(tmp_path)) == 30
    write_by_hand(tmp_path, [rows(range(30, 32), 3)], operation, hoodie__parquet__small__file__limit="0")
    assert len(HoodieTable.open(tmp_path).file_slices()) > 1
    assert len(seen(tmp_path)) == 32


def test_a_file_is_filled_where_that_pays(tmp_path: Path) -> None:
    Kind(9, False, partitioned=False).create(tmp_path)
    write_by_hand(tmp_path, [rows(range(120_000), 1)], "bulk_insert")
    table = HoodieTable.open(tmp_path)
    [large] = table.file_slices()
    assert large.base_file is not None
    assert large.base_file.size > 1 << 20
    write_by_hand(tmp_path, [rows(range(200_000, 200_002), 2)], "insert")
    assert len(table.refresh().file_slices()) == 2, "too few rows to write the file again"
    both = pa.concat_tables([rows(range(1), 3), rows(range(200_010, 200_012), 3)])
    done = write_by_hand(tmp_path, [both])
    assert (done.rows_inserted, done.rows_updated) == (2, 1)
    [changed] = [each for each in table.refresh().file_slices() if each.base_instant == done.instant]
    assert changed.file_id == large.file_id, "the update rewrites this file anyway"


def base_files(where: Path) -> list[Path]:
    return [each for each in where.rglob("*.parquet") if ".hoodie" not in each.parts]


def test_a_bulk_insert_writes_in_its_first_step(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    parts = [rows(range(100), 1), rows(range(100, 130), 1, part=2)]
    result = write_by_hand(tmp_path, parts, "bulk_insert")
    assert (result.rows_inserted, result.file_groups) == (130, 4)  # three partitions in one task, one in the other
    assert len(base_files(tmp_path)) == 4
    assert seen(tmp_path) == sorted(tuple(row.values()) for row in pa.concat_tables(parts).to_pylist())


@pytest.mark.parametrize("partitioned", [True, False])
def test_a_bulk_insert_s_files_are_cut_by_size(tmp_path: Path, partitioned: bool) -> None:
    Kind(9, False, partitioned).create(tmp_path)
    result = write_by_hand(tmp_path, [rows(range(900), 1)], "bulk_insert", hoodie__parquet__max__file__size="2000")
    assert 4 < result.file_groups < 30
    assert len(seen(tmp_path)) == 900


def test_a_bulk_insert_puts_task_s_rows_together_as_asked(tmp_path: Path) -> None:
    Kind(9, True, partitioned=False).create(tmp_path)
    parts = [rows(range(at, at + 10), 1) for at in range(0, 50, 10)]
    assert write_by_hand(tmp_path, parts, "bulk_insert").file_groups == 5
    one = write_by_hand(tmp_path, parts, "bulk_insert", hoodie__bulkinsert__shuffle__parallelism="1")
    assert one.file_groups == 1


def test_a_sorted_or_combined_bulk_insert_is_shuffled(tmp_path: Path) -> None:
    Kind(9, True, partitioned=False).create(tmp_path)
    twice = pa.concat_tables([rows(range(20), 1), rows(range(20), 2)])
    assert write_by_hand(tmp_path, [twice], "bulk_insert", hoodie__bulkinsert__sort__mode="GLOBAL_SORT").instant
    assert len(seen(tmp_path)) == 40
    combined = {"hoodie__combine__before__insert": "true"}
    assert write_by_hand(tmp_path, [twice], "bulk_insert", **combined).rows_inserted == 20
    assert len(seen(tmp_path)) == 60


def test_a_bulk_insert_that_fails_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    bad = rows(range(3), 2).set_column(0, "id", pa.array(["a", None, "c"]))
    with pytest.raises(InvalidQueryError, match="null or empty"):
        write_by_hand(tmp_path, [rows(range(10), 1), bad], "bulk_insert")
    assert write_by_hand(tmp_path, [SCHEMA.empty_table()], "bulk_insert").instant is None
    assert list(HoodieTable.open(tmp_path).timeline) == []
    assert (base_files(tmp_path), orphans(tmp_path), leftovers(tmp_path)) == ([], [], [])


@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_inserts_of_known_keys(tmp_path: Path, policy: str) -> None:
    Kind(9, True).create(tmp_path)
    write_by_hand(tmp_path, [rows(range(10), 1)])
    options = {"hoodie__datasource__insert__dup__policy": policy}
    if policy == "fail":
        with pytest.raises(InvalidQueryError, match="in the table already"):
            write_by_hand(tmp_path, [rows(range(5, 15), 2)], "insert", **options)
    else:
        write_by_hand(tmp_path, [rows(range(5, 15), 2)], "insert", **options)
    assert len(seen(tmp_path)) == (10 if policy == "fail" else 15)


def test_rows_that_do_not_fit_leave_the_table_as_it_was(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    write_by_hand(tmp_path, [rows(range(10), 1)])
    before = HoodieTable.open(tmp_path).timeline
    bad = rows(range(3), 2).set_column(0, "id", pa.array(["a", None, "c"]))
    with pytest.raises(InvalidQueryError, match="null or empty") as caught:
        write_by_hand(tmp_path, [bad])
    assert any("Traceback" in note for note in caught.value.__notes__)
    assert list(HoodieTable.open(tmp_path).timeline) == list(before)


def test_files_that_cannot_be_read_are_seen_in_time(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    write_by_hand(tmp_path, [rows(range(10), 1)])
    before = list(HoodieTable.open(tmp_path).timeline)
    [base, *_] = tmp_path.rglob("*.parquet")
    base.write_bytes(b"PAR1 not at all PAR1")
    with pytest.raises(CorruptFileError) as caught:
        write_by_hand(tmp_path, [rows(range(10), 2)])
    assert any("Traceback" in note for note in caught.value.__notes__)
    assert list(HoodieTable.open(tmp_path).timeline) == before


def test_rows_that_change_between_steps_are_seen(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    with pytest.raises(HoodieError, match="must not change"):
        write_by(HandEngine(step=LosesRows), tmp_path, [rows(range(10), 1)])
    assert list(HoodieTable.open(tmp_path).timeline) == []
    assert (orphans(tmp_path), leftovers(tmp_path)) == ([], [])


def test_labels_are_distinct_in_spark_s_hash() -> None:
    # hash(0), hash(1), hash(42) as Spark's SQL gives them
    assert _hash_murmur3(np.array([0, 1, 42], np.uint32)).astype(np.int32).tolist() == [933211791, -559580957, 29417773]
    for count in (1, 2, 7, 200):
        assert len(set(choose_labels(count))) == count


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("global_sql_mor_v9", {"hoodie__record__index__update__partition__path": "true"}),
        ("partitioned_mor_v9", {}),
    ],
)
def test_the_indexes_of_keys_follow(
    indexed: Callable[[str], Path], name: str, options: dict[str, str], tmp_path: Path
) -> None:
    base = tmp_path / "table"
    shutil.copytree(indexed(name), base)
    columns = ["id", "part", "ts", "name", "price", "day"]
    data = HoodieTable.open(base).scan(columns=columns).to_arrow()
    late = data.set_column(2, "ts", pc.add(data["ts"], 10**6)).set_column(1, "part", pa.repeat("p0", len(data)))
    new = late.slice(0, 3).set_column(0, "id", pa.array(["n$1", "n2", "n3"]))
    index = "RECORD_INDEX" if options else "RECORD_LEVEL_INDEX"
    write_by_hand(base, [late.slice(0, 9), new], hoodie__index__type=index, **options)
    assert read_index(base) == read_places(base)
    write_by_hand(base, [pa.table({"id": ["n2", data["id"][0].as_py()]})], "delete", hoodie__index__type=index)
    assert read_index(base) == read_places(base)
    if options:
        keys = HoodieTable.open(base).scan(columns=["id"]).to_arrow()["id"].to_pylist()
        assert len(set(keys)) == len(keys) == len(data) + 1
        assert read_secondary(base) == make_secondary(base, "name")
