"""FileMappings: the names of a read's columns in the files of a slice, for tables that gave columns ids.

A mapping holds only differences from the columns of the read: fields that were renamed since, and fields that a file
lacks though it has a field of their name (dropped, and added again). All other fields match by name (Hudi
``InternalSchemaMerger``). Mappings are plain values, small enough for a task.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie_py.errors import InvalidTableError

ELEMENT = "element"  # key of what differs inside a list's elements
VALUE = "value"  # key of what differs inside a map's values


@dataclass(frozen=True, slots=True)
class Source:
    """Where a column or nested field comes from.

    Attributes:
        name: its name in the file; None if the file lacks it, even if another field there has its name.
        inner: sources of the nested fields that differ, by their names in the read.
    """

    name: str | None
    inner: Mapping[str, Source] = field(default_factory=dict)


FileMapping = Mapping[str, Source]


@dataclass(frozen=True, slots=True)
class FileMappings:
    """The mappings of files, by the instant that wrote them.

    Attributes:
        starts: the first instant of each mapping, as a number, rising; the first is 0.
        mappings: each holds up to the start of the next.
    """

    starts: tuple[int, ...]
    mappings: tuple[FileMapping, ...]

    def find_number(self, instant: str) -> int:
        """Return the number of the mapping for files of an instant.

        Raises:
            InvalidTableError: the instant is no number, so it has no version of the schema.
        """
        return max(0, bisect_right(self.starts, _to_number(instant)) - 1)

    def find(self, instant: str) -> FileMapping:
        """Return the mapping for files of an instant; errors as ``find_number``."""
        return self.mappings[self.find_number(instant)]

    def cut(self, instants: Iterable[str]) -> FileMappings:
        """Return the mappings that files of the earliest of some instants, and later files, need.

        Raises what ``find_number`` raises.
        """
        low = min(map(self.find_number, instants), default=0)
        return FileMappings(self.starts[low:], self.mappings[low:])


def join_equal(starts: Sequence[int], mappings: Sequence[FileMapping]) -> FileMappings:
    """Make mappings of the mapping of each schema version; equal neighbours become one."""
    kept_starts: list[int] = []
    kept: list[FileMapping] = []
    for start, mapping in zip(starts, mappings, strict=True):
        if not kept or kept[-1] != mapping:
            kept_starts.append(start)
            kept.append(mapping)
    return FileMappings(tuple(kept_starts), tuple(kept))


def _to_number(instant: str) -> int:
    if not instant.isdecimal() or not instant.isascii():
        raise InvalidTableError(
            "An instant that is no number has no version of the table's schema.", instant=instant[:40]
        )
    return int(instant)
