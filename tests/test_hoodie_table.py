"""A scan is one question: columns, filters, limits, batch sizes and outputs change how it is asked, never the rows."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py import (
    CorruptFileError,
    HoodieError,
    HoodieTable,
    HoodieWarning,
    InvalidQueryError,
    MergeError,
    StorageError,
    TableNotFoundError,
)
from tests.corpus import corpus_names
from tests.watched_requests import failing_requests, far_store, reads

Corpus = Callable[[str], Path]
TABLE = "filters_projections_mor_v9"
# Tables that a snapshot query cannot read here, each for a reason of its own that other tests name.
REFUSED = ("null_ordering_bigint", "custom_")


def readable() -> list[str]:
    return [name for name in corpus_names() if not any(word in name for word in REFUSED)]


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.filterwarnings("ignore::hoodie_py.errors.HoodieWarning")
@pytest.mark.parametrize("name", readable())
def test_projection_count_and_batch_size_do_not_change_rows(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    whole = table.scan().to_arrow()
    assert whole.schema.equals(table.schema) or whole.schema.names == table.schema.names
    assert table.scan().count() == whole.num_rows
    chooser = random.Random(name)
    for _ in range(3):
        columns = chooser.sample(whole.column_names, chooser.randint(0, len(whole.column_names)))
        some = table.scan(columns=columns).to_arrow()
        assert some.column_names == columns
        assert some.num_rows == whole.num_rows
        assert rows(some) == rows(whole.select(columns))
    assert rows(table.scan(batch_rows=2).to_arrow()) == rows(whole)
    assert all(batch.num_rows <= 2 for batch in table.scan(batch_rows=2).to_batches())


def test_by_position_and_by_key_give_the_same_rows(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("many_row_groups_mor_v9"))
    by_key = table.scan(options={"hoodie.merge.use.record.positions": "false"})
    assert rows(by_key.to_arrow()) == rows(table.scan().to_arrow())


def test_a_filter_is_exact_and_an_expression_is_the_same_question(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus(TABLE))
    whole = table.scan().to_arrow()
    by_text = table.scan(filter="price > 10 and part = 'p1'").to_arrow()
    by_expression = table.scan(filter=(pc.field("price") > 10) & (pc.field("part") == "p1")).to_arrow()
    want = [row for row in whole.to_pylist() if row["price"] is not None and row["price"] > 10 and row["part"] == "p1"]
    assert rows(by_text) == rows(by_expression) == sorted(map(repr, want))
    assert rows(table.scan(columns=["id"], filter="price > 10").to_arrow()) == rows(
        table.scan(filter="price > 10").to_arrow().select(["id"])
    )


def test_limit_takes_that_many_rows_of_the_table(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus(TABLE))
    whole = set(rows(table.scan().to_arrow()))
    for limit in (0, 1, 5, 10_000):
        some = rows(table.scan(limit=limit).to_arrow())
        assert len(some) == min(limit, len(whole)) == table.scan(limit=limit).count()
        assert set(some) <= whole


def test_outputs_agree(corpus: Corpus) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    scan = HoodieTable.open(corpus(TABLE)).scan(columns=["id", "price"])
    want = rows(scan.to_arrow())
    assert rows(scan.to_arrow_batch_reader().read_all()) == want
    assert rows(pa.table(scan)) == want
    assert rows(pa.Table.from_batches(scan.to_batches())) == want
    assert rows(pa.Table.from_pandas(scan.to_pandas(), schema=scan.schema, preserve_index=False)) == want
    assert rows(scan.to_polars().to_arrow().cast(scan.schema)) == want
    assert rows(polars.DataFrame(scan).to_arrow().cast(scan.schema)) == want
    connection = scan.to_duckdb("trips", duckdb.connect())
    assert connection.sql("select count(*) from trips").fetchall() == [(len(want),)]


def test_tasks_are_small_travel_and_together_are_the_scan(corpus: Corpus) -> None:
    scan = HoodieTable.open(corpus("big_mor_v9" if "big_mor_v9" in corpus_names() else TABLE)).scan(filter="ts > 0")
    tasks = scan.tasks()
    packed = [pickle.dumps(task) for task in tasks]
    assert max(map(len, packed)) < 64 * 1024
    batches = [batch for blob in packed for batch in pickle.loads(blob).to_batches()]
    assert rows(pa.Table.from_batches(batches, scan.schema)) == rows(scan.to_arrow())


def test_a_scan_is_pinned_while_the_table_changes(corpus_copy: Corpus) -> None:
    place = corpus_copy("basic_mor_v9_part")
    timeline = place / ".hoodie" / "timeline"
    last = max(path.name for path in timeline.glob("*_*.deltacommit"))
    finished = (timeline / last).read_bytes()
    (timeline / last).unlink()
    before = HoodieTable.open(place)
    scan = before.scan()
    expected = rows(scan.to_arrow())
    (timeline / last).write_bytes(finished)
    assert rows(scan.to_arrow()) == expected
    assert rows(before.scan().to_arrow()) == expected
    assert rows(before.refresh().scan().to_arrow()) != expected


def test_as_of_takes_every_way_to_write_an_instant(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("basic_mor_v9_part"))
    first = next(iter(table.timeline)).request_time
    want = rows(table.scan(as_of=first).to_arrow())
    assert want != rows(table.scan().to_arrow())
    moment = datetime.strptime(first, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    ways: list[Any] = [moment, moment.replace(tzinfo=None), moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]]
    for way in ways:
        assert rows(table.scan(as_of=way).to_arrow()) == want
    assert rows(table.scan(options={"as.of.instant": first}).to_arrow()) == want
    with pytest.warns(HoodieWarning, match=rf"before the first commit of table \w+, {first}: there are no rows"):
        assert table.scan(as_of="2000-01-01").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["id", "nope"]}, "Unknown column 'nope'"),
        ({"columns": ["ID"]}, "Unknown column 'ID'"),
        ({"columns": ["id", "id"]}, "asked for twice"),
        ({"columns": "id"}, "must be a list"),
        ({"filter": "nope = 1"}, "nope"),
        ({"filter": "price >"}, "filter"),
        ({"filter": "price > (select 1)"}, "(?i)subquer|select"),
        ({"as_of": "yesterday"}, "is not an instant"),
        ({"as_of": "2026"}, "is not an instant"),
        ({"limit": -1}, "limit"),
        ({"batch_rows": 0}, "batch_rows"),
        ({"memory_limit": -5}, "memory_limit"),
        ({"integrity": "maybe"}, "integrity"),
        ({"query_type": "snap"}, "Unknown query type"),
        ({"merger": "com.acme.Merger"}, "must be a RecordMerger"),
        ({"options": {"hoodie.datasource.merge.type": "guess"}}, "hoodie.datasource.merge.type cannot be 'guess'"),
    ],
)
def test_a_bad_question_is_refused(corpus: Corpus, arguments: dict[str, Any], message: str) -> None:
    table = HoodieTable.open(corpus(TABLE))
    with pytest.raises(InvalidQueryError, match=message):
        table.scan(**arguments).to_arrow()


def test_an_incremental_query_without_a_start_says_so(corpus: Corpus) -> None:
    with pytest.raises(InvalidQueryError, match="has no start"):
        HoodieTable.open(corpus(TABLE)).scan(query_type="incremental")


def test_missing_tables_are_named(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing" / "here"):
        with pytest.raises(TableNotFoundError, match=str(place)):
            HoodieTable.open(place)
    assert issubclass(TableNotFoundError, FileNotFoundError)


def test_nulls_against_ordering_values_name_the_key_and_the_place(corpus: Corpus) -> None:
    with pytest.raises(MergeError, match=r"do not compare.*key=.*file_group="):
        HoodieTable.open(corpus("null_ordering_bigint_mor_v9")).scan().to_arrow()


def _log_file(place: Path) -> Path:
    return next(path for path in sorted(place.rglob(".*.log.*")) if path.stat().st_size > 100)


def test_a_torn_log_tail_is_skipped_with_a_warning_and_refused_when_strict(corpus_copy: Corpus) -> None:
    place = corpus_copy("basic_mor_v9_part")
    log = _log_file(place)
    log.write_bytes(log.read_bytes()[:-20])
    table = HoodieTable.open(place)
    with pytest.warns(match="Skipped a corrupt log block"):
        table.scan().to_arrow()
    with pytest.raises(CorruptFileError, match=log.name):
        table.scan(integrity="strict").to_arrow()


def test_every_truncation_of_a_log_file_gives_javas_rows_or_says_what_is_wrong(corpus_copy: Corpus) -> None:
    place = corpus_copy("basic_mor_v9_part")
    log = _log_file(place)
    whole = log.read_bytes()
    table = HoodieTable.open(place)
    full = rows(table.scan().to_arrow())
    log.write_bytes(b"")
    without = rows(HoodieTable.open(place).scan().to_arrow())
    assert without != full
    for size in range(len(whole)):
        log.write_bytes(whole[:size])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert rows(table.scan().to_arrow()) == without
        assert bool(told) == (size > 6), size  # the magic alone, or less, is an empty file
        with pytest.raises(CorruptFileError):
            table.scan(integrity="strict").to_arrow()


def test_a_truncated_base_file_is_an_error_with_its_path(corpus_copy: Corpus) -> None:
    place = corpus_copy("basic_mor_v9_part")
    base = next(iter(sorted(place.rglob("*.parquet"))))
    for cut in (0, 3, 200, base.stat().st_size - 1):
        base.write_bytes(base.read_bytes()[:cut].ljust(cut, b"x"))
        with pytest.raises(CorruptFileError, match=base.name):
            HoodieTable.open(place).scan().to_arrow()


def test_a_missing_data_file_is_named(corpus_copy: Corpus) -> None:
    place = corpus_copy("basic_mor_v9_part")
    scan = HoodieTable.open(place).scan()
    tasks = scan.tasks()
    base = next(iter(sorted(place.rglob("*.parquet"))))
    base.unlink()
    with pytest.raises(HoodieError, match=base.name):
        [batch for task in tasks for batch in task.to_batches()]


@pytest.mark.filterwarnings("ignore::hoodie_py.errors.HoodieWarning")
@pytest.mark.parametrize("name", [n for n in readable() if "damaged" not in n and "appended" not in n])
def test_strict_reads_of_whole_tables_are_the_same(corpus: Corpus, name: str) -> None:
    if name == "empty_log_file_mor_v9":
        with pytest.raises(CorruptFileError, match="statistics say"):
            HoodieTable.open(corpus(name)).scan(integrity="strict").to_arrow()
        return
    table = HoodieTable.open(corpus(name))
    assert rows(table.scan(integrity="strict").to_arrow()) == rows(table.scan().to_arrow())


def test_tables_and_scans_describe_themselves(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus(TABLE))
    scan = table.scan(columns=["id"], filter="price > 10", limit=3)
    assert TABLE in repr(table)
    assert "version 9" in repr(table)
    assert "1 columns" in repr(scan)
    assert "price" in repr(scan)
    assert "<table>" in table._repr_html_()
    assert "limit" in scan._repr_html_()


def test_a_store_that_fails_is_no_corrupt_file(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("basic_cow_v9_part"))
    denied = failing_requests(reads(r"\.parquet$"), StorageError("access denied", operation="read"))
    with far_store(), denied, pytest.raises(StorageError, match="access denied"):
        table.scan().to_arrow()


def test_the_table_shows_what_was_changed_through_it(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    options = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
    table = HoodieTable.create(tmp_path, schema, record_key="id", ordering="ts")
    for ts in range(3):
        table.upsert([{"id": "a", "ts": ts}], options)
    inspect = table.inspect

    def newest() -> tuple[str, str]:
        last = table.timeline.last
        assert last is not None
        return last.action, last.state

    assert table.schedule_compaction(options=options) is not None
    assert newest() == ("compaction", "requested")
    assert table.inspect is not inspect
    table.rollback(table.timeline.instants[-1].request_time, options)
    assert newest() == ("deltacommit", "completed")
    planned = table.schedule_compaction(options=options)
    assert table.run_compaction(planned, options=options).instant == planned
    assert newest() == ("commit", "completed")
    table.upsert([{"id": "a", "ts": 5}], options)
    table.compact(options=options)
    assert newest() == ("commit", "completed")
    assert [len(each.log_files) for each in table.file_slices()] == [0]
    assert table.clean(1, options).files_deleted
    assert newest() == ("clean", "completed")
    before = table._snapshot
    assert table.clean(1, options).instant is None
    assert table.schedule_compaction(options=options) is None
    assert table._snapshot is before
