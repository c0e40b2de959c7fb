"""Flink's checkpoints: by them a streaming job shows which instant it writes to (Hudi ``CkpMetadata``).

A job keeps one instant pending, for hours if no rows come, and fails at its next checkpoint if that instant is gone. By
default it has no heartbeat. But it creates ``.hoodie/.aux/ckp_meta/<instant>.INFLIGHT``, and ``<instant>.COMPLETED``
once the instant is complete. If the job has a client id, the folder's name contains it. An aborted instant is used
again. A job that starts removes the folder. So an INFLIGHT file without a COMPLETED one means that the job runs, or was
stopped and has not been started since. The files do not show which.
"""

from __future__ import annotations

from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER

_FOLDER, _START = f"{METADATA_FOLDER}/.aux", "ckp_meta"
_OPEN, _DONE = ".INFLIGHT", ".COMPLETED"


def find_checkpoint(files: TableFiles, instant: str) -> str | None:
    """Return the path of the file by which a Flink job shows that it writes to a pending instant; None without one.

    Raises:
        StorageError: the store did not answer.
    """
    for folder in files.list_or_empty(_FOLDER):
        if folder.is_dir and folder.name.startswith(_START):
            found = {each.name: each.path for each in files.list_or_empty(folder.path)}
            if f"{instant}{_OPEN}" in found and f"{instant}{_DONE}" not in found:
                return found[f"{instant}{_OPEN}"]
    return None
