"""Which columns have statistics: by list, by order, by what the definition says."""

from __future__ import annotations

import json
from typing import Any

from hoodie_py.formats.avro.schema import Record, parse_record
from hoodie_py.formats.metadata_table.indexed_columns import META_COLUMNS, choose_columns, choose_first_columns
from hoodie_py.formats.metadata_table.value_kinds import V1, V2


def schema(**types: Any) -> Record:
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return parse_record(json.dumps({"type": "record", "name": "r", "fields": fields}))


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10}
SMALL = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}
STRUCT = {"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}
MANY = schema(
    _hoodie_commit_time="string", a="int", l={"type": "array", "items": "int"}, st=STRUCT, d=DECIMAL, e=SMALL, b="bytes"
)


def test_the_first_columns_that_can_be_measured_are_chosen() -> None:
    assert choose_first_columns(MANY, V2) == ("a", "d", "e", "b")
    assert choose_first_columns(MANY, V1) == ("a", "e", "b")  # the other decimal has no room
    assert choose_first_columns(MANY, V2, 2) == ("a", "d")


def test_a_list_decides() -> None:
    listed = ("st.x", "_hoodie_record_key", "none", "l", "a")
    assert choose_columns(MANY, V2, meta_columns=True, listed=listed) == (*META_COLUMNS, "st.x", "a")
    assert choose_columns(MANY, V2, meta_columns=False, listed=("a",)) == ("a",)


def test_without_a_list_those_of_the_definition_stay() -> None:
    defined = (*META_COLUMNS, "b", "gone")
    assert choose_columns(MANY, V2, meta_columns=True, defined=defined) == (*META_COLUMNS, "b")


def test_new_columns_count_where_the_definition_had_the_first_ones() -> None:
    before = schema(a="int", b="bytes")
    whole = choose_columns(MANY, V2, meta_columns=False, defined=("a", "b"), before=before)
    assert set(whole) == {"a", "b", "d", "e"}
    assert choose_columns(MANY, V2, meta_columns=False, defined=("a",), before=before) == ("a",)
