"""Compare the keys of file groups before and after a commit, and again under the lock if other commits came between.

A delete in a log file wins against later rows that have lower ordering values, and a compaction drops it. So a key may
come back: by a compaction, if a log file that is later than its plan contains such a row; by a write, if a compaction
completed since the write looked. Java checks neither (``HoodieTableMetadataUtil``): its index lacks such keys.

Partial updates and custom mergers may produce another row once a part of the log files is compacted. The metadata table
keeps the order of instants, and a compaction's instant is the one of its plan. So its entry for a key would not count
if a later write has an entry for that key. Such a compaction is refused; a new plan includes all log files. A key that
a delete hid all the time has no entry of a later write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from hoodie_py.errors import ConflictError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.timeline.instants import COMMIT
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.runtime.parallel import run_in_order
from hoodie_py.table.scan.threads import count_threads
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.log_stats import LogStats
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.indexes.group_changes import GroupChange, list_group_changes
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.slice_rows import SliceRows

NewAndGone = tuple[pa.Array, pa.Array]
FindChanges = Callable[[SliceRows, GroupChange], NewAndGone]


class LogDeletes:
    """Finds which log files may have deleted keys of a table.

    Attributes:
        merger_decides: whether any row may delete a key, or bring it back: the table has a merger of its own.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._said = LogStats(snapshot.timeline)
        self.merger_decides = snapshot.config.merge_mode is MergeMode.CUSTOM

    def may_be_in(self, file_slice: FileSlice) -> bool:
        """Whether a log file of a slice may have deleted a key; true unless the commits' statistics exclude it."""
        if self.merger_decides:
            return bool(file_slice.log_files)
        stats = [self._said.find(log) for log in file_slice.log_files]
        return any(not some or any(stat.num_deletes for stat in some) for some in stats)


@dataclass(frozen=True, slots=True)
class KeyComparison:
    """The new and the removed entries of an index in the file groups that a commit changed.

    Attributes:
        snapshot: the table at the comparison.
        find: finds the entries of one file group.
        column: the column that the entries need beside the keys, or None.
        changes: the file groups that may have such entries.
        found: the entries of each file group.
    """

    snapshot: Snapshot
    find: FindChanges
    column: str | None
    changes: tuple[GroupChange, ...]
    found: tuple[NewAndGone, ...]

    @property
    def groups(self) -> list[GroupKey]:
        """The file groups."""
        return [each.group for each in self.changes]

    def bring_up_to_date(self, commit: MetadataCommit) -> KeyComparison:
        """Compare again where the table has changed since. The caller holds the lock; ``commit`` has the current table.

        Raises:
            ConflictError: a compaction changes entries that later writes have made.
            HoodieError: a data file cannot be read, or a merger is missing.
        """
        if commit.kind == "compaction":
            now = _select_later_logs(commit, self.column)
        elif commit.kind == "write" and _was_compacted(self.snapshot, commit.snapshot):
            deletes = LogDeletes(self.snapshot)
            rests = {each.group for each in self.changes if _rests_on_logs(deletes, each, self.column)}
            fresh = {each.group: each for each in list_group_changes(commit) if each.group in rests} if rests else {}
            now = [fresh.get(each.group, each) for each in self.changes]
        else:
            return self
        known = dict(zip(self.changes, self.found, strict=True))
        again = _compare(commit, self.find, self.column, [each for each in now if each not in known])
        known.update(zip(again.changes, again.found, strict=True))
        found = tuple(known[each] for each in now)
        if commit.kind == "compaction":
            _check_order(commit, now, found)
        return replace(self, snapshot=commit.snapshot, changes=tuple(now), found=found)


def compare_write(
    commit: MetadataCommit, find: FindChanges, changes: Sequence[GroupChange], column: str | None = None
) -> KeyComparison:
    """Compare what a write or a clustering did to file groups.

    Raises:
        HoodieError: a data file cannot be read, or a merger is missing.
    """
    return _compare(commit, find, column, changes)


def compare_compaction(commit: MetadataCommit, find: FindChanges, column: str | None = None) -> KeyComparison | None:
    """Compare the file groups of a compaction that have later log files; None for a log compaction.

    Raises:
        HoodieError: a data file cannot be read, or a merger is missing.
    """
    if not commit.compacted:
        return None
    # The compaction may have run for long: a new look, before the lock, already sees most of the later log files.
    commit = replace(commit, snapshot=commit.session.look())
    return _compare(commit, find, column, _select_later_logs(commit, column))


def _compare(
    commit: MetadataCommit, find: FindChanges, column: str | None, changes: Sequence[GroupChange]
) -> KeyComparison:
    options = commit.session.settings.options
    rows = SliceRows(commit.snapshot, options, column, commit.instant, commit.merger)
    found = run_in_order([partial(find, rows, each) for each in changes], count_threads(options))
    return KeyComparison(commit.snapshot, find, column, tuple(changes), tuple(found))


def _check_order(commit: MetadataCommit, changes: Sequence[GroupChange], found: Sequence[NewAndGone]) -> None:
    merger_decides = LogDeletes(commit.snapshot).merger_decides
    for change, (new, gone) in zip(changes, found, strict=True):
        if len(gone) or (merger_decides and len(new)):
            text = "The compaction changes what an index of the metadata table says of rows that later writes changed."
            raise make_plan_conflict(
                text, commit, change.group, "have Java Hudi run it, drop the index, and build it again"
            )


class StalePlanError(ConflictError):
    """A compaction's plan is too old: what came after it forbids running it. A new plan can be run.

    Attributes:
        returning: the keys that would come back although another file group contains them, by file group.
    """

    returning: Mapping[GroupKey, pa.Array] = MappingProxyType({})


def make_plan_conflict(
    text: str,
    commit: MetadataCommit,
    group: GroupKey,
    otherwise: str,
    returning: Mapping[GroupKey, pa.Array] = MappingProxyType({}),
) -> StalePlanError:
    """Return the error of a compaction whose plan is too old.

    ``otherwise``: the way out if the plan must stay, as up to table version 6 later log files are named after it.
    ``returning`` as for the error.
    """
    partition, file_id = group
    hint = "Roll its plan back and compact again: the new plan has the later log files."
    if commit.snapshot.view.visibility.logs_carry_base_instant:
        hint = (
            f"Up to table version 6 its plan cannot be rolled back, as later log files are named after it: {otherwise}."
        )
    error = StalePlanError(text, hint=hint, instant=commit.instant, file_group=file_id, partition=partition or None)
    error.returning = returning
    return error


def _select_later_logs(commit: MetadataCommit, column: str | None) -> list[GroupChange]:
    """Return the file groups with log files later than a compaction's plan that may read differently after it."""
    deletes = LogDeletes(commit.snapshot)
    later = (each for each in list_group_changes(commit) if each.log is not None and each.log.log_files)
    return [each for each in later if _rests_on_logs(deletes, each, column)]


def _rests_on_logs(deletes: LogDeletes, change: GroupChange, column: str | None) -> bool:
    """Whether log files may read differently once older files are compacted."""
    if change.log is None or change.before is None:
        return False
    return column is not None or deletes.may_be_in(change.before)


def _was_compacted(before: Snapshot, now: Snapshot) -> bool:
    """Whether a compaction completed in between."""
    if not now.config.is_merge_on_read:
        return False
    known = {each.request_time for each in before.timeline.list_completed_writes()}
    return any(
        each.action == COMMIT and each.request_time not in known for each in now.timeline.list_completed_writes()
    )
