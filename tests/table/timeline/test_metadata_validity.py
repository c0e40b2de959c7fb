"""Which log blocks of a metadata table count: as the timeline of the table around it says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable, TableNotFoundError
from hoodie_py.files import TableFiles
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from hoodie_py.table.view.visibility import find_valid_instants

Corpus = Callable[[str], Path]
NAMES = ("mdt_files_mor_v9", "old15_metadata_mor")


def metadata(table: Path) -> Path:
    return table / ".hoodie" / "metadata"


def find_valid(place: Path) -> frozenset[str] | None:
    files = TableFiles.open(str(place))
    return find_valid_instants(TableTimeline.load(files, load_config(files)))


def list_files(place: Path) -> dict[str, list[str]]:
    table = HoodieTable.open(str(place))
    rows = table.scan(columns=["key", "filesystemMetadata"], filter="type = 2").to_arrow().to_pylist()
    return {row["key"]: sorted(name for name, _ in row["filesystemMetadata"]) for row in rows}


def list_data_files(table: Path) -> dict[str, list[str]]:
    return {
        folder.name: sorted(
            path.name
            for path in folder.iterdir()
            if (".parquet" in path.name or ".log." in path.name) and not path.name.endswith(".crc")
        )
        for folder in table.iterdir()
        if folder.is_dir() and folder.name != ".hoodie"
    }  # fmt: skip


def find_last_completed(table: Path) -> Path:
    folder = table / ".hoodie" / "timeline"
    place = folder if folder.is_dir() else table / ".hoodie"
    return max((path for path in place.iterdir() if path.name.endswith("commit")), key=lambda path: path.name)


@pytest.mark.parametrize("name", NAMES)
def test_the_metadata_table_lists_what_the_file_system_has(name: str, corpus: Corpus) -> None:
    table = corpus(name)
    listed = list_files(metadata(table))
    there = {
        key: [each for each in names if not each.endswith(".crc")] for key, names in list_data_files(table).items()
    }
    assert listed == there


@pytest.mark.parametrize("name", NAMES)
def test_a_commit_that_the_table_does_not_have_does_not_count(name: str, corpus_copy: Corpus) -> None:
    table = corpus_copy(name)
    last = find_last_completed(table)
    instant = last.name.split("_")[0].split(".")[0]
    before = list_files(metadata(table))
    assert instant in (find_valid(metadata(table)) or ())
    last.unlink()  # the writer died after it had updated the metadata table
    assert instant not in (find_valid(metadata(table)) or ())
    after = list_files(metadata(table))
    gone = {key: set(names) - set(after[key]) for key, names in before.items()}
    assert any(gone.values())
    assert all(instant in file for names in gone.values() for file in names) or name.startswith("old15")
    assert all(set(after[key]) <= set(names) for key, names in before.items())


@pytest.mark.parametrize("name", NAMES)
def test_earlier_states_list_fewer_files(name: str, corpus: Corpus) -> None:
    table = HoodieTable.open(str(metadata(corpus(name))))
    times = [each.request_time for each in table.timeline if each.is_write and each.request_time.startswith("2")]
    counts = []
    for time in times:
        rows = table.scan(as_of=time, filter="type = 2", columns=["filesystemMetadata"]).to_arrow().to_pylist()
        counts.append(sum(len(row["filesystemMetadata"]) for row in rows))
    assert counts == sorted(counts)
    assert 0 < counts[0] < counts[-1]


def test_commits_that_make_partitions_count_though_the_table_does_not_have_them(corpus: Corpus) -> None:
    valid = find_valid(metadata(corpus("old15_metadata_mor"))) or frozenset()
    assert any(each.startswith("0" * 14) for each in valid)


def test_a_metadata_table_that_is_in_no_table_is_read_by_its_own_timeline(corpus: Corpus, tmp_path: Path) -> None:
    table = corpus("mdt_files_mor_v9")
    alone = tmp_path / "alone"
    shutil.copytree(metadata(table), alone)
    assert find_valid(alone) is None
    assert list_files(alone) == list_files(metadata(table))


def test_a_metadata_table_whose_table_has_no_properties_is_an_error(corpus: Corpus, tmp_path: Path) -> None:
    place = tmp_path / ".hoodie" / "metadata"
    shutil.copytree(metadata(corpus("mdt_files_mor_v9")), place)
    with pytest.raises(TableNotFoundError):
        HoodieTable.open(str(place)).scan().to_arrow()
