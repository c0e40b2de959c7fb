"""The past of a table and of its model: what ranges of commits changed is read from one and said by the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hoodie_py import HoodieTable, HoodieWarning, InvalidQueryError
from integration.histories.findings import Counts, Difference, tell_apart
from integration.histories.model import Kind, Model
from integration.histories.ranges import Moment, Way, is_in

_FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
_PLAIN = ("id", "part", "ts", "total", "name", "_hoodie_commit_time")


@dataclass(frozen=True)
class Past:
    """What a history has come to.

    Attributes:
        kind: of the table.
        model: of the table.
        moments: when its commits were made, in the order in which they landed.
        merger: as a scan takes it.
        counts: are added to.
        is_cleaned: whether files may be gone.
    """

    kind: Kind
    model: Model
    moments: Sequence[Moment]
    merger: dict[str, Any]
    counts: Counts
    is_cleaned: bool

    @property
    def by_request(self) -> bool:
        """Whether ranges compare request times."""
        return self.kind.version < 8

    def times(self) -> list[str]:
        """Return the times of the commits that ranges compare."""
        return sorted(each.request if self.by_request else each.completion for each in self.moments)

    def commits_in(self, start: str, end: str | None) -> set[str]:
        """Return the commits of a range."""
        return {each.request for each in self.moments if is_in(each, start, end, by_request=self.by_request)}

    def check_range(self, table: HoodieTable, start: str, end: str | None, way: Way) -> None:
        """Compare an incremental read with the model.

        Raises:
            Difference: they differ.
        """
        self.counts.ranges["compared"] += 1
        commits = self.commits_in(start, end)
        what = f"a range from {start} to {end or 'now'} {way.arguments()}"
        want = way.select(self.model.changed_in(commits), _PLAIN)
        try:
            found, warned = self._read(table, start, end, way)
        except InvalidQueryError as error:
            if not (self.is_cleaned and not self._falls_back(way)) and not self._has_hole(table):
                raise Difference(f"{what} fails: {error}") from error
            self.counts.ranges["refused"] += 1
            return
        if found != want and self._may_fall_back(way):
            self.counts.ranges["of the latest rows"] += 1
            latest = self.model.changed_in(commits, files_of={each.request for each in self.moments})
            tell_apart(f"{what}, with the latest rows,", found, way.select(latest, _PLAIN))
            if not warned:
                raise Difference(f"{what} gives the latest rows without a warning")
            return
        tell_apart(what, found, want)

    def _read(self, table: HoodieTable, start: str, end: str | None, way: Way) -> tuple[list[Any], bool]:
        """Return rows, and whether there was a warning."""
        options = {} if way.fallback is None else {_FALLBACK: way.fallback}
        arguments: dict[str, Any] = {**way.arguments(), **self.merger, "options": options}
        arguments["columns"] = arguments["columns"] or list(_PLAIN)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            scan = table.incremental(start, end, **arguments)
            batches = [batch for batch in scan.to_batches() if batch.num_rows]
        most = arguments["batch_rows"]
        if most is not None and any(batch.num_rows > most for batch in batches):
            raise Difference(f"batches of more than {most} rows")
        rows = sorted(tuple(row) for batch in batches for row in zip(*map(_values, batch.columns), strict=True))
        return rows, any(issubclass(each.category, HoodieWarning) for each in seen)

    def _falls_back(self, way: Way) -> bool:
        """Whether the latest rows are read where files are gone."""
        return not self.by_request if way.fallback is None else way.fallback == "true"

    def _may_fall_back(self, way: Way) -> bool:
        # As in Java, a range of request times that begins before the first commit counts as archived.
        return self._falls_back(way) and (self.is_cleaned or self.by_request)

    def _has_hole(self, table: HoodieTable) -> bool:
        """Whether a failed write is older than a completed one, which ranges of request times refuse."""
        pending = [each.request_time for each in table.timeline if each.is_write and not each.is_completed]
        return self.by_request and any(each.request > time for time in pending for each in self.moments)


def _values(column: Any) -> Iterable[Any]:
    values: list[Any] = column.to_pylist()
    return values
