"""Write the change-data file of a rewritten base file (Hudi ``HoodieCDCLogger``, ``FileGroupReaderBasedMergeHandle``).

A table with change data capture keeps such a file beside every base file that replaces an older one, or that a
compaction makes. It is named like a log file with the suffix ``.cdc``: the commit's instant on every table version,
version 1, and the base file's write token. New log files have no such file: their changes follow from the file slice
before them, which their statistics name.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from hoodie_py.formats.names import CDC_SUFFIX, MarkerType, make_log_file_name, parse_base_file_name
from hoodie_py.reader.base.base_merge import MergedRecords
from hoodie_py.reader.record.row_store import RowStore
from hoodie_py.writer.cdc import ChangeLog, ChangeSchema
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile
from hoodie_py.writer.handles.markers import Marker


class ChangeFile:
    """Write the change data of the base file that the marker ``base`` announces.

    Entering the block announces the file, and ``publish`` puts it into the table. If ``base`` is None, or the table
    captures no changes, no file is written.
    """

    def __init__(self, facts: CommitFacts, base: Marker | None) -> None:
        self._facts = facts
        self._base = base
        self._stack = ExitStack()
        self._marker: Marker | None = None
        self._file: DataFile | None = None
        self._log: ChangeLog | None = None

    def add(self, merged: MergedRecords, store: RowStore) -> None:
        """Add the changes of a piece of a merge; errors as for ``ChangeLog.add``."""
        if self._log is not None:
            self._log.add(merged, store)

    def publish(self) -> dict[str, int]:
        """Put the file into the table. Return its path and size in bytes for the write statistics; empty without one.

        Errors as for ``DataFile.publish``.
        """
        if self._log is None or self._file is None or self._marker is None:
            return {}
        self._log.finish()
        return {self._marker.path: self._file.publish()}

    def __enter__(self) -> Self:
        facts = self._facts
        base = None if self._base is None else parse_base_file_name(self._base.file_name)
        if self._base is None or base is None or not facts.config.cdc_enabled:
            return self
        name = make_log_file_name(base.file_id, facts.instant, 1, base.write_token, CDC_SUFFIX)
        kind = MarkerType.CREATE if facts.config.has_logs_named_by_commit else MarkerType.APPEND
        self._marker = Marker(self._base.partition_path, name, kind)
        schema = ChangeSchema.of(facts.config.cdc_mode, facts.schema.table)
        self._file = self._stack.enter_context(DataFile(facts, self._marker))
        self._log = ChangeLog(self._file.sink, schema, facts.instant)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
