"""The part of ``HoodieTable`` that brings a table to another table version (Hudi ``UpgradeDowngrade``).

Modules of the writer are imported inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hoodie_py.writer.table_writes import TableWrites

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.lock.lock import Lock
    from hoodie_py.writer.upgrade.change_version import VersionChange


class TableVersions(TableWrites):
    """Upgrades and downgrades of a table. After one this object shows the table in its new version."""

    def upgrade(
        self,
        to: int = 9,
        *,
        dry_run: bool = False,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
    ) -> VersionChange:
        """Bring the table to a later table version.

        Failed writes are rolled back, log files compacted, the timeline and the metadata table moved. A run that was
        cut short is finished by the next one.

        Stop writers of older releases before, as they cannot read the table afterwards.

        Args:
            to: the version: 6, 8 (Hudi 1.0) or 9 (Hudi 1.1 and later).
            dry_run: change nothing, and say what would be done.
            options: Hudi's writer options: lock provider, ... Tables of versions 1 to 3 do not name their fields:
                give ``hoodie.datasource.write.recordkey.field`` and its like.
            merger: the RecordMerger whose id the table names, for the compaction.
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.

        Raises:
            InvalidQueryError: there is no such version, or it is below the table's.
            UnsupportedFeatureError: the table has a feature that the version does not handle.
            ConflictError: another writer holds the lock or is at work.
            CorruptFileError: a file of the timeline or of the archive is damaged.
            CommitStateUnknownError: the store did not say whether a file was written.
            StorageError: the store refused; the next run goes on.

        Examples:
            >>> old = HoodieTable.create("old", trips.schema, record_key="id", table_version=8)
            >>> old.upgrade(to=9).after
            9
        """
        return self._change_version(to, True, dry_run, options, merger, lock)

    def downgrade(
        self,
        to: int,
        *,
        dry_run: bool = False,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
    ) -> VersionChange:
        """Bring the table to an earlier table version, 8 or 6; arguments and errors as for ``upgrade``.

        Indexes that the version does not know are dropped. What it cannot hold otherwise is refused.

        Examples:
            >>> trips.downgrade(to=8).after
            8
            >>> trips.config.version
            8
        """
        return self._change_version(to, False, dry_run, options, merger, lock)

    def _change_version(
        self,
        to: int,
        upwards: bool,
        dry_run: bool,
        options: Mapping[str, Any] | None,
        merger: Merger | None,
        lock: Lock | None,
    ) -> VersionChange:
        from hoodie_py.writer.timeline.session import WriteSession
        from hoodie_py.writer.upgrade.change_version import change_version

        session = WriteSession.open(
            self._snapshot, options=options, lock=lock, merger=merger
        )  # also of a version that is only read
        result = change_version(session, to, upwards=upwards, merger=merger, dry_run=dry_run)
        return self._refresh(result, changed=not dry_run)
