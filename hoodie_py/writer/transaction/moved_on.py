"""Tell a file that another writer removed from a file that is lost: the first is a conflict, the second an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hoodie_py.errors import ConflictError, FileMissingError, HoodieError
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.timeline.session import WriteSession


@contextmanager
def turn_missing_into_conflict(session: WriteSession, snapshot: Snapshot) -> Iterator[None]:
    """Turn a missing file into a conflict if another writer changed the table since the snapshot.

    A rollback or a clean may remove files that a slower writer is about to read.

    Raises:
        ConflictError: instead of the error about the file.
    """
    try:
        yield
    except HoodieError as error:
        missing = isinstance(error, FileMissingError) or isinstance(error.__cause__, FileMissingError)
        if not missing or not _has_changed(snapshot.timeline.timeline, session.look().timeline.timeline):
            raise
        raise ConflictError(
            f"The table changed while it was read: {error.message}", hint="Try again.", **error.where
        ) from error


def _has_changed(before: Timeline, now: Timeline) -> bool:
    """Whether an instant completed or disappeared. A new pending instant does not count: it may be the block's own."""
    had, has = _list_states(before), _list_states(now)
    return bool(had - has) or any(completed for *_, completed in has - had)


def _list_states(timeline: Timeline) -> set[tuple[str, str, bool]]:
    return {(each.request_time, each.comparable_action, each.is_completed) for each in timeline}
