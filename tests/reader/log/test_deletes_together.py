"""Small delete blocks decoded in one go give the entries that each gives alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.log.framing import BlockType
from hoodie_py.reader.log import block_decoder
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.read_info import ReadStats
from tests.reader.slices import Version, config_of, reader_of, write_slice

ROW = Version("a", ts=5)
CONFIG = config_of(MergeMode.EVENT_TIME_ORDERING)
VERSIONS = st.builds(Version, st.sampled_from("abc"), st.sampled_from(["block", "block", "row"]), st.integers(-3, 300))


def log_side(folder: Path, versions: list[Version], *, memory_limit: int | None = None) -> LogReader:
    """Open the log of a slice."""
    reader = reader_of(folder, write_slice(folder, [], versions), CONFIG, memory_limit=memory_limit)
    return LogReader(reader.file_slice, reader.info, ["v"], None, reader.options, ReadStats())


def entries_of(log: LogReader) -> list[tuple[Any, ...]]:
    """Return instant, keys, ordering values and operations of each block."""
    found = []
    for block in log.read_blocks():
        entries = block.entries
        ordering = entries.ordering.to_pylist()
        found.append((block.scanned.instant, entries.keys.to_pylist(), ordering, entries.codes.tolist()))
    log.close()
    return found


@given(st.lists(VERSIONS, max_size=20), st.sampled_from([None, 1, 1 << 20]))
def test_entries_are_what_they_are_alone(
    tmp_path_factory: pytest.TempPathFactory, versions: list[Version], memory_limit: int | None
) -> None:
    folder = tmp_path_factory.mktemp("slice")
    together = entries_of(log_side(folder, versions, memory_limit=memory_limit))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_decoder, "_SMALL", -1)
        assert entries_of(log_side(folder, versions, memory_limit=memory_limit)) == together


def decoded_together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many blocks are decoded together each time."""
    sizes: list[int] = []
    real = block_decoder.decode_deletes_together

    def decode(contents: Any) -> Any:
        sizes.append(len(contents))
        return real(contents)

    monkeypatch.setattr(block_decoder, "decode_deletes_together", decode)
    return sizes


def test_delete_blocks_are_decoded_together_across_data_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = decoded_together(monkeypatch)
    versions = [ROW, Version("a", "block", 6), ROW, Version("b", "block", 7), ROW, Version("c", "block", None)]
    found = entries_of(log_side(tmp_path, versions))
    assert sizes == [3]
    assert [(keys, ordering) for _, keys, ordering, _ in found[1::2]] == [
        (["a"], [6]),
        (["b"], [7]),
        (["c"], [None]),
    ]


def test_large_blocks_are_decoded_alone_and_groups_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = decoded_together(monkeypatch)
    deletes = [Version(key, "block", 6) for key in "abcdef"]
    versions = [version for delete in deletes for version in (delete, ROW)]
    log = log_side(tmp_path, versions)
    size = next(block.scanned.block.size for block in log.read_blocks() if block.scanned.block.type is BlockType.DELETE)
    log.close()
    for most, small, groups in ((size * 2, size, [2, 2, 2]), (size * 4, size, [4, 2]), (size * 9, size - 1, [])):
        sizes.clear()
        monkeypatch.setattr(block_decoder, "SMALL_TOGETHER", most)
        monkeypatch.setattr(block_decoder, "_SMALL", small)
        assert [keys for _, keys, _, _ in entries_of(log_side(tmp_path, versions))][::2] == [[key] for key in "abcdef"]
        assert sizes == groups


def test_an_error_names_the_block_that_is_damaged(tmp_path: Path) -> None:
    versions = [Version("a", "block", 6), ROW, Version("b", "block", 7), ROW, Version("c", "block", 8)]
    log = log_side(tmp_path, versions)
    broken = tmp_path / log.file_slice.log_files[2].path
    content = broken.read_bytes()
    broken.write_bytes(content.replace(b"\x02\x02b", b"\x02\x07b"))  # the key's length is negative
    assert broken.read_bytes() != content
    with pytest.raises(CorruptFileError) as caught:
        entries_of(log)
    assert caught.value.where["path"] == broken.name
    assert caught.value.where["block"] == "DELETE"
