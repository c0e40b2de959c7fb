"""Convert archived instants between timeline layouts 1 and 2 (Hudi ``LegacyArchivedMetaEntryReader``,
``MetadataConversionUtils.createMetaWrapper``).

Layout 1 stores an entry for each state of an instant, with its decoded content. Layout 2 stores one row for an instant,
with the bytes of its completed file and of its plan. Hudi makes rows without plans; here they have plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.timeline import instants as kinds
from hoodie_py.formats.timeline.archive import ArchivedInstant
from hoodie_py.formats.timeline.archive_entries import fit_record, make_entry, needs_content
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.plans import CLEAN_METADATA, CLEAN_PLAN, COMPACTION_PLAN, ROLLBACK_METADATA
from hoodie_py.formats.timeline.records import Record
from hoodie_py.formats.timeline.replace_plan import CLUSTERING_PLAN
from hoodie_py.formats.timeline.savepoints import SAVEPOINT_METADATA
from hoodie_py.formats.timeline.writers import write_commit_metadata

_LAYOUT = 2
_COMMITS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")
_RESULTS: dict[str, Record[Any]] = {
    "hoodieCleanMetadata": CLEAN_METADATA,
    "hoodieRollbackMetadata": ROLLBACK_METADATA,
    "hoodieSavePointMetadata": SAVEPOINT_METADATA,
}
_PLANS: dict[str, Record[Any]] = {
    "hoodieCompactionPlan": COMPACTION_PLAN,
    "hoodieCleanerPlan": CLEAN_PLAN,
    "hoodieRequestedReplaceMetadata": CLUSTERING_PLAN,
}
_PLANNED = {kinds.COMMIT: kinds.COMPACTION, kinds.DELTA_COMMIT: kinds.LOG_COMPACTION}


def make_archived_instants(entries: Iterable[Mapping[str, Any]]) -> list[ArchivedInstant]:
    """Return the completed instants among entries of layout 1, oldest first, as rows of layout 2.

    Raises:
        CorruptFileError: an entry is damaged.
    """
    by_key: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in entries:
        action = str(entry.get("actionType") or "")
        key = str(entry.get("commitTime") or ""), kinds.COMPLETED_ACTION.get(action, action)
        by_key.setdefault(key, []).append(entry)
    found = [_make_instant(*key, states) for key, states in sorted(by_key.items())]
    return [each for each in found if each is not None]


def _make_instant(time: str, action: str, states: list[Mapping[str, Any]]) -> ArchivedInstant | None:
    completed = next((each for each in states if _get_state(each) == kinds.COMPLETED), None)
    if completed is None:
        return None
    if not time.isascii() or not time.isdigit():
        raise CorruptFileError("An archived instant has no valid time.", value=time[:100])
    reached = str(completed.get("stateTransitionTime") or "")
    plan = next((found for each in states if (found := _encode(each, _PLANS)) is not None), None)
    return ArchivedInstant(time, max(time, reached), action, _encode_result(completed), plan)


def _get_state(entry: Mapping[str, Any]) -> str:
    return str(entry.get("actionState") or kinds.COMPLETED).lower()


def _encode_result(entry: Mapping[str, Any]) -> bytes | None:
    for name in _COMMITS:
        record = entry.get(name)
        if record is not None:
            commit = CommitMetadata.from_record(record)
            return write_commit_metadata(commit, _LAYOUT, replace=name == _COMMITS[1])
    return _encode(entry, _RESULTS)


def _encode(entry: Mapping[str, Any], known: Mapping[str, Record[Any]]) -> bytes | None:
    for name, declared in known.items():
        if entry.get(name) is not None:
            return write_single(fit_record(entry[name], declared), declared.text)
    return None


def make_entries(instants: Iterable[ArchivedInstant]) -> Iterator[dict[str, Any]]:
    """Yield the entries of layout 1 for rows of layout 2.

    Raises:
        CorruptFileError: the content of a row is damaged.
        UnsupportedFeatureError: it lacks what an entry needs.
    """
    for each in instants:
        action = _PLANNED.get(each.action, each.action)
        requested = Instant(each.request_time, None, action, kinds.REQUESTED)
        if (
            each.plan
            and needs_content(requested)
            and (action != kinds.REPLACE_COMMIT or _is_plan_of_clustering(each.plan))
        ):
            yield make_entry(requested, each.request_time, each.plan)
        completed = Instant(each.request_time, each.completion_time, each.action, kinds.COMPLETED)
        yield make_entry(completed, each.completion_time, each.metadata or b"")


def _is_plan_of_clustering(plan: bytes) -> bool:
    return b"HoodieRequestedReplaceMetadata" in plan[:4096]
