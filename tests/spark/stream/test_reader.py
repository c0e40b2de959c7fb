"""Streams as Spark's processes read them, without a session."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="NOT TESTED: PySpark 4.2 or newer is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles, ReadMinRows
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from hoodie_py import HoodieTable, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.spark.data_source import HoodieSource
from tests.spark.stream.stream_tables import Stream, make_table, pairs, through_json, upsert

KINDS = [(9, "MERGE_ON_READ"), (9, "COPY_ON_WRITE"), (8, "MERGE_ON_READ"), (6, "MERGE_ON_READ"), (6, "COPY_ON_WRITE")]

SERVED = ("log_compaction_mor_v9", "clustering_done_mor_v6", "compaction_pending_mor_v9")


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_each_commit_is_read_once(tmp_path: Path, version: int, kind: str) -> None:
    table = make_table(tmp_path, version, kind)
    first = upsert(table, 1, "abc")
    stream = Stream(tmp_path)
    assert stream.read() == first
    assert not stream.plan()
    second = upsert(table, 2, "bd")
    third = upsert(table, 3, "a")
    assert [pairs(rows) for rows in stream.batches()] == [second | third]
    stream.restart()
    assert not stream.plan()


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_limit_by_commits_gives_every_version_of_a_row(tmp_path: Path, version: int, kind: str) -> None:
    table = make_table(tmp_path, version, kind)
    wrote = [upsert(table, number, keys) for number, keys in enumerate(["abc", "a", "ab", "d", "a"])]
    stream = Stream(tmp_path, maxCommitsPerTrigger=1)
    assert [pairs(rows) for rows in stream.batches()] == wrote
    stream = Stream(tmp_path, maxCommitsPerTrigger=2)
    assert [pairs(rows) for rows in stream.batches()] == [{("a", 1), ("b", 0), ("c", 0)}, wrote[2] | wrote[3], wrote[4]]


def test_limits_of_files_and_bytes_take_whole_commits_and_at_least_one(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    wrote = [upsert(table, number, keys) for number, keys in enumerate(["abc", "ab", "a", "c"])]  # files: 3, 2, 1, 1
    stream = Stream(tmp_path, maxFilesPerTrigger=2)
    assert [pairs(rows) for rows in stream.batches()] == [wrote[0], wrote[1], wrote[2] | wrote[3]]
    stream = Stream(tmp_path, maxBytesPerTrigger=1)
    assert [pairs(rows) for rows in stream.batches()] == wrote
    stream = Stream(tmp_path)
    assert [pairs(rows) for rows in stream.batches(ReadMaxFiles(1))] == wrote
    assert [pairs(rows) for rows in Stream(tmp_path).batches(ReadMaxBytes(1))] == wrote
    with pytest.raises(UnsupportedFeatureError, match="ReadMinRows"):
        list(Stream(tmp_path).batches(ReadMinRows(5)))


def test_a_trigger_that_asks_for_all_gets_all_whatever_the_limits(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    for number in range(3):
        upsert(table, number, "ab")
    stream = Stream(tmp_path, maxCommitsPerTrigger=1, maxFilesPerTrigger=1)
    assert [pairs(rows) for rows in stream.batches(ReadAllAvailable())] == [{("a", 2), ("b", 2)}]


def test_available_now_ends_at_the_commit_that_was_the_last(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    wrote = [upsert(table, number, "ab") for number in range(2)]
    stream = Stream(tmp_path, maxCommitsPerTrigger=1)
    stream.reader.prepareForTriggerAvailableNow()
    later = upsert(table, 5, "c")
    assert [pairs(rows) for rows in stream.batches()] == wrote
    stream.reader.prepareForTriggerAvailableNow()
    assert [pairs(rows) for rows in stream.batches()] == [later]


@pytest.mark.parametrize("version", [9, 6])
def test_where_a_stream_begins(tmp_path: Path, version: int) -> None:
    table = make_table(tmp_path, version)
    first = upsert(table, 1, "ab")
    time = next(reversed(list(table.timeline)))
    second = upsert(table, 2, "b")
    position = time.completion_time or time.request_time
    name = "hoodie.datasource.streaming.startOffset"
    assert Stream(tmp_path, **{name: "Earliest"}).read() == (first - {("b", 1)}) | second
    assert Stream(tmp_path, **{name: "latest"}).read() == set()
    assert Stream(tmp_path, **{name: position}).read() == second
    assert Stream(tmp_path, **{"hoodie.datasource.read.begin.instanttime": position}).read() == second
    assert Stream(tmp_path, **{name: "1999-12-31"}).read() == (first - {("b", 1)}) | second
    with pytest.raises(InvalidQueryError, match="say different things"):
        Stream(tmp_path, **{name: "latest", "hoodie.datasource.read.begin.instanttime": position})
    stream = Stream(tmp_path, **{name: "latest"})
    assert not stream.plan()
    assert upsert(table, 3, "q") == stream.read()


def test_a_table_without_commits_is_waited_for(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    earliest, latest = Stream(tmp_path), Stream(tmp_path, **{"hoodie.datasource.streaming.startOffset": "latest"})
    assert not earliest.plan()
    assert not latest.plan()
    earliest.reader.prepareForTriggerAvailableNow()
    assert not earliest.plan()
    wrote = upsert(table, 1, "a")
    assert not earliest.plan()
    earliest.restart()
    assert earliest.read() == latest.read() == wrote


@pytest.mark.parametrize(("version", "kind"), [(9, "MERGE_ON_READ"), (6, "MERGE_ON_READ"), (9, "COPY_ON_WRITE")])
def test_table_services_give_no_rows_and_lose_none(tmp_path: Path, version: int, kind: str) -> None:
    table = make_table(tmp_path, version, kind)
    wrote = []
    for number in range(8):
        wrote.append(upsert(table, number, "abc" if number % 2 else "ad"))
        if kind == "MERGE_ON_READ" and number % 3 == 2:
            table.compact()
    one = Stream(tmp_path, maxCommitsPerTrigger=1)
    assert [pairs(rows) for rows in one.batches() if rows] == wrote
    slow = Stream(tmp_path, maxCommitsPerTrigger=3)
    newest = [{(k, max(v for key, v in rows if key == k)) for k, _ in rows} for rows in (
        wrote[0] | wrote[1] | wrote[2], wrote[3] | wrote[4] | wrote[5], wrote[6] | wrote[7])]  # fmt: skip
    assert [pairs(rows) for rows in slow.batches() if rows] == newest


def test_a_batch_that_was_planned_has_the_same_rows_after_compaction_and_later_commits(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    upsert(table, 1, "abc")
    stream = Stream(tmp_path)
    stream.read()
    wrote = upsert(table, 2, "ab") | upsert(table, 3, "c")
    assert stream.plan()
    assert pairs(stream.read_planned()) == wrote
    table.compact()
    upsert(table, 4, "abc")
    table.compact()
    stream.restart()
    assert pairs(stream.read_planned()) == wrote
    stream.commit()
    assert stream.read() == {("a", 4), ("b", 4), ("c", 4)}


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_the_first_batch_is_planned_again_as_it_was(tmp_path: Path, kind: str) -> None:
    table = make_table(tmp_path, 9, kind)
    upsert(table, 1, "abc")
    stream = Stream(tmp_path)
    assert stream.plan()
    upsert(table, 2, "ab")
    upsert(table, 3, "de")
    stream.restart()
    assert pairs(stream.read_planned()) == {("a", 1), ("b", 1), ("c", 1)}
    stream.commit()
    assert stream.read() == {("a", 2), ("b", 2), ("d", 3), ("e", 3)}


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_a_batch_whose_files_were_cleaned_is_an_error(tmp_path: Path, kind: str) -> None:
    table = make_table(tmp_path, 9, kind)
    upsert(table, 1, "abc")
    early = Stream(tmp_path)
    assert early.plan()
    late = Stream(tmp_path)
    late.read()
    upsert(table, 2, "abc")
    assert late.plan()
    for number in range(3, 9):
        upsert(table, number, "abc")
        if kind == "MERGE_ON_READ":
            table.compact()
    table.clean(retain_commits=1)
    for stream in (early, late):
        stream.restart()
        with pytest.raises(InvalidQueryError, match=r"too late|are gone") as caught:
            stream.read_planned()
        assert "from 2" in str(caught.value)
    again = Stream(tmp_path, maxCommitsPerTrigger=1)
    batches = [pairs(rows) for rows in again.batches()]
    assert batches[-1] == {("a", 8), ("b", 8), ("c", 8)}
    assert 1 <= len(batches) < 8


@pytest.mark.parametrize("version", [9, 6])
def test_a_planned_batch_with_files_of_archived_commits_that_were_cleaned_is_an_error(
    tmp_path: Path, version: int
) -> None:
    """No active commit names the file that is gone."""
    table = make_table(tmp_path, version, "COPY_ON_WRITE")
    quick = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    for number, keys in enumerate(["b", "b", "a"]):
        upsert(table, number, keys, options=quick)
    stream = Stream(tmp_path)
    assert stream.plan()
    for number in (3, 4):
        upsert(table, number, "b", options=quick)
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    table.archive(options={"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"})
    assert len(table.timeline.select_writes()) == 3
    stream.restart()
    with pytest.raises(InvalidQueryError, match="too late"):
        stream.read_planned()


def test_the_checkpoint_of_another_table_is_an_error(tmp_path: Path) -> None:
    one, two = make_table(tmp_path / "one"), make_table(tmp_path / "two")
    upsert(one, 1, "a")
    upsert(two, 1, "a")
    stream = Stream(tmp_path / "one")
    stream.read()
    other = Stream(tmp_path / "two")
    other.offset = stream.offset
    with pytest.raises(InvalidQueryError, match="of table 'one', and this is table 'two'"):
        other.plan()
    other.offset = {**stream.offset, "table": "two"}
    with pytest.raises(InvalidQueryError, match="is not in the table's history"):
        other.plan()
    for broken in (
        {},
        {"commitTime": "20260101000000000"},
        {**stream.offset, "position": 5},
        [],
        {**stream.offset, "times": "x"},
    ):
        other.offset = broken
        with pytest.raises(InvalidQueryError, match="checkpoint"):
            other.plan()


def test_a_table_made_anew_at_the_same_path_is_another_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    upsert(make_table(path), 1, "a")
    stream = Stream(path)
    stream.read()
    shutil.rmtree(path)
    upsert(make_table(path), 1, "b")
    stream.restart()
    with pytest.raises(InvalidQueryError, match="is not in the table's history"):
        stream.plan()
    shutil.rmtree(path)
    make_table(path, version=6)
    with pytest.raises(InvalidQueryError, match="counts completion times"):
        stream.plan()


@pytest.mark.parametrize("version", [9, 6])
def test_a_stream_begins_after_a_clean_by_versions_that_one_by_commits_follows(tmp_path: Path, version: int) -> None:
    """The later clean retains a commit of whose state the earlier one removed a file."""
    table = make_table(tmp_path, version, "COPY_ON_WRITE")
    for number, keys in enumerate(["ab", "ab", "ab", "a", "a", "a"]):
        upsert(table, number, keys, options={"hoodie.clean.automatic": "false"})
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"}
    assert table.clean(options=options).files_deleted == 5
    early = table.timeline.select_writes().instants[3]
    assert table.clean(retain_commits=3).earliest == early.request_time
    stream = Stream(tmp_path, maxCommitsPerTrigger=1)
    assert next(pairs(rows) for rows in stream.batches()) == {("a", 5), ("b", 2)}


@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_compaction_that_ends_after_the_batch_lets_a_clean_remove_its_files(tmp_path: Path, version: int) -> None:
    """The clean retains the batch's commit, but goes by the time of the compaction's plan, which is earlier."""
    quick = {"hoodie.clean.automatic": "false"}
    table = make_table(tmp_path, version)
    upsert(table, 1, "ab", options=quick)
    upsert(table, 2, "ab", options=quick)
    plan = table.schedule_compaction(options=quick)
    assert plan is not None
    upsert(table, 3, "c", options=quick)
    rows = {("a", 2), ("b", 2), ("c", 3)}
    planned = Stream(tmp_path)
    assert planned.plan()
    table.run_compaction(plan, options=quick)
    assert table.clean(retain_commits=1).files_deleted == 4
    stream = Stream(tmp_path, maxCommitsPerTrigger=1)
    assert [pairs(each) for each in stream.batches()] == [rows]
    planned.restart()
    if version == 6:  # it goes by request times, so the compaction belongs to the batch
        assert pairs(planned.read_planned()) == rows
    else:
        with pytest.raises(InvalidQueryError, match="too late"):
            planned.read_planned()


@pytest.mark.parametrize("active", [1, 2])
def test_a_stream_begins_after_the_archived_commits(tmp_path: Path, active: int) -> None:
    """The last archived one completed after an active one that was requested later."""
    quick = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    table = make_table(tmp_path, 9, "COPY_ON_WRITE")
    for number, keys in enumerate(["ab", "a", "b"], 1):
        upsert(table, number, keys, options=quick)
    planned = Stream(tmp_path)
    assert planned.plan()
    folder = tmp_path / ".hoodie" / "timeline"
    _, late, last = sorted(folder.glob("*.commit"))
    request, end = late.name.partition("_")[0], int(last.name.partition("_")[2].partition(".")[0])
    late.rename(folder / f"{request}_{end + 1}.commit")
    if active == 2:
        upsert(table, 4, "c", options=quick)
    table.archive(options={"hoodie.keep.min.commits": str(active), "hoodie.keep.max.commits": str(active + 1)})
    assert len(HoodieTable.open(str(tmp_path)).timeline.select_writes()) == active
    planned.restart()
    with pytest.raises(InvalidQueryError, match="too late"):
        planned.read_planned()
    begun = Stream(tmp_path, **{"hoodie.datasource.streaming.startOffset": "latest"})
    assert not begun.plan()
    stream = Stream(tmp_path, maxCommitsPerTrigger=1)
    rows = [pairs(each) for each in stream.batches()]
    assert rows == ([{("a", 2), ("b", 3)}] if active == 1 else [{("a", 2), ("b", 3)}, {("c", 4)}])
    assert upsert(table, 5, "a", options=quick) == begun.read()


@pytest.mark.parametrize("version", [9, 6])
def test_unfinished_commits(tmp_path: Path, version: int) -> None:
    """On version 6 a stream waits before them. Later versions have completion times, so it need not wait."""
    table = make_table(tmp_path, version)
    first = upsert(table, 1, "abc")
    stream = Stream(tmp_path)
    assert stream.read() == first
    held = upsert(table, 2, "a")
    folder = tmp_path / ".hoodie" / ("timeline" if version == 9 else "")
    done = max(folder.glob("*.deltacommit"))
    hidden = done.rename(tmp_path / "hidden")
    later = upsert(table, 3, "b", options={"hoodie.clean.failed.writes.policy": "LAZY"})
    if version == 6:
        assert not stream.plan()
        latest = Stream(tmp_path, **{"hoodie.datasource.streaming.startOffset": "latest"})
        assert not latest.plan()
    else:
        assert stream.read() == later
    last = max(folder.glob("*.deltacommit"))
    target = done
    if version == 9:  # it completes now, after the later one
        request = done.name.partition("_")[0]
        now = int(last.name.partition("_")[2].partition(".")[0]) + 1
        target = folder / f"{request}_{now}.deltacommit"
    hidden.rename(target)
    assert stream.read() == (held | later if version == 6 else held)
    if version == 6:
        assert latest.read() == held | later


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"as.of.instant": "20990101000000000"}, "InvalidQueryError", "earlier state"),
        ({"hoodie.datasource.read.end.instanttime": "20260101000000000"}, "InvalidQueryError", "no end"),
        ({"hoodie.datasource.query.type": "read_optimized"}, "UnsupportedFeatureError", "read-optimized"),
        ({"maxCommitsPerTrigger": "0"}, "InvalidQueryError", "maxCommitsPerTrigger cannot be '0'"),
        ({"maxBytesPerTrigger": "many"}, "InvalidQueryError", "maxBytesPerTrigger cannot be 'many'"),
        ({"maxFilePerTrigger": "1"}, "InvalidQueryError", "Did you mean 'maxFilesPerTrigger'"),
        (
            {"hoodie.datasource.streaming.startOffset": "yesterday"},
            "InvalidQueryError",
            "'yesterday' is not an instant",
        ),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, str], error: str, said: str) -> None:
    upsert(make_table(tmp_path), 1, "a")
    with pytest.raises((InvalidQueryError, UnsupportedFeatureError), match=said) as caught:
        Stream(tmp_path, **options).plan()
    assert type(caught.value).__name__ == error


@pytest.mark.parametrize("most", [1, 2, 3, 9])
@pytest.mark.parametrize("name", SERVED)
def test_tables_with_services_of_javas(corpus: Callable[[str], Path], name: str, most: int) -> None:
    """No version of a row comes twice, and the last one that comes is the table's."""
    stream = Stream(corpus(name), maxCommitsPerTrigger=most)
    seen: set[tuple[str, str]] = set()
    last: dict[str, dict[str, Any]] = {}
    for batch in stream.batches():
        found = {(row["_hoodie_record_key"], row["_hoodie_commit_time"]) for row in batch}
        assert len(found) == len(batch)
        assert not found & seen
        seen |= found
        late = {row["_hoodie_record_key"]: row for row in batch}
        last.update({key: row for key, row in late.items() if key not in last or last[key]["ts"] <= row["ts"]})
    rows = HoodieTable.open(str(corpus(name))).scan().to_arrow().to_pylist()
    assert rows
    for row in rows:
        assert without_meta(last[row["_hoodie_record_key"]]) == without_meta(row)


def without_meta(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_")}


CDC = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}


@pytest.mark.parametrize("given", [{}, {"hoodie.datasource.query.type": "snapshot"}])
def test_changes_need_the_query_type_too(tmp_path: Path, given: dict[str, str]) -> None:
    upsert(make_table(tmp_path, 9, "MERGE_ON_READ", properties={"hoodie.table.cdc.enabled": "true"}), 1, "a")
    with pytest.raises(InvalidQueryError, match=r"query\.type=incremental, too"):
        Stream(tmp_path, **{"hoodie.datasource.query.incremental.format": "cdc", **given})


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize("version", [9, 6])
def test_a_stream_of_changes(tmp_path: Path, version: int, kind: str) -> None:
    table = make_table(tmp_path, version, kind, properties={"hoodie.table.cdc.enabled": "true"})
    upsert(table, 1, "ab")
    upsert(table, 2, "b")
    table.delete(["a"])
    stream = Stream(tmp_path, **CDC, maxCommitsPerTrigger=1)
    assert stream.columns == ["op", "ts_ms", "before", "after"]
    found = [sorted(map(describe, batch)) for batch in stream.batches()]
    assert found == [[("i", None, 1), ("i", None, 1)], [("u", 1, 2)], [("d", 1, None)]]
    if kind == "MERGE_ON_READ":
        table.compact()
    upsert(table, 3, "bc")
    stream.restart()
    assert sorted(describe(row) for batch in stream.batches() for row in batch) == [("i", None, 3), ("u", 2, 3)]
    assert sorted(map(str, (describe(row) for batch in Stream(tmp_path, **CDC).batches() for row in batch))) == sorted(
        map(str, [("i", None, 1), ("i", None, 1), ("u", 1, 2), ("d", 1, None), ("u", 2, 3), ("i", None, 3)])
    )


def describe(change: dict[str, Any]) -> tuple[str, int | None, int | None]:
    before, after = (
        None if change[side] is None else json.loads(change[side])["value"] for side in ("before", "after")
    )
    return change["op"], before, after


def test_a_stream_of_changes_of_a_table_without_change_data(tmp_path: Path) -> None:
    upsert(make_table(tmp_path), 1, "ab")
    with pytest.raises(InvalidQueryError, match=r"hoodie\.table\.cdc\.enabled"):
        Stream(tmp_path, **CDC)


def test_columns_and_a_schema_of_the_users_own(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    upsert(table, 1, "ab")
    stream = Stream(tmp_path, columns="value,id")
    assert stream.columns == ["value", "id"]
    assert stream.read() == {("a", 1), ("b", 1)}
    source = HoodieSource({"path": str(tmp_path)})
    reader = source.streamReader(StructType([StructField("VALUE", StringType())]))
    start, end = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    with pytest.raises(InvalidQueryError, match="'VALUE' is int64 in the table"):
        reader.partitions(start, end)
    reader = source.streamReader(StructType([StructField("nothing", IntegerType())]))
    with pytest.raises(InvalidQueryError, match="'nothing'"):
        reader.partitions(start, end)


def test_a_column_that_came_later_is_null_before(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    upsert(table, 1, "a")
    upsert(table, 2, "b")
    rows = pa.table({"id": ["c"], "ts": [3], "part": ["pc"], "value": [3], "more": ["x"]})
    HoodieTable.open(str(tmp_path)).upsert(rows)
    stream = Stream(tmp_path, maxCommitsPerTrigger=1)
    more = [[(row["id"], row["more"]) for row in batch] for batch in stream.batches()]
    assert more == [[("a", None)], [("b", None)], [("c", "x")]]


def test_old_versions_of_pyspark_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(tmp_path)
    monkeypatch.delitem(sys.modules, "hoodie_py.spark.stream.reader", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    with pytest.raises(UnsupportedFeatureError, match=r"Reading streams with this version of PySpark\. Use 4\.2"):
        HoodieSource({"path": str(tmp_path)}).streamReader(StructType([]))


def test_tasks_carry_no_storage_options_and_no_timeline(tmp_path: Path) -> None:
    upsert(make_table(tmp_path), 1, "a")
    source = HoodieSource({"path": str(tmp_path), "storage_options": '{"auto_mkdir": false}'})
    reader: Any = source.streamReader(source.schema())
    assert b"auto_mkdir" not in pickle.dumps(reader)
    offset = through_json(reader.latestOffset(reader.initialOffset(), ReadAllAvailable()))
    assert "auto_mkdir" not in repr(reader.partitions(reader.initialOffset(), offset)) + repr(reader._options)
