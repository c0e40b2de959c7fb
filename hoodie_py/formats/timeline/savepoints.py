"""The files of savepoints and restores (Hudi ``TimelineMetadataUtils``).

The completed file of a savepoint names the files to keep. The plan of a restore names the instants to undo, newest
first, and its completed file contains one rollback for each instant. Inflight files are empty. All other files are
Avro containers of one record in both layouts of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.formats.timeline import kinds
from hoodie_py.formats.timeline.kinds import Kind, Place
from hoodie_py.formats.timeline.plans import (
    ROLLBACK_METADATA,
    ROLLED_BACK_INSTANTS,
    RollbackMetadata,
    RolledBackInstant,
)
from hoodie_py.formats.timeline.records import Field, Record, nested, only, partition_of_key, take_attributes, version


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
        return SAVEPOINT_METADATA.read_file(data)


_SAVED_PARTITION = Record(
    "HoodieSavepointPartitionMetadata",
    take_attributes,
    partition_of_key(),
    Field("savepointDataFile", kinds.FILE_NAMES, "files", null=False),
)
SAVEPOINT_METADATA = Record(
    "HoodieSavepointMetadata",
    SavepointMetadata,
    Field("savepointedBy", kinds.TEXT, "saved_by", null=False, blank=""),
    Field("savepointedAt", kinds.LONG, "saved_at", null=False, blank=0),
    Field("comments", kinds.TEXT, null=False, blank=""),
    Field("partitionMetadata", kinds.by_partition(only(_SAVED_PARTITION, "files")), "files", null=False),
    version(1),
)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A requested restore (Hudi HoodieRestorePlan): the instants it will undo, newest first.

    ``savepoint`` is the request time of the instant to restore; None in plans of version 1, which lack it.
    """

    instants: tuple[RolledBackInstant, ...] = ()
    savepoint: str | None = None

    @classmethod
    def from_bytes(cls, data: bytes) -> RestorePlan:
        """Parse a ``.restore.requested`` file; an empty one undoes nothing."""
        return RESTORE_PLAN.read_file(data)


RESTORE_PLAN = Record(
    "HoodieRestorePlan",
    RestorePlan,
    Field("instantsToRollback", ROLLED_BACK_INSTANTS, "instants", null=False, default=[]),
    version(2, default=2),
    Field("savepointToRestoreTimestamp", kinds.TEXT, "savepoint"),
)


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """A completed restore (Hudi HoodieRestoreMetadata): its rollbacks."""

    start_restore_time: str | None = None
    instants_rolled_back: tuple[str, ...] = ()
    rollbacks: tuple[RollbackMetadata, ...] = ()
    time_taken_ms: int = 0

    @classmethod
    def from_bytes(cls, data: bytes) -> RestoreMetadata:
        """Parse a ``.restore`` file; an empty one says nothing."""
        return RESTORE_METADATA.read_file(data)


_ROLLBACKS = kinds.array(nested(ROLLBACK_METADATA))
_ROLLBACKS_BY_INSTANT = Kind(
    {"type": "map", "values": {"type": "array", "items": ["null", ROLLBACK_METADATA]}},
    (dict,),
    missing=(),
    read=lambda found: tuple(each for items in found.values() for each in _ROLLBACKS.read_item(items)),
    write=lambda rollbacks, place: {
        each.commits_rolled_back[0]: _ROLLBACKS.write_item([each], place) for each in rollbacks
    },
)


def _compose_instants(restore: RestoreMetadata, place: Place) -> Any:
    undone = [each for rollback in restore.rollbacks for each in rollback.instants]
    return ROLLED_BACK_INSTANTS.write_item(undone, place)


RESTORE_METADATA = Record(
    "HoodieRestoreMetadata",
    RestoreMetadata,
    Field("startRestoreTime", kinds.TEXT, null=False, needed="A restore needs the instant at which it started."),
    Field("timeTakenInMillis", kinds.COUNT, "time_taken_ms", null=False),
    Field("instantsToRollback", kinds.TEXTS, "instants_rolled_back", null=False),
    Field("hoodieRestoreMetadata", _ROLLBACKS_BY_INSTANT, "rollbacks", null=False),
    version(1),
    Field("restoreInstantInfo", ROLLED_BACK_INSTANTS, None, null=False, default=[], compose=_compose_instants),
)


def write_savepoint_metadata(savepoint: SavepointMetadata) -> bytes:
    """Encode a completed ``.savepoint`` file.

    Raises InvalidTableError if a path leads out of the table.
    """
    return SAVEPOINT_METADATA.write_file(savepoint)


def write_restore_plan(plan: RestorePlan) -> bytes:
    """Encode a ``.restore.requested`` file, version 2."""
    return RESTORE_PLAN.write_file(plan)


def write_restore_metadata(restore: RestoreMetadata, table_location: str) -> bytes:
    """Encode a completed ``.restore`` file. ``table_location`` is as for ``write_rollback_plan``.

    Raises InvalidTableError if a time is missing, or a path leads out of the table.
    """
    return RESTORE_METADATA.write_file(restore, table_location)
