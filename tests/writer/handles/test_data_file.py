from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import parse_properties
from hoodie_py.testing import local_s3
from hoodie_py.writer.handles.data_file import PARTITION_METAFILE, OutputFile, ensure_partition
from tests.watched_requests import Request, watching_requests

PARTS = [b"one", b"", b"twotwo", b"x" * 100]


def written(files: TableFiles, path: str, in_memory: int) -> int:
    with OutputFile(files, path, in_memory) as output:
        for part in PARTS:
            assert output.sink.write(part) == len(part)
        assert not files.exists(path)
        return output.publish()


@pytest.mark.parametrize("in_memory", [0, 5, 1000])
def test_the_file_appears_whole(in_memory: int, tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    assert written(files, "p/f", in_memory) == 109
    assert files.read("p/f") == b"".join(PARTS)
    assert [path.name for path in (tmp_path / "p").iterdir()] == ["f"]


@pytest.mark.parametrize("in_memory", [0, 1000])
def test_nothing_is_written_over(in_memory: int, tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    files.put("f", b"other")
    with OutputFile(files, "f", in_memory) as output:
        output.sink.write(b"mine")
        with pytest.raises(ConflictError):
            output.publish()
    assert files.read("f") == b"other"


def test_what_is_not_published_leaves_nothing(tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    with OutputFile(files, "f", 0) as output:
        output.sink.write(b"mine")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.s3
def test_large_files_go_to_a_store_in_parts(tmp_path: Path) -> None:
    with local_s3("output-file") as s3:
        files = TableFiles.open(s3.uri, s3.storage_options)
        with OutputFile(files, "large", 0) as output:
            for _ in range(12):
                output.sink.write(b"0123456789abcdef" * 65536)
            assert output.publish() == 12 << 20
        assert files.stat("large").size == 12 << 20
        with OutputFile(files, "large", 0) as output:
            output.sink.write(b"x")
            with pytest.raises(ConflictError):
                output.publish()


def test_in_memory() -> None:
    files = TableFiles.open("memory://output-file")
    assert written(files, "f", 0) == 109
    assert files.read("f") == b"".join(PARTS)


@pytest.mark.parametrize(("path", "depth"), [("", "0"), ("sf", "1"), ("2026/01/31", "3")])
def test_it_says_when_it_was_made_and_how_deep_it_lies(path: str, depth: str, tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    ensure_partition(files, path, "20260101000000001")
    ensure_partition(files, path, "20260101000000002")
    found = parse_properties((tmp_path / path / PARTITION_METAFILE).read_bytes())
    assert found == {"commitTime": "20260101000000001", "partitionDepth": depth}


def test_it_may_be_a_parquet_file(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    ensure_partition(TableFiles.open(tmp_path), "p0", "20260101000000001", in_base_format=True)
    ours, java = (
        pq.ParquetFile(root / "p0" / f"{PARTITION_METAFILE}.parquet").metadata
        for root in (tmp_path, corpus("partition_metafile_parquet_mor_v9"))
    )
    assert ours.metadata == {b"commitTime": b"20260101000000001", b"partitionDepth": b"1"}
    assert ours.metadata.keys() < java.metadata.keys()
    assert ours.num_rows == java.num_rows == 0


def test_the_first_of_two_tasks_wins(tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    ensure_partition(files, "p", "20260101000000001")

    def look_too_early(request: Request) -> object:
        return False if request.verb == "exists" else request.make()

    with watching_requests(look_too_early):
        ensure_partition(files, "p", "20260101000000002")
    assert b"20260101000000001" in (tmp_path / "p" / PARTITION_METAFILE).read_bytes()
