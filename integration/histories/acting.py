"""What is done to the table of a history: each operation by what users call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from hoodie_py import Update as UpdateClause
from integration.histories.expected import find_first_pending
from integration.histories.mergers import Weighted
from integration.histories.model import Kind
from integration.histories.operations import (
    Alter,
    Archive,
    Change,
    Clean,
    Cluster,
    Compact,
    DeleteKeys,
    DeletePartition,
    DeleteRows,
    DeleteWhere,
    Index,
    Insert,
    LogCompact,
    Merge,
    Operation,
    Overwrite,
    Restore,
    Rollback,
    RunClustering,
    RunPlan,
    Savepoint,
    Schedule,
    ScheduleClustering,
    Update,
    Upsert,
)
from integration.histories.rules import CUSTOM
from integration.histories.services import LEAST_BLOCKS

FLAG = "_hoodie_is_deleted"
COLUMNS = ("id", "part", "ts", "total", "name")
EXTRA = "extra"
_OPTIONS = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.log.compaction.blocks.threshold": str(LEAST_BLOCKS),
    "hoodie.write.set.null.for.missing.columns": "true",
    "hoodie.clean.automatic": "false",  # the model knows the services that are asked for
    "hoodie.archive.automatic": "false",
}
_BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
_KEEP = {  # nothing else that would stay: the tables have few commits
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
    "hoodie.timeline.compaction.batch.size": "2",
}


class Actor:
    """Does operations to tables of a kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.schema = pa.schema(
            [
                ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64() if kind.wide else pa.int32()),
                ("total", pa.int32()), ("name", pa.string()), (FLAG, pa.bool_()),
            ]
        )  # fmt: skip
        self.merger: dict[str, Any] = {"merger": Weighted} if kind.mode == CUSTOM else {}
        self.options = dict(_OPTIONS)
        if kind.merge_on_read:  # the model does not know which file of a partition is the smallest
            self.options["hoodie.parquet.small.file.limit"] = "0"
        if kind.buckets:
            self.options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(kind.buckets)}

    def act(
        self, table: HoodieTable, operation: Operation, saved: str = "", more: Mapping[str, str] | None = None
    ) -> None:
        """Do an operation to a table; ``saved`` is its savepoint."""
        options = {**self.options, **(more or {})}
        if not self._write(table, operation, options):
            self._serve(table, operation, options, saved)

    def _write(self, table: HoodieTable, operation: Operation, options: dict[str, str]) -> bool:
        merger = self.merger
        match operation:
            case Upsert(changes):
                table.upsert(self._rows(changes), options, **merger)
            case Insert(changes, bulk):
                (table.bulk_insert if bulk else table.insert)(self._rows(changes), options, **merger)
            case Overwrite(changes, whole):
                write = table.insert_overwrite_table if whole else table.insert_overwrite
                write(self._rows(changes), options, **merger)
            case DeleteKeys(ids):
                table.delete(list(ids), options, **merger)
            case DeleteRows(rows):
                keys = [dict(zip(COLUMNS, row, strict=False)) for row in rows]
                schema = pa.schema([self.schema.field(name) for name in COLUMNS[:3]])
                table.delete(pa.Table.from_pylist(keys, schema), options, **merger)
            case DeleteWhere(most):
                table.delete(f"ts <= {most} and total % 2 = 0", options, **merger)
            case DeletePartition(part):
                table.delete_partition(part, options)
            case Update(least):
                table.update({"total": "total + 1"}, f"ts >= {least} and total % 2 = 0", options, **merger)
            case Merge(changes):
                self._merge(table, changes, options)
            case Alter(what):
                self._alter(table, what, options)
            case _:
                return False
        return True

    def _serve(self, table: HoodieTable, operation: Operation, options: dict[str, str], saved: str) -> None:
        merger = self.merger
        match operation:
            case Schedule() | RunPlan() | Compact():
                self._compact(table, operation, options)
            case ScheduleClustering():
                table.schedule_clustering(options)
            case RunClustering():
                table.run_clustering(None, None, options, **merger)
            case Cluster():
                table.cluster(None, options, **merger)
            case LogCompact():
                table.log_compact(options=options)
            case Archive(keep):
                more = {"hoodie.keep.min.commits": str(keep), "hoodie.keep.max.commits": str(keep + 1)}
                table.archive({**options, **_KEEP, **more})
            case Savepoint():
                if not saved:
                    table.savepoint(options=options)
                else:
                    table.delete_savepoint(saved, options)
            case Restore():
                table.restore(saved, options)
            case Index(name) if name in table.config.metadata_partitions:
                table.index.drop(name, options=options)
            case Index(name):
                table.index.build(name, options=options)
            case Clean(retain, by_versions):
                more = {**_BY_VERSIONS, "hoodie.clean.fileversions.retained": str(retain)} if by_versions else {}
                table.clean(None if by_versions else retain, {**options, **more})
            case Rollback():
                table.rollback(find_first_pending(table.timeline).request_time, options)

    def _compact(self, table: HoodieTable, operation: Operation, options: dict[str, str]) -> None:
        match operation:
            case Schedule():
                table.schedule_compaction(options=options)
            case RunPlan():
                table.run_compaction(None, None, options, **self.merger)
            case Compact():
                table.compact(options=options, **self.merger)

    def _merge(self, table: HoodieTable, changes: Sequence[Change], options: Mapping[str, str]) -> None:
        source = self._rows(changes)
        if EXTRA in table.schema.names and EXTRA not in source.schema.names:
            source = source.append_column(EXTRA, pa.nulls(len(source), pa.int32()))
        table.merge(
            source,
            ["id", "part"] if self.kind.partitioned else "id",
            when_matched=UpdateClause({"total": "source.total"}),
            when_not_matched="insert",
            options=options,
            **self.merger,
        )

    @staticmethod
    def _alter(table: HoodieTable, what: str, options: Mapping[str, str]) -> None:
        if what == "add":
            table.alter(add={EXTRA: "int"}, options=options)
        elif what == "drop":
            table.alter(drop=EXTRA, options=options)
        else:
            table.alter(cast={"total": "bigint"}, options=options)

    def _rows(self, changes: Sequence[Change]) -> pa.Table:
        rows = [{**{name: getattr(each.row, name) for name in COLUMNS}, FLAG: each.deletes} for each in changes]
        made = pa.Table.from_pylist(rows, self.schema)
        extra = [None if each.row.extra < 0 else each.row.extra for each in changes]
        if any(value is not None for value in extra):
            return made.append_column(EXTRA, pa.array(extra, pa.int32()))
        return made


def without_extra(operation: Any) -> Any:
    """Return an operation whose rows do not bring the column extra."""
    if not hasattr(operation, "changes"):
        return operation
    rows = tuple(replace(each, row=replace(each.row, extra=-1)) for each in operation.changes)
    return replace(operation, changes=rows)
