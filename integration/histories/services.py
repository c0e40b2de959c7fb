"""What clusterings and log compactions do to the file groups of a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from integration.histories.files import File
from integration.histories.rules import Log, Row, Rules, Version, fold, merge

LEAST_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Group:
    """A file group: base rows, and the versions that each log file has of each key.

    Attributes:
        base: by key; what the newest base file has.
        logs: since then, oldest first.
        commits: that wrote them.
        planned: how many of the logs a pending plan takes.
        plan: its name; None without one.
        plan_time: when it was requested.
        age: request time of the base file's commit.
    """

    part: str
    bucket: int | None
    base: Mapping[str, Version]
    logs: tuple[Log, ...] = ()
    commits: tuple[str, ...] = ()
    planned: int = 0
    plan: str | None = None
    plan_time: str = ""
    age: str = ""

    def merged(self, rules: Rules, logs: int | None = None, *, remembers: bool = False) -> dict[str, Version]:
        """Return what a read gives, of so many log files, all by default: live versions by key."""
        return merge(rules, self.base, self.logs[:logs], remembers=remembers)

    def knows(self, key: str) -> bool:
        """Whether the key is in the base file or in a log."""
        return key in self.base or any(key in log for log in self.logs)

    def folded(self, rules: Rules, name: str) -> tuple[Group, File]:
        """Return it with the planned logs joined by a log compaction, and the file of that, without its number."""
        versions: dict[str, list[Version]] = defaultdict(list)
        for log in self.logs[: self.planned]:
            for key, some in log.items():
                versions[key] += some
        joined = {key: (replace(fold(rules, some)[0], commit=name),) for key, some in versions.items()}
        group = replace(
            self,
            logs=(joined, *self.logs[self.planned :]),
            commits=(name, *self.commits[self.planned :]),
            planned=0,
            plan=None,
        )
        return group, File(-1, name, log=joined, folds=frozenset(self.commits[: self.planned]))


@dataclass(frozen=True)
class Plans:
    """Pending clusterings and log compactions: file groups by name, oldest first."""

    clusterings: Mapping[str, frozenset[int]] = field(default_factory=dict)
    foldings: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def without(self, name: str) -> Plans:
        return Plans(
            {each: some for each, some in self.clusterings.items() if each != name},
            {each: some for each, some in self.foldings.items() if each != name},
        )


def drop_extra(version: Version) -> Version:
    """Return a version without the value of the column extra."""
    return version if version.row is None else replace(version, row=_without_extra(version.row))


def _without_extra(row: Row) -> Row:
    return replace(row, extra=-1)


def drop_extra_of_log(log: Log) -> Log:
    return {key: tuple(map(drop_extra, some)) for key, some in log.items()}


def drop_extra_of_base(base: Mapping[str, Version]) -> dict[str, Version]:
    return {key: drop_extra(version) for key, version in base.items()}
