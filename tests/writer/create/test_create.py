"""Tests of making tables."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.errors import ConflictError, InvalidQueryError
from hoodie_py.testing import local_s3

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("price", pa.float64())])


class Oldest(RecordMerger):
    strategy_id = "0b6d7c1e-6d1c-4f2e-9a57-3c1d5e8f0a42"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_a_new_table_is_empty_and_has_its_columns(version: int, table_type: str, tmp_path: Path) -> None:
    made = HoodieTable.create(
        tmp_path / "trips", SCHEMA, record_key="id", ordering="ts", partition_by=["city"], table_type=table_type,
        table_version=version,
    )  # fmt: skip
    for table in (made, HoodieTable.open(tmp_path / "trips")):
        assert table.scan().to_arrow().select(SCHEMA.names).schema.equals(SCHEMA)
        assert table.scan().count() == 0
        assert (table.config.name, table.config.version, table.config.table_type) == ("trips", version, table_type)
        assert (table.file_slices(), list(table.timeline)) == ([], [])


def test_names_may_be_given_in_one_text(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id, city", ordering="ts,price", name="other")
    assert table.config.record_key_fields == ("id", "city")
    assert table.config.ordering_fields == ("ts", "price")
    assert table.config.name == "other"


def test_a_merger_names_its_strategy(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", merger=Oldest)
    assert table.config.merge_strategy_id == Oldest.strategy_id
    with pytest.raises(InvalidQueryError, match="different mergers"):
        HoodieTable.create(tmp_path / "u", SCHEMA, record_key="id", merger=Oldest, merge_strategy_id="another")


def test_properties_of_any_type_are_stored_as_text(tmp_path: Path) -> None:
    properties: dict[str, Any] = {"hoodie.datasource.write.hive_style_partitioning": True}
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", properties=properties)
    assert table.config.hive_style_partitioning


def test_a_table_is_not_made_twice(tmp_path: Path) -> None:
    made = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts")
    with pytest.raises(ConflictError, match="There is a Hudi table already"):
        HoodieTable.create(tmp_path / "t", SCHEMA, record_key="city")
    assert HoodieTable.open(tmp_path / "t").config == made.config


def test_wrong_arguments_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError):
        HoodieTable.create(tmp_path / "t", SCHEMA, record_key="nope")
    with pytest.raises(InvalidQueryError, match="must be an Arrow schema"):
        HoodieTable.create(tmp_path / "t", {"id": "string"}, record_key="id")
    assert not (tmp_path / "t").exists()


def test_of_many_at_once_one_makes_the_table(tmp_path: Path) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def make(number: int) -> None:
        start.wait()
        try:
            HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", name=f"maker{number}")
        except ConflictError:
            outcomes.append("")
        else:
            outcomes.append(f"maker{number}")

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes)[:-1] == [""] * 7
    assert HoodieTable.open(tmp_path / "t").config.name == max(outcomes)


def test_a_table_on_an_object_store() -> None:
    with local_s3() as s3:
        uri = f"{s3.uri}/lake/trips"
        options = s3.storage_options
        made = HoodieTable.create(uri, SCHEMA, record_key="id", ordering="ts", storage_options=options)
        assert HoodieTable.open(uri, options).config == made.config
        assert made.scan().count() == 0
        with pytest.raises(ConflictError):
            HoodieTable.create(uri, SCHEMA, record_key="id", storage_options=options)
