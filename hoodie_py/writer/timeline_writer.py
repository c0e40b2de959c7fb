"""Changes to the active timeline: files that are created once and never written over (Hudi ``ActiveTimelineV2``).

Each state of an instant is one file, made with create-if-absent, so of two writers exactly one makes the transition.
Where the store does not say whether a file was made, ``CommitStateUnknownError`` comes out, and nobody may clean up:
the transition may have taken place.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.instants import COMPLETED, INFLIGHT, REQUESTED, Instant
from hoodie_py.formats.table_config import TableConfig


class TimelineWriter:
    """Creates and removes the files of instants.

    Args:
        files: the table's files.
        config: its properties.
    """

    def __init__(self, files: TableFiles, config: TableConfig) -> None:
        self._files = files
        self._layout = config.timeline_layout
        self._folder = config.find_timeline_folder()

    def locate(self, instant: Instant) -> str:
        """Return where the file of this state lies."""
        return f"{self._folder}/{instant.file_name(self._layout)}"

    def request(self, time: str, action: str, content: bytes) -> Instant:
        """Create a requested instant whose content nobody else would write.

        Raises:
            ConflictError: there is one already.
            CommitStateUnknownError: the store did not say.
        """
        return self._create(Instant(time, None, action, REQUESTED), content)

    def begin(self, requested: Instant, content: bytes = b"") -> Instant:
        """Create the inflight file of a requested instant.

        Raises:
            ConflictError: there is one already, so somebody else runs it, or began to.
            CommitStateUnknownError: the store did not say.
        """
        return self._create(replace(requested, state=INFLIGHT), content)

    def complete(self, inflight: Instant, completion_time: str, content: bytes) -> Instant:
        """Create the completed file: this is what makes an action take effect.

        Raises:
            ConflictError: there is one already.
            CommitStateUnknownError: the store did not say whether the action took effect.
        """
        return self._create(
            Instant(inflight.request_time, completion_time, inflight.comparable_action, COMPLETED), content
        )

    def remove(self, instant: Instant) -> None:
        """Remove the file of this state; one that is not there is no error."""
        delete_with_checksum(self._files, self.locate(instant))

    def _create(self, instant: Instant, content: bytes) -> Instant:
        try:
            # Empty files are alike, whoever writes them, so only content tells one's own after a lost answer.
            self._files.put_if_absent(self.locate(instant), content, unique=bool(content))
        except ConflictError as error:
            error.locate(instant=instant.request_time, action=instant.action, state=instant.state)
            raise
        return instant


def delete_with_checksum(files: TableFiles, path: str) -> None:
    """Delete a file and, on a local disk, the checksum that Hadoop keeps beside it: one left over would condemn the
    next file of that name.
    """
    files.delete(path)
    if files.local_path(path) is not None:
        folder, _, name = path.rpartition("/")
        files.delete(f"{folder}/.{name}.crc" if folder else f".{name}.crc")
