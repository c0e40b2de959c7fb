"""Markers: they name the data files that an unfinished write may have made (Hudi ``DirectWriteMarkers``).

A marker is an empty file below ``.hoodie/.temp/<instant>/``. It is written before its data file. A rollback, by this
package or by Java, deletes the files that markers name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hoodie_py.files import FileInfo, TableFiles
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
        return self._files.has_file(self._make_path(marker))

    def list_announced(self) -> list[Marker]:
        """Return all markers, sorted by path; other files are skipped.

        Raises:
            InvalidTableError: a marker names a file outside the table.
        """
        return self.parse_announced(self.list_files())

    def list_files(self) -> list[str]:
        """Return the paths of all files in the instant's folder, markers or not. Errors as for ``list_tree``."""
        return list(list_tree(self._files, self._folder))

    def parse_announced(self, paths: Iterable[str]) -> list[Marker]:
        """Return the markers among files of the instant's folder; errors as for ``list_announced``."""
        return sorted(self._iterate_markers(paths), key=lambda marker: (marker.path, marker.kind))

    def remove(self, marker: Marker) -> None:
        """Remove one marker."""
        self._files.delete(self._make_path(marker))

    def remove_all(self, known: Sequence[str] | None = None) -> None:
        """Remove the instant's folder with everything in it. ``known``: its files, if they were just listed."""
        if known is None or self._files.is_local:  # local disks have folders to remove, too
            remove_tree(self._files, self._folder)
        else:
            self._files.delete_many(known)

    def _make_path(self, marker: Marker) -> str:
        return names.make_marker_path(self._instant, marker.partition_path, marker.file_name, marker.kind)

    def _iterate_markers(self, paths: Iterable[str]) -> Iterator[Marker]:
        for path in paths:
            found = names.parse_marker(path.removeprefix(f"{self._folder}/"))
            if found is not None:
                partition, _, name = names.check_inside(found[0]).rpartition("/")
                names.check_partition(partition)
                yield Marker(partition, name, found[1])


def remove_finished(files: TableFiles, timeline: Timeline, found: Iterable[FileInfo] | None = None) -> None:
    """Remove the markers of completed instants, whose writer ended before it removed them.

    ``found``: what lies in ``TEMP_FOLDER``; None: it is listed here.
    """
    for folder in files.list_or_empty(TEMP_FOLDER) if found is None else found:
        instant = timeline.find(folder.name)
        if folder.is_dir and instant is not None and instant.is_completed:
            Markers(files, folder.name).remove_all()
