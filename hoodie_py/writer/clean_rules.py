"""Which slices of a file group a clean removes (Hudi ``CleanPlanner``).

Old slices are what queries of the past read. Kept in any case: the newest slice; what a savepoint or a pending plan
names; a slice without a newer base file above it, as its log files have nowhere else to be merged into; and, of an
instant with several base files, all or none. Besides:

* KEEP_LATEST_COMMITS: slices from the earliest retained commit on, and the one before, which that commit still reads.
* KEEP_LATEST_FILE_VERSIONS: so many of the newest slices. A slice that a compaction is about to merge is one of them.

A file group that was replaced goes whole, with KEEP_LATEST_COMMITS once that was before the earliest retained commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.file_groups import FileGroup


@dataclass(frozen=True, slots=True)
class SliceDecision:
    """What becomes of one file slice, and why. Files are names with sizes in bytes."""

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
    """How much is kept: from a commit on (its request time), or so many slices of a file group; one of them is set.

    ``planned`` and ``saved`` have the paths that stay whatever their age, as a pending plan or a savepoint names them,
    and which one does.
    """

    earliest: str | None = None
    versions: int = 0
    planned: Mapping[str, str] = field(default_factory=dict)
    saved: Mapping[str, str] = field(default_factory=dict)


def decide_slices(
    group: FileGroup, slices: Sequence[FileSlice], retention: Retention, replaced_by: str | None = None
) -> list[SliceDecision]:
    """Decide about every slice of a file group.

    Args:
        group: the group with all its files.
        slices: its slices, oldest first.
        retention: how much is kept.
        replaced_by: the completed replace commit that did away with the group.
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
    """Paths and sizes, with the base files that task retries left beside the committed one."""
    files = [(log.path, log.size) for log in file_slice.log_files]
    if file_slice.base_file is not None:
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
    """Keep the newest slices; one that a plan takes and what was written since count as one of them."""
    first_planned = next((number for number, plan in enumerate(planned) if plan is not None), len(slices))
    counted = versions if first_planned == len(slices) else versions - 1
    kept = slices[max(first_planned - counted, 0) :]
    return dict.fromkeys((each.base_instant for each in kept), f"it is one of the {versions} newest")
