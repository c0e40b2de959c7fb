"""Refuse tables with features that this package cannot write.

Each feature is valid Hudi whose rules are not implemented here. Writing anyway would lose rows, or leave a table that
Java reads wrongly. A refusal names the feature and leaves the table unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_py.errors import ConflictError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import WRITABLE_VERSIONS
from hoodie_py.formats.names import FULL_BOOTSTRAP_INSTANT, METADATA_BOOTSTRAP_INSTANT
from hoodie_py.formats.timeline.instants import RESTORE
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock.heartbeat import find_checkpoint
from hoodie_py.writer.transaction.pending import list_pending_writes


def check_compactable(snapshot: Snapshot) -> None:
    """Refuse tables that cannot be compacted here.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    problem = next(_iterate_problems(snapshot), None)
    if problem is not None:
        raise problem.locate(table=snapshot.config.name)


def check_writable(snapshot: Snapshot) -> None:
    """Refuse tables that records cannot be written to here.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    problem = next(_iterate_features(snapshot), None)
    if problem is not None:
        raise problem.locate(table=snapshot.config.name)


def check_restorable(snapshot: Snapshot) -> None:
    """Refuse tables that cannot be restored here. A pending restore is allowed.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    problem = next((each for each in _iterate_formats(snapshot)), None)
    if problem is not None:
        raise problem.locate(table=snapshot.config.name)


def check_version(snapshot: Snapshot) -> None:
    """Refuse to change a table of a version that is only read, or the metadata table of another table.

    Raises:
        UnsupportedFeatureError: names the version, or the metadata table.
    """
    problem = _find_version_problem(snapshot)
    if problem is not None:
        raise problem.locate(table=snapshot.config.name)


def check_pending_writes(snapshot: Snapshot, instant: str) -> None:
    """Refuse to compact beside an older pending write, up to table version 6.

    That write's log files belong to the slice that the compaction closes, so its rows would be lost (Hudi
    ``CompactHelpers``, for one writer). ``instant`` is the request time of the compaction.

    Raises:
        ConflictError: an older write is pending.
    """
    if snapshot.config.has_logs_named_by_commit:
        return
    pending = [each for each in list_pending_writes(snapshot) if each.request_time <= instant]
    if pending:
        by_flink = find_checkpoint(snapshot.files, pending[0].request_time) is not None
        raise ConflictError(
            f"Compaction on table version {snapshot.config.version} beside a pending {pending[0].action}, whose "
            "rows it would lose.",
            hint="It is a Flink job's: let the job plan (compaction.schedule.enabled), and run its plans here."
            if by_flink
            else "Let that write finish, or roll it back.",
            instant=pending[0].request_time,
            table=snapshot.config.name,
        )


def _iterate_problems(snapshot: Snapshot) -> Iterator[HoodieError]:
    if not snapshot.config.is_merge_on_read:
        yield UnsupportedFeatureError(
            "Compaction of a COPY_ON_WRITE table.", hint="Such a table has no log files to compact."
        )
    yield from _iterate_features(snapshot)


def _find_version_problem(snapshot: Snapshot) -> HoodieError | None:
    version = snapshot.config.version
    if snapshot.config.is_metadata_table:
        return UnsupportedFeatureError(
            "Writing to a metadata table itself, which is only read.",
            hint="Write to the table that it belongs to, which keeps it right.",
        )
    if version in WRITABLE_VERSIONS:
        return None
    return UnsupportedFeatureError(
        f"Writing to a table of version {version}, which is only read.",
        hint="Upgrade the table first: table.upgrade(), or hoodie upgrade.",
    )


def _iterate_features(snapshot: Snapshot) -> Iterator[HoodieError]:
    yield from _iterate_formats(snapshot)
    restores = snapshot.timeline.select_pending().select_actions(RESTORE)
    if len(restores):
        yield UnsupportedFeatureError(
            "Writing to a table beside a pending restore.",
            hint="Finish it: call restore again with the same savepoint.",
            instant=restores.instants[0].request_time,
        )


def _iterate_formats(snapshot: Snapshot) -> Iterator[HoodieError]:
    old = _find_version_problem(snapshot)
    if old is not None:
        yield old
    config = snapshot.config
    if config.multiple_base_file_formats:
        yield UnsupportedFeatureError("Writing to a table with several base file formats.")
    if config.base_file_format != "PARQUET":
        yield UnsupportedFeatureError(f"Writing base files of format {config.base_file_format[:40]!r}.")
    pending = snapshot.timeline.select_pending()
    for instant in pending.instants:
        if instant.request_time in (METADATA_BOOTSTRAP_INSTANT, FULL_BOOTSTRAP_INSTANT):
            yield UnsupportedFeatureError(
                "Writing to a table beside a pending bootstrap.",
                hint="Bootstrap it again with Java Hudi, which rolls the unfinished one back.",
                instant=instant.request_time,
            )
