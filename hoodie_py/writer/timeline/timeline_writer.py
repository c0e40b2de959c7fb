"""Change the active timeline: its files are created once and never overwritten (Hudi ``ActiveTimelineV2``).

Each state of an instant is one file. It is created only if absent, so exactly one of two writers makes the transition.
If the store does not say whether it created the file, that is a ``CommitStateUnknownError``. Nothing may be cleaned up
then, as the transition may have taken place.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.instants import COMPLETED, INFLIGHT, REQUESTED, Instant, locate_instant


class TimelineWriter:
    """Creates and removes the files of instants."""

    def __init__(self, files: TableFiles, config: TableConfig) -> None:
        self._files = files
        self._config = config

    def locate(self, instant: Instant) -> str:
        """Return the path of the file of this state."""
        return locate_instant(self._config, instant)

    def request(self, time: str, action: str, content: bytes) -> Instant:
        """Create a requested instant. Its content must be empty, or differ from any other writer's.

        Raises:
            ConflictError: the instant exists already.
            CommitStateUnknownError: the store did not say whether it created the file.
        """
        return self._create(Instant(time, None, action, REQUESTED), content)

    def begin(self, requested: Instant, content: bytes = b"") -> Instant:
        """Create the inflight file of a requested instant.

        Raises:
            ConflictError: the file exists already, so another writer runs the instant.
            CommitStateUnknownError: the store did not say whether it created the file.
        """
        return self._create(replace(requested, state=INFLIGHT), content)

    def complete(self, inflight: Instant, completion_time: str, content: bytes) -> Instant:
        """Create the completed file. From then on the action has taken effect.

        Raises:
            ConflictError: the file exists already.
            CommitStateUnknownError: the store did not say whether the action took effect.
        """
        return self._create(
            Instant(inflight.request_time, completion_time, inflight.comparable_action, COMPLETED), content
        )

    def remove(self, instant: Instant) -> None:
        """Remove the file of this state; a missing file is no error."""
        self._files.delete_with_checksum(self.locate(instant))

    def remove_pending(self, instant: Instant) -> None:
        """Remove the inflight file of an instant, then its requested file."""
        for state in (INFLIGHT, REQUESTED):
            self.remove(replace(instant, state=state))

    def _create(self, instant: Instant, content: bytes) -> Instant:
        try:
            # After a lost answer only the content shows which writer made the file, and all empty files are alike.
            self._files.put_if_absent(self.locate(instant), content, unique=bool(content))
        except ConflictError as error:
            error.locate(instant=instant.request_time, action=instant.action, state=instant.state)
            raise
        return instant
