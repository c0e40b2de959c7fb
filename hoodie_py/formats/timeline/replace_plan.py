"""Read the plan of a clustering, and of what else replaces file groups (Hudi HoodieRequestedReplaceMetadata).

Plans store absolute URIs of the table's location at that time; only the last segment is used. Partition paths must be
under the table.

Write the plan of a clustering: the requested file of a replace commit or clustering action.

Field order, types and defaults are those of Hudi's HoodieRequestedReplaceMetadata and HoodieClusteringPlan as Java
1.2.0 writes them; ``replace_plan.RequestedReplace`` reads them back to an equal value. Files are named by location, so
the writer takes the table's location in the form in which Java's file system opens it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.names import check_file_name, check_inside
from hoodie_py.formats.timeline import records
from hoodie_py.formats.timeline.plans import expect_metric, expect_partition, read_fields
from hoodie_py.formats.timeline.records import Fields, expect_text


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """A file slice that a clustering plan rewrites; ``bootstrap_file`` is as in CompactionOperation."""

    file_id: str
    partition_path: str
    data_file: str | None
    delta_files: tuple[str, ...]
    bootstrap_file: str | None = None

    @classmethod
    def from_record(cls, record: Any) -> ClusteringSlice:
        piece = Fields(record)
        return cls(
            piece.get_file_id(),
            piece.get_partition(),
            piece.get_file_name("dataFilePath"),
            piece.get_file_names("deltaFilePaths"),
            piece.get_text("bootstrapFilePath") or None,
        )


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices that are rewritten together. ``extra`` has what a plan of a bucket index says of the group."""

    slices: tuple[ClusteringSlice, ...]
    num_output_file_groups: int | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Any) -> ClusteringGroup:
        group = Fields(record)
        return cls(
            slices=group.get_items("slices", ClusteringSlice.from_record),
            num_output_file_groups=group.get_number("numOutputFileGroups"),
            metrics=group.get_mapping("metrics", expect_metric),
            extra=group.get_mapping("extraMetadata", expect_text),
        )


@dataclass(frozen=True, slots=True)
class RequestedReplace:
    """A requested replace commit or clustering (Hudi HoodieRequestedReplaceMetadata).

    ``groups`` is None unless a clustering is planned: insert overwrites and deletes of partitions leave it out.
    ``strategy`` and ``strategy_params`` are those of the executor. ``preserves_metadata``: rows keep their meta
    columns. ``extra_metadata`` is that of the request.
    """

    operation_type: str | None = None
    groups: tuple[ClusteringGroup, ...] | None = None
    strategy: str | None = None
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    preserves_metadata: bool = True
    missing_partitions: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_clustering(self) -> bool:
        """Whether this is a clustering plan."""
        return self.groups is not None

    def iterate_file_groups(self) -> Iterator[tuple[str, str]]:
        """Yield partition path and file id of every file group that the clustering replaces."""
        for group in self.groups or ():
            for piece in group.slices:
                yield piece.partition_path, piece.file_id

    @classmethod
    def from_bytes(cls, data: bytes) -> RequestedReplace:
        """Parse a ``.replacecommit.requested`` or ``.clustering.requested`` file; an empty file plans nothing."""
        replace = read_fields(data, "HoodieRequestedReplaceMetadata")
        extra = replace.get_mapping("extraMetadata", expect_text)
        plan = replace.get_record("clusteringPlan")
        if not plan:
            return cls(operation_type=replace.get_text("operationType"), extra_metadata=extra)
        strategy = plan.get_record("strategy")
        return cls(
            operation_type=replace.get_text("operationType"),
            groups=plan.get_items("inputGroups", ClusteringGroup.from_record),
            strategy=strategy.get_text("strategyClassName") if strategy else None,
            strategy_params=strategy.get_mapping("strategyParams", expect_text) if strategy else {},
            preserves_metadata=plan.get("preserveHoodieMetadata") is not False,
            missing_partitions=plan.get_items("missingSchedulePartitions", expect_partition),
            extra_metadata=extra,
        )


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
    return write_single(record, records.CLUSTERING_PLAN)


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
