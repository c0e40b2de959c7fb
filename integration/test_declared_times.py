"""Tables whose files type times otherwise than their schema does, as old streamers and Flink leave them: every way of
reading and rewriting them goes by the schema, as Java Hudi 1.2.0 does.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable, UnsupportedFeatureError
from hoodie_py.spark.reading.hybrid import find_plain_file

UTC_MICROS = pa.timestamp("us", "UTC")
MILLIS = 1_720_631_224_939
MOMENT = dt.datetime(2024, 7, 10, 17, 7, 4, 939000)
LATER = MOMENT + dt.timedelta(seconds=1)

Made = Callable[..., HoodieTable]


def long(logical: str) -> dict[str, str]:
    """An Avro long with a logical type."""
    return {"type": "long", "logicalType": logical}


def optional(type_: Any) -> list[Any]:
    """The type of a field that may be null."""
    return ["null", type_]


def columns(path: Path, declared: dict[str, Any]) -> None:
    """Write other types into the schema that commits record."""
    for commit in [*path.glob(".hoodie/*commit")]:
        content = json.loads(commit.read_text())
        schema = json.loads(content["extraMetadata"]["schema"])
        for field in schema["fields"]:
            field["type"] = declared.get(field["name"], field["type"])
        content["extraMetadata"]["schema"] = json.dumps(schema)
        commit.write_text(json.dumps(content))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """``made(table_type, type, declared)``: keys a and b, b updated once; the column ``c`` holds milliseconds."""

    def make(
        table_type: str,
        stored: pa.DataType,
        declared: Any,
        ordering: str = "ts",
        wrap: Callable[..., pa.Array] | None = None,
    ) -> HoodieTable:
        path = tmp_path / table_type
        schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("c", stored)])
        table = HoodieTable.create(
            str(path), schema, record_key="id", ordering=ordering, table_type=table_type, table_version=6
        )
        for keys, ts, number in ((["a", "b"], 1, MILLIS), (["b"], 2, MILLIS + 1000)):
            numbers = pa.array([number] * len(keys), pa.int64())
            values = numbers.view(stored) if wrap is None else wrap(numbers, stored)
            table.upsert(pa.table({"id": keys, "ts": pa.array([ts] * len(keys)), "c": values}, schema=schema))
        columns(path, {"c": optional(declared)})
        return HoodieTable.open(str(path))

    return make


def rows(table: HoodieTable, **question: Any) -> dict[str, Any]:
    """The column ``c`` by key, times without their zone."""
    found = table.scan(["id", "c"], **question).to_arrow().to_pylist()
    return {
        row["id"]: row["c"].replace(tzinfo=None) if isinstance(row["c"], dt.datetime) else row["c"] for row in found
    }


KINDS = pytest.mark.parametrize(
    ("stored", "declared"),
    [(UTC_MICROS, "timestamp-millis"), (pa.int64(), "local-timestamp-millis")],
    ids=["micros", "long"],
)
TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])


@KINDS
@TYPES
def test_rows_and_filters(made: Made, table_type: str, stored: pa.DataType, declared: str) -> None:
    table = made(table_type, stored, long(declared))
    assert rows(table) == {"a": MOMENT, "b": LATER}
    assert rows(table, filter="c > timestamp'2024-07-10 17:07:05'") == {"b": LATER}  # statistics say 1970, or a number
    assert rows(table, filter="c < timestamp'2024-01-01 00:00:00'") == {}


@KINDS
def test_compaction_writes_what_the_table_declares(made: Made, stored: pa.DataType, declared: str) -> None:
    table = made("MERGE_ON_READ", stored, long(declared))
    table.compact()
    table = HoodieTable.open(table.uri)
    assert rows(table) == rows(table, query_type="read_optimized") == {"a": MOMENT, "b": LATER}
    newest = table.file_slices()[0].base_file or pytest.fail("no base file")
    path = table.files.local_path(newest.path)
    assert pq.read_schema(str(path)).field("c").type.unit == "ms"


@KINDS
@TYPES
def test_writes_go_on(made: Made, table_type: str, stored: pa.DataType, declared: str) -> None:
    table = made(table_type, stored, long(declared))
    zone = dt.UTC if stored == UTC_MICROS else None
    newer = LATER + dt.timedelta(seconds=1)
    table.upsert([{"id": "b", "ts": 3, "c": newer.replace(tzinfo=zone)}])
    assert rows(HoodieTable.open(table.uri)) == {"a": MOMENT, "b": newer}
    table.delete("c < timestamp'2024-07-10 17:07:05'")
    assert rows(HoodieTable.open(table.uri)) == {"b": newer}


@KINDS
def test_ordering_values(made: Made, stored: pa.DataType, declared: str) -> None:
    table = made("MERGE_ON_READ", stored, long(declared), ordering="c")
    assert rows(table) == {"a": MOMENT, "b": LATER}
    zone = dt.UTC if stored == UTC_MICROS else None
    between = MOMENT + dt.timedelta(milliseconds=1)
    table.upsert([{"id": key, "ts": 3, "c": between.replace(tzinfo=zone)} for key in "ab"])
    assert rows(HoodieTable.open(table.uri)) == {"a": between, "b": LATER}


@KINDS
@TYPES
def test_spark_does_not_get_such_files(made: Made, table_type: str, stored: pa.DataType, declared: str) -> None:
    table = made(table_type, stored, long(declared))
    assert all(find_plain_file(task) is None for task in table.scan(["id", "c"], query_type="read_optimized").tasks())
    assert all(find_plain_file(task) for task in table.scan(["id", "ts"], query_type="read_optimized").tasks())


@KINDS
@TYPES
@pytest.mark.parametrize("kind", ["list", "map", "struct"])
def test_times_within_other_types(made: Made, kind: str, table_type: str, stored: pa.DataType, declared: str) -> None:
    inner = optional(long(declared))
    types = {
        "list": (pa.list_(stored), {"type": "array", "items": inner}),
        "map": (pa.map_(pa.string(), stored), {"type": "map", "values": inner}),
        "struct": (
            pa.struct([("x", stored)]),
            {"type": "record", "name": "s", "fields": [{"name": "x", "type": inner}]},
        ),
    }

    def wrap(numbers: pa.Array, type_: pa.DataType) -> pa.Array:
        plain: list[Any] = [
            {"list": [number], "map": [("k", number)], "struct": {"x": number}}[kind] for number in numbers.to_pylist()
        ]
        untimed = {
            "list": pa.list_(pa.int64()),
            "map": pa.map_(pa.string(), pa.int64()),
            "struct": pa.struct([("x", pa.int64())]),
        }
        return pa.array(plain, untimed[kind]).view(type_)

    def taken(value: Any) -> Any:
        inner_value = {"list": lambda: value[0], "map": lambda: value[0][1], "struct": lambda: value["x"]}[kind]()
        return inner_value.replace(tzinfo=None)

    table = made(table_type, *types[kind], wrap=wrap)
    assert {key: taken(value) for key, value in rows(table).items()} == {"a": MOMENT, "b": LATER}
    if table_type == "MERGE_ON_READ":
        table.compact()
        again = rows(HoodieTable.open(table.uri))
        assert {key: taken(value) for key, value in again.items()} == {"a": MOMENT, "b": LATER}


def test_a_bare_long_beside_milliseconds_in_utc_is_refused(made: Made) -> None:
    table = made("COPY_ON_WRITE", pa.int64(), long("timestamp-millis"))
    with pytest.raises(UnsupportedFeatureError, match="stored as int64"):
        rows(table)
