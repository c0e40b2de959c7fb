"""Which files of the history are merged, and that a writer may die at any step."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.archive import HISTORY_SCHEMA, HistoryFile, parse_history_file_name, write_history
from hoodie_py.table.timeline.archive import load_archive, load_history
from hoodie_py.writer.archival.active_files import ActiveTimeline, collect_active_files
from hoodie_py.writer.archival.history import HistoryArchive, choose_merged
from hoodie_py.writer.settings import ArchivalSettings
from tests.watched_requests import asks, meeting_request
from tests.writer.clean_tables import Names, at

HISTORY = ".hoodie/timeline/history"


def file(number: int, level: int = 0, size: int = 10) -> HistoryFile:
    found = parse_history_file_name(f"{at(number)}_{at(number + 1)}_{level}.parquet", size)
    assert found is not None
    return found


def test_the_oldest_files_of_a_level_are_merged_once_there_are_enough() -> None:
    files = [file(number) for number in (5, 1, 3)] + [file(7, level=1)]
    assert choose_merged(files, 0, 4, 1000) == []
    assert choose_merged(files, 0, 3, 1000) == [file(1), file(3), file(5)]
    assert choose_merged([*files, file(9)], 0, 3, 1000) == [file(1), file(3), file(5)]
    assert choose_merged(files, 1, 2, 1000) == []


def test_merged_files_are_not_too_large() -> None:
    files = [file(1, size=100), file(3, size=2000), file(5, size=100), file(7, size=950), file(9, size=1)]
    assert choose_merged(files, 0, 5, 1000) == [file(1, size=100), file(3, size=2000)]
    assert choose_merged(files[1:], 0, 4, 1000) == files[2:4]
    assert choose_merged([file(1, size=2000), file(3, size=2000)], 0, 2, 1000) == []


@pytest.fixture
def names(tmp_path: Path) -> Names:
    names = Names(tmp_path / "t", 9)
    for number in range(1, 9):
        names.done(number, content=b"of %d" % number)
    return names


def archive_of(names: Names, held: list[bool] | None = None, batch: int = 2) -> HistoryArchive:
    snapshot = names.snapshot()

    def ensure_held() -> None:
        if held is not None and not held.pop(0):
            raise ConflictError("lost")

    settings = ArchivalSettings(batch=batch, versions=2)
    return HistoryArchive(
        ActiveTimeline(snapshot.files, snapshot.config, snapshot.timeline.names), settings, ensure_held
    )


def add(names: Names, *numbers: int, held: list[bool] | None = None) -> str:
    into = archive_of(names, held)
    wanted = [each for each in names.snapshot().timeline if each.request_time in {at(number) for number in numbers}]
    return into.add(collect_active_files(into.timeline, wanted))


def find_archived(names: Names) -> set[str]:
    into = archive_of(names)
    active = collect_active_files(into.timeline, list(names.snapshot().timeline))
    return {each.request_time for each in into.find_archived(active)}


def current(names: Names) -> list[str]:
    return [each.name for each in load_history(TableFiles.open(names.root), HISTORY).files]


def test_levels_grow_and_old_files_go(names: Names) -> None:
    for number in (1, 3, 5, 7):
        add(names, number, number + 1)
        archive_of(names).tidy()
    assert current(names) == [f"{at(1)}_{at(8)}_2.parquet"]
    left = {path.name for path in (names.root / HISTORY).iterdir()}
    assert {"_version_", f"{at(1)}_{at(8)}_2.parquet"} < left
    assert len([name for name in left if name.startswith("manifest_")]) == 4  # two, and one for each merge just made
    assert f"{at(1)}_{at(2)}_0.parquet" not in left
    names.done(9)
    assert find_archived(names) == {at(number) for number in range(1, 9)}


def test_instants_of_the_same_time_are_told_apart(names: Names) -> None:
    add(names, 1)
    completed = next(path for path in (names.root / ".hoodie/timeline").iterdir() if path.name.startswith(f"{at(1)}_"))
    completed.rename(completed.with_name(completed.name.replace("_" + at(1)[:4], "_2031")))
    assert find_archived(names) == set()
    add(names, 1)
    assert current(names) == [f"{at(1)}_{at(1)}_0.parquet", f"{at(1)}_{at(1)}_1.parquet"]
    assert find_archived(names) == {at(1)}
    loaded = load_archive(TableFiles.open(names.root), names.snapshot().config)
    assert [each.completion_time[:4] for each in loaded.instants] == ["2031"]


def test_a_manifest_without_its_number_does_not_count_and_is_replaced(names: Names) -> None:
    add(names, 1)
    (names.root / HISTORY / "manifest_2").write_bytes(b"half")
    (names.root / HISTORY / ".manifest_2.crc").write_bytes(b"of Hadoop")
    (names.root / HISTORY / f"{at(2)}_{at(2)}_0.parquet").write_bytes(b"half")
    assert current(names) == [f"{at(1)}_{at(1)}_0.parquet"]
    add(names, 2)
    assert current(names) == [f"{at(1)}_{at(1)}_0.parquet", f"{at(2)}_{at(2)}_0.parquet"]
    assert (names.root / HISTORY / "_version_").read_bytes() == b"2"


def test_without_a_number_the_last_manifest_counts(names: Names) -> None:
    add(names, 1)
    (names.root / HISTORY / "_version_").unlink()
    add(names, 2)
    assert len(current(names)) == 2


def test_hadoops_checksum_of_the_number_goes_with_the_number(names: Names) -> None:
    add(names, 1)
    (names.root / HISTORY / "._version_.crc").write_bytes(b"of the old one")
    add(names, 2)
    assert not (names.root / HISTORY / "._version_.crc").exists()


def test_a_writer_that_lost_the_lock_changes_nothing(names: Names) -> None:
    with pytest.raises(ConflictError):
        add(names, 1, held=[False])
    assert current(names) == []


def test_a_writer_that_slept_at_its_manifest_does_not_go_on(names: Names) -> None:
    """Another one took the manifest for a dead writer's and replaced it."""

    def sleep() -> None:
        (names.root / HISTORY / "manifest_1").unlink()
        (names.root / HISTORY / f"{at(1)}_{at(1)}_0.parquet").unlink()
        add(names, 1, 2)

    with meeting_request(asks("", "put"), before=sleep), pytest.raises(ConflictError, match="at the same time"):
        add(names, 1)
    assert current(names) == [f"{at(1)}_{at(2)}_0.parquet"]


def test_rows_of_a_newer_version_are_not_merged(names: Names) -> None:
    add(names, 1)
    add(names, 2)
    path = names.root / HISTORY / f"{at(1)}_{at(1)}_0.parquet"
    import pyarrow as pa

    row = {"instantTime": at(1), "completionTime": at(1), "action": "commit", "version": 2}
    write_history(str(path), [pa.Table.from_pylist([row], HISTORY_SCHEMA)])
    with pytest.raises(UnsupportedFeatureError):
        archive_of(names).tidy()
    assert len(current(names)) == 2
