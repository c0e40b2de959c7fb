"""Bloom filters go from base files into the metadata table as Java puts them there."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.writer.indexes.blooms import list_deleted_keys, make_bloom_records, read_blooms
from tests.writer.compaction_tables import QUICK
from tests.writer.indexes.statistics_tables import TYPES, unpacked


def read_stored(base: Path) -> dict[str, dict[str, object]]:
    records = HoodieTable.open(base / ".hoodie/metadata").scan().to_arrow()
    found = records.filter(pc.equal(records["type"], 4))
    return dict(zip(found["key"].to_pylist(), found["BloomFilterMetadata"].to_pylist(), strict=True))


def make_records(base: Path) -> dict[str, dict[str, object]]:
    made = {}
    paths = [path for path in base.rglob("*.parquet") if ".hoodie" not in path.parts]
    for path in paths:
        place = path.parent.relative_to(base).as_posix(), path.name
        [row] = make_bloom_records(
            list(read_blooms(TableFiles.open(base), [place])), path.stem.split("_")[-1]
        ).to_pylist()
        made[row["key"]] = row["BloomFilterMetadata"]
    return made


@pytest.mark.parametrize("name", TYPES)
def test_they_are_javas_and_a_compaction_adds_its_own(name: str, tmp_path: Path) -> None:
    base = unpacked(name, tmp_path)
    before = read_stored(base)
    assert before == make_records(base)
    HoodieTable.open(base).compact(options=QUICK)
    assert len(read_stored(base)) > len(before)
    assert read_stored(base) == make_records(base)


def test_log_files_have_none() -> None:
    assert len(list_deleted_keys({"p": [".f.log", "g.parquet"], "q": []})) == 1
    assert list(read_blooms(TableFiles.open("/nowhere"), [("p", ".f.log")])) == []
