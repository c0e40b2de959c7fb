"""Matches the columns of a read with those of older versions of a table's schema, by their ids.

The rules are those of Hudi's ``InternalSchemaMerger``, at every level of nesting:

* A field whose id the old version has comes from the field that had the id then, whatever its name.
* A field without that id, whose name another field had then, was dropped and added again: it is null.
* Any other field matches by name; files that lack it give null. So do files from before the first version.

Lists and maps match as a whole, then their elements and values match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.columns import ColumnType, Elements, InternalSchema, Plain, Struct, Values
from hoodie_py.reader.schema_evolution.file_mappings import ELEMENT, VALUE, FileMappings, Source, join_equal

_SAFE_RETYPES = frozenset({("int", "long")})  # matching by name does the same, and row-group statistics stay valid


def make_mappings(query: InternalSchema, versions: Sequence[InternalSchema]) -> FileMappings | None:
    """Return how the files of each version map to the columns of a read; None if matching by name gives the same.

    ``versions``: the table's versions, oldest first.

    Raises:
        CorruptFileError: two versions contradict each other.
    """
    by_version = {each.version: each for each in versions} | {query.version: query}
    ordered = [by_version[number] for number in sorted(by_version)]
    starts: list[int] = [0]
    maps: list[dict[str, Source]] = [{}]
    retyped = False
    types = dict(_list_types(query.record))
    for version in ordered:
        starts.append(version.version)
        maps.append(_map_record(query.record, version.record, version))
        retyped = retyped or any(
            types.get(number, old) != old and (old, types[number]) not in _SAFE_RETYPES
            for number, old in _list_types(version.record)
        )
    found = join_equal(starts, maps)
    return found if retyped or any(found.mappings) else None


def _map_record(query: Struct, stored: Struct, version: InternalSchema) -> dict[str, Source]:
    sources = {}
    for field in query.columns:
        found = version.fields_by_id.get(field.id)
        if found is None:
            if field.name in stored.by_name:
                sources[field.name] = Source(None)
            continue
        old, record = found
        if record is not stored:
            raise CorruptFileError(f"The column {field.name!r} was inside another one in an older schema.")
        inner = _map_type(field.name, field.type, old.type, version)
        if inner or old.name != field.name:
            sources[field.name] = Source(old.name, inner)
    return sources


def _map_type(name: str, query: ColumnType, stored: ColumnType, version: InternalSchema) -> dict[str, Source]:
    match query, stored:
        case Struct(), Struct():
            return _map_record(query, stored, version)
        case Elements(), Elements():
            inner = _map_type(name, query.type, stored.type, version)
            return {ELEMENT: Source(ELEMENT, inner)} if inner else {}
        case Values(), Values():
            inner = _map_type(name, query.type, stored.type, version)
            return {VALUE: Source(VALUE, inner)} if inner else {}
        case Plain(), Plain():
            return {}
    raise CorruptFileError(f"The column {name!r} is nested in one version of the schema, and is not in another.")


def _list_types(node: ColumnType) -> Iterator[tuple[int | None, str]]:
    """Yield id and type of every field, element, key and value that is not nested."""
    match node:
        case Struct():
            inner = [(field.id, field.type) for field in node.columns]
        case Elements():
            inner = [(node.id, node.type)]
        case Values():
            inner = [(node.key_id, node.key), (node.id, node.type)]
        case Plain():
            return
    for number, type_ in inner:
        if isinstance(type_, Plain):
            yield number, type_.name
        else:
            yield from _list_types(type_)
