"""The options of a write, without a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import CommitStateUnknownError, ConflictError, HoodieError, HoodieTable, InvalidQueryError
from hoodie_py.options.write import COMBINE_BEFORE_INSERT
from hoodie_py.spark.write_options import WriteOptions
from hoodie_py.writer.records import WriteOperation
from tests.writer.written_tables import SCHEMA, Kind

W = "hoodie.datasource.write."
NEW = {W + "recordkey.field": "id"}


def parse(where: Path | str, overwrite: bool = False, **options: str) -> WriteOptions:
    given = {name.replace("__", "."): value for name, value in options.items()}
    return WriteOptions.parse({"path": str(where), **given}, {}, overwrite=overwrite)


@pytest.mark.parametrize(
    ("named", "overwrite", "operation", "combines"),
    [
        (None, False, WriteOperation.UPSERT, None),
        ("INSERT", False, WriteOperation.INSERT, None),
        ("delete", False, WriteOperation.DELETE, None),
        (None, True, WriteOperation.INSERT_OVERWRITE_TABLE, "true"),
        ("upsert", True, WriteOperation.INSERT_OVERWRITE_TABLE, "true"),
        ("bulk_insert", True, WriteOperation.INSERT_OVERWRITE_TABLE, None),
        ("insert_overwrite", True, WriteOperation.INSERT_OVERWRITE, None),
        ("delete_partition", False, WriteOperation.DELETE_PARTITION, None),
    ],
)
def test_operation_and_mode(named: str | None, overwrite: bool, operation: WriteOperation, combines: Any) -> None:
    options = {} if named is None else {W + "operation": named}
    found = parse("/t", overwrite, **options)
    assert found.operation is operation
    assert found.settings.get(COMBINE_BEFORE_INSERT) == combines


@pytest.mark.parametrize(
    ("options", "overwrite", "error", "said"),
    [
        ({W + "operation": "alter_schema"}, False, "UnsupportedFeatureError", "alter_schema"),
        ({W + "operation": "delete"}, True, "InvalidQueryError", "append"),
        ({W + "recordkey.field": "a", "hoodie.table.recordkey.fields": "b"}, False, "InvalidQueryError", "different"),
        ({"path": " "}, False, "InvalidQueryError", "No path"),
        ({"storage_options": "{hunter2"}, False, "InvalidQueryError", "JSON"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, str], overwrite: bool, error: str, said: str) -> None:
    with pytest.raises(HoodieError, match=said) as caught:
        WriteOptions.parse({"path": "/t", **options}, {}, overwrite=overwrite)
    assert type(caught.value).__name__ == error
    assert "hunter2" not in str(caught.value)


def test_a_new_table_is_as_the_options_say(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), *list(SCHEMA)[1:]])
    options = {
        **NEW,
        W + "precombine.field": "ts",
        W + "partitionpath.field": "part",
        W + "table.type": "MERGE_ON_READ",
        W + "hive_style_partitioning": "true",
        W + "keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.table.name": "trips",
        "hoodie.write.table.version": "8",
        "hoodie.database.name": "lake",
    }
    with parse(tmp_path, **options).open_or_create(schema):
        pass
    config = HoodieTable.open(tmp_path).config
    assert (config.name, config.database, config.version) == ("trips", "lake", 8)
    assert config.is_merge_on_read
    assert config.hive_style_partitioning
    assert config.key_generator == "COMPLEX"
    assert (config.record_key_fields, config.ordering_fields, config.partition_fields) == (("id",), ("ts",), ("part",))
    assert all(field.nullable for field in HoodieTable.open(tmp_path).schema)
    assert parse(tmp_path, **options).open() is not None  # the same options fit what they made


def test_java_s_defaults_for_a_new_table(tmp_path: Path) -> None:
    with parse(tmp_path / "trips", **NEW).open_or_create(SCHEMA):
        pass
    config = HoodieTable.open(tmp_path / "trips").config
    assert (config.name, config.version, config.table_type) == ("trips", 9, "COPY_ON_WRITE")
    assert not config.partition_fields


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({W + "recordkey.field": "name"}, "recordkey.field says 'name', but the table has 'id'"),
        ({W + "partitionpath.field": "name"}, "partitionpath.field"),
        ({W + "precombine.field": "name"}, "ordering.fields says 'name', but the table has 'ts'"),
        ({W + "table.type": "COW"}, "table.type"),
        ({"hoodie.table.name": "other"}, "table.name"),
        ({"hoodie.write.table.version": "6"}, "version"),
        ({W + "hive_style_partitioning": "true"}, "hive_style"),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "merge.mode"),
    ],
)
def test_options_that_contradict_the_table(tmp_path: Path, options: dict[str, str], said: str) -> None:
    Kind(9, True).create(tmp_path)
    with pytest.raises(HoodieError, match=said):
        parse(tmp_path, **options).open()
    agreeing = {W + "recordkey.field": "id", W + "partitionpath.field": "part:simple", W + "table.type": "mor"}
    assert parse(tmp_path, **agreeing).open() is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [({**NEW, "hoodie.table.version": "x"}, "version"), ({W + "recordkey.field": "nope"}, "nope")],
)
def test_a_table_that_cannot_be_made(tmp_path: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(HoodieError, match=said):
        parse(tmp_path / "t", **options).check_new(SCHEMA)
    assert not (tmp_path / "t").exists()


def test_nothing_to_delete_from(tmp_path: Path) -> None:
    with pytest.raises(HoodieError, match="no Hudi table"):
        parse(tmp_path, **NEW, **{W + "operation": "delete"}).check_new(SCHEMA)


def test_no_secret_shows() -> None:
    found = parse("/t", storage_options='{"secret": "hunter2"}', **{"fs.s3a.secret.key": "hunter2"})
    assert "hunter2" not in f"{found!r} {found.load!r}"
    assert found.load.storage_options["secret"] == "hunter2"


def first_write(base: Path, error: Exception, row: dict[str, str] | None = None) -> None:
    """Open or create the table, write to it with another writer if asked, and then fail."""
    with parse(base, **NEW).open_or_create(SCHEMA):
        assert HoodieTable.open(base).config.name == "trips"
        if row is not None:
            HoodieTable.open(base).upsert(pa.Table.from_pylist([row], SCHEMA))
        raise error


def test_a_table_that_was_made_goes_where_its_first_write_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "trips"
    for error in (InvalidQueryError("no"), ConflictError("no"), ValueError("no")):
        with pytest.raises(type(error)):
            first_write(base, error)
        assert not (base / ".hoodie").exists()
    with pytest.raises(CommitStateUnknownError):
        first_write(base, CommitStateUnknownError("who knows"))
    with pytest.raises(InvalidQueryError):
        first_write(base, InvalidQueryError("no"))  # it was there before
    assert HoodieTable.open(base).config.name == "trips"


def test_a_table_stays_that_somebody_else_wrote_to_meanwhile(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError):
        first_write(tmp_path / "trips", InvalidQueryError("no"), {"id": "a"})
    assert HoodieTable.open(tmp_path / "trips").scan().count() == 1


def test_the_mode_overwrite_can_be_dynamic() -> None:
    dynamic = {"hoodie__datasource__overwrite__mode": "DYNAMIC"}
    assert parse("/t", True, **dynamic).operation is WriteOperation.INSERT_OVERWRITE
    assert parse("/t", False, **dynamic).operation is WriteOperation.UPSERT
    static = {"hoodie__datasource__overwrite__mode": "STATIC"}
    assert parse("/t", True, **static).operation is WriteOperation.INSERT_OVERWRITE_TABLE
