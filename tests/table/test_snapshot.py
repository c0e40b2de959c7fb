"""A snapshot that is opened while another process changes the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.table import snapshot


@pytest.mark.parametrize(("version", "to"), [(9, 6), (6, 9)])
def test_a_timeline_that_moves_between_the_properties_and_its_listing_is_found(
    version: int, to: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HoodieTable.create(tmp_path / "t", schema, record_key="id", ordering="ts", table_version=version)
    table.upsert([{"id": "a", "ts": 1}])
    plain, moved = snapshot.load_config, list[int]()

    def load(files: TableFiles) -> TableConfig:
        config = plain(files)
        if not moved:
            moved.append(1)
            (table.downgrade if to < version else table.upgrade)(to)
        return config

    monkeypatch.setattr(snapshot, "load_config", load)
    found = HoodieTable.open(tmp_path / "t")
    assert moved
    assert found.scan(["id"]).to_arrow().to_pylist() == [{"id": "a"}]
