"""Savepoints and restores: the files of the timeline that tell of them (Hudi ``TimelineMetadataUtils``).

A savepoint has an empty inflight file, and a completed file that names the files to keep. A restore has a plan, which
names the instants to undo, newest first; an empty inflight file; and a completed file with one rollback for each
instant. All are Avro containers of one record in both layouts of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.names import check_file_name, check_inside
from hoodie_py.formats.timeline import records
from hoodie_py.formats.timeline.plans import RollbackMetadata, RolledBackInstant, read_fields
from hoodie_py.formats.timeline.records import Fields, expect_list
from hoodie_py.formats.timeline.writers import make_instant_record, make_rollback_record

RESTORE_PLAN_VERSION = 2


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """A savepoint (Hudi HoodieSavepointMetadata): the base and log files it keeps from being cleaned, by partition.

    ``saved_at`` is in milliseconds since 1970.
    """

    saved_by: str | None = None
    saved_at: int | None = None
    comments: str | None = None
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, data: bytes) -> SavepointMetadata:
        """Parse a ``.savepoint`` file; an empty one keeps nothing."""
        savepoint = read_fields(data, "HoodieSavepointMetadata")
        return cls(
            saved_by=savepoint.get_text("savepointedBy"),
            saved_at=savepoint.get_number("savepointedAt"),
            comments=savepoint.get_text("comments"),
            files=savepoint.get_by_partition(
                "partitionMetadata", lambda partition: Fields(partition).get_file_names("savepointDataFile")
            ),
        )


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A requested restore (Hudi HoodieRestorePlan): the instants it will undo, newest first.

    ``savepoint`` is the request time of the instant to restore; None in plans of version 1, which do not tell.
    """

    instants: tuple[RolledBackInstant, ...] = ()
    savepoint: str | None = None

    @classmethod
    def from_bytes(cls, data: bytes) -> RestorePlan:
        """Parse a ``.restore.requested`` file; an empty one undoes nothing."""
        plan = read_fields(data, "HoodieRestorePlan")
        return cls(
            instants=plan.get_items("instantsToRollback", RolledBackInstant.from_record),
            savepoint=plan.get_text("savepointToRestoreTimestamp"),
        )


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """A completed restore (Hudi HoodieRestoreMetadata): the rollbacks it is made of."""

    start_restore_time: str | None = None
    instants_rolled_back: tuple[str, ...] = ()
    rollbacks: tuple[RollbackMetadata, ...] = ()
    time_taken_ms: int = 0

    @classmethod
    def from_bytes(cls, data: bytes) -> RestoreMetadata:
        """Parse a ``.restore`` file; an empty one says nothing."""
        restore = read_fields(data, "HoodieRestoreMetadata")
        rollbacks = restore.get_mapping("hoodieRestoreMetadata", expect_list)
        return cls(
            start_restore_time=restore.get_text("startRestoreTime"),
            instants_rolled_back=restore.get_texts("instantsToRollback"),
            rollbacks=tuple(RollbackMetadata.from_record(item) for items in rollbacks.values() for item in items),
            time_taken_ms=restore.get_count("timeTakenInMillis"),
        )


def write_savepoint_metadata(savepoint: SavepointMetadata) -> bytes:
    """Encode a completed ``.savepoint`` file.

    Raises InvalidTableError if a path leads out of the table.
    """
    partitions = {
        check_inside(partition): {
            "partitionPath": partition,
            "savepointDataFile": [check_file_name(name) for name in names],
        }
        for partition, names in savepoint.files.items()
    }
    record = {
        "savepointedBy": savepoint.saved_by or "",
        "savepointedAt": savepoint.saved_at or 0,
        "comments": savepoint.comments or "",
        "partitionMetadata": partitions,
        "version": 1,
    }
    return write_single(record, records.SAVEPOINT_METADATA)


def write_restore_plan(plan: RestorePlan) -> bytes:
    """Encode a ``.restore.requested`` file, version 2."""
    record = {
        "instantsToRollback": [make_instant_record(each) for each in plan.instants],
        "version": RESTORE_PLAN_VERSION,
        "savepointToRestoreTimestamp": plan.savepoint,
    }
    return write_single(record, records.RESTORE_PLAN)


def write_restore_metadata(restore: RestoreMetadata, table_location: str) -> bytes:
    """Encode a completed ``.restore`` file. ``table_location`` is as for ``write_rollback_plan``.

    Raises InvalidTableError if a time is missing, or a path leads out of the table.
    """
    if restore.start_restore_time is None:
        raise InvalidTableError("A restore needs the instant at which it started.")
    undone = [each for rollback in restore.rollbacks for each in rollback.instants]
    record = {
        "startRestoreTime": restore.start_restore_time,
        "timeTakenInMillis": restore.time_taken_ms,
        "instantsToRollback": list(restore.instants_rolled_back),
        "hoodieRestoreMetadata": {
            each.commits_rolled_back[0]: [make_rollback_record(each, table_location)] for each in restore.rollbacks
        },
        "version": 1,
        "restoreInstantInfo": [make_instant_record(each) for each in undone],
    }
    return write_single(record, records.RESTORE_METADATA)
