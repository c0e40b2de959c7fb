from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py import HoodieTable


@pytest.mark.parametrize("name", ["basic_mor_v9_part", "logonly_bucket_mor_v9", "basic_cow_v6_nonpart"])
def test_slices_are_what_a_snapshot_reads(hoodie, corpus, name: str) -> None:
    found = json.loads(hoodie("slices", corpus(name), "--json").stdout)
    slices = HoodieTable.open(corpus(name)).file_slices()
    assert [each["file_id"] for each in found] == [each.file_id for each in slices]
    assert [len(each["log_files"]) for each in found] == [len(each.log_files) for each in slices]


def test_files_are_printed_whole_and_exist(hoodie, corpus) -> None:
    paths = hoodie("slices", corpus("basic_mor_v9_part"), "--files").stdout.splitlines()
    assert len(paths) == 6
    assert all(Path(path).is_file() for path in paths)


def test_filter_leaves_partitions_out(hoodie, corpus) -> None:
    found = json.loads(hoodie("slices", corpus("basic_mor_v9_part"), "--where", "part = 'p1'", "--json").stdout)
    assert {each["partition"] for each in found} == {"p1"}


def test_as_of_looks_at_an_earlier_time(hoodie, corpus) -> None:
    table = corpus("event_time_deletes_mor_v9")
    found = json.loads(hoodie("slices", table, "--as-of", "20261121101431144", "--json").stdout)
    assert [each["log_files"] for each in found] == [[], []]


def test_bad_filter_is_an_error(hoodie, corpus) -> None:
    assert "colour" in hoodie("slices", corpus("basic_mor_v9_part"), "--where", "colour = 1", status=1).stderr


def test_people_see_it_on_80_columns(hoodie, corpus) -> None:
    done = hoodie("slices", corpus("basic_mor_v9_part"), env={"COLUMNS": "80"})
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "3 file slices" in done.stderr


def test_file_groups_with_names_are_named_whole(hoodie, corpus) -> None:
    shown = hoodie("slices", corpus("mdt_all_mor_v9") / ".hoodie" / "metadata", env={"COLUMNS": "120"}).stdout
    assert "record-index-0000-0" in shown
