"""Rows of ranges of commits: what merges, what is read, and what is said where files are gone. Java's answers to many
more ranges are in integration/test_corpus.py.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable, HoodieWarning, InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from integration.histories.overlapping import Pause, open_paused
from tests.table.archives import archive
from tests.writer.compaction_tables import QUICK

Corpus = Callable[[str], Path]
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("price", pa.int64())])
KINDS = [("MERGE_ON_READ", 9), ("MERGE_ON_READ", 8), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9), ("COPY_ON_WRITE", 6)]


def row(key: str, ts: int, price: int, part: str = "p") -> dict[str, Any]:
    return {"id": key, "part": part, "ts": ts, "price": price}


def make(place: Path, kind: tuple[str, int] = KINDS[0], **arguments: Any) -> HoodieTable:
    return HoodieTable.create(
        place, SCHEMA, record_key="id", ordering="ts", partition_by="part", table_type=kind[0], table_version=kind[1],
        **arguments,
    )  # fmt: skip


def times(table: HoodieTable) -> list[str]:
    """The commits' times that ranges of the table compare."""
    return [
        each.completion_time or each.request_time if table.config.version >= 8 else each.request_time
        for each in table.timeline.select_writes()
    ]


def prices(scan: Any) -> dict[str, int]:
    found = scan.to_arrow().to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: each["price"] for each in found}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_each_commit_gives_its_rows(tmp_path: Path, kind: tuple[str, int]) -> None:
    table = make(tmp_path / "t", kind)
    table.upsert([row("a", 1, 1), row("b", 1, 1)])
    table.upsert([row("a", 2, 2), row("c", 2, 2, "q")])
    table.delete(["b"]) if kind[0] == "MERGE_ON_READ" else table.delete([{"id": "b", "part": "p"}])
    table.upsert([row("a", 3, 3)])
    first, second, third, fourth = times(table)
    assert prices(table.incremental(end=first)) == {"a": 1, "b": 1}
    assert prices(table.incremental(first, second)) == {"a": 2, "c": 2}
    assert prices(table.incremental(second, third)) == {}
    assert prices(table.incremental(third)) == prices(table.incremental(third, fourth)) == {"a": 3}
    assert prices(table.incremental(first, third)) == {"a": 2, "c": 2}
    assert prices(table.incremental()) == {"a": 3, "c": 2}


def test_an_update_that_loses_against_an_older_row_is_in_its_commits_range(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 10, 1)])
    table.upsert([row("a", 5, 2)])
    first, second = times(table)
    assert prices(table.scan()) == {"a": 1}
    assert prices(table.incremental(first, second)) == {"a": 2}


def test_base_rows_of_earlier_commits_do_not_merge(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 10, 1), row("b", 1, 1)])
    table.upsert([row("b", 2, 2)])
    table.compact()
    table.upsert([row("a", 5, 3)])
    first, second, compacted, last = times(table)
    assert prices(table.incremental(first)) == {"a": 3, "b": 2}  # the base file of the compaction has a newer "a"
    assert prices(table.incremental(second, compacted)) == {}
    assert prices(table.incremental(compacted, last)) == {"a": 3}


def test_filters_columns_and_limits(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 1, 1), row("b", 1, 1)])
    table.upsert([row("a", 2, 2), row("b", 2, 3), row("c", 2, 4, "q")])
    first, _ = times(table)
    scan = table.incremental(first, columns=["price"], filter="price > 2")
    assert sorted(scan.to_arrow()["price"].to_pylist()) == [3, 4]
    assert scan.count() == 2
    assert table.incremental(first, limit=1).to_arrow().num_rows == 1
    assert [task.file_slice.partition_path for task in table.incremental(first, filter="part = 'q'").tasks()] == ["q"]
    assert prices(table.incremental(first, options={"hoodie.datasource.read.incr.path.glob": "/q/*"})) == {"c": 4}
    assert prices(
        table.incremental(first, options={"hoodie.datasource.read.incr.filters": "price > 2, price < 4"})
    ) == {"b": 3}


def test_options_ask_for_a_range(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 1, 1)])
    table.upsert([row("b", 2, 2)])
    first, second = times(table)
    begin, end = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
    asked = {"hoodie.datasource.query.type": "incremental", begin: first}
    assert prices(table.scan(options=asked)) == {"b": 2}
    assert prices(table.scan(options={**asked, begin: "000", end: first})) == {"a": 1}
    with pytest.raises(InvalidQueryError, match="has no start"):
        table.scan(query_type="incremental")
    with pytest.raises(InvalidQueryError, match="no instant of the past"):
        table.incremental(first, options={"as.of.instant": second})


def test_replaced_groups_are_left_out(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 1, 1), row("b", 1, 1, "q")])
    table.insert_overwrite([row("c", 2, 2)])
    first, second = times(table)
    assert prices(table.incremental(first, second)) == {"c": 2}
    assert prices(table.incremental(end=first)) == {"a": 1, "b": 1}
    assert prices(table.incremental()) == {"b": 1, "c": 2}


def test_only_files_of_the_range_are_opened(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 1, 1), row("b", 1, 1, "q")])
    table.upsert([row("a", 2, 2)])
    first, _ = times(table)
    for base in (tmp_path / "t").rglob("*.parquet"):
        base.write_bytes(b"")
    assert prices(table.incremental(first)) == {"a": 2}


def clean_first_commit(place: Path, **arguments: Any) -> HoodieTable:
    """A table whose first base file was cleaned."""
    table = make(place, ("COPY_ON_WRITE", 9), **arguments)
    for number in range(1, 5):
        table.upsert([row("a", number, number), *([row("b", 1, 1)] if number == 1 else [])])
    table.clean(retain_commits=1)
    return table


def test_a_cleaned_range_reads_what_is_left_of_its_commits_and_says_so(tmp_path: Path) -> None:
    table = clean_first_commit(tmp_path / "t")
    first = times(table)[0]
    with pytest.warns(HoodieWarning, match="What is left of the file slices at its end is read"):
        assert prices(table.incremental(end=first)) == {"b": 1}
    assert prices(table.incremental()) == {"a": 4, "b": 1}


def test_a_cleaned_range_without_the_fall_back_names_the_range_that_can_be_had(tmp_path: Path) -> None:
    table = clean_first_commit(tmp_path / "t")
    first, *_, last = times(table)
    with pytest.raises(InvalidQueryError, match=rf"are gone(.|\n)*from {first} to {last}"):
        table.incremental(end=first, options={FALLBACK: "false"}).to_arrow()
    assert prices(table.incremental(options={FALLBACK: "false"})) == {"a": 4, "b": 1}  # it needs the last file only


def test_partial_updates_are_filled_from_versions_before_the_range(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("merge_into_partial_mor_v9"))
    commits = list(table.timeline.select_writes())
    for start, end in itertools.combinations(["000", *times(table)], 2):
        last = [each.request_time for each in commits if (each.completion_time or "") <= end][-1]
        inside = {each.request_time for each in commits if start < (each.completion_time or "") <= end}
        then = table.scan(as_of=last).to_arrow().to_pylist()
        expected = sorted((each for each in then if each["_hoodie_commit_time"] in inside), key=str)
        assert sorted(table.incremental(start, end).to_arrow().to_pylist(), key=str) == expected
        assert table.incremental(start, end, columns=["id"]).count() == len(expected)


def test_partial_updates_are_filled_from_what_was_known_when_the_range_was_planned(
    corpus_copy: Callable[[str], Path],
) -> None:
    """A commit that was requested before the range's end and completes later is not in the range."""
    base = corpus_copy("merge_into_partial_mor_v9")
    timeline = base / ".hoodie/timeline"
    (late,) = timeline.glob("20261121102604018_*.deltacommit")
    hidden = late.with_name("aside")
    late.rename(hidden)
    scan = HoodieTable.open(base).incremental("20261121102601792")
    before = sorted(scan.to_arrow().to_pylist(), key=str)
    tasks = scan.tasks()
    hidden.rename(late.with_name("20261121102604018_20991121102605095.deltacommit"))
    again = [row for task in tasks for batch in task.to_batches() for row in batch.to_pylist()]
    assert sorted(again, key=str) == before
    assert {each["_hoodie_commit_time"] for each in before} == {"20261121102605310"}


def test_partial_updates_are_filled_without_what_landed_after_the_range(tmp_path: Path) -> None:
    """Although it was requested before the range's last commit."""
    base, beside = tmp_path / "t", {**QUICK, "hoodie.clean.failed.writes.policy": "LAZY"}
    beside |= {"hoodie.parquet.small.file.limit": "0", "hoodie.spark.sql.merge.into.partial.updates": "true"}
    table = HoodieTable.create(
        base, SCHEMA, record_key="id", ordering="ts", table_type="MERGE_ON_READ", merge_mode="COMMIT_TIME_ORDERING"
    )
    table.insert([row("a", 1, 1), row("b", 1, 1)], beside)
    table.insert([row("z", 1, 1)], beside)  # in a file group of its own
    assert table.update({"price": "7"}, "id in ('a', 'b')", options=beside).rows_updated == 2
    known = frozenset(each.request_time for each in HoodieTable.open(base).timeline)
    pause = Pause(lambda: HoodieTable.open(base).delete(["z"], beside), known)
    open_paused(str(base), pause).delete(["a"], beside)
    assert pause.error is None
    table = HoodieTable.open(base)
    last, ends = table.timeline.select_writes().instants[-2:]
    assert (last.completion_time or "") > (ends.completion_time or "")
    assert prices(table.incremental(end=ends.completion_time)) == {"a": 7, "b": 7}
    assert prices(table.incremental()) == {"b": 7}


def test_an_archived_commit_whose_metadata_is_lost_is_an_error_and_not_an_empty_commit(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 1, 1)])
    table.upsert([row("b", 2, 2)])
    first = table.timeline.instants[0]
    archive(tmp_path / "t", [first.request_time])
    (history,) = (tmp_path / "t/.hoodie/timeline/history").glob("*.parquet")
    kept = pq.read_table(history)
    lost = kept.set_column(kept.schema.get_field_index("metadata"), "metadata", pa.nulls(len(kept), pa.binary()))
    pq.write_table(lost, history)
    table = HoodieTable.open(tmp_path / "t")
    assert prices(table.incremental()) == {"a": 1, "b": 2}
    with pytest.raises(InvalidTableError, match="does not have a commit's metadata"):
        table.incremental(options={FALLBACK: "false"}).to_arrow()


def test_a_range_of_version_6_says_which_archived_commits_it_leaves_out(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("archived_timeline_mor_v6"))
    first = table.timeline.select_writes().instants[0].request_time
    for end in (None, str(int(first) - 1)):
        with pytest.warns(HoodieWarning, match=r"[0-9]+ commits of the range .* are archived"):
            table.incremental(end=end).to_arrow()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.incremental(first).to_arrow()
        table.incremental(options={FALLBACK: "true"}).to_arrow()


def test_a_commit_that_ended_after_a_compaction_was_planned(tmp_path: Path) -> None:
    """Java 1.2.0 gives the same of both snapshots, and no row of the range."""
    base = tmp_path / "t"
    table = make(base)
    table.upsert([row("a", 1, 1)])
    table.upsert([row("a", 2, 2)])
    late = table.upsert([row("a", 3, 3)]).instant
    aside = tmp_path / "aside"
    aside.mkdir()
    moved = [*(base / ".hoodie/timeline").glob(f"{late}*"), *base.glob(f"p/.*_{late}.log*")]
    for path in moved:
        path.rename(aside / path.name)
    planned = HoodieTable.open(base).schedule_compaction()
    assert planned is not None
    for path in moved:
        name = path.name if path.suffix != ".deltacommit" else f"{late}_{int(planned) + 5000}.deltacommit"
        (aside / path.name).rename(path.with_name(name))
    table = HoodieTable.open(base)
    assert prices(table.scan()) == {"a": 3}
    assert prices(table.scan(as_of=late)) == {"a": 2}
    assert prices(table.incremental(str(int(planned) + 1000))) == {"a": 3}


def test_tables_without_meta_fields_have_no_ranges(corpus: Corpus) -> None:
    with pytest.raises(UnsupportedFeatureError, match="without meta fields"):
        HoodieTable.open(corpus("nometa_mor_v6")).incremental()


def test_the_schema_may_be_that_of_the_ranges_end(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("evolve_add_column_mor_v9"))
    first = times(table)[0]
    now = table.incremental(end=first).schema.names
    then = table.incremental(end=first, options={"hoodie.datasource.read.schema.use.end.instanttime": "true"}).schema
    assert set(then.names) < set(now)


def test_a_scan_says_its_kind_and_stays_as_it_was_made(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a", 1, 1)])
    scan = table.incremental()
    assert "incremental" in repr(scan)
    HoodieTable.open(tmp_path / "t").upsert([row("b", 2, 2)])
    assert prices(scan) == {"a": 1}


def test_tasks_stay_small_for_ranges_of_many_commits(tmp_path: Path) -> None:
    import pickle

    from hoodie_py.reader.file_slice import InstantRange
    from hoodie_py.table.incremental.range_task import make_row_filter

    every = tuple(f"2026112510{number:08d}" for number in range(1500))
    table = make(tmp_path / "t")
    table.upsert([row("a", 1, 1)])
    assert max(len(pickle.dumps(task)) for task in table.incremental().tasks()) < 16 << 10
    assert len(pickle.dumps(make_row_filter(InstantRange(every[0], every[-1], others=every[1:-1:2])))) < 24 << 10


def test_latest_rows_are_those_of_the_newest_partial_updates(tmp_path: Path) -> None:
    """A row that was updated after the range is not in its latest rows, also where the update has some columns only.

    What is left of the range has it, from the base file that the range wrote.
    """
    table = HoodieTable.create(tmp_path, SCHEMA, record_key="id", partition_by="part", table_version=9)
    table.upsert([row("a", 1, 1), row("b", 1, 1)])
    first = times(table)[0]
    table.update({"price": "price + 1"}, "id = 'a'")
    for number in range(5):
        table.upsert([row("c", number, 1, "q")])
    table.archive({"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1})
    assert table.timeline.is_archived_before(first)
    with pytest.warns(HoodieWarning, match="What is left of the file slices at its end is read"):
        assert prices(table.incremental(end=first)) == {"a": 1, "b": 1}
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.read.end.instanttime": first,
    }
    with pytest.warns(HoodieWarning, match="The latest file slices are read"):
        assert prices(table.scan(options=options)) == {"b": 1}
