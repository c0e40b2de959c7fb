"""Where the sources of bootstrapped base files are looked up, and which places are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.hfile.bootstrap_index import FILE_IDS_PATH, PARTITIONS_PATH, IndexedSource
from hoodie_py.reader.file_slice import BaseFile, SourceFile
from hoodie_py.table.view.bootstrap import BootstrapSources, locate_source
from tests.bootstrap import Sources, make_index
from tests.table.tables import make_table, open_view

SKELETON = "00000000000001"
BASE = BaseFile(f"p/a-0_0-0-0_{SKELETON}.parquet", 1, SKELETON, "a-0")
SOURCES: Sources = {"p": {"a-0": ("file:/lake/src/p/x.parquet", 12)}, "q": {"b-0": ("file:/lake/src/q/y.parquet", 9)}}


def open_sources(root: Path, sources: Sources = SOURCES, base_path: str | None = "/lake/src") -> BootstrapSources:
    return BootstrapSources(TableFiles.open(make_table(root, make_index(sources))), base_path)


def test_base_files_of_a_bootstrap_get_their_source(tmp_path: Path) -> None:
    found = open_sources(tmp_path).add_source(BASE, "p")
    assert found == replace(BASE, source=SourceFile("file:///lake/src", "p/x.parquet", 12))
    assert found.source is not None
    assert found.source.uri == "file:///lake/src/p/x.parquet"


def test_other_base_files_need_no_index(tmp_path: Path) -> None:
    for instant in ("00000000000002", "20260101000000000"):
        whole = replace(BASE, instant=instant)
        assert BootstrapSources(TableFiles.open(tmp_path), None).add_source(whole, "p") is whole


def test_one_form_of_the_index_is_enough(tmp_path: Path) -> None:
    both = open_sources(tmp_path).add_source(BASE, "p")
    (tmp_path / PARTITIONS_PATH).unlink()
    assert open_sources_again(tmp_path).add_source(BASE, "p") == both
    with pytest.raises(InvalidTableError, match="does not name"):
        open_sources_again(tmp_path).add_source(BASE, "q")
    (tmp_path / FILE_IDS_PATH).unlink()
    with pytest.raises(FileMissingError, match=r"index is missing.*Restore the folder .hoodie/.aux/.bootstrap"):
        open_sources_again(tmp_path).add_source(BASE, "p")


def open_sources_again(root: Path) -> BootstrapSources:
    return BootstrapSources(TableFiles.open(root), "/lake/src")


@pytest.mark.parametrize("partition", ["q", "", "other"])
def test_a_file_that_the_index_does_not_have_is_an_error(tmp_path: Path, partition: str) -> None:
    with pytest.raises(InvalidTableError, match=f"does not name the source.*{SKELETON}"):
        open_sources(tmp_path).add_source(BASE, partition)


def test_a_table_that_names_no_source_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidTableError, match=r"hoodie\.bootstrap\.base\.path"):
        open_sources(tmp_path, base_path=None).add_source(BASE, "p")


@pytest.mark.parametrize("damaged", [b"", b"x" * 9000])
def test_a_damaged_index_is_named(tmp_path: Path, damaged: bytes) -> None:
    sources = open_sources(tmp_path)
    (tmp_path / PARTITIONS_PATH).write_bytes(damaged)
    with pytest.raises(CorruptFileError, match=r"\.partitions"):
        sources.add_source(BASE, "p")


@pytest.mark.parametrize(
    ("uri", "base_path", "folder", "path"),
    [
        ("file:/a/b/p/x", "/a/b", "file:///a/b", "p/x"),
        ("file:/a/b/p/x", "/a/b/", "file:///a/b", "p/x"),
        ("/a/b/p/x", "file:///a/b", "file:///a/b", "p/x"),
        ("/a/b/x", "/a//b//", "/a/b", "x"),
        ("s3a://lake/a/x", "s3a://lake//a", "s3://lake/a", "x"),
        ("s3a://lake/a/p=%2F 1/x", "s3://lake/a", "s3://lake/a", "p=%2F 1/x"),
        ("s3a://lake/a/x", "s3n://lake", "s3://lake/", "a/x"),
        ("hdfs://name:8020/a/x", "/a", "hdfs://name:8020/a", "x"),
    ],
)
def test_sources_inside_the_folder(uri: str, base_path: str, folder: str, path: str) -> None:
    assert locate_source(IndexedSource(uri, 5), base_path) == SourceFile(folder, path, 5)


@pytest.mark.parametrize(
    ("uri", "base_path"),
    [
        ("file:/etc/x", "/a/b"),
        ("file:/a/bc/x", "/a/b"),
        ("file:/a/b/../c/x", "/a/b"),
        ("file:/a/b/./x", "/a/b"),
        ("file:/a/b/x", "/a/b/.."),
        ("s3://other/a/x", "s3://lake/a"),
        ("s3://lake/a/x", "file:/a"),
        ("http://lake/a/x", "s3://lake/a"),
        ("a/b/x", "/a/b"),
        ("file:/a/b/x", "a/b"),
        ("", "/a/b"),
        ("file:/a/b/x", "~/b"),
        ("file:/a/b/\0", "/a/b"),
        ("file:/a/b\\..\\..\\x", "/a/b"),
        ("simplecache::file:///a/b/x", "/a/b"),
    ],
)
def test_sources_elsewhere_are_refused(uri: str, base_path: str) -> None:
    with pytest.raises(InvalidTableError):
        locate_source(IndexedSource(uri, None), base_path)


def test_the_folder_itself_is_no_source() -> None:
    with pytest.raises(CorruptFileError, match="folder"):
        locate_source(IndexedSource("file:/a/b/", None), "/a/b")


def test_credentials_are_refused_and_not_shown() -> None:
    with pytest.raises(HoodieError) as caught:
        locate_source(IndexedSource("sftp://me:secret@host/a/x", None), "sftp://host/a")
    assert "secret" not in str(caught.value)


def test_slices_of_a_view_have_their_sources(tmp_path: Path) -> None:
    later = "20260101000001000"
    files = {
        **make_index(SOURCES),
        "p/.hoodie_partition_metadata": b"partitionDepth=1\n",
        BASE.path: b"",
        f".hoodie/timeline/{SKELETON}_{later}.deltacommit": b"{}",
    }
    extra = {"hoodie.bootstrap.base.path": "file:/lake/src", "hoodie.table.partition.fields": "part"}
    view = open_view(make_table(tmp_path, files, **extra))
    for slices in (view.list_slices(), view.list_base_files()):
        assert [each.base_file.source for each in slices if each.base_file is not None] == [
            SourceFile("file:///lake/src", "p/x.parquet", 12)
        ]
