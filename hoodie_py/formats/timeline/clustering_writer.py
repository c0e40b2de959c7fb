"""Write the plan of a clustering: the requested file of a replace commit or clustering action.

Field order, types and defaults are those of Hudi's HoodieRequestedReplaceMetadata and HoodieClusteringPlan as Java
1.2.0 writes them; ``replace_plan.RequestedReplace`` reads them back to an equal value. Files are named by location, so
the writer takes the table's location in the form in which Java's file system opens it.
"""

from __future__ import annotations

from typing import Any

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.avro.container_writer import write_single
from hoodie_py.formats.names import check_file_name, check_inside
from hoodie_py.formats.timeline import schemas
from hoodie_py.formats.timeline.replace_plan import ClusteringGroup, ClusteringSlice, RequestedReplace

_VERSION = 1


def write_clustering_plan(plan: RequestedReplace, table_location: str) -> bytes:
    """Encode a ``.clustering.requested`` file, up to table version 6 ``.replacecommit.requested``.

    Raises:
        InvalidTableError: there is no group, a slice has no file id, or a path leads out of the table.
    """
    if not plan.groups:
        raise InvalidTableError("A clustering plan needs at least one group of file slices.")
    record = {
        "operationType": plan.operation_type,
        "clusteringPlan": {
            "inputGroups": [_to_group(group, table_location) for group in plan.groups],
            "strategy": {
                "strategyClassName": plan.strategy,
                "strategyParams": dict(plan.strategy_params),
                "version": _VERSION,
            },
            "extraMetadata": {},
            "version": _VERSION,
            "preserveHoodieMetadata": plan.preserves_metadata,
            "missingSchedulePartitions": [check_inside(partition) for partition in plan.missing_partitions],
        },
        "extraMetadata": dict(plan.extra_metadata),
        "version": _VERSION,
    }
    return write_single(record, schemas.CLUSTERING_PLAN)


def _to_group(group: ClusteringGroup, location: str) -> dict[str, Any]:
    return {
        "slices": [_to_slice(each, location) for each in group.slices],
        "metrics": {name: float(value) for name, value in group.metrics.items()},
        "numOutputFileGroups": group.num_output_file_groups,
        "extraMetadata": dict(group.extra) or None,
        "version": _VERSION,
    }


def _to_slice(piece: ClusteringSlice, location: str) -> dict[str, Any]:
    if not piece.file_id:
        raise InvalidTableError("A clustering plan needs the file id of every file slice.")
    partition = check_inside(piece.partition_path)
    folder = "/".join(part for part in (location.rstrip("/"), partition) if part)
    return {
        "dataFilePath": f"{folder}/{check_file_name(piece.data_file)}" if piece.data_file is not None else "",
        "deltaFilePaths": [f"{folder}/{check_file_name(name)}" for name in piece.delta_files],
        "fileId": piece.file_id,
        "partitionPath": partition,
        "bootstrapFilePath": piece.bootstrap_file or "",
        "version": _VERSION,
    }
