"""The view over small tables made of names: replaced groups, partitions without metafile, hostile names."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable, HoodieWarning
from hoodie_py.errors import FileMissingError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.partitions import PARTITION_METAFILES
from hoodie_py.writer.handles.data_file import PARTITION_METAFILE
from hoodie_py.writer.rollback.written_files import find_written_files
from integration.corpus_queries import Query, check, parameters
from tests.corpus import corpus_names, load_case
from tests.table.tables import V6, make_table, open_view
from tests.watched_requests import Request, find_read_commits
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, Kind, Row, contents

T1, T2, T3, T4 = (f"2026010100000{number}000" for number in range(1, 5))
META = {".hoodie_partition_metadata": b"partitionDepth=0\n"}


def parquet(instant: str, file_id: str = "a-0", token: str = "0-0-0") -> str:
    return f"{file_id}_{token}_{instant}.parquet"


def commit(request: str, completed: str, action: str = "deltacommit") -> str:
    return f".hoodie/timeline/{request}_{completed}.{action}"


def test_a_table_without_commits_shows_nothing(tmp_path: Path):
    view = open_view(make_table(tmp_path, {**META, parquet(T1): b""}))
    assert view.list_slices() == []
    assert view.list_base_files() == []
    assert view.last_instant is None


def test_a_missing_partition_shows_nothing(tmp_path: Path):
    view = open_view(make_table(tmp_path, {commit(T1, T2): b"{}"}))
    assert view.list_slices(partitions=["gone"]) == []


@pytest.mark.parametrize("path", ["../other", "/etc", "a/../../b", "s3://bucket/x"])
def test_partitions_outside_the_table_are_refused(tmp_path: Path, path: str):
    view = open_view(make_table(tmp_path, {commit(T1, T2): b"{}"}))
    with pytest.raises(InvalidTableError):
        view.list_slices(partitions=[path])


def test_replaced_groups_are_gone_from_the_replace_on(tmp_path: Path):
    files = {
        **META, parquet(T1): b"", parquet(T2, "b-0"): b"",
        commit(T1, T1): b"{}", commit(T2, T3, "replacecommit"): {"partitionToReplaceFileIds": {"": ["a-0"]}},
    }  # fmt: skip
    view = open_view(make_table(tmp_path, files))
    assert [each.file_id for each in view.list_slices()] == ["b-0"]
    assert [each.file_id for each in view.list_slices(T1)] == ["a-0"]


def test_the_last_of_several_replaces_decides(tmp_path: Path):
    replace = {"partitionToReplaceFileIds": {"": ["a-0"]}}
    files = {
        **META, parquet(T1): b"", commit(T1, T1): b"{}",
        commit(T2, T2, "replacecommit"): replace, commit(T4, T4, "replacecommit"): replace,
    }  # fmt: skip
    view = open_view(make_table(tmp_path, files))
    assert [each.file_id for each in view.list_slices(T3)] == ["a-0"]
    assert view.list_slices(T4) == []


def test_replaced_partition_outside_the_table_is_refused(tmp_path: Path):
    replace = {"partitionToReplaceFileIds": {"../x": ["a-0"]}}
    view = open_view(make_table(tmp_path, {**META, parquet(T1): b"", commit(T1, T1, "replacecommit"): replace}))
    with pytest.raises(InvalidTableError):
        view.list_slices()


def test_pending_clustering_output_is_ignored(tmp_path: Path):
    files = {
        **META, parquet(T1): b"", parquet(T2, "c-0"): b"", commit(T1, T1): b"{}",
        f".hoodie/timeline/{T2}.clustering.requested": b"", f".hoodie/timeline/{T2}.clustering.inflight": b"",
    }  # fmt: skip
    assert [each.file_id for each in open_view(make_table(tmp_path, files)).list_slices()] == ["a-0"]


def test_base_file_of_a_retried_task_loses_to_the_committed_one(tmp_path: Path):
    stat = {"fileId": "a-0", "path": parquet(T1, token="0-1-0"), "partitionPath": ""}
    files = {
        **META, parquet(T1, token="0-1-0"): b"", parquet(T1, token="0-1-1"): b"",
        commit(T1, T1): {"partitionToWriteStats": {"": [stat]}},
    }  # fmt: skip
    (only,) = open_view(make_table(tmp_path, files)).list_slices()
    assert only.base_file.path == parquet(T1, token="0-1-0")


@pytest.mark.parametrize("extension", ["orc", "hfile", "lance"])
def test_slices_have_base_files_of_all_formats(tmp_path: Path, extension: str):
    name = parquet(T1).replace("parquet", extension)
    view = open_view(make_table(tmp_path, {**META, name: b"", commit(T1, T1): b"{}"}))
    for (only,) in (view.list_slices(), view.list_base_files()):
        assert only.base_file is not None
        assert only.base_file.path == name


def test_files_that_another_system_registered_are_refused(tmp_path: Path):
    view = open_view(make_table(tmp_path, {**META, "data.parquet_1_hudiext": b"", commit(T1, T1): b"{}"}))
    with pytest.raises(UnsupportedFeatureError):
        view.list_slices()


def test_bootstrapped_base_files_need_their_index_until_they_are_rewritten(tmp_path: Path):
    skeleton = "00000000000001"
    files = {**META, parquet(skeleton): b"", f".hoodie/timeline/{skeleton}_{T1}.commit": b"{}"}
    extra = {"hoodie.bootstrap.base.path": "/lake/source"}
    with pytest.raises(FileMissingError, match="bootstrap index"):
        open_view(make_table(tmp_path / "a", files, **extra)).list_slices()
    rewritten = {**files, parquet(T2): b"", commit(T2, T3): b"{}"}
    view = open_view(make_table(tmp_path / "b", rewritten, **extra))
    assert [each.base_instant for each in view.list_slices()] == [T2]


def test_copy_on_write_tables_are_read_from_base_files(tmp_path: Path):
    files = {**META, parquet(T1): b"", f".a-0_{T1}.log.1_0-0-0": b"", commit(T1, T1, "commit"): b"{}"}
    view = open_view(make_table(tmp_path, files, **{"hoodie.table.type": "COPY_ON_WRITE"}))
    assert [each.log_files for each in view.list_slices()] == [()]


def test_block_rules_of_version_6(tmp_path: Path):
    files = {f".hoodie/{T2}.deltacommit": b"", f".hoodie/{T3}.deltacommit.inflight": b""}
    rules = open_view(make_table(tmp_path, files, **V6)).make_block_rules()
    assert rules.query_instant == T2
    assert [rules.accepts(time) for time in (T1, T2, T3, T4)] == [True, True, False, False]
    assert pickle.loads(pickle.dumps(rules)) == rules


def test_block_rules_from_version_8_on(tmp_path: Path):
    rules = open_view(make_table(tmp_path, {commit(T2, T3): b""})).make_block_rules(T3)
    assert [rules.accepts(time) for time in (T1, T2, T3, T4)] == [True, True, True, False]


def test_same_answer_while_the_table_changes(tmp_path: Path):
    view = open_view(make_table(tmp_path, {**META, parquet(T1): b"", commit(T1, T1): b"{}"}))
    before = view.list_slices()
    make_table(tmp_path, {parquet(T2): b"", parquet(T2, "b-0"): b"", commit(T2, T2): b"{}"})
    assert view.list_slices() == before
    assert len(open_view(tmp_path).list_slices()) == 2


MOR_V6 = [
    name for name in corpus_names()
    if load_case(name)["table_version"] == 6 and load_case(name)["table_type"] == "MERGE_ON_READ"
    # The first was written in the layout of version 9; log files of the other were put together by hand.
    and name not in {"downgraded_9_to_6_mor", "appended_blocks_mor_v6"}
]  # fmt: skip


@pytest.mark.parametrize("name", MOR_V6)
def test_version_6_slices_are_those_in_the_write_statistics(name: str, corpus: Callable[[str], Path]):
    """In version 6 the statistic of a log file lists the slice that its writer saw."""
    view = open_view(corpus(name))
    slices = {each.file_id: each for each in view.list_slices()}
    last = {}
    writes = view.timeline.list_completed_writes()
    for metadata in view.timeline.read_all_metadata(writes):
        for stat in metadata.iterate_stats():
            if stat.file_id in slices:
                last[stat.file_id] = stat
    pending = {key[1] for key in view.visibility._pending_compactions}
    for file_id, stat in last.items():
        found = slices[file_id]
        if not (stat.file_name or "").startswith("."):
            assert found.base_file.path == stat.path
            continue
        listed = {file for file in (stat.file_name, *stat.log_files) if not file.endswith(".cdc")}
        assert listed <= {log.path.rpartition("/")[2] for log in found.log_files}
        if file_id not in pending:
            assert (found.base_file.name if found.base_file else None) == (stat.base_file or None)


MOR_V8 = [
    name for name in corpus_names()
    if load_case(name)["table_version"] >= 8 and load_case(name)["table_type"] == "MERGE_ON_READ"
    and "archived" not in name and "upgraded" not in name
]  # fmt: skip


@pytest.mark.parametrize("name", MOR_V8)
def test_slices_hold_the_committed_files_since_the_newest_base_file(name: str, corpus: Callable[[str], Path]):
    view = open_view(corpus(name))
    bases: dict[str, tuple[str, str]] = {}
    logs: dict[str, list[tuple[str, str]]] = {}
    writes = view.timeline.list_completed_writes()
    for instant, metadata in zip(writes, view.timeline.read_all_metadata(writes), strict=True):
        for stat in metadata.iterate_stats():
            if (stat.file_name or "").startswith("."):
                logs.setdefault(stat.file_id, []).append((instant.completion_time, stat.path))
            else:
                bases[stat.file_id] = max(bases.get(stat.file_id, ("", "")), (instant.request_time, stat.path))
    for each in view.list_slices():
        started, path = bases.get(each.file_id, ("", None))
        assert (each.base_file.path if each.base_file else None) == path
        expected = {log for completed, log in logs.get(each.file_id, []) if completed >= started}
        assert {log.path for log in each.log_files} == expected


def test_many_files(tmp_path: Path):
    """Slicing is linear: thousands of names take no noticeable time."""
    from hoodie_py.files import FileInfo
    from hoodie_py.table.view.file_groups import group_files
    from hoodie_py.table.view.slicing import make_slice

    view = FileSystemView(*_parts(open_view(make_table(tmp_path, {commit(T1, T1): b"{}"}))))
    names = [parquet(T1, f"f{number}-0") for number in range(5000)]
    names += [f".f0-0_{T1}.log.{number}_0-0-0" for number in range(1, 5000)]
    groups = group_files("", [FileInfo(name, 1, False) for name in names])
    slices = [make_slice(group, view.visibility) for group in groups]
    assert len(slices) == 5000
    assert [log.name.version for log in slices[0].log_files] == list(range(1, 5000))


def _parts(view: FileSystemView):
    return view.files, view.config, view.timeline


KIND = Kind(9, True)


def row(number: int, ts: int = 1, name: str = "a", part: str = "a") -> Row:
    return {"id": f"k{number}", "part": part, "ts": ts, "name": name}


def remove_metafiles(base: Path) -> int:
    """Remove every partition's metafile and return how many there were."""
    found = [path for path in base.rglob("*") if path.name in PARTITION_METAFILES and ".hoodie" not in path.parts]
    for path in found:
        path.unlink()
    return len(found)


def table_of(base: Path, kind: Kind = KIND, parts: str = "ab") -> HoodieTable:
    """Make a table of two rows a partition, without metafiles."""
    table = HoodieTable.open(kind.create(base))
    table.upsert([row(i, part=part) for i, part in enumerate(parts * 2)], options=QUICK)
    assert remove_metafiles(base) == (len(parts) if kind.partitioned else 1)
    return table.refresh()


@pytest.mark.parametrize("query", parameters({"snapshot", "read_optimized", "time_travel"}))
def test_answers_are_the_same_without_metafiles(query: Query, corpus_copy: Callable[[str], Path]):
    base = corpus_copy(query.case)
    remove_metafiles(base)
    check(query, str(base))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_operation_reaches_the_partition(kind: Kind, tmp_path: Path):
    table = table_of(tmp_path, kind)
    assert table.upsert([row(0, 2, "new", "a")], options=QUICK).rows_updated == 1
    assert contents(table)["k0"] == (2, "new")
    assert remove_metafiles(tmp_path) == 1  # the write made the folder that it wrote into a partition again
    table = table.refresh()
    assert table.delete("name = 'new'", options=QUICK).rows_deleted == 1
    remove_metafiles(tmp_path)
    if kind.merge_on_read:
        assert table.refresh().compact(options=QUICK)
        remove_metafiles(tmp_path)
    assert sorted(contents(tmp_path)) == ["k1", "k2", "k3"]
    table.refresh().insert_overwrite_table([row(7, part="c")], options=QUICK)
    assert sorted(contents(tmp_path)) == ["k7"]


def test_a_global_index_finds_keys_there(tmp_path: Path):
    table = table_of(tmp_path)
    table.upsert([row(0, 5, "moved", "b")], options=QUICK | {"hoodie.index.type": "GLOBAL_SIMPLE"})
    assert table.scan(filter="id = 'k0'").count() == 1


def test_nested_partitions_below_a_partition_count_where_commits_name_them(tmp_path: Path):
    table = HoodieTable.open(KIND.create(tmp_path))
    table.upsert([row(0, part="2024"), row(1, part="2024/01"), row(2, part="2024/01/x")], options=QUICK)
    assert sorted(contents(tmp_path)) == ["k0", "k1", "k2"]
    (tmp_path / PARTITION_METAFILE).write_bytes(b"")  # and one in the base folder hides nothing
    assert sorted(contents(tmp_path)) == ["k0", "k1", "k2"]


def test_copies_that_no_commit_names_are_left_out_with_a_warning(tmp_path: Path):
    table = table_of(tmp_path)
    shutil.copytree(tmp_path / "a", tmp_path / "a" / "backup")
    shutil.copytree(tmp_path / "a", tmp_path / ".hidden" / "a")
    with pytest.warns(HoodieWarning, match=r"neither a metafile nor a commit.*\.hidden/a, \.hidden/a/backup, a/backup"):
        assert table.scan().count() == 4


def test_what_is_not_committed_makes_no_partition(tmp_path: Path):
    table = table_of(tmp_path)
    (tmp_path / "_temporary" / "0").mkdir(parents=True)
    for name in ("part-0000.parquet", "f-0_0-0-0_20990101000000000.parquet", ".f-1_20990101000000000.log.1_0-0-0"):
        (tmp_path / "_temporary" / "0" / name).write_bytes(b"")
    assert table.scan().count() == 4
    assert find_written_files(table._snapshot, "20990101000000000") == {
        "_temporary/0": (".f-1_20990101000000000.log.1_0-0-0", "f-0_0-0-0_20990101000000000.parquet")
    }


def test_no_commit_is_read_where_all_folders_are_plain(tmp_path: Path, requests_made: list[Request]):
    table = HoodieTable.open(KIND.create(tmp_path))
    table.upsert([row(0, part="a")], options=QUICK)
    table = HoodieTable.open(tmp_path)
    assert table.schema.names
    requests_made.clear()
    assert table.scan().count() == 1
    assert find_read_commits(requests_made, tmp_path) == []
    (tmp_path / "a" / "backup").mkdir()
    shutil.copy(next((tmp_path / "a").glob("*.parquet")), tmp_path / "a" / "backup")
    with pytest.warns(HoodieWarning, match="a/backup"):
        assert HoodieTable.open(tmp_path).scan().count() == 1
    assert find_read_commits(requests_made, tmp_path) != []


def test_a_link_back_is_refused_and_links_below_partitions_are_not_followed(tmp_path: Path):
    table = HoodieTable.open(KIND.create(tmp_path))
    table.upsert([row(0, part="a")], options=QUICK)
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    assert contents(tmp_path) == {"k0": (1, "a")}
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    (tmp_path / "x" / "to_y").symlink_to(tmp_path / "y", target_is_directory=True)
    (tmp_path / "y" / "to_x").symlink_to(tmp_path / "x", target_is_directory=True)
    with pytest.raises(InvalidTableError, match="leads back"):
        contents(tmp_path)


def test_ways_over_links_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    base = KIND.create(tmp_path)
    HoodieTable.open(base).upsert([row(0, part="a")], options=QUICK)
    for level in range(20):
        for number in (level, level + 1):
            (tmp_path / f"d{number}").mkdir(exist_ok=True)
        for name in ("one", "two"):
            (tmp_path / f"d{level}" / name).symlink_to(tmp_path / f"d{level + 1}", target_is_directory=True)
    monkeypatch.setenv("HOODIE_PY_LIMITS", "linked_folders=1000")
    with pytest.raises(InvalidTableError, match="linked_folders"):
        contents(tmp_path)
