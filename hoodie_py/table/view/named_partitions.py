"""Finds partitions that have no partition metafile, by the commits that name them.

As in Java's metadata table, a folder without a metafile is a partition if it holds data files of completed commits, and
a commit wrote there or replaced file groups there. Commits of the active timeline are read newest first, then archived
ones, until every folder is found. Nothing is read if all folders have metafiles. A folder that no commit names is left
out, as Java leaves out a copied folder, and a warning names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

from hoodie_py.errors import HoodieWarning
from hoodie_py.formats.names import REGISTERED_SUFFIX, parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.table.timeline.loader import LATEST, TableTimeline
from hoodie_py.table.view.partitions import PartitionListing

_AT_ONCE = 16
_SHOWN = 5


def find_named_partitions(timeline: TableTimeline, doubtful: Sequence[PartitionListing]) -> list[PartitionListing]:
    """Return the doubtful folders that are partitions.

    Raises:
        CorruptFileError, InvalidTableError: the timeline is damaged.
        StorageError: the store refused.
    """
    written = {
        each.partition.path: each
        for each in doubtful
        if any(_is_committed_file(timeline, info.name) for info in each.files)
    }
    named = [written[path] for path in _iterate_named_paths(timeline, set(written))]
    if left := sorted(written.keys() - {each.partition.path for each in named}):
        warnings.warn(
            f"Folders with data files are left out, since neither a metafile nor a commit makes them partitions of "
            f"table {timeline.config.name}: {', '.join(left[:_SHOWN])}{', ...' if len(left) > _SHOWN else ''}",
            HoodieWarning,
            stacklevel=2,
        )
    return named


def _iterate_named_paths(timeline: TableTimeline, wanted: set[str]) -> Iterator[str]:
    """Yield the wanted paths that a commit names, and stop reading when all are found."""
    if not wanted:
        return
    for metadata in _iterate_commits(timeline):
        found = wanted & (metadata.write_stats.keys() | metadata.replaced_file_ids.keys())
        yield from found
        wanted -= found
        if not wanted:
            return


def _iterate_commits(timeline: TableTimeline) -> Iterator[CommitMetadata]:
    writes = timeline.list_completed_writes()[::-1]
    for start in range(0, len(writes), _AT_ONCE):
        yield from timeline.read_all_metadata(writes[start : start + _AT_ONCE])
    for _, metadata in timeline.read_archive().iterate_writes_back_from(LATEST):
        yield metadata


def _is_committed_file(timeline: TableTimeline, name: str) -> bool:
    if name.endswith(REGISTERED_SUFFIX):
        return True
    parsed = parse_log_file_name(name) if name.startswith(".") else parse_base_file_name(name)
    return parsed is not None and timeline.is_committed(parsed.instant)
