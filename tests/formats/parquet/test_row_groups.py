"""Row groups are copied as bytes, and footers are read and written field by field."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.parquet.row_groups import GroupCopier, GroupSource, make_constant_file
from hoodie_py.formats.parquet.thrift import read_struct, write_struct
from tests.corpus import corpus_names
from tests.formats.parquet.test_bloom import java_files

TABLE = pa.table(
    {
        "id": [f"k{i:03d}" for i in range(100)],
        "file": ["old"] * 100,
        "n": pa.array([None if i % 7 == 0 else i for i in range(100)], pa.int64()),
        "tags": [["a"] * (i % 3) if i % 5 else None for i in range(100)],
    }
)


def make_file(table: pa.Table = TABLE, rows: int = 10, **settings: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows, write_page_index=True, **settings)
    return sink.getvalue()


def find_footer(data: bytes) -> bytes:
    [length] = struct.unpack("<I", data[-8:-4])
    return data[-8 - length : -8]


@pytest.mark.parametrize("settings", [{}, {"compression": "zstd", "use_dictionary": False}, {"version": "1.0"}])
def test_footers_are_written_as_they_were_read(settings: dict[str, object]) -> None:
    footer = find_footer(make_file(**settings))
    assert write_struct(read_struct(footer)) == footer


def test_footers_of_java_are_written_as_they_were_read() -> None:
    for name in corpus_names()[:20]:
        for file in java_files(name):
            sink = io.BytesIO()
            file.metadata.write_metadata_file(sink)
            footer = find_footer(sink.getvalue())
            assert write_struct(read_struct(footer)) == footer


@pytest.mark.parametrize("settings", [{}, {"data_page_size": 16, "compression": "gzip"}, {"write_statistics": False}])
def test_copied_row_groups_have_their_rows_pages_and_statistics(settings: dict[str, object]) -> None:
    source = GroupSource.of_bytes(make_file(**settings))
    other = GroupSource.of_bytes(make_file(TABLE.slice(30, 5), **settings))
    column = source.find_column("file")
    assert column == 1
    sink = io.BytesIO()
    copier = GroupCopier(sink)
    codec = {1: "snappy", 2: "gzip"}[next(iter(source.codecs))]
    for group in range(10):
        if group == 3:
            copier.append(other, 0)
        else:
            copier.append(source, group, {column: make_constant_file("file", "new", 10, codec)})
    metadata = copier.finish(source, {b"a": b"1"})
    data = sink.getvalue()
    assert copier.size == len(data)
    found = pq.ParquetFile(io.BytesIO(data))
    assert found.metadata.equals(metadata)
    assert found.metadata.metadata == {b"a": b"1"}
    wanted = pa.concat_tables([TABLE.slice(0, 30), TABLE.slice(30, 5), TABLE.slice(40)])
    names = pa.array(["new"] * 30 + ["old"] * 5 + ["new"] * 60)
    assert found.read().equals(wanted.set_column(1, "file", names))
    assert len(pq.read_table(io.BytesIO(data), filters=[("n", ">", 90)])) == 7
    old = pq.ParquetFile(io.BytesIO(make_file(**settings))).metadata
    for column in (0, 2, 3):
        before, after = old.row_group(5).column(column), found.metadata.row_group(5).column(column)
        assert before.statistics == after.statistics
        assert before.encodings == after.encodings
        assert after.has_column_index == before.has_column_index


def test_a_copied_file_is_copied_again() -> None:
    data = make_file()
    for _ in range(3):
        source, sink = GroupSource.of_bytes(data), io.BytesIO()
        copier = GroupCopier(sink)
        for group in range(10):
            copier.append(source, group)
        copier.finish(source, source.facts)
        data = sink.getvalue()
    assert pq.read_table(io.BytesIO(data)).equals(TABLE)
    assert len(data) == len(make_file())


@given(st.data())
def test_damaged_files_are_copied_or_refused(data: st.DataObject) -> None:
    whole = bytearray(make_file(TABLE.slice(0, 20)))
    footer = find_footer(bytes(whole))
    first = len(whole) - 8 - len(footer)
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(first, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        source = GroupSource.of_bytes(bytes(whole))
        copier = GroupCopier(io.BytesIO())
        for group in range(len(source.groups)):
            copier.append(source, group)
        source.is_plain()
        source.find_column("n")
    except CorruptFileError:
        return


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"PAR1" + b"\xff\xff\xff\x7fPAR1",
        b"PAR1\0\1\0\0\0PAR1",
        b"\x1b" * 40,  # a map
        b"\x1c" * 40,  # a struct in a struct in a struct ...
        b"\x19\xfc\xff\xff\xff\xff\x0f",  # a list of four thousand million structs
        b"\x18\xff\xff\xff\xff\x0f",  # text of so many bytes
        b"\x16" + b"\xff" * 12,  # an endless number
        b"\x15\2\x05\2\2\0",  # field 1 twice
        b"\x15",
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        read_struct(data)
    with pytest.raises(CorruptFileError):
        GroupSource.of_bytes(data)


def test_a_footer_of_very_many_values_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="too many"):
        read_struct(b"\x19\xf5\x80\xb5\x18" + b"\0" * 400_000 + b"\0")
