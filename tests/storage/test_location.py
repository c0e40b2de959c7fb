"""What people write for a place, and what it becomes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_storage import PathError, open_store
from hoodie_storage.location import Place, parse_location, parse_place


@pytest.mark.parametrize(
    ("text", "protocol", "root", "uri"),
    [
        ("/x/y", "file", "/x/y", "/x/y"),
        ("/x//y/", "file", "/x/y", "/x/y"),
        ("/x/../y", "file", "/y", "/y"),
        ("file:///x/y", "file", "/x/y", "/x/y"),
        ("file:/x/y/", "file", "/x/y", "/x/y"),
        ("file://localhost/x", "file", "/x", "/x"),
        ("FILE:///x", "file", "/x", "/x"),
        ("/x/a%20b?c#d", "file", "/x/a%20b?c#d", "/x/a%20b?c#d"),
        ("memory://name", "memory", "/name", "memory://name"),
        ("memory:///name/a/", "memory", "/name/a", "memory://name/a"),
        ("memory://", "memory", "", "memory://"),
        ("s3://bucket/a/b/", "s3", "bucket/a/b", "s3://bucket/a/b"),
        ("s3a://bucket", "s3", "bucket", "s3://bucket"),
        ("S3N://Bucket/x", "s3", "Bucket/x", "s3://Bucket/x"),
        ("s3://bucket/odd::name", "s3", "bucket/odd::name", "s3://bucket/odd::name"),
        ("gs://bucket/a", "gs", "gs://bucket/a", "gs://bucket/a"),
        ("gcs://bucket/a", "gs", "gs://bucket/a", "gs://bucket/a"),
        ("abfss://box@account.example/a", "abfss", "abfss://box@account.example/a", "abfss://box@account.example/a"),
        ("ftp://me:pw@host/a", "ftp", "ftp://me:pw@host/a", "ftp://***@host/a"),
        ("https://host/a?sig=abc", "https", "https://host/a?sig=abc", "https://host/a?***"),
        ("zip://t::file:///a.zip", "", "zip://t::file:///a.zip", "zip://t::file:///a.zip"),
    ],
)
def test_places(text: str, protocol: str, root: str, uri: str) -> None:
    found = parse_location(text)
    assert (found.protocol, found.root, found.uri) == (protocol, root, uri)
    assert "pw" not in repr(found)


def test_paths_relative_to_home_and_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    here = str(Path.cwd())
    assert parse_location("./a/b").root == f"{here}/a/b"
    assert parse_location("a").root == f"{here}/a"
    assert parse_location(".").root == here
    assert parse_location("~/a").root == "/home/someone/a"
    assert parse_location(Path("a/b")).root == f"{here}/a/b"


def test_a_store_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("t")
    store.put("a", b"x")
    monkeypatch.chdir("/")
    assert store.read("a") == b"x"
    assert (tmp_path / "t" / "a").read_bytes() == b"x"


@pytest.mark.parametrize(
    "text", ["", "  ", "s3://", "s3:///", "s3:///a", "s3:/bucket/a", "file://host/x", "/a\0b", "gs:/b"]
)
def test_no_places(text: str) -> None:
    with pytest.raises(PathError):
        parse_location(text)


def test_credentials_in_an_s3_uri_are_refused_and_not_shown() -> None:
    with pytest.raises(PathError, match="storage_options") as caught:
        open_store("s3://AKIAKEY:verysecret@bucket/a")
    assert "verysecret" not in str(caught.value)
    assert "AKIAKEY" not in str(caught.value)


# What a table may name and must not lead anywhere: sources of a bootstrap, files of blobs.
HOSTILE_PLACES = (
    "", "x", "a/x", "../x", "~/x", "//a", "//host/x", "/a//x", "/a/./x", "/a/../x", "/a/..", "/a/%2e%2e/x",
    "/a/%252E%252e/x", "/a/..%2fx", "/a/x%2f..%2f..%2fy", "/a\\..\\..\\x", "/a/..\\x", "/a\0", "a::b", "/a/b::c", "simplecache::file:///a",
    "file://host/a", "file:a", "s3:a", "s3://me:secret@lake/a", "sftp://me@host/a", " /a", "/" + "a" * 4096,
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE_PLACES)
def test_hostile_places_are_refused(text: str) -> None:
    with pytest.raises(PathError) as caught:
        parse_place(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/", Place(None, None, ())),
        ("/a/p=%2F 1/x", Place(None, None, ("a", "p=%2F 1", "x"))),
        ("file:/a/b/", Place("file", None, ("a", "b"))),
        ("local://localhost/a", Place("file", None, ("a",))),
        ("s3n://lake", Place("s3", "lake", ())),
        ("HDFS://name:8020/a/x", Place("hdfs", "name:8020", ("a", "x"))),
        ("hdfs:///a/...", Place("hdfs", None, ("a", "..."))),
    ],
)
def test_places_that_a_table_names(text: str, place: Place) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize(
    ("text", "folder", "inside"),
    [
        ("/a/b/x", "/a", "b/x"),
        ("/a/b", "/a/b", ""),
        ("/a/bc/x", "/a/b", None),
        ("s3://lake/a/x", "/a", "x"),
        ("/a/x", "s3://lake/a", "x"),
        ("s3://lake/a/x", "s3://other/a", None),
        ("http://lake/a/x", "s3://lake/a", None),
    ],
)
def test_what_lies_inside(text: str, folder: str, inside: str | None) -> None:
    assert parse_place(text).find_inside(parse_place(folder)) == inside


@given(st.text("/.:%2e5cf\\ab@?", max_size=30))
def test_no_text_leads_out_of_a_folder(text: str) -> None:
    folder = parse_place("/a/b")
    for each in (text, f"/a/b/{text}", f"file:///a/b/{text}"):
        try:
            inside = parse_place(each).find_inside(folder)
        except PathError:
            continue
        if inside is not None:
            assert os.path.normpath(f"/a/b/{inside}").startswith("/a/b")
