"""Tables of names alone for cleans: a clean opens no data file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.replace_plan import (
    ClusteringGroup,
    ClusteringSlice,
    RequestedReplace,
    write_clustering_plan,
)
from hoodie_py.formats.timeline.writers import write_compaction_plan
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from tests.table.tables import V6, V9, make_table

_FILES = {"type": "array", "items": "string"}
_SAVEPOINT: dict[str, Any] = {
    "type": "record",
    "name": "HoodieSavepointMetadata",
    "fields": [
        {"name": "savepointedBy", "type": "string"},
        {"name": "savepointedAt", "type": "long"},
        {"name": "comments", "type": "string"},
        {
            "name": "partitionMetadata",
            "type": {
                "type": "map",
                "values": {
                    "type": "record",
                    "name": "HoodieSavepointPartitionMetadata",
                    "fields": [
                        {"name": "partitionPath", "type": "string"},
                        {"name": "savepointDataFile", "type": _FILES},
                    ],
                },
            },
        },
        {"name": "version", "type": "int"},
    ],
}


def at(number: int) -> str:
    """The number-th instant."""
    return f"20260101{number:06d}000"


class Names:
    """A table under construction; ``version`` is 6 or 9."""

    def __init__(self, root: Path, version: int = 9, **properties: str) -> None:
        self.root = make_table(root, **(V9 if version == 9 else V6), **properties)
        self.version = version
        self.timeline = root / ".hoodie" / ("timeline" if version == 9 else "")
        self.timeline.mkdir(parents=True, exist_ok=True)

    def base(self, group: str, number: int, partition: str = "p", token: str = "0-0-0") -> str:
        return self._file(partition, f"{group}_{token}_{at(number)}.parquet")

    def log(self, group: str, number: int, partition: str = "p", version: int = 1) -> str:
        """A log file of an instant: on version 9 the commit's own, on version 6 the slice's."""
        return self._file(partition, f".{group}_{at(number)}.log.{version}_0-0-0")

    def done(self, number: int, action: str = "deltacommit", content: bytes = b"") -> None:
        for state in ("requested", "inflight"):
            self.pending(number, action, state)
        completion = f"{at(number)}_{int(at(number)) + 5}" if self.version == 9 else at(number)
        (self.timeline / f"{completion}.{action}").write_bytes(content)

    def pending(self, number: int, action: str = "deltacommit", state: str = "inflight", content: bytes = b"") -> None:
        name = "inflight" if (action, state) == ("commit", "inflight") else f"{action}.{state}"
        (self.timeline / f"{at(number)}.{name}").write_bytes(content)

    def planned(self, number: int, group: str, base: str | None, *logs: str) -> None:
        operation = CompactionOperation(
            at(1), group, "p", None if base is None else Path(base).name, tuple(Path(log).name for log in logs),
            {"TOTAL_LOG_FILES_SIZE": 1.0},
        )  # fmt: skip
        self.pending(number, "compaction", "requested", write_compaction_plan(CompactionPlan((operation,), version=2)))

    def clustering(self, number: int, *groups: str, base: str | None = None, logs: tuple[str, ...] = ()) -> None:
        """A pending clustering of groups in ``p``, one output group each; the files are those of each slice."""
        names = None if base is None else Path(base).name, tuple(Path(log).name for log in logs)
        planned = tuple(ClusteringGroup((ClusteringSlice(group, "p", *names),), 1) for group in groups)
        action = "clustering" if self.version == 9 else "replacecommit"
        content = write_clustering_plan(RequestedReplace("CLUSTER", planned), f"file://{self.root}")
        self.pending(number, action, "requested", content)

    def saved(self, number: int, *paths: str) -> None:
        names = [Path(path).name for path in paths]
        record = {
            "savepointedBy": "x", "savepointedAt": 1, "comments": "", "version": 1,
            "partitionMetadata": {"p": {"partitionPath": "p", "savepointDataFile": names}},
        }  # fmt: skip
        self.done(number, "savepoint", write_single(record, _SAVEPOINT))

    def snapshot(self) -> Snapshot:
        return open_snapshot(str(self.root))

    def files(self) -> set[str]:
        """Paths of data files that are there."""
        return {
            path.relative_to(self.root).as_posix() for path in self.root.glob("p*/*") if "metadata" not in path.name
        }

    def instants(self) -> list[tuple[str, str]]:
        return [(each.action, each.state) for each in self.snapshot().timeline if each.action == "clean"]

    def _file(self, partition: str, name: str) -> str:
        path = self.root / partition / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / ".hoodie_partition_metadata").write_bytes(b"commitTime=1\npartitionDepth=1\n")
        path.write_bytes(b"data")
        return path.relative_to(self.root).as_posix()
