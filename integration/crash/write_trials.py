"""Trials of writes: one write to one table, cut short at one storage call in one way; then the checks.

    python -m integration.crash.write_trials --share 0.1 --seed 7

After the fault the table has the rows of before or those of after: of after where the write returned, of before where
it failed otherwise than by not knowing. Then the next writer writes, or takes the failed write back first: its rows are
there, nothing is pending, and no data file is left that no commit names.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any

from hoodie_py import CommitStateUnknownError, TableFiles, TableNotFoundError
from hoodie_py.writer.pipeline import write as write_data  # noqa: F401  before the first fork
from integration.crash import checks
from integration.crash.children import DIED, DONE
from integration.crash.stores import Place, State, files_at, open_table
from integration.crash.trials import Answer, Bench, NotPossible
from integration.crash.write_tables import WRITE_TABLES, write_table
from integration.crash.writes import (
    ADDED,
    CREATED,
    WRITES,
    Rows,
    Write,
    WriteSubject,
    altered,
    commits,
    create,
    insert,
    rows_at,
    rows_of,
    strays,
    subject_of_write,
    told_otherwise,
    upsert,
)

OF_MADE = ("update", "alter")
BY_KEY = ("upsert", "merge", "delete", "delete by filter")
BEFORE, AFTER, NEITHER = "before", "after", "neither"


class WriteBench(Bench):
    """One write to one table on one store; arguments as for ``Bench``."""

    _subject: WriteSubject

    def __init__(
        self, place: Place, state: State, operation: Write, options: dict[str, str], name: str, lock: str
    ) -> None:
        self._ends: dict[Any, str] = {}
        self._write = operation
        super().__init__(place, state, operation, options, name, lock)  # type: ignore[arg-type]

    @cached_property
    def _wanted(self) -> Rows:
        return self._write.after(self._subject)

    def _look(self) -> tuple[int, bool, WriteSubject, str]:
        files = files_at(self._place)
        config = open_table(files).config
        subject = subject_of_write(files, self._options)
        return config.version, bool(config.metadata_partitions), subject, ""

    def _of_files(self, answer: Answer, sizes: dict[str, int]) -> list[str]:
        found = super()._of_files(answer, sizes)
        end = self._end(sizes)
        if answer.outcome == DONE and end != AFTER:
            found.append(f"it returned, and the rows are those of {end}")
        if answer.outcome not in (DONE, DIED, CommitStateUnknownError.__name__) and end != BEFORE:
            found.append(f"it failed, and the rows are those of {end}")
        return found

    def _end(self, sizes: dict[str, int]) -> str:
        key = self._key(sizes)
        if key not in self._ends:
            self._ends[key] = str(self._ask(self._what_is_there, 1.0))
        return self._ends[key]

    def _what_is_there(self) -> str:
        if self._write.act is create:
            return AFTER if _is_table(self._created) else BEFORE
        rows = rows_at(files_at(self._place))
        return AFTER if rows == self._wanted else BEFORE if rows == self._subject.rows else NEITHER

    @property
    def _created(self) -> TableFiles:
        return files_at(self._place).sub(CREATED)

    # In a process of its own ----------------------------------------------------------------------------------------

    def _problems(self, *, undo_first: bool) -> list[str]:
        if self._write.act is create:
            return self._problems_of_a_creation()
        files = files_at(self._place)
        now = rows_at(files)
        if now not in (self._wanted, self._subject.rows):
            return ["the rows are neither those of before nor those of after"]
        had = commits(open_table(files))
        expected = self._subject_commits + (now == self._wanted)
        found = [] if had == expected else [f"there are {had} commits, not {expected}"]
        self._place.let_time_pass(3600)
        found += self._next_writer(files, dict(now), undo_first=undo_first)
        snapshot, sizes = open_table(files)._snapshot, self._place.sizes()
        found += [f"stray {path}" for path in strays(snapshot, [path for path in sizes if path not in self._sizes])]
        found += [f"orphan {path}" for path in checks.orphans(snapshot, sizes)]
        found += [
            f"{path} has {sizes.get(path)} bytes, not {size}"
            for each in snapshot.timeline.list_completed_writes()
            for path, size in checks.named_files(snapshot, each).items()
            if sizes.get(path) != size and path.endswith(".cdc")
        ]
        found += told_otherwise(snapshot, self._subject.newest)
        found += [f"wrong in the metadata table: {each}" for each in open_table(files).verify(data=False).findings]
        found += [f"left over: {path}" for path in sizes if "/.temp/" in path and not path.endswith(checks.SCRATCH)]
        found += [
            f"still pending: {each.request_time}" for each in open_table(files).timeline.select_pending()
            if each.request_time > self._subject.newest
        ]  # fmt: skip
        return found + self._compacted(files, undo_first=undo_first)

    def _next_writer(self, files: TableFiles, now: dict[tuple[str, str], str], *, undo_first: bool) -> list[str]:
        if undo_first:
            for each in list(open_table(files).timeline.select_pending()):
                if (
                    each.action in ("commit", "deltacommit", "replacecommit")
                    and each.request_time > self._subject.newest
                ):
                    open_table(files).rollback(each.request_time, self._options)
            if rows_at(files) != now:
                return ["a rollback changed the rows"]
        data, table = self._subject.next_data, open_table(files)
        assert data is not None
        if ADDED in table.schema.names:
            data = altered(data)
        write = upsert if table.config.record_key_fields else insert
        write(table, WriteSubject(self._options, data=data, new=data))
        return [] if rows_at(files) == {**now, **rows_of(data)} else ["the rows after the next write are others"]

    def _compacted(self, files: TableFiles, *, undo_first: bool) -> list[str]:
        """Compact for half of the ends."""
        if undo_first or not open_table(files).config.is_merge_on_read:
            return []
        before = rows_at(files)
        open_table(files).compact(options=self._options)
        if rows_at(files) == rows_at(files, "read_optimized") == before:
            return []
        return ["the compacted rows are others"]

    @cached_property
    def _subject_commits(self) -> int:
        done = [path for path in self._sizes if path.startswith(".hoodie/") and "/metadata/" not in path]
        endings = (".commit", ".deltacommit", ".replacecommit")
        return sum(path.rpartition("/")[2].endswith(endings) for path in done if path.count("/") <= 2)

    def _problems_of_a_creation(self) -> list[str]:
        files = self._created
        if not _is_table(files):
            table = open_table(files_at(self._place))
            create(open_table(table.files), self._subject)
        open_table(files).upsert([{"id": "a", "ts": 1}], self._options)
        found = open_table(files).scan(columns=["id", "ts"]).to_arrow().to_pylist()
        return [] if found == [{"id": "a", "ts": 1}] else [f"the created table has {found}"]


def _is_table(files: TableFiles) -> bool:
    try:
        return open_table(files).scan().count() == 0
    except TableNotFoundError:
        return False


def bench_of(place: Place, name: str, operation: str, options: dict[str, str], lock: str) -> WriteBench:
    """Return the bench of a write.

    Raises:
        NotPossible: the write does not go with the table.
    """
    if name.startswith("empty") and operation.startswith(("delete", "empty", "update", "alter")):
        raise NotPossible("there is nothing to delete")
    if operation in OF_MADE and not name.startswith("made"):
        raise NotPossible("it is of a column of the tables that are made here")
    if name.endswith("keyless") and operation in BY_KEY:
        raise NotPossible("keys that are made up are not known before")
    return WriteBench(place, write_table(name), WRITES[operation], options, name, lock)


if __name__ == "__main__":
    from integration.crash.__main__ import Campaign, main

    sys.exit(main(campaign=Campaign(tuple(WRITE_TABLES), tuple(WRITES), bench_of)))
