"""The Hive Metastore's client against a small server that speaks Thrift."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hoodie_py import ConflictError, HoodieTable, InvalidQueryError, StorageError, TableNotFoundError
from hoodie_py.catalog import open_catalog
from tests.metastore.test_sync import make_table
from tests.metastore.thrift_metastore import ThriftMetastore, run_metastore
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import row

thriftpy2 = pytest.importorskip("thriftpy2", reason="NOT TESTED: thriftpy2 is not installed")

pytestmark = pytest.mark.smoke


@pytest.fixture
def server() -> Iterator[ThriftMetastore]:
    with run_metastore() as running:
        yield running


def test_a_table_is_registered_followed_and_opened(server, tmp_path) -> None:
    table = make_table(tmp_path / "trips", merge_on_read=True)
    with open_catalog("hive", server.uri) as catalog:
        assert catalog.sync(table, "lake").has_changed
        assert not catalog.sync(table, "lake").has_changed
        made = server.tables["lake", "trips_ro"]
        assert (made.tableType, made.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
        assert [each.name for each in made.partitionKeys] == ["part"]
        table.upsert([{**row(7), "part": "p9"}], QUICK)
        table.delete_partition("p0", options=QUICK)
        catalog.sync(table, "lake")
        assert sorted(server.partitions["lake", "trips"]) == [("p1",), ("p9",)]
        listed = {each.name: each.query_type for each in catalog.list("lake")}
        assert listed == {"lake.trips_ro": "read_optimized", "lake.trips_rt": "snapshot", "lake.trips": "snapshot"}
        assert catalog.list() == catalog.list("LAKE")
        assert catalog.open("lake.trips").scan().to_arrow().num_rows == 2
        with pytest.raises(Exception, match="base files of a table only"):
            catalog.open("lake.trips_ro")


def test_columns_reach_partitions_and_comments_stay(server, tmp_path) -> None:
    import pyarrow as pa

    from tests.writer.written_tables import SCHEMA

    table = make_table(tmp_path / "t")
    with open_catalog("hive", server.uri) as catalog:
        catalog.sync(table)
        server.tables["default", "t"].sd.cols[-1].comment = "who"
        table.upsert(
            pa.Table.from_pylist([{**row(1, 5), "extra": 3}], SCHEMA.append(pa.field("extra", pa.int32()))), QUICK
        )
        server.calls.clear()
        catalog.sync(table)
    assert server.calls[0] == "alter_table ['CASCADE', 'DO_NOT_UPDATE_STATS']"
    columns = [(each.name, each.comment) for each in server.tables["default", "t"].sd.cols][-2:]
    assert columns == [("name", "who"), ("extra", "")]


def test_what_the_metastore_refuses_says_so(server, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    with open_catalog("hive", server.uri) as catalog:
        catalog.sync(table)
        columns = server.tables["default", "t"].sd.cols
        columns.insert(len(columns) - 1, server.types.FieldSchema(name="between", type="int", comment=""))
        with pytest.raises(InvalidQueryError, match="refuses: columns have types incompatible"):
            catalog.sync(table)


def test_a_write_tells_the_catalog(server, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    options = {
        **QUICK,
        "hoodie.datasource.hive_sync.enable": "true",
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.metastore.uris": server.uri,
    }
    result = table.upsert([row(3)], options)
    assert [str(each) for each in result.synced] == ["default.t is new: 2 partitions added."]
    assert server.tables["default", "t"].parameters["last_commit_time_sync"] == result.instant


def test_a_write_that_cannot_tell_the_catalog_warns(tmp_path) -> None:
    table = make_table(tmp_path / "t")
    options = {
        **QUICK,
        "hoodie.datasource.meta.sync.enable": "true",
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.metastore.uris": "thrift://127.0.0.1:1",
    }
    with pytest.warns(UserWarning, match="The write is committed; the sync with the catalog failed"):
        assert table.upsert([row(3)], options).instant is not None
    assert HoodieTable.open(tmp_path / "t").scan().to_arrow().num_rows == 3


def test_names_that_are_not_there(server) -> None:
    with open_catalog("hive", server.uri) as catalog:
        with pytest.raises(TableNotFoundError, match=r"no table lake\.trips"):
            catalog.open("lake.trips")
        with pytest.raises(InvalidQueryError, match="no database nope"):
            catalog.list("nope")
        with pytest.raises(InvalidQueryError, match="no name of a table"):
            catalog.find("a.b.c")


def test_nobody_answers() -> None:
    with pytest.raises(StorageError, match="cannot be reached"):
        open_catalog("hive", "thrift://127.0.0.1:1")


@pytest.mark.parametrize("uri", ["http://x:9083", "thrift://", "thrift://h:x", "", "thrift://h:1/path"])
def test_addresses_that_are_none(uri) -> None:
    with pytest.raises(InvalidQueryError, match=r"address"):
        open_catalog("hive", uri)


def test_a_table_that_was_dropped_meanwhile(server, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    with open_catalog("hive", server.uri) as catalog:
        catalog.sync(table)
        entry = catalog.metastore.find("default", "t")
        del server.tables["default", "t"]
        with pytest.raises(ConflictError, match="dropped meanwhile"):
            catalog.metastore.alter(entry, entry)
