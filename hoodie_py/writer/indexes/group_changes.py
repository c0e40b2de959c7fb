"""What a commit did to each file group, and the rows of its slices before and after: the input of indexes over keys.

Agrees with Hudi's ``BaseFileRecordParsingUtils``, ``SecondaryIndexRecordGenerationUtils``,
``HoodieTableMetadataUtil.getRevivedAndDeletedKeysFromMergedLogs`` and
``getLatestMergedFileSlicesBeforeOrOnIncludingInflight``. A slice is read as it was, and as it is with the commit's own
files, whose instant has not completed yet. So a record counts as deleted if readers will no longer see it, whatever
merge mode decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.formats.timeline.instants import COMPLETED, REPLACE_COMMIT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.indexes.index import MetadataCommit

_MOST_BYTES = 1 << 31  # Arrow's limit for an array of strings


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What a commit did to one file group.

    Attributes:
        group: partition path and file id.
        before: the slice that the commit found; None for a new group.
        after: the slice with the commit's files; None if the commit replaced the group.
        log: the log files that contain all keys which may have changed: the commit's own log files, or for a compaction
            the log files that came after its plan. None if any key may have changed.
        inserts, updates, deletes: counts of the write statistics.
    """

    group: GroupKey
    before: FileSlice | None
    after: FileSlice | None
    log: FileSlice | None = None
    inserts: int = 0
    updates: int = 0
    deletes: int = 0


def list_group_changes(commit: MetadataCommit) -> list[GroupChange]:
    """Return what a commit of records did, one change per file group.

    Raises:
        InvalidTableError: a file group got several base files, or base and log files.
    """
    stats: dict[GroupKey, list[WriteStat]] = {}
    for partition, some in commit.stats.items():
        for stat in some:
            if stat.path:
                stats.setdefault((partition, stat.file_id or ""), []).append(stat)
    partitions = {path for path, _ in stats} | set(commit.replaced)
    view = commit.snapshot.view
    slices = view.list_slices(None, partitions) if commit.snapshot.instant is not None else ()
    known = {(each.partition_path, each.file_id): each for each in slices}
    changes = [
        _describe(group, some, known.get(group), commit.instant, commit.compacted.get(group))
        for group, some in stats.items()
    ]
    replaced = ((partition, file_id) for partition, ids in commit.replaced.items() for file_id in ids)
    changes += [GroupChange(group, known[group], None) for group in replaced if group in known]
    return changes


def _describe(
    group: GroupKey,
    stats: Sequence[WriteStat],
    before: FileSlice | None,
    instant: str,
    compacted: Collection[str] | None,
) -> GroupChange:
    partition, file_id = group
    paths = [(stat.path or "", stat.file_size_in_bytes) for stat in stats]
    names = [parse_log_file_name(path.rpartition("/")[2]) for path, _ in paths]
    logs = tuple(LogFile(path, size, name) for (path, size), name in zip(paths, names, strict=True) if name is not None)
    counts = [
        sum(getattr(stat, name) for stat in stats) for name in ("num_inserts", "num_update_writes", "num_deletes")
    ]
    if logs and len(logs) == len(stats):
        base_instant = instant if before is None else before.base_instant
        log = FileSlice(partition, file_id, base_instant, None if before is None else before.base_file, logs)
        after = log if before is None else replace(before, log_files=(*before.log_files, *logs))
        return GroupChange(group, before, after, log, *counts)
    if len(stats) > 1:
        raise InvalidTableError("A commit wrote several base files of one file group.", file_group=file_id)
    path, size = paths[0]
    written = FileSlice(partition, file_id, instant, BaseFile(path, size, instant, file_id), ())
    if compacted is None or before is None:
        return GroupChange(group, before, written, None, *counts)
    later = tuple(each for each in before.log_files if each.path not in compacted)
    log = replace(written, base_file=None, log_files=later)
    return GroupChange(group, before, replace(written, log_files=later), log, *counts)


def subtract(keys: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the keys that are not among others."""
    if not len(keys) or not len(others):
        return join_keys([keys])
    return join_keys([keys.filter(pc.invert(pc.is_in(keys, join_keys([others]))))])


def join_keys(parts: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return keys as one array.

    Raises:
        UnsupportedFeatureError: the keys exceed 2 GiB.
    """
    chunks = [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
    chunks = [chunk for chunk in chunks if len(chunk)]
    if not chunks:
        return pa.array([], pa.string())
    if sum(chunk.nbytes for chunk in chunks) >= _MOST_BYTES:
        raise UnsupportedFeatureError(
            "A commit changes over 2 GiB of keys of an index.", hint="Write in several commits."
        )
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def take_last_of_each(keys: pa.Array) -> np.ndarray:
    """Return the position of the last entry of each distinct key, rising."""
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    last = np.zeros(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    last[codes] = np.arange(len(codes))
    return np.sort(last)


def find_files_after(commit: MetadataCommit, paths: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Return the names of the files that readers see in each partition after the instant, without the instant's own.

    Slices are made as for a reader, from a listing and a timeline in which the instant counts as complete. So a base
    file replaces older files of its group by the rules of ``table/view``, also beside a pending compaction.

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
    """Return the timeline with the instant completed. The file groups that it replaces are not part of the timeline."""
    timeline = commit.snapshot.timeline
    found = timeline.find(commit.instant)
    if found is None or found.is_completed or found.comparable_action == REPLACE_COMMIT:
        return timeline
    # One digit more makes a time that sorts after every time on the timeline.
    last = max((each.completion_time or each.request_time for each in timeline), default=commit.instant)
    done = replace(
        found, action=found.comparable_action, state=COMPLETED, completion_time=max(last, commit.instant) + "9"
    )
    return Timeline([*timeline, done], timeline.layout, timeline.undone)
