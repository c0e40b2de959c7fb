"""Tables that show that they are of buckets: writes without options go where Java and Flink look for keys."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.hashing_metadata import CONSISTENT_FOLDER, RULES_FOLDER, HashingMetadata
from hoodie_py.writer.index.bucket import compute_buckets, compute_hashes, find_hash_ranges
from hoodie_py.writer.index.table_index import _has_bucket_ids, find_bucket_engine
from hoodie_py.writer.pipeline import assign
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.written_tables import Kind, Row

COUNT, TYPE, ENGINE = "hoodie.bucket.index.num.buckets", "hoodie.index.type", "hoodie.index.bucket.engine"
EXPRESSIONS = "hoodie.bucket.index.partition.expressions"
BUCKET = {TYPE: "BUCKET"}
KINDS = [Kind(version, mor) for version in (9, 6) for mor in (True, False)]
WRITES = ("upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table")


def _row(number: int, part: str = "p0", ts: int = 1, name: str = "a") -> Row:
    return {"id": hashlib.sha256(str(number).encode()).hexdigest()[:12], "part": part, "ts": ts, "name": name}


def _buckets(base: Path, kind: Kind, count: int, rows: int = 60) -> HoodieTable:
    table = HoodieTable.open(kind.create(base))
    given = [_row(number, f"p{number % 2}") for number in range(rows)]
    table.upsert(given, {**QUICK, **BUCKET, COUNT: str(count)})
    return table


def _check(table: HoodieTable, count: int) -> dict[tuple[str, str], str]:
    """Every key is there once, in its bucket; return names by key."""
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name", "name"]
    rows = table.scan(columns=columns).to_arrow()
    keys = rows.column(0)
    assert compute_buckets(keys, (), count).tolist() == [int(name[:8]) for name in rows.column(2).to_pylist()]
    groups = Counter((each.partition_path, each.file_id[:8]) for each in table.file_slices())
    assert max(groups.values(), default=1) == 1
    found = Counter(zip(rows.column(1).to_pylist(), keys.to_pylist(), strict=True))
    assert max(found.values(), default=1) == 1
    return dict(zip(found, rows.column(3).to_pylist(), strict=True))


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_plain_write_goes_into_the_buckets_that_are_there(tmp_path: Path, kind: Kind, operation: str) -> None:
    table = _buckets(tmp_path / "t", kind, 4)
    changed = [_row(number, f"p{number % 2}", 2, "b") for number in range(0, 80, 3)] + [_row(7, "new", 2, "b")]
    getattr(table, operation)(changed, QUICK)
    names = _check(table, 4)
    assert all(names[row["part"], row["id"]] == "b" for row in changed)
    left = 60 + 7 + 1 if operation in ("upsert", "insert", "bulk_insert") else len(changed)
    assert len(names) == left
    table.delete(changed, QUICK)
    assert len(_check(table, 4)) == left - len(changed)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 256, 1000])
def test_the_number_of_buckets_follows_from_the_keys(tmp_path: Path, count: int) -> None:
    table = _buckets(tmp_path / "t", Kind(9, merge_on_read=True), count, 40)
    table.upsert([_row(number, "p0", 2, "b") for number in range(90)], QUICK)
    _check(table, count)


@pytest.mark.parametrize("operation", [*WRITES, "delete"])
def test_options_that_contradict_the_table_are_refused(tmp_path: Path, operation: str) -> None:
    table = _buckets(tmp_path / "t", Kind(9, merge_on_read=True), 4)
    before = _check(table, 4)
    wrong: list[tuple[Mapping[str, str], str]] = [
        ({TYPE: "SIMPLE"}, "says 'SIMPLE'.*file groups of a bucket index"),
        ({TYPE: "GLOBAL_BLOOM"}, "says 'GLOBAL_BLOOM'"),
        ({COUNT: "2"}, f"{COUNT} says 2.*The keys say 4"),
        ({COUNT: "8"}, f"{COUNT} says 8.*The keys say 4"),
        ({**BUCKET, COUNT: "3"}, f"{COUNT} says 3"),
        ({**BUCKET, ENGINE: "CONSISTENT_HASHING"}, "buckets without ranges"),
    ]
    for options, words in wrong:
        with pytest.raises(InvalidQueryError, match=words):
            getattr(table, operation)([_row(1, "p1", 2, "b")], {**QUICK, **options})
    assert _check(HoodieTable.open(tmp_path / "t"), 4) == before


def test_where_keys_do_not_tell_the_option_is_asked_for(tmp_path: Path) -> None:
    table = _buckets(tmp_path / "t", Kind(9, merge_on_read=True), 8, 1)
    for operation in ("upsert", "insert", "bulk_insert", "insert_overwrite"):
        with pytest.raises(InvalidQueryError, match=f"do not tell how many.*Set {COUNT}"):
            getattr(table, operation)([_row(5)], QUICK)
    table.upsert([_row(5)], {**QUICK, COUNT: "8"})
    assert len(_check(table, 8)) == 2
    table.delete([_row(5)], QUICK)  # a delete finds its key in the files
    assert len(_check(table, 8)) == 1


def test_other_tables_are_not_made_tables_of_buckets(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    table.upsert([_row(1)], QUICK)
    with pytest.raises(InvalidQueryError, match="says 'BUCKET', but the table has file groups that are no buckets"):
        table.upsert([_row(2, "new")], {**QUICK, **BUCKET})


@pytest.mark.parametrize(
    ("file_ids", "expected"),
    [
        (["00000001-77a9-4198-a249-1642e9803be8"], True),
        (["00000255-77a9-4198-a249-1642e9803be8-0"], True),
        (["12345678-77a9-4198-a249-1642e9803be8-0"], None),
        (["12345678-77a9-4198-a249-1642e9803be8-0", "87654321-77a9-4198-a249-1642e9803be8-0"], None),
        (["56091362-0987-3e21-8785-94db08e7319e-0", "e10d71d0-7c9a-31a0-9536-2fd3d684cefc-0"], False),
        (["00000001-a", "00000002-a", "e10d71d0-7c9a-31a0-9536-2fd3d684cefc-0"], True),
    ],
)
def test_file_ids_tell_buckets_from_chance(file_ids: list[str], expected: bool | None) -> None:
    assert _has_bucket_ids(file_ids, 18) is expected


def _name_files(monkeypatch: pytest.MonkeyPatch, *starts: str) -> None:
    """Let the ids of the file groups that plain writes begin start so."""
    ids = (f"{start}-47cd-4b94-88d2-215247a3e13f-0" for start in starts)
    monkeypatch.setattr(assign, "make_file_id", lambda: next(ids))


@pytest.mark.parametrize("starts", [("e668a60e", "00000255"), ("00000255", "e668a60e")])
def test_a_random_id_that_looks_like_a_bucket_is_told_by_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starts: tuple[str, ...]
) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    _name_files(monkeypatch, *starts, "dddddddd")
    table.upsert([_row(1), _row(2, "p1")], QUICK)
    for time in range(9):  # the other id is in none of the commits that are read
        table.upsert([_row(2, "p1", time)], QUICK)
    assert find_bucket_engine(table._snapshot) is None
    table.upsert([_row(2, "p1", 10), _row(3, "new")], {**QUICK, TYPE: "SIMPLE"})
    assert len(table.to_arrow()) == 3


@pytest.mark.parametrize("options", [{}, {TYPE: "SIMPLE"}])
def test_a_lone_random_id_that_looks_like_a_bucket_is_told_by_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    _name_files(monkeypatch, "00000255", "e668a60e")
    table.upsert([_row(number) for number in range(20)], QUICK)
    table.upsert([_row(number, "p1") for number in range(20)], {**QUICK, **options})
    assert {each.file_id[:8] for each in table.file_slices()} == {"00000255", "e668a60e"}


def test_a_lone_bucket_is_one(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    given = [_row(number) for number in range(9000)]
    buckets = compute_buckets(pa.chunked_array([[each["id"] for each in given]]), (), 300)
    table.upsert(
        [each for each, bucket in zip(given, buckets, strict=True) if bucket == 255], {**QUICK, **BUCKET, COUNT: "300"}
    )
    with pytest.raises(InvalidQueryError, match=r"says 'SIMPLE'.*file groups of a bucket index"):
        table.upsert([_row(1)], {**QUICK, TYPE: "SIMPLE"})
    table.upsert(given[:50], {**QUICK, COUNT: "300"})
    _check(table, 300)


def test_a_lone_random_id_with_a_key_does_not_make_a_table_of_many_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of the key less the id is a prime number, so no other number of buckets would fit."""
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    key = pa.chunked_array([[_row(1)["id"]]])
    bucket = next(each for each in range(9999) if _is_prime(int(compute_hashes(key, ())[0]) - each))
    _name_files(monkeypatch, f"{bucket:08}")
    table.upsert([_row(1)], QUICK)
    with pytest.raises(InvalidQueryError, match="do not tell how many"):
        table.upsert([_row(2)], QUICK)


def _is_prime(number: int) -> bool:
    return all(number % each for each in range(2, math.isqrt(number) + 1))


def test_a_group_of_another_writer_among_buckets_is_an_error(tmp_path: Path) -> None:
    table = _buckets(tmp_path / "t", Kind(9, merge_on_read=True), 4)
    first = table.file_slices()[0].base_file
    assert first is not None
    path = tmp_path / "t" / first.path
    path.rename(path.with_name(path.name.replace(path.name[:8], "e10d71d0")))
    with pytest.raises(InvalidQueryError, match="none of the 4 buckets"):
        HoodieTable.open(tmp_path / "t").upsert([_row(number) for number in range(9)], QUICK)


def test_keys_of_several_fields_need_more_evidence_than_one_customer(tmp_path: Path) -> None:
    """All keys in one bucket may be one bucket, or several with one value of the field that is hashed."""
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("ts", pa.int64())])
    HoodieTable.create(tmp_path / "t", schema, record_key=["a", "b"], ordering="ts")
    table = HoodieTable.open(tmp_path / "t")
    rows = [{"a": "one", "b": f"order-{number}", "ts": 1} for number in range(50)]
    told = {COUNT: "4", "hoodie.bucket.index.hash.field": "a"}
    table.upsert(rows, {**QUICK, **BUCKET, **told})
    more = [{"a": "two", "b": f"order-{number}", "ts": 1} for number in range(50)]
    with pytest.raises(InvalidQueryError, match=r"num\.buckets|hash\.field"):
        table.upsert(more, QUICK)
    with pytest.raises(InvalidQueryError, match="do not tell how many"):
        table.upsert(more, {**QUICK, "hoodie.bucket.index.hash.field": "a"})
    table.upsert(more, {**QUICK, **told})
    assert len({each.file_id for each in table.file_slices()}) == 2


def test_a_lone_bucket_of_keys_of_several_fields_is_not_denied_by_the_wrong_field(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("ts", pa.int64())])
    table = HoodieTable.create(tmp_path / "t", schema, record_key=["a", "b"], ordering="ts")
    rows = [{"a": "one", "b": f"order-{number}", "ts": 1} for number in range(50)]
    table.upsert(rows, {**QUICK, **BUCKET, COUNT: "300", "hoodie.bucket.index.hash.field": "a"})
    [only] = table.refresh().file_slices()
    assert 0 < int(only.file_id[:8]) < 300
    with pytest.raises(InvalidQueryError, match="do not tell how many"):
        table.upsert(rows, {**QUICK, "hoodie.bucket.index.hash.field": "b"})


def test_keys_that_repeat_in_partitions_are_no_more_evidence(tmp_path: Path) -> None:
    """The hashes of k2 and k3 less their buckets are equal: a few such keys looked like proof of a greater number."""
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    told = {**QUICK, **BUCKET, COUNT: "2"}
    rows = [{**_row(0, part), "id": key} for part in ("p0", "p1") for key in ("k2", "k3")]
    for _ in range(2):
        table.upsert(rows, told)
    assert table.scan().count() == len(rows)


def test_keys_whose_hashes_are_alike_do_not_prove_more_buckets(tmp_path: Path) -> None:
    """The second field follows from the first, so that all hashes have the same last bits: 1 of 2 is 1 of 4, too."""
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("ts", pa.int64())])
    HoodieTable.create(tmp_path / "t", schema, record_key=["a", "b"], ordering="ts")
    table = HoodieTable.open(tmp_path / "t")
    rows = [{"a": f"id{number:03d}", "b": f"id2{number:03d}", "ts": 1} for number in range(60)]
    told = {**QUICK, **BUCKET, COUNT: "2"}
    for _ in range(2):
        table.upsert(rows, told)
    assert table.scan().count() == len(rows)
    with pytest.raises(InvalidQueryError, match="do not tell how many"):
        table.upsert(rows, QUICK)
    with pytest.raises(InvalidQueryError, match="does not have its keys in 3 buckets"):
        table.upsert(rows, {**told, COUNT: "3"})


def _ruled(tmp_path: Path) -> tuple[HoodieTable, Path, list[Row]]:
    """A table with 4, 2 and 7 buckets in its partitions, and the rules for that."""
    table = _buckets(tmp_path / "t", Kind(9, merge_on_read=True), 4)
    file = tmp_path / "t" / RULES_FOLDER / "00000000000000.hashing_config"
    file.parent.mkdir(parents=True)
    rules = {"expressions": "^new,2;p.,4", "defaultBucketNumber": 7, "rule": "regex", "version": 1, "instant": "0"}
    file.write_text(json.dumps(rules))
    rows = [_row(number, part) for part in ("p0", "new", "other") for number in range(80)]
    table.upsert(rows, {**QUICK, COUNT: "7"})
    return table, file, rows


def _numbers(table: HoodieTable) -> dict[str, int]:
    found = Counter((each.partition_path, each.file_id[:8]) for each in table.file_slices())
    assert max(found.values()) == 1
    return dict(Counter(part for part, _ in found if part != "p1"))


def test_rules_for_partitions_are_followed(tmp_path: Path) -> None:
    table, file, rows = _ruled(tmp_path)
    assert _numbers(table) == {"p0": 4, "new": 2, "other": 7}
    for options in ({COUNT: "4"}, {COUNT: "256"}, {EXPRESSIONS: "p,4"}):
        with pytest.raises(InvalidQueryError, match="but the table has"):
            table.upsert(rows, {**QUICK, **options})
    table.upsert(rows, {**QUICK, EXPRESSIONS: "^new,2; p.,4"})
    assert _numbers(table) == {"p0": 4, "new": 2, "other": 7}
    rules = json.loads(file.read_text())
    for expressions, words in (("^new,2;p.,3", "does not have its keys where"), (r"^(?=new),2", "pattern")):
        file.write_text(json.dumps({**rules, "expressions": expressions}))
        with pytest.raises((InvalidQueryError, UnsupportedFeatureError), match=words):
            HoodieTable.open(tmp_path / "t").upsert(rows, QUICK)
    file.unlink()
    with pytest.raises(InvalidTableError, match="rules for numbers of buckets are missing"):
        HoodieTable.open(tmp_path / "t").upsert(rows, QUICK)


def test_an_unfinished_savepoint_leaves_the_rules_in_force(tmp_path: Path) -> None:
    table, file, rows = _ruled(tmp_path)
    instant = table.timeline.select_writes().instants[-1].request_time
    file.rename(file.with_name(f"{instant}.hashing_config"))
    (tmp_path / "t/.hoodie/timeline" / f"{instant}.savepoint.inflight").touch()
    HoodieTable.open(tmp_path / "t").upsert(rows, QUICK)
    assert _numbers(HoodieTable.open(tmp_path / "t")) == {"p0": 4, "new": 2, "other": 7}


@pytest.mark.parametrize("partition", ["p0", "new", "other"])
def test_numbers_that_differ_without_stored_rules_are_seen_in_each_partition(tmp_path: Path, partition: str) -> None:
    """Java's options may say them, and then nothing in the table does."""
    table, file, rows = _ruled(tmp_path)
    for each in (file, file.parent, file.parent.parent, file.parent.parent.parent):
        each.rmdir() if each.is_dir() else each.unlink()
    newest = [row for row in rows if row["part"] == partition]
    given = {EXPRESSIONS: "^new,2;p.,4", COUNT: "7"}
    table.upsert(newest, {**QUICK, **given})  # the newest commit tells of this partition alone
    for other in {"p0", "new", "other"} - {partition}:
        with pytest.raises(InvalidQueryError, match="does not have its keys where"):
            table.upsert([{**row, "ts": 2} for row in rows if row["part"] == other], QUICK)
    table.upsert([{**row, "ts": 3, "name": "b"} for row in rows], {**QUICK, **given})
    assert _numbers(table) == {"p0": 4, "new": 2, "other": 7}
    with pytest.raises(InvalidQueryError, match="cannot be 'x'"):
        table.upsert(newest, {**QUICK, EXPRESSIONS: "x"})


def _flinks(tmp_path: Path, name: str) -> tuple[Path, list[Row]]:
    base = writable(name, tmp_path)
    rows = HoodieTable.open(base).scan(columns=["id", "name", "v", "ts", "dt"]).to_arrow().to_pylist()
    return base, rows


def test_flinks_buckets_take_a_plain_upsert(tmp_path: Path) -> None:
    base, rows = _flinks(tmp_path, "flink_mor_bucket")
    table = HoodieTable.open(base)
    changed = [{**row, "ts": 99, "name": "ours"} for row in rows]
    table.upsert([*changed, *({**row, "id": f"new-{row['id']}"} for row in changed)], QUICK)
    assert set(_check(table, 2).values()) == {"ours"}


def _check_ranges(table: HoodieTable, base: Path) -> list[Row]:
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name", "id", "dt", "name"]
    rows: list[Row] = table.scan(columns=columns).to_arrow().to_pylist()
    for row in rows:
        file = base / CONSISTENT_FOLDER / row["dt"] / "00000000000000.hashing_meta"
        ranges = HashingMetadata.from_bytes(file.read_bytes())
        [number] = find_hash_ranges(pa.chunked_array([[row["_hoodie_record_key"]]]), (), ranges.bounds).tolist()
        assert row["_hoodie_file_name"].startswith(ranges.file_ids[number])
    assert len({(row["dt"], row["id"]) for row in rows}) == len(rows)
    return rows


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_ranges_of_hashes_are_followed_and_begun(tmp_path: Path, operation: str) -> None:
    base, rows = _flinks(tmp_path, "flink_mor_bucket_consistent")
    table = HoodieTable.open(base)
    changed = [{**row, "ts": 99, "name": "ours"} for row in rows]
    new = [{**row, "id": f"new-{row['id']}", "dt": part} for row in changed for part in ("p1", "fresh")]
    getattr(table, operation)([*changed, *new], {**QUICK, COUNT: "3"})
    found = _check_ranges(table, base)
    assert {row["name"] for row in found} == {"ours"}
    assert len(found) == len(changed) + len(new)
    begun = base / CONSISTENT_FOLDER / "fresh" / "00000000000000.hashing_meta"
    assert HashingMetadata.from_bytes(begun.read_bytes()) == HashingMetadata.make_first("fresh", 3)
    table.delete(changed, QUICK)
    table.delete([row for row in new if row["dt"] == "fresh"], QUICK)
    assert len(_check_ranges(table, base)) == len(new) // 2


def test_what_consistent_hashing_does_not_take_is_refused(tmp_path: Path) -> None:
    base, rows = _flinks(tmp_path, "flink_mor_bucket_consistent")
    table = HoodieTable.open(base)
    for operation in ("insert_overwrite", "insert_overwrite_table"):
        with pytest.raises(UnsupportedFeatureError, match=f"{operation} on a table with consistent hashing"):
            getattr(table, operation)(rows, QUICK)
    for options in ({TYPE: "SIMPLE"}, {**BUCKET, ENGINE: "SIMPLE"}):
        with pytest.raises(InvalidQueryError, match="but the table has"):
            table.upsert(rows, {**QUICK, **options})
    folder = base / CONSISTENT_FOLDER / "p1"
    later = HashingMetadata.make_first("p1", 3).to_bytes()
    (folder / "20270101000000000.hashing_meta").write_bytes(later)
    with pytest.raises(UnsupportedFeatureError, match=r"may or may not be in force.*p1"):
        table.upsert(rows, QUICK)
    (folder / "20270101000000000.commit").write_bytes(b"")
    with pytest.raises(InvalidTableError, match="none of the ranges of hashes"):
        table.upsert(rows, QUICK)


def test_ranges_of_a_pending_clustering_are_not_in_force(tmp_path: Path) -> None:
    base, rows = _flinks(tmp_path, "flink_mor_bucket_consistent")
    instant = str(int(max(each.request_time for each in HoodieTable.open(base).timeline)) + 1)
    (base / CONSISTENT_FOLDER / "p1" / f"{instant}.hashing_meta").write_bytes(b"damaged")
    for state in ("requested", "inflight"):
        (base / ".hoodie" / f"{instant}.deltacommit.{state}").write_bytes(b"")
    options = {**QUICK, "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
               "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.NoopLockProvider"}  # fmt: skip
    table = HoodieTable.open(base)
    table.upsert([{**row, "ts": 99, "name": "ours"} for row in rows], options)
    assert {row["name"] for row in _check_ranges(table, base)} == {"ours"}


def test_a_group_that_was_replaced_takes_nothing(tmp_path: Path) -> None:
    base, rows = _flinks(tmp_path, "flink_mor_bucket_consistent")
    table = HoodieTable.open(base)
    table.delete("dt = 'p1'", QUICK)
    gone = [each.file_id for each in table.file_slices() if each.partition_path == "p1"]
    metadata: dict[str, Any] = {
        "partitionToWriteStats": {}, "compacted": False, "extraMetadata": {}, "operationType": "DELETE_PARTITION",
        "partitionToReplaceFileIds": {"p1": gone},
    }  # fmt: skip
    newest = max(each.request_time for each in table.timeline)
    instant = str(int(newest) + 1)
    for name, data in ((".requested", b""), (".inflight", b""), ("", json.dumps(metadata).encode())):
        (base / ".hoodie" / f"{instant}.replacecommit{name}").write_bytes(data)
    with pytest.raises(UnsupportedFeatureError, match="file group was replaced"):
        HoodieTable.open(base).upsert(rows, QUICK)
