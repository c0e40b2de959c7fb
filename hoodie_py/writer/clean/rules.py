"""Decide which slices of a file group a clean removes (Hudi ``CleanPlanner``).

Time travel reads old slices. A clean always keeps the newest slice, slices that a savepoint or a pending plan names,
and slices without a newer base file, as their log files are merged into no other file. Of an instant with several base
files it removes all or none. The policy keeps more:

* KEEP_LATEST_COMMITS: slices from the earliest retained commit on, and the one before, which that commit still reads.
* KEEP_LATEST_FILE_VERSIONS: the given number of newest slices. A slice that a compaction has planned is one of them.

A replaced file group is removed whole. With KEEP_LATEST_COMMITS it must have been replaced before the earliest retained
commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.view.file_groups import FileGroup


@dataclass(frozen=True, slots=True)
class SliceDecision:
    """Whether one file slice is removed, and why. Files are names with sizes in bytes."""

    partition_path: str
    file_id: str
    instant: str
    removed: bool
    reason: str
    files: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(size for _, size in self.files)


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept: slices from a commit on (its request time), or a number of slices of each file group.

    ``planned`` and ``saved`` map the paths that a pending plan or a savepoint names, which stay, to the reason.
    """

    earliest: str | None = None
    versions: int = 0
    planned: Mapping[str, str] = field(default_factory=dict)
    saved: Mapping[str, str] = field(default_factory=dict)


def decide_slices(
    group: FileGroup, slices: Sequence[FileSlice], retention: Retention, replaced_by: str | None = None
) -> list[SliceDecision]:
    """Decide about every slice of a file group. ``slices`` are all of the group's, oldest first; ``replaced_by`` is the
    request time of the completed commit that replaced it.
    """
    files = [_list_files(group, each) for each in slices]
    planned = [_find_reason(each, retention.planned) for each in files]
    saved = [_find_reason(each, retention.saved) for each in files]
    if replaced_by is None:
        kept, gone = _explain_kept(slices, planned, retention), "it is older than what is retained"
    else:
        kept, gone = [_explain_replaced_stays(replaced_by, retention)] * len(slices), f"{replaced_by} replaced it"
    decided = []
    for number, each in enumerate(slices):
        reason = planned[number] or saved[number] or kept[number]
        decided.append(
            SliceDecision(
                partition_path=group.partition_path,
                file_id=group.file_id,
                instant=each.base_instant,
                removed=reason is None,
                reason=reason or gone,
                files=tuple((path.rpartition("/")[2], size) for path, size in files[number]),
            )
        )
    return decided


def _list_files(group: FileGroup, file_slice: FileSlice) -> list[tuple[str, int]]:
    """Return paths and sizes, also of change-data files, and of files that task retries left beside the committed ones.

    Only a slice with a base file has change data.
    """
    files = [(log.path, log.size) for log in file_slice.log_files]
    if file_slice.base_file is not None:
        changes = (each for each in group.change_files if each.name.instant == file_slice.base_instant)
        files += [(each.path, each.size) for each in changes]
        files = [(base.path, base.size) for base in group.base_files if base.instant == file_slice.base_instant] + files
    return files


def _find_reason(files: Sequence[tuple[str, int]], names: Mapping[str, str]) -> str | None:
    return next((names[path] for path, _ in files if path in names), None)


def _explain_replaced_stays(replaced_by: str, retention: Retention) -> str | None:
    if retention.earliest is not None and replaced_by >= retention.earliest:
        return f"{replaced_by}, which replaced it, is retained"
    return None


def _explain_kept(slices: Sequence[FileSlice], planned: Sequence[str | None], retention: Retention) -> list[str | None]:
    newest_base = max((each.base_instant for each in slices if each.base_file is not None), default="")
    retained = _retain_by_commits(slices, retention.earliest) if retention.earliest is not None else None
    if retained is None:
        retained = _retain_by_versions(slices, planned, retention.versions)
    reasons: list[str | None] = []
    for each in slices:
        if each.base_instant == slices[-1].base_instant:
            reasons.append("it is the newest")
        elif each.base_instant >= newest_base:
            reasons.append("there is no newer base file")
        else:
            reasons.append(retained.get(each.base_instant))
    return reasons


def _retain_by_commits(slices: Sequence[FileSlice], earliest: str) -> dict[str, str]:
    instants = [each.base_instant for each in slices]
    kept = {instant: f"it is not older than commit {earliest}" for instant in instants if instant >= earliest}
    before = max((instant for instant in instants if instant < earliest), default=None)
    if before is not None:
        kept[before] = f"commit {earliest} still reads it"
    return kept


def _retain_by_versions(slices: Sequence[FileSlice], planned: Sequence[str | None], versions: int) -> dict[str, str]:
    """Keep the newest slices. A planned slice and all that was written after it count as one."""
    first_planned = next((number for number, plan in enumerate(planned) if plan is not None), len(slices))
    counted = versions if first_planned == len(slices) else versions - 1
    kept = slices[max(first_planned - counted, 0) :]
    return dict.fromkeys((each.base_instant for each in kept), f"it is one of the {versions} newest")
