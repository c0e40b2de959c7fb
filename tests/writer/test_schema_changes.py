"""Tests of what a write may change in a table's schema: without a word, with a word, and with strict options."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieWarning, InvalidQueryError
from hoodie_py.options.write import DROP_MISSING, LOSSLESS, LOSSY, NULL_FOR_MISSING, RECONCILE_SCHEMA, SCHEMA_CHANGES
from hoodie_py.writer.schema_changes import may_lose
from hoodie_py.writer.table_writes import TableWrites

_INT, _LONG, _FLOAT, _DOUBLE, _TEXT = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
_LARGE = 9007199254740993  # as a double it ends in 2
_STRICT = {SCHEMA_CHANGES: "NONE"}
_WITHOUT_LOSS = [
    (_INT, 1, _LONG, 1 << 40), (_INT, 1, _DOUBLE, 1.5), (_FLOAT, 1.5, _DOUBLE, 1.1234567890123),
    (pa.decimal128(5, 2), Decimal("1.25"), pa.decimal128(9, 4), Decimal("1.2345")),
]  # fmt: skip
_WITH_LOSS = [
    (_INT, 1, _FLOAT, 1.5), (_INT, 1, _TEXT, "x"), (_LONG, _LARGE, _FLOAT, 1.5), (_LONG, _LARGE, _DOUBLE, 1.5),
    (_LONG, _LARGE, _TEXT, "x"), (_FLOAT, 1.5, _TEXT, "x"), (_DOUBLE, 1.5, _TEXT, "x"),
]  # fmt: skip
_NESTS: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any], str]] = {
    "plain": (lambda type_: type_, lambda value: value, "c"),
    "struct": (lambda type_: pa.struct([("a", type_)]), lambda value: {"a": value}, "c.a"),
    "list": (pa.list_, lambda value: [value, None], "c.element"),
    "map": (lambda type_: pa.map_(pa.string(), type_), lambda value: [("k", value)], "c.value"),
    "deep": (
        lambda type_: pa.list_(pa.struct([("m", pa.list_(type_))])), lambda value: [{"m": [value]}],
        "c.element.m.element",
    ),
}  # fmt: skip
_VERBS = [
    TableWrites.upsert, TableWrites.insert, TableWrites.bulk_insert, TableWrites.insert_overwrite,
    TableWrites.insert_overwrite_table,
]  # fmt: skip


def _nest(changes: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """All changes of plain columns, and the first one at each depth."""
    return [("plain", *each) for each in changes] + [(nest, *changes[0]) for nest in _NESTS if nest != "plain"]


def _create(path: Path, type_: pa.DataType, value: Any, **more: Any) -> HoodieTable:
    table = HoodieTable.create(path, pa.schema([("id", pa.string()), ("c", type_)]), record_key="id", **more)
    table.upsert(pa.table({"id": ["a"], "c": pa.array([value], type_)}))
    return table


def _rows(type_: pa.DataType, value: Any) -> pa.Table:
    return pa.table({"id": ["b"], "c": pa.array([value], type_)})


def _read(table: HoodieTable) -> list[tuple[str, Any]]:
    return sorted((row["id"], row["c"]) for row in table.scan(["id", "c"]).to_arrow().to_pylist())


@pytest.mark.parametrize(("nest", "old", "was", "new", "value"), _nest(_WITHOUT_LOSS), ids=str)
def test_types_widen_without_loss_and_a_warning_and_the_result_say_so(
    tmp_path: Path, nest: str, old: pa.DataType, was: Any, new: pa.DataType, value: Any
) -> None:
    make_type, make_value, place = _NESTS[nest]
    table = _create(tmp_path / "t", make_type(old), make_value(was))
    rows = _rows(make_type(new), make_value(value))
    with pytest.raises(InvalidQueryError, match=f"allows no change: {place} becomes"):
        table.upsert(rows, options=_STRICT)
    with pytest.warns(HoodieWarning, match=f"changes the table's schema: {place} becomes"):
        result = table.upsert(rows)
    [change] = result.schema_changes
    assert (change.column, change.loses) == (place, False)
    assert place in str(result)
    assert table.schema.field("c").type == make_type(new)
    assert _read(table) == [("a", make_value(was)), ("b", make_value(value))]
    assert table.upsert(rows).schema_changes == ()


@pytest.mark.parametrize(("nest", "old", "was", "new", "value"), _nest(_WITH_LOSS), ids=str)
def test_what_may_lose_digits_or_becomes_text_needs_a_word(
    tmp_path: Path, nest: str, old: pa.DataType, was: Any, new: pa.DataType, value: Any
) -> None:
    make_type, make_value, place = _NESTS[nest]
    table = _create(tmp_path / "t", make_type(old), make_value(was))
    rows = _rows(make_type(new), make_value(value))
    for options in ({}, {SCHEMA_CHANGES: LOSSLESS}, _STRICT):
        with pytest.raises(InvalidQueryError, match=f"{place} becomes"):
            table.upsert(rows, options=options)
    assert _read(HoodieTable.open(tmp_path / "t")) == [("a", make_value(was))]
    with pytest.warns(HoodieWarning, match=f"{place} becomes"):
        [change] = table.upsert(rows, allow_loss=True).schema_changes
    assert change.loses
    assert table.schema.field("c").type == make_type(new)


@pytest.mark.parametrize("verb", _VERBS, ids=lambda verb: verb.__name__)
@pytest.mark.parametrize("form", ["arrow", "dicts", "stream", "pandas"])
def test_all_verbs_and_forms_of_rows_have_one_rule(tmp_path: Path, verb: Any, form: str) -> None:
    table = _create(tmp_path / "t", _LONG, _LARGE)
    arrow = pa.table({"id": ["b", "c"], "c": [1.5, 2.0]})
    rows = {
        "arrow": lambda: arrow,
        "dicts": arrow.to_pylist,
        "stream": lambda: pa.RecordBatchReader.from_batches(arrow.schema, iter(arrow.to_batches())),
        "pandas": arrow.to_pandas,
    }[form]
    with pytest.raises(InvalidQueryError, match="allow_loss=True"):
        verb(table, rows())
    with pytest.raises(InvalidQueryError):
        verb(table, rows(), options=_STRICT)
    assert _read(table) == [("a", _LARGE)]
    with pytest.warns(HoodieWarning, match="c becomes double, was long"):
        verb(table, rows(), options={SCHEMA_CHANGES: LOSSY})
    assert table.schema.field("c").type == _DOUBLE
    assert _read(table)[-2:] == [("b", 1.5), ("c", 2.0)]


@pytest.mark.parametrize(
    ("old", "was", "value", "new"),
    [
        (_INT, 1, 1 << 40, _LONG), (_INT, 1, 1.5, _DOUBLE), (_FLOAT, 1.5, 1.1234567890123, _DOUBLE),
        (pa.struct([("a", _INT)]), {"a": 1}, {"a": 1 << 40}, pa.struct([("a", _LONG)])),
        (pa.list_(_INT), [1], [1 << 40, None], pa.list_(_LONG)),
        (pa.map_(_TEXT, _INT), [("k", 1)], {"k": 1 << 40}, pa.map_(_TEXT, _LONG)),
    ],
    ids=str,
)  # fmt: skip
def test_values_of_dicts_widen_as_arrow_columns_do(
    tmp_path: Path, old: pa.DataType, was: Any, value: Any, new: pa.DataType
) -> None:
    table = _create(tmp_path / "t", old, was)
    with pytest.raises(InvalidQueryError):
        table.upsert([{"id": "b", "c": value}], options=_STRICT)
    with pytest.warns(HoodieWarning, match="becomes"):
        table.upsert([{"id": "b", "c": value}])
    assert table.schema.field("c").type == new


@pytest.mark.parametrize(("type_", "value"), [(_INT, 7), (_FLOAT, 1.1), (_FLOAT, float("nan")), (_LONG, 1 << 40)])
def test_values_of_dicts_that_fit_change_nothing(tmp_path: Path, type_: pa.DataType, value: Any) -> None:
    table = _create(tmp_path / "t", type_, 1)
    assert table.upsert([{"id": "b", "c": value}, {"id": "c", "c": None}], options=_STRICT).schema_changes == ()


def test_new_columns_are_named_and_may_be_refused(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", pa.struct([("a", _INT)]), {"a": 1})
    rows = [{"id": "b", "c": {"a": 1, "b": "x"}, "tip": 1.5}]
    with pytest.raises(InvalidQueryError, match=r"c\.b is added, of type string; tip is added, of type double"):
        table.upsert(rows, options=_STRICT)
    with pytest.warns(HoodieWarning, match=r"c\.b is added, of type string; tip is added, of type double"):
        changes = table.upsert(rows).schema_changes
    assert [(each.column, each.before, each.after) for each in changes] == [
        ("c.b", None, "string"),
        ("tip", None, "double"),
    ]


@pytest.mark.parametrize(
    ("option", "names", "change"),
    [
        (DROP_MISSING, ["id", "z"], "c is dropped"),
        (NULL_FOR_MISSING, ["id", "z"], "c may be null from now on"),
        (RECONCILE_SCHEMA, ["id", "z", "c", "n"], "z moves to place 2"),
    ],
)
def test_other_changes_are_named_and_refused_where_none_is_allowed(
    tmp_path: Path, option: str, names: list[str], change: str
) -> None:
    fields = [("id", _TEXT), pa.field("c", _INT, nullable=False), ("z", _INT)]
    table = HoodieTable.create(tmp_path / "t", pa.schema(fields), record_key="id")
    rows = pa.table({"id": ["b"], **{name: pa.array([1], _INT) for name in names[1:]}})
    with pytest.raises(InvalidQueryError, match=change):
        table.upsert(rows, options={option: "true", **_STRICT})
    with pytest.warns(HoodieWarning, match=change):
        assert change in str(table.upsert(rows, options={option: "true"}))


def test_a_warning_that_is_an_error_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", _INT, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HoodieWarning)
        with pytest.raises(HoodieWarning):
            table.upsert(pa.table({"id": ["b"], "c": [1]}))
    assert HoodieTable.open(tmp_path / "t").schema == table.schema
    assert len([*table.timeline]) == len([*HoodieTable.open(tmp_path / "t").timeline])


def test_updates_and_merges_change_no_column(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", _LONG, 8)
    before = table.schema
    table.update({"c": "c / 4"})
    table.merge(
        pa.table({"id": ["a", "b"], "c": [1.0, 2.0], "extra": ["x", "y"]}),
        on="id",
        when_matched="update",
        when_not_matched="insert",
    )
    assert table.schema == before
    assert _read(table) == [("a", 1), ("b", 2)]
    with pytest.raises(InvalidQueryError, match="cannot be stored"):
        table.update({"c": "'x'"})


def test_texts_and_floats_are_not_rounded_to_decimals_without_a_word(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", pa.decimal128(9, 2), Decimal("1.25"))
    table.upsert(pa.table({"id": ["b", "c"], "c": [1.5, 2.25]}))
    table.upsert(pa.table({"id": ["d"], "c": ["3.50"]}))
    for value in (1.239, "1.239"):
        with pytest.raises(InvalidQueryError, match="more digits"):
            table.upsert(pa.table({"id": ["e"], "c": [value]}))
        table.upsert(pa.table({"id": ["e"], "c": [value]}), allow_loss=True)
    assert [str(value) for _, value in _read(table)] == ["1.25", "1.50", "2.25", "3.50", "1.24"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("int", "long", False), ("int", "float", True), ("int", "double", False), ("long", "double", True),
        ("float", "double", False), ("double", "float", True), ("int", "string", True), ("date", "string", True),
        ("string", "binary", False), ("binary", "string", True), ("string", "date", True),
        ("int", "decimal_bytes(12, 2)", False), ("int", "decimal_bytes(11, 2)", True),
        ("long", "decimal_bytes(19, 0)", False), ("long", "decimal_bytes(20, 2)", True),
        ("double", "decimal_bytes(38, 10)", True), ("decimal_bytes(5, 2)", "decimal_fixed(7, 3)[4]", False),
        ("decimal_bytes(5, 2)", "decimal(6, 4)", True), ("decimal(5, 2)", "string", True),
    ],
)  # fmt: skip
def test_which_casts_may_lose_something(before: str, after: str, expected: bool) -> None:
    assert may_lose(before, after) is expected


def test_alter_has_the_same_word(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", _LONG, _LARGE)
    for type_ in (_DOUBLE, _TEXT):
        with pytest.raises(InvalidQueryError, match="allow_loss=True"):
            table.alter(cast={"c": type_})
    table.alter(cast={"c": _TEXT}, allow_loss=True)
    assert _read(table) == [("a", str(_LARGE))]
