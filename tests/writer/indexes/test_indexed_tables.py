"""Tables with all of Java's indexes: each entry of the metadata table is right after each operation of a round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.config.properties import parse_properties, update_properties
from tests.corpus import unpack_indexed
from tests.writer.compaction_tables import QUICK
from tests.writer.index_jobs.test_table_indexes import PLAN

OPTIONS = {**QUICK, "hoodie.index.type": "SIMPLE", "hoodie.metadata.compact.max.delta.commits": "2"}
PARTITIONS, INFLIGHT = "hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"


def row(number: int, name: str = "n", part: str = "p1") -> dict[str, Any]:
    return {"id": f"k{number:03}", "part": part, "ts": 1000 + number, "name": name, "price": 1.0, "day": None}


ROUND: list[Callable[[HoodieTable], object]] = [
    lambda table: table.upsert([row(1, "changed"), row(901), row(902, part="new")], OPTIONS),
    lambda table: table.delete(["k901", "k004"], OPTIONS),
    lambda table: table.compact(options=OPTIONS),
    lambda table: table.insert_overwrite([row(1, "over"), row(903)], OPTIONS),
    lambda table: table.clean(1, options=OPTIONS),
    lambda table: table.upsert([row(904), row(902, "again", "new")], OPTIONS),
]


def set_properties(base: Path, changes: dict[str, str | None]) -> None:
    path = base / ".hoodie/hoodie.properties"
    path.write_bytes(update_properties(path.read_bytes(), changes))


@pytest.mark.parametrize("name", ["global_sql_mor_v9", "partitioned_mor_v9", "global_mor_v6"])
def test_every_entry_is_right_after_every_operation(name: str, tmp_path: Path) -> None:
    base = unpack_indexed(name, tmp_path)
    before = len(compactions(base))
    for step in ROUND:
        step(HoodieTable.open(base))
        report = HoodieTable.open(base).verify(data=False)
        assert report.is_right, str(report)
    assert len(compactions(base)) > before


def compactions(base: Path) -> list[str]:
    metadata = HoodieTable.open(base / ".hoodie/metadata")
    return [each.request_time for each in metadata.timeline if each.action == "commit"]


@pytest.mark.parametrize("name", ["partitioned_mor_v9", "global_mor_v6"])
def test_a_part_that_is_being_built_gets_the_records_of_each_write(name: str, tmp_path: Path) -> None:
    base = unpack_indexed(name, tmp_path)
    every = parse_properties((base / ".hoodie/hoodie.properties").read_bytes())[PARTITIONS]
    others = ",".join(part for part in every.split(",") if part != "record_index")
    set_properties(base, {PARTITIONS: others, INFLIGHT: "record_index"})
    timeline = base / ".hoodie" / ("" if name.endswith("v6") else "timeline")
    indexer = [timeline / f"20261121110000000.indexing.{state}" for state in ("requested", "inflight")]
    info = {"version": 1, "metadataPartitionPath": "record_index", "indexUptoInstant": "20261121110000000"}
    indexer[0].write_bytes(write_single({"version": 1, "indexPartitionInfos": [info]}, PLAN))
    indexer[1].touch()
    before = len(compactions(base))
    for step in ROUND[:2]:
        step(HoodieTable.open(base))
    assert len(compactions(base)) == before  # its base files would leave out what the indexer adds
    set_properties(base, {PARTITIONS: every, INFLIGHT: ""})
    for path in indexer:
        path.unlink()
    report = HoodieTable.open(base).verify(data=False)
    assert report.is_right, str(report)
    assert any(part.name == "record_index" and part.checked for part in report.parts)
