"""TableFiles: storage with this package's errors."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    FileMissingError,
    HoodieError,
    InvalidTableError,
    StorageError,
)
from hoodie_py.files import FileInfo, TableFiles
from hoodie_storage import UnsupportedStoreError
from tests.storage.faults import faulty


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    made = TableFiles.open(tmp_path)
    made.put("t/a", b"0123456789")
    return made


def test_verbs(files: TableFiles) -> None:
    files.put_if_absent("t/b", b"x")
    assert files.read("t/a") == b"0123456789"
    assert files.read_range("t/a", 1, 3) == b"12"
    assert files.read_ranges("t/a", [(8, 10), (0, 1)]) == [b"89", b"0"]
    assert files.list("t") == [FileInfo("t/a", 10, is_dir=False), FileInfo("t/b", 1, is_dir=False)]
    assert files.list_names("t") == {"a", "b"}
    assert files.list_names("missing") == frozenset()
    assert files.list_many(["t", ""]) == [files.list("t"), files.list("")]
    assert files.stat("t/b") == FileInfo("t/b", 1, is_dir=False)
    assert files.exists("t")
    assert files.sub("t").read("b") == b"x"
    assert files.is_local
    assert not TableFiles.open("memory://elsewhere").is_local
    assert files.local_path("t/a") == os.path.realpath(f"{files.uri}/t/a")
    with files.open_file("t/a") as file:
        file.prefetch([(0, 5)])
        assert file.read() == b"0123456789"
    files.delete("t/b")
    files.delete("t/b")
    assert not files.exists("t/b")


def test_travels(files: TableFiles) -> None:
    copy = pickle.loads(pickle.dumps(files))
    assert copy == files
    assert hash(copy) == hash(files)
    assert copy.read("t/a") == b"0123456789"
    assert repr(copy) == f"TableFiles({files.uri!r})"


def test_a_missing_folder_is_empty_where_that_is_asked_for(files: TableFiles) -> None:
    files.put("folder/a", b"1")
    assert [info.name for info in files.list_or_empty("folder")] == ["a"]
    assert files.list_or_empty("nowhere") == []


def test_missing_files(files: TableFiles) -> None:
    asks = (files.read, files.list, files.stat, files.open_file, lambda path: files.list_many([path]),
            lambda path: files.open_file(path, 10).read())  # fmt: skip
    for ask in asks:
        with pytest.raises(FileMissingError) as caught:
            ask("t/nothing")
        assert isinstance(caught.value, StorageError)
        assert isinstance(caught.value, FileNotFoundError)
        assert caught.value.missing
        assert caught.value.where["path"] == f"{files.uri}/t/nothing"
        assert caught.value.where["operation"] in {"read", "list", "stat"}
        assert pickle.loads(pickle.dumps(caught.value)).missing


def test_paths_that_lead_out(files: TableFiles) -> None:
    for path in ("../x", "/etc/passwd", "s3://b/x", "a\0"):
        with pytest.raises(InvalidTableError, match="below it"):
            files.read(path)


def test_existing_files(files: TableFiles) -> None:
    with pytest.raises(ConflictError) as caught:
        files.put_if_absent("t/a", b"other")
    assert caught.value.where["identical"] is False
    files.put_if_absent("t/a", b"0123456789", unique=True)


def test_unknown_outcomes(files: TableFiles) -> None:
    shaky, _ = faulty(files._store, before=[TimeoutError("late")])
    with pytest.raises(CommitStateUnknownError, match="late"):
        TableFiles(shaky).put_if_absent("t/b", b"x")


def test_other_failures_name_operation_path_cause_and_remedy(files: TableFiles) -> None:
    shaky, _ = faulty(files._store, before=[PermissionError(13, "Permission denied")])
    with pytest.raises(StorageError) as caught:
        TableFiles(shaky).read("t/a")
    assert not caught.value.missing
    for word in ("Permission denied", "operation=read", f"path={files.uri}/t/a", "Check"):
        assert word in str(caught.value)


def test_short_reads_through_a_file(files: TableFiles) -> None:
    with pytest.raises(StorageError, match="shorter"):
        files.open_file("t/a", 100).read()


def test_missing_packages_name_the_extra(files: TableFiles) -> None:
    fault = UnsupportedStoreError("s3:// needs a package", hint="pip install s3fs", package="s3fs")
    shaky, _ = faulty(files._store, before=[fault])
    with pytest.raises(StorageError, match=r"pip install 'hoodie_py\[s3\]'"):
        TableFiles(shaky).read("t/a")


def test_another_place_of_the_same_kind_of_store(files: TableFiles, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = files.open_other(f"file:{tmp_path}/other")
    other.put("x", b"1")
    assert (tmp_path / "other" / "x").read_bytes() == b"1"
    assert pickle.loads(pickle.dumps(other)) == other
    assert files.is_same_kind("/anywhere")
    assert not files.is_same_kind("s3://bucket/x")
    assert TableFiles.open("s3://bucket/t").is_same_kind("s3a://other/x")


def test_only_the_same_kind_of_store_gets_the_options() -> None:
    bucket = TableFiles.open("s3://bucket/t", {"key": "mine", "secret": "word"})
    assert bucket.open_other("s3n://bucket/t") == bucket
    assert bucket.open_other("memory://x") == TableFiles.open("memory://x")
    with pytest.raises(HoodieError):
        bucket.open_other("s3://")


def test_places_that_are_none() -> None:
    for uri in ("", "s3://", "nosuchscheme://x/y"):
        with pytest.raises(HoodieError):
            TableFiles.open(uri).read("a")
