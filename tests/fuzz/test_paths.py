"""Nothing that a table's metadata names can lead out of the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.errors import HoodieError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import format_properties
from hoodie_py.formats.config.table_config import CHECKSUM, TableConfig, compute_table_checksum
from hoodie_py.formats.names import check_bare
from hoodie_py.formats.timeline import archive, plans, replace_plan
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat

OUTSIDE = (
    "../x", "p/../../x", "..", "./../x", "/etc/passwd", "//host/x", "file:///etc/passwd", "s3://other/x", "s3a:/x", "hdfs://n/x",
    "p\\..\\..\\x", "..\\x", "C:\\x", "\\\\host\\x", "p\0/x", "x\0.parquet",
)  # fmt: skip
LITERAL = ("%2e%2e/x", "p%2F..%2Fx", "p%00/x", "...", "p/..x", "~/x", "$HOME/x", "p/a:b")  # names of this very spelling

Parse = Callable[[str], Any]
COMMIT = {"partitionToWriteStats": {"p": [{"fileId": "f", "path": "p/f_1_2.parquet"}]}}


def commit(change: dict[str, Any]) -> CommitMetadata:
    stat = {"fileId": "f", "path": "p/f_1_2.parquet"} | change
    return CommitMetadata.from_bytes(json.dumps({"partitionToWriteStats": {"p": [stat]}}).encode())


def stat(change: dict[str, Any]) -> WriteStat:
    return next(commit(change).iterate_stats())


def config(key: str) -> Parse:
    def parse(path: str) -> TableConfig:
        properties = {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            CHECKSUM: str(compute_table_checksum("t")),
            key: path,
        }
        return TableConfig.from_bytes(format_properties(properties))

    return parse


# Paths that are joined to the table's base path as they stand.
JOINED: dict[str, Parse] = {
    "stat path": lambda path: commit({"path": path}),
    "stat partition": lambda path: commit({"partitionPath": path}),
    "stat cdc file": lambda path: commit({"cdcStats": {path: 1}}),
    "commit partition": lambda path: CommitMetadata.from_record({"partitionToWriteStats": {path: []}}),
    "replaced partition": lambda path: CommitMetadata.from_record({"partitionToReplaceFileIds": {path: []}}),
    "compaction partition": lambda path: plans.COMPACTION_OPERATION.read({"partitionPath": path}),
    "clustering partition": lambda path: replace_plan.CLUSTERING_SLICE.read({"partitionPath": path}),
    "rollback partition": lambda path: plans.ROLLBACK_METADATA.read({"partitionMetadata": {path: {}}}),
}
# Folders of the timeline below .hoodie; slashes at their ends are taken off.
FOLDERS = ("hoodie.timeline.path", "hoodie.timeline.history.path", "hoodie.archivelog.folder")
# What becomes part of a file's name.
IDS: dict[str, Parse] = {
    "stat id": lambda path: commit({"fileId": path}),
    "replaced id": lambda path: CommitMetadata.from_record({"partitionToReplaceFileIds": {"p": [path]}}),
    "compaction id": lambda path: plans.COMPACTION_OPERATION.read({"fileId": path}),
    "clustering id": lambda path: replace_plan.CLUSTERING_SLICE.read({"fileId": path}),
}
# Locations of which only the last segment counts: plans hold absolute ones.
NAMES: dict[str, Callable[[str], tuple[str | None, ...]]] = {
    "stat logs": lambda path: stat({"logFiles": [path]}).log_files,
    "stat base": lambda path: (stat({"baseFile": path}).base_file,),
    "stat previous base": lambda path: (stat({"prevBaseFile": path}).prev_base_file,),
    "compaction base": lambda path: (plans.COMPACTION_OPERATION.read({"dataFilePath": path}).data_file,),
    "compaction logs": lambda path: plans.COMPACTION_OPERATION.read({"deltaFilePaths": [path]}).delta_files,
    "clustering logs": lambda path: replace_plan.CLUSTERING_SLICE.read({"deltaFilePaths": [path]}).delta_files,
    "cleaned": lambda path: plans.CLEANED_PARTITION.read({"successDeleteFiles": [path]}).deleted_files,
    "not cleaned": lambda path: plans.CLEANED_PARTITION.read({"failedDeleteFiles": [path]}).failed_files,
    "rolled back": lambda path: plans.ROLLED_BACK_PARTITION.read({"successDeleteFiles": [path]}).deleted_files,
    "rollback logs": lambda path: tuple(
        plans.ROLLED_BACK_PARTITION.read({"rollbackLogFiles": {path: 1}}).rollback_log_files
    ),
}


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("where", JOINED)
def test_paths_that_are_joined_are_refused(where: str, path: str) -> None:
    with pytest.raises(InvalidTableError):
        JOINED[where](path)


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("key", FOLDERS)
def test_folders_of_the_timeline_stay_in_the_table(key: str, path: str) -> None:
    if path.startswith("/"):
        folder = config(key)(path)
        assert folder.find_timeline_folder().startswith(".hoodie/")
        assert "//" not in folder.find_history_folder()
    else:
        with pytest.raises(InvalidTableError):
            config(key)(path)


@pytest.mark.parametrize("where", JOINED)
@pytest.mark.parametrize("path", LITERAL)
def test_spellings_that_only_look_like_it_are_kept_as_they_are(where: str, path: str) -> None:
    assert path in repr(JOINED[where](path))


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("where", IDS)
def test_ids_that_would_be_paths_are_refused(where: str, path: str) -> None:
    with pytest.raises(InvalidTableError):
        IDS[where](path)


@pytest.mark.parametrize("name", ["", "f-0", "00000000-0000", "a.b", "..."])
def test_ordinary_ids_are_taken(name: str) -> None:
    assert check_bare(name) == name


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("where", NAMES)
def test_of_locations_only_a_bare_name_is_left(where: str, path: str) -> None:
    try:
        names = NAMES[where](path)
    except InvalidTableError:
        return
    assert names
    assert all(name and not set(name) & {"/", "\\", "\0"} and name not in (".", "..") for name in names)


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_manifest_names_history_files_only(path: str) -> None:
    with pytest.raises(HoodieError):
        archive.parse_history_manifest(json.dumps({"files": [{"fileName": path, "fileLen": 1}]}).encode())


@pytest.mark.parametrize("verb", ["read", "list", "stat", "delete"])
@pytest.mark.parametrize("path", OUTSIDE)
def test_the_store_refuses_them_as_well(tmp_path: Path, verb: str, path: str) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "x").write_bytes(b"outside")
    with pytest.raises(InvalidTableError):
        getattr(TableFiles.open(tmp_path / "table"), verb)(path)
    assert (tmp_path / "x").read_bytes() == b"outside"


def test_symbolic_links_out_of_a_table_are_not_followed(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.mkdir()
    (tmp_path / "x").write_bytes(b"outside")
    (table / "file").symlink_to(tmp_path / "x")
    (table / "folder").symlink_to(tmp_path)
    files = TableFiles.open(table)
    for path in ("file", "folder/x"):
        with pytest.raises(InvalidTableError, match="symbolic link"):
            files.read(path)
    with pytest.raises(InvalidTableError, match="symbolic link"):
        files.put("folder/y", b"")
    assert not (tmp_path / "y").exists()
