"""Look-ups in a metadata table give what a scan of it gives, and read no more than they need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, InvalidTableError
from hoodie_py.arrow.fields import make_nullable
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.snapshot import open_snapshot

Corpus = Callable[[str], Path]
TABLES = ("mdt_files_mor_v9", "old15_metadata_mor")


def open_view(table: Path) -> MetadataView:
    view = open_metadata_view(open_snapshot(str(table)))
    assert view is not None
    return view


def sort_rows(table: pa.Table) -> list[dict[str, object]]:
    return sorted(table.to_pylist(), key=lambda row: str(row["key"]))


def read_partition(view: MetadataView, partition: str) -> pa.Table:
    return pa.Table.from_batches(view.read_all(partition), make_nullable(view.schema))


@pytest.fixture(scope="module", params=TABLES)
def table(request: pytest.FixtureRequest, corpus: Corpus) -> Path:
    return corpus(request.param)


def test_all_records_are_those_of_a_scan(table: Path) -> None:
    view = open_view(table)
    whole = HoodieTable.open(str(table / ".hoodie" / "metadata")).scan().to_arrow().to_pylist()
    found = [row for partition in view.partitions for row in read_partition(view, partition).to_pylist()]
    gone = [row for row in whole if any((row.get(name) or {}).get("isDeleted") for name in row if name[0].isupper())]
    assert len(found) == len(whole) - len(gone)
    assert {str(row) for row in found} <= {str(row) for row in whole}


def test_keys_and_prefixes_select_records(table: Path) -> None:
    view = open_view(table)
    for partition in view.partitions:
        rows = sort_rows(read_partition(view, partition))
        keys = [str(row["key"]) for row in rows][::2]
        assert sort_rows(view.read_keys(partition, [*keys, "no such key", *keys])) == rows[::2]
        prefixes = {key[:4] for key in keys}
        wanted = [row for row in rows if str(row["key"]).startswith(tuple(prefixes))]
        assert sort_rows(view.read_prefixes(partition, sorted(prefixes))) == wanted
        assert view.read_keys(partition, []).num_rows == 0


def test_there_is_no_view_without_a_metadata_table_or_where_it_is_switched_off(corpus: Corpus) -> None:
    assert open_metadata_view(open_snapshot(str(corpus("nometa_mor_v6")))) is None
    snapshot = open_snapshot(str(corpus(TABLES[0])))
    assert open_metadata_view(snapshot, {"hoodie.metadata.enable": "false"}) is None
    assert open_metadata_view(snapshot) is open_metadata_view(snapshot.travel_to("20990101000000"))
    assert open_metadata_view(open_snapshot(str(corpus(TABLES[0]) / ".hoodie" / "metadata"))) is None


def test_a_broken_metadata_table_is_an_error_each_time(corpus_copy: Corpus) -> None:
    table = corpus_copy(TABLES[0])
    (table / ".hoodie" / "metadata" / ".hoodie" / "hoodie.properties").write_text("nothing")
    snapshot = open_snapshot(str(table))
    for _ in range(2):
        with pytest.raises(InvalidTableError):
            open_metadata_view(snapshot)


def test_calls_and_bytes_are_counted(corpus: Corpus) -> None:
    view = open_view(corpus(TABLES[0]))
    before = view.calls, view.bytes
    view.read_keys("files", ["p0"])
    assert view.calls > before[0]
    assert view.bytes > before[1]
