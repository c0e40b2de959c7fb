"""Cleans of bootstrapped tables: sources go only when Hudi's option asks for it, and never others' files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.container import read_single
from hoodie_py.formats.config.properties import update_properties
from hoodie_py.formats.timeline.plans import CleanPlan
from hoodie_py.formats.timeline.writers import write_clean_plan
from hoodie_py.writer.services import clean as cleaning
from hoodie_py.writer.services.clean_sources import find_sources
from tests.bootstrap import make_index
from tests.writer.bootstrapped_tables import Bootstrapped, contents, read_sources
from tests.writer.compaction_tables import QUICK

DELETE = {**QUICK, "hoodie.cleaner.delete.bootstrap.base.file": "true"}


@pytest.fixture(params=[Bootstrapped(9, False), Bootstrapped(9), Bootstrapped(6)], ids=str)
def kind(request: pytest.FixtureRequest) -> Bootstrapped:
    made: Bootstrapped = request.param
    return made


def make_rewritten(kind: Bootstrapped, root: Path) -> Path:
    """A table whose first file group has been rewritten, so that a clean removes its skeleton."""
    base = kind.create(root)
    for ts in (2, 3):
        HoodieTable.open(base).upsert([kind.row(0, ts, "b")], options=QUICK)
        if kind.merge_on_read:
            HoodieTable.open(base).compact(options=QUICK)
    return base


def read_record(base: Path, pattern: str) -> dict[str, Any]:
    (path,) = (base / HoodieTable.open(base).config.find_timeline_folder()).glob(pattern)
    return read_single(path.read_bytes())


def test_sources_stay_unless_the_option_asks(kind: Bootstrapped, tmp_path: Path) -> None:
    base = make_rewritten(kind, tmp_path)
    before, rows = read_sources(tmp_path), contents(base)
    assert HoodieTable.open(base).clean(1, options=QUICK).files_deleted
    left = read_sources(tmp_path)
    assert set(before) - set(left) == {f"table/part=p0/group0_0-1-1_{'0' * 13}1.parquet"}
    assert contents(base) == rows


def test_with_the_option_the_source_of_a_removed_skeleton_goes(kind: Bootstrapped, tmp_path: Path) -> None:
    """The plan and the result are those of Java Hudi's clean."""
    base = make_rewritten(kind, tmp_path)
    before, rows = read_sources(tmp_path), contents(base)
    source = f"file:{tmp_path}/source/part=p0/data.parquet"
    report = HoodieTable.open(base).clean(1, options=DELETE, dry_run=True)
    assert report.sources == (f"file://{tmp_path}/source/part=p0/data.parquet",)
    assert "1 source files of the bootstrap" in str(report)
    assert "the source of a base file that is removed" in repr(report)
    assert read_sources(tmp_path) == before
    HoodieTable.open(base).clean(1, options=DELETE)
    gone = {"source/part=p0/data.parquet", f"table/part=p0/group0_0-1-1_{'0' * 13}1.parquet"}
    assert set(before) - set(read_sources(tmp_path)) == gone
    assert contents(base) == rows
    planned = read_record(base, "*.clean.requested")["filePathsToBeDeletedPerPartition"]["part=p0"]
    assert [each["filePath"] for each in planned if each["isBootstrapBaseFile"]] == [source]
    done = read_record(base, "*[0-9].clean")
    assert done["bootstrapPartitionMetadata"]["part=p0"]["successDeleteFiles"] == [source]
    assert source not in done["partitionMetadata"]["part=p0"]["successDeleteFiles"]
    assert done["totalFilesDeleted"] == len(done["partitionMetadata"]["part=p0"]["successDeleteFiles"])


def test_a_source_that_another_skeleton_has_too_stays(tmp_path: Path) -> None:
    kind = Bootstrapped(9, False)
    base = make_rewritten(kind, tmp_path)
    data = tmp_path / "source/part=p0/data.parquet"
    both = (f"file:{data}", data.stat().st_size)
    for path, content in make_index({"part=p0": {"group0": both}, "part=p1": {"group1": both}}).items():
        (base / path).write_bytes(content)
    assert HoodieTable.open(base).clean(1, options=DELETE).files_deleted
    assert data.exists()


def test_an_interrupted_clean_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = make_rewritten(Bootstrapped(9, False), tmp_path)

    def fail(*_: Any) -> None:
        raise HoodieError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(cleaning, "delete_source", fail)
        with pytest.raises(HoodieError, match="not now"):
            HoodieTable.open(base).clean(1, options=DELETE)
    assert (tmp_path / "source/part=p0/data.parquet").exists()
    with pytest.raises(UnsupportedFeatureError, match=r"would delete source files(.|\n)*delete\.bootstrap"):
        HoodieTable.open(base).clean(1, options=QUICK)
    assert (tmp_path / "source/part=p0/data.parquet").exists()
    HoodieTable.open(base).clean(1, options=DELETE)
    assert not (tmp_path / "source/part=p0/data.parquet").exists()


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("source/part=p1/data.parquet", "source of no base file"),
        ("source/part=p0/../part=p1/data.parquet", "climbs"),
        ("outside.parquet", "outside the folder"),
        ("table/.hoodie/hoodie.properties", "outside the folder"),
    ],
)
def test_a_plan_of_others_deletes_no_other_file(place: str, text: str, tmp_path: Path) -> None:
    base = make_rewritten(Bootstrapped(9, False), tmp_path)
    (tmp_path / "outside.parquet").write_bytes(b"x")
    table = HoodieTable.open(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning.Clean, "carry_out", lambda *_: None)
        table.clean(1, options=DELETE)
    (path,) = (base / ".hoodie/timeline").glob("*.clean.requested")
    plan = replace(CleanPlan.from_bytes(path.read_bytes()), sources={"part=p0": (f"file:{tmp_path}/{place}",)})
    path.write_bytes(write_clean_plan(plan, TableFiles.open(base).java_uri))
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    with pytest.raises(InvalidTableError, match=text):
        HoodieTable.open(base).clean(1, options=DELETE)
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


def test_sources_in_another_kind_of_store_are_never_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is allowed to readers."""
    base = make_rewritten(Bootstrapped(9, False), tmp_path)
    monkeypatch.setenv("HOODIE_PY_BOOTSTRAP_STORES", "memory")
    places = {f"part=p{i}": {f"group{i}": (f"memory://elsewhere/{i}.parquet", 1)} for i in range(2)}
    for path, content in make_index(places).items():
        (base / path).write_bytes(content)
    properties = base / ".hoodie/hoodie.properties"
    properties.write_bytes(
        update_properties(properties.read_bytes(), {"hoodie.bootstrap.base.path": "memory://elsewhere"})
    )
    with pytest.raises(UnsupportedFeatureError, match="another kind of store"):
        find_sources(HoodieTable.open(base)._snapshot, {"part=p0": [f"group0_0-1-1_{'0' * 13}1.parquet"]})


def test_files_of_the_table_itself_are_no_sources_to_delete(tmp_path: Path) -> None:
    """Whatever a table of others says of its folder and index."""
    base = make_rewritten(Bootstrapped(9, False), tmp_path)
    live = next(path for path in (base / "part=p0").glob("group0_*.parquet") if "0000001" not in path.name)
    places = {f"part=p{i}": {f"group{i}": (f"file:{live}", live.stat().st_size)} for i in range(2)}
    for path, content in make_index({**places, "part=p1": {"group1": (f"file:{base}/x.parquet", 1)}}).items():
        (base / path).write_bytes(content)
    properties = base / ".hoodie/hoodie.properties"
    properties.write_bytes(update_properties(properties.read_bytes(), {"hoodie.bootstrap.base.path": str(tmp_path)}))
    with pytest.raises(InvalidTableError, match="a file of the table itself"):
        HoodieTable.open(base).clean(1, options=DELETE)
    assert live.exists()
    assert HoodieTable.open(base).clean(1, options=QUICK).files_deleted


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    base = make_rewritten(Bootstrapped(9, False), tmp_path)
    folder, outside = tmp_path / "source/part=p0", tmp_path / "outside"
    folder.rename(outside)
    folder.symlink_to(outside, target_is_directory=True)
    with pytest.raises(InvalidTableError, match="symbolic link"):
        HoodieTable.open(base).clean(1, options=DELETE)
    folder.unlink()
    folder.mkdir()
    (folder / "data.parquet").symlink_to(outside / "data.parquet")
    HoodieTable.open(base).clean(1, options=DELETE)
    assert not (folder / "data.parquet").is_symlink()
    assert (outside / "data.parquet").exists()
