"""A catalog in memory, which counts what is written to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hoodie_py.metastore.entry import CatalogPartition, Entry


class FakeMetastore:
    """Entries and partitions in dicts; ``written`` are the verbs that changed something."""

    kind = "hive"

    def __init__(self) -> None:
        self.databases: set[str] = set()
        self.entries: dict[str, Entry] = {}
        self.partitions: dict[str, dict[tuple[str, ...], str]] = {}
        self.written: list[str] = []
        self.asked: list[object] = []

    @property
    def metastore(self) -> FakeMetastore:
        return self

    def list_databases(self) -> list[str]:
        return sorted(self.databases)

    def has_database(self, name: str) -> bool:
        return name in self.databases

    def create_database(self, name: str) -> None:
        self.written.append("create_database")
        self.databases.add(name)

    def list_entries(self, database: str) -> list[Entry]:
        return [each for each in self.entries.values() if each.database == database]

    def find(self, database: str, name: str) -> Entry | None:
        return self.entries.get(f"{database}.{name}")

    def create(self, entry: Entry) -> None:
        self.written.append("create")
        self.entries[entry.full_name] = entry
        self.partitions[entry.full_name] = {}

    def alter(self, known: Entry, entry: Entry) -> None:
        self.written.append("alter")
        parameters = {**known.parameters, **entry.parameters}
        self.entries[entry.full_name] = replace(entry, parameters=parameters)

    def list_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        self.asked.append(values)
        there = self.partitions[entry.full_name]
        return [CatalogPartition(each, there[each]) for each in there if values is None or each in values]

    def add_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        self.written.append("add_partitions")
        self.partitions[entry.full_name] |= {each.values: each.location for each in partitions}

    def move_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        self.written.append("move_partitions")
        self.partitions[entry.full_name] |= {each.values: each.location for each in partitions}

    def drop_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]]) -> None:
        self.written.append("drop_partitions")
        for each in values:
            del self.partitions[entry.full_name][each]

    def close(self) -> None:
        self.written.append("close")
