"""Find the record keys that a filter lists, for base files with an index of keys (HFiles).

If a filter allows only some values, or only values with some prefix, of the column that contains the record key as
text, no row with another key passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.reader.read_info import WantedKeys

if TYPE_CHECKING:
    from hoodie_py.table.filter.predicate import Predicate

_METADATA_KEY_FIELD = "key"
_MOST_KEYS = 10_000  # the most keys that a task carries


def find_listed_keys(config: TableConfig, predicate: Predicate | None) -> WantedKeys | None:
    """Return the only record keys that can pass; None if the filter does not limit them, or files have no key index."""
    if predicate is None or config.base_file_format != "HFILE":
        return None
    column = _find_key_column(config)
    if column is None or column not in predicate.columns:
        return None
    for part in predicate.conjuncts:
        listed = part.listed_values
        if listed is None or listed.column != column or len(listed.values) > _MOST_KEYS:
            continue
        if all(isinstance(value, str) for value in listed.values):
            return WantedKeys(tuple(dict.fromkeys(listed.values)))
    prefixes = (_find_prefix(part, column) for part in predicate.conjuncts)
    return next((WantedKeys((prefix,), are_prefixes=True) for prefix in prefixes if prefix), None)


def _find_prefix(part: Predicate, column: str) -> str | None:
    """Return the text that a column's values begin with according to a ``like``; None for other filters."""
    from hoodie_py.table.filter.like_pattern import find_literal_prefix
    from hoodie_py.table.filter.predicate import Column, Like

    node = part.root
    if not isinstance(node, Like) or not isinstance(node.child, Column) or node.child.path != (column,):
        return None
    return find_literal_prefix(node.pattern, node.escape)


def _find_key_column(config: TableConfig) -> str | None:
    """Return the column whose text is the record key: without meta columns only the metadata table's ``key``."""
    if config.populate_meta_fields:
        return RECORD_KEY_FIELD
    is_metadata = config.record_key_fields == (_METADATA_KEY_FIELD,) and config.is_metadata_table
    return _METADATA_KEY_FIELD if is_metadata else None
