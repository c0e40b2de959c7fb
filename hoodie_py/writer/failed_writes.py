"""Older writes that failed and are still pending when something later completes.

Where writers clean up eagerly, Java rolls back a pending write at its next one - but not past a later commit, unless it
finds the write's heartbeat file, however old (Hudi ``BaseRollbackActionExecutor``). So before a later commit such a
file is left for each of them. Its content tells it from the sign of life of a writer.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie_py.files import TableFiles
from hoodie_py.formats.instants import Instant
from hoodie_py.writer.heartbeat import HEARTBEAT_FOLDER, LEFT_FOR_JAVA


def leave_heartbeats(files: TableFiles, failed: Iterable[Instant]) -> None:
    """Let Java roll back writes although something later is about to complete."""
    for instant in failed:
        path = f"{HEARTBEAT_FOLDER}/{instant.request_time}"
        if not files.exists(path):
            files.put(path, LEFT_FOR_JAVA)
