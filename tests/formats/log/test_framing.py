"""Framing of log files."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.log.framing import BlockType, CorruptBlock, HeaderKey, LogBlock, iterate_blocks, read_block_at
from tests.corpus import corpus_names
from tests.formats.log_writer import MAGIC, block, rollback
from tests.formats.real_logs import real_blocks, real_logs

EVERY_HEADER = {key: f"value of {key.name} \u00e9" for key in HeaderKey}

# (typed value, bytes written out by hand)
TABLE = [
    (
        (BlockType.DELETE, {}, b""),
        "234855444923 0000000000000020 00000001 00000001 00000000 0000000000000000 00000000 0000000000000026",
    ),
    (
        (BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "001"}, b"abc"),
        (
            "234855444923 000000000000002e 00000001 00000003 00000001 00000000 00000003 303031"
            "0000000000000003 616263 00000000 0000000000000034"
        ),
    ),
    (
        (BlockType.COMMAND, {HeaderKey.TARGET_INSTANT_TIME: "1", HeaderKey.COMMAND_BLOCK_TYPE: "0"}, b""),
        (
            "234855444923 0000000000000032 00000001 00000000 00000002 00000001 00000001 31 00000003 00000001 30"
            "0000000000000000 00000000 0000000000000038"
        ),
    ),
]


def bare(item: LogBlock | CorruptBlock) -> tuple[object, ...]:
    if isinstance(item, CorruptBlock):
        return (item,)
    return item.type, dict(item.headers), item.offset, bytes(item.content), item.size


@pytest.mark.parametrize(("value", "text"), TABLE)
def test_bytes_of_a_block(value: tuple[BlockType, dict[HeaderKey, str], bytes], text: str) -> None:
    data = bytes.fromhex(text)
    assert block(*value) == data
    assert [bare(b) for b in iterate_blocks(data)] == [(value[0], value[1], 0, value[2], len(data))]


@pytest.mark.parametrize("block_type", [t for t in BlockType if t is not BlockType.CORRUPT])
def test_every_block_type_and_header(block_type: BlockType) -> None:
    data = block(block_type, EVERY_HEADER, b"content")
    (found,) = iterate_blocks(data)
    assert isinstance(found, LogBlock)
    assert (found.type, dict(found.headers), bytes(found.content), found.size) == (
        block_type,
        EVERY_HEADER,
        b"content",
        len(data),
    )


def test_blocks_follow_each_other_and_know_their_place(tmp_path: Path) -> None:
    first, second = block(3, {0: "1"}, b"x" * 100), block(1, {}, b"")
    path = tmp_path / "log"
    path.write_bytes(first + second)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for data in (first + second, memoryview(first + second), mapped):
            blocks = list(iterate_blocks(data))
            assert [(b.offset, bare(b)[-1]) for b in blocks] == [(0, len(first)), (len(first), len(second))]
            blocks.clear()


def test_a_block_that_was_found_is_found_again_or_its_loss_is_told() -> None:
    first, second = block(3, {0: "1"}, b"x" * 30), block(1, EVERY_HEADER, b"y")
    data = first + second
    for found in iterate_blocks(data):
        assert isinstance(found, LogBlock)
        assert bare(read_block_at(data, found.offset)) == bare(found)
        end = found.offset + found.size
        for length in range(end):
            for shorter in (data[:length], data[:length] + bytes(len(data) - length)):
                with pytest.raises(CorruptFileError, match="has gone or was cut short") as error:
                    read_block_at(shorter, found.offset)
                assert error.value.where["offset"] == found.offset


def test_meaning_of_headers() -> None:
    headers = {
        HeaderKey.INSTANT_TIME: "20260101000000000",
        HeaderKey.SCHEMA: "{}",
        HeaderKey.COMPACTED_BLOCK_TIMES: "001,002,003",
        HeaderKey.IS_PARTIAL: "true",
        HeaderKey.RECORD_POSITIONS: "AAA=",
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "000",
    }
    (full,) = iterate_blocks(block(BlockType.AVRO_DATA, headers, b""))
    (bare_block,) = iterate_blocks(block(BlockType.DELETE, {}, b""))
    (back,) = iterate_blocks(rollback("2", "1"))
    assert isinstance(full, LogBlock)
    assert isinstance(bare_block, LogBlock)
    assert isinstance(back, LogBlock)
    assert (full.instant_time, full.schema_text) == ("20260101000000000", "{}")
    assert (full.compacted_instants, full.is_partial) == (("001", "002", "003"), True)
    assert (full.record_positions, full.base_instant_of_positions, full.is_data) == ("AAA=", "000", True)
    assert (bare_block.instant_time, bare_block.compacted_instants, bare_block.is_partial) == (None, (), False)
    assert (bare_block.is_data, bare_block.is_rollback) == (False, False)
    assert (back.is_rollback, back.instant_time, back.target_instant_time) == (True, "2", "1")


def test_rollback_block_has_the_size_that_hudi_writes() -> None:
    assert len(rollback("2" * 17, "1" * 17)) == 105


@pytest.mark.parametrize(("headers", "error"), [({}, CorruptFileError), ({3: "1"}, UnsupportedFeatureError)])
def test_unknown_command(headers: dict[int, str], error: type[HoodieError]) -> None:
    (found,) = iterate_blocks(block(BlockType.COMMAND, headers, b""))
    assert isinstance(found, LogBlock)
    with pytest.raises(error):
        _ = found.is_rollback


@pytest.mark.parametrize("data", [b"", MAGIC, b"#HU", b"\0" * 5], ids=["empty", "magic", "short", "short zeros"])
def test_files_without_blocks(data: bytes) -> None:
    assert list(iterate_blocks(data)) == []


def test_fewer_than_six_bytes_after_a_block_are_the_end() -> None:
    data = block(1, {}, b"")
    assert len(list(iterate_blocks(data + b"12345"))) == 1


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"PAR1PAR1", CorruptFileError),
        (block(7, {}, b""), UnsupportedFeatureError),
        (block(-1, {}, b""), UnsupportedFeatureError),
        (block(2, {}, b""), CorruptFileError),
        (block(3, {9: "x"}, b""), UnsupportedFeatureError),
        (block(3, {}, b"", version=0), UnsupportedFeatureError),
        (block(3, {}, b"", version=2), UnsupportedFeatureError),
        (block(3, {}, b"", footers=1), UnsupportedFeatureError),
    ],
)
def test_what_is_not_understood_is_an_error(data: bytes, error: type[HoodieError]) -> None:
    with pytest.raises(error) as caught:
        list(iterate_blocks(data))
    assert caught.value.where["offset"] == 0


def changed(data: bytes, place: int, form: str, value: int) -> bytes:
    out = bytearray(data)
    struct.pack_into(form, out, place, value)
    return bytes(out)


WHOLE = block(3, {0: "001"}, b"abc")


@pytest.mark.parametrize(
    "data",
    [
        changed(WHOLE, 22, ">i", -1),  # header count
        changed(WHOLE, 22, ">i", 1 << 30),
        changed(WHOLE, 30, ">i", -1),  # header length
        changed(WHOLE, 30, ">i", 1 << 30),
        changed(WHOLE, 37, ">q", -1),  # content length
        changed(WHOLE, 37, ">q", 1 << 60),
        changed(block(3, {0: "001"}, bytes(3)), 37, ">q", 0),  # the content ends before the block does
        WHOLE.replace(b"001", b"\xff\xff\xff"),
        MAGIC + struct.pack(">qq", 8, 14),
    ],
)
def test_a_whole_block_that_does_not_add_up_is_an_error(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        list(iterate_blocks(data))


def test_damaged_blocks_are_reported_and_reading_goes_on() -> None:
    good = block(1, {0: "1"}, b"")
    n = len(good)
    cases = {
        "reverse pointer": (changed(good, n - 8, ">q", 5) + good, [(0, n), n]),
        "size too large": (changed(good, 6, ">q", 1 << 40) + good, [(0, n), n]),
        "size negative": (changed(good, 6, ">q", -1) + good, [(0, n), n]),
        "size lost": (good + MAGIC + b"\0" * 7, [0, (n, n + 13)]),
        "cut off": (good + good[:-1], [0, (n, 2 * n - 1)]),
        "garbage behind": (good + b"garbage" + good, [(0, n + 7), n + 7]),
        "magic in the garbage": (good + b"??" + MAGIC + b"????????" + good, [(0, n + 2), (n + 2, n + 16), n + 16]),
        "garbage at the end": (good + good + b"garbage", [0, (n, 2 * n + 7)]),
    }
    for name, (data, expected) in cases.items():
        found = [(b.offset, b.end) if isinstance(b, CorruptBlock) else b.offset for b in iterate_blocks(data)]
        assert found == expected, name


def test_the_search_for_the_next_magic_crosses_its_windows() -> None:
    good = block(1, {0: "1"}, b"")
    for gap in (*range(1600), *range(3 << 20, (3 << 20) + 9)):  # the first windows are small
        places = [(type(b), b.offset) for b in iterate_blocks(good[:-1] + b"#" * gap + good)]
        assert places == [(CorruptBlock, 0), (LogBlock, len(good) - 1 + gap)]


def test_the_damaged_reference_table_skips_one_block() -> None:
    logs = real_logs("damaged_log_middle_mor_v6")
    kinds = [[type(b) for b in iterate_blocks(data)] for data in logs.values()]
    assert sorted(kinds, key=len) == [[LogBlock], [LogBlock, CorruptBlock, LogBlock]]


def test_all_reference_tables_are_read_whole() -> None:
    for name in corpus_names():
        for path, data in real_logs(name).items():
            blocks = list(iterate_blocks(data))
            flaws = [b for b in blocks if isinstance(b, CorruptBlock)]
            assert len(flaws) == (name == "damaged_log_middle_mor_v6" and len(blocks) > 1), path
            assert [b.offset for b in blocks if isinstance(b, LogBlock)] or not data.strip(b"#HUDI")
    assert real_blocks()


SMALL = ["log_compaction_mor_v6", "rollback_completed_mor_v6", "delete_marker_mor_v9", "positions_mor_v9"]


@pytest.mark.parametrize("name", SMALL)
def test_every_truncation_gives_a_prefix_of_the_blocks(name: str) -> None:
    for data in list(real_logs(name).values())[:2]:
        whole = [bare(b) for b in iterate_blocks(data)]
        ends = [b.offset + b.size for b in iterate_blocks(data) if isinstance(b, LogBlock)]
        for length in range(len(data)):
            found = list(iterate_blocks(data[:length]))
            complete = sum(end <= length for end in ends)
            assert [bare(b) for b in found[:complete]] == whole[:complete]
            rest = found[complete:]
            # a block that was cut may hold the magic in its content, as text
            assert all(isinstance(b, CorruptBlock) for b in rest)
            assert len(rest) == (length - (ends[complete - 1] if complete else 0) > len(MAGIC))


@pytest.mark.parametrize("name", SMALL)
def test_flipped_bits_give_blocks_reports_or_errors(name: str) -> None:
    data = min(real_logs(name).values(), key=len)
    for place in range(0, len(data), 3):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        try:
            found = list(iterate_blocks(bytes(flipped)))
        except HoodieError:
            continue
        assert all(0 <= b.offset < len(data) for b in found)


@given(st.binary(max_size=200), st.lists(st.sampled_from([MAGIC, WHOLE, WHOLE[:30], b"\0" * 8]), max_size=6))
def test_any_bytes_give_blocks_reports_or_errors(junk: bytes, parts: list[bytes]) -> None:
    data = junk.join([b"", *parts, b""])
    try:
        found = list(iterate_blocks(data))
    except HoodieError:
        return
    places = [b.offset for b in found]
    assert places == sorted(set(places))
