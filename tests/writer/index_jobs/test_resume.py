"""A check that was killed goes on where it stood, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, StorageError
from tests.watched_requests import Request, asks, failing_requests, far_store, reads
from tests.writer.compaction_tables import QUICK, writable


class Stopped(Exception):
    """The process was killed."""


def stop_after(slices: int):
    def tell(part: str, number: int, total: int | None) -> None:
        if part == "data" and number == slices:
            raise Stopped

    return tell


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A table with some file slices and a metadata table."""
    return writable("mdt_files_mor_v9", tmp_path)


def damage(base: Path) -> None:
    path = next(base / each.base_file.path for each in HoodieTable.open(base).file_slices() if each.base_file)
    path.write_bytes(path.read_bytes()[:-20] + b"x" * 20)


def interrupt(base: Path, state: Path, slices: int = 1) -> None:
    with pytest.raises(Stopped):
        HoodieTable.open(base).verify(on_progress=stop_after(slices), resume=state)


def parts(base: Path, **given) -> dict[str, tuple[int, int, int]]:
    report = HoodieTable.open(base).verify(**given)
    return {each.name: (each.checked, each.wrong, len(each.findings)) for each in report.parts}


def test_it_goes_on_and_says_the_same_as_one_that_ran_through(base: Path, tmp_path: Path) -> None:
    damage(base)
    state = tmp_path / "state"
    whole = parts(base)
    assert whole["data"][1] == 1
    for slices in (1, 2):
        interrupt(base, state, slices)
    seen: list[tuple[str, int, int | None]] = []
    report = HoodieTable.open(base).verify(on_progress=lambda *told: seen.append(told), resume=state)
    assert {each.name: (each.checked, each.wrong, len(each.findings)) for each in report.parts} == whole
    assert (report.resumed, report.restarted) == (2, None)
    assert "2 of them were checked before" in str(report)
    assert not state.exists()
    slices = len(list(HoodieTable.open(base).file_slices()))
    assert [each for each in seen if each[0] == "data"] == [("data", each, slices) for each in range(1, slices + 1)]


def test_what_is_done_is_not_read_again(base: Path, tmp_path: Path, requests_made: list[Request]) -> None:
    is_data = asks(rf"^{base}/[^.][^/]*/[^/]+\.(parquet|log\.[^/]+)$", "local_path")

    def count_read() -> int:
        names = [Path(each.path).name for each in filter(is_data, requests_made)]
        requests_made.clear()
        return len({name.lstrip(".").partition("_")[0] for name in names})

    state = tmp_path / "state"
    interrupt(base, state, 2)
    requests_made.clear()
    total = parts(base)["data"][0]
    assert count_read() == total
    assert parts(base, resume=state)["data"][0] == total
    assert count_read() == total - 2


def test_a_line_that_was_not_written_whole_does_not_count(base: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    interrupt(base, state, 2)
    text = state.read_text()
    state.write_text(text[:-10])
    report = HoodieTable.open(base).verify(resume=state)
    assert report.resumed == 1
    assert report.is_right


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("table", "the table has changed since"),
        ("options", "it was made with other options"),
        ("verify", "another version"),
    ],
)
def test_another_state_is_checked_from_the_beginning(base: Path, tmp_path: Path, change: str, why: str) -> None:
    state = tmp_path / "state"
    interrupt(base, state)
    given = {}
    if change == "table":
        HoodieTable.open(base).schedule_compaction(options=QUICK)
    elif change == "options":
        given = {"metadata": False}
    else:
        header, *rest = state.read_text().splitlines(keepends=True)
        state.write_text(json.dumps({**json.loads(header), "verify": 0}) + "\n" + "".join(rest))
    report = HoodieTable.open(base).verify(resume=state, **given)
    assert report.resumed == 0
    assert why in str(report.restarted)
    assert "All is checked anew" in str(report)


def test_a_file_of_something_else_stays(base: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("precious\n")
    with pytest.raises(InvalidQueryError, match="is not the progress of a check"):
        HoodieTable.open(base).verify(resume=other)
    assert other.read_text() == "precious\n"
    for bad in (tmp_path, tmp_path / "nowhere" / "state"):
        with pytest.raises(InvalidQueryError, match="a folder that exists"):
            HoodieTable.open(base).verify(resume=bad)


@pytest.mark.parametrize("suffix", [".parquet", ".hfile"])
def test_what_the_store_refused_is_an_error_and_checked_the_next_time(base: Path, tmp_path: Path, suffix: str) -> None:
    state, whole = tmp_path / "state", parts(base)
    busy = failing_requests(reads(rf"\{suffix}$"), StorageError("The store is busy.", operation="read"))
    with far_store(), busy, pytest.raises(StorageError, match="busy"):
        HoodieTable.open(base).verify(resume=state)
    assert parts(base, resume=state) == whole
