from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.table.incremental.position import Position, identify_table, is_position, locate_position, parse_position
from hoodie_py.table.timeline.loader import TableTimeline
from tests.table.archives import archive
from tests.table.tables import V6, make_table, open_view, properties_text
from tests.writer.written_tables import Kind, row

T = [f"2026010100000{number}000" for number in range(10)]


def config(name: str = "t", **more: str) -> TableConfig:
    return TableConfig.from_bytes(properties_text(name, **more))


def timeline(root: Path, commits: Sequence[tuple[str, str | None]], version: str = "9") -> TableTimeline:
    """A timeline of commits with request and completion times."""
    if version == "6":
        return open_view(make_table(root, {f".hoodie/{time}.deltacommit": b"" for time, _ in commits}, **V6)).timeline
    names = {f".hoodie/timeline/{time}_{done}.deltacommit": b"" for time, done in commits}
    return open_view(make_table(root, names)).timeline


@given(st.text(min_size=1, max_size=40), st.from_regex(r"[0-9]{0,17}", fullmatch=True), st.booleans())
def test_a_text_gives_its_position_back(name: str, time: str, by_request_time: bool) -> None:
    position = Position(name, time, by_request_time if time else False)
    text = position.to_text()
    assert text.isascii()
    assert text.isprintable()
    assert " " not in text
    assert is_position(text)
    try:
        own = config(name)
    except Exception:  # properties cannot hold every name
        return
    if own.name == name:
        assert parse_position(text, own) == position


@given(st.text(max_size=60))
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError):
        parse_position(text, config())


@pytest.mark.parametrize("text", ["20260101", "earliest", "2026-01-01 00:00:00", "latest"])
def test_a_time_is_no_position(text: str) -> None:
    assert not is_position(text)


def test_a_position_is_readable() -> None:
    assert Position("db.t", T[1]).to_text() == f"db.t@completed:{T[1]}"
    assert Position("t", T[1], by_request_time=True).to_text() == f"t@requested:{T[1]}"
    assert Position("t", "").to_text() == "t@start"
    assert identify_table(config()) == "t"


def test_a_position_of_another_table_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="'other', not of 't'"):
        parse_position(Position("other", T[1]).to_text(), config())


def test_a_commit_that_the_table_never_had_is_refused_with_the_range_that_it_has(tmp_path: Path) -> None:
    found = timeline(tmp_path, [(T[1], T[2]), (T[3], T[4])])
    assert locate_position(Position("t", T[2]), found, by_request_time=False) == T[2]
    assert locate_position(Position("t", ""), found, by_request_time=False) == ""
    with pytest.raises(InvalidQueryError, match=f"from {T[2]} to {T[4]}"):
        locate_position(Position("t", T[3]), found, by_request_time=False)


@pytest.mark.parametrize("version", [9, 6])
def test_an_archived_commit_is_known(tmp_path: Path, version: int) -> None:
    from hoodie_py import HoodieTable

    base = Kind(version, merge_on_read=True).create(tmp_path / "t")
    table = HoodieTable.open(base)
    for ts in range(3):
        table.upsert([row(1, ts=ts)])
    first = next(iter(table.timeline))
    archive(base, [first.request_time])
    time = first.request_time if version == 6 else first.completion_time
    position = Position("t", time or "", by_request_time=version == 6)
    assert locate_position(position, open_view(base).timeline, by_request_time=version == 6) == time
    gone = Position("t", "20200101000000000", by_request_time=version == 6)
    with pytest.raises(InvalidQueryError, match="made anew"):
        locate_position(gone, open_view(base).timeline, by_request_time=version == 6)


def test_an_upgrade_keeps_a_position(tmp_path: Path) -> None:
    found = timeline(tmp_path, [(T[1], T[4]), (T[2], T[3]), (T[5], T[6])])
    assert locate_position(Position("t", T[2], by_request_time=True), found, by_request_time=False) == T[4]
    assert locate_position(Position("t", T[5], by_request_time=True), found, by_request_time=False) == T[6]


def test_commits_that_completed_in_another_order_have_no_position_after_an_upgrade(tmp_path: Path) -> None:
    found = timeline(tmp_path, [(T[1], T[6]), (T[2], T[3])])
    with pytest.raises(InvalidQueryError, match="another order"):
        locate_position(Position("t", T[1], by_request_time=True), found, by_request_time=False)


def test_completion_times_mean_nothing_to_a_table_without_them(tmp_path: Path) -> None:
    found = timeline(tmp_path, [(T[1], None)], version="6")
    with pytest.raises(InvalidQueryError, match="request times"):
        locate_position(Position("t", T[1]), found, by_request_time=True)
