"""A scan that notes which of its narrower scans an engine reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.table.filter.predicate import Predicate
from hoodie_py.table.scan.scan import Scan


class NotedRows:
    """The rows of a scan; each scan that is read joins ``asked``."""

    def __init__(self, scan: Scan, asked: list[Scan]) -> None:
        self._scan = scan
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scan, name)

    def narrow(
        self, columns: Sequence[str] | None = None, predicate: Predicate | None = None, limit: int | None = None
    ) -> NotedRows:
        return NotedRows(self._scan.narrow(columns, predicate, limit), self._asked)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        self._asked.append(self._scan)
        yield from self._scan.to_batches()
