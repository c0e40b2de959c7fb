"""A table's files with a count of what the store is asked: calls, bytes read, and different files opened.

Files are not mapped here, so that a disk is asked for what an object store would be asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot

_FREE = ("is_same_kind", "find_kind", "uri")


@dataclass
class Counts:
    """What a store was asked. A listing of many folders counts once for each."""

    verbs: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    opened: set[str] = field(default_factory=set)

    @property
    def calls(self) -> int:
        """All calls."""
        return sum(self.verbs.values())


class _CountingStore:
    def __init__(self, inner: Any, counts: Counts) -> None:
        self._inner = inner
        self._counts = counts

    def __getattr__(self, verb: str) -> Any:
        act = getattr(self._inner, verb)
        if verb in _FREE or verb.startswith("_") or not callable(act):
            return act

        def call(*given: Any, **named: Any) -> Any:
            if verb == "local_path":
                return None if given[0] else act(*given)
            if verb in ("open_folder", "open_other"):
                return _CountingStore(act(*given, **named), self._counts)
            self._counts.verbs[verb] += len(given[0]) if verb == "list_many" else 1
            answer = act(*given, **named)
            if verb.startswith("read"):
                self._counts.opened.add(str(given[0]))
                parts = answer if isinstance(answer, list) else [answer]
                self._counts.bytes += sum(len(each) for each in parts if isinstance(each, bytes | memoryview))
            return answer

        return call


def open_counted(path: str) -> tuple[HoodieTable, Counts]:
    """Open a table; the counts begin with the opening."""
    counts = Counts()
    store: Any = _CountingStore(TableFiles.open(path)._store, counts)
    return HoodieTable(open_snapshot(TableFiles(store))), counts
