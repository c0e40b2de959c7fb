from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import encode_varint
from hoodie_py.formats.hfile.blocks import GZIP, NO_COMPRESSION, ZSTD
from hoodie_py.formats.hfile.bootstrap_index import read_hfile
from hoodie_py.formats.hfile.data_block import Entry
from hoodie_py.formats.hfile.protobuf import encode_number_field, encode_octets_field, read_fields, read_varint
from hoodie_py.formats.hfile.reader import read_info
from hoodie_py.formats.hfile.writer import HFileWriter, write_columns
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from tests.corpus import WHOLE
from tests.hfiles import write_hfile

entries = st.dictionaries(st.binary(min_size=1, max_size=40), st.binary(max_size=60), max_size=30).map(
    lambda pairs: list(pairs.items())
)


@given(entries, st.text(max_size=20), st.sampled_from([NO_COMPRESSION, GZIP]))
def test_entries_read_back_in_the_order_of_their_keys(some: list[Entry], schema: str, codec: int) -> None:
    data = write_hfile(some, schema=schema, created_ms=7, codec=codec)
    assert read_hfile(data) == sorted(some)
    info = read_info(memoryview(data))
    assert info["schema"].decode() == schema
    assert info["hfile.CREATE_TIME_TS"] == (7).to_bytes(8, "big")


def test_the_layout_is_that_of_hbase() -> None:
    data = write_hfile([(b"b", b"two"), (b"a", b"")], schema="S", created_ms=0)
    first = b"\0\0\0\x0d\0\0\0\0" + b"\0\x01a\0\x7f" + b"\xff" * 7 + b"\x04" + b"\0"
    second = b"\0\0\0\x0d\0\0\0\x03" + b"\0\x01b\0\x7f" + b"\xff" * 7 + b"\x04" + b"two\0"
    size = len(first + second)
    header = b"DATABLK*" + (size + 4).to_bytes(4, "big") + size.to_bytes(4, "big") + b"\xff" * 8
    header += b"\0" + (16384).to_bytes(4, "big") + (33 + size).to_bytes(4, "big")
    assert data.startswith(header + first + second + bytes(4) + b"IDXROOT2")
    root = data.index(b"IDXROOT2") + 33
    assert data[root : root + 16] == bytes(8) + (33 + size + 4).to_bytes(4, "big") + b"\x03\0\x01a"
    assert data[-4096:].startswith(b'TRABLK"$')
    assert data[-4:] == b"\0\0\0\x03"


def test_much_goes_into_several_blocks_and_long_keys_are_indexed() -> None:
    some = [(b"%04d" % i + b"k" * 300, bytes(400_000)) for i in range(9)]
    data = write_hfile(some, schema="", created_ms=0)
    assert data.count(b"DATABLK*") == 5  # 2 entries each: a third would make more than 1 MiB
    assert b"\x8e\x01\x32\x01\x300000kk" in data  # Hadoop's varint of 306, then the length and the key
    assert read_hfile(data) == some


def test_the_checksums_are_counted_alike_with_and_without_themselves() -> None:
    noise = random.Random(5)
    text = bytes(noise.choice(b"0123456789abcdef") for _ in range(30_000))
    for size in range(27_300, 27_800, 3):
        data = write_hfile([(b"key", text[:size])], schema="", created_ms=0, codec=GZIP)
        body, step, plain = (int.from_bytes(data[at : at + 4], "big") for at in (8, 25, 29))
        assert body + 33 - plain == 4 * -(-plain // step) == 4 * -(-(body + 33) // step), size


@pytest.mark.parametrize("some", [[(b"a", b""), (b"a", b"x")], [(b"", b"")], [(b"x" * 32768, b"")]])
def test_keys_that_cannot_be_stored_are_refused(some: list[Entry]) -> None:
    with pytest.raises(ValueError, match="key"):
        write_hfile(some, schema="", created_ms=0)


def test_columns_may_be_slices_and_texts() -> None:
    keys = pa.array(["x", "b", "aé", "c"], pa.string()).slice(1)
    values = pa.array([b"0", b"2", b"1", b"3", b""], pa.binary()).slice(1, 3)
    data = write_columns(keys, values, schema="", created_ms=0, codec=GZIP)
    assert read_hfile(data) == [("aé".encode(), b"1"), (b"b", b"2"), (b"c", b"3")]


def test_a_key_that_repeats_across_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="b'k' is there twice"):
        write_hfile([(b"k", bytes(1 << 20)), (b"j", b""), (b"k", b"")], schema="", created_ms=0)


def test_other_codecs_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="compression number 6"):
        write_hfile([], schema="", created_ms=0, codec=ZSTD)


@cache
def files_of_java() -> tuple[bytes, ...]:
    """HFiles of metadata tables: base files, and blocks of log files."""
    return tuple(_files_of_java())


def _files_of_java() -> Iterator[bytes]:
    found = False
    for place in sorted(WHOLE.glob("*m*d*t*/table.zip")):
        with zipfile.ZipFile(place) as archive:
            for path in archive.namelist():
                if path.endswith(".hfile"):
                    yield archive.read(path)
                elif "/.hoodie/metadata/" in path and ".log." in path:
                    for block in iterate_blocks(archive.read(path)):
                        if isinstance(block, LogBlock) and block.type is BlockType.HFILE_DATA:
                            yield bytes(block.content)
                found = True
    if not found:
        pytest.skip(f"NOT TESTED: there are no reference tables with a metadata table in {WHOLE}")


def test_files_of_java_are_read_and_written_again() -> None:
    for data in files_of_java():
        some = read_hfile(data)
        info = read_info(data)
        assert [key for key, _ in some] == sorted(key for key, _ in some)
        again = write_hfile(some, schema=info.get("schema", b"").decode(), created_ms=0, codec=GZIP)
        assert read_hfile(again) == some
        mine = read_info(again)
        assert mine.keys() <= info.keys() | {"schema"}
        for name in ("hfile.LASTKEY", "hfile.AVG_VALUE_LEN", "KEY_VALUE_VERSION", "MAX_MEMSTORE_TS_KEY"):
            assert info[name].startswith(mine[name]), name  # HBase adds ten bytes to the last key
    assert len(files_of_java()) > 50


def test_damaged_files_are_refused_or_read_but_never_break_out() -> None:
    data = write_hfile([(b"k%d" % i, b"v" * i) for i in range(40)], schema="S" * 99, created_ms=1)
    rng = random.Random(5)
    seeds = [data, *(one for one in files_of_java() if len(one) < 20_000)][:12]
    for _ in range(3000):
        broken = bytearray(rng.choice(seeds))
        end = len(broken)
        for _ in range(rng.choice((1, 1, 2, 6))):
            spot = rng.choice((rng.randrange(end), end - 4096 + rng.randrange(160)))
            broken[spot] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        try:
            read_hfile(bytes(broken))
            read_info(bytes(broken))
        except HoodieError:
            continue


@pytest.mark.parametrize("cut", [0, 1, 100, 4095, 4096, 5000])
def test_cut_files_are_refused(cut: int) -> None:
    data = write_hfile([(b"a", b"x" * 2000)], schema="S", created_ms=1)
    with pytest.raises(CorruptFileError):
        read_hfile(data[:cut])


def test_what_is_not_supported_is_named() -> None:
    data = write_hfile([(b"a", b"x")], schema="S", created_ms=1)
    with pytest.raises(UnsupportedFeatureError, match="version 2"):
        read_hfile(data[:-1] + b"\x02")
    deleted = data.replace(b"\xff" * 7 + b"\x04x", b"\xff" * 7 + b"\x08x")
    with pytest.raises(UnsupportedFeatureError, match="puts"):
        read_hfile(deleted)
    trailer = data.rindex(b"\x60\x02")  # field 12: the codec
    with pytest.raises(UnsupportedFeatureError, match="compression number 0"):
        read_hfile(data[: trailer + 1] + b"\x00" + data[trailer + 2 :])


numbers = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(st.integers(1, 1000), numbers | st.binary())))
def test_messages_read_back(fields: list[tuple[int, int | bytes]]) -> None:
    encoded = [
        encode_number_field(number, value) if isinstance(value, int) else encode_octets_field(number, value)
        for number, value in fields
    ]
    assert list(read_fields(b"".join(encoded))) == fields


def test_the_examples_of_the_protobuf_documentation() -> None:
    assert encode_number_field(1, 150) == bytes.fromhex("089601")
    assert encode_octets_field(2, b"testing") == bytes.fromhex("120774657374696e67")
    assert read_varint(b"\x96\x01", 0) == (150, 2)
    assert encode_varint(1) == b"\x01"


@pytest.mark.parametrize("data", [b"\x80", b"\x80" * 11, b"\x08", b"\x12\x05abc", b"\x0d\x01\0\0\0", b"\x09\x01"])
def test_broken_messages_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        list(read_fields(data))


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.binary(min_size=1, max_size=5), st.binary(max_size=40), max_size=60), st.integers(1, 20))
def test_a_stream_gives_the_file_that_whole_columns_give(some_entries: dict[bytes, bytes], at_once: int) -> None:
    ordered = sorted(some_entries.items())
    out = io.BytesIO()
    writer = HFileWriter(out, schema="{}", created_ms=7)
    for start in range(0, len(ordered), at_once):
        some = ordered[start : start + at_once]
        writer.add(pa.array([key for key, _ in some], pa.binary()), pa.array([value for _, value in some], pa.binary()))
    assert writer.finish() == len(ordered)
    assert out.getvalue() == write_hfile(ordered, schema="{}", created_ms=7, codec=GZIP)


def test_a_stream_is_written_while_it_comes() -> None:
    out = io.BytesIO()
    writer = HFileWriter(out, schema="", created_ms=0, codec=NO_COMPRESSION)
    for number in range(20):
        writer.add(pa.array([f"k{number:02d}"]), pa.array([bytes(1 << 20)]))
    assert len(out.getvalue()) > 10 << 20
    assert writer.finish() == 20
    assert [key for key, _ in read_hfile(out.getvalue())] == [f"k{number:02d}".encode() for number in range(20)]


@pytest.mark.parametrize("second", ["a", "b"])
def test_a_stream_whose_keys_are_out_of_order_is_refused(second: str) -> None:
    writer = HFileWriter(io.BytesIO(), schema="", created_ms=0)
    writer.add(pa.array(["b"]), pa.array([bytes(9 << 20)]))
    with pytest.raises(ValueError, match="out of order or there twice"):
        writer.add(pa.array([second]), pa.array([bytes(9 << 20)]))
