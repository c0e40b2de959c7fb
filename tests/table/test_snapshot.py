"""A snapshot that is opened while another process changes the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from tests.watched_requests import asks, meeting_request


@pytest.mark.parametrize(("version", "to"), [(9, 6), (6, 9)])
def test_a_timeline_that_moves_between_the_properties_and_its_listing_is_found(
    version: int, to: int, tmp_path: Path
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HoodieTable.create(tmp_path / "t", schema, record_key="id", ordering="ts", table_version=version)
    table.upsert([{"id": "a", "ts": 1}])
    move = table.downgrade if to < version else table.upgrade
    with meeting_request(asks(r"/t/\.hoodie/hoodie\.properties$", "read"), after=lambda: move(to)):
        found = HoodieTable.open(tmp_path / "t")
    assert found.scan(["id"]).to_arrow().to_pylist() == [{"id": "a"}]
