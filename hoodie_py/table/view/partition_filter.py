"""PartitionFilter: decides by paths which partitions can hold rows that pass a filter, and which folders lead to them.

The answer is False only if no partition path that begins with the folder's path spells values of the partition fields
with which a row can pass. A text value may hold slashes, so it may end in the folder or continue below it, and the
folder's segments may be spread over the leading fields in several ways. A value of another type is one segment, in
whatever spelling: its text is parsed as readers parse it. Java composes the folders to list from the values that a
filter names (Hudi ``HoodieTableFileIndex``).

Most filters list values of partition fields (``part = 'a'``, ``day IN (...)``). They are compared as sets, as a table
may have many folders. Only the other parts of a filter are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import DEFAULT_PARTITION, unescape_partition_value
from hoodie_py.table.filter.predicate import And, Predicate
from hoodie_py.table.filter.pruning import find_fixed_values, may_match_partition, may_match_statistics, names_partition
from hoodie_py.table.view.partition_values import (
    UnreadableValueError,
    parse_partition_constants,
    parse_typed_value,
    spells_values,
)

_MOST_SEGMENTS = 8  # a deeper path could be spread over fields in too many ways
_ONE_SEGMENT = (
    pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_decimal, pa.types.is_floating,
    pa.types.is_timestamp,
)  # fmt: skip
_LISTED = (pa.types.is_string, *_ONE_SEGMENT[:4])  # types whose values are equal exactly if Python's are
_UNKNOWN = object()  # any value of a field
_Values = dict[str, Any]


class PartitionFilter:
    """A filter on one table, for the paths of its partitions and of the folders above them."""

    def __init__(self, predicate: Predicate, config: TableConfig, schema: pa.Schema) -> None:
        self._config = config
        self._schema = schema
        self._fields = config.partition_fields
        self._types = {name: schema.field(name).type for name in self._fields if schema.get_field_index(name) >= 0}
        self._texts = frozenset(name for name, type_ in self._types.items() if pa.types.is_string(type_))
        self._joined = frozenset(name for name in self._fields if not self._is_one_segment(name))
        self._whole = names_partition(predicate, self._fields)
        self._prefix = () if self._whole else tuple(self._list_fixed(predicate))
        self._listed: dict[str, frozenset[Any]] = {}
        rest = [part for part in predicate.conjuncts if not self._add_listed(part)]
        self._rest = (
            None if not rest else Predicate(rest[0].root if len(rest) == 1 else And(tuple(p.root for p in rest)))
        )
        self._leading = {
            name: frozenset(text[:at] for text in values for at, char in enumerate(text) if char == "/")
            for name, values in self._listed.items()
            if name in self._texts
        }
        concerned = {*self._listed, *(() if self._rest is None else self._rest.columns)}
        self._is_decided = spells_values(config) and not concerned.isdisjoint(self._types)
        self._is_rest_decided = self._rest is not None and not self._rest.columns.isdisjoint(self._types)

    def may_match(self, path: str) -> bool:
        """Say whether rows of a partition may pass."""
        segments = path.split("/") if self._prefix else ()
        if len(segments) == len(self._fields) and not all(map(str.__eq__, self._prefix, segments)):
            return False
        values = parse_partition_constants(self._config, self._schema, path, whole=self._whole)
        for name, listed in self._listed.items():
            if name in values and values[name] not in listed:
                return False
        return self._rest is None or may_match_partition(self._rest, values)

    def may_lead(self, path: str) -> bool:
        """Say whether rows in partitions at or below a folder may pass."""
        segments = path.split("/")
        if not self._is_decided or len(segments) > _MOST_SEGMENTS:
            return True
        return any(
            self._may_pass(values)
            for spelled in _iterate_spellings(segments)
            for values in self._spread(spelled, segments, self._fields)
        )

    def _list_fixed(self, predicate: Predicate) -> Iterator[str]:
        """Yield the leading segments of the paths with rows that pass, as far as the filter fixes texts.

        Java lists only the folder of these segments. So if readers show other values for them, no row passes.
        """
        if self._config.url_encode_partitioning or not spells_values(self._config):
            return
        fixed = find_fixed_values(predicate)
        for name in self._fields:
            value = fixed.get(name)
            if name not in self._texts or not isinstance(value, str) or not value:
                return
            yield f"{name}={value}" if self._config.hive_style_partitioning else value

    def _is_one_segment(self, name: str) -> bool:
        """Say whether a field's value is always one folder: no text of its type has a slash."""
        type_ = self._types.get(name)
        if type_ is None or (pa.types.is_date(type_) and self._config.slash_separated_date_partitioning):
            return False
        return any(matches(type_) for matches in _ONE_SEGMENT)

    def _add_listed(self, part: Predicate) -> bool:
        """Note the values that a part of the filter allows for a partition field; False if it does not list them."""
        listed = part.listed_values
        if listed is None:
            return False
        name, type_ = listed.column, self._types.get(listed.column)
        if type_ is None or not any(matches(type_) for matches in _LISTED):
            return False
        allowed = frozenset(pa.scalar(value, type_).as_py() for value in listed.values)
        self._listed[name] = allowed & self._listed.get(name, allowed)
        return True

    def _spread(self, spelled: Sequence[str], segments: Sequence[str], fields: Sequence[str]) -> Iterator[_Values]:
        """Yield the values of the leading fields, in every way of joining neighbouring segments to a text.

        ``spelled``: the texts that the segments may stand for.
        """
        if not fields:  # deeper than a partition path, whose values are not known then
            yield {}
            return
        name, others = fields[0], fields[1:]
        most = len(segments) if name in self._joined else 1
        least = most if not others else 1
        for size in range(least, most + 1):
            value = self._parse(name, spelled[:size], segments[0])
            if size == len(segments):
                yield {name: value}
                continue
            for found in self._spread(spelled[size:], segments[size:], others):
                yield {name: value, **found} if found else {}

    def _parse(self, name: str, texts: Sequence[str], segment: str) -> Any:
        """Return the value spelled by the texts, or for one-segment values by the segment; None is null."""
        if name in self._joined:
            text = "/".join(texts)
            return text if name in self._texts and text != DEFAULT_PARTITION else _UNKNOWN
        text = unescape_partition_value(segment.split("=", 1)[-1])
        if text == DEFAULT_PARTITION:
            return None
        try:
            value = parse_typed_value(text, self._types[name])
        except UnreadableValueError:
            return _UNKNOWN
        is_read_whole = self._whole and "=" in segment  # then the path spells no value, and the file's value counts
        return _UNKNOWN if is_read_whole or isinstance(value, datetime) else value

    def _may_pass(self, values: _Values) -> bool:
        """Say whether rows with these values of the leading fields may pass; the last text may continue below."""
        last = next(reversed(values), None)
        for name, value in values.items():
            listed = self._listed.get(name)
            if listed is None or value is _UNKNOWN or value in listed:
                continue
            # The last text may be a leading part of a listed value that continues below the folder.
            if name != last or value not in self._leading.get(name, ()):
                return False
        if self._rest is None or not self._is_rest_decided:
            return True
        return may_match_statistics(self._rest, {name: _make_statistics(value) for name, value in values.items()})


def _iterate_spellings(segments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the texts that segments may stand for: after ``field=`` decoded, after ``field=``, and unchanged."""
    behind = tuple(each.split("=", 1)[-1] for each in segments)
    decoded = tuple(unescape_partition_value(each) for each in behind)
    yield from dict.fromkeys((decoded, behind, tuple(segments)))


def _make_statistics(value: Any) -> tuple[Any, ...]:
    """Return bounds of a field; bounds of text also allow longer texts, as the last value may continue below."""
    if value is _UNKNOWN:
        return (None, None, None)
    return (None, None, 1, 1) if value is None else (value, value, 0, 1)
