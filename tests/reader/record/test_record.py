"""One contract, two kinds of rows: what a merger sees does not depend on which context it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import DEFAULT_ORDERING, BufferedBatch, BufferedRecord, HoodieOperation, MergeError, RecordMerger
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import RowStore
from hoodie_py.reader.record.table_context import MappingRecordContext, TableRecordContext

PLACE = pa.struct([("city", pa.string()), ("at", pa.struct([("x", pa.int32())]))])
COLUMNS = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        ("id", pa.int64()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("price", pa.float64()),
        ("place", PLACE),
        ("tags", pa.list_(pa.string())),
        ("Op", pa.string()),
        ("gone", pa.bool_()),
    ]
)
TABLE = pa.schema([*COLUMNS, ("unread", pa.string()), ("far", PLACE)])
META = RecordKeys.of(True, ())
ROW = {
    "_hoodie_record_key": "k",
    "id": 7,
    "ts": 5,
    "n": 3,
    "price": 1.5,
    "place": {"city": "sf", "at": {"x": 1}},
    "tags": ["a"],
    "Op": None,
    "gone": None,
}
Make = Callable[..., TableRecordContext[Any]]


def over_dicts(
    schema: pa.Schema = COLUMNS,
    keys: RecordKeys = META,
    ordering: Sequence[str] = ("ts",),
    deletes: DeleteRules | None = None,
) -> TableRecordContext[Any]:
    return MappingRecordContext(schema, keys, ordering, deletes, TABLE)


def over_arrow(
    schema: pa.Schema = COLUMNS,
    keys: RecordKeys = META,
    ordering: Sequence[str] = ("ts",),
    deletes: DeleteRules | None = None,
) -> TableRecordContext[Any]:
    return ArrowRecordContext(RowStore(schema), TABLE, keys, ordering, deletes or DeleteRules())


@pytest.fixture(params=[over_dicts, over_arrow])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def record(context: TableRecordContext[Any], values: Mapping[str, Any] = ROW, **changes: Any) -> BufferedRecord[Any]:
    """A row as a file gives it: stored, where the context has a store."""
    row = {name: value for name, value in {**values, **changes}.items() if name in context.schema.names}
    if isinstance(context, MappingRecordContext):
        return context.buffered(row)
    assert isinstance(context, ArrowRecordContext)
    whole = pa.RecordBatch.from_pylist([row], context.schema)
    absent = {name: pa.array([True]).to_numpy(zero_copy_only=False) for name in context.schema.names if name not in row}
    first = context.store.add(whole, absent)
    return BufferedBatch.of_rows(context, first, whole, context.deletes.read_operations(whole)).to_records()[0]


def test_values(make: Make) -> None:
    context = make()
    rec = record(context)
    assert context.get_value(rec, "price") == context.get_value(rec.record, "price") == 1.5
    assert context.get_value(rec, "place.city") == "sf"
    assert context.get_value(rec, "place.at.x") == 1
    assert context.get_value(rec, "place") == {"city": "sf", "at": {"x": 1}}


@pytest.mark.parametrize("field", ["nowhere", "place.nowhere", "place.at.x.y", "price.x", "nowhere.x"])
def test_what_no_row_can_have_is_an_error_with_its_name_and_has_value_says_no(make: Make, field: str) -> None:
    context = make()
    for rec in (record(context), None):
        with pytest.raises(MergeError, match=r"the table does not have.*has_value") as caught:
            context.get_value(rec, field)
        assert caught.value.where["column"] == field
    assert not context.has_value(record(context), field)


def test_null_parents_and_null_meta_values_are_none(make: Make) -> None:
    context = make(ordering=(), keys=RecordKeys.of(False, ("id",)))
    rec = record(context, place=None, _hoodie_record_key=None)
    assert context.get_value(rec, "place.at.x") is None
    assert context.get_value(rec, "_hoodie_record_key") is None
    assert context.get_value(record(context, place={"city": "sf", "at": None}), "place.at.x") is None


def test_without_data_everything_is_none(make: Make) -> None:
    context = make()
    gone: BufferedRecord[Any] = BufferedRecord.of_delete("k", 9)
    assert context.get_value(gone, "price") is None
    assert context.get_value(None, "price") is None
    assert not context.has_value(gone, "price")
    assert context.ordering_value(gone) == 9
    assert context.record_key(gone) == "k"


@pytest.mark.parametrize("field", ["unread", "far.city"])
def test_a_column_that_was_not_read_names_the_remedy(make: Make, field: str) -> None:
    context = make()
    for ask in (context.get_value, context.has_value):
        with pytest.raises(MergeError, match="mandatory_fields") as caught:
            ask(record(context), field)
        assert caught.value.where["column"] == field.partition(".")[0]


def test_absent_is_not_null(make: Make) -> None:
    context = make()
    partial = record(context, {"_hoodie_record_key": "k", "ts": 5, "price": None})
    assert context.has_value(partial, "price")
    assert not context.has_value(partial, "place")
    assert not context.has_value(partial, "place.city")
    assert context.get_value(partial, "price") is context.get_value(partial, "place") is None
    schema = context.decode_schema(partial.schema_id)
    assert schema is not None
    assert schema.names == ["_hoodie_record_key", "ts", "price"]


def test_values_cannot_be_changed_in_place(make: Make) -> None:
    context = make()
    rec = record(context)
    context.get_value(rec, "tags").append("b")
    context.get_value(rec, "place")["at"]["x"] = 9
    assert context.get_value(rec, "tags") == ["a"]
    assert context.get_value(rec, "place.at.x") == 1
    mine = ["x"]
    changed = context.replace(rec, tags=mine)
    mine.append("y")
    context.get_value(changed, "tags").append("z")
    assert context.get_value(changed, "tags") == ["x"]
    with pytest.raises(FrozenInstanceError):
        rec.record_key = "other"  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------------- ordering, keys


@pytest.mark.parametrize(
    ("fields", "values", "expected"),
    [
        (("ts",), {"ts": 5}, 5),
        (("ts",), {"ts": None}, DEFAULT_ORDERING),
        (("ts",), {"ts": 0}, 0),
        (("n",), {"n": 0}, 0),
        (("n",), {"n": None}, 0),
        (("n",), {"n": -5}, -5),
        (("place.city",), {}, "sf"),
        (("place.city",), {"place": None}, DEFAULT_ORDERING),
        (("ts", "n"), {}, (5, 3)),
        (("ts", "n"), {"ts": None, "n": None}, (DEFAULT_ORDERING, 0)),
        ((), {}, DEFAULT_ORDERING),
    ],
)
def test_ordering_values(make: Make, fields: Sequence[str], values: Mapping[str, Any], expected: Any) -> None:
    context = make(ordering=fields)
    rec = record(context, **values)
    assert rec.ordering_value == expected
    assert context.ordering_value(rec) == expected
    assert context.ordering_value(rec.record) == expected
    assert context.ordering_value(None) is DEFAULT_ORDERING


@pytest.mark.parametrize("value", [0, None])
def test_the_default_of_an_int_column_orders_no_delete(make: Make, value: int | None) -> None:
    context = make(ordering=("n",), deletes=DeleteRules(marker_field="Op", marker="D"))
    assert record(context, n=value, Op="D").is_commit_time_delete
    assert context.delete(record(context, n=value)).is_commit_time_delete
    assert not record(context, n=2, Op="D").is_commit_time_delete
    assert not record(make(deletes=DeleteRules(marker_field="Op", marker="D")), ts=0, Op="D").is_commit_time_delete


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (META, "k"),
        (RecordKeys.of(False, ("id",)), "7"),
        (RecordKeys.of(False, ("place.city",)), "sf"),
        (RecordKeys.of(False, ("id", "Op")), "id:7,Op:__null__"),
    ],
)
def test_record_keys(make: Make, keys: RecordKeys, expected: str) -> None:
    context = make(keys=keys)
    rec = record(context)
    assert rec.record_key == context.record_key(rec) == context.record_key(rec.record) == expected


# -------------------------------------------------------------------------------------------------------------- deletes

FLAGGED = pa.schema([*COLUMNS, ("_hoodie_is_deleted", pa.bool_()), ("_hoodie_operation", pa.string())])


@pytest.mark.parametrize(
    ("values", "operation"),
    [
        ({}, None),
        ({"_hoodie_is_deleted": False, "_hoodie_operation": "I"}, HoodieOperation.INSERT),
        ({"_hoodie_is_deleted": True}, HoodieOperation.DELETE),
        ({"_hoodie_is_deleted": True, "_hoodie_operation": "U"}, HoodieOperation.DELETE),
        ({"_hoodie_is_deleted": True, "_hoodie_operation": "-U"}, HoodieOperation.UPDATE_BEFORE),
        ({"_hoodie_operation": "D"}, HoodieOperation.DELETE),
        ({"_hoodie_operation": "-U"}, HoodieOperation.UPDATE_BEFORE),
        ({"_hoodie_operation": "U"}, HoodieOperation.UPDATE_AFTER),
        ({"Op": "D"}, HoodieOperation.DELETE),
        ({"Op": "d"}, None),
    ],
)
def test_delete_rules(make: Make, values: Mapping[str, Any], operation: HoodieOperation | None) -> None:
    context = make(FLAGGED, deletes=DeleteRules(True, True, "Op", "D"))
    row = {**ROW, "_hoodie_is_deleted": None, "_hoodie_operation": None, **values}
    rec = record(context, row)
    deleted = operation in (HoodieOperation.DELETE, HoodieOperation.UPDATE_BEFORE)
    assert rec.operation is operation
    assert rec.is_delete == context.is_delete(rec) == context.is_delete(rec.record) == deleted
    assert context.buffered(rec.record) == rec


@pytest.mark.parametrize(("value", "marker"), [(True, "true"), (7, "7")])
def test_markers_compare_as_text(make: Make, value: Any, marker: str) -> None:
    field = "gone" if value is True else "id"
    context = make(deletes=DeleteRules(marker_field=field, marker=marker))
    assert record(context, **{field: value}).is_delete
    assert context.is_delete(record(context, **{field: value}).record)


def test_an_unknown_operation_is_an_error(make: Make) -> None:
    context = make(FLAGGED, deletes=DeleteRules(operation=True))
    with pytest.raises(MergeError, match="Unknown record operation 'X'"):
        record(context, {**ROW, "_hoodie_operation": "X"})


def test_delete_keeps_the_data(make: Make) -> None:
    context = make()
    rec = record(context)
    gone = context.delete(rec)
    assert gone == replace(rec, operation=HoodieOperation.DELETE)
    assert not rec.is_delete
    assert context.is_delete(gone)
    assert context.get_value(gone, "price") == 1.5


# -------------------------------------------------------------------------------------------------------------- changes


def test_replace(make: Make) -> None:
    context = make()
    rec = record(context)
    changed = context.replace(rec, price=2.5, Op="x")
    assert (context.get_value(changed, "price"), context.get_value(changed, "Op")) == (2.5, "x")
    assert (context.get_value(rec, "price"), context.get_value(rec, "Op")) == (1.5, None)
    assert context.get_value(changed, "place.city") == "sf"
    assert replace(changed, record=rec.record) == rec
    assert context.get_value(context.replace(changed, price=None), "price") is None


def test_replace_lets_the_ordering_value_follow(make: Make) -> None:
    context = make()
    rec = record(context)
    assert context.replace(rec, ts=9).ordering_value == 9
    assert context.replace(rec, ts=None).ordering_value is DEFAULT_ORDERING
    assert context.replace(replace(rec, ordering_value=77), price=1.0).ordering_value == 77
    nested = make(ordering=("place.city",))
    assert nested.replace(record(nested), place={"city": "la", "at": None}).ordering_value == "la"


def test_columns_may_have_any_name(make: Make) -> None:
    odd = pa.schema([("_hoodie_record_key", pa.string()), ("rec", pa.int64()), ("self", pa.int64())])
    context = make(odd, ordering=())
    changed = context.replace(record(context, {"_hoodie_record_key": "k", "rec": 1, "self": 2}), rec=3, self=4)
    assert (context.get_value(changed, "rec"), context.get_value(changed, "self")) == (3, 4)


def test_replace_keeps_the_operation(make: Make) -> None:
    context = make()
    gone = context.delete(record(context))
    assert context.replace(gone, price=2.0).operation is HoodieOperation.DELETE


def test_replace_on_a_partial_row_adds_what_it_sets(make: Make) -> None:
    context = make()
    partial = record(context, {"_hoodie_record_key": "k", "ts": 5})
    changed = context.replace(partial, price=None)
    assert context.has_value(changed, "price")
    assert not context.has_value(changed, "Op")
    schema = context.decode_schema(changed.schema_id)
    assert schema is not None
    assert schema.names == ["_hoodie_record_key", "ts", "price"]


def test_replace_without_data_makes_a_row(make: Make) -> None:
    context = make()
    made = context.replace(BufferedRecord.of_delete("k", 9), price=2.0)
    assert made.is_delete
    assert made.ordering_value == 9
    assert context.get_value(made, "price") == 2.0
    assert context.get_value(made, "_hoodie_record_key") == "k"
    assert context.has_value(made, "Op")
    assert context.replace(BufferedRecord.of_delete("k", 9), ts=3).ordering_value == 3


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"nowhere": 1}, "does not have"),
        ({"unread": 1}, "mandatory_fields"),
        ({"_hoodie_record_key": "other"}, "key is 'other'"),
    ],
)
def test_replace_refuses(make: Make, values: Mapping[str, Any], complaint: str) -> None:
    context = make()
    with pytest.raises(MergeError, match=complaint):
        context.replace(record(context), **values)


def test_a_computed_key_cannot_be_changed_either(make: Make) -> None:
    context = make(keys=RecordKeys.of(False, ("id",)))
    rec = record(context)
    assert context.replace(rec, id=7, _hoodie_record_key=None).record_key == "7"
    for other in (8, None):
        with pytest.raises(MergeError, match="key is"):
            context.replace(rec, id=other)


def test_construct(make: Make) -> None:
    context = make()
    made = context.construct("k9", {"price": 2.0, "ts": 4})
    assert (made.record_key, made.ordering_value, made.operation) == ("k9", 4, None)
    assert context.get_value(made, "_hoodie_record_key") == "k9"
    assert context.has_value(made, "Op")
    assert made.schema_id == record(context).schema_id


def test_construct_with_a_narrower_schema_leaves_the_rest_absent(make: Make) -> None:
    context = make()
    narrow = pa.schema([COLUMNS.field(name) for name in ("_hoodie_record_key", "ts", "price")])
    made = context.construct("k9", {"ts": 4}, narrow)
    assert context.has_value(made, "price")
    assert not context.has_value(made, "Op")
    assert context.decode_schema(made.schema_id) == narrow
    with pytest.raises(MergeError, match="outside its schema: Op"):
        context.construct("k9", {"Op": "x"}, narrow)


def test_construct_fills_or_checks_the_key(make: Make) -> None:
    single = make(keys=RecordKeys.of(False, ("id",)))
    assert single.get_value(single.construct("12", {}), "id") == 12
    both = make(keys=RecordKeys.of(False, ("id", "Op")))
    assert both.construct("id:1,Op:x", {"id": 1, "Op": "x"}).record_key == "id:1,Op:x"
    with pytest.raises(MergeError, match="key is"):
        both.construct("id:1,Op:x", {"id": 1})
    with pytest.raises(MergeError, match="key is 'other'"):
        make().construct("k", {"_hoodie_record_key": "other"})


def test_project(make: Make) -> None:
    context = make()
    narrow = pa.schema([COLUMNS.field("_hoodie_record_key"), COLUMNS.field("price")])
    projected = context.project(record(context), narrow)
    assert context.get_value(projected, "price") == 1.5
    assert not context.has_value(projected, "Op")
    assert context.decode_schema(projected.schema_id) == narrow
    assert (projected.record_key, projected.ordering_value) == ("k", 5)
    gone: BufferedRecord[Any] = BufferedRecord.of_delete("k")
    assert context.project(gone, narrow) is gone
    renamed = context.project(record(context), pa.schema([COLUMNS.field("Op")]), {"Op": "place.city"})
    assert context.get_value(renamed, "Op") == "sf"
    with pytest.raises(MergeError, match="does not have"):
        context.project(record(context), pa.schema([("nowhere", pa.string())]))


def test_project_keeps_absent_absent(make: Make) -> None:
    context = make()
    partial = record(context, {"_hoodie_record_key": "k", "ts": 5})
    narrow = pa.schema([COLUMNS.field("ts"), COLUMNS.field("price")])
    projected = context.project(partial, narrow)
    assert context.has_value(projected, "ts")
    assert not context.has_value(projected, "price")


def test_schemas_have_numbers(make: Make) -> None:
    context = make()
    first = context.encode_schema(pa.schema([("a", pa.int64())]))
    assert context.encode_schema(pa.schema([("a", pa.int64())])) == first
    assert context.encode_schema(pa.schema([("a", pa.int32())])) != first
    assert context.decode_schema(first) == pa.schema([("a", pa.int64())])
    assert context.decode_schema(None) is context.decode_schema(999) is context.decode_schema(-1) is None
    assert context.decode_schema(record(context).schema_id) == context.schema


# -------------------------------------------------------------------------------------------------- a merger on both


class Completing(RecordMerger):
    """Uses everything: sums, fills absent values, deletes."""

    strategy_id = "5d0b1a90-0000-4000-8000-000000000001"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.is_delete or older.is_delete:
            return newer
        total = (context.get_value(older, "price") or 0) + (context.get_value(newer, "price") or 0)
        merged = context.replace(newer, price=total, ts=max(older.ordering_value, newer.ordering_value))
        return context.delete(merged) if total > 10 else merged

    def partial_merge(self, older: Any, newer: Any, reader_schema: Any, context: Any, props: Any) -> Any:
        if newer.is_delete or older.record is None:
            return newer
        kept = {f: context.get_value(older, f) for f in reader_schema.names if not context.has_value(newer, f)}
        return context.replace(newer, **{f: v for f, v in kept.items() if context.has_value(older, f)})


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ({"price": 4.0, "ts": 9}, {"price": 5.0}, (None, 9, 9.0)),
        ({"price": 6.0}, {"price": 5.0}, (HoodieOperation.DELETE, 5, 11.0)),
        ({"price": None}, {"price": 5.0}, (None, 5, 5.0)),
    ],
)
def test_a_merger_gives_the_same_on_both(make: Make, older: Any, newer: Any, expected: Any) -> None:
    context = make()
    result = Completing().merge(record(context, **older), record(context, **newer), context, {})
    assert (result.operation, result.ordering_value, context.get_value(result, "price")) == expected


def test_a_partial_merge_can_be_written(make: Make) -> None:
    context = make()
    newer = record(context, {"_hoodie_record_key": "k", "ts": 6, "Op": None})
    result = Completing().partial_merge(record(context, Op="x"), newer, context.schema, context, {})
    assert {name: context.get_value(result, name) for name in ("ts", "Op", "price")} == {
        "ts": 6,
        "Op": None,
        "price": 1.5,
    }
    assert result.schema_id == context.encode_schema(context.schema)
    again = Completing().partial_merge(newer, newer, context.schema, context, {})
    assert not context.has_value(again, "price")


def test_dict_rows_take_values_of_the_columns_type_only() -> None:
    context = over_dicts()
    assert context.get_value(context.replace(record(context), price=2), "price") == 2.0
    with pytest.raises(MergeError, match="does not fit its column"):
        context.replace(record(context), id="x")


def test_arrow_rows_are_checked_when_collected() -> None:
    context = over_arrow()
    assert isinstance(context, ArrowRecordContext)
    rec = record(context)
    with pytest.raises(MergeError, match="does not fit its column"):
        BufferedBatch.from_records(context, [context.replace(rec, id="x")])
    with pytest.raises(MergeError, match="does not fit the ordering fields"):
        BufferedBatch.from_records(context, [replace(rec, ordering_value="x")])
    with pytest.raises(MergeError, match="of type dict"):
        BufferedBatch.from_records(context, [replace(rec, record={"id": 1})])
    with pytest.raises(MergeError, match="of another context"):
        BufferedBatch.from_records(over_arrow(), [rec])  # type: ignore[arg-type]


def test_absent_values_survive_being_stored() -> None:
    context = over_arrow()
    assert isinstance(context, ArrowRecordContext)
    partial = context.replace(record(context, {"_hoodie_record_key": "k", "ts": 5}), price=2.0)
    stored = BufferedBatch.from_records(context, [partial, context.replace(record(context), price=3.0)])
    assert stored.has_values("price").tolist() == [True, True]
    assert stored.has_values("Op").tolist() == [False, True]
