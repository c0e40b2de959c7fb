"""What the commits of a history wrote, file by file, and what a table gives that has only some of them.

An incremental read is that and a filter: of the files that the commits of the range wrote it makes file slices, merges
each among its own, and keeps the rows that say they come from one of these commits (format.md F4.13 to F4.14a). Base
rows that come from other commits do not take part. So an update that loses against an older base row is in the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
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
    """

    group: int
    commit: str
    base: Mapping[str, Version] | None = None
    log: Log = field(default_factory=dict)
    takes: frozenset[str] = frozenset()


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
        replaced: file groups that are gone, and since which commit. Those gone at the last of ``commits`` are not read.
        commits: by request time.
        base_rows_of: base rows of other commits than these do not take part; None for all.
    """
    groups: dict[int, list[File]] = defaultdict(list)
    last = max(commits, default="")
    for file in files:
        if file.commit in commits and not (file.group in replaced and replaced[file.group] <= last):
            groups[file.group].append(file)
    found: list[Version] = []
    for some in groups.values():
        base = max((each for each in some if each.base is not None), key=lambda each: each.commit, default=None)
        taken = frozenset() if base is None else base.takes
        logs = [each for each in some if each.base is None and each.commit not in taken]
        logs.sort(key=lambda each: each.commit)
        rows = {} if base is None or base.base is None else base.base
        if base_rows_of is not None:
            rows = {key: version for key, version in rows.items() if version.commit in base_rows_of}
        found += merge(rules, rows, (each.log for each in logs)).values()
    return found
