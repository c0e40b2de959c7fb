"""A merger may give plain mappings where a context takes bare data, in tests and in reads alike."""

from __future__ import annotations

import pytest

from hoodie_py import BufferedBatch, HoodieOperation, MergeError
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from tests.reader.record.test_record import Make, over_arrow, over_dicts


@pytest.fixture(params=[over_dicts, over_arrow])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_plain_mappings_are_rows_whose_other_columns_are_absent(make: Make) -> None:
    context = make()
    plain = {"_hoodie_record_key": "k", "ts": 6, "place": {"city": "la", "at": None}}
    assert context.get_value(plain, "place.city") == "la"
    assert (context.has_value(plain, "ts"), context.has_value(plain, "price")) == (True, False)
    assert (context.record_key(plain), context.ordering_value(plain), context.is_delete(plain)) == ("k", 6, False)
    rec = context.buffered(plain)
    plain["place"]["city"] = "sf"  # the record has a copy, or the test its own row
    assert (rec.record_key, rec.ordering_value, rec.operation, rec.is_delete) == ("k", 6, None, False)
    assert context.get_value(rec, "price") is None
    assert not context.has_value(rec, "price")
    schema = context.decode_schema(rec.schema_id)
    assert schema is not None
    assert schema.names == ["_hoodie_record_key", "ts", "place"]
    assert context.get_value(context.replace(rec, price=2.0), "price") == 2.0
    assert context.buffered(plain, HoodieOperation.DELETE).is_delete


def test_a_plain_mapping_without_a_key_or_with_an_unknown_column_is_an_error(make: Make) -> None:
    context = make()
    with pytest.raises(MergeError, match=r"without its key.*_hoodie_record_key"):
        context.buffered({"ts": 1})
    with pytest.raises(MergeError, match="the table does not have") as caught:
        context.buffered({"_hoodie_record_key": "k", "nowhere": 1})
    assert caught.value.where["column"] == "nowhere"


def test_a_plain_mapping_becomes_a_row_of_the_store() -> None:
    context = over_arrow()
    assert isinstance(context, ArrowRecordContext)
    made = BufferedBatch.from_records(context, [context.buffered({"_hoodie_record_key": "k", "ts": 6, "price": 2})])
    row = context.store.take(made.rows).to_pylist()[0]
    assert {name: value for name, value in row.items() if value is not None} == {
        "_hoodie_record_key": "k",
        "ts": 6,
        "price": 2.0,
    }
    with pytest.raises(MergeError, match="does not fit"):
        BufferedBatch.from_records(context, [context.buffered({"_hoodie_record_key": "k", "ts": "late"})])
