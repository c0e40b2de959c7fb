"""A real Hive Metastore: what one engine registers the other finds by name, reads, follows and leaves as it is.

Java's Spark runs with Hive support, and reads by the metastore's entry alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.catalog import Catalog, open_catalog
from integration.java_hudi.conftest import find_environment
from integration.java_hudi.metastore import run_metastore
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import Kind, make_row
from integration.java_hudi.test_writes import OurLake

pytest.importorskip("thriftpy2", reason="NOT TESTED: thriftpy2 is not installed")

KINDS = [Kind(9, True, True), Kind(9, True, True, False), Kind(6, True, True), Kind(8, False, True, False)]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@dataclass(frozen=True)
class Hive:
    """A metastore, and Java's Spark that takes its tables from there."""

    uri: str
    spark: JavaSession

    def read(self, name: str, column: str) -> list[dict[str, Any]]:
        """Read a column, and the keys, of a table by its name."""
        self.spark.sql(f"refresh table {name}")
        return self.spark.sql(f"select id, {column} from {name} order by id")


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    environment = find_environment()
    with run_metastore(environment, tmp_path_factory.mktemp("metastore")) as uri:
        settings = {"spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": uri}
        with JavaSession(environment, tmp_path_factory.mktemp("hive"), settings) as spark:
            yield Hive(uri, spark)


@pytest.fixture
def catalog(hive: Hive) -> Iterator[Catalog]:
    with open_catalog("hive", hive.uri) as opened:
        yield opened


@every_kind
def test_java_finds_what_we_registered(hive: Hive, catalog: Catalog, kind: Kind, tmp_path: Path) -> None:
    """And follows it: rows, columns, partitions that come and go."""
    name = f"ours.{_name(kind)}"
    lake = OurLake(hive.spark, tmp_path / "table", kind)
    lake.write([make_row(number) for number in range(12)], "insert", mode="overwrite")
    lake.put([make_row(number, 2, name="second") for number in range(3)])
    assert catalog.sync(lake.open(), *name.split(".")).has_changed
    assert not catalog.sync(lake.open(), *name.split(".")).has_changed
    check(hive, catalog, lake, name)
    if kind.merge_on_read:
        # an entry for base files alone gives the rows that are in base files
        assert len(hive.read(f"{name}_ro", "name")) == 12
    lake.put([make_row(40, 3, part="new"), *(make_row(number, 3, name="third") for number in range(5, 7))])
    if kind.partitioned:
        lake.open().delete_partition("p1")
        lake.rows = {key: row for key, row in lake.rows.items() if row["part"] != "p1"}
    assert catalog.sync(lake.open(), *name.split(".")).has_changed
    assert not catalog.sync(lake.open(), *name.split(".")).has_changed
    check(hive, catalog, lake, name)
    if kind.partitioned:
        assert list_partitions(catalog, name) == sorted({row["part"] for row in lake.rows.values()})


@every_kind
def test_we_find_what_java_registered(hive: Hive, catalog: Catalog, kind: Kind, tmp_path: Path) -> None:
    """And leave it as it is while nothing is new, and go on with it where something is."""
    name = f"javas.{_name(kind)}"
    database, table = name.split(".")
    lake = OurLake(hive.spark, tmp_path / "table", kind)
    lake.write(
        [make_row(number) for number in range(12)],
        "insert",
        mode="overwrite",
        hoodie__datasource__hive_sync__enable="true",
        hoodie__datasource__hive_sync__mode="hms",
        hoodie__datasource__hive_sync__metastore__uris=hive.uri,
        hoodie__datasource__hive_sync__database=database,
        hoodie__datasource__hive_sync__table=table,
        hoodie__datasource__hive_sync__partition_extractor_class=_extractor(kind),
        **({"hoodie__datasource__hive_sync__partition_fields": "part"} if kind.partitioned else {}),
    )
    check(hive, catalog, lake, name)
    assert not catalog.sync(lake.open(), *name.split(".")).has_changed
    lake.put([make_row(40, 3, part="new"), make_row(3, 3, name="third")])
    catalog.sync(lake.open(), *name.split("."))
    check(hive, catalog, lake, name)
    if kind.partitioned:
        assert list_partitions(catalog, name) == ["new", "p0", "p1", "p2"]


def check(hive: Hive, catalog: Catalog, lake: OurLake, name: str) -> None:
    """Read by name with both engines, and compare with the model."""
    wanted = [(key, row["name"]) for key, row in sorted(lake.rows.items())]
    assert [(row["id"], row.get("name")) for row in hive.read(name, "name")] == wanted
    ours = catalog.open(name).scan(columns=["id", "name"]).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["name"]) for row in ours] == wanted
    listed = {each.name for each in catalog.list(name.partition(".")[0])}
    assert name in listed
    assert (f"{name}_ro" in listed) == lake.kind.merge_on_read


def list_partitions(catalog: Catalog, name: str) -> list[str]:
    """List what the metastore has; Java's SHOW PARTITIONS asks the table."""
    entry = catalog.metastore.find(*name.split("."))
    assert entry is not None
    return sorted(value for each in catalog.metastore.list_partitions(entry, None) for value in each.values)


def _name(kind: Kind) -> str:
    return str(kind).replace("-", "_")


def _extractor(kind: Kind) -> str:
    return f"org.apache.hudi.hive.{'MultiPartKeysValueExtractor' if kind.partitioned else 'NonPartitionedExtractor'}"
