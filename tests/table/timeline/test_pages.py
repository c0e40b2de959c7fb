"""Pages of a timeline: every instant once and in order, and no more of the archive is read than they need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from hoodie_py.table.timeline.pages import list_instants
from tests.table.archives import archive
from tests.watched_requests import Request, asks

TABLES = ("archived_timeline_mor_v9", "archived_timeline_mor_v6", "archived_timeline_cow_v6", "basic_mor_v9_part")


def load(root: Path) -> TableTimeline:
    files = TableFiles.open(str(root))
    return TableTimeline.load(files, load_config(files))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
def test_pages_are_the_whole_timeline(corpus: Callable[[str], Path], name: str, limit: int) -> None:
    timeline = load(corpus(name))
    whole = list_instants(timeline, archived=True)
    assert not whole.has_older
    assert [each.request_time for each in whole.instants] == sorted(each.request_time for each in whole.instants)
    pages, before = [], None
    while True:
        page = list_instants(timeline, archived=True, limit=limit, before=before)
        pages.append(page.instants)
        if not page.has_older:
            break
        assert len(page.instants) == limit
        before = page.instants[0].request_time
    assert [each for page in reversed(pages) for each in page] == list(whole.instants)
    active = list_instants(timeline)
    assert active.instants == tuple(each for each in whole.instants if not each.is_archived)
    assert [each.instant for each in active.instants] == list(timeline)


@pytest.mark.parametrize("name", TABLES)
def test_writes_have_their_metadata(corpus: Callable[[str], Path], name: str) -> None:
    timeline = load(corpus(name))
    page = list_instants(timeline, archived=True)
    for each, metadata in zip(page.instants, page.read_metadata(timeline), strict=True):
        is_write = each.state == "completed" and each.action in {"commit", "deltacommit", "replacecommit"}
        assert (metadata is not None) == is_write
        if metadata is not None:
            assert metadata.operation_type


def test_only_files_of_the_page_are_read(tmp_path: Path, requests_made: list[Request]) -> None:
    table = make_table(tmp_path)
    times = [each.request_time for each in table.timeline]
    for time in times[:-1]:  # a history file each
        archive(tmp_path / "t", [time])
    requests_made.clear()
    page = list_instants(load(tmp_path / "t"), archived=True, limit=2)
    assert [each.request_time for each in page.instants] == times[-2:]
    assert page.has_older
    # The page has one archived instant, and the next one tells that there are older ones.
    is_archive = asks(r"\.parquet$", "read")
    assert len(list(filter(is_archive, requests_made))) == 2
    requests_made.clear()
    list_instants(load(tmp_path / "t"), archived=True, limit=1, before=times[1])
    history = tmp_path / "t/.hoodie/timeline/history"
    assert [each.path for each in filter(is_archive, requests_made)] == [f"{history}/{times[0]}_{times[0]}_0.parquet"]


def test_what_is_in_both_timelines_is_active(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    first = table.timeline.instants[0]
    name = first.file_name(2)
    folder = tmp_path / "t" / ".hoodie" / "timeline"
    data = (folder / name).read_bytes()
    archive(tmp_path / "t", [first.request_time])
    (folder / name).write_bytes(data)
    page = list_instants(load(tmp_path / "t"), archived=True)
    assert [each.is_archived for each in page.instants] == [False] * len(table.timeline.instants)


def test_a_history_file_that_stays_missing_is_an_error(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    archive(tmp_path / "t", [table.timeline.instants[0].request_time])
    next((tmp_path / "t" / ".hoodie" / "timeline" / "history").glob("*.parquet")).unlink()
    with pytest.raises(InvalidTableError, match="missing file"):
        list_instants(load(tmp_path / "t"), archived=True)


def make_table(folder: Path) -> HoodieTable:
    import pyarrow as pa

    table = HoodieTable.create(
        folder / "t", pa.schema({"id": pa.int64(), "ts": pa.int64()}), record_key="id", ordering="ts"
    )
    for number in range(5):
        table.upsert([{"id": number, "ts": 1}])
    return table.refresh()
