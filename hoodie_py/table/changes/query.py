"""Makes and reads the scan of the changes that a range of commits made (Hudi's CDC query, ``CDCRelation``).

The columns are those of ``CDCRelation.FULL_CDC_SPARK_SCHEMA``. The modules for reading are imported when a task is
read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from hoodie_py.arrow.fields import make_nullable
from hoodie_py.errors import FileMissingError, InvalidQueryError
from hoodie_py.formats.config.table_config import CDC_ENABLED
from hoodie_py.formats.names import AFTER, BEFORE, META_FIELDS_WITH_OPERATION, OP, TIME
from hoodie_py.options.read import AS_OF_INSTANT
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, choose_batch_rows
from hoodie_py.runtime.telemetry import watch_steps
from hoodie_py.runtime.unused_memory import release_after
from hoodie_py.table.changes.plan import ChangesPlan
from hoodie_py.table.changes.steps import Step, count_bytes, list_slices
from hoodie_py.table.incremental.commit_range import EARLIEST, CommitRange, resolve_range
from hoodie_py.table.scan.arguments import ScanArguments, read_option_texts
from hoodie_py.table.scan.query import Request, Task
from hoodie_py.table.scan.scan import Scan, make_query_scan
from hoodie_py.table.scan.task import count_read
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.time_travel import AsOf, parse_zone

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.runtime.fold_gate import FoldGate
    from hoodie_py.table.changes.images import Images
    from hoodie_py.table.filter.predicate import Predicate


def make_change_schema(table: pa.Schema, *, as_structs: bool) -> pa.Schema:
    """Return the columns of change data; images are JSON texts, or structs of the table's columns."""
    image = pa.struct(list(list_image_fields(table))) if as_structs else pa.string()
    return pa.schema([(OP, pa.string()), (TIME, pa.string()), (BEFORE, image), (AFTER, image)])


def list_image_fields(table: pa.Schema) -> pa.Schema:
    """Return the columns of an image: the table's columns without Hudi's own."""
    return make_nullable(field for field in table if field.name not in META_FIELDS_WITH_OPERATION)


def make_changes_scan(
    snapshot: Snapshot,
    start: AsOf | None = EARLIEST,
    end: AsOf | None = None,
    as_structs: bool = False,
    *,
    options: Mapping[str, Any] | None = None,
    **arguments: Unpack[ScanArguments],
) -> Scan:
    """Return a scan of the changes of the commits after ``start`` and up to ``end``; see ``HoodieTable.changes``.

    Raises:
        InvalidQueryError: the table has no change data, a bad range, or an argument that is not valid.
    """
    texts = read_option_texts(options)
    if not snapshot.config.cdc_enabled:
        raise InvalidQueryError(
            f"The table has no change data: its property {CDC_ENABLED} is not true.",
            table=snapshot.config.name,
            hint=f"Create the table with properties={{{CDC_ENABLED!r}: 'true'}}. On any table incremental() gives the "
            "rows that changed.",
        )
    if AS_OF_INSTANT.find_text(texts) or snapshot.is_time_travel:
        raise InvalidQueryError("A range of commits has no instant of the past.", hint="Give the range's end instead.")
    zone = parse_zone(snapshot.timezone, snapshot.config.timezone)
    span = resolve_range(snapshot.timeline, start, end, texts, zone)
    images = list_image_fields(snapshot.schema.arrow).names
    if arguments.get("batch_rows") is None:
        arguments["batch_rows"] = choose_batch_rows(2 * len(images))
    return make_query_scan(snapshot, ChangesQuery(span, as_structs), options=texts, **arguments)


@dataclass(frozen=True)
class ChangesQuery:
    """The changes of a range of commits. ``as_structs``: images are structs, not texts."""

    commit_range: CommitRange
    as_structs: bool = False
    kind: str = "cdc"

    def find_schema(self, snapshot: Snapshot) -> pa.Schema:
        """Return the columns of change data."""
        return make_change_schema(snapshot.schema.arrow, as_structs=self.as_structs)

    def make_tasks(self, request: Request) -> list[ChangesTask]:
        """Return one task for each file group that the range touched."""
        plan = ChangesPlan(request.snapshot, self.commit_range, request.options)
        return [
            ChangesTask(
                steps,
                _make_info(request, key, steps),
                self.as_structs,
                plan.available,
                request.columns,
                request.predicate,
                request.options,
                request.merger,
                request.limit,
            )
            for key, steps in plan.make_steps()
        ]

    def iterate_tasks(self, request: Request) -> Iterator[Sequence[Task]]:
        """Yield all tasks at once: commits name the files."""
        yield self.make_tasks(request)


def _make_info(request: Request, key: tuple[str, str], steps: tuple[Step, ...]) -> ReadInfo:
    """Return the facts for reading the slices of one file group."""
    info = request.snapshot.read_info(FileSlice(*key, "", None, ()))
    if request.options.integrity != "strict":
        return info
    from hoodie_py.table.view.integrity import find_expected_sizes

    slices = [file_slice for step in steps for file_slice in list_slices(step)]
    return replace(info, expected_sizes=find_expected_sizes(request.snapshot.timeline, slices))


@dataclass(frozen=True, slots=True)
class ChangesTask:
    """The changes of one file group that a scan asks for, in the order of the commits; small and picklable.

    ``columns``: the columns of the result. ``limit``: its most rows. ``merger``: replaces the table's merge mode.
    ``available``: which changes are available, for the error if a file is gone.
    """

    steps: tuple[Step, ...]
    info: ReadInfo
    as_structs: bool
    available: str
    columns: tuple[str, ...]
    predicate: Predicate | None
    options: ReadOptions
    merger: Merger | None = None
    limit: int | None = None

    def __repr__(self) -> str:
        commits = f"{len(self.steps)} commit{'' if len(self.steps) == 1 else 's'}"
        return f"ChangesTask({commits}, {len(self.columns)} columns)"

    @property
    def size(self) -> int:
        """Bytes of the files to read, a measure of the work."""
        return sum(map(count_bytes, self.steps))

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        whole = make_change_schema(self.info.schema, as_structs=self.as_structs)
        return make_nullable(whole.field(name) for name in self.columns)

    def to_batches(self, gate: FoldGate | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Yield the changes, commit by commit, without empty batches.

        Raises:
            FileMissingError: a file is gone.
            HoodieError: files that are corrupt or not supported, or versions that do not merge.
        """
        if self.limit is not None and self.limit <= 0:
            return

        def tell(rows: int) -> dict[str, int]:
            count_read(self.info.files, rows, 0, self.size, slices=len(self.steps))
            return {}

        files = self.info.files
        yield from watch_steps("read_changes", files, self._read_limited(gate), len, tell, commits=len(self.steps))

    def _read_limited(self, gate: FoldGate | None) -> Generator[pa.RecordBatch, None, None]:
        left = self.limit
        try:
            for batch in self._read(gate):
                yield batch if left is None else batch.slice(0, left)
                if left is not None:
                    left -= min(left, batch.num_rows)
                    if not left:
                        return
        except FileMissingError as error:
            raise FileMissingError(
                "A file of the range is gone: it was cleaned, or it is lost.", hint=self.available, **error.where
            ) from error
        release_after(self.size)

    def _read(self, gate: FoldGate | None) -> Iterator[pa.RecordBatch]:
        from hoodie_py.table.changes.step_reader import StepReader

        needed = {*self.columns, *(() if self.predicate is None else self.predicate.columns)}
        sides = frozenset({BEFORE, AFTER} & needed)
        fields = list_image_fields(self.info.schema)
        reader = StepReader(self.info, fields.names, sides, self.options, self.merger, gate)
        rows = self.options.batch_rows
        for step in self.steps:
            for images in reader.read(step):
                for start in range(0, len(images.changes.codes), rows):
                    batch = self._select(images.cut(start, start + rows), sorted(needed))
                    if batch.num_rows:
                        yield batch

    def _select(self, images: Images, needed: list[str]) -> pa.RecordBatch:
        """Make the rows of some changes and keep those that pass the filter.

        Columns that only the filter needs are dropped.
        """
        batch = self._make_batch(images, needed)
        if self.predicate is not None:
            from hoodie_py.table.filter.evaluate import evaluate

            batch = batch.filter(evaluate(self.predicate, batch))
        if not self.columns:
            from hoodie_py.arrow.arrays import make_batch_without_columns

            return make_batch_without_columns(batch.num_rows)
        return batch.select(list(self.columns))

    def _make_batch(self, images: Images, needed: list[str]) -> pa.RecordBatch:
        from hoodie_py.table.changes.images import make_change_batch

        return make_change_batch(images, replace(self, columns=tuple(needed)).schema)
