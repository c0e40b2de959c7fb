"""Times that files type otherwise than their table: which are taken for what the table declares, and which are not."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.declared_times import find_mistyped_times, list_declared_times, retype_times
from hoodie_py.formats.parquet.decoder import decode_parquet_data, decode_parquet_parts

MOMENT = 1_720_631_224_939
UTC_MILLIS, UTC_MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
MILLIS, MICROS = pa.timestamp("ms"), pa.timestamp("us")


def long(logical: str | None) -> Any:
    """An Avro long, with a logical type."""
    return {"type": "long", "logicalType": logical} if logical else "long"


def schema(**fields: Any) -> AvroSchema:
    """A record of nullable fields."""
    entries = [{"name": name, "type": ["null", type_], "default": None} for name, type_ in fields.items()]
    return AvroSchema.parse(json.dumps({"type": "record", "name": "r", "fields": entries}))


@pytest.mark.parametrize(
    ("stored", "declared", "read"),
    [
        (UTC_MICROS, "timestamp-millis", UTC_MILLIS),
        (MICROS, "local-timestamp-millis", MICROS),
        (MICROS, "timestamp-millis", MICROS),
        (UTC_MICROS, "local-timestamp-millis", UTC_MICROS),
        (pa.int64(), "local-timestamp-millis", MILLIS),
        (pa.int64(), "local-timestamp-micros", MICROS),
        (pa.int64(), "timestamp-micros", UTC_MICROS),
        (pa.int64(), "timestamp-millis", pa.int64()),  # Java takes it for one thing in base files, another in logs
        (pa.int64(), "time-micros", pa.int64()),
        (pa.int64(), None, pa.int64()),
        (UTC_MICROS, None, UTC_MICROS),
        (UTC_MICROS, "timestamp-micros", UTC_MICROS),
        (UTC_MILLIS, "timestamp-micros", UTC_MILLIS),
        (UTC_MILLIS, "timestamp-millis", UTC_MILLIS),
        (MILLIS, "local-timestamp-micros", MILLIS),
        (pa.timestamp("ns"), "timestamp-millis", pa.timestamp("ns")),
        (pa.int32(), "timestamp-millis", pa.int32()),
        (pa.string(), "local-timestamp-millis", pa.string()),
    ],
    ids=str,
)
def test_the_table_tells_the_unit_of_a_column(stored: pa.DataType, declared: str | None, read: pa.DataType) -> None:
    times = list_declared_times(schema(c=long(declared)).record)
    assert find_mistyped_times(pa.schema([("c", stored)]), times).get("c", stored) == read


def nested(kind: str, logical: str | None) -> Any:
    """A time within another type."""
    inner = ["null", long(logical)]
    return {
        "list": {"type": "array", "items": inner},
        "map": {"type": "map", "values": inner},
        "struct": {
            "type": "record",
            "name": "s",
            "fields": [{"name": "n", "type": ["null", "string"]}, {"name": "x", "type": inner}],
        },
    }[kind]


def values(kind: str, time: pa.DataType) -> pa.Array:
    """Two values of the type that ``nested`` declares, and a null."""
    if kind == "list":
        plain = pa.array([[MOMENT, None], [MOMENT], None], pa.list_(pa.int64()))
        return plain.view(pa.list_(time))
    if kind == "map":
        pairs = pa.array([[("a", MOMENT)], [("b", None)], None], pa.map_(pa.string(), pa.int64()))
        return pairs.view(pa.map_(pa.string(), time))
    rows = [{"n": "a", "x": MOMENT}, {"n": "b", "x": None}, None]
    return pa.array(rows, pa.struct([("n", pa.string()), ("x", pa.int64())])).view(
        pa.struct([("n", pa.string()), ("x", time)])
    )


@pytest.mark.parametrize("kind", ["list", "map", "struct"])
@pytest.mark.parametrize(
    ("stored", "declared", "read"),
    [(UTC_MICROS, "timestamp-millis", UTC_MILLIS), (pa.int64(), "local-timestamp-millis", MILLIS)],
    ids=["micros", "long"],
)
def test_times_within_other_types(kind: str, stored: pa.DataType, declared: str, read: pa.DataType) -> None:
    times = list_declared_times(schema(c=nested(kind, declared), d="string").record)
    batch = pa.RecordBatch.from_arrays([values(kind, stored), pa.array(["x", "y", "z"])], ["c", "d"])
    types = find_mistyped_times(batch.schema, times)
    assert list(types) == ["c"]
    found = retype_times(batch.slice(1), types)
    assert found.column("c").equals(values(kind, read).slice(1))
    assert found.column("d").equals(batch.column("d").slice(1))


def test_a_field_that_the_table_does_not_have_stays_as_it_is() -> None:
    times = list_declared_times(schema(c=nested("struct", "timestamp-millis")).record)
    more = pa.struct([("z", UTC_MICROS), ("x", UTC_MICROS)])
    found = find_mistyped_times(pa.schema([("c", more), ("other", UTC_MICROS)]), times)
    assert found == {"c": pa.struct([("z", UTC_MICROS), ("x", UTC_MILLIS)])}


def test_a_table_without_times_declares_none() -> None:
    assert list_declared_times(schema(a="long", b={"type": "array", "items": "string"}).record) is None
    assert find_mistyped_times(pa.schema([("a", pa.int64())]), None) == {}


@pytest.mark.parametrize(
    ("written", "declared", "read"),
    [
        ("timestamp-micros", "timestamp-millis", "timestamp-millis"),
        ("local-timestamp-micros", "local-timestamp-millis", "local-timestamp-millis"),
        (None, "local-timestamp-millis", "local-timestamp-millis"),
        (None, "local-timestamp-micros", "local-timestamp-micros"),
        (None, "timestamp-millis", "timestamp-millis"),
        ("timestamp-millis", "timestamp-micros", "timestamp-millis"),
        ("time-micros", "timestamp-millis", "time-micros"),
    ],
)
def test_log_blocks_are_decoded_with_the_times_of_the_table(written: str | None, declared: str, read: str) -> None:
    kinds = ("list", "map", "struct")
    mine = schema(c=long(written), **{kind: nested(kind, written) for kind in kinds})
    times = list_declared_times(schema(c=long(declared), **{kind: nested(kind, declared) for kind in kinds}).record)
    expected = schema(c=long(read), **{kind: nested(kind, read) for kind in kinds})
    found = mine.apply_times(times)
    assert found.arrow == expected.arrow
    assert mine.apply_times(times) is found  # so that what is planned for a schema is planned once
    if written == read:
        assert found is mine


def test_parquet_blocks_are_read_with_the_times_of_the_table() -> None:
    times = list_declared_times(schema(c=long("timestamp-millis"), d=long("local-timestamp-millis"), e="long").record)
    rows = pa.table({"c": pa.array([MOMENT]).view(UTC_MICROS), "d": [MOMENT], "e": [MOMENT]})
    content = io.BytesIO()
    pq.write_table(rows, content)
    whole = decode_parquet_data(content.getvalue(), times=times)
    assert whole.schema.types == [UTC_MICROS, MICROS, pa.int64()]
    assert [column.cast(pa.int64())[0].as_py() for column in whole.columns] == [MOMENT * 1000, MOMENT * 1000, MOMENT]
    parts = pa.Table.from_batches(decode_parquet_parts(content.getvalue(), None, 1, times))
    assert parts.to_batches()[0].equals(whole)


def test_int96_is_no_number_of_microseconds() -> None:
    times = list_declared_times(schema(c=long("timestamp-millis")).record)
    content = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array([MOMENT]).view(UTC_MILLIS)}), content, use_deprecated_int96_timestamps=True)
    found = decode_parquet_data(content.getvalue(), times=times)
    assert found.column("c").cast(pa.int64()).to_pylist() == [MOMENT * 1000]
