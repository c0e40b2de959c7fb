"""A user's data to a commit: read, keyed, combined, looked up, placed, committed (Hudi ``HoodieWriteClient``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.arrays import from_numpy
from hoodie_py.formats.option_keys import option
from hoodie_py.formats.write_keys import BULK_INSERT_SORT, INSERT_DUPLICATES
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.combine import combine, combines
from hoodie_py.writer.commit_records import Write, commit_records
from hoodie_py.writer.delete_filter import deletes_by_filter
from hoodie_py.writer.incoming_records import records_to_write
from hoodie_py.writer.index_settings import IndexSettings
from hoodie_py.writer.key_generation import KeyGenerator
from hoodie_py.writer.output_schema import OutputSchema, output_schema
from hoodie_py.writer.recovery import undo_failed_writes
from hoodie_py.writer.routing import Routed, route, route_new, route_to_new_buckets
from hoodie_py.writer.session import WriteSession
from hoodie_py.writer.tagging import tag
from hoodie_py.writer.write_records import TaggedRecords, WriteOperation, WriteRecords
from hoodie_py.writer.write_result import WriteResult

SORT_MODES = ("NONE", "GLOBAL_SORT", "PARTITION_SORT")
DUPLICATE_POLICIES = ("none", "drop", "fail")

_LOOKED_UP = (WriteOperation.UPSERT, WriteOperation.DELETE)
_OVERWRITES = (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE)
_SHOWN = 5

Merger = RecordMerger | type[RecordMerger]


@dataclass(frozen=True, slots=True)
class Writer:
    """Carries out one write.

    Args:
        session: of the call.
        merger: decides instead of the table's merge mode.
        extra_metadata: of the commit.
    """

    session: WriteSession
    merger: Merger | None = None
    extra_metadata: Mapping[str, str] | None = None

    def write(self, data: Any, operation: WriteOperation) -> WriteResult:
        """Write rows, or delete the records that rows or keys name.

        Args:
            data: anything with an Arrow stream, pandas, polars, a list of dicts; for deletes a list of keys too.
            operation: what to do with it.

        Raises:
            HoodieError: see ``HoodieTable.upsert``.
        """
        snapshot = undo_failed_writes(self.session)
        settings = self.session.settings
        records, schema = records_to_write(data, snapshot, settings.options, operation)
        write = self._write(snapshot, operation, schema)
        if not len(records) and operation is not WriteOperation.INSERT_OVERWRITE_TABLE:
            return WriteResult(operation)
        if combines(operation, settings.options):
            records = combine(records, snapshot, settings, self.merger)
        if operation in _OVERWRITES:
            write = replace(write, replaced=_replaced(snapshot, records, operation))
        return commit_records(write, self._place(records, snapshot, operation))

    def delete_where(self, chosen: str | pc.Expression) -> WriteResult:
        """Delete the rows that a filter chooses.

        Args:
            chosen: Spark SQL text or a pyarrow expression.

        Raises:
            HoodieError: see ``HoodieTable.delete``.
        """
        snapshot = undo_failed_writes(self.session)
        if snapshot.instant is None:
            return WriteResult(WriteOperation.DELETE)
        tagged = deletes_by_filter(snapshot, chosen, self.session.settings.options, self.merger)
        write = self._write(snapshot, WriteOperation.DELETE, output_schema(snapshot))
        return commit_records(write, route(tagged, snapshot, self._file_bytes))

    def _write(self, snapshot: Snapshot, operation: WriteOperation, schema: OutputSchema) -> Write:
        return Write(
            session=self.session,
            snapshot=snapshot,
            operation=operation,
            schema=schema,
            merger=self.merger,
            looked_up=operation in _LOOKED_UP,
            extra_metadata=self.extra_metadata or {},
        )

    @property
    def _file_bytes(self) -> int:
        return self.session.settings.plan.max_file_size

    def _tagged(self, records: WriteRecords, snapshot: Snapshot) -> TaggedRecords:
        settings = self.session.settings
        generator = KeyGenerator.of(snapshot.config, settings.options)
        return tag(snapshot, records, settings, self.merger, generator.partition_paths)

    def _place(self, records: WriteRecords, snapshot: Snapshot, operation: WriteOperation) -> Routed:
        options = self.session.settings.options
        is_bucket = IndexSettings.of(options).is_bucket
        if is_bucket and operation in _OVERWRITES:
            return route_to_new_buckets(self._tagged(records, snapshot), self._file_bytes)
        if is_bucket or operation in _LOOKED_UP:
            small = 0 if is_bucket else self.session.settings.small_file_bytes
            return route(self._tagged(records, snapshot), snapshot, self._file_bytes, small)
        if operation is WriteOperation.INSERT:
            records = self._without_known(records, snapshot)
        if operation is WriteOperation.BULK_INSERT:
            records = _sorted(records, _choice(options, BULK_INSERT_SORT, SORT_MODES))
        return route_new(records, self._file_bytes)

    def _without_known(self, records: WriteRecords, snapshot: Snapshot) -> WriteRecords:
        """Apply the policy about inserts of keys that the table has."""
        policy = _choice(self.session.settings.options, INSERT_DUPLICATES, DUPLICATE_POLICIES)
        if policy == "none":
            return records
        file_ids = self._tagged(records, snapshot).file_ids
        if file_ids.null_count == len(records):
            return records
        if policy == "fail":
            known = records.keys.filter(file_ids.is_valid())
            raise InvalidQueryError(
                f"{len(known)} of the keys to insert are in the table already, such as "
                f"{', '.join(map(repr, known.slice(0, _SHOWN).to_pylist()))}.",
                hint=f"Upsert them, or set {INSERT_DUPLICATES} to drop.",
            )
        return records.take(from_numpy(np.flatnonzero(file_ids.is_null().to_numpy(zero_copy_only=False))))


def _replaced(snapshot: Snapshot, records: WriteRecords, operation: WriteOperation) -> dict[str, tuple[str, ...]]:
    """Return the file groups that an overwrite does away with: those of the partitions it writes to, or all."""
    partitions = None
    if operation is WriteOperation.INSERT_OVERWRITE:
        paths = pa.chunked_array([], pa.string()) if records.partition_paths is None else records.partition_paths
        partitions = paths.unique().to_pylist()
    found: dict[str, tuple[str, ...]] = {}
    for each in snapshot.view.slices(None, partitions):
        found[each.partition_path] = (*found.get(each.partition_path, ()), each.file_id)
    return found


def _sorted(records: WriteRecords, mode: str) -> WriteRecords:
    """Sort a bulk insert: by partition path and record key, so that base files have narrow ranges of keys."""
    if mode == "NONE" or records.partition_paths is None:
        return records
    columns = pa.table({"partition": records.partition_paths, "key": records.keys})
    return records.take(pc.sort_indices(columns, sort_keys=[("partition", "ascending"), ("key", "ascending")]))


def _choice(options: Mapping[str, str], key: str, choices: tuple[str, ...]) -> str:
    value = option(options, key)
    for choice in choices:
        if (value or choices[0]).lower() == choice.lower():
            return choice
    raise InvalidQueryError(f"{key} cannot be {str(value)[:100]!r}.", hint=f"Give {', '.join(choices)}.")
