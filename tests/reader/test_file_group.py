"""FileGroupReader one level down: records with operations, their data through the context, triples and statistics."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import FileGroupReader, HoodieTable, InvalidQueryError
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.read_info import ReadOptions

Corpus = Callable[[str], Path]
TABLES = ("event_time_updates_mor_v9", "is_deleted_column_mor_v9", "logonly_bucket_mor_v9", "many_row_groups_mor_v9")


@pytest.mark.parametrize("name", TABLES)
def test_records_are_the_rows_of_a_scan_and_their_data_is_read_through_the_context(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    want = {row["_hoodie_record_key"]: row for row in table.scan().to_arrow().to_pylist()}
    got = {}
    for file_slice in table.file_slices():
        reader = FileGroupReader(file_slice, table)
        for record in reader.buffered_records():
            assert not record.is_delete
            got[record.record_key] = {field: reader.context.get_value(record, field) for field in table.schema.names}
    assert got == want


@pytest.mark.parametrize("name", TABLES)
def test_triples_keys_and_statistics_agree(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    for file_slice in table.file_slices():
        reader = FileGroupReader(file_slice, table)
        rows = sum(batch.num_rows for batch in reader.to_batches())
        stats = reader.stats
        assert len(list(FileGroupReader(file_slice, table).keys())) == rows
        deleted = [r for r in FileGroupReader(file_slice, table).buffered_records(emit_deletes=True) if r.is_delete]
        assert len(deleted) == stats.deletes
        seen = FileGroupReader(file_slice, table)
        triples = list(seen.read_merges())
        assert sum(len(each.result) for each in triples if each.older is None) <= stats.inserts + stats.deletes
        live = [record for each in triples for record in each.result.to_records() if not record.is_delete]
        assert sum(record.operation is not None and record.operation.value == "I" for record in live) == stats.inserts
        assert sum(record.operation is not None and record.operation.value == "U" for record in live) == stats.updates
        assert len(list(FileGroupReader(file_slice, table).log_records())) >= len(live) - len(deleted)


def test_the_context_comes_with_records(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("basic_mor_v9_part"))
    with pytest.raises(InvalidQueryError, match="no records yet"):
        _ = FileGroupReader(table.file_slices()[0], table).context


class Watched:
    """Batches, and whether each was still held when the next one was asked for."""

    def __init__(self, batches: Iterator[pa.RecordBatch], held: list[bool]) -> None:
        self._batches = batches
        self._held = held
        self._last: weakref.ref[pa.RecordBatch] | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._last is not None:
            self._held.append(self._last() is not None)
        batch = next(self._batches)
        self._last = weakref.ref(batch)
        return batch


@pytest.mark.parametrize("name", ["many_row_groups_mor_v9", "event_time_updates_mor_v9"])
def test_base_rows_are_let_go_of_before_the_next_ones_are_read(
    corpus: Corpus, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable.open(corpus(name))
    held: list[bool] = []
    batches = BaseFileReader.read_batches
    monkeypatch.setattr(BaseFileReader, "read_batches", lambda *args, **named: Watched(batches(*args, **named), held))
    for file_slice in table.file_slices():
        for batch in FileGroupReader(file_slice, table, options=ReadOptions(batch_rows=3)).to_batches():
            assert batch.num_rows
            del batch
    assert held
    assert not any(held)
