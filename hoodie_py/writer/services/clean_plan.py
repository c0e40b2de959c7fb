"""Plan a clean: find the file slices that no query needs any more (Hudi ``CleanPlanActionExecutor``).

The earliest retained commit that a clean records holds for the whole table: a clean looks at all partitions, or, after
a write, at the partitions of the commits that no clean has passed yet (``clean_window``). That commit is never later
than a pending write or savepoint, and never earlier than the one of the previous clean.

Decide which slices of a file group a clean removes (Hudi ``CleanPlanner``).

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
from dataclasses import dataclass, field, replace
from uuid import uuid4

from hoodie_py.errors import HoodieError, InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.formats.timeline.instants import CLEAN, RESTORE, SAVEPOINT, Instant, locate_instant, locate_requested
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.savepoints import SavepointMetadata
from hoodie_py.options import write as keys
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.scan.html_table import format_html_table
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.slicing import make_all_slices
from hoodie_py.writer.services.clean_sources import find_sources
from hoodie_py.writer.services.clean_window import list_partitions
from hoodie_py.writer.timeline.session import PLAN_ID
from hoodie_py.writer.transaction.pending import iterate_planned_slices


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


_SHOWN = 20


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """Hudi's cleaning policy, and how many commits or file versions it retains.

    ``delete_sources`` also deletes the source files of bootstrapped base files that are removed. ``least_commits`` must
    have completed since the last clean (None: any number), and a clean by commits moves the earliest retained commit by
    at most ``most_commits`` (None: any number). With ``incremental``, such a clean looks only at partitions of commits
    that no earlier clean has passed.
    """

    policy: str = keys.KEEP_LATEST_COMMITS
    commits: int = keys.COMMITS_RETAINED.default
    versions: int = keys.VERSIONS_RETAINED.default
    delete_sources: bool = False
    least_commits: int | None = None
    most_commits: int | None = None
    incremental: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str], retain_commits: int | None = None) -> CleanSettings:
        """Read the options. An explicit number of commits wins over theirs.

        Raises:
            UnsupportedFeatureError: the policy is not handled.
            InvalidQueryError: a value is no number, or less than 1.
        """
        policy = keys.CLEAN_POLICY.read(options)
        commits = keys.COMMITS_RETAINED.read(options) if retain_commits is None else retain_commits
        if commits < 1:
            raise InvalidQueryError("A clean must retain at least one commit.")
        keys.CLEAN_TRIGGER.read(options)
        return cls(
            policy,
            commits,
            keys.VERSIONS_RETAINED.read(options),
            keys.DELETE_BOOTSTRAP_SOURCE.read(options),
            keys.CLEAN_TRIGGER_COMMITS.read_given(options),
            keys.MOST_COMMITS_TO_CLEAN.read_given(options),
        )


@dataclass(frozen=True, slots=True)
class CleanReport:
    """What a clean would do.

    ``earliest`` is the request time of the earliest retained commit; None if the policy has none. ``sources`` are the
    source files of a bootstrap that go with their base files. ``waits`` says why no clean is due yet, whatever the
    files; None if one is.

    Examples:
        >>> for price in (1.0, 2.0):
        ...     rows = trips.insert_overwrite_table([{"id": "z", "city": "la", "price": price, "ts": 1}]).rows_inserted
        >>> report = trips.clean(retain_commits=1, dry_run=True)
        >>> len(report.slices), len(report.removed)
        (4, 2)
    """

    table: str
    policy: str
    earliest: str | None
    slices: tuple[SliceDecision, ...]
    sources: tuple[str, ...] = ()
    waits: str | None = None

    @property
    def removed(self) -> tuple[SliceDecision, ...]:
        """The slices that would be removed."""
        return tuple(each for each in self.slices if each.removed)

    def __str__(self) -> str:
        if self.waits is not None:
            return f"Cleaning {self.table} by {self.policy} is not due: {self.waits}."
        removed = self.removed
        what = f"{sum(len(each.files) for each in removed):,} files, {sum(each.size for each in removed):,} bytes"
        what += f", {len(self.sources)} source files of the bootstrap" if self.sources else ""
        since = f" and retain what commit {self.earliest} and later ones read" if self.earliest else ""
        return (
            f"Cleaning {self.table} by {self.policy} would remove {len(removed)} of {len(self.slices)} file slices "
            f"({what}){since}."
        )

    def __repr__(self) -> str:
        lines = [str(self), *(f"  {sign} {name}: {why}" for sign, name, why in self._format_lines())]
        lines += [f"  - {source}: the source of a base file that is removed" for source in self.sources[:_SHOWN]]
        if len(self.slices) > _SHOWN:
            lines.append(f"  ... and {len(self.slices) - _SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return format_html_table(
            str(self),
            [(name, f"{'goes' if sign == '-' else 'stays'}: {why}") for sign, name, why in self._format_lines()],
        )

    def _format_lines(self) -> list[tuple[str, str, str]]:
        return [
            (
                "-" if each.removed else "+",
                "/".join(part for part in (each.partition_path, each.file_id) if part) + f" of {each.instant}",
                f"{each.reason}; {len(each.files)} files, {each.size:,} bytes",
            )
            for each in self.slices[:_SHOWN]
        ]


@dataclass(frozen=True, slots=True)
class PlannedClean:
    """A plan that could be saved (None if it would remove nothing), and its report."""

    plan: CleanPlan | None
    report: CleanReport


def make_plan(snapshot: Snapshot, settings: CleanSettings) -> PlannedClean:
    """Return the plan for the current table.

    Raises:
        UnsupportedFeatureError: the table has a feature that cleaning does not handle.
        InvalidTableError: a savepoint or plan names a path outside the table, or the bootstrap index one outside its
            folder.
        CorruptFileError: a timeline file is damaged.
    """
    check_cleanable(snapshot)
    waits = _explain_wait(snapshot, settings)
    if waits is not None:
        return PlannedClean(None, CleanReport(snapshot.config.name, settings.policy, None, (), waits=waits))
    earliest: Instant | None = None
    slices: tuple[SliceDecision, ...] = ()
    if settings.policy == keys.KEEP_LATEST_COMMITS:
        earliest = find_earliest_retained(snapshot, settings)
        if earliest is not None:
            paths = list_partitions(snapshot, earliest.request_time) if settings.incremental else None
            slices = _decide_slices_in(snapshot, paths, earliest=earliest.request_time)
    else:
        slices = _decide_slices_in(snapshot, None, versions=settings.versions)
    time = earliest.request_time if earliest is not None else None
    report = CleanReport(snapshot.config.name, settings.policy, time, slices)
    if not any(each.files for each in report.removed):
        return PlannedClean(None, report)
    files = _group_by_partition(report.removed)
    sources = find_sources(snapshot, files) if settings.delete_sources else {}
    report = replace(report, sources=tuple(each.uri for some in sources.values() for each in some))
    last = snapshot.timeline.select_writes().last
    plan = CleanPlan(
        earliest_instant_to_retain=time,
        earliest_action=earliest.comparable_action if earliest is not None else None,
        policy=settings.policy,
        files=files,
        last_completed_commit_timestamp=last.request_time if last is not None else None,
        extra_metadata={PLAN_ID: uuid4().hex, **_note_savepoints(snapshot)},
        sources={partition: tuple(each.indexed for each in some) for partition, some in sources.items()},
    )
    return PlannedClean(plan, report)


def check_cleanable(snapshot: Snapshot) -> None:
    """Refuse a table that cannot be cleaned here.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    if len(snapshot.timeline.select_pending().select_actions(RESTORE)):
        raise UnsupportedFeatureError(
            "Cleaning a table beside a pending restore.", hint="Finish the restore first.", table=snapshot.config.name
        )


def read_saved_plan(snapshot: Snapshot, pending: Instant) -> CleanPlan | None:
    """Read the plan of a pending clean; None if its file is empty.

    Raises:
        CorruptFileError, FileMissingError: the file is damaged or gone.
    """
    path = locate_requested(snapshot.config, pending)
    try:
        data = read_bounded(snapshot.files, path)
        return CleanPlan.from_bytes(data) if data else None
    except HoodieError as error:
        raise error.locate(path=path, instant=pending.request_time) from error.__cause__


def check_plan(snapshot: Snapshot, plan: CleanPlan) -> None:
    """Refuse a saved plan that removes a needed file.

    Raises:
        InvalidTableError: it names a file of a newest slice, of a savepoint or of a pending plan, or a file that is no
            data file.
        UnsupportedFeatureError: it removes whole partitions.
    """
    if plan.partitions_to_delete:
        raise UnsupportedFeatureError("A clean that removes partitions.", hint="Finish it with Java Hudi.")
    stay = {**_find_savepoint_files(snapshot), **_find_planned_files(snapshot)}
    for each in snapshot.view.list_slices(partitions=sorted(plan.files)):
        files = (*((each.base_file,) if each.base_file is not None else ()), *each.log_files)
        stay.update((file.path, "the newest file slice") for file in files)
    for partition, names in plan.files.items():
        for name in names:
            path = f"{partition}/{name}" if partition else name
            if name.startswith(".") and parse_log_file_name(name) is None:
                raise InvalidTableError(
                    "A clean plan removes a hidden file that is no data file.",
                    hint="Remove the plan's files from the timeline and clean again.",
                    path=path[:500],
                )
            if path in stay:
                raise InvalidTableError(
                    f"A clean plan removes a file that is needed: {stay[path]}.",
                    hint="Remove the plan's files from the timeline and clean again.",
                    path=path,
                )


def _explain_wait(snapshot: Snapshot, settings: CleanSettings) -> str | None:
    """Say why too few commits have completed since the last clean (Hudi ``CleanPlanActionExecutor.needsCleaning``);
    None if there are enough. Without a completed clean all active commits count.
    """
    if settings.least_commits is None:
        return None
    timeline = snapshot.timeline
    last = timeline.select_actions(CLEAN).select_completed().last
    seen = None
    if last is not None:
        seen = snapshot.timeline.read_instant_file(last, CleanMetadata.from_bytes).last_completed_commit_timestamp
    since = sum(each.request_time > (seen or "") for each in timeline.select_writes())
    if since >= settings.least_commits:
        return None
    return f"{since} commits have completed since the last clean, fewer than {settings.least_commits}"


def find_earliest_retained(snapshot: Snapshot, settings: CleanSettings) -> Instant | None:
    """Return the earliest commit to retain; None if there are too few commits (Hudi ``CleanerUtils``).

    Raises:
        CorruptFileError: the file of the last clean is damaged.
    """
    timeline = snapshot.timeline
    completed = timeline.select_writes().instants
    if len(completed) <= settings.commits:
        return None
    found = completed[len(completed) - settings.commits]
    pending = [each.request_time for each in timeline.select_pending() if each.is_write or each.action == SAVEPOINT]
    if pending and min(pending) < found.request_time:
        before = [each for each in completed if each.request_time < min(pending)]
        if not before:
            return None
        found = before[-1]
    last = snapshot.timeline.find_earliest_retained()
    if last is not None and last > found.request_time:
        return next((each for each in completed if each.request_time == last), None)
    if last is not None and settings.most_commits is not None:
        left = [each for each in completed if last <= each.request_time < found.request_time]
        return left[settings.most_commits] if len(left) > settings.most_commits else found
    return found


def _decide_slices_in(
    snapshot: Snapshot, paths: list[str] | None, *, earliest: str | None = None, versions: int = 0
) -> tuple[SliceDecision, ...]:
    retention = Retention(earliest, versions, _find_planned_files(snapshot), _find_savepoint_files(snapshot))
    visibility = snapshot.view.visibility
    return tuple(
        fate
        for group in snapshot.view.list_file_groups(paths)
        for fate in decide_slices(
            group, make_all_slices(group, visibility), retention, visibility.find_replacing_instant(group.key)
        )
    )


def _find_planned_files(snapshot: Snapshot) -> dict[str, str]:
    """Return the paths that pending plans name, with the reason to keep them."""
    planned: dict[str, str] = {}
    for each in iterate_planned_slices(snapshot):
        reason = f"{each.instant.action} {each.instant.request_time} is pending"
        _add_paths(planned, each.partition_path, each.names, reason)
    return planned


def _find_savepoint_files(snapshot: Snapshot) -> dict[str, str]:
    """Return the paths that savepoints name, with the reason to keep them."""
    saved: dict[str, str] = {}
    for instant in snapshot.timeline.select_completed().select_actions(SAVEPOINT):
        data = read_bounded(snapshot.files, locate_instant(snapshot.config, instant))
        for partition, names in SavepointMetadata.from_bytes(data).files.items():
            _add_paths(saved, partition, names, f"savepoint {instant.request_time} names it")
    return saved


def _note_savepoints(snapshot: Snapshot) -> dict[str, str]:
    """Return metadata that lists the savepoints. If one of them is gone later, Java looks into all partitions again."""
    saved = [each.request_time for each in snapshot.timeline.select_completed().select_actions(SAVEPOINT)]
    return {keys.SAVEPOINTED: ",".join(saved)} if saved else {}


def _add_paths(into: dict[str, str], partition: str, names: Sequence[str | None], reason: str) -> None:
    for name in names:
        if name is not None:
            into.setdefault(f"{partition}/{name}" if partition else name, reason)


def _group_by_partition(removed: Sequence[SliceDecision]) -> dict[str, tuple[str, ...]]:
    files: dict[str, tuple[str, ...]] = {}
    for each in removed:
        if each.files:
            files[each.partition_path] = (*files.get(each.partition_path, ()), *(name for name, _ in each.files))
    return files
