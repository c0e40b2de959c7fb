"""Options of a write that say how records merge; expected is what Java Hudi 1.2.0 made of the same writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from tests.writer.compaction_tables import QUICK

MODEL = "org.apache.hudi.common.model."
PAYLOAD, STORED = "hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class"
MODE, STRATEGY = "hoodie.write.record.merge.mode", "hoodie.write.record.merge.strategy.id"
LATEST, DEFAULT, EVENT = "OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload"
PARTIAL, NON_DEFAULTS = "PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"
CLASSES = (None, LATEST, DEFAULT, EVENT, PARTIAL, NON_DEFAULTS)
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("price", pa.float64())])

# For each class in turn, on copy-on-write: the ts of a, whose stored row is later than the one that is written; the
# name of b, which comes twice, the later one first; and that of c, written with null over "C".
JAVA = {
    (9, "event"): "5 first -; 1 second -; 5 first -; 5 first -; 5 first -; 1 second -",
    (9, "commit"): "1 second -; 1 second -; 5 first -; 5 first -; 5 first -; 1 second -",
    (9, "partial"): "5 first C; 1 second C; 5 first C; 5 first C; 5 first C; 1 second C",
    (8, "event"): "5 first -; 1 second -; 5 first -; 5 first -; 5 first -; 5 first -",
    (8, "commit"): "1 second -; 1 second -; 5 first -; 5 first -; 1 first -; 1 first -",
    (8, "partial"): "5 first C; 1 second -; 5 first -; 5 first -; 5 first C; 5 first C",
}
JAVA |= {(6, how): said for (version, how), said in JAVA.items() if version == 8}
CASES = [
    (version, how, payload, outcome.strip())
    for (version, how), said in JAVA.items()
    for payload, outcome in zip(CLASSES, said.split(";"), strict=True)
]
HOW: dict[str, dict[str, Any]] = {
    "event": {},
    "commit": {"merge_mode": "COMMIT_TIME_ORDERING"},
    "partial": {"properties": {STORED: MODEL + PARTIAL}},
    "own": {"properties": {STORED: MODEL + "HoodieAvroPayload"}},
    "strategy": {"merge_mode": "CUSTOM", "merge_strategy_id": "12345678-0000-0000-0000-000000000001"},
}


WAYS: dict[str, Callable[[HoodieTable, dict[str, str]], object]] = {
    "upsert": lambda table, options: table.upsert(rows(("a", 6, "B")), options),
    "insert_overwrite": lambda table, options: table.insert_overwrite(rows(("a", 6, "B")), options),
    "delete": lambda table, options: table.delete(["a"], options),
    "delete_where": lambda table, options: table.delete("id = 'a'", options),
    "compact": lambda table, options: table.run_compaction(options=options),
}


def created(base: Path, version: int, how: str, table_type: str = "COPY_ON_WRITE") -> HoodieTable:
    return HoodieTable.create(
        base, SCHEMA, record_key="id", ordering="ts", table_type=table_type, table_version=version, **HOW[how]
    )


def rows(*values: tuple[str, int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "ts": ts, "name": name, "price": 1.0} for key, ts, name in values], SCHEMA)


def outcome(table: HoodieTable, query_type: str = "snapshot") -> str:
    found = {each["id"]: each for each in table.refresh().scan(query_type=query_type).to_arrow().to_pylist()}
    return f"{found['a']['ts']} {found['b']['name']} {found['c']['name'] or '-'}"


APART = {"hoodie.parquet.small.file.limit": "0"}
"""New rows make new files, and changes go to logs: where new rows fill a file, the write merges its changes there."""


def written(table: HoodieTable, **options: str) -> HoodieTable:
    table.insert(rows(("a", 5, "A"), ("c", 5, "C")), QUICK)
    changes = rows(("a", 1, "older"), ("b", 9, "first"), ("b", 8, "second"), ("c", 9, None))
    table.upsert(changes, {**QUICK, **options})
    return table


@pytest.mark.parametrize(("version", "how", "payload", "java"), CASES)
def test_a_payload_class_decides_the_merges_of_its_write(
    version: int, how: str, payload: str | None, java: str, tmp_path: Path
) -> None:
    properties = tmp_path / ".hoodie" / "hoodie.properties"
    table = created(tmp_path, version, how)
    before = properties.read_text()
    assert outcome(written(table, **({} if payload is None else {PAYLOAD: MODEL + payload}))) == java
    assert properties.read_text() == before


@pytest.mark.parametrize(("version", "how", "payload", "java"), CASES)
def test_on_merge_on_read_it_decides_between_rows_of_the_batch_and_readers_go_on_as_the_table_says(
    version: int, how: str, payload: str | None, java: str, tmp_path: Path
) -> None:
    options = {} if payload is None else {PAYLOAD: MODEL + payload}
    plain = JAVA[version, how].split(";")[0].split()
    want = f"{plain[0]} {java.split()[1]} {plain[2]}"
    table = written(created(tmp_path, version, how, "MERGE_ON_READ"), **options, **APART)
    assert outcome(table) == want
    table.refresh().compact(options=QUICK)
    assert outcome(table, "read_optimized") == want


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ("event", {MODE: "COMMIT_TIME_ORDERING"}),
        ("event", {MODE: "CUSTOM"}),
        ("commit", {MODE: "EVENT_TIME_ORDERING"}),
        ("partial", {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}),
        ("event", {STRATEGY: "ce9acb64-bde0-424c-9b91-f6ebba25356d"}),
        ("event", {"hoodie.record.merge.strategy.id": "12345678-0000-0000-0000-000000000001"}),
        ("partial", {STORED: MODEL + LATEST}),
        ("event", {PAYLOAD: MODEL + "Nope"}),
        ("own", {PAYLOAD: MODEL + LATEST}),
        ("own", {PAYLOAD: MODEL + DEFAULT}),
    ],
)
@pytest.mark.parametrize("do", WAYS)
def test_what_is_not_the_table_s_is_refused_by_every_write(
    how: str, options: dict[str, str], do: str, tmp_path: Path
) -> None:
    table = created(tmp_path, 9, how, "MERGE_ON_READ")
    table.bulk_insert(rows(("a", 5, "A")), QUICK)
    before = [each.request_time for each in table.refresh().timeline]
    (key, said), given = next(iter(options.items())), {**QUICK, **options}
    with pytest.raises(InvalidQueryError, match=f"{key} says '{said}', but the table has"):
        WAYS[do](table, given)
    assert [each.request_time for each in table.refresh().timeline] == before


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_that_names_a_merger_takes_no_payload_class(version: int, tmp_path: Path) -> None:
    table = created(tmp_path, version, "strategy")
    with pytest.raises(InvalidQueryError, match="but the table has 'merge strategy 12345678"):
        table.upsert(rows(("a", 6, "B")), {**QUICK, PAYLOAD: MODEL + LATEST})


@pytest.mark.parametrize("version", [6, 8])
def test_older_tables_take_payload_classes_that_are_known_and_no_other_mode(version: int, tmp_path: Path) -> None:
    table = created(tmp_path, version, "own")
    table.upsert(rows(("a", 5, "A")), {**QUICK, PAYLOAD: MODEL + LATEST})
    for key, said in ((PAYLOAD, MODEL + "Nope"), (MODE, "COMMIT_TIME_ORDERING"), (STORED, MODEL + LATEST)):
        with pytest.raises(InvalidQueryError, match=f"{key} says"):
            table.upsert(rows(("a", 6, "B")), {**QUICK, key: said})


def test_what_the_table_says_itself_may_be_said_again(tmp_path: Path) -> None:
    table = created(tmp_path, 9, "partial")
    event_time = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
    said = {MODE: "event_time_ordering", STRATEGY: event_time, PAYLOAD: f"com.uber.hoodie.common.model.{PARTIAL}"}
    assert outcome(written(table, **said, **{STORED: MODEL + PARTIAL})) == "5 first C"


def test_a_compaction_takes_no_payload_class_but_one_of_the_table_s_meaning(tmp_path: Path) -> None:
    table = written(created(tmp_path, 9, "event", "MERGE_ON_READ"), **APART).refresh()
    with pytest.raises(InvalidQueryError, match=f"{PAYLOAD} says '{MODEL}{LATEST}', but the table has 'EVENT_TIME"):
        table.compact(options={**QUICK, PAYLOAD: MODEL + LATEST})
    assert table.compact(options={**QUICK, PAYLOAD: MODEL + DEFAULT}).file_groups


@pytest.mark.parametrize("version", [9, 8])
@pytest.mark.parametrize(("how", "payload", "lives"), [("event", LATEST, False), ("commit", DEFAULT, True)])
def test_deletes_among_the_rows_follow_the_write_s_class_too(
    version: int, how: str, payload: str, lives: bool, tmp_path: Path
) -> None:
    """A row marked as deleted, earlier than the stored one."""
    schema = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    table = HoodieTable.create(
        tmp_path, schema, record_key="id", ordering="ts", table_type="COPY_ON_WRITE", table_version=version, **HOW[how]
    )
    row = {"id": "a", "ts": 5, "name": "A", "price": 1.0, "_hoodie_is_deleted": False}
    table.insert(pa.Table.from_pylist([row], schema), QUICK)
    gone = pa.Table.from_pylist([{**row, "ts": 1, "_hoodie_is_deleted": True}], schema)
    table.upsert(gone, {**QUICK, PAYLOAD: MODEL + payload})
    assert table.refresh().scan().to_arrow().num_rows == int(lives)


@pytest.mark.parametrize(("version", "how"), [(9, "event"), (8, "commit"), (6, "partial")])
@pytest.mark.parametrize("payload", CLASSES[1:])
def test_spark_writes_merge_in_the_same_way(version: int, how: str, payload: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")
    from tests.spark.write_engine import write_by_hand

    named = {name.replace(".", "__"): value for name, value in {**QUICK, PAYLOAD: MODEL + payload}.items()}
    java = dict(zip(CLASSES, map(str.strip, JAVA[version, how].split(";")), strict=True))
    table = created(tmp_path, version, how)
    table.insert(rows(("a", 5, "A"), ("c", 5, "C")), QUICK)
    changes = rows(("a", 1, "older"), ("b", 9, "first"), ("b", 8, "second"), ("c", 9, None))
    write_by_hand(tmp_path, [changes.slice(0, 2), changes.slice(2)], **named)
    assert outcome(table) == java[payload]
