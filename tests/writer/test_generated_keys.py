"""Tables without record key fields: writes make keys up, and rows of a scan are changed and deleted by them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import Delete, HoodieTable, Update
from hoodie_py.errors import HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import RECORD_KEY_FIELDS
from hoodie_py.writer.keygen.generator import GeneratedKeys
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema([("n", pa.int64()), ("city", pa.string()), ("fare", pa.float64())])
KINDS = [(version, kind) for version in (9, 8, 6) for kind in ("MERGE_ON_READ", "COPY_ON_WRITE")]


def rows(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"n": each, "city": "ab"[each % 2], "fare": each * 1.0, **more} for each in numbers]


def make(base: Path, version: int = 9, table_type: str = "MERGE_ON_READ", **more: Any) -> HoodieTable:
    return HoodieTable.create(base, SCHEMA, partition_by="city", table_type=table_type, table_version=version, **more)


def values(table: HoodieTable) -> list[tuple[int, float]]:
    return sorted((each["n"], each["fare"]) for each in table.scan(["n", "fare"]).to_arrow().to_pylist())


@pytest.mark.parametrize(("version", "table_type"), KINDS)
def test_every_operation(version: int, table_type: str, tmp_path: Path) -> None:
    table = make(tmp_path, version, table_type)
    assert RECORD_KEY_FIELDS not in (tmp_path / ".hoodie/hoodie.properties").read_text()
    table.upsert(rows(1, 2, 2), options=QUICK)  # without keys there is nothing to update
    table.insert(rows(1, 3), options=QUICK)
    table.bulk_insert(pa.Table.from_pylist(rows(4, 4), SCHEMA).to_reader(), options=QUICK)
    keys = table.scan(["_hoodie_record_key"]).to_arrow().column(0).to_pylist()
    assert len(set(keys)) == 7
    assert all(re.fullmatch(r"\d{17}_\d+_\d+", key) for key in keys)
    changed = table.scan(filter="n = 2").to_arrow()
    table.upsert(changed.set_column(changed.column_names.index("fare"), "fare", pa.array([20.0, 21.0])), options=QUICK)
    assert values(table) == [(1, 1.0), (1, 1.0), (2, 20.0), (2, 21.0), (3, 3.0), (4, 4.0), (4, 4.0)]
    table.update({"fare": "fare + 0.5"}, where="n = 1", options=QUICK)
    table.delete("fare = 20", options=QUICK)
    table.delete(table.scan(filter="n = 4", limit=1).to_arrow(), options=QUICK)
    table.delete(table.scan(["_hoodie_record_key"], filter="n = 3").to_arrow().column(0).to_pylist(), options=QUICK)
    assert values(table) == [(1, 1.5), (1, 1.5), (2, 21.0), (4, 4.0)]
    table.merge(
        rows(2, 7), on="n", when_matched=Update({"fare": "- target.fare"}),
        when_not_matched="insert", by_source=Delete("n = 4"), options=QUICK,
    )  # fmt: skip
    assert values(table) == [(1, 1.5), (1, 1.5), (2, -21.0), (7, 7.0)]
    if table_type == "MERGE_ON_READ":
        table.compact(options=QUICK)
    table.insert_overwrite(rows(9), options=QUICK)
    assert values(table) == [(2, -21.0), (9, 9.0)]
    report = table.verify()
    assert report.is_right, str(report)


def test_keys_of_tasks_are_the_same_when_a_task_is_repeated() -> None:
    maker = GeneratedKeys.begin()
    first, again = maker.for_task(3, 10).make(4), maker.for_task(3, 12).make(2)
    assert first.to_pylist()[2:] == again.to_pylist()
    assert not set(maker.for_task(4, 10).make(4).to_pylist()) & set(first.to_pylist())
    assert GeneratedKeys.begin().task != maker.task


def test_what_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.insert(rows(1), options=QUICK)
    with pytest.raises(InvalidQueryError, match="do not bring the keys"):
        table.delete(rows(1), options=QUICK)
    with pytest.raises(InvalidQueryError, match="given as texts"):
        table.delete([1], options=QUICK)
    with pytest.raises(InvalidQueryError, match="no global index moves"):
        table.update({"city": "'z'"}, options={**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE"})
    with pytest.raises(HoodieError):
        table.insert(rows(1), options={**QUICK, "hoodie.index.type": "BUCKET"})
    with pytest.raises(UnsupportedFeatureError, match="nothing tells its records apart"):
        make(tmp_path / "v", properties={"hoodie.populate.meta.fields": "false"})
