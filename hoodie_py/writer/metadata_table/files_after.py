"""Which files of a partition readers see once an instant is complete, but for the instant's own (Hudi
``getLatestMergedFileSlicesBeforeOrOnIncludingInflight``).

Slices are made as for a reader, from a listing and the timeline in which the instant counts as complete. So a base file
takes the place of older files of its group by the rules of ``table/view``, also beside a pending compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hoodie_py.formats.timeline.instants import COMPLETED, REPLACE_COMMIT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.writer.metadata_table.update import MetadataCommit


def find_files_after(commit: MetadataCommit, paths: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Return the names of the files that stay in each partition, without those that the instant wrote.

    Raises as ``FileSystemView.list_slices``.
    """
    if not paths:
        return {}
    config, files = commit.snapshot.config, commit.snapshot.files
    timeline = TableTimeline(_complete(commit), files, config)
    own = {result.path for result in commit.results}
    found: dict[str, set[str]] = {path: set() for path in paths}
    for each in FileSystemView(files, config, timeline).list_named_slices(None, paths):
        if each.file_id not in commit.replaced.get(each.partition_path, ()):
            found[each.partition_path] |= {path.rpartition("/")[2] for path in _list_paths(each) if path not in own}
    return {path: frozenset(names) for path, names in found.items()}


def _list_paths(file_slice: FileSlice) -> list[str]:
    base = file_slice.base_file
    return [*([] if base is None else [base.path]), *(log.path for log in file_slice.log_files)]


def _complete(commit: MetadataCommit) -> Timeline:
    """Return the timeline with the instant completed. What it replaces is not known to the timeline."""
    timeline = commit.snapshot.timeline.timeline
    found = timeline.find(commit.instant)
    if found is None or found.is_completed or found.comparable_action == REPLACE_COMMIT:
        return timeline
    last = max((each.completion_time or each.request_time for each in timeline), default=commit.instant)
    done = replace(
        found, action=found.comparable_action, state=COMPLETED, completion_time=max(last, commit.instant) + "9"
    )
    return Timeline([*timeline, done], timeline.layout, timeline.undone)
