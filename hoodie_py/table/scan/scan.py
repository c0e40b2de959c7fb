"""Scan: a lazy query of one snapshot of a table, and the functions that make one from a caller's arguments.

The instant, the schema and the columns are fixed when the scan is made, and every argument is checked then. Files are
listed and read when a caller asks for rows. So the same scan returns the same rows each time, while the table changes.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from hoodie_py.arrow.fields import make_nullable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.options.read import AS_OF_INSTANT, AS_READ_OPTIMIZED, QUERY_TYPE
from hoodie_py.reader.read_info import ReadOptions, choose_batch_rows
from hoodie_py.runtime.fold_gate import FoldGate
from hoodie_py.runtime.telemetry import is_watched, watch, watch_steps
from hoodie_py.table.scan.arguments import ScanArguments, check_positive, choose_columns, read_option_texts
from hoodie_py.table.scan.frames import ScanFrames
from hoodie_py.table.scan.html_table import format_html_table
from hoodie_py.table.scan.query import Query, Request, SnapshotQuery, Task
from hoodie_py.table.scan.threads import Numbered, count_threads, read_in_threads
from hoodie_py.table.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.reader.read_info import ReadStats
    from hoodie_py.table.filter.predicate import Predicate
    from hoodie_py.table.filter.sql_settings import SqlSettings
    from hoodie_py.table.scan.explanation import Explanation
    from hoodie_py.table.scan.measured import ReadReport

_FEW_BATCHES = 4
_QUERY_TYPES = ("snapshot", "read_optimized")


@dataclass(frozen=True)
class Scan(ScanFrames, Request):
    """Rows of one snapshot of a table; make one with ``HoodieTable.scan``.

    ``query`` is the kind of query and reads the rows.

    Examples:
        >>> scan = trips.scan(columns=["id", "price"])
        >>> scan
        Scan('trips', at ..., 2 columns)
        >>> pa.table(scan).num_rows  # a scan is an Arrow stream, so other libraries take it as it is
        3
    """

    query: Query = field(default_factory=SnapshotQuery)

    @property
    def query_type(self) -> str:
        """The kind of query: "snapshot" merges base and log files, "read_optimized" reads base files only, ...

        Examples:
            >>> trips.scan().query_type, trips.incremental().query_type
            ('snapshot', 'incremental')
        """
        return self.query.kind

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result.

        Examples:
            >>> trips.scan(columns=["id", "price"]).schema.names
            ['id', 'price']
        """
        columns = self.query.find_schema(self.snapshot)
        return make_nullable(columns.field(name) for name in self.columns)

    @property
    def instant(self) -> str | None:
        """The instant the scan is pinned to; None for a table without commits.

        Examples:
            >>> trips.scan().instant == trips.timeline.last.request_time
            True
        """
        return self.snapshot.instant

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        with watch("plan", self.snapshot.files, instant=self.instant, query_type=self.query_type) as watched:
            tasks = tuple(self.query.make_tasks(self))
            if is_watched():
                watched.tell(slices=len(tasks), bytes=sum(task.size for task in tasks))
            return tasks

    def tasks(self) -> list[Task]:
        """Return the scan's picklable tasks, one for each file slice. Together they yield its rows, before the limit.

        Examples:
            >>> sum(batch.num_rows for task in trips.scan().tasks() for batch in task.to_batches())
            3
        """
        return list(self._tasks)

    def explain(self, analyze: bool = False) -> Explanation:
        """Plan the scan again, and return what it would read, what was left out by which index, and what planning cost.

        With ``analyze`` the rows are also read and dropped, and ``read`` of the result reports on that.

        Raises:
            UnsupportedFeatureError: the scan does not show the table at one instant.

        Examples:
            >>> print(trips.scan(filter="city = 'la'").explain())
            A snapshot query of 'trips' at ..., where city = 'la'.
            1 partition that may hold wanted rows by their values: 1 file slice.
            No index was asked. The table has no metadata table.
            To read: 1 file slice of 1 partition, 1 file of 3.2 KiB.
            Planning took 2 requests that read ... bytes.
            >>> trips.scan().explain(analyze=True).read.updates
            1
        """
        from hoodie_py.table.scan.explanation import explain_snapshot

        if type(self.query) is not SnapshotQuery:
            raise UnsupportedFeatureError(
                f"Explaining a query of the type {self.query_type!r}: it reads what its commits touched.",
                hint="Explain a scan of the table.",
            )
        planned = explain_snapshot(self.snapshot, self.query_type, self.predicate, self.options, self.merger)
        return replace(planned, read=self._measure()) if analyze else planned

    def _measure(self) -> ReadReport:
        """Read all rows, drop them, and report on the read."""
        from hoodie_py.table.scan.measured import ReadReport, measure_tasks

        counts: list[ReadStats] = []
        measured = replace(self)
        # The copy reads measured tasks in place of its own, which it has not made yet.
        measured.__dict__["_tasks"] = tuple(measure_tasks(self._tasks, counts))
        began = time.monotonic()
        rows = sum(map(_count_rows, measured._read_watched()))  # noqa: SLF001 - a copy of this scan
        return ReadReport.of(rows, counts, time.monotonic() - began)

    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows batch by batch, in no order.

        Several threads read file slices, one for each core unless the option ``hoodie_py.read.threads`` or the variable
        HOODIE_PY_READ_THREADS says otherwise. Memory is bounded by the log records of that many slices and a few
        batches. Callers that stop early should close the iterator. A batch that the caller drops is freed while the
        next one is read.

        Raises:
            HoodieError: files are missing, corrupt or not supported, or versions of a record do not merge.

        Examples:
            >>> sum(batch.num_rows for batch in trips.scan(columns=["id"], batch_rows=1).to_batches())
            3
        """
        with closing(self._read_watched()) as batches:
            # Unlike a loop's variable, ``map`` keeps no reference to a batch.
            yield from map(itemgetter(1), batches)

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table; rows of one file slice are adjacent.

        Examples:
            >>> trips.scan(columns=["id", "price"]).to_arrow().sort_by("id").to_pydict()
            {'id': ['a', 'b', 'c'], 'price': [12.0, 20.0, 30.0]}
        """
        batches = sorted(self._read_watched(), key=itemgetter(0))
        return pa.Table.from_batches([batch for _, batch in batches], self.schema)

    def _read_watched(self) -> Generator[Numbered, None, None]:
        return watch_steps(
            "scan",
            self.snapshot.files,
            self._read_limited(),
            _count_rows,
            instant=self.instant,
            query_type=self.query_type,
            columns=len(self.columns),
        )

    def _read_limited(self) -> Generator[Numbered, None, None]:
        """Yield up to ``limit`` rows, each batch with the number of its slice; tasks are planned as they are needed."""
        if self.limit is None:
            yield from self._read(self._tasks)
            return
        left = self.limit
        with closing(self._read_parts()) as batches:
            while left and (found := next(batches, None)) is not None:
                number, batch = found[0], found[1].slice(0, left)
                left -= batch.num_rows
                yield number, batch

    def _read_parts(self) -> Generator[Numbered, None, None]:
        """Yield all rows; tasks are planned when their rows are needed, unless they are planned already."""
        known = self.__dict__.get("_tasks")
        before = 0
        for tasks in self.query.iterate_tasks(self) if known is None else [known]:
            with closing(self._read(tasks)) as batches:
                yield from map(partial(_shift_number, before), batches)
            before += len(tasks)

    def _read(self, tasks: Sequence[Task]) -> Generator[Numbered, None, None]:
        """Read tasks on several threads if that pays, large ones first, so that no thread ends much later."""
        cores = self._count_threads()
        threads = min(cores, len(tasks))
        # Arrow may read columns in parallel if cores are left, but not with more threads than the user asked for.
        spare = len(tasks) < cores and pa.cpu_count() <= cores
        gate = FoldGate(alone=threads > 1)
        options = replace(self.options, readers=max(1, threads), column_threads=spare)
        tasks = [replace(task, options=options) for task in tasks]
        if threads <= 1:
            for number, task in enumerate(tasks):
                yield from map(partial(_number_batch, number), task.to_batches(gate))
            return
        order = sorted(range(len(tasks)), key=lambda number: tasks[number].size, reverse=True)
        slices = [partial(tasks[number].to_batches, gate) for number in order]
        with closing(read_in_threads(slices, threads, gate)) as batches:
            yield from map(partial(_renumber, order), batches)

    def _count_threads(self) -> int:
        """Return how many tasks to read at once: one for few rows, or if a merger runs Python code."""
        few = self.limit is not None and self.limit <= _FEW_BATCHES * self.options.batch_rows
        if few or self.merger is not None or self.snapshot.config.merge_mode is MergeMode.CUSTOM:
            return 1
        return count_threads(self.options.options)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream.

        Examples:
            >>> with trips.scan(columns=["id"]).to_arrow_batch_reader() as reader:
            ...     print(reader.read_all().num_rows)
            3
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def narrow(
        self, columns: Sequence[str] | None = None, predicate: Predicate | None = None, limit: int | None = None
    ) -> Scan:
        """Return a scan of some of the columns, with a further filter and a further limit.

        Raises:
            InvalidQueryError: a column is unknown or repeated, or the scan has a limit, after which no filter can come.

        Examples:
            >>> trips.scan(filter="city = 'sf'").narrow(columns=["id"], limit=1).count()
            1
        """
        if predicate is not None and self.limit is not None:
            raise InvalidQueryError("A scan with a limit takes no further filter.", hint="Set the limit last.")
        from hoodie_py.table.filter.predicate import join_filters

        wanted = self.columns if columns is None else choose_columns(columns, self.schema)
        limits = [each for each in (self.limit, limit) if each is not None]
        return Scan(
            self.snapshot,
            wanted,
            join_filters(self.predicate, predicate),
            self.options.fit_columns(len(self.columns), len(wanted)),
            min(limits) if limits else None,
            self.merger,
            self.query,
        )

    def count(self) -> int:
        """Return the number of rows, reading only the columns that the merge and the filter need.

        Examples:
            >>> trips.scan(filter="price > 15").count()
            2
        """
        if self.limit is not None:
            return sum(batch.num_rows for batch in replace(self, columns=()).to_batches())
        with watch("scan", self.snapshot.files, instant=self.instant, query_type=self.query_type, columns=0) as watched:
            rows = sum(map(_count_rows, self._read([replace(each, columns=(), limit=None) for each in self._tasks])))
            watched.tell(rows=rows)
            return rows

    def __repr__(self) -> str:
        parts = [repr(self.snapshot.config.name), f"at {self.instant}", f"{len(self.columns)} columns"]
        if self.query_type != "snapshot":
            parts.append(self.query_type)
        if self.predicate is not None:
            parts.append(f"where {self.predicate}")
        if self.limit is not None:
            parts.append(f"limit {self.limit}")
        return f"Scan({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return format_html_table(
            "Scan",
            [
                ("table", self.snapshot.config.name),
                ("instant", self.instant),
                ("query", self.query_type),
                ("filter", self.predicate),
                ("limit", self.limit),
                ("columns", ", ".join(self.columns)),
            ],
        )


def _count_rows(numbered: Numbered) -> int:
    return len(numbered[1])


def _number_batch(number: int, batch: pa.RecordBatch) -> Numbered:
    return number, batch


def _shift_number(before: int, numbered: Numbered) -> Numbered:
    number, batch = numbered
    return before + number, batch


def _renumber(order: Sequence[int], numbered: Numbered) -> Numbered:
    place, batch = numbered
    return order[place], batch


def make_scan(
    snapshot: Snapshot,
    *,
    query_type: str | None = None,
    options: Mapping[str, Any] | None = None,
    **arguments: Unpack[ScanArguments],
) -> Scan:
    """Return a scan of a snapshot; other arguments as for ``make_query_scan``.

    Raises:
        InvalidQueryError: a column is unknown or repeated, the filter is wrong, or a number or word is out of range.
    """
    texts = read_option_texts(options)
    travel = texts.get(AS_OF_INSTANT)
    if travel is not None and not snapshot.is_time_travel:
        snapshot = snapshot.travel_to(travel)
    query = SnapshotQuery(_check_query_type(query_type or _find_asked_type(texts)))
    return make_query_scan(snapshot, query, options=texts, **arguments)


def make_query_scan(
    snapshot: Snapshot,
    query: Query,
    *,
    columns: Sequence[str] | None = None,
    filter: str | pc.Expression | Predicate | None = None,  # noqa: A002 - users know the name
    limit: int | None = None,
    merger: Merger | None = None,
    memory_limit: int | None = None,
    batch_rows: int | None = None,
    integrity: str = "default",
    options: Mapping[str, Any] | None = None,
    sql: SqlSettings | None = None,
) -> Scan:
    """Return a scan for any kind of query; see ``HoodieTable.scan`` for the arguments.

    The caller has read the options that select the kind of query. ``sql``: settings of the session in whose SQL the
    filter is written; by default the settings of this process.

    Raises:
        InvalidQueryError: as for ``make_scan``.
    """
    texts = read_option_texts(options)
    if integrity not in ("default", "strict"):
        raise InvalidQueryError(f"The integrity must be 'default' or 'strict', not {integrity!r}.")
    check_positive("batch_rows", batch_rows)
    check_positive("memory_limit", memory_limit)
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidQueryError(f"The limit must be a number of rows, not {limit!r}.")
    if merger is not None:
        from hoodie_py.reader.merge.registry import as_merger

        as_merger(merger)
    schema = query.find_schema(snapshot)
    predicate = None
    if filter is not None:
        from hoodie_py.table.filter.as_predicate import as_predicate
        from hoodie_py.table.filter.sql_settings import of_process

        predicate = as_predicate(filter, schema, settings=sql or of_process(snapshot.timezone))
    wanted = choose_columns(columns, schema)
    settings = ReadOptions(
        batch_rows or choose_batch_rows(len(wanted)),
        "strict" if integrity == "strict" else "default",
        memory_limit,
        texts,
    )
    return Scan(snapshot, wanted, predicate, settings, limit, merger, query)


def _find_asked_type(options: Mapping[str, str]) -> str:
    """Return the query type that the options select; as in Java, the option of Hive-synced tables counts last."""
    return QUERY_TYPE.read_given(options) or ("read_optimized" if AS_READ_OPTIMIZED.read(options) else "snapshot")


def _check_query_type(text: str) -> str:
    kind = text.lower()
    if kind not in _QUERY_TYPES:
        raise InvalidQueryError(f"Unknown query type {text!r}.", hint=f"Use one of: {', '.join(_QUERY_TYPES)}.")
    return kind
