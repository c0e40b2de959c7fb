"""Strict reads find every file of a snapshot that is gone or shorter, and nothing in tables that are whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import CorruptFileError, HoodieTable, UnsupportedFeatureError
from hoodie_py.errors import FileMissingError, HoodieError, InvalidQueryError, TableNotFoundError
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.table.view.integrity import find_expected_sizes
from integration.corpus_mergers import CORPUS_MERGERS
from integration.corpus_queries import DAMAGED, Query, parameters
from tests.corpus import corpus_names
from tests.table.tables import V6, make_table, open_view
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, Kind, row

DAMAGED_BY_HAND = ("empty_log_file_mor_v9", *DAMAGED)
T1, T2 = "20260101000001000", "20260101000002000"
BROKEN = {"empty_log_file_mor_v9"}  # its log file was emptied by hand
NAMES = corpus_names()


def strictly(query: Query, base: Path) -> None:
    table = HoodieTable.open(base)
    kind = "snapshot" if query.type == "time_travel" else query.type
    merger = CORPUS_MERGERS[query.merger] if query.merger else None
    scan = table.scan(filter=query.filter, query_type=kind, merger=merger, options=query.options, integrity="strict")
    scan.snapshot.check_complete(scan.query_type, scan.predicate)
    assert scan.count() >= 0


@pytest.mark.filterwarnings("ignore:.* is before the first commit:hoodie_py.HoodieWarning")
@pytest.mark.parametrize("query", parameters({"snapshot", "read_optimized", "time_travel"}))
def test_whole_tables_pass(query: Query, corpus: Callable[[str], Path]):
    if query.java_error or query.subpath:
        return
    if query.case.startswith(DAMAGED_BY_HAND) and query.type != "read_optimized":
        with pytest.raises(CorruptFileError):
            strictly(query, corpus(query.case))
        return
    strictly(query, corpus(query.case))


@pytest.mark.parametrize("name", corpus_names())
def test_any_file_of_the_snapshot_that_is_gone_is_named(name: str, corpus: Callable[[str], Path], tmp_path: Path):
    original = corpus(name)
    try:
        slices = HoodieTable.open(original).file_slices()
        HoodieTable.open(original).scan(integrity="strict").tasks()
    except (UnsupportedFeatureError, TableNotFoundError):
        return
    paths = [log.path for each in slices for log in each.log_files]
    paths += [each.base_file.path for each in slices if each.base_file is not None]
    base = Path(shutil.copytree(original, tmp_path / "table"))
    for path in paths[:40]:
        (base / path).unlink()
        if is_of_commits(original, path):
            with pytest.raises((FileMissingError, UnsupportedFeatureError), match=Path(path).name.split("_")[0]):
                HoodieTable.open(base).scan(integrity="strict").tasks()
        else:
            assert HoodieTable.open(base).scan(integrity="strict").tasks()
        shutil.copy2(original / path, base / path)


def is_of_commits(base: Path, path: str) -> bool:
    """Whether a completed write is in a file: up to version 6 slices list what rollbacks took back, too."""
    view = open_view(base)
    if not view.visibility.logs_carry_base_instant or not path.endswith(tuple("0123456789")):
        return True
    blocks = [block for block in iterate_blocks((base / path).read_bytes()) if isinstance(block, LogBlock)]
    return any(block.is_rollback or view.visibility.is_committed(block.instant_time or "") for block in blocks)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_is_gone_by_right_is_not_missed(kind: Kind, tmp_path: Path):
    table = HoodieTable.open(kind.create(tmp_path))
    cleaned = QUICK | {"hoodie.clean.commits.retained": 1}
    for ts in range(1, 6):
        table.upsert([row(i, ts, f"v{ts}") for i in range(4)], options=QUICK)
        if kind.merge_on_read and ts % 2:
            table = table.refresh()
            table.compact(options=QUICK)
        table = table.refresh()
        table.clean(options=cleaned)
        assert table.refresh().scan(integrity="strict").count() == 4
    table = table.refresh()
    table.insert_overwrite_table([row(9)], options=QUICK)
    assert table.scan(integrity="strict").count() == 1
    table.upsert([row(9, 2)], options=QUICK)
    table = table.refresh()
    table.clean(options=cleaned)
    assert table.refresh().scan(integrity="strict").count() == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.partitioned], ids=str)
def test_a_partition_that_is_gone_is_missed_where_the_query_looks(kind: Kind, tmp_path: Path):
    table = HoodieTable.open(kind.create(tmp_path))
    table.upsert([row(i) for i in range(4)], options=QUICK)
    shutil.rmtree(tmp_path / "p1")
    assert table.refresh().scan().count() == 2
    assert table.refresh().scan(filter="part = 'p0'", integrity="strict").count() == 2
    for scan in (table.refresh().scan(integrity="strict"), table.scan(filter="ts > 0", integrity="strict")):
        with pytest.raises(FileMissingError, match="1 of the files that commits of the table name are gone: p1/"):
            scan.to_arrow()


def test_as_of_the_past_what_cleans_keep_is_not_missed(tmp_path: Path):
    table = HoodieTable.open(Kind(9, False).create(tmp_path))
    for ts in range(1, 5):
        table.upsert([row(0, ts)], options=QUICK)
    table = table.refresh()
    first, last = table.timeline.select_writes().instants[0].request_time, table.timeline.last
    assert table.scan(as_of=first, integrity="strict").count() == 1
    by_versions = QUICK | {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    assert table.clean(options=by_versions).files_deleted == 3
    with pytest.raises(InvalidQueryError, match="cleaned"):
        table.refresh().scan(as_of=first, integrity="strict").count()
    assert last is not None
    assert table.refresh().scan(as_of=last.request_time, integrity="strict").count() == 1
    next((tmp_path / "p0").glob("*.parquet")).unlink()
    for scan in (table.refresh().scan(integrity="strict"), table.scan(as_of=last.request_time)):
        with pytest.raises(HoodieError, match=r"gone|were cleaned"):  # the past does not tell lost from cleaned
            scan.to_arrow()


@pytest.mark.parametrize("name", NAMES)
def test_files_are_what_the_commits_say(name: str, corpus: Callable[[str], Path]):
    view = open_view(corpus(name))
    slices = view.list_slices()
    sizes = find_expected_sizes(view.timeline, slices)
    listed = {log.path: log.size for each in slices for log in each.log_files}
    listed |= {each.base_file.path: each.base_file.size for each in slices if each.base_file is not None}
    assert sizes.keys() <= listed.keys()
    wrong = {path for path, size in sizes.items() if listed[path] != size}
    assert bool(wrong) == (name in BROKEN)
    if not view.timeline.read_archive().instants and "rollback" not in name and not name.startswith("inflight"):
        assert sizes.keys() == listed.keys()


def test_a_log_file_of_version_6_may_be_longer_but_not_shorter(tmp_path: Path):
    name = f".a-0_{T1}.log.1_0-0-0"
    stats = [{"fileId": "a-0", "path": name, "logVersion": 1, "logOffset": 10, "fileSizeInBytes": 30}]
    files = {
        ".hoodie_partition_metadata": b"", f".hoodie/{T1}.deltacommit": {"partitionToWriteStats": {"": stats}},
    }  # fmt: skip
    for size, expected in ((50, 50), (40, 40), (39, 40)):
        root = make_table(tmp_path / str(size), {**files, name: b"x" * size}, **V6)
        view = open_view(root)
        assert find_expected_sizes(view.timeline, view.list_slices()) == {name: expected}


def test_from_version_8_on_log_files_do_not_grow(tmp_path: Path):
    name = f".a-0_{T1}.log.1_0-0-0"
    stats = [{"fileId": "a-0", "path": name, "logVersion": 1, "logOffset": 0, "fileSizeInBytes": 30}]
    files = {
        ".hoodie_partition_metadata": b"",
        f".hoodie/timeline/{T1}_{T2}.deltacommit": {"partitionToWriteStats": {"": stats}},
        name: b"x" * 50,
    }  # fmt: skip
    view = open_view(make_table(tmp_path, files))
    assert find_expected_sizes(view.timeline, view.list_slices()) == {name: 30}
