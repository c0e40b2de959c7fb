"""Files that are gone because the table moved on: a conflict with another writer, not a loss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hoodie_py.errors import ConflictError, FileMissingError, HoodieError
from hoodie_py.formats.timeline import Timeline
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.session import WriteSession


@contextmanager
def turn_missing_into_conflict(session: WriteSession, snapshot: Snapshot) -> Iterator[None]:
    """Make a file that is missing a conflict where another writer changed the table since the snapshot.

    A write that was taken back, a clean or a rollback takes files along that a slower writer still means to read.

    Args:
        session: of the writing call.
        snapshot: the table that the block rests on.

    Raises:
        ConflictError: in place of the error about the file.
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
    """Whether something completed or went; what has begun, such as the block's own write, does not count."""
    had, has = _list_states(before), _list_states(now)
    return bool(had - has) or any(completed for *_, completed in has - had)


def _list_states(timeline: Timeline) -> set[tuple[str, str, bool]]:
    return {(each.request_time, each.comparable_action, each.is_completed) for each in timeline}
