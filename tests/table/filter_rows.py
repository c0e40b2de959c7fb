"""Rows of every type a filter can meet: nulls, NaN, extremes, and columns that are safe to compute with."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = pa.timestamp("us", tz="UTC")
NTZ = pa.timestamp("us")
STRUCT = pa.struct([("b", pa.string()), ("x", pa.int32()), ("inner", pa.struct([("y", pa.float64())]))])

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("i64", pa.int64()),
        ("n8", pa.int8()),
        ("n32", pa.int32()),
        ("n64", pa.int64()),
        ("z", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("nd", pa.float64()),
        ("dc", pa.decimal128(10, 2)),
        ("dcs", pa.decimal128(38, 18)),
        ("dc38", pa.decimal128(38, 0)),
        ("s", pa.string()),
        ("si", pa.string()),
        ("sf", pa.string()),
        ("sd", pa.string()),
        ("st_", pa.string()),
        ("sb", pa.string()),
        ("b", pa.binary()),
        ("bo", pa.bool_()),
        ("dt", pa.date32()),
        ("ts", UTC),
        ("ntz", NTZ),
        ("st", STRUCT),
        ("arr", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("a b", pa.int32()),
    ]
)

_INTEGERS = [0, 1, -1, 2, 5, 100, 127, -128, 32767, -32768, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]
_REALS = [0.0, -0.0, 1.0, 1.5, -2.5, 0.1, 100.0, float("nan"), float("inf"), float("-inf"), 1e300, 5e-324, 2.0**63]
_TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "abc",
    "b",
    "x",
    "hi",
    "Hi",
    "ß",
    "SS",
    "é",
    "É",
    "\uffff",
    "😀",
    "a_b",
    "a%b",
    "a\\b",
    "a\nb",
    "ΑΣ",
    "10",
    "İ",
]
_INTEGER_TEXTS = ["0", "1", " 2 ", "-3", "+4", "007", "100", "9223372036854775807"]
_REAL_TEXTS = ["0", "1.5", "-2.50", "1e2", ".5", "5.", "NaN", "Infinity", " -inf ", "1d", "0.1"]
_DATE_TEXTS = ["2020-01-01", "2021-3-4", "1969-12-31", "2020", "2020-06", "0001-01-01", "2020-01-01T10", "+12020-01-01"]
_STAMP_TEXTS = [
    "2020-01-01",
    "2020-01-01 00:00:01",
    "2020-01-01T01:02:03.5",
    "2019-12-31 23:00:00-01:00",
    "1969-12-31 23:59:59.999999",
    "2020-01-01 1:2 ",
]
_DECIMALS = ["0", "1", "-1", "1.25", "2.5", "99999999.99", "-99999999.99", "0.01", "100"]
_WIDE = ["0", "1", "0.5", "-0.5", "99999999999999999999.999999999999999999", "1.250000000000000001", "100"]
_DAYS = [0, 18262, 18263, -1, -719162, 2932896, 4000000]
_MICROS = [0, -1, 1_577_836_800_000_000, 1_577_836_801_500_000, 1_577_836_800_000_001, -62_135_596_800_000_000, 2**62]


def rows(count: int = 300, seed: int = 7) -> pa.RecordBatch:
    """Make ``count`` reproducible rows; about one value in six is null."""
    pick = random.Random(seed)

    def column(type_: pa.DataType, values: list[Any]) -> pa.Array:
        return pa.array([None if pick.random() < 0.16 else pick.choice(values) for _ in range(count)], type_)

    def integers(bits: int) -> list[int]:
        return [value for value in _INTEGERS if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)]

    decimals = {name: [Decimal(text) for text in texts] for name, texts in (("dc", _DECIMALS), ("dcs", _WIDE))}
    structs = [{"b": b, "x": x, "inner": i} for b in ("x", "y", None) for x in (1, 2, None) for i in ({"y": 1.5}, None)]
    values: dict[str, list[Any]] = {
        "i8": integers(8),
        "i16": integers(16),
        "i32": integers(32),
        "i64": integers(64),
        "n8": [1, 2, 5, -3],
        "n32": [1, 2, 7, -7, 100],
        "n64": [1, 3, -10, 1000],
        "z": [0, 1, 2],
        "f": [0.0, -0.0, 1.0, 1.5, 0.1, float("nan"), float("inf"), 3e38, -2.5],
        "d": _REALS,
        "nd": [1.0, -1.5, 2.25, 1e6, float("nan")],
        "dc": decimals["dc"],
        "dcs": decimals["dcs"],
        "dc38": [Decimal(v) for v in ("0", "1", "-1", "99999999999999999999999999999999999999", "100")],
        "s": _TEXTS,
        "si": _INTEGER_TEXTS,
        "sf": _REAL_TEXTS,
        "sd": _DATE_TEXTS,
        "st_": _STAMP_TEXTS,
        "sb": ["true", "F", " yes ", "0", "1", "n"],
        "b": [b"", b"a", b"ab", b"\xff", b"\x00", b"61"],
        "bo": [True, False],
        "dt": _DAYS,
        "ts": _MICROS,
        "ntz": _MICROS,
        "st": structs,
        "arr": [[1], [], [None]],
        "m": [[("a", 1)], []],
        "a b": [1, 2, 3],
    }
    arrays = [pa.array(range(count), pa.int64())]
    arrays += [column(field.type, values[field.name]) for field in SCHEMA if field.name != "id"]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
