"""Values and record keys that a filter allows: all that can pass are found, or the filter tells nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.table.filter.allowed_values import find_allowed_keys, find_allowed_values, spell_value
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.sql_parser import parse_sql

_SCHEMA = pa.schema([
    ("_hoodie_record_key", pa.string()), ("id", pa.string()), ("n", pa.int32()), ("day", pa.date32()),
    ("amount", pa.decimal128(12, 3)), ("at", pa.timestamp("us", "UTC")), ("price", pa.float64()),
])  # fmt: skip


def _config(*fields: str, generator: str = "SIMPLE", **more: str) -> TableConfig:
    properties = {
        "hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.recordkey.fields": ",".join(fields), "hoodie.table.keygenerator.type": generator,
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.timeline.layout.version": "2",
    }  # fmt: skip
    return TableConfig.from_properties(properties | {name.replace("__", "."): each for name, each in more.items()})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("id = 'a'", ["a"]),
        ("'a' <=> id", ["a"]),
        ("id in ('a', 'b', null, 'a')", ["a", "b"]),
        ("id = 'a' or id = 'b'", ["a", "b"]),
        ("(id = 'a' or id in ('b', 'c')) and n > 3", ["a", "b", "c"]),
        ("id in ('a', 'b', 'c') and id = 'b'", ["b"]),
        ("id = null", []),
        ("id <=> null", None),
        ("id = 'a' or n = 3", None),
        ("not (id = 'a')", None),
        ("upper(id) = 'A'", None),
        ("id > 'a'", None),
        ("n = 3", None),
        ("id = 5", None),  # Spark compares numbers
    ],
)
def test_values_of_a_column(text: str, wanted: list[str] | None) -> None:
    assert find_allowed_values(parse_sql(text, _SCHEMA), "id") == wanted


@pytest.mark.parametrize(
    ("fields", "generator", "text", "wanted"),
    [
        (("id",), "SIMPLE", "id = 'a'", ["a"]),
        (("id",), "COMPLEX", "id = 'a'", ["a", "id:a"]),
        (("id",), "SIMPLE", "_hoodie_record_key in ('x', 'y')", ["x", "y"]),
        (("id",), "com.example.Keys", "id = 'a'", None),
        (("id",), "com.example.Keys", "_hoodie_record_key = 'a'", ["a"]),
        ((), "AUTO_RECORD", "_hoodie_record_key = 'a'", ["a"]),
        (("n",), "SIMPLE", "n in (1, -2)", ["1", "-2"]),
        (("day",), "SIMPLE", "day = date'2026-01-31'", ["2026-01-31", "20484"]),
        (("amount",), "SIMPLE", "amount = 1.5", ["1.5", "1.50", "1.500"]),
        (("amount",), "SIMPLE", "amount = 200", ["200", "200.0", "200.00", "200.000"]),
        (("at",), "SIMPLE", "at = timestamp'2026-01-31 00:00:00'", None),
        (("price",), "SIMPLE", "price = 1.5", None),
        (("id", "n"), "COMPLEX", "id in ('a', '') and n = 1", ["id:a,n:1", "id:__empty__,n:1"]),
        (("id", "n"), "COMPLEX", "(id = 'a' and n = 1) or (id = 'b' and n = 2)", ["id:a,n:1", "id:b,n:2"]),
        (("id", "n"), "COMPLEX", "id = 'a'", None),
        (("id", "n"), "COMPLEX", "id = 'a' or n = 1", None),
    ],
)
def test_keys(fields: tuple[str, ...], generator: str, text: str, wanted: list[str] | None) -> None:
    assert find_allowed_keys(_config(*fields, generator=generator), _SCHEMA, parse_sql(text, _SCHEMA)) == wanted


def test_keys_of_rows_that_a_merge_may_change_are_not_known() -> None:
    """A custom merger may give a row another id; its record key stays."""
    custom = {"hoodie__record__merge__mode": "CUSTOM", "hoodie__record__merge__strategy__id": "1-2-3"}
    config = _config("id", **custom)
    assert find_allowed_keys(config, _SCHEMA, parse_sql("id = 'a'", _SCHEMA)) is None
    assert find_allowed_keys(config, _SCHEMA, parse_sql("_hoodie_record_key = 'a'", _SCHEMA)) == ["a"]


def test_tables_without_stored_keys_tell_nothing() -> None:
    config = _config("id", hoodie__populate__meta__fields="false")
    assert find_allowed_keys(config, _SCHEMA, parse_sql("id = 'a'", _SCHEMA)) is None


def test_too_many_keys_tell_nothing() -> None:
    """A product of lists is not made beyond what can be looked up."""
    ids, numbers = ", ".join(f"'{each}'" for each in range(200)), ", ".join(map(str, range(200)))
    predicate = parse_sql(f"id in ({ids}) and n in ({numbers})", _SCHEMA)
    assert find_allowed_keys(_config("id", "n", generator="COMPLEX"), _SCHEMA, predicate) is None


def test_small_decimals_are_spelt_as_java_does() -> None:
    from decimal import Decimal

    assert "1E-7" in (spell_value(Decimal("0.0000001"), pa.decimal128(20, 7)) or [])


_TEXTS = st.recursive(
    st.sampled_from(
        ["id = 'a'", "id in ('a', 'b')", "id <> 'c'", "n = 1", "n in (1, 2)", "id is null", "n > 1", "id = null"]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} and {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} or {pair[1]})"),
        inner.map(lambda each: f"(not {each})"),
    ),
    max_leaves=6,
)  # fmt: skip


@given(_TEXTS)
def test_no_row_with_another_key_passes(text: str) -> None:
    """Of all rows over a few values, those that pass have keys that are allowed."""
    ids, numbers = ["a", "b", "c", None], [1, 2, 3, None]
    rows = pa.record_batch(
        [pa.array([id_ for id_ in ids for _ in numbers]), pa.array([n for _ in ids for n in numbers], pa.int32())],
        names=["id", "n"],
    )
    predicate = parse_sql(text, _SCHEMA)
    kept = rows.filter(evaluate(predicate, rows)).to_pylist()
    values = find_allowed_values(predicate, "id")
    assert values is None or {row["id"] for row in kept} <= set(values)
    keys = find_allowed_keys(_config("id", "n", generator="COMPLEX"), _SCHEMA, predicate)
    assert keys is None or {f"id:{row['id']},n:{row['n']}" for row in kept} <= set(keys)
