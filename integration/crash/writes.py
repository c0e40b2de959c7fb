"""Writes that are cut short: what each writes to a table, and the rows that must be there afterwards.

The rows are computed here, from those that were there before; nothing is taken from a write that went well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable, TableFiles
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.commit import tasks as write_tasks
from hoodie_py.writer.create import NewTable, create_table
from integration.crash import checks
from integration.crash.operations import Subject
from integration.crash.stores import open_table

KEY, PARTITION = "_hoodie_record_key", "_hoodie_partition_path"
CREATED = "created"
"""Folder of the table that is made while one is cut short."""

CHANGED, RENAMED, ADDED = "name", "label", "extra"
"""Columns of tables made here: the one that changes, its name after an alteration, and the one that this adds."""

Rows = Mapping[tuple[str, str], str]
"""The text of each row's data by partition path and record key."""


@dataclass(frozen=True)
class WriteSubject(Subject):
    """What a write is about.

    Attributes:
        rows: of the table before.
        data: rows to write: some of the table's, changed, and new ones where the table can take them.
        new: new rows alone; None where the table takes none.
        keys: records to delete.
        changed: the changed ones of ``data``.
        partition: that an overwrite is about.
        next_data: what the next writer writes.
    """

    rows: Rows = field(default_factory=dict)
    data: pa.Table | None = None
    new: pa.Table | None = None
    keys: tuple[str, ...] = ()
    changed: pa.Table | None = None
    partition: str = ""
    next_data: pa.Table | None = None

    def without(self, keys: tuple[str, ...]) -> dict[tuple[str, str], str]:
        return {place: row for place, row in self.rows.items() if place[1] not in keys}


def one_thread() -> None:
    """Let this process, which is a child, make its storage calls in the same order each time."""
    os.environ["HOODIE_PY_READ_THREADS"] = "1"
    vars(write_tasks)["count_cores"] = lambda: 1


def upsert(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.upsert(_data(subject.data), subject.options)


def insert(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.insert(_data(subject.new), subject.options)


def bulk_insert(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.bulk_insert(_data(subject.new), subject.options)


def delete(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.delete(list(subject.keys), subject.options)


def delete_where(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    keys = ", ".join(f"'{key}'" for key in subject.keys)
    column = KEY if table.config.populate_meta_fields else "id"
    return table.delete(f"{column} in ({keys})", subject.options)


def merge(table: HoodieTable, subject: WriteSubject) -> Any:
    """Do what an upsert does, by a merge that sets all columns and inserts the rest."""
    one_thread()
    config = table.config
    return table.merge(
        _data(subject.data),
        [*config.record_key_fields, *config.partition_fields],
        when_matched="update",
        when_not_matched="insert",
        options=subject.options,
    )


def update(table: HoodieTable, subject: WriteSubject) -> Any:
    """Change what an upsert changes, by an expression."""
    one_thread()
    assert subject.changed is not None
    keys = ", ".join(f"'{key}'" for key in subject.changed[KEY].to_pylist())
    return table.update({CHANGED: f'concat({CHANGED}, "\'")'}, f"id in ({keys})", subject.options)


def delete_partition(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.delete_partition(subject.partition, subject.options)


def empty_partition(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.insert_overwrite(_data(subject.data).slice(0, 0), subject.options, partitions=[subject.partition])


def alter(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.alter(add={ADDED: "int"}, rename={CHANGED: RENAMED}, options=subject.options)


def insert_overwrite(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.insert_overwrite(_data(_in_partition(subject)), subject.options)


def insert_overwrite_table(table: HoodieTable, subject: WriteSubject) -> Any:
    one_thread()
    return table.insert_overwrite_table(_data(subject.data), subject.options)


def create(table: HoodieTable, subject: WriteSubject) -> None:
    """Make a table beside the given one's files, on the same store."""
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    new = NewTable(CREATED, schema, record_key=("id",), ordering=("ts",), version=table.config.version)
    create_table(table.files.sub(CREATED), new)


@dataclass(frozen=True)
class Write:
    """One kind of write.

    Attributes:
        name: of it in reports.
        act: does it.
        after: returns the rows that must be there afterwards.
    """

    name: str
    act: Callable[[HoodieTable, WriteSubject], Any]
    after: Callable[[WriteSubject], Rows]
    setup: tuple[str, ...] = ()
    pending: str = ""
    done: str | None = None
    removes: bool = False
    undoes_a_write: bool = False
    folds: bool = False


def subject_of_write(files: TableFiles, options: Mapping[str, str]) -> WriteSubject:
    """Look at a table and think of what to write to it."""
    table = open_table(files)
    found = _with_places(table, table.scan().to_arrow())
    config = table.config
    if not len(found):
        return _of_empty(table, options)
    found = found.sort_by([(KEY, "ascending"), (PARTITION, "ascending")])
    once = found.filter(pa.array([found[KEY].to_pylist().count(key) == 1 for key in found[KEY].to_pylist()]))
    key_fields = config.record_key_fields or ("id",)
    fixed = {*key_fields, *config.partition_fields, *config.ordering_fields}
    changed = _changed(once.slice(0, 3), fixed)
    new = _renamed(once.slice(0, 2), key_fields, "90000")
    next_data = _changed(once.slice(len(once) - 2, 2), fixed)
    return WriteSubject(
        options,
        newest=_newest(table),
        rows=rows_of(found),
        data=pa.concat_tables([changed, new]),
        new=new,
        keys=tuple(once[KEY].to_pylist()[2:4]),
        changed=changed,
        partition=once[PARTITION][0].as_py(),
        next_data=next_data if config.record_key_fields else _renamed(next_data, key_fields, "80000"),
    )


def _of_empty(table: HoodieTable, options: Mapping[str, str]) -> WriteSubject:
    """Think of first rows: five, with the meta columns that they will have."""
    rows = [
        {"id": f"k{at}", "part": f"p{at % 2}", "ts": 1, "name": "n", KEY: f"k{at}", PARTITION: f"p{at % 2}"}
        for at in range(5)
    ]
    data = pa.Table.from_pylist(rows, table.schema)
    return WriteSubject(options, data=data.slice(0, 3), new=data.slice(0, 3), partition="p0", next_data=data.slice(2))


def told_otherwise(snapshot: Snapshot, since: str) -> list[str]:
    """Compare what the metadata table was told by each write since an instant with what the write's commit says."""
    if not snapshot.config.metadata_partitions:
        return []
    files = snapshot.files.sub(checks.METADATA)
    told = {each.request_time for each in checks.list_told(files)}
    done = [each for each in snapshot.timeline.list_completed_writes() if each.request_time > since]
    found = [f"the metadata table has {each}" for each in told if each > since and each not in _times(snapshot)]
    for instant in done:
        said = checks.named_files(snapshot, instant)
        records = checks._records(files, instant.request_time) if instant.request_time in told else []
        added = {path: size for path, size, gone in records if not gone}
        if added != said:
            found.append(f"the metadata table says {added} of {instant.request_time}, the commit says {said}")
    return found


def _times(snapshot: Snapshot) -> set[str]:
    return {each.request_time for each in snapshot.timeline if each.is_completed}


def rows_of(found: pa.Table) -> dict[tuple[str, str], str]:
    """Return the rows by place; a key that is twice in a partition is an error."""
    data = found.select([name for name in found.schema.names if not name.startswith("_hoodie_") or "deleted" in name])
    places = zip(found[PARTITION].to_pylist(), found[KEY].to_pylist(), strict=True)
    rows = dict(zip(places, map(repr, data.to_pylist()), strict=True))
    assert len(rows) == len(found), "a key is there twice"
    return rows


def rows_at(files: TableFiles, query_type: str = "snapshot") -> dict[tuple[str, str], str]:
    """Return the rows of a table as it is now."""
    table = open_table(files)
    return rows_of(_with_places(table, table.scan(query_type=query_type).to_arrow()))


def _with_places(table: HoodieTable, found: pa.Table) -> pa.Table:
    """Return rows with key and partition path, which those of a table without meta fields do not have; keys that
    writes make up are not known before.
    """
    if not table.config.record_key_fields:
        return found.set_column(found.schema.get_field_index(KEY), KEY, found.column("id"))
    if table.config.populate_meta_fields:
        return found
    return found.append_column(KEY, found.column("id")).append_column(PARTITION, found.column("part"))


def strays(snapshot: Snapshot, new: list[str]) -> list[str]:
    """Return data files that no completed commit names."""
    named = {path for each in snapshot.timeline.list_completed_writes() for path in checks.named_files(snapshot, each)}
    return [path for path in new if checks.is_data_file(path) and path not in named]


def commits(table: HoodieTable) -> int:
    """How many writes the table's timeline has."""
    return sum(
        each.is_completed and each.action in ("commit", "deltacommit", "replacecommit") for each in table.timeline
    )


def altered(data: pa.Table) -> pa.Table:
    """Return rows as they are to write once the table has been altered."""
    names = [RENAMED if name == CHANGED else name for name in data.schema.names]
    return data.rename_columns(names).append_column(ADDED, pa.nulls(len(data), pa.int32()))


def _of_altered(rows: Rows) -> Rows:
    return {
        place: text.replace(f"'{CHANGED}':", f"'{RENAMED}':")[:-1] + f", '{ADDED}': None}}"
        for place, text in rows.items()
    }


def _without_partition(about: WriteSubject) -> Rows:
    return {place: row for place, row in about.rows.items() if place[0] != about.partition}


def _told(table: pa.Table | None) -> Rows:
    return {} if table is None else rows_of(table)


def _data(table: pa.Table | None) -> pa.Table:
    """Return rows as a caller has them, without meta columns."""
    assert table is not None
    return table.select([name for name in table.schema.names if not name.startswith("_hoodie_") or "deleted" in name])


def _in_partition(subject: WriteSubject) -> pa.Table:
    data = subject.data
    assert data is not None
    return data.filter(pa.array([path == subject.partition for path in data[PARTITION].to_pylist()]))


def _overwritten(subject: WriteSubject) -> Rows:
    kept = {place: row for place, row in subject.rows.items() if place[0] != subject.partition}
    return {**kept, **_told(_in_partition(subject))}


def _changed(rows: pa.Table, fixed: set[str]) -> pa.Table:
    """Change a value of each row: a number or text that is neither key, nor partition, nor ordering value."""
    for at, each in enumerate(rows.schema):
        if each.name in fixed or each.name.startswith("_hoodie_"):
            continue
        values = rows.column(at).to_pylist()
        if pa.types.is_string(each.type):
            return rows.set_column(at, each, pa.array([f"{value}'" for value in values], each.type))
        if pa.types.is_floating(each.type) or pa.types.is_integer(each.type):
            return rows.set_column(at, each, pa.array([(value or 0) + 1 for value in values], each.type))
    raise AssertionError("no column to change")


def _renamed(rows: pa.Table, fields: tuple[str, ...], mark: str) -> pa.Table:
    """Give rows keys that nobody has: of tables whose key is one field."""
    [name] = fields
    at, key_at = rows.schema.get_field_index(name), rows.schema.get_field_index(KEY)
    keys = [f"{mark}{number}" for number in range(len(rows))]
    renamed = rows.set_column(at, rows.schema.field(at), pa.array(keys).cast(rows.schema.field(at).type))
    return renamed.set_column(key_at, rows.schema.field(key_at), pa.array(keys))


def _newest(table: HoodieTable) -> str:
    return max((max(each.request_time, each.completion_time or "") for each in table.timeline), default="")


WRITES = {
    each.name: each
    for each in (
        Write("upsert", upsert, lambda about: {**about.rows, **_told(about.data)}),
        Write("merge", merge, lambda about: {**about.rows, **_told(about.data)}),
        Write("insert", insert, lambda about: {**about.rows, **_told(about.new)}),
        Write("bulk insert", bulk_insert, lambda about: {**about.rows, **_told(about.new)}),
        Write("delete", delete, lambda about: about.without(about.keys)),
        Write("delete by filter", delete_where, lambda about: about.without(about.keys)),
        Write("insert overwrite", insert_overwrite, _overwritten),
        Write("insert overwrite table", insert_overwrite_table, lambda about: _told(about.data)),
        Write("update", update, lambda about: {**about.rows, **_told(about.changed)}),
        Write("delete a partition", delete_partition, _without_partition),
        Write("empty a partition", empty_partition, _without_partition),
        Write("alter", alter, lambda about: _of_altered(about.rows)),
        Write("create", create, lambda about: about.rows),
    )
}
