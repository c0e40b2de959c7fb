"""Change records: their schemas as Java's, their rows as a plain comparison's, and blocks of bounded size."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import CDC_MODES
from hoodie_py.writer import cdc
from hoodie_py.writer.cdc import ChangeLog, ChangeSchema, make_change_records
from tests.reader.slices import SCHEMA, Version, bases, config_of, logs, reader_of, write_slice
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


TABLE = make_schema_text(SCHEMA.remove(0), "t")  # without the meta column
MODES = (MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING)


def capture(
    base: Sequence[Version], log: Sequence[Version], mode: MergeMode, capture_mode: str, memory_limit: int | None = None
) -> list[dict[str, Any]]:
    """The change records of a slice's merge."""
    schema = ChangeSchema.of(capture_mode, TABLE)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file_slice = write_slice(place, base, log)
        reader = reader_of(place, file_slice, config_of(mode), batch_rows=3, memory_limit=memory_limit)
        found = [
            make_change_records(merged, reader.context.store, schema, INSTANT).to_pylist()
            for merged in reader.read_merges()
        ]
    return [record for records in found for record in records]


def read(base: Sequence[Version], log: Sequence[Version], mode: MergeMode) -> dict[str, dict[str, Any]]:
    """The rows of a slice by key, without meta column."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = [row for each in reader_of(place, write_slice(place, base, log), config_of(mode)).to_batches()
                for row in each.to_pylist()]  # fmt: skip
    return {row.pop("_hoodie_record_key"): row for row in rows}


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60, deadline=None)
@given(base=bases(), log=logs())
def test_changes_lead_from_the_rows_before_to_the_rows_after(
    mode: MergeMode, base: list[Version], log: list[Version]
) -> None:
    before, after = read(base, [], mode), read(base, log, mode)
    rows = dict(before)
    changes = capture(base, log, mode, "DATA_BEFORE_AFTER")
    assert {change["ts_ms"] for change in changes} <= {INSTANT}
    for change in changes:
        key = (change["before"] or change["after"])["id"]
        assert (
            change["op"]
            == {(True, False): "i", (False, False): "u", (False, True): "d"}[
                change["before"] is None, change["after"] is None
            ]
        )
        assert rows.pop(key, None) == change["before"]
        if change["after"] is not None:
            rows[key] = change["after"]
    assert rows == after
    assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= {
        (change["before"] or change["after"])["id"] for change in changes
    }


@settings(max_examples=40, deadline=None)
@given(base=bases(), log=logs())
def test_modes_agree(base: list[Version], log: list[Version]) -> None:
    both, before, keys = (capture(base, log, MODES[0], mode) for mode in reversed(CDC_MODES))
    named = [(each["op"], (each["before"] or each["after"])["id"]) for each in both]
    assert [(each["op"], each["record_key"]) for each in before] == named
    assert [(each["op"], each["record_key"]) for each in keys] == named
    assert [each["before"] for each in before] == [each["before"] for each in both]


def test_what_changed_nothing_is_left_out() -> None:
    base = [Version("k1", ts=5), Version("k2", ts=5)]
    log = [Version("k1", ts=4, v=9), Version("k3", kind="block", ts=9), Version("k2", ts=5, v=1)]
    [same] = capture(base, log, MergeMode.EVENT_TIME_ORDERING, "DATA_BEFORE_AFTER")
    assert same["op"] == "u", "a row that is written again is an update, as in Java, also with the same values"
    assert same["before"] == same["after"]
    assert same["before"]["id"] == "k2"


@settings(max_examples=20, deadline=None)
@given(base=bases(), log=logs())
def test_a_log_that_is_spilled_has_the_same_changes(base: list[Version], log: list[Version]) -> None:
    both = (sorted(map(repr, capture(base, log, MODES[1], "DATA_BEFORE_AFTER", limit))) for limit in (None, 1))
    assert next(both) == next(both)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
def test_all_rows_may_go(keys: list[str]) -> None:
    base = [Version(key) for key in keys]
    log = [Version(key, kind="block", ts=9) for key in keys]
    found = capture(base, log, MergeMode.EVENT_TIME_ORDERING, "DATA_BEFORE_AFTER")
    assert [(each["op"], each["before"]["id"], each["after"]) for each in found] == [("d", key, None) for key in keys]


COLUMNS = pa.schema([("id", pa.string()), ("price", pa.float64())])
TABLE_SCHEMA = make_schema_text(COLUMNS, "t")
_OP = '{"name":"op","type":["null","string"],"doc":"","default":null}'
_IMAGE = (
    '{"type":"record","name":"t_record","fields":[{"name":"id","type":["null","string"],"default":null},'
    '{"name":"price","type":["null","double"],"default":null}]}'
)
_BEFORE = f'{{"name":"before","type":["null",{_IMAGE}],"doc":"","default":null}}'
_HEAD = '{"type":"record","name":"CDC","namespace":"hoodie.t","doc":"","fields":['


def test_keys_only() -> None:
    found = ChangeSchema.of("OP_KEY_ONLY", TABLE_SCHEMA)
    assert found.avro.text == (
        '{"type":"record","name":"Record","fields":[{"name":"op","type":["string","null"]},'
        '{"name":"record_key","type":["string","null"]}]}'
    )
    assert found.arrow.names == ["op", "record_key"]


def test_images_before() -> None:
    found = ChangeSchema.of("DATA_BEFORE", TABLE_SCHEMA)
    key = '{"name":"record_key","type":["null","string"],"doc":"","default":null}'
    assert found.avro.text == f"{_HEAD}{_OP},{key},{_BEFORE}]}}"
    assert found.image == ("id", "price")


def test_both_images() -> None:
    found = ChangeSchema.of("DATA_BEFORE_AFTER", TABLE_SCHEMA)
    time = '{"name":"ts_ms","type":["null","string"],"doc":"","default":null}'
    after = '{"name":"after","type":["null","t_record"],"doc":"","default":null}'
    assert found.avro.text == f"{_HEAD}{_OP},{time},{_BEFORE},{after}]}}"
    assert found.arrow.field("after").type == found.arrow.field("before").type == pa.struct(list(COLUMNS))


@pytest.mark.parametrize("name", [{"name": "rec"}, {"name": "a.b.rec"}, {"name": "rec", "namespace": "a.b"}])
def test_names_with_and_without_namespace(name: dict[str, str]) -> None:
    table = json.dumps({"type": "record", **name, "fields": [{"name": "id", "type": "string"}]})
    found = ChangeSchema.of("DATA_BEFORE_AFTER", table)
    stored = json.loads(found.avro.text)
    assert stored.get("namespace") == ("a.b" if len(json.dumps(name)) > len('{"name": "rec"}') else None)
    assert stored["fields"][3]["type"] == ["null", "rec"]
    assert found.arrow.field("before").type.field("id").nullable, "the columns of a missing image are null"


def test_a_name_that_is_taken() -> None:
    table = json.dumps({"type": "record", "name": "CDC", "fields": [{"name": "id", "type": "string"}]})
    with pytest.raises(CorruptFileError):
        ChangeSchema.of("DATA_BEFORE_AFTER", table)
