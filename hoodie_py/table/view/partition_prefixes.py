"""Decide by a folder's path whether partitions at or below it can hold rows that a filter wants.

The rule: the answer is False only where no partition path that begins with the folder's path spells values of the
partition fields with which a row can pass. A text value may hold slashes, so it may end in the folder or go on below
it, and the folder's segments may be spread over the leading fields in several ways. Fields of other types may be
spelled in several ways, so they may have any value here; the partition itself is judged later. Java composes the
folders to list from the values that a filter names (Hudi ``HoodieTableFileIndex``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import DEFAULT_PARTITION, unescape_partition_value
from hoodie_py.table.filter.predicate import Predicate
from hoodie_py.table.filter.pruning import may_match_statistics
from hoodie_py.table.view.partition_values import spells_values

_MOST_SEGMENTS = 8  # a deeper path may be spread over fields in too many ways


def may_hold_wanted(predicate: Predicate, config: TableConfig, schema: pa.Schema, path: str) -> bool:
    """Say whether rows in partitions at or below a folder may pass."""
    fields = config.partition_fields
    texts = frozenset(name for name in fields if _is_text(schema, name))
    segments = path.split("/")
    if not spells_values(config) or predicate.columns.isdisjoint(texts) or len(segments) > _MOST_SEGMENTS:
        return True
    return any(
        may_match_statistics(predicate, _make_statistics(values, fields, texts))
        for spelled in _iterate_spellings(segments)
        for values in _spread(spelled, len(fields))
    )


def _is_text(schema: pa.Schema, name: str) -> bool:
    at = schema.get_field_index(name)
    return at >= 0 and bool(pa.types.is_string(schema.field(at).type))


def _iterate_spellings(segments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the texts that segments may stand for: behind ``field=``, that decoded, and as they are."""
    behind = tuple(each.split("=", 1)[-1] for each in segments)
    decoded = tuple(unescape_partition_value(each) for each in behind)
    yield from dict.fromkeys((decoded, behind, tuple(segments)))


def _spread(segments: Sequence[str], fields: int) -> Iterator[tuple[str, ...]]:
    """Yield the values of the leading fields, at most ``fields``, in every way that joins neighbouring segments."""
    if fields == 1 or len(segments) == 1:
        yield ("/".join(segments),)
        return
    for size in range(1, len(segments) + 1):
        first, rest = "/".join(segments[:size]), segments[size:]
        if not rest:
            yield (first,)
            continue
        for others in _spread(rest, fields - 1):
            yield first, *others


def _make_statistics(
    values: Sequence[str], fields: Sequence[str], texts: frozenset[str]
) -> Mapping[str, tuple[Any, ...]]:
    """Return bounds of the text fields: bounds of text also allow longer texts, as the last value may go on below."""
    return {
        field: (value, value, 0)
        for field, value in zip(fields, values, strict=False)
        if field in texts and value != DEFAULT_PARTITION
    }
