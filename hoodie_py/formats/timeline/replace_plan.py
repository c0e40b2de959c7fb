"""Read the plan of a clustering, and of what else replaces file groups (Hudi HoodieRequestedReplaceMetadata).

Plans store absolute URIs of the table's location at that time; only the last segment is used. Partition paths must be
under the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.formats.timeline.fields import Fields, expect_text
from hoodie_py.formats.timeline.plans import expect_metric, expect_partition, read_fields


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
