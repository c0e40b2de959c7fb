"""The bootstrap index, and entries of small HFiles; how the metadata table has them is in ``test_hfile``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.hfile.bootstrap_index import (
    FILE_IDS_PATH,
    PARTITIONS_PATH,
    IndexedSource,
    decode_file_value,
    decode_partition_value,
    make_file_key,
    make_partition_key,
    read_hfile,
)
from tests.bootstrap import make_file_value, make_index, make_partition_value
from tests.corpus import ROOT, case_folder, unpack
from tests.hfiles import write_hfile

TABLE = "bootstrap_metadata_only_mor_v9"
IDS = {"part=p0": "1f18cb55-2aba-4a8f-9085-902e0e00ff44", "part=p1": "6eb7f542-f200-463e-b1a3-777f995f9044"}
HBASE = ROOT / "tests" / "data" / "bootstrap_index_0_15.hfile"
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
sizes = st.none() | st.integers(0, 1 << 40)


def read_java(path: str) -> dict[bytes, bytes]:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO((case_folder(TABLE) / "table.zip").read_bytes())) as archive:
        return dict(read_hfile(archive.read(f"{TABLE}/{path}")))


def test_both_indexes_of_java_name_the_same_sources() -> None:
    by_partition, by_file = read_java(PARTITIONS_PATH), read_java(FILE_IDS_PATH)
    assert by_partition.keys() == {make_partition_key(path) for path in IDS}
    for path, file_id in IDS.items():
        found = decode_partition_value(by_partition[make_partition_key(path)])
        assert found.keys() == {file_id}
        assert found[file_id] == decode_file_value(by_file[make_file_key(path, file_id)])
        assert found[file_id].uri.startswith(f"file:/tmp/hoodie-corpus/{TABLE}__source/{path}/part-00000-")
        assert found[file_id].size in (1496, 1502)


def test_indexes_that_hbase_wrote_for_older_versions_read_alike() -> None:
    data = HBASE.read_bytes()
    assert b"HFileBootstrapIndex$HoodieKVComparator" in data
    found = {key: decode_partition_value(value) for key, value in read_hfile(data)}
    assert found.keys() == {make_partition_key("part=p0"), make_partition_key("part=p1")}
    sources = [source for inside in found.values() for source in inside.values()]
    assert [source.uri.rpartition("__source/")[2] for source in sources] == ["part=p0/x.parquet", "part=p1/x.parquet"]
    assert all(source.size is not None and source.size > 1000 for source in sources)


@given(st.dictionaries(names, st.tuples(names, sizes), max_size=5))
def test_sources_read_back(sources: dict[str, tuple[str, int | None]]) -> None:
    want = {file_id: IndexedSource(*each) for file_id, each in sources.items()}
    assert decode_partition_value(make_partition_value(sources)) == want
    for each in sources.values():
        assert decode_file_value(make_file_value(*each)) == IndexedSource(*each)


@pytest.mark.parametrize(
    ("decode", "value"),
    [
        (decode_partition_value, make_partition_value(None)),
        (decode_partition_value, make_partition_value({"f": (None, 1)})),
        (decode_partition_value, make_partition_value({"f": ("", 1)})),
        (decode_partition_value, make_partition_value({"f": ("/a", -1)})),
        (decode_partition_value, make_file_value("/a", 1)),
        (decode_file_value, make_file_value("/a", -1)),
        (decode_file_value, make_file_value(None, None)),
        (decode_file_value, make_partition_value({})),
        (decode_file_value, b""),
    ],
)
def test_values_without_a_source_are_errors(decode: Callable[[bytes], object], value: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode(value)


VALUE = make_partition_value({"f": ("file:/a/b.parquet", 12)})


@given(st.integers(0, len(VALUE) * 8 - 1))
def test_a_flipped_bit_never_costs_more_than_an_error(bit: int) -> None:
    damaged = bytearray(VALUE)
    damaged[bit // 8] ^= 1 << bit % 8
    try:
        decode_partition_value(bytes(damaged))
    except HoodieError:
        return


def test_a_moved_table_names_its_new_place(tmp_path: Path) -> None:
    table = unpack(TABLE, tmp_path)
    entries = dict(read_hfile((table / PARTITIONS_PATH).read_bytes()))
    source = decode_partition_value(entries[b"part=part=p0"])[IDS["part=p0"]]
    assert Path(source.uri.removeprefix("file:")).stat().st_size == source.size
    assert make_index({}).keys() == {PARTITIONS_PATH, FILE_IDS_PATH}


SOME = [(b"a", b"one"), (b"b", b""), (b"c", b"three" * 20)]
DATA = write_hfile(SOME, schema="", created_ms=0)


def test_entries_come_in_the_order_of_the_file() -> None:
    assert read_hfile(memoryview(DATA)) == SOME
    assert read_hfile(write_hfile([], schema="", created_ms=0)) == []


@pytest.mark.parametrize("magic", [b"IDXLEAF2", b"METABLKc", b"BLMFBLK2", b"DATABLKE"])
def test_other_blocks_in_the_place_of_data_are_an_error(magic: bytes) -> None:
    with pytest.raises(CorruptFileError, match="where data should be"):
        read_hfile(DATA.replace(b"DATABLK*", magic))


def test_deletes_and_versions_are_refused() -> None:
    put = b"\xff" * 7 + b"\4"
    with pytest.raises(UnsupportedFeatureError, match="puts"):
        read_hfile(DATA.replace(put, b"\xff" * 7 + b"\x08"))
    with pytest.raises(UnsupportedFeatureError, match="versions"):
        read_hfile(DATA.replace(put + b"one\0", put + b"one\1"))


@given(st.integers(0, len(DATA) - 1))
def test_a_file_that_is_cut_short_is_an_error(size: int) -> None:
    with pytest.raises(CorruptFileError):
        read_hfile(DATA[:size])


@given(st.integers(0, len(DATA) * 8 - 1))
def test_a_flipped_bit_of_a_small_file_never_costs_more_than_an_error(bit: int) -> None:
    damaged = bytearray(DATA)
    damaged[bit // 8] ^= 1 << bit % 8
    try:
        found = read_hfile(bytes(damaged))
    except HoodieError:
        return
    assert len(found) == len(SOME)
