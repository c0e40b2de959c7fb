"""Base rows whose fate is decided before they are read are the ones that merging batch by batch gives."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import FileGroupReader, HoodieTable
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.reader.base import base_merge
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.base.base_merge import BaseMerge
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.read_info import ReadOptions, ReadStats
from tests.reader.slices import SCHEMA, Version, bases, config_of, logs, reader_of, rows_of, write_slice

Corpus = Callable[[str], Path]
BY_COMMIT, BY_EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING
TABLES = (
    "basic_mor_v9_part",
    "commit_time_deletes_mor_v8",
    "delete_block_no_ordering_mor_v9",
    "drop_partition_columns_mor_v9",
    "duplicate_keys_in_base_mor_v9",
    "dups_in_block_mor_v9",
    "equal_ordering_mor_v9",
    "event_time_updates_mor_v9",
    "evolve_widen_ordering_mor_v8",
    "is_deleted_column_mor_v9",
    "many_row_groups_mor_v9",
)


@contextmanager
def deciding(*, ahead: bool, keys_by_batch: int = 0) -> Iterator[list[bool]]:
    """Decide ahead wherever that is possible, even for few rows, or never; give what was said each time."""
    said: list[bool] = []
    real = BaseMerge._is_decided_ahead

    def is_decided_ahead(*args: Any) -> bool:
        said.append(ahead and real(*args))
        return said[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseMerge, "_is_decided_ahead", is_decided_ahead)
        patch.setattr(base_merge, "_LEAST_BASE_ROWS", 1)
        patch.setattr(base_merge, "_MOST_KEYS_BY_BATCH", keys_by_batch)
        yield said


@pytest.mark.parametrize("columns", [None, ["v"], ["_hoodie_record_key", "ts"], []])
@pytest.mark.parametrize("mode", [BY_COMMIT, BY_EVENT])
@given(base=bases(), log=logs(), rows=st.integers(1, 3), limit=st.sampled_from([None, 1 << 16]))
@settings(max_examples=30)
def test_deciding_ahead_changes_nothing(
    mode: MergeMode, columns: list[str] | None, base: list[Version], log: list[Version], rows: int, limit: int | None
) -> None:
    results = []
    with tempfile.TemporaryDirectory() as name:
        written = write_slice(Path(name), base, log, row_group_rows=2)
        for ahead in (True, False):
            with deciding(ahead=ahead) as said:
                reader = reader_of(
                    Path(name), written, config_of(mode), columns=columns, batch_rows=rows, memory_limit=limit
                )
                counted = sum(batch.num_rows for batch in reader.to_batches())
                results.append((counted, rows_of(reader)))
            assert any(said) == (ahead and bool(log) and len(base) > rows)
    assert results[0] == results[1]


def test_ahead_is_where_rows_outnumber_a_batch_and_meetings_are_known(tmp_path: Path) -> None:
    base = [Version(key, ts=1) for key in "abc"]
    written = write_slice(tmp_path, base, [Version("b", ts=2)])
    for rows, keys_by_batch, ahead in ((1, 0, True), (2, 0, True), (3, 0, False), (1, 9, False)):
        with deciding(ahead=True, keys_by_batch=keys_by_batch) as said:
            reader = reader_of(tmp_path, written, config_of(BY_EVENT), columns=SCHEMA.names, batch_rows=rows)
            assert len(rows_of(reader)) == 3
        assert said == [ahead]


def test_ahead_is_where_log_rows_take_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_slice(tmp_path, [Version("a", ts=1), Version("b", ts=1)], [Version("b", ts=2)])
    for few, ahead in ((1 << 20, False), (0, True)):
        monkeypatch.setattr(base_merge, "_FEW_BYTES", few)
        with deciding(ahead=True) as said:
            reader = reader_of(tmp_path, written, config_of(BY_EVENT), columns=SCHEMA.names, batch_rows=9)
            assert len(rows_of(reader)) == 2
        assert said == [ahead]


@pytest.mark.parametrize("keys_by_batch", [0, 9])
def test_base_rows_are_let_go_of_before_what_stays_of_them_is_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys_by_batch: int
) -> None:
    written = write_slice(tmp_path, [Version(key, ts=1) for key in "abcd"], [Version("b", ts=2)])
    read: list[weakref.ref[pa.RecordBatch]] = []
    batches = BaseFileReader.read_batches

    def watched(*args: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        for batch in batches(*args, **named):
            read.append(weakref.ref(batch))
            handed_on = [batch]
            del batch
            yield handed_on.pop()

    monkeypatch.setattr(BaseFileReader, "read_batches", watched)
    with deciding(ahead=False, keys_by_batch=keys_by_batch):
        reader = reader_of(tmp_path, written, config_of(BY_EVENT), columns=SCHEMA.names, batch_rows=9)
        merged = reader.to_batches()
        assert next(merged).num_rows == 3
        assert read[-1]() is None
        assert [batch.num_rows for batch in merged] == [1]


def test_the_log_is_let_go_of_before_base_rows_that_stay_unless_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = [Version(key, ts=1) for key in "abcd"]
    written = write_slice(tmp_path, base, [Version("b", ts=2), Version("new", ts=2)])
    folds: list[weakref.ref[FoldedLog]] = []
    fold = LogReader.fold

    def watched(log: LogReader) -> FoldedLog | None:
        folded = fold(log)
        assert folded is not None
        folds.append(weakref.ref(folded))
        return folded

    monkeypatch.setattr(LogReader, "fold", watched)
    for loaded in (False, True):
        with deciding(ahead=True), reader_of(tmp_path, written, config_of(BY_EVENT), batch_rows=1) as reader:
            if loaded:
                reader.load()
            for _ in range(2):
                seen = []
                for batch in reader.to_batches():
                    held = bool(len(reader.context.store)), folds[-1]() is not None
                    seen.append((batch.column("_hoodie_record_key").to_pylist(), *held))
                assert seen == [
                    (["b"], True, True),
                    (["new"], True, True),
                    *((list(key), loaded, loaded) for key in "acd"),
                ]


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_java_read_the_same(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    seen: list[bool] = []
    for file_slice in table.file_slices():
        results: list[tuple[list[dict[str, Any]], ReadStats]] = []
        for ahead in (True, False):
            with deciding(ahead=ahead) as said:
                reader = FileGroupReader(file_slice, table, options=ReadOptions(batch_rows=1))
                results.append((rows_of(reader), reader.stats))
            seen += said
        assert results[0] == results[1]
    assert any(seen)
