"""Writes to tables of a metadata-only bootstrap: skeletons become whole files, and sources stay as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import FileMissingError, HoodieError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import META_FIELDS, METADATA_BOOTSTRAP_INSTANT
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.testing import local_s3
from hoodie_py.writer.handles.data_file import DataFile
from tests.bootstrap import move_sources
from tests.writer.bootstrapped_tables import COMPLETED, KINDS, ROWS, Bootstrapped, contents, read_sources
from tests.writer.compaction_tables import QUICK, leftovers, orphans

every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
both_types = pytest.mark.parametrize("kind", [Bootstrapped(), Bootstrapped(merge_on_read=False)], ids=str)


def whole_files(base: Path) -> list[Path]:
    """Base files with all columns."""
    return [path for path in base.glob("**/*.parquet") if not path.stem.endswith(f"_{METADATA_BOOTSTRAP_INSTANT}")]


@every_kind
def test_a_life(kind: Bootstrapped, tmp_path: Path) -> None:
    base, want = kind.create(tmp_path), kind.rows()
    before = read_sources(tmp_path)
    assert contents(base) == want
    table = HoodieTable.open(base)
    changes = [kind.row(0, 2, "b"), kind.row(1, 0, "late"), kind.row(5, 2, "c"), kind.row(100, at=0)]
    result = table.upsert(changes, options=QUICK)
    assert (result.rows_inserted, result.rows_deleted) == (1, 0)
    want |= {"k0": kind.row(0, 2, "b"), "k5": kind.row(5, 2, "c"), "k100": kind.row(100, at=0)}
    assert contents(table) == contents(base) == want
    assert table.delete(["k2", "nobody"], options=QUICK).rows_deleted == 1
    assert table.delete("name = 'n3'", options=QUICK).rows_deleted == len(kind.partitions)
    want = {key: row for key, row in want.items() if key != "k2" and row["name"] != "n3"}
    assert contents(base) == want
    if kind.merge_on_read:
        assert HoodieTable.open(base).compact(options=QUICK).instant is not None
        assert contents(base) == want
        optimized = HoodieTable.open(base).scan(query_type="read_optimized").to_arrow()
        assert sorted(optimized["id"].to_pylist()) == sorted(want)
    table = HoodieTable.open(base)
    table.upsert([kind.row(4, 3, "after")], options=QUICK)
    want["k4"] = kind.row(4, 3, "after")
    assert contents(table) == want
    first = table.scan(as_of=METADATA_BOOTSTRAP_INSTANT).to_arrow()
    assert sorted(first["id"].to_pylist()) == sorted(kind.rows())
    assert read_sources(tmp_path) == before
    assert orphans(base) == []
    assert leftovers(base) == []


@every_kind
def test_a_rewritten_file_is_whole(kind: Bootstrapped, tmp_path: Path) -> None:
    """It is what Java writes: all columns, the partition's value in the rows, the meta columns of the bootstrap."""
    base = kind.create(tmp_path)
    table = HoodieTable.open(base)
    table.upsert([kind.row(0, 2, "b")], options=QUICK)
    if kind.merge_on_read:
        assert whole_files(base) == []
        table.compact(options=QUICK)
    (path,) = whole_files(base)
    assert path.name.startswith("group0_")
    rows = pq.ParquetFile(path).read()
    assert rows.schema.names == [*META_FIELDS, *kind.schema.names]
    values = {row["id"]: row for row in rows.to_pylist()}
    assert {key: {name: row[name] for name in kind.schema.names} for key, row in values.items()} == {
        **{key: row for key, row in kind.rows().items() if int(key[1:]) < ROWS},
        "k0": kind.row(0, 2, "b"),
    }
    assert values["k1"]["_hoodie_commit_time"] == METADATA_BOOTSTRAP_INSTANT
    assert values["k1"]["_hoodie_commit_seqno"] == f"{METADATA_BOOTSTRAP_INSTANT}_0_1"
    assert values["k1"]["_hoodie_file_name"] == path.name
    stats = [
        stat
        for instant in HoodieTable.open(base)._snapshot.timeline.list_completed_writes()
        for stat in HoodieTable.open(base)._snapshot.timeline.read_metadata(instant).iterate_stats()
        if stat.path == str(path.relative_to(base))
    ]
    assert [stat.prev_commit for stat in stats] == [METADATA_BOOTSTRAP_INSTANT]
    assert [stat.prev_base_file for stat in stats] == [f"group0_0-1-1_{METADATA_BOOTSTRAP_INSTANT}.parquet"]


@both_types
def test_overwritten_rows_leave_the_sources(kind: Bootstrapped, tmp_path: Path) -> None:
    base = kind.create(tmp_path)
    before = read_sources(tmp_path)
    table = HoodieTable.open(base)
    table.insert_overwrite([kind.row(0, 5, "only")], options=QUICK)
    kept = {key: row for key, row in kind.rows().items() if row["part"] != "p0"}
    assert contents(base) == {**kept, "k0": kind.row(0, 5, "only")}
    table.insert_overwrite_table([kind.row(0, 6, "all")], options=QUICK)
    assert contents(base) == {"k0": kind.row(0, 6, "all")}
    assert read_sources(tmp_path) == before


@both_types
def test_a_write_that_fails_leaves_skeletons_and_sources(
    kind: Bootstrapped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = kind.create(tmp_path)
    before = read_sources(tmp_path)

    def fail(self: DataFile) -> int:
        raise HoodieError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(DataFile, "publish", fail)
        with pytest.raises(HoodieError, match="not now"):
            HoodieTable.open(base).upsert([kind.row(0, 2, "b"), kind.row(100, at=0)], options=QUICK)
    assert contents(base) == kind.rows()
    assert read_sources(tmp_path) == before
    HoodieTable.open(base).upsert([kind.row(0, 2, "b")], options=QUICK)
    assert contents(base) == {**kind.rows(), "k0": kind.row(0, 2, "b")}


@both_types
def test_rows_that_lose_their_source_are_not_rewritten(kind: Bootstrapped, tmp_path: Path) -> None:
    base = kind.create(tmp_path)
    table = HoodieTable.open(base)
    if kind.merge_on_read:
        table.upsert([kind.row(0, 2, "b")], options=QUICK)
    (tmp_path / "source/part=p0/data.parquet").rename(tmp_path / "kept.parquet")
    with pytest.raises(FileMissingError, match="it alone had the data"):
        _ = table.compact(options=QUICK) if kind.merge_on_read else table.upsert([kind.row(0, 2, "b")], options=QUICK)
    assert whole_files(base) == []
    (tmp_path / "moved/part=p0").mkdir(parents=True)
    (tmp_path / "kept.parquet").rename(tmp_path / "moved/part=p0/data.parquet")
    options = {**QUICK, "hoodie_py.read.bootstrap.source": str(tmp_path / "moved")}
    table = HoodieTable.open(base)
    if kind.merge_on_read:
        table.run_compaction(options=options)
    else:
        table.upsert([kind.row(0, 2, "b")], options=options)
    assert len(whole_files(base)) == 1
    (tmp_path / "moved/part=p0/data.parquet").unlink()
    kept = {key: row for key, row in kind.rows().items() if row["part"] == "p0"}
    found = HoodieTable.open(base).scan(["id", "part"], "part = 'p0'").to_arrow().to_pylist()
    assert sorted(row["id"] for row in found) == sorted(kept)


def test_a_partition_column_that_only_the_path_has_and_that_does_not_fit_is_never_lost(tmp_path: Path) -> None:
    """A date's path that spells no date: readers show null, a rewritten file would hold null for good."""
    base = Bootstrapped(merge_on_read=False, partitions=("first",)).create(tmp_path)
    as_date(base)
    with pytest.raises(UnsupportedFeatureError, match="lacks a partition column"):
        HoodieTable.open(base).delete(["k1"], options=QUICK)
    assert whole_files(base) == []


def as_date(base: Path) -> None:
    """Let the commit of the bootstrap say that the partition column has dates."""
    (path,) = (base / ".hoodie/timeline").glob("*.commit")
    commit = CommitMetadata.from_bytes(path.read_bytes())
    record = json.loads(commit.extra_metadata["schema"])
    record["fields"][-1]["type"] = ["null", {"type": "int", "logicalType": "date"}]
    changed = replace(commit, extra_metadata={"schema": json.dumps(record)})
    path.write_bytes(write_commit_metadata(changed, 2))


def test_a_pending_bootstrap_is_left_to_java(tmp_path: Path) -> None:
    kind = Bootstrapped()
    base = kind.create(tmp_path)
    for path in (base / ".hoodie/timeline").glob("0*"):
        path.unlink()
    (base / f".hoodie/timeline/{METADATA_BOOTSTRAP_INSTANT}.deltacommit.requested").write_bytes(b"")
    before = sorted(tmp_path.rglob("*"))
    table = HoodieTable.open(base)
    for call in (lambda: table.upsert([kind.row(0)], options=QUICK), lambda: table.compact(options=QUICK)):
        with pytest.raises(UnsupportedFeatureError, match="beside a pending bootstrap"):
            call()
    assert sorted(tmp_path.rglob("*")) == before


def test_new_rows_do_not_go_to_a_skeleton_of_a_large_source(tmp_path: Path) -> None:
    kind = Bootstrapped(merge_on_read=False)
    base = kind.create(tmp_path)
    sizes = [path.stat().st_size for path in base.glob("part=*/*.parquet")]
    limit = {"hoodie.parquet.small.file.limit": str(max(sizes) + 1)}
    HoodieTable.open(base).upsert([kind.row(100, at=0)], options={**QUICK, **limit})
    (path,) = whole_files(base)
    assert not path.name.startswith("group")
    assert contents(base) == {**kind.rows(), "k100": kind.row(100, at=0)}


@both_types
def test_changes_have_the_images_of_sources(kind: Bootstrapped, tmp_path: Path) -> None:
    base = kind.create(tmp_path, {"hoodie.table.cdc.enabled": "true"})
    table = HoodieTable.open(base)
    table.upsert([kind.row(0, 2, "b"), kind.row(100, at=0)], options=QUICK)
    table.delete([f"k{ROWS}"], options=QUICK)
    if kind.merge_on_read:
        table.compact(options=QUICK)
    images = [
        tuple({} if row[side] is None else {n: row[side][n] for n in kind.schema.names} for side in ("before", "after"))
        for row in HoodieTable.open(base).changes(start=COMPLETED, as_structs=True).to_arrow().to_pylist()
    ]
    old = kind.rows()
    want = [({}, kind.row(100, at=0)), (old["k0"], kind.row(0, 2, "b")), (old[f"k{ROWS}"], {})]
    assert sorted(images, key=repr) == sorted(want, key=repr)


@pytest.mark.parametrize("positions", ["true", "false"])
def test_logs_with_and_without_positions(positions: str, tmp_path: Path) -> None:
    kind = Bootstrapped()
    base = kind.create(tmp_path)
    options = {**QUICK, "hoodie.write.record.positions": positions}
    table = HoodieTable.open(base)
    table.upsert([kind.row(3, 2, "b")], options=options)
    table.delete(["k1"], options=options)
    (log,) = {each.path for each in table.file_slices()[0].log_files[:1]}
    assert table.inspect.log_blocks(log)["has_positions"].to_pylist() == [positions == "true"]
    want = {key: row for key, row in kind.rows().items() if key != "k1"} | {"k3": kind.row(3, 2, "b")}
    assert contents(base) == want
    table.compact(options=QUICK)
    assert contents(base) == want


def test_skeletons_are_no_buckets(tmp_path: Path) -> None:
    kind = Bootstrapped()
    base = kind.create(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    with pytest.raises(HoodieError):
        HoodieTable.open(base).upsert([kind.row(0, 2, "b")], options={**QUICK, **bucket})
    assert sorted(tmp_path.rglob("*")) == before
    assert contents(base) == kind.rows()


@pytest.mark.s3
def test_table_and_sources_in_one_bucket(tmp_path: Path) -> None:
    """Java spells such places with s3a."""
    kind = Bootstrapped()
    base = kind.create(tmp_path)
    with local_s3("bootstrapped") as s3:
        move_sources(base, f"file:{tmp_path}", s3.uri.replace("s3:", "s3a:"))
        move_sources(base, str(tmp_path), s3.uri.replace("s3:", "s3a:"))
        files = TableFiles.open(s3.uri, s3.storage_options)
        for path in tmp_path.rglob("*"):
            if path.is_file():
                files.put(path.relative_to(tmp_path).as_posix(), path.read_bytes())
        table = HoodieTable.open(f"{s3.uri}/table", s3.storage_options)
        assert contents(table) == kind.rows()
        table.upsert([kind.row(0, 2, "b")], options=QUICK)
        want = {**kind.rows(), "k0": kind.row(0, 2, "b")}
        assert contents(table) == want
        instant = str(table.schedule_compaction(options=QUICK))
        plan = table.refresh()._snapshot.timeline.find_compaction_plan(instant)
        assert plan is not None
        assert [each.bootstrap_file for each in plan.operations] == [
            f"{s3.uri.replace('s3:', 's3a:')}/source/part=p0/data.parquet"
        ]
        table.run_compaction(instant, options=QUICK)
        table.upsert([kind.row(0, 3, "c")], options=QUICK)
        table.compact(options=QUICK)
        table.clean(1, options={**QUICK, "hoodie.clean.delete.bootstrap.base.file": "true"})
        assert contents(HoodieTable.open(f"{s3.uri}/table", s3.storage_options)) == {**want, "k0": kind.row(0, 3, "c")}
        assert not files.exists("source/part=p0/data.parquet")
        assert files.exists("source/part=p1/data.parquet")
