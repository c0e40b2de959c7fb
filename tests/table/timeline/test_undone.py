"""A write that is completed and rolled back at once counts for nothing, and what says so is read with care."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import CorruptFileError, StorageError
from hoodie_py.formats.timeline.plans import RollbackMetadata
from hoodie_py.formats.timeline.writers import write_rollback_metadata
from tests.corpus import unpack
from tests.watched_requests import asks, failing_requests

TABLE = "event_time_updates_mor_v9"
LATER = "29990101000000000"


def undoing(instant: str) -> RollbackMetadata:
    return RollbackMetadata(start_rollback_time=LATER, commits_rolled_back=(instant,))


def rolled_back(base: Path) -> tuple[str, Path]:
    """Leave of the last write its completed file alone, beside a rollback; return its instant and that file."""
    timeline = base / ".hoodie" / "timeline"
    last = HoodieTable.open(base).timeline.instants[-1]
    for state in ("requested", "inflight"):
        (timeline / f"{last.request_time}.{last.action}.{state}").unlink()
    path = timeline / f"{LATER}_{LATER}.rollback"
    path.write_bytes(write_rollback_metadata(undoing(last.request_time), str(base)))
    return last.request_time, path


def seen(table: HoodieTable, **scan: str) -> list[dict[str, object]]:
    return sorted(table.scan(**scan).to_arrow().to_pylist(), key=lambda row: str(row["_hoodie_record_key"]))  # type: ignore[arg-type]


def test_rows_are_those_of_before(tmp_path: Path) -> None:
    base = unpack(TABLE, tmp_path)
    whole = HoodieTable.open(base)
    before, after = seen(whole, as_of=whole.timeline.instants[-2].request_time), seen(whole)
    instant, _ = rolled_back(base)
    table = HoodieTable.open(base)
    assert instant not in {each.request_time for each in table.timeline}
    assert seen(table) == before != after


def test_a_write_that_has_its_other_states_is_none_of_them(tmp_path: Path) -> None:
    base = unpack(TABLE, tmp_path)
    last = HoodieTable.open(base).timeline.instants[-1].request_time
    path = base / ".hoodie" / "timeline" / f"{LATER}_{LATER}.rollback"
    path.write_bytes(write_rollback_metadata(undoing(last), str(base)))
    assert last in {each.request_time for each in HoodieTable.open(base).timeline}


def test_a_damaged_rollback_is_an_error_that_names_it(tmp_path: Path) -> None:
    base = unpack(TABLE, tmp_path)
    _, path = rolled_back(base)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptFileError) as caught:
        HoodieTable.open(base)
    assert caught.value.where["path"] == f".hoodie/timeline/{path.name}"


def test_a_store_that_refuses_is_no_write_that_counts(tmp_path: Path) -> None:
    base = unpack(TABLE, tmp_path)
    _, path = rolled_back(base)
    refused = asks(rf"/{re.escape(path.name)}$", "read")
    with failing_requests(refused, StorageError("not now")), pytest.raises(StorageError, match="not now"):
        HoodieTable.open(base)
