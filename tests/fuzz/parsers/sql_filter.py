"""Filters in SQL: reading, binding to columns, evaluation."""

from __future__ import annotations

import datetime
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.sql_parser import parse_sql
from tests.fuzz.trees import BUILT, is_built, text

_WORDS = r"""
i l d s b n t u y st st.b and or not ( ) , = <=> <> < >= + - * / % in between like escape is null true cast( as int
bigint string double decimal(10,2) decimal(38,38) boolean date timestamp timestamp_ntz binary upper( lower( length(
0 1 -2147483648 9223372036854775808 1.5 1e400 1e-400 2S 3Y 4L 5BD 0.1f 'x' '%' '_' '\\\\' '12' '2026-01-01' X'00'
date'2026-01-01' timestamp'2026-01-01T00:00:00' 'NaN' 'infinity' '' 99999999999999999999999999999999999999
"""
WORDS = tuple(_WORDS.split())
BATCH = pa.RecordBatch.from_pydict(
    {
        "i": pa.array([1, None, -(1 << 31)], pa.int32()),
        "l": pa.array([1 << 62, 0, None], pa.int64()),
        "d": pa.array([float("nan"), 1.5, None], pa.float64()),
        "s": pa.array(["x", "12", None], pa.string()),
        "b": pa.array([True, False, None], pa.bool_()),
        "n": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal128(10, 2)),
        "t": pa.array([0, None, 10**15], pa.timestamp("us", "UTC")),
        "u": pa.array([datetime.date(2026, 1, 1), None, datetime.date(1, 1, 1)], pa.date32()),
        "st": pa.array([{"b": "x"}, None, {"b": None}], pa.struct([("b", pa.string())])),
        "y": pa.array([b"x", None, b""], pa.binary()),
    }
)
_EXAMPLES = r"""
i > 10 and s = 'sf'
l + 1 <=> i or not b
d between 1 and 2.5e3
s like 'a%_\\%' escape '!'
st.b is not null
i in (1, 2L, 3Y, null)
cast(s as decimal(10, 2)) >= 1.5BD
t < timestamp '2026-01-01 00:00:00Z'
u = date'2026-01-01'
upper(s) <> lower('X') and length(s) % 2 == 0
y = X'1F'
`i` / 2 * -3 - +4 != 0.1f
cast(i as string) = '1' -- comment
n not in (1.50)
/* c */ b
cast(d as timestamp) is null
interval '1' day
s = 'a' 'b'
r'\n' = s
"""
EXAMPLES = _EXAMPLES.strip().splitlines()


def seeds() -> list[bytes]:
    """A filter of each kind."""
    return [example.encode() for example in EXAMPLES] + [
        bytes([BUILT, *range(start, start + 9)]) for start in range(0, 60, 9)
    ]


def parse(data: bytes) -> None:
    """Read a condition and evaluate it."""
    with suppress(HoodieError):
        condition = text(data[:400], WORDS) if is_built(data) else data.decode("utf-8", "replace")
        predicate = parse_sql(condition, BATCH.schema)
        assert len(evaluate(predicate, BATCH)) == BATCH.num_rows
