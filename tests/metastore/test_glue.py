"""AWS Glue, as moto plays it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from hoodie_py import InvalidQueryError, TableNotFoundError
from hoodie_py.catalog import Catalog, open_catalog
from hoodie_py.metastore.entry import LAST_INSTANT, CatalogPartition
from tests.metastore.test_sync import make_table
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import SCHEMA, row

moto = pytest.importorskip("moto", reason="NOT TESTED: moto is not installed")


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto.mock_aws(), open_catalog("glue", options={"region_name": "eu-west-1"}) as catalog:
        yield catalog


def test_a_table_is_registered_followed_and_opened(glue, tmp_path) -> None:
    table = make_table(tmp_path / "trips", merge_on_read=True)
    assert glue.sync(table, "lake").has_changed
    assert not glue.sync(table, "lake").has_changed
    made = glue.metastore._get("lake", "trips")
    assert made["Parameters"]["hudi.metadata-listing-enabled"] == "FALSE"
    assert (made["TableType"], made["Parameters"]["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert [each["Name"] for each in made["PartitionKeys"]] == ["part"]
    wider = SCHEMA.append(pa.field("extra", pa.int32()))
    table.upsert(pa.Table.from_pylist([{**row(7), "part": "p9", "extra": 1}], wider), QUICK)
    table.delete_partition("p0", options=QUICK)
    done = glue.sync(table, "lake").entries[0]
    assert (done.columns, done.added, done.dropped) == (True, ("p9",), ("p0",))
    entry = glue.metastore.find("lake", "trips")
    assert sorted(each.values for each in glue.metastore.list_partitions(entry, None)) == [("p1",), ("p9",)]
    assert entry.columns[-1].name == "extra"
    assert [each.name for each in glue.list()] == ["lake.trips_ro", "lake.trips_rt", "lake.trips"]
    assert glue.open("lake.trips").scan().to_arrow().num_rows == 2


def test_partitions_that_moved(glue, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    glue.sync(table)
    entry = glue.metastore.find("default", "t")
    known = glue.metastore.list_partitions(entry, None)
    glue.metastore.move_partitions(entry, [replace(each, location="/elsewhere") for each in known])
    unknown = replace(entry, parameters={LAST_INSTANT: "1"})  # so that all partitions are compared
    glue.metastore.alter(entry, unknown)
    assert glue.sync(table).entries[0].moved == ("p0", "p1")


def test_many_partitions_go_in_batches(glue, tmp_path) -> None:
    glue.sync(make_table(tmp_path / "t"))
    entry = glue.metastore.find("default", "t")
    many = [CatalogPartition((f"d{number}",), f"/t/d{number}") for number in range(120)]
    glue.metastore.add_partitions(entry, many)
    glue.metastore.add_partitions(entry, many[:3])  # those that are there are no error
    glue.metastore.drop_partitions(entry, [each.values for each in many[:60]])
    assert len(glue.metastore.list_partitions(entry, [each.values for each in many])) == 60


def test_names_that_are_not_there(glue) -> None:
    with pytest.raises(TableNotFoundError, match=r"no table lake\.t"):
        glue.open("lake.t")
    with pytest.raises(InvalidQueryError, match="no database lake"):
        glue.list("lake")


def test_options_that_are_unknown() -> None:
    with pytest.raises(InvalidQueryError, match="Unknown option of the Glue catalog: 'region'"):
        open_catalog("glue", options={"region": "eu-west-1"})
