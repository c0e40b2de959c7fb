"""A partition without its metafile is in every answer and every operation, as it is in Java's metadata table."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable, HoodieWarning, InvalidTableError
from hoodie_py.table.view.partitions import PARTITION_METAFILES
from hoodie_py.writer.handles.data_file import PARTITION_METAFILE
from hoodie_py.writer.rollback.written_files import find_written_files
from integration.corpus_queries import Query, check, parameters
from tests.watched_requests import Request, find_read_commits
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, Kind, Row, contents

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
