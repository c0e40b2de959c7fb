"""How columns of a read map to those of older versions of the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.columns import InternalSchema, parse_internal_schema
from hoodie_py.reader.schema_evolution.file_mappings import FileMappings, Source
from hoodie_py.table.schema.by_id import make_mappings

BEFORE = ((1, "a", "int"), (2, "b", "string"))


def record(*found: tuple[int, str, Any]) -> dict[str, Any]:
    fields = [{"id": number, "name": name, "optional": True, "type": kind} for number, name, kind in found]
    return {"type": "record", "fields": fields}


def version(number: int, *found: tuple[int, str, Any]) -> InternalSchema:
    return parse_internal_schema(json.dumps(record(*found) | {"version_id": number, "max_column_id": 99}))


def mappings(*versions: Any) -> FileMappings | None:
    made = [version(10 * number, *each) for number, each in enumerate(versions, 1)]
    return make_mappings(made[-1], made)


def inside(name: str, kind: str = "int") -> dict[str, Any]:
    return record((3, name, kind))


def many(kind: Any) -> dict[str, Any]:
    return {"type": "array", "element_id": 7, "element": kind, "element_optional": True}


def keyed(kind: Any) -> dict[str, Any]:
    return {"type": "map", "key_id": 8, "key": "string", "value_id": 9, "value": kind, "value_optional": True}


BY_NAME = [
    [BEFORE],
    [BEFORE, (*BEFORE, (3, "c", "int"))],
    [BEFORE, BEFORE[:1]],
    [BEFORE, BEFORE[::-1]],
    [BEFORE, ((1, "a", "long"), BEFORE[1])],
    [((1, "s", inside("x")),), ((1, "s", inside("x")), (4, "c", "int"))],
]


@pytest.mark.parametrize("versions", BY_NAME)
def test_histories_whose_columns_match_by_name(versions: list[Any]) -> None:
    assert mappings(*versions) is None


OLDEST = [
    ([BEFORE, ((1, "z", "int"), BEFORE[1])], {"z": Source("a")}),
    ([BEFORE, ((1, "b", "int"), (2, "a", "string"))], {"b": Source("a"), "a": Source("b")}),
    ([BEFORE, BEFORE[1:], (*BEFORE[1:], (4, "a", "int"))], {"a": Source(None)}),
    ([BEFORE, ((1, "a", "string"), BEFORE[1])], {}),
    ([((1, "s", inside("x")),), ((1, "s", inside("y")),)], {"s": Source("s", {"y": Source("x")})}),
    ([((1, "s", inside("x")),), ((1, "t", inside("y")),)], {"t": Source("s", {"y": Source("x")})}),
    (
        [((1, "s", many(inside("x"))),), ((1, "s", many(inside("y"))),)],
        {"s": Source("s", {"element": Source("element", {"y": Source("x")})})},
    ),
    (
        [((1, "s", keyed(inside("x"))),), ((1, "s", keyed(inside("y"))),)],
        {"s": Source("s", {"value": Source("value", {"y": Source("x")})})},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("versions", "oldest"), OLDEST)
def test_what_the_oldest_files_hold(versions: list[Any], oldest: dict[str, Source]) -> None:
    found = mappings(*versions)
    assert found is not None
    assert found.find("10") == found.find("19") == oldest
    assert found.find(f"{10 * len(versions)}") == {}
    assert found.find("9") == {}  # before the first version columns go by name


def test_the_version_of_a_file_is_the_last_one_up_to_its_instant() -> None:
    found = mappings(((1, "a", "int"),), ((1, "b", "int"),), ((1, "c", "int"),))
    assert found is not None
    assert [found.find(instant) for instant in ("10", "19", "20", "29", "30", "99")] == [
        {"c": Source("a")}, {"c": Source("a")}, {"c": Source("b")}, {"c": Source("b")}, {}, {},
    ]  # fmt: skip
    assert found.cut(["25", "30"]).find("29") == {"c": Source("b")}
    assert len(found.cut(["30"]).mappings) == 1


CONTRADICTIONS = [
    [((1, "s", inside("x")),), ((1, "s", "int"),)],
    [((1, "s", many("int")),), ((1, "s", keyed("int")),)],
    [((1, "s", inside("x")), (2, "b", "int")), ((1, "s", "int"), (3, "x", "int"))],
]


@pytest.mark.parametrize("versions", CONTRADICTIONS)
def test_versions_that_contradict_each_other(versions: list[Any]) -> None:
    with pytest.raises(CorruptFileError):
        mappings(*versions)
