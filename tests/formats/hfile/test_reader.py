"""Open HFiles: look-ups read what they need, and damaged files are errors in bounded time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.formats.hfile.blocks import BZIP2, GZIP, HEADER, LZ4, NO_COMPRESSION, SNAPPY, ZSTD, MemorySource
from hoodie_py.formats.hfile.data_block import Entry
from hoodie_py.formats.hfile.reader import HFile
from tests.formats.hfile.layouts import FileMaker, Layout, encode_entry, encode_root, make_hfile
from tests.hfiles import write_hfile

keys = st.binary(min_size=1, max_size=3)
entries = st.lists(st.tuples(keys, st.binary(max_size=30)), max_size=40).map(
    lambda some: sorted(some, key=lambda e: e[0])
)
layouts = st.builds(
    Layout,
    codec=st.sampled_from([NO_COMPRESSION, GZIP, SNAPPY, LZ4, BZIP2, ZSTD]),
    per_block=st.integers(1, 9),
    fan_out=st.sampled_from([2, 3, 1000]),
    hbase=st.booleans(),
)


def shorten(last: bytes, first: bytes) -> bytes:
    """A key between the last one of a block and the first one of the next, as HBase makes it."""
    for size in range(1, len(first)):
        if first[:size] > last:
            return first[:size]
    return first


def shorten_wrongly(wrong: bytes, last: bytes, first: bytes) -> bytes:
    return wrong if first == b"b2" else shorten(last, first)


class Counted:
    """Bytes in memory that count what is read."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._data = data
        self.reads: list[tuple[int, int]] = []

    def read(self, start: int, stop: int) -> bytes:
        assert 0 <= start <= stop <= self.size
        self.reads.append((start, stop))
        return self._data[start:stop]


def read_all(data: bytes) -> list[Entry]:
    return list(HFile.from_bytes(data).iterate_entries())


def found(blocks: Any) -> list[Entry]:
    return [entry for block in blocks for entry in block.iterate_entries()]


@given(entries, layouts)
def test_every_layout_reads_back(some: list[Entry], layout: Layout) -> None:
    assert read_all(make_hfile(some, replace(layout, shorten=shorten))) == some


@given(st.dictionaries(keys, st.binary(max_size=60), max_size=60), st.data())
def test_what_the_writer_makes_is_found(some: dict[bytes, bytes], data: st.DataObject) -> None:
    hfile = HFile.from_bytes(write_hfile(list(some.items()), schema="S", created_ms=0))
    wanted = sorted(data.draw(st.sets(keys)))
    assert found(hfile.select_keys(wanted)) == [(key, some[key]) for key in wanted if key in some]


@given(entries, layouts, st.lists(keys))
def test_look_ups_find_what_a_scan_finds(some: list[Entry], layout: Layout, chosen: list[bytes]) -> None:
    hfile = HFile.from_bytes(make_hfile(some, replace(layout, shorten=shorten)))
    wanted = sorted([*chosen, *(key for key, _ in some[::3])])
    assert found(hfile.select_keys(wanted)) == [entry for entry in some if entry[0] in wanted]
    prefixes = sorted({key[:1] for key in wanted[::2]} | set(wanted[::5]))
    matching = [entry for entry in some if entry[0].startswith(tuple(prefixes))]
    assert found(hfile.select_prefixes(prefixes)) == matching
    for start in wanted[:3]:
        assert list(hfile.iterate_entries(start)) == [entry for entry in some if entry[0] >= start]


@given(entries, layouts)
def test_only_blocks_that_may_have_a_key_are_read(some: list[Entry], layout: Layout) -> None:
    source = Counted(make_hfile(some, layout))
    hfile = HFile(source)
    opened = len(source.reads)
    for key, _ in some[::7]:
        source.reads.clear()
        assert found(hfile.select_keys([key]))
        whole = [
            index for index, _ in groupby(at // layout.per_block for at, each in enumerate(some) if each[0] == key)
        ]
        depth = hfile.trailer.levels - 1
        assert len(source.reads) <= 2 * depth + len(whole) + 1
    assert opened == 2


def test_neighbouring_blocks_come_with_one_request_and_far_ones_do_not() -> None:
    some = [(b"%04d" % number, bytes(900)) for number in range(400)]
    source = Counted(make_hfile(some))
    hfile = HFile(source)
    source.reads.clear()
    assert found(hfile.select_keys([b"0004", b"0008", b"0300"])) == [some[4], some[8], some[300]]
    assert [stop - start < 12_000 for start, stop in source.reads] == [True, True]
    source.reads.clear()
    assert list(hfile.iterate_entries()) == some
    assert len(source.reads) == 1


def test_keys_that_repeat_across_blocks_are_all_found() -> None:
    some = [(b"a", b"0"), *((b"k", b"%d" % number) for number in range(11)), (b"z", b"9")]
    for layout in (Layout(per_block=1), Layout(per_block=3, fan_out=2), Layout(per_block=4, hbase=True)):
        hfile = HFile.from_bytes(make_hfile(some, layout))
        assert found(hfile.select_keys([b"k"])) == some[1:-1]
        assert found(hfile.select_prefixes([b"k"])) == some[1:-1]


def test_prefixes_that_end_with_the_last_byte_have_a_bound() -> None:
    some = [(b"\xfe", b""), (b"\xff", b"1"), (b"\xff\xff", b"2"), (b"\xff\xff\xff", b"3")]
    hfile = HFile.from_bytes(make_hfile(some, Layout(per_block=1)))
    assert found(hfile.select_prefixes([b"\xff"])) == some[1:]
    assert found(hfile.select_prefixes([b"\xff\xff"])) == some[2:]
    assert found(hfile.select_prefixes([b""])) == some
    assert found(hfile.select_prefixes([])) == []


def test_meta_blocks_and_facts_are_found_by_name() -> None:
    layout = Layout(GZIP, meta={"bloomFilter": b"bits", "other": b"x" * 300}, facts={"minRecordKey": b"a"}, schema=None)
    hfile = HFile.from_bytes(make_hfile([(b"a", b"")], layout))
    assert [hfile.read_meta(name) for name in ("bloomFilter", "other", "none")] == [b"bits", b"x" * 300, None]
    assert hfile.info["minRecordKey"] == b"a"
    assert hfile.schema_text is None
    assert HFile.from_bytes(make_hfile([])).read_meta("bloomFilter") is None


def test_a_schema_that_is_no_text_is_an_error() -> None:
    data = make_hfile([], Layout(facts={"schema": b"\xff"}, schema=None))
    with pytest.raises(CorruptFileError, match="UTF-8"):
        _ = HFile.from_bytes(data).schema_text


# Hostile files -------------------------------------------------------------------------------------------------------


def with_root(maker: FileMaker, places: Sequence[tuple[int, int, bytes]], entries: int, levels: int) -> bytes:
    root = b"".join(encode_root(offset, size, maker.encode_key(key)) for offset, size, key in places)
    return maker.end(root, len(places), [], entries, levels)


def test_an_index_that_points_to_itself_is_an_error() -> None:
    maker = FileMaker(Layout())
    size = HEADER.size + 8 + 4 + 12 + 3 + 4  # of an index block with one entry
    place = (0, size, b"a")
    assert maker.add_inner(b"IDXINTE2", [place]) == place
    with pytest.raises(CorruptFileError, match="where its index should be"):
        read_all(with_root(maker, [place], 1, 16))
    with pytest.raises(CorruptFileError, match="17 levels"):
        read_all(with_root(maker, [place], 1, 17))


def test_an_index_that_goes_back_or_repeats_a_block_is_an_error() -> None:
    maker = FileMaker(Layout())
    first = maker.add(b"DATABLK*", encode_entry(b"a", b"1"))
    second = maker.add(b"DATABLK*", encode_entry(b"a", b"2"))
    for places in ([second, first], [first, first], [first] * 1000):
        data = with_root(copy_maker(maker), [(*place, b"a") for place in places], len(places), 1)
        with pytest.raises(CorruptFileError, match="does not go forward"):
            read_all(data)


def copy_maker(maker: FileMaker) -> FileMaker:
    copy = FileMaker(maker.layout)
    copy.out = bytearray(maker.out)
    return copy


def test_an_index_of_many_ways_to_one_block_ends_soon() -> None:
    maker = FileMaker(Layout())
    place = (*maker.add(b"DATABLK*", encode_entry(b"a", b"1")), b"a")
    place = maker.add_inner(b"IDXLEAF2", [place] * 500)
    for _ in range(10):
        place = maker.add_inner(b"IDXINTE2", [place] * 500)
    with pytest.raises(CorruptFileError, match="does not go forward"):
        read_all(with_root(maker, [place], 1000, 12))


@pytest.mark.parametrize("place", [(-1, 50), (0, 0), (0, -5), (0, 1 << 30), (1 << 62, 40), (1 << 40, 40)])
def test_places_outside_of_the_file_are_an_error(place: tuple[int, int]) -> None:
    maker = FileMaker(Layout())
    maker.add(b"DATABLK*", encode_entry(b"a", b"1"))
    with pytest.raises(CorruptFileError, match="points out of the file"):
        read_all(with_root(maker, [(*place, b"a")], 1, 1))


def test_other_numbers_of_entries_than_promised_are_an_error() -> None:
    some = [(b"a", b""), (b"b", b"")]
    for promised in (1, 3):
        maker = FileMaker(Layout())
        place = maker.add(b"DATABLK*", b"".join(encode_entry(*each) for each in some))
        with pytest.raises(CorruptFileError, match=f"{promised} entries has 2"):
            read_all(with_root(maker, [(*place, b"a")], promised, 1))
    maker = FileMaker(Layout())
    with pytest.raises(CorruptFileError, match="cannot have"):
        HFile.from_bytes(with_root(maker, [], 1 << 60, 1))


def test_keys_out_of_order_are_an_error() -> None:
    one = [(b"b", b""), (b"a", b"")]
    with pytest.raises(CorruptFileError, match="block are not sorted"):
        read_all(make_hfile(one))
    with pytest.raises(CorruptFileError, match=r"index are not sorted"):
        read_all(make_hfile(one, Layout(per_block=1)))
    with pytest.raises(CorruptFileError, match="of an HFile are not sorted"):
        read_all(make_hfile(one, Layout(per_block=1, shorten=lambda last, _: last)))


def test_an_index_that_denies_the_keys_of_its_blocks_is_an_error() -> None:
    """Otherwise look-ups would miss what a scan finds."""
    some = [(b"b%d" % number, b"") for number in range(8)]
    for wrong in (b"b0", b"b3"):  # not greater than the keys before the block, and greater than its first one
        for fan_out in (2, 1000):
            shortened = partial(shorten_wrongly, wrong)
            layout = Layout(per_block=2, fan_out=fan_out, shorten=shortened)
            with pytest.raises(CorruptFileError, match="index denies"):
                read_all(make_hfile(some, layout))


def test_levels_of_an_index_that_contradict_each_other_are_an_error() -> None:
    maker = FileMaker(Layout())
    block = maker.add(b"DATABLK*", encode_entry(b"b", b""))
    offset, size, _ = maker.add_inner(b"IDXLEAF2", [(*block, b"b")])
    with pytest.raises(CorruptFileError, match="contradict"):
        read_all(with_root(maker, [(offset, size, b"c")], 1, 2))


@pytest.mark.parametrize("count", [-1, 3, 1 << 30])
def test_absurd_counts_in_the_index_are_an_error(count: int) -> None:
    maker = FileMaker(Layout())
    leaf = maker.add(b"IDXLEAF2", struct.pack(">ii", count, 0))
    with pytest.raises(CorruptFileError, match="cannot have"):
        read_all(with_root(maker, [(*leaf, b"a")], 1, 2))


SAMPLES = [
    make_hfile([(b"k%02d" % number, b"v" * number) for number in range(5)], layout)
    for layout in (
        Layout(GZIP, per_block=2, fan_out=2, meta={"bloomFilter": b"bits"}),
        Layout(SNAPPY, per_block=4, hbase=True),
        Layout(LZ4, per_block=9),
        Layout(ZSTD, per_block=9),
        Layout(per_block=3),
    )
]


def check(data: bytes, sample: bytes) -> None:
    """A damaged file is an error or reads as before; where stored bytes themselves changed, as many entries."""
    try:
        hfile = HFile.from_bytes(data)
        read = list(hfile.iterate_entries())
        hfile.read_meta("bloomFilter")
        looked_up = found(hfile.select_keys([b"k01", b"k03"]))
    except HoodieError:
        return
    before = read_all(sample)
    assert len(read) == len(before)
    assert all(entry in read for entry in looked_up)


@pytest.mark.parametrize("sample", SAMPLES, ids=["gzip", "snappy", "lz4", "zstd", "plain"])
def test_every_cut_is_an_error(sample: bytes) -> None:
    for size in range(len(sample)):
        with pytest.raises(CorruptFileError):
            HFile(MemorySource(memoryview(sample)[:size]))


@pytest.mark.parametrize("sample", SAMPLES, ids=["gzip", "snappy", "lz4", "zstd", "plain"])
def test_every_flipped_bit_is_an_error_or_harmless(sample: bytes) -> None:
    zeros = sample.rindex(b'TRABLK"$') + 120  # the trailer's rest is zeros, which nobody reads
    for place in [*range(zeros), *range(len(sample) - 4, len(sample))]:
        for bit in range(8):
            damaged = bytearray(sample)
            damaged[place] ^= 1 << bit
            check(bytes(damaged), sample)
