"""ScanDataset: a scan behind pyarrow's dataset interface, for engines that push down columns and conditions.

DuckDB and DataFusion call ``scanner`` and ``get_fragments`` of a subclass, and trust that the returned rows pass the
filter. A table with log files is not a set of Parquet files, so reads below this interface, in Arrow's own C++, are
refused: the dataset that Arrow sees has one file, and opening it raises the error.

Arrow compares floats as IEEE does. DataFusion sends Arrow's expressions, but in its semantics NaN is the greatest
number: ``nan_is_greatest`` gives filters that meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.runtime.fold_gate import FoldGate
from hoodie_py.table.dataframes.source import RowSource, TaskSource
from hoodie_py.table.dataframes.task_reads import narrow_task
from hoodie_py.table.filter.as_predicate import as_predicate
from hoodie_py.table.filter.predicate import Predicate

_Columns = Sequence[str] | dict[str, pc.Expression] | None


class ScanDataset(ds.FileSystemDataset):  # type: ignore[misc]
    """The rows of a scan as a ``pyarrow.dataset.Dataset``; every read is of the same snapshot."""

    def __init__(self, source: RowSource, nan_is_greatest: bool = False) -> None:
        self._source = source
        self._nan_is_greatest = nan_is_greatest
        form, files = ds.ParquetFileFormat(), fs.PyFileSystem(_NoFiles())
        super().__init__([form.make_fragment("hudi", files)], source.schema, form, files)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        return self._source.schema

    @property
    def files(self) -> list[str]:
        """Refuse to name files: rows are merged from several files."""
        raise AttributeError("files")

    def scanner(self, columns: _Columns = None, filter: pc.Expression | None = None, **_: Any) -> ds.Scanner:  # noqa: A002
        """Return a scanner of some columns of the rows that pass a filter; it reads once."""
        plain = None if isinstance(columns, dict) else columns
        if filter is not None and self._source.limit is not None:
            # The limit comes before the filter, so Arrow filters the limited rows.
            return ds.Scanner.from_batches(_make_reader(self._source), columns=columns, filter=filter)
        found = self._source.narrow(plain, self._bind(filter))
        return ds.Scanner.from_batches(_make_reader(found), columns=columns if isinstance(columns, dict) else None)

    def filter(self, expression: pc.Expression) -> ScanDataset:
        """Return the dataset of the rows that pass a filter as well."""
        return ScanDataset(self._source.narrow(None, self._bind(expression)), self._nan_is_greatest)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[ScanFragment]:  # noqa: A002
        """Yield the file slices that may have rows for a filter, each readable separately."""
        if self._source.limit is not None:  # holds for all slices together
            yield ScanFragment(self, self._source, is_pushed=False)
            return
        predicate = self._bind(filter)
        tasks = self._source.narrow(None, predicate).tasks()
        gate = FoldGate(alone=len(tasks) > 1)  # engines read several fragments at once
        yield from (ScanFragment(self, task, predicate, gate=gate) for task in tasks)
        if not tasks:  # engines want at least one
            yield ScanFragment(self, self._source.narrow(limit=0), is_pushed=False)

    def count_rows(self, filter: pc.Expression | None = None, **_: Any) -> int:  # noqa: A002
        """Count the rows that pass a filter."""
        if self._source.limit is not None:
            return int(self.scanner(filter=filter).count_rows())
        return self._source.narrow(None, self._bind(filter)).count()

    def to_batches(self, columns: _Columns = None, filter: pc.Expression | None = None, **_: Any) -> Iterator[Any]:  # noqa: A002
        """Yield the rows."""
        yield from self.scanner(columns, filter).to_reader()

    def to_table(self, columns: _Columns = None, filter: pc.Expression | None = None, **_: Any) -> pa.Table:  # noqa: A002
        """Return the rows."""
        return self.scanner(columns, filter).to_table()

    def head(self, num_rows: int, columns: _Columns = None, filter: pc.Expression | None = None, **_: Any) -> pa.Table:  # noqa: A002
        """Return some of the rows."""
        return self.scanner(columns, filter).head(num_rows)

    def take(self, indices: object, **_: Any) -> pa.Table:
        """Refuse row positions: rows have no order."""
        raise UnsupportedFeatureError("Rows of a table by their places: they have no order.", hint="Use a filter.")

    def __reduce__(self) -> tuple[Any, ...]:
        raise UnsupportedFeatureError(
            "Sending a dataset to another process.", hint="Send scan.tasks(): each is small and reads a file slice."
        )

    def __repr__(self) -> str:
        return f"ScanDataset({self._source!r})"

    def _bind(self, expression: pc.Expression | None) -> Predicate | None:
        return as_predicate(expression, self.schema, nan_is_greatest=self._nan_is_greatest)

    def bind_more(self, expression: pc.Expression | None, known: Predicate | None) -> Predicate | None:
        """Bind a filter unless it is already applied."""
        predicate = self._bind(expression)
        return None if predicate == known else predicate


@dataclass(frozen=True)
class ScanFragment:
    """A file slice of a dataset, as engines read it.

    ``predicate``: the filter that its task applies already. ``is_pushed``: whether filters go to the task; if not,
    Arrow filters the rows, as a limit applies first. ``gate``: shared by the fragments of one query.
    """

    dataset: ScanDataset
    rows: TaskSource | RowSource
    predicate: Predicate | None = None
    is_pushed: bool = True
    gate: FoldGate = field(default_factory=FoldGate, compare=False)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: _Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_: Any,
    ) -> ds.Scanner:
        """Return a scanner of some columns of the rows that pass a filter; it reads once."""
        if isinstance(columns, dict) or not self.is_pushed:
            return ds.Scanner.from_batches(_make_reader(self.rows), columns=columns, filter=filter)
        more = self.dataset.bind_more(filter, self.predicate)
        task: Any = self.rows
        return ds.Scanner.from_batches(_make_reader(narrow_task(task, columns, more), self.gate))

    def to_batches(self, schema: pa.Schema | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows; arguments as for ``scanner``."""
        yield from self.scanner(schema, **options).to_reader()

    def to_table(self, schema: pa.Schema | None = None, **options: Any) -> pa.Table:
        """Return the rows; arguments as for ``scanner``."""
        return self.scanner(schema, **options).to_table()


def _make_reader(rows: TaskSource | RowSource, gate: FoldGate | None = None) -> pa.RecordBatchReader:
    shared: dict[str, Any] = {} if gate is None else {"gate": gate}  # a whole scan has one of its own
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(**shared))


class _NoFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """A store without files; opening one raises an error that says so."""

    def get_type_name(self) -> str:
        return "hudi"

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedFeatureError(
            "Reading a Hudi table as a set of files: its rows are merged when they are read.",
            hint="Use to_table(), to_batches() or scanner() of this dataset.",
        )

    def normalize_path(self, path: str) -> str:
        return path

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _refuse
    get_file_info = get_file_info_selector = move = open_append_stream = open_input_file = _refuse
    open_input_stream = open_output_stream = _refuse
