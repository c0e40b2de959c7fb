"""Tests of fields in Arrow schemas."""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.arrow.fields import relax_structs


def test_fields_of_structs_become_nullable_at_every_depth() -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    item = pa.field("element", inner, nullable=False)
    strict = pa.struct([
        pa.field("a", pa.string(), nullable=False, metadata={"k": "v"}), pa.field("l", pa.list_(item), nullable=False),
        pa.field("m", pa.map_(pa.string(), pa.field("value", inner, nullable=False))),
    ])  # fmt: skip
    relaxed = relax_structs(pa.field("s", strict, nullable=False, metadata={"k": "v"}))
    assert (relaxed.nullable, relaxed.metadata) == (False, {b"k": b"v"})
    assert relaxed.type.field("a").metadata == {b"k": b"v"}
    assert all(field.nullable for field in relaxed.type)
    elements = relaxed.type.field("l").type.value_field
    assert not elements.nullable  # an element is missing, never null
    assert elements.type.field("x").nullable
    assert relaxed.type.field("m").type.item_type.field("x").nullable
    assert pa.nulls(2, relaxed.type).cast(relaxed.type).null_count == 2


def test_other_types_stay_the_same_object() -> None:
    for type_ in (pa.int32(), pa.list_(pa.field("element", pa.int8(), nullable=False)), pa.struct([("x", pa.int32())])):
        field = pa.field("c", type_, nullable=False)
        assert relax_structs(field) is field
