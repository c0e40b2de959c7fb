"""Who wins between two versions of a record, in plain Python and from the specification alone (Hudi's BufferedRecord
mergers, the reader's rulings): nothing here comes from the package that is tested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

EVENT_TIME = "EVENT_TIME_ORDERING"
COMMIT_TIME = "COMMIT_TIME_ORDERING"
CUSTOM = "CUSTOM"

WEIGHT_OF_A_BARE_DELETE = 2
LONGEST_NAME = 6


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A row of the tables in histories; ``extra`` is a column that a table need not have, -1 stands for null."""

    id: str
    part: str
    ts: int
    total: int
    name: str
    extra: int = -1


@dataclass(frozen=True, slots=True)
class Version:
    """What one write says of a record.

    Attributes:
        row: None on deletes that bring no row.
        ordering: None where commit time decides.
        deletes: whether it deletes.
        from_block: whether it comes from a delete block of a log.
        commit: that the row says it comes from.
    """

    row: Row | None
    ordering: int | None
    deletes: bool = False
    from_block: bool = False
    commit: str = ""


class Rules(Protocol):
    """How a table merges."""

    def delta_merge(self, older: Version, newer: Version) -> Version:
        """Merge two versions of a log, or of a batch."""
        ...

    def final_merge(self, base: Version, log: Version) -> Version:
        """Merge a base row with what the log says."""
        ...

    def in_log(self, version: Version) -> Version:
        """Return a version as it is once a log file has it."""
        ...


class CommitTime:
    """The newer one wins."""

    def delta_merge(self, older: Version, newer: Version) -> Version:
        return newer

    def final_merge(self, base: Version, log: Version) -> Version:
        return log

    def in_log(self, version: Version) -> Version:
        return _bare(version)


class EventTime:
    """The greater ordering value wins, the newer one of equals; deletes without one win at once, and lose at once."""

    def delta_merge(self, older: Version, newer: Version) -> Version:
        if not newer.from_block:
            return self.final_merge(older, newer)
        if older.deletes and older.ordering is None:
            return older
        if newer.ordering is None or older.ordering is None:
            return newer
        return older if older.ordering > newer.ordering else newer

    def final_merge(self, base: Version, log: Version) -> Version:
        if (log.deletes and log.ordering is None) or (base.deletes and base.ordering is None):
            return log
        assert base.ordering is not None
        assert log.ordering is not None
        return log if log.ordering >= base.ordering else base

    def in_log(self, version: Version) -> Version:
        return _bare(version)


class Weighted:
    """What ``mergers.Weighted`` does: the greater weight wins, deletes have one too, and names grow."""

    def delta_merge(self, older: Version, newer: Version) -> Version:
        heavier = _weight(newer) >= _weight(older)
        if older.deletes or newer.deletes:
            return newer if heavier else older
        win, lose = (newer, older) if heavier else (older, newer)
        assert win.row is not None
        assert lose.row is not None
        return replace(win, row=replace(win.row, name=(win.row.name + lose.row.name)[:LONGEST_NAME]))

    def final_merge(self, base: Version, log: Version) -> Version:
        return self.delta_merge(base, log)

    def in_log(self, version: Version) -> Version:
        return version


def _bare(version: Version) -> Version:
    """Deletes of the built-in modes go into delete blocks, which have no rows."""
    return replace(version, row=None, from_block=True) if version.deletes else version


def _weight(version: Version) -> int:
    return WEIGHT_OF_A_BARE_DELETE if version.row is None else version.row.total % 4


def fold(rules: Rules, versions: Sequence[Version]) -> tuple[Version, bool]:
    """Merge versions of a log, oldest first.

    Returns:
        What is left, and whether a delete without ordering value was replaced by it on the way.
    """
    last, forgotten = versions[0], False
    for version in versions[1:]:
        older, last = last, rules.delta_merge(last, version)
        forgotten |= older.deletes and older.ordering is None and not (last.deletes and last.ordering is None)
    return last, forgotten


Log = Mapping[str, tuple[Version, ...]]
"""The versions that a log file has of each key."""


def merge(
    rules: Rules, base: Mapping[str, Version], logs: Iterable[Log], *, remembers: bool = False
) -> dict[str, Version]:
    """Merge the rows of a base file with log files, oldest first.

    Args:
        rules: of the table.
        base: its rows by key.
        logs: oldest first.
        remembers: a variant for comparison, in which a delete without ordering value does away with the base row even
            where a later version has replaced it.

    Returns:
        Live versions by key.
    """
    versions: dict[str, list[Version]] = defaultdict(list)
    for log in logs:
        for key, some in log.items():
            versions[key] += some
    found = dict(base)
    for key, some in versions.items():
        last, forgotten = fold(rules, some)
        if key in found and not (remembers and forgotten):
            last = rules.final_merge(found[key], last)
        found[key] = last
    return {key: version for key, version in found.items() if not version.deletes}


def rules_of(mode: str) -> Rules:
    """Return the rules of a merge mode."""
    return {EVENT_TIME: EventTime, COMMIT_TIME: CommitTime, CUSTOM: Weighted}[mode]()
