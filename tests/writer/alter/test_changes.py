"""Changes of columns: what each does, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.avro.columns import Column, Numbers, iterate_columns, number_columns, read_avro_fields
from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.writer.alter.changes import Changes, change_columns

_SCHEMA = pa.schema([
    ("id", pa.string()), ("n", pa.int32()), ("d", pa.decimal128(10, 2)),
    ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ("li", pa.list_(pa.struct([("x", pa.int32())]))),
    ("ma", pa.map_(pa.string(), pa.int32())),
    pa.field("req", pa.int32(), nullable=False),
])  # fmt: skip


def change(**given: Any) -> dict[str, Column]:
    fields = json.loads(make_schema_text(_SCHEMA, "t"))["fields"]
    numbers = Numbers(-1)
    columns = number_columns(read_avro_fields(fields), numbers)
    given["add"] = {name: pa.field(name, type_) for name, type_ in given.pop("add", {}).items()}
    return dict(iterate_columns(change_columns(columns, Changes(**given), numbers)))


BEFORE = change()


def test_ids_are_those_of_java() -> None:
    assert {name: column.id for name, column in BEFORE.items()} == {
        "id": 0, "n": 1, "d": 2, "st": 3, "st.a": 7, "st.b": 8, "li": 4, "li.element.x": 10, "ma": 5, "req": 6,
    }  # fmt: skip


def test_columns_keep_their_ids() -> None:
    found = change(
        rename={"n": "m", "st.a": "first", "li.element.x": "li.element.y"},
        cast={"n": pa.int64(), "d": pa.decimal128(12, 2), "ma.value": pa.int64()},
        nullable=["req"],
        comment={"id": "key"},
        reorder={"m": "first", "st.first": "after b", "req": "before d"},
    )
    assert list(found) == ["m", "id", "req", "d", "st", "st.b", "st.first", "li", "li.element.y", "ma"]
    assert (found["m"].id, found["st.first"].id, found["li.element.y"].id) == (1, 7, 10)
    assert found["m"].type.avro == "long"
    assert found["d"].type.avro["precision"] == 12
    assert found["ma"].type.type.avro == "long"
    assert (found["req"].optional, found["id"].doc) == (True, "key")


def test_new_columns_get_new_ids() -> None:
    found = change(
        drop=["n"], add={"n": pa.string(), "st.c": pa.struct([("p", pa.int32())]), "li.element.z": pa.int64()}
    )
    assert "st.c.p" in found
    assert [found[name].id for name in ("n", "st.c", "st.c.p", "li.element.z")] == [13, 14, 15, 16]
    assert found["n"].optional


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"drop": ["x"]}, "no column 'x'"),
        ({"drop": ["_hoodie_commit_time"]}, "Hudi's own"),
        ({"drop": ["st.a", "st.b"]}, "All fields"),
        ({"drop": ["li.element"]}, "no name to change"),
        ({"drop": ["n"], "rename": {"n": "m"}}, "dropped and changed"),
        ({"rename": {"n": "id"}}, "more than once"),
        ({"rename": {"n": "ID"}}, "'id' and 'ID'"),
        ({"rename": {"n": "st.n"}}, "cannot move"),
        ({"rename": {"n": "1"}}, "cannot be the name"),
        ({"rename": {"ma.value": "v"}}, "no name to change"),
        ({"cast": {"n": pa.bool_()}}, "from int to boolean"),
        ({"cast": {"d": pa.decimal128(8, 2)}}, "cannot change its type from decimal"),
        ({"cast": {"st": pa.string()}}, "nested"),
        ({"cast": {"n": pa.list_(pa.int32())}}, "nested"),
        ({"cast": {"id": pa.date32()}}, "may not survive"),
        ({"add": {"id": pa.int32()}}, "already"),
        ({"add": {"ID": pa.int32()}}, "'id' and 'ID'"),
        ({"add": {"x.y": pa.int32()}}, "which 'x.y' is in"),
        ({"add": {"n.y": pa.int32()}}, "not inside a struct"),
        ({"add": {"_hoodie_file_name": pa.string()}}, "Hudi's own"),
        ({"reorder": {"n": "last"}}, "is none"),
        ({"reorder": {"n": "after x"}}, "is none"),
        ({"reorder": {"x": "first"}}, "no column 'x'"),
        ({"nullable": ["x"]}, "no column 'x'"),
        ({"comment": {"x": "y"}}, "no column 'x'"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        change(**given)


def test_new_columns_cannot_be_required() -> None:
    new = Changes(add={"x": pa.field("x", pa.int32(), nullable=False)})
    with pytest.raises(InvalidQueryError, match="cannot be required"):
        change_columns(tuple(BEFORE.values())[:1], new, Numbers(20))


def test_casts_with_loss_need_a_word() -> None:
    assert change(cast={"id": pa.date32()}, allow_loss=True)["id"].type.avro["logicalType"] == "date"
