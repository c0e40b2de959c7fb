"""Files that a metadata table lists: as the folders have them, or the folders are listed, never less in silence."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import CorruptFileError, FileMissingError, HoodieError, HoodieTable, HoodieWarning, InvalidTableError
from hoodie_py.formats.names import make_log_file_name
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.table.snapshot import open_snapshot
from tests.table.indexes.fabricated import add_metadata_table
from tests.watched_requests import Request, find_listed

Corpus = Callable[[str], Path]
TABLES = ("mdt_files_mor_v9", "old15_metadata_mor")
OFF = {"hoodie.metadata.enable": "false"}


@pytest.fixture(params=TABLES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def read_rows(table: Path, **arguments: object) -> list[str]:
    return sorted(map(str, HoodieTable.open(str(table)).scan(**arguments).to_arrow().to_pylist()))  # type: ignore[arg-type]


def list_metadata_files(table: Path, pattern: str) -> list[Path]:
    place = table / ".hoodie" / "metadata"
    found = [path for path in place.glob(f"files/{pattern}") if not path.name.endswith(".crc")]
    return sorted(path for path in found if path.is_file() and "partition_metadata" not in path.name)


def find_last_delta_commit(table: Path) -> Path:
    folder = table / ".hoodie" / "metadata" / ".hoodie"
    return max((*folder.glob("timeline/*.deltacommit"), *folder.glob("*.deltacommit")), key=lambda path: path.name)


def test_slices_are_those_of_the_folders_now_and_then(corpus: Corpus, name: str) -> None:
    snapshot = open_snapshot(str(corpus(name)))
    view = snapshot.choose_view()
    assert view is not snapshot.view
    for instant in (None, *(each.request_time for each in snapshot.timeline.list_completed_writes())):
        assert view.list_named_slices(instant) == snapshot.view.list_named_slices(instant)
        assert view.list_base_files(instant) == snapshot.view.list_base_files(instant)


def test_no_folder_of_a_partition_is_listed(corpus: Corpus, name: str, requests_made: list[Request]) -> None:
    table = HoodieTable.open(str(corpus(name)))
    table.scan().tasks()
    table.scan(filter="part = 'p0'").tasks()
    assert not {each for each in find_listed(requests_made, corpus(name)) if not each.startswith(".hoodie")} - {""}
    requests_made.clear()
    table.scan(options=OFF).tasks()
    assert {"", "p0"} <= set(find_listed(requests_made, corpus(name)))


def test_a_filter_reads_the_records_of_its_partitions(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(str(corpus(name)))
    everything = table.scan(options=OFF).to_arrow()
    for part in ("p0", "p1", "none"):
        scan = table.scan(filter=f"part = '{part}'")
        assert {each.file_slice.partition_path for each in scan.tasks()} <= {part}
        assert scan.count() == everything.column("part").to_pylist().count(part)


@pytest.mark.parametrize("integrity", ["default", "strict"])
def test_rows_are_those_of_the_folders(corpus: Corpus, name: str, integrity: str) -> None:
    assert read_rows(corpus(name), integrity=integrity) == read_rows(corpus(name), options=OFF)


def cut_off_last_delta_commit(table: Path) -> None:
    find_last_delta_commit(table).unlink()


def lose_log(table: Path) -> None:
    list_metadata_files(table, ".*")[-1].unlink()


def empty_log(table: Path) -> None:
    list_metadata_files(table, ".*")[-1].write_bytes(b"")


def cut_log(table: Path) -> None:
    path = list_metadata_files(table, ".*")[-1]
    path.write_bytes(path.read_bytes()[:-100])


def lose_base(table: Path) -> None:
    list_metadata_files(table, "*.hfile")[-1].unlink()


def cut_base(table: Path) -> None:
    path = list_metadata_files(table, "*.hfile")[-1]
    path.write_bytes(path.read_bytes()[:-100])


def lose_table(table: Path) -> None:
    shutil.rmtree(table / ".hoodie" / "metadata")


def lose_partition(table: Path) -> None:
    for path in (table / ".hoodie" / "metadata" / "files").iterdir():
        path.unlink()


DAMAGES = (
    cut_off_last_delta_commit, lose_log, empty_log, cut_log, lose_base, cut_base, lose_table, lose_partition,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_folders_are_listed_where_the_metadata_table_is_behind_or_broken(
    corpus_copy: Corpus, name: str, damage: Callable[[Path], None]
) -> None:
    table = corpus_copy(name)
    expected = read_rows(table, options=OFF)
    damage(table)
    with pytest.warns(HoodieWarning, match="metadata table"):
        assert read_rows(table) == expected
    with pytest.raises((InvalidTableError, CorruptFileError, FileMissingError, FileNotFoundError)):
        read_rows(table, integrity="strict")
    assert read_rows(table, options=OFF) == expected


def test_a_snapshot_warns_once(corpus_copy: Corpus) -> None:
    table = corpus_copy(TABLES[0])
    cut_base(table)
    opened = HoodieTable.open(str(table))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        opened.scan().count()
        opened.scan(filter="part = 'p0'").count()
    assert len([each for each in found if issubclass(each.category, HoodieWarning)]) == 1


def iterate_damages(data: bytes, seed: int) -> Iterator[bytes]:
    """Yield bytes that are cut short, or with one bit flipped."""
    chosen = random.Random(seed)
    for _ in range(8):
        at = chosen.randrange(len(data))
        yield data[:at]
        flipped = bytearray(data)
        flipped[at] ^= 1 << chosen.randrange(8)
        yield bytes(flipped)


@pytest.mark.parametrize("pattern", [".*", "*.hfile"])
def test_damaged_files_give_no_other_rows(corpus_copy: Corpus, name: str, pattern: str) -> None:
    table = corpus_copy(name)
    slices = open_snapshot(str(table)).view.list_named_slices()
    for path in list_metadata_files(table, pattern)[-2:]:
        whole = path.read_bytes()
        for seed, damaged in enumerate(iterate_damages(whole, len(whole))):
            path.write_bytes(damaged)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HoodieWarning)
                try:
                    found = open_snapshot(str(table)).choose_view().list_named_slices()
                except HoodieError:
                    continue
            assert found == slices, (path.name, seed)
        path.write_bytes(whole)


def test_a_listed_file_that_is_gone_is_an_error_with_a_remedy(corpus_copy: Corpus, name: str) -> None:
    table = corpus_copy(name)
    gone = open_snapshot(str(table)).choose_view().list_named_slices()[0].base_file
    assert gone is not None
    (table / gone.path).unlink()
    with pytest.raises(FileMissingError, match=r"hoodie\.metadata\.enable=false"):
        read_rows(table)


def make_listed_table(place: Path, sample: Path, leave_out: Callable[[list[str]], str]) -> HoodieTable:
    """Make a table of two commits whose metadata table lacks one of its base files, which are given oldest first."""
    schema = pa.schema({"id": pa.string(), "ts": pa.int64(), "part": pa.string()})
    table = HoodieTable.create(str(place), schema, record_key="id", ordering="ts", partition_by="part")
    for part in ("a", "b"):
        table.insert([{"id": part, "ts": 1, "part": part}])
    slices = table.file_slices()
    paths = [each.base_file.path for each in slices if each.base_file is not None]
    add_metadata_table(place, sample, [leave_out(sorted(paths, key=lambda path: path.rpartition("_")[2]))])
    return HoodieTable.open(str(place))


def test_a_file_of_the_last_commit_that_is_not_listed_is_noticed(tmp_path: Path, corpus: Corpus) -> None:
    table = make_listed_table(tmp_path / "t", corpus(TABLES[0]), lambda paths: paths[-1])
    with pytest.warns(HoodieWarning, match="last commit"):
        assert table.scan().count() == 2


def test_a_log_file_named_after_what_was_rolled_back_need_not_be_listed(tmp_path: Path, corpus: Corpus) -> None:
    table = make_listed_table(tmp_path / "t", corpus(TABLES[0]), lambda _: "none")
    timeline = table._snapshot.timeline
    last = timeline.list_completed_writes()[-1]
    metadata = timeline.read_metadata(last)
    name = make_log_file_name("f-0", str(int(last.request_time) - 1), 1, "0-0-0")
    stat = replace(metadata.write_stats["b"][0], file_id="f-0", path=f"b/{name}")
    [file] = (tmp_path / "t" / ".hoodie" / "timeline").glob(f"{last.request_time}_*")
    stats = (*metadata.write_stats["b"], stat)
    file.write_bytes(write_commit_metadata(replace(metadata, write_stats={"b": stats}), 2))
    assert HoodieTable.open(tmp_path / "t").scan().count() == 2


def test_strict_reads_notice_every_file_that_is_not_listed(tmp_path: Path, corpus: Corpus) -> None:
    table = make_listed_table(tmp_path / "t", corpus(TABLES[0]), lambda paths: paths[0])
    with pytest.raises(InvalidTableError, match="does not list a file"):
        table.scan(integrity="strict").count()
    assert table.scan(integrity="strict", options=OFF).count() == 2
