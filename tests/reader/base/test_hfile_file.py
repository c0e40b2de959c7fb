"""HFile base files: the same rows as their entries, in batches; look-ups read no other block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import CorruptFileError, HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.parquet.bloom import BloomBuilder
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.base.hfile_file import HFileReader
from hoodie_py.reader.base.mapped_file import CommitsView
from hoodie_py.reader.file_slice import BaseFile, InstantRange
from hoodie_py.reader.read_info import WantedKeys
from tests.formats.hfile.layouts import Layout, make_hfile
from tests.reader.log.test_hfile_blocks import SCHEMA, Corpus, content, encode

ALL = pa.schema([("key", pa.string()), ("n", pa.int64()), ("s", pa.list_(pa.string()))])
NAME = "f_0-0-0_20260101000000000.hfile"


def write(folder: Path, data: bytes) -> BaseFile:
    (folder / NAME).write_bytes(data)
    return BaseFile(NAME, len(data), "20260101000000000", "f")


def rows(reader: Any, schema: pa.Schema = ALL, batch_rows: int = 1000, **how: Any) -> list[dict[str, Any]]:
    found = list(reader.read_batches(schema, batch_rows, **how))
    assert all(0 < batch.num_rows <= batch_rows for batch in found)
    assert all(batch.schema.names == schema.names for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    return TableFiles.open(str(tmp_path))


def test_rows_come_in_key_order_with_the_wanted_columns(tmp_path: Path, files: TableFiles) -> None:
    data, expected = content(300, Layout(per_block=70, schema=SCHEMA))
    reader = open_by_extension(files, write(tmp_path, data))
    assert isinstance(reader, HFileReader)
    assert (reader.num_rows, reader.columns, reader.schema.names) == (300, {"key", "n", "s"}, ALL.names)
    for batch_rows in (1, 7, 1000):
        assert rows(reader, batch_rows=batch_rows) == expected
    assert rows(reader, pa.schema([("more", pa.int32()), ("n", pa.int64())])) == [
        {"more": None, "n": row["n"]} for row in expected
    ]
    assert rows(reader, pa.schema([])) == [{}] * 300
    assert rows(reader, row_groups=[]) == []
    assert rows(reader, row_groups=[0]) == expected
    assert (reader.group_rows, reader.footer) == ([300], None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (WantedKeys(("k000004", "k000299", "k1")), [4, 299]),
        (WantedKeys(("k00001",), are_prefixes=True), list(range(10, 20))),
        (WantedKeys(()), []),
        (WantedKeys(("\ud800",)), []),
    ],
)
def test_only_wanted_keys_are_read(wanted: WantedKeys, found: list[int], tmp_path: Path, files: TableFiles) -> None:
    data, expected = content(300, Layout(per_block=8, fan_out=4, schema=SCHEMA))
    reader = HFileReader(files, write(tmp_path, data), keys=wanted)
    assert rows(reader) == [expected[number] for number in found]


def test_the_bloom_filter_drops_keys(tmp_path: Path, files: TableFiles) -> None:
    builder = BloomBuilder()
    builder.add(pa.array(["k000000", "k000001"]))
    bloom = builder.finish().to_text().encode()
    layout = Layout(schema=SCHEMA, meta={"bloomFilter": bloom}, facts={"bloomFilterTypeCode": b"DYNAMIC_V0"})
    data, expected = content(5, layout)
    reader = HFileReader(files, write(tmp_path, data), keys=WantedKeys(("k000001", "k000003")))
    assert rows(reader) == [expected[1]]  # the filter lies about the other one, so it was asked


def test_rows_of_some_commits(tmp_path: Path, files: TableFiles) -> None:
    schema = json.dumps({
        "type": "record", "name": "r",
        "fields": [{"name": name, "type": "string"} for name in ("_hoodie_commit_time", "a")],
    })  # fmt: skip
    entries = [(b"k%d" % i, b"\x02%d\x02%c" % (i, 97 + i)) for i in range(4)]
    base = write(tmp_path, make_hfile(entries, Layout(schema=schema)))
    reader = CommitsView(HFileReader(files, base), InstantRange("", "", only=("1", "3")))
    assert [row["a"] for row in rows(reader, pa.schema([("a", pa.string())]))] == ["b", "d"]


def test_a_file_that_shrank_or_is_none_names_its_path(tmp_path: Path, files: TableFiles) -> None:
    data, _ = content(300)
    base = write(tmp_path, data)
    (tmp_path / NAME).write_bytes(b"x" * len(data))
    with pytest.raises(CorruptFileError, match="end with its trailer") as raised:
        open_by_extension(files, base)
    assert raised.value.where["path"] == NAME
    bad = make_hfile([(b"a", encode({"key": "", "n": 1, "s": []})[:-1])], Layout(schema=SCHEMA))
    with pytest.raises(CorruptFileError) as raised:
        rows(open_by_extension(files, write(tmp_path, bad)))
    assert raised.value.where["path"] == NAME


@pytest.mark.parametrize("name", ["mdt_files_mor_v9", "old15_metadata_mor"])
@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("key = '__all_partitions__'", lambda key: key == "__all_partitions__"),
        ("key in ('p0', 'p1', 'none')", lambda key: key in ("p0", "p1")),
        ("key like 'p%' and type = 2", lambda key: key.startswith("p")),
        ("key <=> 'p1'", lambda key: key == "p1"),
        ("not key = 'p1'", lambda key: key != "p1"),
        ("key = 'p0' or type = 1", lambda key: key in ("p0", "__all_partitions__")),
    ],
)
def test_filters_on_keys_of_a_metadata_table_are_exact(name: str, text: str, keep: Any, corpus: Corpus) -> None:
    table = HoodieTable.open(str(corpus(name) / ".hoodie" / "metadata"))
    for kind in ("snapshot", "read_optimized"):
        every = table.scan(columns=["key", "type"], query_type=kind).to_arrow().to_pylist()
        found = table.scan(columns=["key", "type"], filter=text, query_type=kind).to_arrow().to_pylist()
        want = [row for row in every if keep(row["key"])]
        assert sorted(map(repr, found)) == sorted(map(repr, want))
