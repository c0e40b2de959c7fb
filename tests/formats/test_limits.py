from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from hoodie_py.errors import CorruptFileError, HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.config.properties import parse_properties
from hoodie_py.formats.deletes.decoder import decode_deletes
from hoodie_py.formats.hfile.bootstrap_index import read_hfile
from hoodie_py.formats.limits import VARIABLE, Limits, get_limits
from hoodie_py.formats.log.blocks import decode_positions
from hoodie_py.formats.log.framing import BlockType, HeaderKey, iterate_blocks
from hoodie_py.formats.names import parse_base_file_name
from hoodie_py.formats.parquet.decoder import decode_parquet_data
from hoodie_py.formats.timeline.archive import parse_history_parquet
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, parse_json
from tests.formats.hfile.layouts import make_hfile
from tests.formats.log_writer import KryoWriter, avro_data, block, delete_content, deletes, rollback
from tests.fuzz.bombs import container

DOCUMENT = Path(__file__).parents[2] / "docs" / "limits.md"
_LINE = re.compile(r"^\| `([a-z_]+)` \| ([0-9]+) ?([KMG]?) \|", re.MULTILINE)


def test_the_documented_limits_are_those_of_the_code() -> None:
    documented = {name: f"{number}{factor}" for name, number, factor in _LINE.findall(DOCUMENT.read_text())}
    assert set(documented) == {each.name for each in fields(Limits)}
    text = " ".join(f"{name}={value}" for name, value in documented.items())
    assert Limits.from_text(text) == Limits()


def test_what_is_named_is_set_and_the_rest_keeps_its_default() -> None:
    found = Limits.from_text("log_blocks=2, schema_depth=3K metadata_bytes=1G")
    assert (found.log_blocks, found.schema_depth, found.metadata_bytes) == (2, 3 << 10, 1 << 30)
    assert found.columns == Limits().columns


@pytest.mark.parametrize(
    "text", ["log_blocks", "log_blocks=", "log_blocks=-1", "log_blocks=0", "blocks=1", "columns=1T"]
)
def test_what_cannot_be_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError, match="is no limit") as raised:
        Limits.from_text(text)
    assert "log_blocks" in (raised.value.hint or "")


def test_the_environment_sets_them_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rollback("20260102000000000", "20260101000000000") * 3
    assert len(list(iterate_blocks(data))) == 3
    monkeypatch.setenv(VARIABLE, "log_blocks=2")
    assert get_limits().log_blocks == 2
    with pytest.raises(UnsupportedFeatureError, match="log_blocks=2") as raised:
        list(iterate_blocks(data))
    assert VARIABLE in (raised.value.hint or "")
    assert raised.value.where["offset"] == len(data) // 3 * 2


def parquet(rows: int, columns: int) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({f"c{i}": list(range(rows)) for i in range(columns)}), out)
    return out.getvalue()


def schema(*types: Any) -> str:
    fields = [{"name": f"f{i}", "type": type_} for i, type_ in enumerate(types)]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def records(count: int) -> object:
    text = schema("long")
    return decode_avro_data(avro_data(text, [{"f0": 1}] * count), AvroSchema.parse(text))


def positions(count: int) -> object:
    return decode_positions(base64.b64encode(BitMap64(range(count)).serialize()).decode())


ONE_BLOCK = block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: "x"}, deletes([("k", "p", None)]))
CONTAINER = container(schema("string").replace('"r"', '"HoodieCommitMetadata"'), b"\2x", deflate=False)
TWO_DELETES = deletes([("a", "", 1), ("b", "", 2)])
TWO_BLOCKS = rollback("2", "1") * 2
KRYO = [("a", "p"), ("b", "p")]
ENTRIES = [(b"a", bytes(60)), (b"b", bytes(60))]
# A limit, a value of it, what is beyond it, and what is not.
ENFORCED: list[tuple[str, int, Callable[[], object], Callable[[], object]]] = [
    ("block_bytes", 8, lambda: list(iterate_blocks(ONE_BLOCK)), lambda: list(iterate_blocks(rollback("2", "1")))),
    ("block_records", 2, lambda: records(3), lambda: records(2)),
    ("block_records", 2, lambda: positions(3), lambda: positions(2)),
    ("block_records", 1, lambda: decode_deletes(TWO_DELETES), lambda: decode_deletes(deletes([]))),
    (
        "block_records", 1, lambda: decode_deletes(delete_content(1, KryoWriter().keys(KRYO))),
        lambda: decode_deletes(delete_content(1, KryoWriter().keys(KRYO[:1]))),
    ),
    ("columns", 2, lambda: decode_parquet_data(parquet(1, 3)), lambda: decode_parquet_data(parquet(1, 2))),
    ("decoded_bytes", 2000, lambda: decode_parquet_data(parquet(200, 2)), lambda: decode_parquet_data(parquet(2, 2))),
    ("file_rows", 2, lambda: decode_parquet_data(parquet(3, 1)), lambda: decode_parquet_data(parquet(2, 1))),
    ("file_rows", 1, lambda: read_hfile(make_hfile(ENTRIES)), lambda: read_hfile(make_hfile(ENTRIES[:1]))),
    ("hfile_block_bytes", 130, lambda: read_hfile(make_hfile(ENTRIES)), lambda: read_hfile(make_hfile(ENTRIES[:1]))),
    ("log_blocks", 2, lambda: list(iterate_blocks(TWO_BLOCKS * 2)), lambda: list(iterate_blocks(TWO_BLOCKS))),
    ("log_headers", 2, lambda: list(iterate_blocks(rollback("2", "1"))), lambda: list(iterate_blocks(ONE_BLOCK))),
    ("metadata_bytes", 9, lambda: parse_json(b'{"a": 123}'), lambda: parse_json(b'{"a": 1}')),
    ("metadata_bytes", 9, lambda: CommitMetadata.from_bytes(CONTAINER), lambda: None),
    ("metadata_items", 2, lambda: parse_json(b'{"a": [[1]]}'), lambda: parse_json(b'{"a": [1]}')),
    ("properties_bytes", 3, lambda: parse_properties(b"a=12"), lambda: parse_properties(b"a=1")),
    ("schema_chars", 90, lambda: parse_record(schema("int", "long", "double")), lambda: parse_record(schema("int"))),
    ("schema_depth", 2, lambda: parse_record(schema({"type": "map", "values": {"type": "map", "values": "int"}})),
     lambda: parse_record(schema({"type": "map", "values": "int"}))),
    ("schema_types", 3, lambda: parse_record(schema("int", "int", "int")), lambda: parse_record(schema("int", "int"))),
]  # fmt: skip
ELSEWHERE = {
    "decoded_ratio": "tests/fuzz/test_bombs.py",
    "metadata_ratio": "tests/fuzz/test_bombs.py",
    "history_rows": "below",
    "archive_bytes": "tests/table/test_bounded.py",
    "log_bytes": "tests/table/test_bounded.py",
    "linked_folders": "tests/table/view/test_file_system_view.py",
    "name_chars": "below",
}


@pytest.mark.parametrize(
    ("name", "value", "beyond", "within"), ENFORCED, ids=[f"{each[0]}-{i}" for i, each in enumerate(ENFORCED)]
)
def test_what_is_beyond_a_limit_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: int, beyond: Callable[[], object], within: Callable[[], object]
) -> None:
    beyond()
    monkeypatch.setenv(VARIABLE, f"{name}={value}")
    within()
    with pytest.raises(HoodieError, match=rf"\({name}={value}\)"):
        beyond()


def test_history_files_of_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "history_rows=2")
    with pytest.raises(CorruptFileError, match="history_rows=2"):
        parse_history_parquet(parquet(3, 1))


def test_names_that_are_too_long_are_no_names_of_data_files(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{'f' * 128}-0_1-2-3_20260101000000000.parquet"
    assert parse_base_file_name(name) is not None
    monkeypatch.setenv(VARIABLE, f"name_chars={len(name) - 1}")
    assert parse_base_file_name(name) is None


def test_every_limit_is_tested() -> None:
    assert {each[0] for each in ENFORCED} | set(ELSEWHERE) == {each.name for each in fields(Limits)}
