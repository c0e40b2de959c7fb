"""Plans of clusterings, and requests of other writes that replace file groups (Hudi HoodieRequestedReplaceMetadata).

A plan names files by absolute URIs below the table's location at that time. Reading takes the last segment of each.
Writing takes the table's location in the form in which Java's file system opens it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.timeline import kinds
from hoodie_py.formats.timeline.kinds import Kind, Place
from hoodie_py.formats.timeline.records import REQUIRED, Field, Record, fixed, nested, part, take_attributes, version


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """A file slice that a clustering plan rewrites; ``bootstrap_file`` is as in CompactionOperation."""

    file_id: str
    partition_path: str
    data_file: str | None
    delta_files: tuple[str, ...]
    bootstrap_file: str | None = None


def _compose_data_file(piece: ClusteringSlice, place: Place) -> str:
    return "" if piece.data_file is None else place.locate(piece.data_file)


CLUSTERING_SLICE = Record(
    "HoodieSliceInfo",
    ClusteringSlice,
    Field("dataFilePath", kinds.FILE_NAME_OR_NONE, "data_file", compose=_compose_data_file),
    Field("deltaFilePaths", kinds.LOCATED_FILES, "delta_files"),
    Field("fileId", kinds.FILE_ID, needed="A clustering plan needs the file id of every file slice.", default=REQUIRED),
    Field("partitionPath", kinds.PARTITION),
    Field("bootstrapFilePath", kinds.TEXT_OR_NONE, "bootstrap_file", blank=""),
    version(1),
    inside="partition_path",
)


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """File slices that are rewritten together. ``extra``: properties of the group in plans of bucket indexes."""

    slices: tuple[ClusteringSlice, ...]
    num_output_file_groups: int | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


_GROUP = Record(
    "HoodieClusteringGroup",
    ClusteringGroup,
    Field("slices", kinds.array(nested(CLUSTERING_SLICE))),
    Field("metrics", kinds.METRICS),
    Field("numOutputFileGroups", kinds.INT, default=1),
    Field("extraMetadata", kinds.TEXT_MAP, "extra", blank=None),
    version(1),
)
_STRATEGY = Record(
    "HoodieClusteringStrategy",
    take_attributes,
    Field("strategyClassName", kinds.TEXT, "strategy"),
    Field("strategyParams", kinds.TEXT_MAP),
    version(1),
)
_PLAN = Record(
    "HoodieClusteringPlan",
    take_attributes,
    Field("inputGroups", kinds.array(nested(_GROUP)), "groups"),
    part("strategy", _STRATEGY, lambda _: True),
    fixed("extraMetadata", kinds.TEXT_MAP, {}),
    version(1),
    Field(
        "preserveHoodieMetadata", Kind("boolean", None, True, lambda value: value is not False), "preserves_metadata"
    ),
    Field("missingSchedulePartitions", kinds.PARTITIONS, "missing_partitions"),
)


@dataclass(frozen=True, slots=True)
class RequestedReplace:
    """A requested replace commit or clustering (Hudi HoodieRequestedReplaceMetadata).

    ``groups`` is None unless a clustering is planned: insert overwrites and deletes of partitions leave it out.
    ``strategy`` is the executor's class, ``strategy_params`` its options. ``preserves_metadata``: rows keep their meta
    columns. ``extra_metadata`` belongs to the request, not to the plan in it.
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
        return CLUSTERING_PLAN.read_file(data)


CLUSTERING_PLAN = Record(
    "HoodieRequestedReplaceMetadata",
    RequestedReplace,
    Field("operationType", kinds.TEXT),
    part("clusteringPlan", _PLAN, lambda _: True),
    Field("extraMetadata", kinds.TEXT_MAP),
    version(1),
)
REQUESTED_REPLACE = Record(
    CLUSTERING_PLAN.name,
    RequestedReplace,
    Field("operationType", kinds.TEXT),
    fixed("extraMetadata", kinds.TEXT_MAP, None),
    version(None),
)


def write_clustering_plan(plan: RequestedReplace, table_location: str) -> bytes:
    """Encode a ``.clustering.requested`` file, up to table version 6 ``.replacecommit.requested``.

    Raises:
        InvalidTableError: there is no group, a slice has no file id, or a path leads out of the table.
    """
    if not plan.groups:
        raise InvalidTableError("A clustering plan needs at least one group of file slices.")
    return CLUSTERING_PLAN.write_file(plan, table_location)
