"""Tests of ``read_blob``: bytes in rows and in files, what is allowed, and what tables try."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, read_blob
from hoodie_py.errors import FileMissingError, HoodieError, InvalidQueryError, InvalidTableError
from hoodie_py.formats.logical_types.blob import BLOB_TYPE
from hoodie_py.testing import local_s3

_DATA = b"0123456789abcdef"


def _out(path: str | Path, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    reference = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": reference}


def _inline(data: bytes | None) -> dict[str, Any]:
    return {"type": "INLINE", "data": data, "reference": None}


def _column(*blobs: dict[str, Any] | None) -> pa.Array:
    return pa.array(list(blobs), BLOB_TYPE)


@pytest.fixture
def media(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "x.bin").write_bytes(_DATA)
    (tmp_path / "secret").write_bytes(b"secret")
    return folder


def test_bytes_in_rows_need_no_permission() -> None:
    found = read_blob(_column(_inline(b"abc"), None, _inline(b""), _inline(None)))
    assert found.type == pa.large_binary()
    assert found.to_pylist() == [b"abc", None, b"", None]


def test_references_give_files_and_ranges(media: Path) -> None:
    file = media / "a" / "x.bin"
    blobs = [_out(file), _out(file, 3, 5), _inline(b"i"), _out(f"file://{file}", 10, 6), _out(f"file:{file}", 0, 2),
             _out(file, 16, 0), None]  # fmt: skip
    wanted = [_DATA, b"34567", b"i", b"abcdef", b"01", b"", None]
    for allow in ([media], [f"file://{media}/"], ["s3://other", str(media.parent), f"{media}/a"]):
        assert read_blob(_column(*blobs), allow, storage_options={"key": "k"}).to_pylist() == wanted
    chunks = read_blob(pa.chunked_array([_column(*blobs[:2]), _column(*blobs[2:])]), [media])
    assert chunks.to_pylist() == wanted


def test_nothing_is_opened_unless_it_is_allowed(media: Path) -> None:
    file = media / "a" / "x.bin"
    for allow in ((), [media / "b"], [f"{media}/a/x"], ["s3://bucket"]):
        with pytest.raises(InvalidQueryError, match="below none of the allowed places") as raised:
            read_blob(_column(_inline(b"x"), _out(file)), allow)
        assert raised.value.where == {"row": 1, "path": str(file)}


@pytest.mark.parametrize(
    "path",
    [
        "{media}/../secret", "{media}/a/../../secret", "{media}/./a/x.bin", "{media}//a/x.bin", "{media}/%2e%2e/secret",
        "{media}/%252e%252e/secret", "{media}/a/..\\..\\secret", "{media}/link", "{media}/folder/secret", "{media}",
        "{media}/a", "{media}/pipe", "a/x.bin", "x.bin", "file://host{media}/a/x.bin", "s3:{media}/a/x.bin",
        "ftp://{media}/a/x.bin", "{media}/a/x.bin\0", "simplecache::file://{media}/a/x.bin", "file://u:p@{media}/a/x.bin",
        "{media}x/a/x.bin", " {media}/a/x.bin",
    ],
)  # fmt: skip
def test_escapes_are_refused(path: str, media: Path) -> None:
    (media / "link").symlink_to(media.parent / "secret")
    (media / "folder").symlink_to(media.parent)
    os.mkfifo(media / "pipe")
    refused = "below none of the allowed places|leads out of the store|pipe, socket or device|refers to a folder"
    with pytest.raises(HoodieError, match=refused) as raised:
        read_blob(_column(_out(path.format(media=media))), [media])
    assert "p@" not in str(raised.value)


def test_signed_uris_are_not_shown() -> None:
    with pytest.raises(InvalidQueryError) as raised:
        read_blob(_column(_out("https://host/x?sig=hidden")))
    assert "hidden" not in str(raised.value)
    assert raised.value.where["path"] == "https://host/x"


def test_links_inside_the_folder_are_followed(media: Path) -> None:
    (media / "link").symlink_to(media / "a" / "x.bin")
    (media.parent / "other").symlink_to(media)
    assert read_blob(_column(_out(media / "link")), [media]).to_pylist() == [_DATA]
    assert (
        read_blob(_column(_out(media.parent / "other" / "a" / "x.bin")), [media.parent / "other"])[0].as_py() == _DATA
    )


@pytest.mark.parametrize(
    ("offset", "length"), [(12, 5), (17, 0), (17, None), (None, 3), (-1, 2), (2, -2), (1 << 62, 1 << 62)]
)
def test_ranges_outside_the_file_are_errors(offset: int | None, length: int | None, media: Path) -> None:
    with pytest.raises(InvalidTableError, match="A blob has the") as raised:
        read_blob(_column(None, _out(media / "a" / "x.bin", offset, length)), [media])
    assert raised.value.where["row"] == 1


def test_what_is_no_blob_is_an_error(media: Path) -> None:
    for blob in ({**_inline(b""), "type": "OTHER"}, {**_inline(b""), "type": "OUT_OF_LINE"}, _out("")):
        with pytest.raises(InvalidTableError):
            read_blob(_column(blob), [media])
    with pytest.raises(InvalidQueryError, match="no column of blobs"):
        read_blob(pa.array([b"x"]))
    with pytest.raises(InvalidQueryError, match="neither a URI nor a path"):
        read_blob(_column(None), ["nfs://u:p@host/x"])
    with pytest.raises(FileMissingError) as raised:
        read_blob(_column(_inline(b"x"), _out(media / "gone")), [media])
    assert raised.value.where["row"] == 1


def test_memory_is_bounded_before_anything_is_read(media: Path) -> None:
    big = media / "big"
    with big.open("wb") as file:
        file.truncate(1 << 40)  # takes no disk
    for blobs in ([_out(big)], [_out(big, 0, 60), _out(big, 5, 60)], [_inline(b"x" * 101)]):
        with pytest.raises(InvalidQueryError, match="memory_limit, which is 100"):
            read_blob(_column(*blobs), [media], memory_limit=100)
    halves = pa.chunked_array([_column(_inline(b"x" * 60))] * 2)
    with pytest.raises(InvalidQueryError, match="memory_limit"):
        read_blob(halves, memory_limit=100)


@pytest.mark.s3
def test_references_to_s3(tmp_path: Path) -> None:
    import fsspec

    with local_s3() as server:
        store = fsspec.filesystem("s3", **server.storage_options)
        store.pipe(f"{server.bucket}/in/x.bin", _DATA)
        store.pipe(f"{server.bucket}/out/y.bin", b"secret")
        blobs = [_out(f"{scheme}://{server.bucket}/in/x.bin", 2, 3) for scheme in ("s3", "s3a")]
        found = read_blob(_column(*blobs), [f"s3a://{server.bucket}/in"], storage_options=server.storage_options)
        assert found.to_pylist() == [b"234", b"234"]
        for path in (f"{server.uri}/out/y.bin", f"{server.uri}/in/../out/y.bin", "s3://other/in/x.bin"):
            with pytest.raises(InvalidQueryError):
                read_blob(_column(_out(path)), [f"{server.uri}/in"], storage_options=server.storage_options)


def test_blobs_of_a_table(media: Path, tmp_path: Path) -> None:
    schema = pa.schema([
        pa.field("id", pa.int32()), pa.field("b", BLOB_TYPE, metadata={"hudi_type": "BLOB"}),
        pa.field("ts", pa.int64()),
    ])  # fmt: skip
    path = tmp_path / "t"
    table = HoodieTable.create(path, schema, record_key="id", ordering="ts")
    blobs = {1: _inline(b"one"), 2: _out(media / "a" / "x.bin", 1, 2), 3: None}
    table.upsert(pa.Table.from_pylist([{"id": key, "b": blob, "ts": 1} for key, blob in blobs.items()], schema))
    table.refresh().upsert(pa.Table.from_pylist([{"id": 1, "b": _inline(b"two"), "ts": 2}], schema))
    for _ in range(2):
        rows = HoodieTable.open(path).scan().to_arrow().sort_by("id")
        assert rows.schema.field("b").metadata == {b"hudi_type": b"BLOB"}
        assert read_blob(rows["b"], [media]).to_pylist() == [b"two", b"12", None]
        HoodieTable.open(path).compact()
    bad = {"id": 4, "b": {**_inline(b""), "type": "ELSEWHERE"}, "ts": 1}
    with pytest.raises(InvalidQueryError, match="none of INLINE, OUT_OF_LINE") as raised:
        HoodieTable.open(path).upsert(pa.Table.from_pylist([bad], schema))
    assert raised.value.where["column"] == "b.type"
