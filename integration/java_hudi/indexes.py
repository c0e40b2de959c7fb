"""Tables on which Java Hudi keeps all of its indexes, and the ways in which both engines find rows by them.

The indexes: statistics of columns and partitions, bloom filters, the record index (global, or one for each partition),
a secondary index and two expression indexes, which Java makes by SQL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie_py import HoodieTable
from integration.java_hudi.tables import META, SCHEMA, Kind, Row, by_key, make_row
from integration.java_hudi.test_writes import OurLake

_LOCKS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
_INDEX = "hoodie.metadata.index."
_LEVELS = {"global": "global.record.level.index", "partitioned": "record.level.index"}
_TYPES = {"global": "GLOBAL_RECORD_LEVEL_INDEX", "partitioned": "RECORD_LEVEL_INDEX"}
_SKIPPED = {"hoodie.enable.data.skipping": "true"}  # however few slices there are
_NOTHING_SKIPPED = {"hoodie.enable.data.skipping": "false", "hoodie.metadata.enable": "false"}
_SPOILT = ("foreign", "misplaced")
_WITH_SQL = 8  # the first table version that has secondary and expression indexes
WITH_TYPES = 9  # the first whose statistics have types; before it Java cannot read those of a date's year


@dataclass(frozen=True, slots=True)
class IndexedKind(Kind):
    """A kind of table with all indexes; ``records`` is the kind of record index: global, partitioned or none."""

    records: str = "global"
    sql: bool = True

    def __str__(self) -> str:
        made = "-sql" if self.has_sql else ""
        return f"v{self.version}-{'mor' if self.merge_on_read else 'cow'}-{self.records}{made}"

    @property
    def has_sql(self) -> bool:
        """Whether the table gets the indexes that SQL makes; secondary ones need a global record index."""
        return self.sql and self.version >= _WITH_SQL and self.records == "global"

    @property
    def service_options(self) -> dict[str, str]:
        """Java's options for table services: a service drops the indexes that its options do not name."""
        options = {
            **Kind.service_options.fget(self),  # type: ignore[attr-defined]
            f"{_INDEX}column.stats.enable": "true",
            f"{_INDEX}column.stats.file.group.count": "2",
            f"{_INDEX}bloom.filter.enable": "true",
            f"{_INDEX}bloom.filter.file.group.count": "2",
            "hoodie.index.bloom.num_entries": "1000",
            "hoodie.write.lock.provider": _LOCKS,
        }
        if self.version >= _WITH_SQL:
            options[f"{_INDEX}partition.stats.enable"] = "true"
        if self.records in _LEVELS:
            level = f"hoodie.metadata.{_LEVELS[self.records]}"
            options |= {f"{level}.enable": "true", f"{level}.min.filegroup.count": "2"}
        return options

    @property
    def write_options(self) -> dict[str, str]:
        """Java's options for writes: they find keys by the record index where there is one."""
        options = {**Kind.write_options.fget(self), **self.service_options}  # type: ignore[attr-defined]
        if self.has_sql:
            options["hoodie.clean.automatic"] = "false"  # where it has spoilt indexes, the next write may fail
        return options | ({"hoodie.index.type": _TYPES[self.records]} if self.records in _TYPES else {})


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression index: the statement that makes it, a filter that it answers, and the same of a row."""

    statement: str
    where: str
    keep: Callable[[Row], bool]


_BY_YEAR = Expression(
    "create index by_year on indexed using column_stats(day) options(expr='year')",
    "year(day) = 1969",
    lambda row: row["day"].year == 1969,
)
_BY_START = Expression(  # not of a column of other filters: Java takes it for any function of its column
    "create index by_start on indexed using column_stats(name) options(expr='substring', pos='1', len='4')",
    "substring(name, 1, 4) = 'at 3'",
    lambda row: (row["name"] or "").startswith("at 3"),
)


class IndexedLake(OurLake):
    """A table of such a kind, with the rows that it must have."""

    def begin(self) -> None:
        """Have Java make the table and its indexes; of a plain kind it gets those that Java makes by default."""
        self.write([make_row(number) for number in range(24)], "insert", mode="overwrite")
        self.change(2)
        if isinstance(self.kind, IndexedKind) and self.kind.has_sql:
            self.run_sql(
                "create index by_name on indexed (name)",
                self.expression.statement,
            )
            if not self.kind.merge_on_read:  # with it Java can write no log files
                self.run_sql("create index by_lower on indexed using bloom_filters(id) options(expr='lower')")
        self.change(3)

    @property
    def expression(self) -> Expression:
        """The expression index over ranges."""
        return _BY_YEAR if self.kind.version >= WITH_TYPES else _BY_START

    def run_sql(self, *statements: str) -> None:
        """Have Java run statements on a table ``indexed``."""
        self.java.sql("drop table if exists indexed")
        self.java.sql(f"create table indexed using hudi location '{self.path}'")
        try:
            with self.java.configured(self.kind.service_options):
                for each in statements:
                    self.java.sql(each)
        finally:
            self.java.sql("drop table indexed")

    def clean_java(self) -> None:
        """Have Java clean all but the newest versions."""
        with self.java.configured(self.kind.service_options):
            self.java.clean(self.path, self.kind.service_options)

    def check_round(self, number: int) -> None:
        """Check rows, some of the filters (all of them in five rounds), and the metadata table's entries."""
        self.check_rows()
        self.check_finds(number)
        self.check_entries()

    def check_rows(self) -> None:
        """Compare Java's default read with ours and the model."""
        java, ours = by_key(self.java.read(self.path)), by_key(self.open().scan().to_arrow())
        assert _select(ours, META) == _select(java, META)
        assert _select(ours, SCHEMA.names) == _select(java, SCHEMA.names)
        assert _select(java, SCHEMA.names) == by_key(pa.Table.from_pylist(list(self.rows.values()), SCHEMA))

    def check_finds(self, number: int | None = None) -> None:
        """Filter by every index, in Java with and without skipping of data, and here; compare with the model.

        ``number`` chooses a fifth of the filters, None takes all.
        """
        every = list(self.make_filters().items())
        filters = dict(every if number is None else every[number % 5 :: 5])
        off = {name.replace(".", "__"): value for name, value in _NOTHING_SKIPPED.items()}
        everywhere = [*filters]
        keeps = [*filters.values()]
        if isinstance(self.kind, IndexedKind) and self.kind.has_sql:
            everywhere.append(self.expression.where)  # which only Java can answer by its index
            keeps.append(self.expression.keep)
        by_java = self.java.find(self.path, everywhere, "id")
        unskipped = self.java.find(self.path, everywhere, "id", **off)
        table = HoodieTable.open(self.path)
        for where, keep, *found in zip(everywhere, keeps, by_java, unskipped, strict=False):
            wanted = sorted(key for key, row in self.rows.items() if keep(row))
            assert sorted(found[0]) == wanted, f"java: {where}"
            assert sorted(found[1]) == wanted, f"java, nothing skipped: {where}"
            if where in filters:
                for options in (_SKIPPED, _NOTHING_SKIPPED):
                    ours = table.scan(columns=["id"], filter=where, options=options).to_arrow()["id"].to_pylist()
                    assert sorted(ours) == wanted, f"ours, {options}: {where}"

    def make_filters(self) -> Mapping[str, Callable[[Row], bool]]:
        """Return filters that indexes can answer."""
        keys = sorted(self.rows)
        some = [*keys[:: max(1, len(keys) // 3)], "k999"]
        one, listed = keys[len(keys) // 2], ", ".join(f"'{key}'" for key in some)
        name = next((row["name"] for row in self.rows.values() if row["name"]), "nobody")
        return {
            "price > 60": lambda row: row["price"] > 60,
            "price between 10 and 20 and flag": lambda row: 10 <= row["price"] <= 20 and row["flag"],
            "amount is null": lambda row: row["amount"] is None,
            "day < date'1970-01-05'": lambda row: row["day"] < dt.date(1970, 1, 5),
            f"lower(id) = '{one}'": lambda row: row["id"] == one,
            f"id = '{one}'": lambda row: row["id"] == one,
            f"id in ({listed})": lambda row: row["id"] in some,
            "id = 'k999'": lambda _: False,
            f"name = '{name}'": lambda row: row["name"] == name,
        }

    def check_all(self) -> None:
        """Check rows, files, finds and the metadata table's entries."""
        self.check()
        self.check_metadata()
        self.check_finds()
        self.check_entries()

    def check_entries(self) -> set[str]:
        """Compare every entry of the metadata table with the files, by ``hoodie verify``.

        Returns the partitions in which Java's clean has made file groups of expression indexes (divergences.md).
        """
        report = self.open().verify(metadata=True, data=False)
        foreign = {each.part for each in report.findings if each.problem == "foreign"}
        assert not foreign or (isinstance(self.kind, IndexedKind) and self.kind.has_sql), str(report)
        wrong = [each for each in report.findings if each.part not in foreign or each.problem not in _SPOILT]
        assert wrong == [], str(report)
        return foreign

    def mend(self) -> None:
        """Make anew what Java's clean has spoilt."""
        for name in sorted(self.check_entries()):
            gone = self.open().index.drop(name)
            counts = {key: value for key, value in self.kind.service_options.items() if key.startswith(_INDEX)}
            for each in gone:
                self.open().index.build(each, options=counts)
        assert self.check_entries() == set()


def _select(rows: Mapping[str, Row], names: Sequence[str]) -> dict[str, Row]:
    return {key: {name: row[name] for name in names} for key, row in rows.items()}
