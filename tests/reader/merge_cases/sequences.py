"""buffer_sequence: a file slice written to disk and read through FileGroupReader."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import BufferedRecord
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.options.read import MERGE_TYPE, MERGE_USE_POSITIONS, SKIP_MERGE
from hoodie_py.reader.base.base_merge import MergedRecords
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import BlockRules, FileSlice
from hoodie_py.reader.read_info import DEFAULT_BATCH_ROWS, ReadInfo, ReadOptions
from hoodie_py.reader.record.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.record.delete_rules import convert_delete_ordering
from hoodie_py.reader.record.record import HoodieOperation, encode_operation
from hoodie_py.reader.record_reader import IncomingDeletes, IncomingRows, MergeReader
from tests.reader.merge_cases.case import Case, column, delete_records
from tests.reader.merge_cases.compare import check, multiset, through
from tests.reader.merge_cases.files import write_slice
from tests.reader.merge_cases.mergers import merger_of
from tests.reader.merge_cases.tables import read_options, table_config

KEY_FIELD = "record_key"  # of tables without meta columns, which is what most cases are


def run(case: Case, folder: Path) -> None:
    """Read a case's slice in every way that must not matter: batch sizes, log files and row groups."""
    ways = itertools.product((1, DEFAULT_BATCH_ROWS), (True, False), (1, None))
    for number, (batch_rows, file_per_block, row_group_rows) in enumerate(ways):
        into = folder / str(number)
        into.mkdir()
        written = write_slice(case, into, file_per_block=file_per_block, row_group_rows=row_group_rows)
        _Read(case, written, _info(case, into), batch_rows).check()


def _info(case: Case, folder: Path) -> ReadInfo:
    schema = case.schema()
    fields = case.config.get("record_key_fields") or (KEY_FIELD,)
    config = table_config(case.config, None if RECORD_KEY_FIELD in schema.arrow.names else fields)
    return ReadInfo(TableFiles.open(str(folder)), config, schema.arrow, schema.defaults, BlockRules())


@dataclass(frozen=True)
class _Read:
    case: Case
    file_slice: FileSlice
    info: ReadInfo
    batch_rows: int

    def check(self) -> None:
        expected = dict(self.case.expected)
        reader = self.reader()
        by_key = self.case.config.get("iterator_mode") == "RECORD_KEY"
        rows = [self._row(reader, record) for record in self._records(reader)]
        if by_key:
            self._without_untouched(rows)
        assert "error" not in expected, f"expected {expected['error']}, got {rows}"
        if "records" in expected:
            self._check_records(expected.pop("records"), rows)
            self._check_batches()
        actual: dict[str, Any] = {"stats": {name: getattr(reader.stats, name) for name in expected.get("stats", ())}}
        if "callbacks" in expected:
            actual["callbacks"] = [text for merged in self.reader().read_merges() for text in _callbacks(merged)]
        if "buffered_keys" in expected:
            actual["buffered_keys"] = len(list(self.reader().log_records()))
        actual["total_log_records"] = reader.stats.log_records
        actual["still_position_based"] = reader.by_position
        check(expected, actual)

    def reader(self) -> MergeReader:
        """A reader of the slice with the buffer that the case asks for."""
        kind = self.case.config["buffer"]
        return MergeReader(
            self.file_slice,
            self.info,
            merger=merger_of(self.case.config),
            options=self._options(),
            sort_output=kind == "sorted",
            incoming=self._incoming() if self._has_incoming() else None,
        )

    def _options(self) -> ReadOptions:
        kind = self.case.config["buffer"]
        options = read_options(self.case.config)
        options.setdefault(MERGE_USE_POSITIONS, str(kind == "position").lower())
        if kind == "unmerged":
            options[MERGE_TYPE] = SKIP_MERGE
        return ReadOptions(batch_rows=self.batch_rows, options=options)

    def _has_incoming(self) -> bool:
        blocks = self.case.fields["log_blocks"]
        return self.case.config["buffer"] == "streaming" or any(block["type"] == "records" for block in blocks)

    def _records(self, reader: MergeReader) -> Iterator[BufferedRecord[Row]]:
        emit_deletes = bool(self.case.config.get("emit_deletes"))
        if self.case.config["buffer"] == "reusable":
            return reader.look_up(self.case.config["key_filter"], emit_deletes=emit_deletes)
        return reader.buffered_records(emit_deletes=emit_deletes)

    def _incoming(self) -> list[IncomingRows | IncomingDeletes]:
        """A writer's rows and deletes in their order, runs of a kind together."""
        entries = [entry for block in self.case.fields["log_blocks"] for entry in block["records"]]
        found: list[IncomingRows | IncomingDeletes] = []
        for deletes, grouped in itertools.groupby(entries, key=lambda entry: bool(entry.get("$delete"))):
            run = list(grouped)
            found.append(self._deletes(run) if deletes else self._rows(run))
        return found

    def _deletes(self, run: Sequence[Mapping[str, Any]]) -> IncomingDeletes:
        records = delete_records(list(run))
        types = [self.info.schema.field(name).type for name in self.info.config.merge_ordering_fields]
        return IncomingDeletes(records.keys, convert_delete_ordering(records, types))

    def _rows(self, run: Sequence[Mapping[str, Any]]) -> IncomingRows:
        columns = [column([row.get(f.name) for row in run], f.type) for f in self.info.schema]
        schema = pa.schema([field.with_nullable(True) for field in self.info.schema])
        codes = [encode_operation(HoodieOperation(row["$op"]) if row.get("$op") else None) for row in run]
        return IncomingRows(pa.RecordBatch.from_arrays(columns, schema=schema), codes)

    def _row(self, reader: MergeReader, record: BufferedRecord[Row]) -> dict[str, Any]:
        context: ArrowRecordContext = reader.context
        data: dict[str, Any] | None = {"_deleted_key": record.record_key}
        if record.record is not None:
            names = [name for name in context.schema.names if context.has_value(record, name)]
            data = {name: context.get_value(record, name) for name in names}
        return {"data": data, "op": record.operation.value if record.operation else None, "key": record.record_key}

    def _without_untouched(self, rows: list[dict[str, Any]]) -> None:
        """An iterator of keys gives base rows that the log does not know without their data."""
        assert list(self.reader().keys()) == [row["key"] for row in rows]
        logged = {record.record_key for record in self.reader().log_records()}
        for row in rows:
            row["data"] = row["data"] if row["key"] in logged else None

    def _check_records(self, expected: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> None:
        """Base rows in file order; rows that only the log has as a multiset, unless the output is sorted."""
        assert len(expected) == len(rows), f"expected {len(expected)} records, got {rows}"
        wanted = [{**row, "data": through(self.info.schema, row["data"])} for row in expected]
        listed = [{key: row[key] for key in want} for want, row in zip(wanted, rows, strict=True)]
        log_only = 0
        if self.case.config["buffer"] not in ("sorted", "unmerged"):
            log_only = sum(1 for _ in itertools.takewhile(lambda row: row["op"] in ("I", "D", "-U"), reversed(wanted)))
        ordered = len(wanted) - log_only
        assert listed[:ordered] == wanted[:ordered]
        assert multiset(listed[ordered:]) == multiset(wanted[ordered:])

    def _check_batches(self) -> None:
        """What a query reads is the live rows, in batches never larger than asked for."""
        if self.case.config["buffer"] == "reusable":
            return
        query = (
            self.reader()
            if self._has_incoming()
            else FileGroupReader(
                self.file_slice, self.info, merger=merger_of(self.case.config), options=self._options()
            )
        )
        batches = list(query.to_batches())
        assert all(batch.num_rows <= self.batch_rows for batch in batches)
        rows = [row for batch in batches for row in batch.to_pylist()]
        reader = self.reader()
        names = self.info.schema.names
        live = [
            {name: reader.context.get_value(record, name) for name in names} for record in reader.buffered_records()
        ]
        assert multiset(rows) == multiset(live)


def _callbacks(merged: MergedRecords) -> Iterator[str]:
    """What a listener hears: deletes always, updates and inserts, nothing where the base row stays."""
    for i, record in enumerate(merged.result.to_records()):
        if record.is_delete:
            assert record.operation is not None
            base = "no_base" if merged.older is None else "base"
            yield f"delete:{record.record_key}:{base}:{record.operation.value}"
        elif merged.older is None:
            yield f"insert:{record.record_key}"
        elif merged.older.rows[i] != merged.result.rows[i]:
            yield f"update:{record.record_key}"
