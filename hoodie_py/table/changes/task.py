"""ChangesTask: the changes of one file group in a range of commits; small and picklable.

Changes come in the order of the commits. The modules for reading are imported when a task is read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.arrow.fields import make_nullable
from hoodie_py.errors import FileMissingError
from hoodie_py.formats.names import AFTER, BEFORE
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.runtime.telemetry import watch_steps
from hoodie_py.runtime.unused_memory import release_after
from hoodie_py.table.changes.columns import list_image_fields, make_change_schema
from hoodie_py.table.changes.steps import Step, count_bytes
from hoodie_py.table.scan.task import count_read

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.runtime.fold_gate import FoldGate
    from hoodie_py.table.changes.images import Images
    from hoodie_py.table.filter.predicate import Predicate


@dataclass(frozen=True, slots=True)
class ChangesTask:
    """The changes of one file group that a scan asks for.

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
