"""``table.changes()``: what one commit changed, by kind of table and logging mode; arguments and errors.

Java's answers are in integration/test_corpus.py.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import CorruptFileError, HoodieTable, InvalidQueryError
from hoodie_py.errors import FileMissingError
from tests.table.changes.change_lakes import KINDS, MODES, SCHEMA, changes, make, row, times

Corpus = Callable[[str], Path]
EVERY = [(kind, mode) for kind in KINDS for mode in MODES]


@pytest.mark.parametrize(("kind", "mode"), EVERY, ids=str)
def test_each_commit_gives_its_changes(tmp_path: Path, kind: tuple[str, int], mode: str) -> None:
    table = make(tmp_path / "t", kind, mode)
    table.upsert([row("a"), row("b")])
    table.upsert([row("a", 2, 2.0), row("c", 2, 2.0, "q")])
    table.delete([{"id": "b", "part": "p"}])
    table.upsert([row("a", 1, 9.0), row("b", 3, None)])
    first, second, third, fourth = times(table)
    assert changes(table, "earliest", first) == [("i", None, row("a")), ("i", None, row("b"))]
    assert changes(table, first, second) == [("i", None, row("c", 2, 2.0, "q")), ("u", row("a"), row("a", 2, 2.0))]
    assert changes(table, second, third) == [("d", row("b"), None)]
    assert changes(table, third, fourth) == [("i", None, row("b", 3, None))], "an update that loses changes nothing"
    assert len(changes(table)) == 6
    assert changes(table, fourth) == []


def test_texts_are_json_as_java_writes_it(tmp_path: Path) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9))
    table.upsert([row("a", price=None)])
    table.upsert([row("a", 2)])
    first, second = (each.request_time for each in table.timeline.select_writes())
    assert table.changes().to_arrow().to_pylist() == [
        {"op": "i", "ts_ms": first, "before": None, "after": '{"id":"a","part":"p","ts":1}'},
        {
            "op": "u",
            "ts_ms": second,
            "before": '{"id": "a", "part": "p", "ts": 1, "price": null}',
            "after": '{"id": "a", "part": "p", "ts": 2, "price": 1.0}',
        },
    ]


def test_a_compaction_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a"), row("b")])
    table.upsert([row("a", 2)])
    before = times(table)[-1]
    table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
    assert [each.action for each in table.timeline.select_writes()][-1] == "commit"
    assert changes(table, before) == []
    after = times(table)[-1]
    table.upsert([row("a", 3)])
    assert changes(table, after) == [("u", row("a", 2), row("a", 3))]


def test_a_pending_compaction_is_read_over(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a"), row("b")])
    table.upsert([row("a", 2)])
    assert table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    start = times(table)[-1]
    table.upsert([row("a", 3), row("b", 3)])
    table.upsert([row("a", 4)])
    middle = times(table)[-2]
    assert changes(table, start, middle) == [("u", row("a", 2), row("a", 3)), ("u", row("b"), row("b", 3))]
    assert changes(table, middle) == [("u", row("a", 3), row("a", 4))]


def test_columns_filter_and_limit(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a"), row("b", price=5.0)])
    table.upsert([row("a", 2, 7.0)])
    table.delete(["b"])
    instants = [each.request_time for each in table.timeline.select_writes()]
    assert table.changes().schema.names == ["op", "ts_ms", "before", "after"]
    assert sorted(table.changes(columns=["op"]).to_arrow()["op"].to_pylist()) == ["d", "i", "i", "u"]
    assert table.changes(columns=["after"], filter="op = 'd'").to_arrow().to_pylist() == [{"after": None}]
    assert table.changes(filter=f"ts_ms > '{instants[0]}'").count() == 2
    structs = table.changes(columns=["op"], filter="after.price > 4", as_structs=True)
    assert sorted(structs.to_arrow()["op"].to_pylist()) == ["i", "u"]
    assert table.changes(limit=3).to_arrow().num_rows == table.changes(limit=3).count() == 3
    assert table.changes().count() == 4
    assert [batch.num_rows for batch in table.changes(batch_rows=1).to_batches()] == [1] * 4
    with pytest.raises(InvalidQueryError, match="Unknown column 'price'"):
        table.changes(columns=["price"])


def test_structs_have_the_columns_of_the_table(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    image = pa.struct(list(SCHEMA))
    assert table.changes(as_structs=True).schema == pa.schema(
        [("op", pa.string()), ("ts_ms", pa.string()), ("before", image), ("after", image)]
    )
    assert table.changes(as_structs=True).to_arrow().num_rows == 0


def test_options_ask_for_changes(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a")])
    table.upsert([row("a", 2)])
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": times(table)[0],
    }
    assert table.scan(options=options).to_arrow()["op"].to_pylist() == ["u"]


def test_ranges_may_compare_request_times(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for number in range(1, 4):
        table.upsert([row("a", number)])
    first, second, _ = (each.request_time for each in table.timeline.select_writes())
    options = {"hoodie.datasource.read.incr.table.version": "6"}
    assert changes(table, first, second, options=options) == [("u", row("a"), row("a", 2))]
    assert changes(table, second, options=options) == [("u", row("a", 2), row("a", 3))]


def test_tasks_are_small_and_one_for_each_file_group(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for number in range(1, 40):
        table.upsert([row("a", number), row("b", number, part="q")], options={"hoodie.archive.automatic": "false"})
    tasks = table.changes().tasks()
    assert len(tasks) == 2
    assert all(len(pickle.dumps(task)) < 64 << 10 for task in tasks)
    times_of_group = [
        text for batch in pickle.loads(pickle.dumps(tasks[0])).to_batches() for text in batch["ts_ms"].to_pylist()
    ]
    assert times_of_group == sorted(times_of_group)
    assert len(times_of_group) == 39


def test_a_table_without_change_data_is_refused(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id")
    with pytest.raises(InvalidQueryError, match=r"no change data.*hoodie.table.cdc.enabled.*incremental\(\)"):
        table.changes()


def test_bad_ranges_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a")])
    with pytest.raises(InvalidQueryError, match="before its start"):
        table.changes("20260102", "20260101")
    with pytest.raises(InvalidQueryError, match="no instant of the past"):
        table.changes(options={"as.of.instant": times(table)[0]})


def test_archived_changes_are_refused_with_the_range_that_can_be_had(corpus_copy: Corpus) -> None:
    table = enable(corpus_copy("archived_timeline_mor_v6"))
    with pytest.raises(InvalidQueryError, match=r"archived.*request times from \d+ to \d+"):
        table.changes().to_arrow()
    table = enable(corpus_copy("archived_timeline_mor_v9"))
    with pytest.raises(InvalidQueryError, match=r"archived.*completion times from \d+ to \d+"):
        table.changes().to_arrow()


def test_cleaned_changes_are_refused_with_a_start_that_works(tmp_path: Path) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9), MODES[0])
    for number in range(1, 7):
        table.upsert([row("a", number)])
    table.clean(retain_commits=2)
    with pytest.raises(InvalidQueryError, match=r"are gone.*changes can be had with start='\d+'") as caught:
        table.changes().to_arrow()
    start = str(caught.value.hint).split("'")[1]
    assert [change[0] for change in changes(table, start)] == ["u", "u"]


def test_a_file_that_vanishes_is_named_with_the_range_that_can_be_had(tmp_path: Path) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9))
    table.upsert([row("a")])
    scan = table.changes()
    next((tmp_path / "t" / "p").glob("*.parquet")).unlink()
    with pytest.raises(FileMissingError, match=r"A file of the range is gone.*completion times from"):
        scan.to_arrow()


@pytest.mark.parametrize("mode", MODES)
def test_a_damaged_change_log_is_an_error(tmp_path: Path, mode: str) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9), mode)
    table.upsert([row("a"), row("b")])
    table.upsert([row("a", 2)])
    log = next((tmp_path / "t").rglob("*.cdc"))
    whole = log.read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 3, 0):
        log.write_bytes(whole[:cut])
        with pytest.raises(CorruptFileError, match=r"offset=\d+") as caught:
            table.changes().to_arrow()
        assert caught.value.where["path"].endswith(".cdc")
    log.write_bytes(whole[:-1] + bytes([whole[-1] ^ 255]))  # the block's end
    with pytest.raises(CorruptFileError, match="cdc"):
        table.changes().to_arrow()
    log.write_bytes(whole)
    assert table.changes().count() == 3


def test_rows_of_replaced_file_groups_are_deletes(corpus_copy: Corpus) -> None:
    table = enable(corpus_copy("insert_overwrite_mor_v9"))
    found = table.changes(as_structs=True).to_arrow().to_pylist()
    replaced = next(each.request_time for each in table.timeline.select_writes() if each.action == "replacecommit")
    ops = {each["op"] for each in found if each["ts_ms"] == replaced}
    assert ops == {"d", "i"}


def enable(base: Path) -> HoodieTable:
    """Set the property in a copied table, as ALTER TABLE would."""
    path = base / ".hoodie" / "hoodie.properties"
    path.chmod(0o644)
    path.write_text(path.read_text() + "hoodie.table.cdc.enabled=true\n")
    shutil.rmtree(base / ".hoodie" / "metadata", ignore_errors=True)
    return HoodieTable.open(str(base))


def test_images_of_change_logs_parse_as_json(corpus: Corpus) -> None:
    table = HoodieTable.open(str(corpus("cdc_before_after_mor_v9")))
    for each in table.changes().to_arrow().to_pylist():
        for side in ("before", "after"):
            assert each[side] is None or set(json.loads(each[side])) <= {"id", "name", "price", "qty", "ts", "part"}
