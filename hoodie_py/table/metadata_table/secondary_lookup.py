"""Record keys of a column's values, by a secondary index of the metadata table (Hudi ``SecondaryIndexKeyUtils``).

The keys of the index begin with the value. All keys of a value are in one file group from version 2 of the index on, in
version 1 they are in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.arrow.compute import take
from hoodie_py.formats.metadata_table.index_definitions import (
    SECONDARY_PREFIX,
    IndexDefinition,
    IndexDefinitions,
    find_definitions_path,
)
from hoodie_py.formats.metadata_table.record_index_keys import find_file_groups
from hoodie_py.formats.metadata_table.secondary_keys import escape_secondary_values, split_secondary_keys
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.filter.allowed_values import find_allowed_values, spell_value
from hoodie_py.table.metadata_table.slice_filter import FilterRequest
from hoodie_py.table.metadata_table.view import KEY, MetadataView

_MOST_VALUES = 1_000
_MOST_KEYS = 100_000  # beyond, rows are likely to be in most file groups
_UNESCAPED = r"[\\$\x00]"  # characters that early writers of secondary indexes may not have escaped


@dataclass(frozen=True, slots=True)
class KeysByValue:
    """The distinct record keys that a secondary index has for the values that a filter allows."""

    index: str
    keys: pa.Array


def find_keys_by_value(request: FilterRequest) -> KeysByValue | None:
    """Look up the values that a filter allows, in the first secondary index that can tell; None if none can.

    Raises:
        InvalidTableError: the index's keys are not those of one.
        CorruptFileError, FileMissingError: the metadata table, or the file of index definitions, is damaged.
        StorageError: the store refused.
    """
    for definition, texts in _list_indexes(request):
        keys = _read_keys(request.view, definition, texts)
        if keys is not None:
            return KeysByValue(definition.name, keys)
    return None


def _list_indexes(request: FilterRequest) -> Iterator[tuple[IndexDefinition, pa.Array]]:
    """Yield the definitions of indexes with the texts of all values of their columns that can pass."""
    path = find_definitions_path(request.config)
    if path is None:
        return
    definitions = IndexDefinitions.from_bytes(read_bounded(request.files, path))
    for name in request.view.partitions:
        definition = definitions.get(name) if name.startswith(SECONDARY_PREFIX) else None
        if definition is None or len(definition.columns) != 1 or definition.columns[0] not in request.predicate.columns:
            continue
        texts = _list_texts(request, definition.columns[0])
        if texts is not None and _are_certain(texts, definition):
            yield definition, texts


def _list_texts(request: FilterRequest, column: str) -> pa.Array | None:
    """Return the texts of the only values of a column that can pass; None if they are not certain."""
    values = find_allowed_values(request.predicate, column)
    if values is None or len(values) > _MOST_VALUES:
        return None
    type_ = request.columns.arrow.field(column).type
    texts: dict[str, None] = {}
    for value in values:
        spelt = spell_value(value, type_)
        if spelt is None:
            return None
        texts.update(dict.fromkeys(spelt))
    return pa.array(list(texts), pa.string())


def _are_certain(texts: pa.Array, definition: IndexDefinition) -> bool:
    """Whether texts are in the keys of an index as they are made here; a definition without version is an early one."""
    return definition.version is not None or not pc.any(pc.match_substring_regex(texts, _UNESCAPED)).as_py()


def _read_keys(view: MetadataView, definition: IndexDefinition, texts: pa.Array) -> pa.Array | None:
    """Return the distinct record keys of values; None if they are too many."""
    prefixes = pc.binary_join_element_wise(escape_secondary_values(texts), "", "$")
    groups = view.list_groups(definition.name)
    numbers = find_file_groups(prefixes, len(groups))
    by_value = (definition.version or 1) > 1
    found: list[pa.Array] = []
    count = 0
    for number, group in enumerate(groups):
        chosen = take(prefixes, from_numpy(np.flatnonzero(numbers == number))) if by_value else prefixes
        if not len(chosen):
            continue
        keys = view.read_prefixes(definition.name, chosen.to_pylist(), [], [group])[KEY]
        count += len(keys)
        if count > _MOST_KEYS:
            return None
        found += [split_secondary_keys(chunk)[1] for chunk in keys.chunks]
    return pc.unique(pa.chunked_array(found, pa.string()))
