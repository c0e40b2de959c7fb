"""A data file of a commit on its way: announced by a marker, written aside, put into the table whole.

Engines run a task again, or twice at once, so every attempt writes a file of a name of its own. The driver commits the
file of one attempt and removes the others'. An attempt that outlives its commit must leave nothing: without its marker
nobody would take its file away again, so there must be none. And once the instant is off the timeline nobody would look
for markers, so one that was written is only left there if the instant was inflight afterwards: whoever takes a write
back looks for markers once more when the inflight file has gone.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Self

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.base_writer import DEFAULT_CODEC, BaseFileWriter
from hoodie_py.formats.instants import INFLIGHT, Instant
from hoodie_py.formats.names import parse_base_file_name
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.formats.timeline import Timeline
from hoodie_py.writer.markers import Marker, Markers
from hoodie_py.writer.output_file import OutputFile
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.settings import FileSettings
from hoodie_py.writer.timeline_writer import TimelineWriter, delete_with_checksum

_TOKEN_BITS = 31


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What all data files of one commit have in common; small and picklable.

    Attributes:
        files: the table's files.
        config: its properties.
        instant: request time of the commit.
        action: of the pending instant.
        run_id: a number that no other run has; part of the files' names.
        schema: of the files.
        file: what base files look like.
    """

    files: TableFiles
    config: TableConfig
    instant: str
    action: str
    run_id: int
    schema: OutputSchema
    file: FileSettings = field(default_factory=FileSettings)

    @property
    def inflight(self) -> Instant:
        """The instant while tasks run."""
        return Instant(self.instant, None, self.action, INFLIGHT)

    def make_token(self, index: int) -> str:
        """Return a write token for an attempt at task number ``index``."""
        return f"{index}-{self.run_id}-{secrets.randbits(_TOKEN_BITS)}"

    def open_base_writer(self, sink: IO[bytes]) -> BaseFileWriter:
        """Return what writes a base file of the commit."""
        return BaseFileWriter(
            sink,
            self.schema.arrow,
            self.schema.avro,
            codec=self.file.codec or DEFAULT_CODEC,
            level=self.file.level,
            row_group_bytes=self.file.row_group_bytes,
            bloom=self.file.bloom,
        )


def make_run_id() -> int:
    """Return a number that no other run has."""
    return secrets.randbits(_TOKEN_BITS)


def parse_run_id(name: str) -> int | None:
    """Return the run that a base file's name tells; None if it tells none."""
    parsed = parse_base_file_name(name)
    parts = [] if parsed is None else parsed.write_token.split("-")
    return int(parts[1]) if len(parts) == 3 and parts[1].isascii() and parts[1].isdigit() else None


class DataFile:
    """A new data file. Entering the block announces it; it is in the table once ``publish`` has returned.

    Args:
        facts: of the commit.
        marker: where the file will lie; a name of its own.
    """

    def __init__(self, facts: CommitFacts, marker: Marker) -> None:
        self._facts = facts
        self._marker = marker
        self._markers = Markers(facts.files, facts.instant)
        self._output = OutputFile(facts.files, marker.path)

    @property
    def sink(self) -> IO[bytes]:
        """Where to write the content."""
        return self._output.sink

    def publish(self) -> int:
        """Put the file into the table and return its size in bytes.

        Raises:
            ConflictError: the commit was finished or taken back meanwhile; there is no such file then.
            CommitStateUnknownError: the store did not say whether the file was written.
            StorageError: the store refused.
        """
        if not self._markers.is_announced(self._marker):
            raise self._make_outlived_error()
        size = self._output.publish()
        if not self._markers.is_announced(self._marker) or not self._is_under_way():
            delete_with_checksum(self._facts.files, self._marker.path)
            self._markers.remove(self._marker)
            raise self._make_outlived_error()
        return size

    def __enter__(self) -> Self:
        self._markers.announce(self._marker)
        inflight = TimelineWriter(self._facts.files, self._facts.config).locate(self._facts.inflight)
        if not self._facts.files.exists(inflight):
            self._markers.remove(self._marker)
            raise self._make_outlived_error()
        self._output.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.__exit__(kind, error, trace)

    def _is_under_way(self) -> bool:
        """Whether the commit was neither taken back nor finished."""
        facts = self._facts
        names = (each.name for each in facts.files.list(facts.config.find_timeline_folder()))
        of_instant = [name for name in names if name.startswith(facts.instant)]
        timeline = Timeline.from_file_names(of_instant, facts.config.timeline_layout)
        return timeline.find(facts.instant, facts.inflight.comparable_action) == facts.inflight

    def _make_outlived_error(self) -> ConflictError:
        return ConflictError(
            "The commit was finished or taken back while one of its tasks ran.", instant=self._facts.instant
        )
