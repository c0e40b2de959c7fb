"""What the commits of a history wrote, file by file, and what a table gives that has only some of them.

An incremental read is that and a filter: of the files that the commits of the range wrote it makes file slices, merges
each among its own, and keeps the rows that say they come from one of these commits (format.md F4.13 to F4.14a). Base
rows that come from other commits do not take part. So an update that loses against an older base row is in the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from integration.histories.rules import Log, Rules, Version, merge


@dataclass(frozen=True, slots=True)
class File:
    """What one commit wrote to one file group: a base file, or a log file.

    Attributes:
        group: number of the file group.
        commit: its request time.
        base: rows of a base file by key; None for a log file.
        log: what a log file has.
        takes: of a base file that a compaction wrote: the commits whose files of this group are in it.
        folds: of a log file that a log compaction wrote: the commits whose log files it stands for.
        lays_out: whether a clustering wrote it.
    """

    group: int
    commit: str
    base: Mapping[str, Version] | None = None
    log: Log = field(default_factory=dict)
    takes: frozenset[str] = frozenset()
    folds: frozenset[str] = frozenset()
    lays_out: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """Where a log file stands among others: a log compaction's in the place of the last one of those it joins."""
        return max(self.folds, default=self.commit), self.commit


def merge_files(
    rules: Rules,
    files: Iterable[File],
    replaced: Mapping[int, str],
    commits: Collection[str],
    base_rows_of: Collection[str] | None = None,
) -> list[Version]:
    """Return the live versions of a table that has only the files of some commits.

    Args:
        rules: of the table.
        files: of all commits, in the order in which they landed.
        replaced: file groups that are gone, and since which commit. Those gone by one of ``commits`` are not read; with
            ``base_rows_of`` those gone at the last of them.
        commits: by request time.
        base_rows_of: base rows of other commits than these do not take part; None for all.
    """
    groups: dict[int, list[File]] = defaultdict(list)
    last = max(commits, default="")
    for file in files:
        gone = replaced.get(file.group)
        is_gone = gone is not None and (gone in commits if base_rows_of is None else gone <= last)
        if file.commit in commits and not is_gone:
            groups[file.group].append(file)
    found: list[Version] = []
    for some in groups.values():
        base = max((each for each in some if each.base is not None), key=lambda each: each.commit, default=None)
        taken = frozenset() if base is None else base.takes
        logs = [each for each in some if each.base is None and each.commit not in taken]
        logs = _drop_lone_folds(logs)
        folded = frozenset().union(*(each.folds for each in logs))
        logs = sorted((each for each in logs if each.commit not in folded), key=lambda each: each.place)
        rows = {} if base is None or base.base is None else base.base
        if base_rows_of is not None:
            rows = {key: version for key, version in rows.items() if version.commit in base_rows_of}
        found += merge(rules, rows, (each.log for each in logs)).values()
    return found


def _drop_lone_folds(logs: Sequence[File]) -> list[File]:
    """Leave out what log compactions wrote where none of the log files that it stands for is read.

    Readers, Java's too, put it in the place of one of these, so in a range without them it has no place.
    """
    folds = {each.commit: each.folds for each in logs if each.folds}
    plain = {each.commit for each in logs if not each.folds}

    def has_source(commit: str) -> bool:
        return any(source in plain or (source in folds and has_source(source)) for source in folds[commit])

    return [each for each in logs if not each.folds or has_source(each.commit)]
