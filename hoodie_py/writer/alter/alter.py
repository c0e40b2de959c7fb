"""Alter the columns of a table by schema-on-read (Hudi ``AlterTableCommand``).

The alteration is a commit without files, of operation ALTER_SCHEMA. It records the new schema, with ids, and the
history of all versions; from then on files are read by these ids. A table without ids gets them at its first
alteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from hoodie_py.arrow.fields import relax_structs
from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.merge_config import DELETE_FIELD
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.alter.changes import Changes, change_columns
from hoodie_py.writer.column_ids import TableColumns
from hoodie_py.writer.commit.conflicts import Claims
from hoodie_py.writer.commit.first_look import Intent
from hoodie_py.writer.commit.write_commit import open_commit
from hoodie_py.writer.index_jobs.services import run_metadata_services
from hoodie_py.writer.input.conform import find_write_schema
from hoodie_py.writer.input.evolution import check_protected
from hoodie_py.writer.output_schema import select_data_columns
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.timeline.session import WriteSession

_OF_ANY_COLUMNS = (names.COLUMN_STATS, names.RECORD_INDEX, names.BLOOM_FILTERS)


@dataclass(frozen=True, slots=True)
class AlterResult(Sentence):
    """What an alteration did, or would do.

    Attributes:
        changes: one sentence for each change of a column.
        schema: the columns after it, without meta columns.
        instant, completion_time: request and completion time of its commit; None if there is none.

    Examples:
        >>> result = trips.alter(add={"tip": pa.float64()})
        >>> print(result)
        Altered at ...:
          tip is added, of type double
        >>> result.schema.names[-1]
        'tip'
    """

    changes: tuple[str, ...]
    schema: pa.Schema
    instant: str | None = None
    completion_time: str | None = None

    def __str__(self) -> str:
        if not self.changes:
            return "Nothing to alter: the table has these columns."
        head = "Not altered yet" if self.instant is None else f"Altered at {self.instant}"
        return "\n".join([f"{head}:", *(f"  {each}" for each in self.changes)])


def alter(session: WriteSession, changes: Changes, *, dry_run: bool = False) -> AlterResult:
    """Change the table's columns; ``dry_run`` only returns what would change.

    Raises:
        InvalidQueryError: a change is not allowed.
        UnsupportedFeatureError: the table has a feature or a type that is not handled.
        ConflictError: another writer changed the table, or is at work.
        CommitStateUnknownError: the store did not say whether the commit landed.
        StorageError: the store refused; the table is unchanged.
    """
    snapshot = session.look() if dry_run else undo_failed_writes(session)
    known = find_write_schema(snapshot)
    if known is None:
        raise InvalidQueryError("The table has no columns yet.", hint="Write rows to it first.")
    _check_dependents(snapshot, changes)
    table = TableColumns(known)
    columns = change_columns(table.columns, changes, table.numbers)
    altered = table.become(columns)
    check_protected(snapshot.config, known.arrow, altered.arrow)
    sentences = tuple(_describe(changes))
    schema = pa.schema([relax_structs(field) for field in select_data_columns(altered.arrow)])
    if columns == table.columns:
        return AlterResult((), schema)
    if dry_run:
        return AlterResult(sentences, schema)
    # Checked again under the lock, as an index over a column may be built until then.
    check = partial(_check_dependents, changes=changes)
    intent = Intent(WriteOperation.ALTER_SCHEMA, snapshot, altered, Claims(looked_up=False), check=check)
    return _commit(session, snapshot, intent, AlterResult(sentences, schema))


def _commit(session: WriteSession, snapshot: Snapshot, intent: Intent, result: AlterResult) -> AlterResult:
    run_metadata_services(session, snapshot)
    with open_commit(session, intent) as begun:
        completion_time = begun.commit(())
    return AlterResult(result.changes, result.schema, begun.instant, completion_time)


def _check_dependents(snapshot: Snapshot, changes: Changes) -> None:
    """Refuse to drop or rename a column that the table needs under its name, or a struct around such a column."""
    needed = dict(_list_needed(snapshot.config))
    for definition in read_definitions(snapshot.files, snapshot.config):
        if (
            definition.kind not in (names.COLUMN_STATS, names.RECORD_INDEX, names.BLOOM_FILTERS)
            or definition.is_expression
        ):
            needed |= dict.fromkeys(definition.columns, f"the index {definition.name} is of it; drop the index first")
    for name in (*changes.drop, *changes.rename):
        for column, why in needed.items():
            if column == name or column.startswith(f"{name}."):
                raise InvalidQueryError(f"The column {name!r} can be neither dropped nor renamed: {why}.", column=name)
    for name in changes.cast:
        if "index" in needed.get(name, ""):
            raise InvalidQueryError(f"The column {name!r} cannot change its type: {needed[name]}.", column=name)


def _list_needed(config: TableConfig) -> Iterator[tuple[str, str]]:
    for fields, why in (
        (config.record_key_fields, "record keys are made of it"),
        (config.partition_fields, "partition paths are made of it"),
        ((*config.ordering_fields, *config.merge_ordering_fields), "versions are ordered by it"),
        (("_hoodie_is_deleted", config.merge_properties.get(DELETE_FIELD, "")), "it marks deleted rows"),
    ):
        for name in filter(None, fields):
            yield name, why


def _describe(changes: Changes) -> Iterator[str]:
    yield from (f"{name} is dropped" for name in changes.drop)
    yield from (f"{name} becomes {new}" for name, new in changes.rename.items())
    yield from (f"{name} becomes {type_}" for name, type_ in changes.cast.items())
    yield from (f"{name} may be null" for name in changes.nullable)
    for name, text in changes.comment.items():
        yield f"{name} has no comment" if text is None else f"{name} has the comment {text!r}"
    yield from (f"{name} is added, of type {new.type}" for name, new in changes.add.items())
    yield from (f"{name} moves {place}" for name, place in changes.reorder.items())
