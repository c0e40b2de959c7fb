"""What runs of a saved plan have in common: those of compactions, clusterings and log compactions.

They can be run again by any process, so each run checks that the plan is still there and its own, begins by removing
what an earlier attempt left, and puts the instant back to requested if it fails. ``what`` is the service's name in
messages, as in "compaction".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TypeVar

from hoodie_py.errors import ConflictError, HoodieError, InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline.instants import INFLIGHT, Instant
from hoodie_py.options.read import COMPACTION_MEMORY
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult, make_run_id
from hoodie_py.writer.indexes.column_ranges import find_indexed_columns
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.rollback.attempt import list_files_of_instant, remove_files, remove_files_of_run, undo_attempt
from hoodie_py.writer.settings import FileSettings
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import begin_instant
from hoodie_py.writer.transaction.pending import list_rollbacks_of
from hoodie_py.writer.transaction.run_guard import forget_finished

_Plan = TypeVar("_Plan")


def choose_planned(snapshot: Snapshot, pending: Sequence[Instant], instant: str | None, what: str) -> Instant | None:
    """Return the pending instant of a request time; without a time the oldest one, None if there is none.

    Raises:
        InvalidQueryError: nothing is pending at that time.
    """
    if instant is None:
        return pending[0] if pending else None
    found = next((each for each in pending if each.request_time == instant), None)
    if found is None:
        other = snapshot.timeline.find(instant)
        state = f"There is no {what}" if other is None else f"A {other.action} is {other.state}, no pending plan,"
        known = ", ".join(each.request_time for each in pending) or "none"
        raise InvalidQueryError(f"{state} at {instant[:40]!r}.", hint=f"Pending {what}s: {known[:1000]}.")
    return found


def check_no_rollback(snapshot: Snapshot, instant: str, what: str) -> None:
    """Refuse to go on beside a rollback of the instant. Raises ConflictError."""
    running = [each for each in list_rollbacks_of(snapshot, instant) if not each.is_completed]
    if running:
        raise ConflictError(
            f"A rollback of the {what} is under way.", instant=instant, rollback=running[0].request_time
        )


def list_known_rollbacks(snapshot: Snapshot, instant: str) -> frozenset[str]:
    """Return the request times of rollbacks of earlier attempts."""
    return frozenset(each.request_time for each in list_rollbacks_of(snapshot, instant))


def check_still_planned(
    now: Snapshot,
    begun: Instant,
    plan: _Plan,
    read_plan: Callable[[Instant], _Plan],
    known_rollbacks: Collection[str],
    what: str,
) -> Instant:
    """Check that no other writer finished the instant, changed its plan, or rolled it back; return the inflight one.

    Raises:
        ConflictError: one did.
    """
    instant = begun.request_time
    found = now.timeline.find(instant, begun.comparable_action)
    if found is None or found.action != begun.action or found.state != INFLIGHT:
        state = "gone" if found is None else found.state
        raise ConflictError(f"Another writer changed the {what} while it ran: it is {state}.", instant=instant)
    if read_plan(found) != plan:
        raise ConflictError(f"Another writer changed the {what}'s plan while it ran.", instant=instant)
    later = list_known_rollbacks(now, instant).difference(known_rollbacks)
    if later:
        raise ConflictError(f"Another writer rolled the {what} back.", instant=instant, rollback=min(later))
    return found


def with_schema_of(snapshot: Snapshot, instant: str) -> Snapshot:
    """Return the table with the columns that it had at a service's instant, where files are matched by theirs.

    Columns may have been altered since the service was planned (Hudi ``InternalSchemaCache``).
    """
    if snapshot.schema.latest_schema is None:
        return snapshot
    schema = resolve_schema(snapshot.timeline, instant)
    if schema.latest_schema == snapshot.schema.latest_schema:
        return snapshot
    return Snapshot(
        snapshot.files,
        snapshot.config,
        snapshot.timeline,
        timezone=snapshot.timezone,
        view=snapshot.view,
        schema=schema,
    )


def make_run_facts(
    session: WriteSession, snapshot: Snapshot, pending: Instant, schema: OutputSchema, file: FileSettings
) -> CommitFacts:
    """Return what all tasks of a run have in common, with a new run id."""
    return CommitFacts(
        files=snapshot.files,
        config=snapshot.bare_config,
        instant=pending.request_time,
        action=pending.action,
        run_id=make_run_id(),
        schema=schema,
        file=file,
        indexed=find_indexed_columns(snapshot, schema.avro, session.settings.options),
    )


def make_read_options(session: WriteSession) -> ReadOptions:
    """Return how the tasks of a run read."""
    options = session.settings.options
    return ReadOptions(memory_limit=COMPACTION_MEMORY.read(options) or None, options=options)


def begin_planned(
    session: WriteSession,
    snapshot: Snapshot,
    requested: Instant,
    partitions: Iterable[str],
    undo: Callable[[Callable[[], object]], object],
    alive: Heartbeat,
    holding: HeldLock,
) -> None:
    """Make the instant inflight. ``undo`` removes what an earlier attempt left, and calls its argument before that."""
    holding.ensure_held()
    forget_finished(session, snapshot)
    undo(partial(alive.ensure_own, holding))
    for folder in (METADATA_FOLDER, *sorted(set(partitions))):
        session.files.remove_scratch(folder)  # temporary files that killed writers left on a local disk
    holding.ensure_held()
    begin_instant(session, snapshot, requested, alive, holding)


def settle_results(
    files: TableFiles,
    instant: str,
    places: Collection[GroupKey],
    results: Sequence[TaskResult],
    ensure_own: Callable[[], None],
    what: str,
) -> None:
    """Check the base files of the results, and remove those of other attempts. Raises ConflictError."""
    listed = list_files_of_instant(files, instant, places)
    written = {path: size for result in results for path, size in result.sizes.items()}
    for path, size in written.items():
        if listed.get(path) != size:
            raise ConflictError(
                f"A file of the {what} was removed or changed while it ran.", instant=instant, path=path
            )
    remove_files(files, instant, places, keep=written, check=ensure_own)


def put_back(
    session: WriteSession,
    begun: Instant,
    run_id: int,
    places: Collection[GroupKey],
    alive: Heartbeat,
    what: str,
    error: BaseException,
) -> None:
    """Take a failed run back to requested, and note on the error what could not be removed."""
    try:
        remove_files_of_run(session.files, begun.request_time, run_id)
        with session.hold_lock() as holding:
            snapshot = session.look()
            found = snapshot.timeline.find(begun.request_time, begun.comparable_action)
            if found is not None and found.action == begun.action and found.state == INFLIGHT:
                undo_attempt(session, snapshot, found, places, partial(alive.ensure_own, holding))
    except HoodieError as problem:
        error.add_note(f"What the {what} wrote was not all removed: {problem} The next run of it will do that.")
