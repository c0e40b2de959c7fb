"""What people write for a place, and what it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_storage import PathError, open_store
from hoodie_storage.location import parse_location


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
