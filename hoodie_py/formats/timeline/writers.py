"""Write the files of the timeline: commit metadata, and the plans and results of table services.

Layout 1 stores commit metadata as JSON. Everything else is an Avro container of one record in both layouts. Reading
gives an equal value back. Values that Java Hudi leaves null are null here, too, so a file of Java's that is read and
written again contains the same record.

Clean and rollback plans name files by location. Their writers take the table's location in the form in which Java's
file system opens it (``s3a://lake/trips``, ``file:/data/trips``).
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from hoodie_py.formats.timeline import plans
from hoodie_py.formats.timeline.commit_metadata import COMMIT, REPLACE_COMMIT, WRITE_STAT, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan, CompactionPlan, RollbackMetadata, RollbackPlan
from hoodie_py.formats.timeline.replace_plan import REQUESTED_REPLACE, RequestedReplace

_JSON_LAYOUT = 1
_NEVER_NULL = frozenset({"totalLogFiles", "logVersion", "logOffset", "baseFile", "logFiles"})  # or left out of JSON
_PLACES = {each.name: number for number, each in enumerate(fields(WriteStat))}
_JSON_ORDER = [
    each.name
    for each in sorted(
        WRITE_STAT.fields, key=lambda each: (each.kind.types != (int,), _PLACES.get(each.attribute or "", len(_PLACES)))
    )
]  # numbers first, as in files of earlier releases; readers ignore the order

# Commits -------------------------------------------------------------------------------------------------------------


def write_commit_metadata(commit: CommitMetadata, layout: int, *, replace: bool = False) -> bytes:
    """Encode a commit, delta commit or replace commit, completed or inflight (a workload profile).

    Java needs ``path``, ``file_id``, ``partition_path`` and ``file_size_in_bytes`` of every stat, the operation type
    and the schema in ``extra_metadata`` (Hudi HoodieCommitMetadata). Layout 1 of the timeline gives JSON (table version
    6), 2 an Avro container (8 and later). With ``replace`` it is the metadata of a replace commit even when no file
    group is replaced.

    Raises InvalidTableError if a path leads out of the table.
    """
    declared = REPLACE_COMMIT if replace or commit.replaced_file_ids else COMMIT
    return _to_json(declared.write(commit)) if layout == _JSON_LAYOUT else declared.write_file(commit)


def _to_json(record: dict[str, Any]) -> bytes:
    """Return the JSON form. Its stats lack the fields of log files that are null."""
    del record["version"]
    record["partitionToWriteStats"] = {
        partition: [
            {name: stat[name] for name in _JSON_ORDER if stat[name] is not None or name not in _NEVER_NULL}
            for stat in stats
        ]
        for partition, stats in record["partitionToWriteStats"].items()
    }
    return json.dumps(record, indent=2, ensure_ascii=False).encode()


def write_requested_replace(operation: str | None = None) -> bytes:
    """Encode the ``.replacecommit.requested`` file of an insert overwrite (Hudi HoodieRequestedReplaceMetadata), or of
    a delete of partitions, which names its operation. It has no plan.
    """
    return REQUESTED_REPLACE.write_file(RequestedReplace(operation))


# Compaction ----------------------------------------------------------------------------------------------------------


def write_compaction_plan(plan: CompactionPlan) -> bytes:
    """Encode a ``.compaction.requested`` file (Hudi HoodieCompactionPlan); a plan without version gets version 2.

    Raises InvalidTableError: an operation that Java could not run: no file id, no metric ``TOTAL_LOG_FILES_SIZE``, a
    path in place of a file name, or a partition outside the table.
    """
    return plans.COMPACTION_PLAN.write_file(plan)


# Clean ---------------------------------------------------------------------------------------------------------------


def write_clean_plan(plan: CleanPlan, table_location: str) -> bytes:
    """Encode a ``.clean.requested`` file (Hudi HoodieCleanerPlan, version 2).

    ``policy`` is required, and ``earliest_action`` where there is an earliest instant. Files are named below the
    table's location, sources as the plan has them.

    Raises InvalidTableError if a required field is missing, or a path leads out of the table.
    """
    return plans.CLEAN_PLAN.write_file(plan, table_location)


def write_clean_metadata(clean: CleanMetadata) -> bytes:
    """Encode a completed ``.clean`` file (Hudi HoodieCleanMetadata, version 2).

    Raises InvalidTableError if the start time is missing, or a path leads out of the table.
    """
    return plans.CLEAN_METADATA.write_file(clean)


# Rollback ------------------------------------------------------------------------------------------------------------


def write_rollback_plan(plan: RollbackPlan, table_location: str) -> bytes:
    """Encode a ``.rollback.requested`` file (Hudi HoodieRollbackPlan).

    Files are named below the table's location.

    Raises InvalidTableError if the instant is missing, or a path leads out of the table.
    """
    return plans.ROLLBACK_PLAN.write_file(plan, table_location)


def write_rollback_metadata(rollback: RollbackMetadata, table_location: str) -> bytes:
    """Encode a completed ``.rollback`` file (Hudi HoodieRollbackMetadata); arguments as ``write_rollback_plan``.

    Raises InvalidTableError if the start time is missing, or a path leads out of the table.
    """
    return plans.ROLLBACK_METADATA.write_file(rollback, table_location)
