"""A timeline that is listed again, after files came and went, and writes that are completed and rolled back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.errors import CorruptFileError, InvalidTableError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.plans import RollbackMetadata
from hoodie_py.formats.timeline.writers import write_rollback_metadata
from hoodie_py.table.timeline.listing import list_timeline
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from tests.corpus import unpack
from tests.table.tables import make_table
from tests.watched_requests import asks, failing_requests

_ACTIONS = ("deltacommit", "commit", "compaction", "replacecommit", "clean", "rollback", "savepoint")
_NAMES = st.one_of(
    st.builds(
        lambda time, action, state: f"{time}.{action}.{state}",
        st.integers(1, 5), st.sampled_from(_ACTIONS), st.sampled_from(("requested", "inflight")),
    ),
    st.builds(
        lambda time, after, action: f"{time}_{time + after}.{action}",
        st.integers(1, 5), st.integers(0, 3), st.sampled_from([each for each in _ACTIONS if each != "compaction"]),
    ),
    st.sampled_from(("1.inflight", ".some.tmp", "history/")),
)  # fmt: skip


_ROLLBACK = write_rollback_metadata(RollbackMetadata("3", commits_rolled_back=("1", "2")), "/t")


class _Names(TableFiles):
    """A timeline folder with some names; every rollback undid instants 1 and 2."""

    names: frozenset[str] = frozenset()

    def list_names(self, path: str) -> frozenset[str]:
        return self.names

    def read(self, path: str, most: int | None = None) -> bytes:
        return _ROLLBACK if path.endswith("rollback") else b"{}"


@settings(deadline=None, max_examples=50)
@given(steps=st.lists(st.tuples(st.sets(_NAMES, max_size=5), st.sets(_NAMES, max_size=2)), max_size=6))
def test_a_second_listing_gives_what_a_first_one_gives(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[set[str], set[str]]]
) -> None:
    files = _Names(TableFiles.open(tmp_path_factory.getbasetemp())._store)
    config = TableConfig.from_properties({"hoodie.table.name": "t", "hoodie.table.version": "9"})
    listing = None
    for come, go in steps:
        files.names = (files.names | come) - go
        listing, whole = list_timeline(files, config, listing), list_timeline(files, config)
        assert (listing.timeline, listing.timeline.undone) == (whole.timeline, whole.timeline.undone)
        assert (listing.names, listing.lone) == (whole.names, whole.lone)


def test_what_was_found_in_a_timeline_is_not_looked_for_again(tmp_path: Path) -> None:
    files = TableFiles.open(make_table(tmp_path, {".hoodie/timeline/1_2.commit": b""}))
    config = load_config(files)
    first = TableTimeline.load(files, config)
    pending, writes = first.select_pending(), first.select_writes()
    second = TableTimeline.load(files, config, first)
    assert second == first
    assert second.listing is first.listing
    assert second.select_writes() is writes
    assert second.select_pending() is pending
    files.put(".hoodie/timeline/4_5.commit", b"")
    third = TableTimeline.load(files, config, second)
    assert "_writes" in vars(third)  # extended, not found anew
    assert [each.request_time for each in third.select_writes()] == ["1", "4"]


def test_commit_metadata_are_read_once_for_all_loads_of_a_table(tmp_path: Path) -> None:
    files = TableFiles.open(
        make_table(tmp_path, {".hoodie/timeline/1_2.commit": b"", ".hoodie/timeline/3.commit": b""})
    )
    config = load_config(files)
    first = TableTimeline.load(files, config)
    known = first.read_all_metadata(first.list_completed_writes())
    files.put(".hoodie/timeline/4_5.commit", b"")
    second = TableTimeline.load(files, config, first)
    again = second.read_all_metadata(second.list_completed_writes())
    assert again[0] is known[0]
    assert again[1] is not known[1]  # no completion time in its name: a compaction may have run again
    assert len(again) == 3


def test_a_folder_is_no_instant(tmp_path: Path) -> None:
    files = TableFiles.open(make_table(tmp_path, {".hoodie/timeline/1_2.commit/x": b""}))
    with pytest.raises(InvalidTableError, match="folder is in the place"):
        list_timeline(files, load_config(files))


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
