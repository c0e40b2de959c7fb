"""Reads what the cleans after an instant of the past say: from which commit on files are kept, or what was removed.

A clean by commits names the earliest commit that it retains. A clean by file versions names none, so the files that it
removed must be examined (Hudi ``HoodieCleanMetadata``). All cleans count, not only the last one: a clean by commits may
follow one by file versions. A clean that has begun may have removed files already, so its plan counts.

In layout 2 of the timeline cleans are archived with the commits before them. In layout 1 they are counted separately,
so a clean that is later than an active commit may be archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from hoodie_py.errors import FileMissingError
from hoodie_py.formats.timeline.archive import ArchivedInstant
from hoodie_py.formats.timeline.instants import CLEAN, INFLIGHT, REQUESTED
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.timeline import Instant
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.timeline.archive import ATTEMPTS, iterate_archive_files, make_missing_error
from hoodie_py.table.timeline.loader import TableTimeline

_THREADS = 16


@dataclass(frozen=True, slots=True)
class CleanFacts:
    """One clean.

    Attributes:
        request_time: of the clean.
        retained: request time of the earliest commit whose files it keeps; None if it names none.
        files: names of removed files, by partition path. Some may still exist: the clean is still running, or could not
            remove them.
    """

    request_time: str
    retained: str | None
    files: Mapping[str, tuple[str, ...]]


def read_cleans(timeline: TableTimeline, after: str) -> list[CleanFacts]:
    """Return the cleans that were requested after a time; errors as for the two halves below."""
    active = read_active_cleans(timeline, after)
    return active + (read_archived_cleans(timeline, after) if may_be_archived(timeline, after, active) else [])


def find_kept_since(timeline: TableTimeline, after: str | None = None) -> str | None:
    """Return the request time from which on commits have kept their files, judging by the cleans after a time.

    ``after``: by default the first active commit. None if there was no such clean. A clean by file versions may have
    removed files of any commit before it. Errors as for ``read_cleans``.
    """
    cleans = read_cleans(timeline, timeline.first_active_time or "" if after is None else after)
    return max((each.retained or each.request_time for each in cleans), default=None)


def describe_retention(timeline: TableTimeline) -> str:
    """Return the hint for files that cleans removed: the last clean, and how writers keep more."""
    from hoodie_py.options.write import AUTOMATIC_CLEAN, COMMITS_RETAINED

    last = timeline.select_actions(CLEAN).select_completed().last
    found = "" if last is None else f"The last clean is {last.request_time}. "
    return (
        f"{found}Writes clean unless {AUTOMATIC_CLEAN}=false, and keep the files of {COMMITS_RETAINED} commits; a "
        "savepoint keeps one commit for good."
    )


def may_be_archived(timeline: TableTimeline, after: str, active: Iterable[CleanFacts]) -> bool:
    """Say whether archived cleans may show more removals after a time than the active ones do."""
    alone = timeline.layout < 2 and any(each.retained is None for each in active)
    return alone or timeline.is_archived_before(after)


def read_active_cleans(timeline: TableTimeline, after: str) -> list[CleanFacts]:
    """Return the cleans of the active timeline that were requested after a time, oldest first.

    Raises:
        InvalidTableError: the file of a clean is gone.
        CorruptFileError: it is damaged.
    """
    later = [each for each in timeline.select_actions(CLEAN) if each.request_time > after]
    begun = [each for each in later if each.is_completed or each.state == INFLIGHT]
    if len(begun) < 2:
        return [_read(timeline, each) for each in begun]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_THREADS, len(begun)), "hoodie-cleans") as pool:
        return list(pool.map(carry_span(partial(_read, timeline)), begun))


def _read(timeline: TableTimeline, clean: Instant) -> CleanFacts:
    if clean.is_completed:
        return _describe(clean.request_time, timeline.read_instant_file(clean, CleanMetadata.from_bytes))
    plan = timeline.read_instant_file(replace(clean, state=REQUESTED), CleanPlan.from_bytes)
    return CleanFacts(clean.request_time, plan.earliest_instant_to_retain or None, plan.files)


def read_archived_cleans(timeline: TableTimeline, after: str) -> list[CleanFacts]:
    """Return the archived cleans that were requested after a time.

    Raises:
        CorruptFileError: the archive is damaged.
        InvalidTableError: the archive names files that do not exist.
        StorageError: reading failed.
    """
    known = [each for each in timeline.read_archive().instants if each.action == CLEAN and each.request_time > after]
    if all(each.has_metadata for each in known):  # in layout 1; in layout 2 only times were read
        return list(_parse(known, after))
    for _ in range(ATTEMPTS):
        try:
            parts = iterate_archive_files(timeline.files, timeline.config, lambda newest, _oldest: newest > after)
            return [each for part in parts for each in _parse(part, after)]
        except FileMissingError:  # the history was compacted meanwhile
            continue
    raise make_missing_error(timeline.config)


def _parse(entries: Iterable[ArchivedInstant], after: str) -> Iterator[CleanFacts]:
    for each in entries:
        if each.action == CLEAN and each.request_time > after:
            yield _describe(each.request_time, each.parse_clean_metadata())


def _describe(request_time: str, clean: CleanMetadata) -> CleanFacts:
    removed = {path: (*each.deleted_files, *each.failed_files) for path, each in clean.partitions.items()}
    return CleanFacts(request_time, clean.earliest_commit_to_retain, removed)
