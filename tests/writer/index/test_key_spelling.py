"""Keys that a table spells otherwise than a write would: refused with both spellings, before anything is written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from tests.writer.compaction_tables import QUICK

TEXTS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
VALUE_ONLY = "hoodie.write.complex.keygen.new.encoding"
SCHEMA = pa.schema(
    [("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("part", pa.string()), ("ts", pa.int64()),
     ("name", pa.string())]
)  # fmt: skip
AT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901, dt.UTC)
TEXT, MICROS = "id:a,at:2020-01-02 03:04:05.678", "id:a,at:1577934245678901"


def _row(id_: str, name: str, part: str = "p", ts: int = 1) -> dict[str, Any]:
    return {"id": id_, "at": AT, "part": part, "ts": ts, "name": name}


def _table(base: Path, version: int = 9, **arguments: Any) -> HoodieTable:
    chosen: dict[str, Any] = {"record_key": ["id", "at"], "ordering": "ts", "partition_by": ["part"]} | arguments
    HoodieTable.create(base, SCHEMA, table_version=version, **chosen)
    return HoodieTable.open(base)


def _keys(table: HoodieTable) -> dict[str, str]:
    rows = table.scan(columns=["_hoodie_record_key", "name"]).to_arrow().to_pylist()
    return {row["_hoodie_record_key"]: row["name"] for row in rows}


def _options(*, texts: bool, **more: str) -> Mapping[str, str]:
    return {**QUICK, TEXTS: str(texts).lower(), **more}


@pytest.mark.parametrize("version", [9, 8, 6])
@pytest.mark.parametrize("texts", [True, False])
def test_every_write_with_the_other_spelling_is_refused(tmp_path: Path, version: int, texts: bool) -> None:
    table = _table(tmp_path / "t", version)
    table.upsert([_row("a", "first")], _options(texts=texts))
    assert _keys(table) == {TEXT if texts else MICROS: "first"}
    both = rf"{'.*'.join([TEXT, MICROS] if texts else [MICROS, TEXT])}.*{TEXTS}={str(texts).lower()}"
    for operation in ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite"):
        for part in ("p", "new"):
            with pytest.raises(InvalidQueryError, match=both):
                getattr(table, operation)([_row("a", "second", part)], _options(texts=not texts))
    assert _keys(table) == {TEXT if texts else MICROS: "first"}
    table.upsert([_row("a", "second", ts=2), _row("b", "new")], _options(texts=texts))
    assert sorted(_keys(table).values()) == ["new", "second"]
    table.delete([_row("a", "x", ts=3)], _options(texts=texts))
    assert list(_keys(table).values()) == ["new"]
    table.insert_overwrite_table([_row("a", "all")], _options(texts=not texts))
    assert _keys(table) == {MICROS if texts else TEXT: "all"}


def test_a_log_without_base_file_is_looked_at_too(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    index = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table.upsert([_row("a", "first")], _options(texts=True, **index))
    table.upsert([_row("b", "log")], _options(texts=True, **index))
    base = next(each for each in (tmp_path / "t" / "p").iterdir() if each.suffix == ".parquet")
    base.unlink()
    with pytest.raises(InvalidQueryError, match=r"spells record keys otherwise.*id:b"):
        HoodieTable.open(tmp_path / "t").upsert([_row("b", "x")], _options(texts=False, **index))


def test_partition_paths_of_timestamps_are_compared_too(tmp_path: Path) -> None:
    table = _table(
        tmp_path / "t", record_key="id", partition_by=["at"],
        properties={"hoodie.datasource.write.partitionpath.urlencode": "true"},
    )  # fmt: skip
    table.upsert([_row("a", "first")], _options(texts=True))
    paths = table.scan(columns=["_hoodie_partition_path"]).to_arrow()[0].to_pylist()
    assert paths == ["2020-01-02 03%3A04%3A05.678"]
    with pytest.raises(InvalidQueryError, match=r"spells partition paths otherwise.*05\.678.*1577934245678901"):
        table.upsert([_row("a", "second")], _options(texts=False))


def test_a_complex_key_of_one_field_is_compared(tmp_path: Path) -> None:
    table = _table(tmp_path / "t", 6, record_key="id", key_generator="COMPLEX")
    table.upsert([_row("a", "first")], {**QUICK, VALUE_ONLY: "true"})
    with pytest.raises(InvalidQueryError, match=f"has 'a' would get 'id:a'.*{VALUE_ONLY}"):
        table.upsert([_row("a", "second")], {**QUICK, VALUE_ONLY: "false"})
    table.upsert([_row("a", "second", ts=2)], {**QUICK, VALUE_ONLY: "true"})
    assert _keys(table) == {"a": "second"}


def test_bare_keys_are_taken_as_they_are(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    table.upsert([_row("a", "first"), _row("b", "second")], _options(texts=True))
    table.delete([TEXT], QUICK)
    assert list(_keys(table).values()) == ["second"]


def test_deletes_that_name_no_partition_are_compared(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    table.upsert([_row("a", "first")], _options(texts=True))
    keys = [{"id": "a", "at": AT}]
    with pytest.raises(InvalidQueryError, match="spells record keys otherwise"):
        table.delete(keys, _options(texts=False))
    table.delete(keys, _options(texts=True))
    assert _keys(table) == {}


def test_plain_keys_cost_no_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hoodie_py.writer.index import key_spelling

    table = _table(tmp_path / "t", record_key="id")
    table.upsert([_row("a", "first")], QUICK)
    monkeypatch.setattr(key_spelling, "_read_first_rows", lambda *_: pytest.fail("a file was read"))
    table.upsert([_row("a", "second", ts=2)], QUICK)
