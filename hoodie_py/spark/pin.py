"""A snapshot in a form that Spark can pickle and send between its planning workers."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.spark.load_options import LoadOptions
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.table.timeline.loader import TableTimeline


@dataclass(frozen=True, slots=True, repr=False)
class Pin:
    """Everything that a snapshot depends on: equal pins give equal rows, even if the table changes."""

    files: TableFiles
    config: TableConfig
    timeline: Timeline

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Pin:
        """Pin a snapshot."""
        return cls(snapshot.files, snapshot.config, snapshot.timeline)

    def to_snapshot(self, options: LoadOptions) -> Snapshot:
        """Return the pinned snapshot of a load."""
        timeline = TableTimeline(self.timeline, self.files, self.config)
        return Snapshot(self.files, self.config, timeline, as_of=options.as_of, timezone=options.timezone)

    def __repr__(self) -> str:
        return f"Pin({self.config.name!r})"


def open_table(options: LoadOptions) -> Snapshot:
    """Open the table of a load, at the instant in its options or at the latest one.

    Raises:
        HoodieError: there is no table, or it cannot be read.
    """
    return open_snapshot(
        options.path, storage_options=options.storage_options, as_of=options.as_of, timezone=options.timezone
    )
