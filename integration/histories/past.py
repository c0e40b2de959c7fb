"""The past of a table and of its model: what ranges of commits changed is read from one and said by the other."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hoodie_py import FileMissingError, HoodieError, HoodieTable, HoodieWarning, InvalidQueryError, TableFiles
from hoodie_py.formats.config.table_config import CDC_ENABLED, CDC_MODE, POPULATE_META_FIELDS
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from integration.histories.findings import Counts, Difference, tell_apart, tell_bounds
from integration.histories.model import Kind, Model
from integration.histories.ranges import EARLIEST, Moment, Way, find_compared, is_in
from integration.histories.replay import ChangeRow, WrongChange, replay
from integration.histories.rules import Row

_FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
_FLAG = "_hoodie_is_deleted"
_PLAIN = ("id", "part", "ts", "total", "name", "_hoodie_commit_time")
_EXTRA = "extra"


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
        is_archived: whether commits may be in the archive.
        uri: of the table.
    """

    kind: Kind
    model: Model
    moments: Sequence[Moment]
    merger: dict[str, Any]
    counts: Counts
    is_cleaned: bool
    is_archived: bool
    uri: str

    @property
    def by_request(self) -> bool:
        """Whether ranges compare request times."""
        return self.kind.version < 8

    def times(self) -> list[str]:
        """Return the times of the commits that ranges compare."""
        return sorted(each.request if self.by_request else each.completion for each in self.moments)

    def commits_in(self, start: str, end: str | None) -> set[str]:
        """Return the commits of a range of times that are compared as they are."""
        return {each.request for each in self.moments if is_in(each, start, end, by_request=self.by_request)}

    def find_compared(self, start: str, end: str | None) -> tuple[str, str | None]:
        """Return the times that the table compares for a range: the request time of a commit means that commit."""
        if self.by_request:
            return start, end
        return find_compared(self.moments, start), None if end is None else find_compared(self.moments, end)

    def check_range(self, table: HoodieTable, start: str, end: str | None, way: Way) -> None:
        """Compare an incremental read with the model.

        Raises:
            Difference: they differ.
        """
        if self.kind.virtual:  # its rows do not say who wrote them
            return
        what = f"a range from {start} to {end or 'now'} {way.arguments()}"
        first, last = self.find_compared(start, end)
        if _is_reversed(first, last):
            _check_refused(what, lambda: table.incremental(start, end))
            return
        self.counts.ranges["compared"] += 1
        commits = self.commits_in(first, last)
        plain = find_columns(table)
        want = way.select(self.model.changed_in(commits), plain)
        try:
            found, warned = self._read(table, start, end, way, plain)
        except HoodieError as error:
            gone = self.is_cleaned or self.is_archived
            needs_more = "Partial updates of the range need rows" in str(error)  # found out by reading: too late
            may_fail = (gone and (needs_more or not self._falls_back(way))) or self._has_hole(table)
            if not may_fail or not isinstance(error, InvalidQueryError):
                raise Difference(f"{what} fails: {error}") from error
            self.counts.ranges["refused"] += 1
            return
        if found != want and self._may_fall_back(way):
            latest = self.model.changed_in(commits, files_of={each.request for each in self.moments})
            if last is None:
                self.counts.ranges["of the latest rows"] += 1
                tell_apart(f"{what}, with the latest rows,", found, way.select(latest, plain))
                return
            self.counts.ranges["of what is left"] += 1
            if not warned:
                raise Difference(f"{what} gives what is left of its rows without a warning")
            then = self.model.changed_in(commits, files_of=self.commits_in(EARLIEST, last))
            least = [each for each in then if each in latest]
            tell_bounds(
                f"{what}, with what is left of its rows,", found, way.select(least, plain), way.select(then, plain)
            )
            return
        if found != want and self.by_request and self.is_archived:  # as in Java, it has the active commits alone
            self.counts.ranges["without archived commits"] += 1
            if not warned:
                raise Difference(f"{what} leaves out archived commits without a warning")
            want = way.select(self.model.changed_in(commits & self._active(table)), plain)
        tell_apart(what, found, want)

    @staticmethod
    def _active(table: HoodieTable) -> set[str]:
        return {each.request_time for each in table.timeline}

    def _read(
        self, table: HoodieTable, start: str, end: str | None, way: Way, plain: Sequence[str]
    ) -> tuple[list[Any], bool]:
        """Return rows, and whether there was a warning."""
        options = {} if way.fallback is None else {_FALLBACK: way.fallback}
        arguments: dict[str, Any] = {**way.arguments(), **self.merger, "options": options}
        arguments["columns"] = arguments["columns"] or list(plain)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            scan = table.incremental(start, end, **arguments)
            batches = [batch for batch in scan.to_batches() if batch.num_rows]
        most = arguments["batch_rows"]
        if most is not None and any(batch.num_rows > most for batch in batches):
            raise Difference(f"batches of more than {most} rows")
        rows = sorted(
            tuple(-1 if value is None else value for value in row)
            for batch in batches
            for row in zip(*map(_values, batch.columns), strict=True)
        )
        return rows, any(issubclass(each.category, HoodieWarning) for each in seen)

    def check_changes(self, table: HoodieTable, start: str, end: str | None, way: Way) -> None:
        """Do the changes of a range to the rows before it, and compare the rows after each commit with the model.

        Tables without change data are read as if it had been switched on just now.

        Raises:
            Difference: a change cannot be, or the rows are others.
        """
        what = f"changes from {start} to {end or 'now'} of {self.kind}"
        first, last = self.find_compared(start, end)
        if _is_reversed(first, last):
            _check_refused(what, lambda: table.changes(start, end))
            return
        inside = [each for each in self.moments if is_in(each, first, last, by_request=self.by_request)]
        writes = sorted((each for each in inside if not self._rearranged(each)), key=self._time)
        if self.by_request and any(each.request not in self._active(table) for each in inside):
            return
        before = self._rows_at("" if first == EARLIEST else first)
        expected = {each.request: self._rows_at(self._time(each)) for each in writes}
        if before is None or None in expected.values():
            return
        self.counts.ranges["of changes"] += 1
        try:
            changes = self._read_changes(table, start, end, way)
            states = replay(before, changes, self.kind.partitioned, [each.request for each in writes])
        except HoodieError as error:
            may_fail = self.is_cleaned or self.is_archived or self._has_hole(table)
            if not may_fail or not isinstance(error, InvalidQueryError | FileMissingError):
                raise Difference(f"{what} fail: {error}") from error
            self.counts.ranges["of changes refused"] += 1
            return
        except WrongChange as wrong:
            raise Difference(f"{what}: {wrong}") from wrong
        for commit, rows in states.items():
            tell_apart(f"{what}, after {commit},", sorted(rows.items()), sorted((expected[commit] or {}).items()))

    def _read_changes(self, table: HoodieTable, start: str, end: str | None, way: Way) -> list[ChangeRow]:
        if not self.kind.change_data:
            table = _switch_on(self.uri)
        as_structs, batch_rows = bool(way.rows % 2), way.arguments()["batch_rows"]
        arguments: dict[str, Any] = {"batch_rows": batch_rows, **self.merger}
        found: list[ChangeRow] = []
        for batch in table.changes(start, end, as_structs, **arguments).to_batches():
            if batch_rows is not None and batch.num_rows > batch_rows:
                raise Difference(f"batches of more than {batch_rows} changes")
            images = (map(_image, _values(batch.column(name))) for name in ("before", "after"))
            found += map(ChangeRow, _values(batch.column("op")), _values(batch.column("ts_ms")), *images)
        return found

    def _rearranged(self, moment: Moment) -> bool:
        return moment.request in self.model.rearranged

    def _time(self, moment: Moment) -> str:
        return moment.request if self.by_request else moment.completion

    def _rows_at(self, time: str) -> dict[tuple[str, str], Row] | None:
        """Return the rows by key as a read of that moment gives them now; None where a key is there twice.

        Compactions that were planned until then count, whenever they were carried out.
        """
        commits = {
            each.request
            for each in self.moments
            if (each.request if each.request in self.model.compacted else self._time(each)) <= time
        }
        rows = [row for row, _ in self.model.rows_of(commits)]
        found = {(self.kind.path(row.part), row.id): row for row in rows}
        return found if len(found) == len(rows) else None

    def _falls_back(self, way: Way) -> bool:
        """Whether the latest rows are read where files are gone."""
        return not self.by_request if way.fallback is None else way.fallback == "true"

    def _may_fall_back(self, way: Way) -> bool:
        # As in Java, a range of request times that begins before the first commit counts as archived.
        return self._falls_back(way) and (self.is_cleaned or self.is_archived or self.by_request)

    def _has_hole(self, table: HoodieTable) -> bool:
        """Whether a failed write is older than a completed one, which ranges of request times refuse."""
        pending = [each.request_time for each in table.timeline if each.is_write and not each.is_completed]
        return self.by_request and any(each.request > time for time in pending for each in self.moments)


def make_properties(kind: Kind) -> dict[str, str]:
    """Return the properties of a new table that have to do with change data and meta fields."""
    changes = {CDC_ENABLED: "true", CDC_MODE: kind.change_data} if kind.change_data else {}
    return {**changes, POPULATE_META_FIELDS: str(not kind.virtual).lower()}


def _switch_on(uri: str) -> HoodieTable:
    """Return a table as it would be had change data been switched on just now."""
    snapshot = open_snapshot(TableFiles.open(uri))
    return HoodieTable(Snapshot(snapshot.files, replace(snapshot.config, cdc_enabled=True), snapshot.timeline))


def _is_reversed(start: str, end: str | None) -> bool:
    """Whether a range begins with a commit that completed after its end."""
    return end is not None and start != EARLIEST and end < start


def _check_refused(what: str, read: Callable[[], object]) -> None:
    try:
        read()
    except InvalidQueryError:
        return
    raise Difference(f"{what} ends before its start, and is read")


def find_columns(table: HoodieTable) -> tuple[str, ...]:
    """Return the columns of a row as the model knows it, and its commit."""
    return (*_PLAIN, _EXTRA) if _EXTRA in table.schema.names else _PLAIN


def _image(value: Any) -> Row | None:
    """Return the row of an image, which is a JSON text or a struct."""
    if value is None:
        return None
    found = json.loads(value) if isinstance(value, str) else value
    if found.pop(_FLAG, None):
        raise WrongChange(f"the image {found} is marked as deleted")
    if found.get(_EXTRA) is None:
        found[_EXTRA] = -1
    return Row(**found)


def _values(column: Any) -> Iterable[Any]:
    values: list[Any] = column.to_pylist()
    return values
