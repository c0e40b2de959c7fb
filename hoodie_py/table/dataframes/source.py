"""RowSource: what the modules of this folder require of a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from hoodie_py.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from hoodie_py.runtime.fold_gate import FoldGate
    from hoodie_py.table.filter.predicate import Predicate


class TaskSource(Protocol):
    """A part of a scan's rows, which a worker of an engine reads; picklable and small."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the files to read."""
        ...

    def to_batches(self, gate: FoldGate | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows; tasks that are read at the same time in a process share ``gate``."""
        ...


class RowSource(Protocol):
    """A lazy, pinned scan: the same rows each time."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        ...

    @property
    def limit(self) -> int | None:
        """Most rows. With a limit no filter can be pushed down, as the limit applies first."""
        ...

    def narrow(
        self, columns: Sequence[str] | None = None, predicate: Predicate | None = None, limit: int | None = None
    ) -> RowSource:
        """Return a scan of fewer columns or rows."""
        ...

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        ...

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table."""
        ...

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        ...

    def tasks(self) -> Sequence[TaskSource]:
        """Return the parts of the scan, before its limit."""
        ...

    def count(self) -> int:
        """Return the number of rows."""
        ...


def import_extra(package: str, extra: str | None = None) -> ModuleType:
    """Import a package, or a module of it, that an extra installs; by default the extra has the package's name.

    Raises:
        UnsupportedFeatureError: it is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        name = package.partition(".")[0]
        raise UnsupportedFeatureError(
            f"{name} is not installed.", hint=f"pip install 'hoodie_py[{extra or name}]'"
        ) from error
