"""Writes to tables with schema-on-read carry the schema with ids and its history on."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieTable, StorageError
from hoodie_py.formats.avro.columns import parse_internal_schema
from hoodie_py.table.schema.history import find_history_file, load_schema_history
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.timeline.schema_commits import check_same_columns
from tests.corpus import corpus_names
from tests.watched_requests import failing_requests, writes
from tests.writer.compaction_tables import writable

NAMES = [name for name in corpus_names() if name.startswith("schema_on_read")]
MOR, COMPACTED = "schema_on_read_mor_v9", "schema_on_read_compacted_mor_v6"


def data(base: Path) -> pa.Table:
    table = HoodieTable.open(base)
    return table.scan(columns=[name for name in table.schema.names if not name.startswith("_hoodie_")]).to_arrow()


def newest(base: Path) -> dict[str, str]:
    return newest_of(base, snapshot(base).timeline.list_completed_writes()[-1].request_time)


def newest_of(base: Path, instant: str) -> dict[str, str]:
    timeline = snapshot(base).timeline
    found = next(each for each in timeline.list_completed_writes() if each.request_time == instant)
    return dict(timeline.read_metadata(found).extra_metadata)


def snapshot(base: Path) -> Snapshot:
    return open_snapshot(str(base))


def data_fields(schema: str) -> list[Any]:
    """The fields without meta columns, which Java records where it keeps ids, and elsewhere it does not."""
    return [each for each in json.loads(schema)["fields"] if not each["name"].startswith("_hoodie_")]


def history(base: Path) -> tuple[str, bytes]:
    timeline = snapshot(base).timeline
    path = find_history_file(timeline)
    assert path is not None
    return path, (base / path).read_bytes()


def rows(table: pa.Table) -> list[str]:
    kept = [name for name in table.column_names if name != "_hoodie_file_name"]
    return sorted(map(str, table.select(kept).to_pylist()))


def states(base: Path, instant: str) -> set[str]:
    return {each.name.partition(".")[2] for each in (base / ".hoodie/.schema").glob(f"{instant}*")}


@pytest.mark.parametrize("name", NAMES)
def test_every_write_carries_schema_and_history_on(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before, (_, text) = newest(base), history(base)
    found = data(base)
    for write in ("upsert", "insert", "delete"):
        done: Any
        if write == "delete":
            done = HoodieTable.open(base).delete([found["id"][0].as_py()])
        else:
            done = getattr(HoodieTable.open(base), write)(found.slice(0, 1))
        path, now = history(base)
        assert now == text
        assert path.rpartition("/")[2].startswith(done.instant)
        assert states(base, done.instant) == {
            "schemacommit", "schemacommit.requested", "schemacommit.inflight",
        }  # fmt: skip
        assert newest(base)["latest_schema"] == before["latest_schema"]
        assert data_fields(newest(base)["schema"]) == data_fields(before["schema"])


@pytest.mark.parametrize("name", [name for name in NAMES if "mor" in name])
def test_compaction_records_the_schema_and_changes_no_row(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before, texts = HoodieTable.open(base).scan().to_arrow(), newest(base)
    HoodieTable.open(base).compact()
    for query_type in ("snapshot", "read_optimized"):
        assert rows(HoodieTable.open(base).scan(query_type=query_type).to_arrow()) == rows(before)
    assert newest(base)["latest_schema"] == texts["latest_schema"]


def rename(base: Path, old: str, new: str) -> str:
    """Commit a rename as ALTER TABLE does: no files, and another schema. Return its instant."""
    path, text = history(base)
    texts = newest(base)
    instant = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")[:17]
    schema, latest = json.loads(texts["schema"]), json.loads(texts["latest_schema"])
    for field in (*schema["fields"], *latest["fields"]):
        field["name"] = new if field["name"] == old else field["name"]
    latest["version_id"] = int(instant)
    extra = {"schema": json.dumps(schema), "latest_schema": json.dumps(latest)}
    body = {"partitionToWriteStats": {}, "extraMetadata": extra, "operationType": "ALTER_SCHEMA"}
    versions = {"schemas": [latest, *json.loads(text)["schemas"]]}
    name = f"{instant}_{instant}"
    (base / f".hoodie/timeline/{name}.deltacommit").write_text(json.dumps(body))
    (base / path).with_name(f"{name}.schemacommit").write_text(json.dumps(versions))
    return instant


def test_columns_altered_since_the_compaction_was_planned(tmp_path: Path) -> None:
    base = writable(MOR, tmp_path)
    planned = HoodieTable.open(base).schedule_compaction()
    assert planned is not None
    rename(base, "amount", "total")
    before = HoodieTable.open(base).scan().to_arrow()
    assert sum(value is not None for value in before["total"].to_pylist()) > 3
    HoodieTable.open(base).run_compaction(planned)
    assert rows(HoodieTable.open(base).scan().to_arrow()) == rows(before)
    assert "amount" in newest_of(base, planned)["latest_schema"]


def test_a_write_is_refused_once_the_columns_were_altered(tmp_path: Path) -> None:
    base = writable(MOR, tmp_path)
    before = snapshot(base)
    schema, last = load_output_schema(before), before.timeline.list_completed_writes()[-1].request_time
    check_same_columns(before, before, schema)
    instant = rename(base, "amount", "total")
    now = snapshot(base)
    check_same_columns(before, now, schema, last)  # the alteration is newer than the write
    for at in (None, instant):
        with pytest.raises(ConflictError, match="altered"):
            check_same_columns(now, now, schema, at)
    with pytest.raises(ConflictError, match="altered"):
        check_same_columns(before, now, replace(schema, latest=None))  # a write that began before there were ids


def test_a_write_that_would_hide_new_columns_is_refused(tmp_path: Path) -> None:
    HoodieTable.create(tmp_path, pa.schema([("id", pa.string()), ("ts", pa.int64())]), record_key="id")
    slow = HoodieTable.open(tmp_path)
    before = snapshot(tmp_path)
    slow.upsert([{"id": "a", "ts": 1}])
    check_same_columns(before, snapshot(tmp_path), load_output_schema(before))
    done = slow.upsert([{"id": "b", "ts": 1, "more": 2}])
    for at in (None, "9" * 17):
        with pytest.raises(ConflictError, match="altered"):
            check_same_columns(before, snapshot(tmp_path), load_output_schema(before), at)
    check_same_columns(before, snapshot(tmp_path), load_output_schema(before), done.instant)


def test_a_write_that_fails_leaves_no_history(tmp_path: Path) -> None:
    base = writable(MOR, tmp_path)
    found, before = data(base), sorted((base / ".hoodie/.schema").iterdir())
    completed = writes(rf"^{base}/\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$")
    with failing_requests(completed, StorageError("no more room", operation="write")), pytest.raises(StorageError):
        HoodieTable.open(base).upsert(found.slice(0, 1))
    assert sorted((base / ".hoodie/.schema").iterdir()) == before
    assert rows(HoodieTable.open(base).scan().to_arrow()) == rows(HoodieTable.open(base).scan().to_arrow())


def test_new_and_wider_columns_make_a_new_version(tmp_path: Path) -> None:
    base = writable(MOR, tmp_path)
    found, versions = data(base), load_schema_history(snapshot(base).timeline)
    done = HoodieTable.open(base).upsert(found.append_column("more", pa.array(["x"] * found.num_rows)))
    now = load_schema_history(snapshot(base).timeline)
    assert now[:-1] == versions
    assert now[-1].version == int(str(done.instant))
    assert now[-1].record.by_name["more"].id == now[-1].max_id == versions[-1].max_id + 1
    for name, field in versions[-1].record.by_name.items():
        assert now[-1].record.by_name[name] == field
    assert parse_internal_schema(newest(base)["latest_schema"]) == now[-1]
    assert set(data(base)["more"].to_pylist()) == {"x"}


def test_a_lost_history_begins_anew(tmp_path: Path) -> None:
    base = writable(COMPACTED, tmp_path)
    for path in (base / ".hoodie/.schema").iterdir():
        path.unlink()
    before = rows(HoodieTable.open(base).scan().to_arrow())
    HoodieTable.open(base).upsert(data(base).slice(0, 0))
    assert rows(HoodieTable.open(base).scan().to_arrow()) == before
