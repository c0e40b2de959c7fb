"""The part of ``HoodieTable`` that undoes commits and changes the table version.

Savepoints, restore, rollback, upgrade and downgrade (Hudi ``UpgradeDowngrade``). Modules of the writer are imported
inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from hoodie_py.writer.table_writes import TableWrites

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.lock.lock import Lock
    from hoodie_py.writer.rollback.preview import RollbackReport
    from hoodie_py.writer.rollback.rollback import RollbackResult
    from hoodie_py.writer.savepoint.restore import RestoreResult
    from hoodie_py.writer.savepoint.savepoint import Savepoint
    from hoodie_py.writer.upgrade.change_version import VersionChange


class TableStates(TableWrites):
    """Earlier states and other versions of a table. After a change this object shows the new state."""

    def savepoint(
        self,
        instant: str | None = None,
        user: str = "",
        comment: str = "",
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
    ) -> Savepoint:
        """Keep the table as it was at a commit: cleans keep its files, archival keeps the commit.

        Args:
            instant: request time of a completed commit; None for the newest one.
            user: the name of the user that creates the savepoint, for information.
            comment: the reason for it, for information.
            options: Hudi's writer options: lock provider, ...
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.

        Raises:
            InvalidQueryError: there is no such commit, a clean may have removed its files, or it already has a
                savepoint.
            ConflictError: another writer holds the lock, or a restore is pending.
            CommitStateUnknownError: the store did not say whether it wrote the savepoint.
            StorageError: the store refused.

        Examples:
            >>> savepoint = trips.savepoint(user="ana", comment="before the migration")
            >>> savepoint.user, savepoint.files
            ('ana', 3)
        """
        from hoodie_py.writer.savepoint.savepoint import create_savepoint

        return self._refresh(create_savepoint(self._open_session(options, lock), instant, user, comment))

    def savepoints(self) -> list[Savepoint]:
        """Return the table's savepoints, oldest first.

        Raises:
            CorruptFileError: the file of a savepoint is damaged.

        Examples:
            >>> savepoint = trips.savepoint()
            >>> trips.savepoints() == [savepoint]
            True
        """
        from hoodie_py.writer.savepoint.savepoint import list_savepoints

        return list_savepoints(self._snapshot)

    def delete_savepoint(
        self, instant: str, options: Mapping[str, Any] | None = None, lock: Lock | None = None
    ) -> Savepoint:
        """Delete a savepoint, so that later cleans may remove its files; return its description.

        Raises:
            InvalidQueryError: there is no such savepoint.
            ConflictError: another writer holds the lock, or a restore is pending.

        Examples:
            >>> savepoint = trips.savepoint()
            >>> trips.delete_savepoint(savepoint.instant).files
            3
            >>> trips.savepoints()
            []
        """
        from hoodie_py.writer.savepoint.savepoint import delete_savepoint

        return self._refresh(delete_savepoint(self._open_session(options, lock), instant))

    def restore(
        self,
        instant: str,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
        merger: Merger | None = None,
    ) -> RestoreResult:
        """Take the table back to a savepoint: all later writes are undone, with their files.

        Stop all other writers and readers before. A restore that was cut short keeps writers out; call it again.
        The metadata table is built anew.

        Args:
            instant: request time of the savepoint.
            options: Hudi's writer options: how to treat a metadata table, lock provider, ...
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.
            merger: the RecordMerger whose id the table names, for indexes of merged records.

        Raises:
            MergeError: an index needs a merger that was not supplied.
            InvalidQueryError: there is no such savepoint, a later one prevents it, or a restore to another one is
                pending.
            InvalidTableError: files of the savepoint are gone.
            UnsupportedFeatureError: commits after the savepoint were archived, or the table has a feature that is not
                handled.
            ConflictError: a writer is at work.
            CommitStateUnknownError: the store did not say whether it wrote a file.
            StorageError: the store refused; the next restore goes on.

        Examples:
            >>> savepoint = trips.savepoint()
            >>> trips.delete("price > 0").rows_deleted
            3
            >>> print(trips.restore(savepoint.instant))
            The table is as it was at ...: 1 later instants and 2 files were removed, in ... s.
            >>> trips.scan().count()
            3
        """
        from hoodie_py.writer.savepoint.restore import restore

        return self._refresh(restore(self._open_session(options, lock, merger), instant))

    @overload
    def rollback(
        self,
        instant: str,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
        dry_run: Literal[False] = False,
    ) -> RollbackResult: ...

    @overload
    def rollback(
        self,
        instant: str,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
        *,
        dry_run: Literal[True],
    ) -> RollbackReport: ...

    def rollback(
        self,
        instant: str,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
        dry_run: bool = False,
    ) -> RollbackResult | RollbackReport:
        """Undo an instant that has not completed, or finish a rollback that has begun.

        A running compaction becomes a requested one; a requested compaction is removed. The files of a failed write are
        deleted, and the timeline records the rollback.

        Args:
            instant: request time of a pending instant, or of a pending rollback.
            options: Hudi's writer options: lock provider, ...
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.
            dry_run: remove nothing, and return a report of the files that would be removed, with their log blocks.

        Raises:
            InvalidQueryError: there is no such pending instant.
            ConflictError: another writer works on the instant, or the table has changed since.
            UnsupportedFeatureError: only Java Hudi can undo an instant of this kind or state.

        Examples:
            >>> instant = trips.schedule_compaction()
            >>> trips.rollback(instant).action
            'compaction'
            >>> trips.timeline.select_pending().instants
            ()
        """
        from hoodie_py.writer.rollback import preview, rollback

        session = self._open_session(options, lock)
        if dry_run:
            return preview.preview_rollback(session, instant)
        return self._refresh(rollback.rollback(session, instant))

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
            dry_run: change nothing, and return what would be done.
            options: Hudi's writer options: lock provider, ... Tables of versions 1 to 3 do not name their fields:
                give ``hoodie.datasource.write.recordkey.field`` and similar options.
            merger: the RecordMerger whose id the table names, for the compaction.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.

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

        Indexes that the version does not know are dropped. Tables with other features that it cannot hold are refused.

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
