"""New records fill up small base files, the smallest first, no further than there is room, and where it pays."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.pipeline.small_files import Fill, SmallFiles, choose_small_files, fill_small_files
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from hoodie_py.writer.settings import WriteSettings
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, Kind, contents, row

PATHS = ("a", "b")


def file_slice(path: str, file_id: str, size: int) -> FileSlice:
    return FileSlice(path, file_id, "1", BaseFile(f"{path}/{file_id}", size, "1", file_id), ())


record = st.tuples(st.sampled_from(PATHS), st.sampled_from((None, None, "known")), st.booleans())
sizes = st.dictionaries(st.tuples(st.sampled_from(PATHS), st.sampled_from("xyz")), st.integers(0, 120), max_size=6)


@given(st.lists(record, max_size=40), sizes, st.integers(0, 110))
def test_new_records_fill_small_files(
    found: list[tuple[str, str | None, bool]], files: dict[tuple[str, str], int], small: int
) -> None:
    paths = pa.chunked_array([pa.array([each[0] for each in found], pa.string())])
    deletes = pa.chunked_array([pa.array([each[2] for each in found], pa.bool_())])
    whole = WriteRecords(pa.table({"p": paths}), paths, paths, deletes)
    known = pa.array([each[1] for each in found], pa.string())
    tagged = TaggedRecords(whole, known, known, np.full(len(found), -1, np.int64))
    slices = [file_slice(path, file_id, size) for (path, file_id), size in files.items()]
    chosen = sorted(
        (each for each in slices if each.base_file and each.base_file.size < small),
        key=lambda each: (files[each.partition_path, each.file_id], each.file_id),
    )
    by_path = {path: [each for each in chosen if each.partition_path == path] for path in PATHS}
    filled, groups = fill_small_files(tagged, SmallFiles(Fill.MERGE, by_path), row_bytes=10.0, file_bytes=100)
    assert filled.records is whole
    taken: dict[tuple[str, str], int] = {}
    left: dict[str, int] = {}
    for (path, before, deleted), after in zip(found, filled.file_ids.to_pylist(), strict=True):
        if before is not None or deleted:
            assert after == before
        elif after is None:
            left[path] = left.get(path, 0) + 1
        else:
            taken[path, after] = taken.get((path, after), 0) + 1
    room = {key: (100 - size) // 10 for key, size in files.items() if size < small and size <= 90}
    assert all(rows <= room[key] for key, rows in taken.items())
    assert groups == set(taken)
    for (path, file_id), rows in room.items():
        smaller = [key for key in room if key[0] == path and (files[key], key[1]) < (files[path, file_id], file_id)]
        if taken.get((path, file_id)):
            assert all(taken.get(key) == room[key] for key in smaller), "the smallest come first"
        if left.get(path):
            assert taken.get((path, file_id)) == rows


LIMIT = "hoodie.parquet.small.file.limit"
FILL = {**QUICK, LIMIT: 104857600}
CANDIDATES = "hoodie.merge.small.file.group.candidates.limit"


def groups(table: HoodieTable) -> set[str]:
    return {each.file_id for each in table.refresh().file_slices()}


def small_ids(base: Path, **options: Any) -> list[str]:
    snapshot = open_snapshot(TableFiles.open(base))
    settings = WriteSettings.from_options(options)
    return [each.file_id for each in choose_small_files(snapshot, snapshot.view.list_slices(), settings)]


@pytest.mark.parametrize("kind", [each for each in KINDS if not each.partitioned], ids=str)
def test_upserts_do_not_leave_a_file_each(tmp_path: Path, kind: Kind) -> None:
    table = HoodieTable.open(kind.create(tmp_path))
    for start in range(0, 40, 10):
        result = table.upsert([row(i, start + 1) for i in range(start, start + 12)], options=QUICK)
        assert result.rows_inserted == (12 if start == 0 else 10)
    assert len(contents(tmp_path)) == 42
    assert len(table.file_slices()) == 1
    assert table.file_slices()[0].log_files == ()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_inserts_do_not_leave_a_file_each(tmp_path: Path, kind: Kind) -> None:
    table = HoodieTable.open(kind.create(tmp_path))
    times = [table.insert([row(i) for i in (start, start + 1)], options=FILL).instant for start in (0, 2, 4)]
    assert len(contents(tmp_path)) == 6
    assert len(table.file_slices()) == (2 if kind.partitioned else 1)
    rows = table.scan(columns=["id", "_hoodie_commit_time", "_hoodie_file_name"]).to_arrow().to_pylist()
    assert {each["id"]: each["_hoodie_commit_time"] for each in rows} == {f"k{i}": times[i // 2] for i in range(6)}, (
        "rows keep the time of their commit"
    )
    names = {each.base_file.name for each in table.file_slices() if each.base_file}
    assert {each["_hoodie_file_name"] for each in rows} == names
    assert len(contents(tmp_path, as_of=times[1])) == 4
    changed = table.changes(times[0], times[2]).to_arrow() if kind.captures else None
    assert changed is None or changed.num_rows == 4


def test_a_slice_with_a_log_is_not_filled(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True, False).create(tmp_path))
    table.insert([row(0), row(1)], options=QUICK)
    [first] = groups(table)
    table.upsert([row(0, 2, "b")], options=QUICK)
    assert table.refresh().file_slices()[0].log_files
    table.insert([row(2)], options=FILL)
    [second] = groups(table) - {first}
    table.upsert([row(0, 3, "c"), row(3)], options=QUICK)
    assert groups(table) == {first, second}
    assert {each.file_id: len(each.log_files) for each in table.file_slices()} == {first: 2, second: 0}
    assert contents(tmp_path) == {"k0": (3, "c"), "k1": (1, "a"), "k2": (1, "a"), "k3": (1, "a")}


def test_a_few_files_of_a_partition_are_filled(tmp_path: Path) -> None:
    for kind, counts in ((Kind(9, True), (2, 4)), (Kind(9, False), (6, 6))):
        base = kind.create(tmp_path / str(kind))
        table = HoodieTable.open(base)
        for start, count in ((0, 200), (200, 20), (220, 60)):
            table.insert([row(i) for i in range(start, start + count)], options={**QUICK, LIMIT: 0})
        one, two = small_ids(base), small_ids(base, **{CANDIDATES: 2})
        assert (len(one), len(two)) == counts
        sizes = {each.file_id: each.base_file.size for each in table.file_slices() if each.base_file}
        by_path = {
            path: sorted(sizes[e.file_id] for e in table.file_slices() if e.partition_path == path)
            for path in ("p0", "p1")
        }
        assert [sizes[each] for each in one] == [
            size for path in ("p0", "p1") for size in by_path[path][: counts[0] // 2]
        ]
        assert small_ids(base, **{LIMIT: 1}) == []
        assert small_ids(base, **{LIMIT: 0}) == []
        assert len(contents(base)) == 280


def test_what_services_have_planned_is_not_filled(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True, False).create(tmp_path))
    table.insert([row(0)], options=QUICK)
    [held] = groups(table)
    assert table.schedule_clustering({**QUICK, "hoodie.clustering.plan.strategy.single.group.clustering.enabled": True})
    table.insert([row(1)], options=FILL)
    assert small_ids(tmp_path, **{CANDIDATES: 9}) == [each for each in groups(table) if each != held]

    other = HoodieTable.open(Kind(9, True, False).create(tmp_path / "c"))
    other.insert([row(0)], options=QUICK)
    other.upsert([row(0, 2)], options=QUICK)
    assert other.schedule_compaction(options={**QUICK, "hoodie.compact.inline.max.delta.commits": 1})
    assert small_ids(tmp_path / "c", **{CANDIDATES: 9}) == []


def test_a_log_that_is_not_committed_yet_keeps_its_slice_on_version_six(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(6, True, False).create(tmp_path))
    done = table.insert([row(0)], options=QUICK)
    [group] = groups(table)
    assert small_ids(tmp_path) == [group]
    (tmp_path / f".{group}_{done.instant}.log.1_0-1-2").write_bytes(b"#HUDI#")
    assert small_ids(tmp_path) == []


def test_the_limit_is_an_option(tmp_path: Path) -> None:
    for merge_on_read in (False, True):
        base = Kind(6, merge_on_read, False).create(tmp_path / str(merge_on_read))
        table = HoodieTable.open(base)
        for start in (0, 10):
            table.upsert([row(i) for i in range(start, start + 10)], options={**QUICK, LIMIT: 0})
        table.insert([row(i) for i in range(20, 30)], options={**QUICK, LIMIT: 0})
        assert len(table.file_slices()) == 3
        assert len(contents(base)) == 30


BLOBS = pa.schema([("id", pa.string()), ("blob", pa.binary())])
MB = 1 << 20
RATIO = "hoodie.parquet.small.file.rewrite.ratio"


def blobs(first: int, size: int) -> pa.Table:
    """Return two rows of so many bytes, which do not compress."""
    halves = [random.Random(first + each).randbytes(size // 2) for each in range(2)]
    return pa.table({"id": [f"k{first}", f"k{first + 1}"], "blob": halves}, schema=BLOBS)


def list_sizes(table: HoodieTable) -> dict[str, tuple[str, int]]:
    """Return the instant and the size of each group's base file."""
    slices = table.refresh().file_slices()
    return {each.file_id: (each.base_file.instant, each.base_file.size) for each in slices if each.base_file}


@pytest.mark.parametrize("operation", ["insert", "upsert"])
@pytest.mark.parametrize(
    ("sizes", "ratio"),
    [([MB] * 15, 12.0), ([MB // 8] * 24, 4.0), ([MB // 2, 3 * MB, MB // 4, MB // 4, 2 * MB, MB] * 3, 7.5)],
    ids=["by ratio", "cheap", "mixed"],
)
def test_files_and_rewritten_bytes_are_bounded(tmp_path: Path, operation: str, sizes: list[int], ratio: float) -> None:
    table = HoodieTable.create(tmp_path / "t", BLOBS, record_key="id")
    options = {**QUICK, RATIO: ratio}
    after: dict[str, tuple[str, int]] = {}
    for number, size in enumerate(sizes):
        before = after
        done = getattr(table, operation)(blobs(2 * number, size), options=options)
        after = list_sizes(table)
        rewritten = sum(size for each, (time, size) in before.items() if after[each][0] != time)
        assert rewritten <= max(MB, ratio * 0.4 * size * 1.1), "the rows are taken for 0.4 times their bytes"
        assert done.rows_inserted == 2
    assert table.scan().count() == 2 * len(sizes)
    least = max(MB, ratio * 0.4 * min(sizes))
    assert len(after) <= 1 + sum(size for _, size in after.values()) / least
    assert len(after) < len(sizes) / 2
    assert sum(size <= least for _, size in after.values()) <= 1, "a new file is begun where all others are larger"


@pytest.mark.parametrize(
    ("options", "files"),
    [({}, 2), ({LIMIT: 104857600}, 1), ({RATIO: 1e9}, 1), ({LIMIT: 104857600, RATIO: 4}, 2), ({RATIO: 0}, 2)],
    ids=str,
)
def test_a_limit_that_was_given_is_an_order_to_fill(tmp_path: Path, options: dict[str, Any], files: int) -> None:
    table = HoodieTable.create(tmp_path / "t", BLOBS, record_key="id")
    table.insert(blobs(0, 2 * MB), options=QUICK)
    table.insert(blobs(2, 100), options={**QUICK, **options})
    assert len(list_sizes(table)) == files
    table.insert(blobs(4, 100).to_reader(), options={**QUICK, **options})  # a stream
    assert len(list_sizes(table)) == files
    assert table.scan().count() == 6


@pytest.mark.parametrize(
    ("size", "new", "is_worth"),
    [(MB, 1, True), (MB + 1, 1, False), (4 * MB, MB, True), (5 * MB, MB, False), (32 * MB, 20 * MB, True),
     (33 * MB, 50 * MB, False)],
)  # fmt: skip
def test_a_file_is_filled_where_that_pays(size: int, new: int, is_worth: bool) -> None:
    one, small = file_slice("a", "x", size), SmallFiles(Fill.EXTEND, ratio=4.0, updates_rewrite=True)
    assert small.is_worth(one, new) == is_worth
    assert small.beside_updates([("a", "x")]).is_worth(one, new), "it is rewritten anyway"
    assert SmallFiles(Fill.EXTEND).is_worth(one, new), "Java's rule"


@pytest.mark.parametrize("merge_on_read", [False, True])
def test_new_rows_go_where_updates_rewrite_a_file(tmp_path: Path, merge_on_read: bool) -> None:
    kind = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
    table = HoodieTable.create(tmp_path / "t", BLOBS, record_key="id", table_type=kind)
    for number, size in enumerate((4 * MB, 2 * MB)):
        table.insert(blobs(2 * number, size), options=QUICK)
    [(large, _), _] = sorted(list_sizes(table).items(), key=lambda each: -each[1][1])
    done = table.upsert(pa.concat_tables([blobs(0, 200).slice(0, 1), blobs(9, 200)]), options=QUICK)
    after = table.refresh().file_slices()
    assert len(after) == (3 if merge_on_read else 2), "a log file costs less than to rewrite a base file"
    assert {each.file_id for each in after if each.base_instant == done.instant or each.log_files} >= {large}
    assert [len(each.log_files) for each in after if each.file_id == large] == [int(merge_on_read)]
    assert table.scan().count() == 6
