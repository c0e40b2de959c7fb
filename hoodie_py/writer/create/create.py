"""Create a table: its folders first, then its properties file, which makes it a table.

If several programs create the same table at once, exactly one succeeds. The other functions convert the arguments of
``HoodieTable.create`` to the form that ``NewTable`` takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hoodie_py.errors import CommitStateUnknownError, ConflictError, FileMissingError, HoodieError, InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import format_properties
from hoodie_py.formats.config.table_config import PROPERTIES_BACKUP_FILE, PROPERTIES_FILE, TableConfig
from hoodie_py.formats.config.whole_properties import seal_properties
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.timeline.loader import load_timeline
from hoodie_py.writer.create.new_table import NewTable
from hoodie_py.writer.lock.lock import hold
from hoodie_py.writer.lock.machine import MachineLock
from hoodie_py.writer.timeline.folder_tree import remove_tree

PLACEHOLDER = ".keep"
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CreatedTable:
    """A new table: its files, and the content of its properties file, which is unique."""

    files: TableFiles
    content: bytes = field(repr=False)

    @classmethod
    def load(cls, files: TableFiles) -> CreatedTable:
        """Return a table that the caller has just created."""
        return cls(files, files.read(f"{METADATA_FOLDER}/{PROPERTIES_FILE}"))

    @contextmanager
    def undo_on_failure(self) -> Iterator[None]:
        """Remove the table if the block, which writes to it first, is refused or fails.

        It stays if any writer has begun to write, or if it is unknown whether the write was committed.
        """
        try:
            yield
        except CommitStateUnknownError:
            raise
        except Exception as error:
            try:
                self._undo()
            except HoodieError as problem:
                error.add_note(f"The table that was made for it is still there: {problem}")
            raise

    def _undo(self) -> None:
        path = f"{METADATA_FOLDER}/{PROPERTIES_FILE}"
        with hold(MachineLock(self.files), _WAIT_SECONDS):
            config = TableConfig.from_bytes(self.content)
            # Another process may have made the table anew, or have begun to write: then it is no longer this one's.
            if self.files.read(path, len(self.content) + 1) != self.content or len(load_timeline(self.files, config)):
                return
            self.files.delete_with_checksum(path)
            remove_tree(self.files, METADATA_FOLDER)


def create_table(files: TableFiles, new: NewTable) -> CreatedTable:
    """Create a table without rows; the result can remove it again.

    Raises:
        ConflictError: a table exists already.
        InvalidQueryError: a field is no column, or properties contradict each other.
        UnsupportedFeatureError: a column type, version or key generator is not handled.
        CommitStateUnknownError: the store did not say whether the table was created.
        StorageError: the store refused or failed.
    """
    stored = new.make_properties()
    _refuse_existing(files)
    config = TableConfig.from_properties(stored)
    if config.timeline_layout > 1:
        # Object stores have no empty folders, and Java lists this folder before anything is archived.
        files.put(f"{config.find_history_folder()}/{PLACEHOLDER}", b"")
    now = datetime.now(UTC).isoformat()
    content = seal_properties(
        format_properties(stored, comment=f"Properties saved on {now}\nMade by hoodie_py, {uuid.uuid4()}")
    )
    try:
        files.put_if_absent(f"{METADATA_FOLDER}/{PROPERTIES_FILE}", content, unique=True)
    except ConflictError as error:
        raise _make_exists_error(files) from error
    return CreatedTable(files, content)


def _refuse_existing(files: TableFiles) -> None:
    try:
        found = {info.name for info in files.list(METADATA_FOLDER)}
    except FileMissingError:
        return
    if found & {PROPERTIES_FILE, PROPERTIES_BACKUP_FILE}:
        raise _make_exists_error(files)


def _make_exists_error(files: TableFiles) -> ConflictError:
    return ConflictError(
        "There is a Hudi table already.",
        hint="Open it with HoodieTable.open, or choose another place.",
        table=files.uri,
    )


def make_default_name(files: TableFiles) -> str:
    """Return the last part of the base path: the default name of a table."""
    return files.uri.rstrip("/").rsplit("/", 1)[-1]


def to_arrow_schema(schema: Any) -> pa.Schema:
    """Convert a schema, or an object that exports one.

    Raises:
        InvalidQueryError: it is neither a schema nor exports one.
    """
    if isinstance(schema, pa.Schema):
        return schema
    if hasattr(schema, "__arrow_c_schema__"):
        return pa.schema(schema)
    raise InvalidQueryError(f"The schema must be an Arrow schema, not {type(schema).__name__}.")


def split_field_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return field names; a single text may list them with commas."""
    names = given.split(",") if isinstance(given, str) else given
    return tuple(each.strip() for each in names if each.strip())


def resolve_strategy_id(merger: Merger | None, strategy_id: str | None) -> str | None:
    """Return the merge strategy id of a merger, or ``strategy_id`` if there is no merger.

    Raises:
        InvalidQueryError: the merger has no strategy id, or another one than ``strategy_id``.
    """
    if merger is None:
        return strategy_id
    named = getattr(merger, "strategy_id", None)
    if not named:
        raise InvalidQueryError(f"The merger {merger!r} has no strategy_id, so the table cannot name it.")
    if strategy_id not in (None, named):
        raise InvalidQueryError(
            "The arguments merger and merge_strategy_id name different mergers.", hint="Give one of them."
        )
    return str(named)


def to_property_texts(properties: Mapping[str, Any] | None) -> dict[str, str]:
    """Convert property values to the stored texts; booleans in lower case."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (properties or {}).items()
    }
