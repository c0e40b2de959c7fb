"""A commit as the start of a range means "after this commit", however it is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, InvalidQueryError
from tests.table.archives import archive
from tests.table.incremental.test_query import KINDS, make, prices, row


def write_three(place: Path, kind: tuple[str, int]) -> tuple[HoodieTable, list[Any]]:
    table = make(place, kind, properties={"hoodie.table.cdc.enabled": "true"})
    return table, [table.upsert([row(key, number, number)]) for number, key in enumerate("abc", 1)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_name_of_a_commit_means_after_it_and_up_to_it(tmp_path: Path, kind: tuple[str, int]) -> None:
    table, results = write_three(tmp_path / "t", kind)
    [first, second, _] = table.timeline.select_writes()
    names: list[tuple[Any, Any]] = [(results[0], results[1]), (first, second), (results[0].instant, results[1].instant)]
    if kind[1] >= 8:
        names.append((first.completion_time, second.completion_time))
    for start, end in names:
        assert prices(table.incremental(start)) == {"b": 2, "c": 3}
        assert prices(table.incremental(start, end)) == {"b": 2}
        batches = list(table.follow(start, poll=None))
        assert [each.commits for each in batches] == [(results[1].instant, results[2].instant)]
        changes = table.changes(start, end, as_structs=True).to_arrow().to_pylist()
        assert [each["after"]["id"] for each in changes] == ["b"]


def test_an_option_has_javas_meaning(tmp_path: Path) -> None:
    table, results = write_three(tmp_path / "t", KINDS[0])
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": results[1].instant,
    }
    assert prices(table.scan(options=options)) == {"b": 2, "c": 3}


def test_a_follower_knows_a_commit_that_is_newer_than_its_table(tmp_path: Path) -> None:
    table, _ = write_three(tmp_path / "t", KINDS[0])
    other = HoodieTable.open(tmp_path / "t")
    result = other.upsert([row("d", 4, 4)])
    last = other.upsert([row("e", 5, 5)])
    assert [each.commits for each in table.follow(result.instant, poll=None)] == [(last.instant,)]


def test_an_archived_commit_is_known(tmp_path: Path) -> None:
    table, results = write_three(tmp_path / "t", KINDS[0])
    archive(tmp_path / "t", [results[0].instant, results[1].instant])
    table = HoodieTable.open(tmp_path / "t")
    assert prices(table.incremental(results[1].instant)) == {"c": 3}
    assert prices(table.incremental(results[0].instant)) == {"b": 2, "c": 3}


@pytest.mark.filterwarnings("ignore:Files or commits of the range")
@pytest.mark.parametrize("is_archived", [False, True])
def test_a_completion_time_that_is_also_a_request_time_stays_a_time(tmp_path: Path, is_archived: bool) -> None:
    """Taken for the commit that was requested then, it left out that commit's rows."""
    table, results = write_three(tmp_path / "t", KINDS[0])
    first, second, _ = table.timeline.select_writes()
    assert first.completion_time is not None
    rename_completion(tmp_path / "t", first, second.request_time)
    if is_archived:
        archive(tmp_path / "t", [results[0].instant])
    table = HoodieTable.open(tmp_path / "t")
    assert table.timeline.is_archived_before(first.request_time) == is_archived
    assert prices(table.incremental(second.request_time)) == {"b": 2, "c": 3}
    assert prices(table.incremental("earliest", second.request_time)) == {"a": 1}
    assert prices(table.incremental(second.completion_time)) == {"c": 3}


def rename_completion(place: Path, instant: Any, time: str) -> None:
    """Say that an instant completed at another time."""
    [file] = (place / ".hoodie" / "timeline").glob(f"{instant.request_time}_{instant.completion_time}.*")
    file.rename(file.with_name(file.name.replace(f"_{instant.completion_time}.", f"_{time}.")))


def test_a_result_without_a_commit_is_refused(tmp_path: Path) -> None:
    table, _ = write_three(tmp_path / "t", KINDS[0])
    with pytest.raises(InvalidQueryError, match="names no commit"):
        table.incremental(table.upsert([]))
    with pytest.raises(InvalidQueryError, match="names no commit"):
        table.incremental(table)  # type: ignore[arg-type]
