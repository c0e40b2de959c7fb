"""Making a table: its folders, then its properties file, which is what makes it one.

Of several who make the same table at once exactly one succeeds. The folder of the archived timeline holds an empty
file from the start, as object stores have no empty folders and Java lists the timeline before anything is in it.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from hoodie_py.errors import ConflictError, FileMissingError
from hoodie_py.files import TableFiles
from hoodie_py.formats.properties import format_properties
from hoodie_py.formats.table_config import PROPERTIES_BACKUP_FILE, PROPERTIES_FILE, TableConfig
from hoodie_py.table.timeline_loader import METADATA_FOLDER
from hoodie_py.writer.new_table import NewTable

PLACEHOLDER = ".keep"


def create_table(files: TableFiles, new: NewTable) -> None:
    """Make a table without rows.

    Args:
        files: the place where it will be.
        new: what it will be.

    Raises:
        ConflictError: there is a table already.
        InvalidQueryError: a field that is no column, or properties that contradict each other.
        UnsupportedFeatureError: a column type, version or key generator that is not handled.
        CommitStateUnknownError: the store did not say whether the table was made.
        StorageError: the store refused or failed.
    """
    stored = new.stored()
    _refuse_existing(files)
    config = TableConfig.from_properties(stored)
    if config.timeline_layout > 1:
        files.put(f"{config.history_dir()}/{PLACEHOLDER}", b"")
    now = datetime.now(UTC).isoformat()
    content = format_properties(stored, comment=f"Properties saved on {now}\nMade by hoodie_py, {uuid.uuid4()}")
    try:
        files.put_if_absent(f"{METADATA_FOLDER}/{PROPERTIES_FILE}", content, unique=True)
    except ConflictError as error:
        raise _exists(files) from error


def _refuse_existing(files: TableFiles) -> None:
    try:
        found = {info.name for info in files.list(METADATA_FOLDER)}
    except FileMissingError:
        return
    if found & {PROPERTIES_FILE, PROPERTIES_BACKUP_FILE}:
        raise _exists(files)


def _exists(files: TableFiles) -> ConflictError:
    return ConflictError(
        "There is a Hudi table already.",
        hint="Open it with HoodieTable.open, or choose another place.",
        table=files.uri,
    )
