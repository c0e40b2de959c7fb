"""Refuses an instant of the past whose files were removed by cleans that do not name the earliest kept commit.

If the slice of a file group at that time is gone, a read would return an older slice, or nothing, as Java does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.view.visibility import Visibility

if TYPE_CHECKING:
    from hoodie_py.table.timeline.cleans import CleanFacts


@dataclass(frozen=True, slots=True)
class CleanedSlices:
    """Slices that cleans removed after an instant of the past.

    Attributes:
        as_of: the instant, a request time.
        newest: for each file group, by partition path and file id, the newest time up to ``as_of`` in the names of
            removed files. A slice that begins at or before it has lost files, or is about to.
    """

    as_of: str
    newest: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, cleans: Iterable[CleanFacts], as_of: str) -> CleanedSlices:
        """Collect the files of cleans."""
        newest: dict[str, dict[str, str]] = {}
        for clean in cleans:
            for path, names in clean.files.items():
                for name in names:
                    parsed = parse_base_file_name(name) or parse_log_file_name(name)
                    if parsed is not None and parsed.instant <= as_of:
                        groups = newest.setdefault(path, {})
                        groups[parsed.file_id] = max(groups.get(parsed.file_id, ""), parsed.instant)
        return cls(as_of, newest)

    def check(self, slices: Sequence[FileSlice], visibility: Visibility, wanted: Callable[[str], bool]) -> None:
        """Check that partitions have lost nothing of the instant; ``slices`` are the slices found there.

        Raises:
            InvalidQueryError: names a file group whose slice was removed.
        """
        paths = [path for path in self.newest if wanted(path)]
        if not paths:
            return
        found = {(each.partition_path, each.file_id): each.base_instant for each in slices}
        for path in paths:
            for file_id, removed in self.newest[path].items():
                key = (path, file_id)
                if found.get(key, "") <= removed and not visibility.is_replaced(key, self.as_of):
                    raise InvalidQueryError(
                        f"Files of {self.as_of} were cleaned.",
                        hint="Ask for a later instant. Cleans by commits (hoodie.clean.policy=KEEP_LATEST_COMMITS) "
                        "keep all files of a span of time.",
                        file_group=file_id,
                        partition=path or None,
                    )
