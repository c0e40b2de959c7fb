"""What a table of one merger must hold, by the rule of the merger and by where the table keeps versions.

A file group is a base version and the versions in its log. Whatever is read is one merge of the base with the log's own
fold. So services change where versions are, and not what is read, as far as the rule allows it: a delete that a base
file absorbs is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from integration.mergers.catalogue import Row, Rule, Version


@dataclass(frozen=True, slots=True)
class Layout:
    """A kind of table, and the index that finds its keys."""

    merge_on_read: bool
    version: int
    index: str

    @property
    def has_buckets(self) -> bool:
        """Whether a key's bucket takes all its versions: a base file if it is the first, else the log."""
        return self.merge_on_read and self.index == "BUCKET"

    @property
    def forgets_dead_keys(self) -> bool:
        """Whether a key whose merged row is a delete is a new key from then on."""
        return not self.merge_on_read or self.index == "RECORD_INDEX" or self.index.startswith("GLOBAL_")

    def __str__(self) -> str:
        return f"v{self.version}-{'mor' if self.merge_on_read else 'cow'}-{self.index.lower()}"


@dataclass(slots=True)
class _Versions:
    """The versions of one key in the file group where the index finds it."""

    base: Version | None = None
    log: list[Version] = field(default_factory=list)


class Model:
    """A table, as plain versions."""

    def __init__(self, rule: Rule, layout: Layout) -> None:
        self._rule = rule
        self._layout = layout
        self._keys: dict[str, _Versions] = {}
        self._buckets: set[str] = set()

    def upsert(self, rows: Sequence[Row], rewritten: Collection[str] = ()) -> None:
        """Write rows; those of one key merge first. ``rewritten`` are keys of base files that took the write, as new
        rows fill small files.
        """
        batch: dict[str, Version] = {}
        for row in rows:
            version = Version(row, row["_hoodie_is_deleted"] is True)
            known = batch.get(row["id"])
            batch[row["id"]] = version if known is None else self._rule(known, version)
        self._put(batch, {row["id"]: row["part"] for row in rows}, rewritten)

    def delete(self, keys: Mapping[str, str]) -> None:
        """Delete keys, which come with their partitions."""
        self._put({key: Version(None, dead=True) for key in keys}, keys)

    def compact(self) -> None:
        """Write each key's merged row into a base file; deletes go."""
        rows = self.rows()
        self._keys = {key: _Versions(Version(row)) for key, row in rows.items()}

    def compact_logs(self) -> None:
        """Fold each log into one version."""
        for each in self._keys.values():
            each.log = [reduce(self._rule, each.log)] if each.log else []

    def rows(self) -> Mapping[str, Row]:
        """The rows that a read gives, by key."""
        merged = {key: self._merge(each) for key, each in self._keys.items()}
        return {key: each.row for key, each in merged.items() if not each.dead and each.row is not None}

    def _put(
        self, batch: Mapping[str, Version], partitions: Mapping[str, str], rewritten: Collection[str] = ()
    ) -> None:
        begun = set()
        for key, version in batch.items():
            known = self._keys.get(key)
            if known is not None:
                self._update(key, known, version, into_base=key in rewritten or not self._layout.merge_on_read)
            elif self._layout.has_buckets and partitions[key] in self._buckets:
                self._keys[key] = _Versions(None, [version])
            elif not version.dead:
                self._keys[key] = _Versions(version)
                begun.add(partitions[key])
        self._buckets |= begun

    def _update(self, key: str, known: _Versions, version: Version, *, into_base: bool) -> None:
        known.log.append(version)
        merged = self._merge(known)
        if merged.dead and (into_base or self._layout.forgets_dead_keys):
            del self._keys[key]
        elif into_base:
            known.base, known.log = merged, []

    def _merge(self, versions: _Versions) -> Version:
        found = ([] if versions.base is None else [versions.base]) + (
            [reduce(self._rule, versions.log)] if versions.log else []
        )
        return reduce(self._rule, found)
