"""TODO hoodie_py.writer.handles.result."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.formats.timeline.commit_metadata import WriteStat


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one attempt wrote. ``bytes_read`` are those of the slice's files."""

    stat: WriteStat
    bytes_read: int
    seconds: float

    @property
    def path(self) -> str:
        """Path of the new base file, relative to the table."""
        return self.stat.path or ""

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.stat.partition_path, self.stat.file_id or ""
