"""A table in memory: file groups with base rows and the versions in their logs, and what each event does to them.

Compaction is a step of the model, because its place matters: a delete without ordering value is forgotten as soon as a
later version replaces it, unless a compaction has carried it out before that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from integration.histories.files import File, merge_files
from integration.histories.operations import (
    Alter,
    Change,
    ClusterPlan,
    ClusterRun,
    DeleteKeys,
    DeletePartition,
    DeleteRows,
    DeleteWhere,
    Event,
    FoldPlan,
    FoldRun,
    Insert,
    Merge,
    Overwrite,
    Plan,
    Run,
    Unplan,
    Update,
    Upsert,
)
from integration.histories.rules import EVENT_TIME, Row, Rules, Version, fold, rules_of
from integration.histories.services import LEAST_BLOCKS, Group, Plans, drop_extra_of_base, drop_extra_of_log

Key = tuple[str, str]
"""Partition and id."""

_DELETE = Version(None, None, deletes=True, from_block=True)  # what the delete operation writes, whatever it is given


class DoubleKey(Exception):
    """An insert of a key that the table has: not a history that is looked at."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of table.

    Attributes:
        version: of the table.
        merge_on_read: or copy on write.
        mode: merge mode.
        wide: whether the ordering column is a long; of an int, 0 is the ordering value of a delete that has none.
        buckets: of a bucket index; 0 for a simple index.
        partitioned: whether by ``part``.
        change_data: how much its change logs have; empty for a table without change data.
        virtual: whether it has no meta fields, and keys are computed.
        grows: whether rows may bring a column that it lacks.
        indexed: whether it has a metadata table with indexes.
    """

    version: int
    merge_on_read: bool
    mode: str
    wide: bool = True
    buckets: int = 0
    partitioned: bool = True
    change_data: str = ""
    virtual: bool = False
    grows: bool = False
    indexed: bool = False

    def __str__(self) -> str:
        parts = [
            f"v{self.version}", "mor" if self.merge_on_read else "cow", self.mode.split("_")[0].lower(),
            "long" if self.wide else "int", f"bucket{self.buckets}" if self.buckets else "simple",
            "part" if self.partitioned else "flat", *([self.change_data.lower()] if self.change_data else []),
            *(name for name in ("virtual", "grows", "indexed") if getattr(self, name)),
        ]  # fmt: skip
        return "-".join(parts)

    def path(self, part: str) -> str:
        """Partition path of a row."""
        return part if self.partitioned else ""

    def bucket(self, key: str) -> int | None:
        """Bucket of a key, as Java computes it; None without buckets."""
        if not self.buckets:
            return None
        text = 0
        for letter in key.encode("utf-16-be")[1::2]:
            text = (31 * text + letter) & 0xFFFFFFFF
        return ((31 + text) & 0x7FFFFFFF) % self.buckets


@dataclass(frozen=True)
class Model:
    """A table. Events give new models.

    Attributes:
        kind: of the table.
        groups: by number.
        plans: file groups of pending compactions by name, oldest first.
        steps: how many events there were.
        made: how many file groups were made; numbers are not used again.
        remembers: the variant of ``rules.merge``.
        written: every file that a commit wrote, oldest first.
        replaced: file groups that are gone, and the commit that replaced them.
        now: the commit that is made.
        seen: the table that its write looked at; None for this one.
        more_plans: pending clusterings and log compactions.
    """

    kind: Kind
    groups: Mapping[int, Group] = field(default_factory=dict)
    plans: Mapping[str, frozenset[int]] = field(default_factory=dict)
    steps: int = 0
    made: int = 0
    remembers: bool = False
    written: tuple[File, ...] = ()
    replaced: Mapping[int, str] = field(default_factory=dict)
    now: str = ""
    seen: Model | None = None
    more_plans: Plans = field(default_factory=Plans)

    @property
    def rules(self) -> Rules:
        return rules_of(self.kind.mode)

    # What is read --------------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Return what a snapshot read gives, sorted."""
        found: list[Row | None] = []
        for group in self.groups.values():
            found += [version.row for version in self._merged(group).values()]
        return sorted(row for row in found if row is not None)

    def base_rows(self) -> list[tuple[Row, str]]:
        """Return what a read of base files alone gives, sorted: rows, and the commits they come from."""
        return _rows(version for group in self.groups.values() for version in group.base.values())

    def rows_of(self, commits: Collection[str]) -> list[tuple[Row, str]]:
        """Return what a table gives that has only these commits, sorted: rows, and the commits they come from."""
        return _rows(merge_files(self.rules, self.written, self.replaced, commits))

    def changed_in(self, commits: Collection[str], *, files_of: Collection[str] | None = None) -> list[tuple[Row, str]]:
        """Return what an incremental read of these commits gives, sorted: rows, and the commits they come from.

        ``files_of``: the commits whose files are read, where they are others.
        """
        commits_read = commits if files_of is None else files_of
        versions = merge_files(self.rules, self.written, self.replaced, commits_read, commits)
        return [(row, commit) for row, commit in _rows(versions) if commit in commits]

    def alive(self) -> set[Key]:
        """Return the keys that the table has."""
        return {(self.kind.path(row.part), row.id) for row in self.rows()}

    def has_double_keys(self) -> bool:
        """Whether a key is in two file groups: it was inserted while deleted, and a compaction forgot the delete."""
        return len(self.alive()) < len(self.rows())

    @property
    def compacted(self) -> frozenset[str]:
        """The compactions that were carried out."""
        return frozenset(each.commit for each in self.written if each.takes)

    @property
    def folded(self) -> frozenset[str]:
        """The log compactions that were carried out."""
        return frozenset(each.commit for each in self.written if each.folds)

    @property
    def rearranged(self) -> frozenset[str]:
        """The commits that changed no row: compactions, clusterings and log compactions."""
        return frozenset(each.commit for each in self.written if each.takes or each.folds or each.lays_out)

    def has_logs_to_plan(self) -> bool:
        return any(group.logs and group.plan is None for group in self.groups.values())

    def replaces_planned(self, event: Event) -> bool:
        """Whether an event does away with a file group that a plan has, or changes one that a clustering has."""
        if isinstance(event, Alter):
            return False  # it writes no file
        then = self.after(event).groups
        gone = self.groups.keys() - then.keys() if isinstance(event, Overwrite | DeletePartition) else set()
        changed = [n for n, each in self.groups.items() if n in then and then[n] is not each]
        return any(self.groups[number].plan is not None for number in gone) or any(
            self.groups[number].plan in self.more_plans.clusterings for number in changed
        )

    def has_groups_to_cluster(self) -> bool:
        return any(group.plan is None for group in self.groups.values())

    def has_logs_to_fold(self) -> bool:
        return any(group.plan is None and len(group.logs) >= LEAST_BLOCKS for group in self.groups.values())

    def has_logs_after(self, plan: str) -> bool:
        """Whether log files were written since a compaction was planned."""
        return any(len(self.groups[each].logs) > self.groups[each].planned for each in self.plans[plan])

    # What happens --------------------------------------------------------------------------------------------------

    def after(self, event: Event, commit: str | None = None, seen: Model | None = None) -> Model:
        """Return the table after an event.

        Args:
            event: what happens.
            commit: its request time; None for a number. A compaction's is the name of its plan.
            seen: the table that a write looked at, where others have changed it since.

        Raises:
            DoubleKey: the event inserts a key that is there.
        """
        model = replace(self, steps=self.steps + 1, now=commit or f"{self.steps:017d}", seen=seen)
        return model._write_event(event) or model._plan_event(event)

    def _write_event(self, event: Event) -> Model | None:
        """Do a write to the table, which knows its name and what it saw; None for another event."""
        match event:
            case Upsert(changes):
                return self._write({key: self._combined(some) for key, some in self._by_key(changes).items()})
            case Insert(changes):
                return self._insert(changes)
            case Overwrite(changes, whole):
                return self._overwrite(changes, whole)
            case DeleteKeys(ids):
                return self._delete_keys(ids)
            case DeleteRows(rows):
                return self._write({(self.kind.path(part), key): _DELETE for key, part, _ in rows})
            case DeleteWhere(most):
                chosen = [row for row in (self.seen or self).rows() if row.ts <= most and row.total % 2 == 0]
                return self._write({(self.kind.path(row.part), row.id): _DELETE for row in chosen})
            case DeletePartition(part):
                return self._delete_partition(part)
            case Update(least):
                chosen = [row for row in (self.seen or self).rows() if row.ts >= least and row.total % 2 == 0]
                return self._write(self._versions(replace(row, total=row.total + 1) for row in chosen))
            case Merge(changes):
                return self._merge(changes)
            case Alter(what):
                return self._without_extra() if what == "drop" else self
        return None

    def _plan_event(self, event: Event) -> Model:
        match event:
            case Plan(name):
                return self._plan(name)
            case Run(name):
                return self._run(name)
            case ClusterPlan(name):
                return self._plan_clustering(name)
            case ClusterRun(name):
                return self._cluster(name)
            case FoldPlan(name):
                return self._plan_folding(name)
            case FoldRun(name):
                return self._fold(name)
            case Unplan(name):
                return self._unplan(name)
        raise AssertionError(event)

    def _delete_keys(self, ids: Iterable[str]) -> Model:
        """Delete in every partition that has the key; without partitions nobody looks whether it is there."""
        seen = self.seen or self
        keys = {(group.part, key) for group in seen.groups.values() for key in ids}
        if self.kind.partitioned:
            keys = {key for key in keys if (place := seen._place(key)) is not None and seen.groups[place].knows(key[1])}
        return self._write(dict.fromkeys(keys, _DELETE))

    def _merged(self, group: Group, logs: int | None = None) -> dict[str, Version]:
        return group.merged(self.rules, logs, remembers=self.remembers)

    def _ordering(self, ts: int, *, deletes: bool) -> int | None:
        """Return a version's ordering value: a delete's int 0, not a long 0, stands for none."""
        if self.kind.mode != EVENT_TIME or (deletes and ts == 0 and not self.kind.wide):
            return None
        return ts

    def _version(self, change: Change) -> Version:
        ordering = self._ordering(change.row.ts, deletes=change.deletes)
        return Version(change.row, ordering, change.deletes, commit=self.now)

    def _by_key(self, changes: Iterable[Change]) -> dict[Key, list[Version]]:
        found: dict[Key, list[Version]] = defaultdict(list)
        for change in changes:
            found[self.kind.path(change.row.part), change.row.id].append(self._version(change))
        return found

    def _combined(self, versions: list[Version]) -> Version:
        return fold(self.rules, versions)[0]

    def _place(self, key: Key) -> int | None:
        """Return the group that a key belongs to: where it lives, else the newest that knows it."""
        part, name = key
        bucket = self.kind.bucket(name)
        here = {n: each for n, each in self.groups.items() if each.part == part and each.bucket == bucket}
        if bucket is not None:
            return next(iter(here), None)
        known = [number for number, each in here.items() if each.knows(name)]
        living = [number for number in known if name in self._merged(here[number])]
        if living:
            return living[0]
        return max(known, key=lambda number: here[number].age, default=None)

    def _write(self, versions: Mapping[Key, Version]) -> Model:
        """Put versions where their keys are, and live ones of new keys into new groups."""
        placed: dict[int, dict[str, Version]] = defaultdict(dict)
        fresh: dict[Key, Version] = {}
        for key, version in versions.items():
            number = (self.seen or self)._place(key)
            if number is not None:
                placed[number][key[1]] = version
            elif not version.deletes:
                fresh[key] = version
        groups, files = dict(self.groups), list(self.written)
        for number, some in placed.items():
            group = self._changed(groups[number], some)
            groups[number] = group
            content = {"log": group.logs[-1]} if self.kind.merge_on_read else {"base": group.base}
            files.append(File(number, self.now, **content))
        return replace(self, groups=groups, written=tuple(files))._new_groups(fresh)

    def _changed(self, group: Group, versions: Mapping[str, Version]) -> Group:
        if self.kind.merge_on_read:
            log = {key: (self.rules.in_log(version),) for key, version in versions.items()}
            return replace(group, logs=(*group.logs, log), commits=(*group.commits, self.now))
        base = dict(group.base)
        for key, version in versions.items():
            older = base.pop(key, None)
            last = version if older is None else self.rules.final_merge(older, version)
            if not last.deletes:
                base[key] = older if older is not None and last is older else replace(last, commit=self.now)
        return replace(group, base=base)

    def _new_groups(self, versions: Mapping[Key, Version]) -> Model:
        places: dict[tuple[str, int | None], dict[str, Version]] = defaultdict(dict)
        for (part, key), version in versions.items():
            places[part, self.kind.bucket(key)][key] = version
        groups, files = dict(self.groups), list(self.written)
        for number, ((part, bucket), base) in enumerate(places.items(), self.made):
            groups[number] = Group(part, bucket, base, age=self.now)
            files.append(File(number, self.now, base))
        return replace(self, groups=groups, made=self.made + len(places), written=tuple(files))

    def _insert(self, changes: Iterable[Change]) -> Model:
        versions = {key: version for key, [version] in self._by_key(changes).items()}
        if self.alive() & versions.keys():
            raise DoubleKey
        if self.kind.buckets:
            return self._write(versions)
        return self._new_groups({key: version for key, version in versions.items() if not version.deletes})

    def _overwrite(self, changes: Iterable[Change], whole: bool) -> Model:
        versions = {key: version for key, [version] in self._by_key(changes).items()}
        if not versions and not whole:
            return self
        parts = {part for part, _ in versions}
        kept = {number: each for number, each in self.groups.items() if not whole and each.part not in parts}
        fresh = {key: version for key, version in versions.items() if not version.deletes}
        gone = dict.fromkeys(self.groups.keys() - kept.keys(), self.now)
        return replace(self, groups=kept, replaced={**self.replaced, **gone})._new_groups(fresh)

    def _delete_partition(self, part: str) -> Model:
        kept = {number: each for number, each in self.groups.items() if each.part != part}
        gone = dict.fromkeys(self.groups.keys() - kept.keys(), self.now)
        return replace(self, groups=kept, replaced={**self.replaced, **gone})

    def _versions(self, rows: Iterable[Row]) -> dict[Key, Version]:
        return {(self.kind.path(row.part), row.id): self._version(Change(row)) for row in rows}

    def _merge(self, changes: Iterable[Change]) -> Model:
        there = {(self.kind.path(row.part), row.id): row for row in (self.seen or self).rows()}
        rows = []
        for each in changes:
            known = there.get((self.kind.path(each.row.part), each.row.id))
            rows.append(each.row if known is None else replace(known, total=each.row.total))
        return self._write(self._versions(rows))

    def _without_extra(self) -> Model:
        """Return the table without the column extra; today's columns are those of every range."""
        groups = {
            number: replace(each, base=drop_extra_of_base(each.base), logs=tuple(map(drop_extra_of_log, each.logs)))
            for number, each in self.groups.items()
        }
        files = tuple(
            replace(
                each,
                base=None if each.base is None else drop_extra_of_base(each.base),
                log=drop_extra_of_log(each.log),
            )
            for each in self.written
        )
        return replace(self, groups=groups, written=files)

    def _plan_clustering(self, name: str) -> Model:
        return self._plan_more(name, {n for n, each in self.groups.items() if each.plan is None}, clusters=True)

    def _plan_folding(self, name: str) -> Model:
        chosen = {n for n, each in self.groups.items() if each.plan is None and len(each.logs) >= LEAST_BLOCKS}
        return self._plan_more(name, chosen, clusters=False)

    def _plan_more(self, name: str, chosen: set[int], *, clusters: bool) -> Model:
        if not chosen:
            return self
        planned = {n: replace(self.groups[n], plan=name, planned=len(self.groups[n].logs)) for n in chosen}
        plans = self.more_plans
        if clusters:
            plans = replace(plans, clusterings={**plans.clusterings, name: frozenset(chosen)})
        else:
            plans = replace(plans, foldings={**plans.foldings, name: frozenset(chosen)})
        return replace(self, groups={**self.groups, **planned}, more_plans=plans)

    def _cluster(self, name: str) -> Model:
        """Write the rows of each partition's planned groups into a new one."""
        gone = self.more_plans.clusterings.get(name, frozenset()) & self.groups.keys()
        bases: dict[str, dict[str, Version]] = defaultdict(dict)
        for number in sorted(gone):
            bases[self.groups[number].part] |= self._merged(self.groups[number])
        groups = {number: each for number, each in self.groups.items() if number not in gone}
        files, made = list(self.written), self.made
        for part, base in bases.items():
            if base:
                groups[made] = Group(part, None, base, age=name)
                files.append(File(made, name, base, lays_out=True))
                made += 1
        if not any(bases.values()):
            files.append(File(-1, name, {}, lays_out=True))
        replaced = {**self.replaced, **dict.fromkeys(gone, name)}
        return replace(
            self, groups=groups, written=tuple(files), made=made, replaced=replaced,
            more_plans=self.more_plans.without(name),
        )  # fmt: skip

    def _fold(self, name: str) -> Model:
        groups, files = dict(self.groups), list(self.written)
        for number in self.more_plans.foldings.get(name, frozenset()) & groups.keys():
            groups[number], file = groups[number].folded(self.rules, name)
            files.append(replace(file, group=number))
        return replace(self, groups=groups, written=tuple(files), more_plans=self.more_plans.without(name))

    def _plan(self, name: str) -> Model:
        chosen = {number: each for number, each in self.groups.items() if each.logs and each.plan is None}
        if not chosen:
            return self
        time = name if name.isdecimal() else self.now
        planned = {n: replace(each, plan=name, plan_time=time, planned=len(each.logs)) for n, each in chosen.items()}
        return replace(self, groups={**self.groups, **planned}, plans={**self.plans, name: frozenset(planned)})

    def _run(self, name: str) -> Model:
        if name not in self.plans:
            return self
        groups, files = dict(self.groups), list(self.written)
        for number in self.plans[name] & groups.keys():
            group = groups[number]
            base = self._merged(group, group.planned)
            logs, left = group.logs[group.planned :], group.commits[group.planned :]
            groups[number] = Group(group.part, group.bucket, base, logs, left, age=group.plan_time)
            taken = {each.commit for each in files if each.group == number} - {*left}
            files.append(File(number, name, base, takes=frozenset(taken)))
        return replace(self, groups=groups, plans=_without(self.plans, name), written=tuple(files))

    def _unplan(self, name: str) -> Model:
        freed = {n: replace(each, plan=None, planned=0) for n, each in self.groups.items() if each.plan == name}
        plans, more = _without(self.plans, name), self.more_plans.without(name)
        return replace(self, groups={**self.groups, **freed}, plans=plans, more_plans=more)


def _rows(versions: Iterable[Version]) -> list[tuple[Row, str]]:
    return sorted((each.row, each.commit) for each in versions if each.row is not None)


def _without(plans: Mapping[str, frozenset[int]], name: str) -> dict[str, frozenset[int]]:
    return {each: groups for each, groups in plans.items() if each != name}


def replayed(kind: Kind, events: Iterable[Event], *, remembers: bool = False) -> Model:
    """Return the table after events.

    Raises:
        DoubleKey: one of them inserts a key that is there.
    """
    return reduce(Model.after, events, Model(kind, remembers=remembers))
