"""Schemas of change records are Java's, text for text, in all modes."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.writer.cdc import ChangeSchema

COLUMNS = pa.schema([("id", pa.string()), ("price", pa.float64())])
TABLE = make_schema_text(COLUMNS, "t")
_OP = '{"name":"op","type":["null","string"],"doc":"","default":null}'
_IMAGE = (
    '{"type":"record","name":"t_record","fields":[{"name":"id","type":["null","string"],"default":null},'
    '{"name":"price","type":["null","double"],"default":null}]}'
)
_BEFORE = f'{{"name":"before","type":["null",{_IMAGE}],"doc":"","default":null}}'
_HEAD = '{"type":"record","name":"CDC","namespace":"hoodie.t","doc":"","fields":['


def test_keys_only() -> None:
    found = ChangeSchema.of("OP_KEY_ONLY", TABLE)
    assert found.avro.text == (
        '{"type":"record","name":"Record","fields":[{"name":"op","type":["string","null"]},'
        '{"name":"record_key","type":["string","null"]}]}'
    )
    assert found.arrow.names == ["op", "record_key"]


def test_images_before() -> None:
    found = ChangeSchema.of("DATA_BEFORE", TABLE)
    key = '{"name":"record_key","type":["null","string"],"doc":"","default":null}'
    assert found.avro.text == f"{_HEAD}{_OP},{key},{_BEFORE}]}}"
    assert found.image == ("id", "price")


def test_both_images() -> None:
    found = ChangeSchema.of("DATA_BEFORE_AFTER", TABLE)
    time = '{"name":"ts_ms","type":["null","string"],"doc":"","default":null}'
    after = '{"name":"after","type":["null","t_record"],"doc":"","default":null}'
    assert found.avro.text == f"{_HEAD}{_OP},{time},{_BEFORE},{after}]}}"
    assert found.arrow.field("after").type == found.arrow.field("before").type == pa.struct(list(COLUMNS))


@pytest.mark.parametrize("name", [{"name": "rec"}, {"name": "a.b.rec"}, {"name": "rec", "namespace": "a.b"}])
def test_names_with_and_without_namespace(name: dict[str, str]) -> None:
    table = json.dumps({"type": "record", **name, "fields": [{"name": "id", "type": "string"}]})
    found = ChangeSchema.of("DATA_BEFORE_AFTER", table)
    stored = json.loads(found.avro.text)
    assert stored.get("namespace") == ("a.b" if len(json.dumps(name)) > len('{"name": "rec"}') else None)
    assert stored["fields"][3]["type"] == ["null", "rec"]
    assert found.arrow.field("before").type.field("id").nullable, "the columns of a missing image are null"


def test_a_name_that_is_taken() -> None:
    table = json.dumps({"type": "record", "name": "CDC", "fields": [{"name": "id", "type": "string"}]})
    with pytest.raises(CorruptFileError):
        ChangeSchema.of("DATA_BEFORE_AFTER", table)
