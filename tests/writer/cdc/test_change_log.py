"""Change records go into blocks of bounded size, and there is always a block."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.writer import cdc
from hoodie_py.writer.cdc import ChangeLog, ChangeSchema
from tests.reader.slices import SCHEMA, Version, config_of, reader_of, write_slice
from tests.writer.change_tables import ChangeBlock, parse_change_file

INSTANT = "20260103000000000"
CHANGES = ChangeSchema.of("DATA_BEFORE_AFTER", make_schema_text(SCHEMA.remove(0), "t"))


def write(folder: Path, log: list[Version], base: int = 30) -> list[ChangeBlock]:
    rows = [Version(f"k{number:02}") for number in range(base)]
    reader = reader_of(folder, write_slice(folder, rows, log), config_of(MergeMode.COMMIT_TIME_ORDERING), batch_rows=7)
    sink = io.BytesIO()
    changes = ChangeLog(sink, CHANGES, INSTANT)
    for merged in reader.read_merges():
        changes.add(merged, reader.context.store)
    changes.finish()
    return parse_change_file(sink.getvalue())


def updates(count: int) -> list[Version]:
    return [Version(f"k{number:02}", v=number) for number in range(count)]


def test_small_pieces_share_a_block(tmp_path: Path) -> None:
    [block] = write(tmp_path, updates(40))
    assert block.headers == {0: INSTANT, 2: CHANGES.avro.text}
    assert [each["op"] for each in block.records] == 30 * ["u"] + 10 * ["i"]
    assert [each["after"]["v"] for each in block.records[:30]] == list(range(30))


@pytest.mark.parametrize(("name", "most"), [("_BLOCK_ROWS", 4), ("_BLOCK_BYTES", 500), ("_BLOCK_BYTES", 1)])
def test_large_ones_are_split(name: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [each for block in write(tmp_path, updates(40)) for each in block.records]
    monkeypatch.setattr(cdc, name, most)
    blocks = write(tmp_path, updates(40))
    assert len(blocks) > 5
    assert all(0 < len(block.records) <= 7 for block in blocks)
    assert [each for block in blocks for each in block.records] == whole
    if name == "_BLOCK_ROWS":
        assert {len(block.records) for block in blocks} <= {1, 2, 3, 4}


def test_no_change_is_a_block_without_records(tmp_path: Path) -> None:
    [block] = write(tmp_path, [Version("zz", kind="block", ts=None)])
    assert block.records == []
    assert block.headers == {0: INSTANT, 2: CHANGES.avro.text}
