"""Markers: they name the data files that an unfinished write may have made (Hudi ``DirectWriteMarkers``).

A marker is an empty file below ``.hoodie/.temp/<instant>/``. It is written before its data file. A rollback, by this
package or by Java, deletes the files that markers name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hoodie_py.errors import FileMissingError
from hoodie_py.files import TableFiles
from hoodie_py.formats import names
from hoodie_py.formats.names import MarkerType
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.writer.timeline.folder_tree import list_tree, remove_tree

TEMP_FOLDER = names.make_marker_folder("").rstrip("/")


@dataclass(frozen=True, slots=True)
class Marker:
    """A data file of a write, and what the write does with it."""

    partition_path: str
    file_name: str
    kind: MarkerType

    @property
    def path(self) -> str:
        """Path of the data file, relative to the table."""
        return f"{self.partition_path}/{self.file_name}" if self.partition_path else self.file_name


class Markers:
    """The markers of one instant."""

    def __init__(self, files: TableFiles, instant: str) -> None:
        self._files = files
        self._instant = instant
        self._folder = names.make_marker_folder(instant)

    def announce(self, marker: Marker) -> None:
        """Write the marker of a data file, before the file is made."""
        self._files.put(self._make_path(marker), b"")

    def is_announced(self, marker: Marker) -> bool:
        """Whether the marker still exists. If not, the instant has been completed or rolled back."""
        return self._files.exists(self._make_path(marker))

    def list_announced(self) -> list[Marker]:
        """Return all markers, sorted by path; other files are skipped.

        Raises:
            InvalidTableError: a marker names a file outside the table.
        """
        return sorted(self._iterate_markers(), key=lambda marker: (marker.path, marker.kind))

    def remove(self, marker: Marker) -> None:
        """Remove one marker."""
        self._files.delete(self._make_path(marker))

    def remove_all(self) -> None:
        """Remove the instant's folder with everything in it."""
        remove_tree(self._files, self._folder)

    def _make_path(self, marker: Marker) -> str:
        return names.make_marker_path(self._instant, marker.partition_path, marker.file_name, marker.kind)

    def _iterate_markers(self) -> Iterator[Marker]:
        for path in list_tree(self._files, self._folder):
            found = names.parse_marker(path.removeprefix(f"{self._folder}/"))
            if found is not None:
                partition, _, name = names.check_inside(found[0]).rpartition("/")
                names.check_partition(partition)
                yield Marker(partition, name, found[1])


def remove_finished(files: TableFiles, timeline: Timeline) -> None:
    """Remove the markers of completed instants, whose writer ended before it removed them."""
    try:
        folders = files.list(TEMP_FOLDER)
    except FileMissingError:
        return
    for folder in folders:
        instant = timeline.find(folder.name)
        if folder.is_dir and instant is not None and instant.is_completed:
            Markers(files, folder.name).remove_all()
