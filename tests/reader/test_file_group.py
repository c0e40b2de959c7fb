"""FileGroupReader one level down: records with operations, their data through the context, triples and statistics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import FileGroupReader, HoodieTable, InvalidQueryError

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
        triples = list(seen.merges())
        assert sum(len(each.result) for each in triples if each.older is None) <= stats.inserts + stats.deletes
        live = [record for each in triples for record in each.result.records() if not record.is_delete]
        assert sum(record.operation is not None and record.operation.value == "I" for record in live) == stats.inserts
        assert sum(record.operation is not None and record.operation.value == "U" for record in live) == stats.updates
        assert len(list(FileGroupReader(file_slice, table).log_records())) >= len(live) - len(deleted)


def test_the_context_comes_with_records(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("basic_mor_v9_part"))
    with pytest.raises(InvalidQueryError, match="no records yet"):
        _ = FileGroupReader(table.file_slices()[0], table).context
