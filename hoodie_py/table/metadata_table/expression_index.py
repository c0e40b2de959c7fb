"""expr_index_*: leave out file slices by ranges of an expression's values (Hudi ``ExpressionIndexSupport``).

The index has statistics of files as ``column_stats`` has, of ``upper(name)`` instead of ``name``; they are joined in
the same way. Java knows many functions. Filters are answered by ``upper``, ``lower``, and ``identity``, which is the
column itself. Parts of times, such as ``hour``, are in the index by the time zone of the session that wrote it.

Java and Python may not agree about the case of rare letters. Comparisons with texts of ASCII are the same in both, so
an index of upper or lower case is asked for those alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_py.formats.metadata_table.index_definitions import COLUMN_STATS, IndexDefinition
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.bounds import find_candidates, name_expression
from hoodie_py.table.filter.predicate import InList, Like, Literal, iterate_nodes
from hoodie_py.table.metadata_table.column_stats import find_millis, find_ranged_columns, may_be_judged
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.metadata_table.file_ranges import list_files, read_bounds
from hoodie_py.table.metadata_table.slice_filter import FilterRequest, Mask, SliceFilter

IDENTITY: Final = ("", "identity")
_CASES: Final = ("upper", "lower")


@dataclass(frozen=True, slots=True)
class ExpressionFilter:
    """Leaves out slices by an index of statistics: ``column`` has the type ``type``, and ``expression`` names it."""

    request: FilterRequest
    name: str
    column: str
    type: pa.DataType
    expression: str

    @property
    def least_slices(self) -> int:
        """From how many slices on it pays to ask the index."""
        return self.request.least_slices

    def choose(self, slices: Sequence[FileSlice]) -> Mask | None:
        """Return for each slice whether it may hold rows that pass."""
        request = self.request
        trusted = np.array([may_be_judged(request, each) for each in slices], np.bool_)
        some = [each for each, is_trusted in zip(slices, trusted.tolist(), strict=True) if is_trusted]
        if not some:
            return None
        columns, files = {self.column: self.type}, list_files(some)
        found = read_bounds(
            request.view, self.name, files, columns, len(some), find_millis(request), of_expressions=True
        )
        keep = np.ones(len(slices), np.bool_)
        keep[trusted] = find_candidates(request.predicate, {self.expression: found[self.column]}, len(some))
        return keep


def make_expression_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filters of the expression indexes that know something of a scan's filter."""
    return [
        ExpressionFilter(request, each.name, each.columns[0], *found)
        for each in list_expression_indexes(request)
        if each.kind == COLUMN_STATS and (found := find_expression(request, each)) is not None
    ]


def list_expression_indexes(request: FilterRequest) -> list[IndexDefinition]:
    """Return the definitions of the expression indexes that the metadata table has, each of one column."""
    if not any(name.startswith("expr_index_") for name in request.view.partitions):
        return []
    definitions = read_definitions(request.files, request.config)
    return [
        each for each in definitions if each.is_expression and request.view.has(each.name) and len(each.columns) == 1
    ]


def find_expression(request: FilterRequest, index: IndexDefinition) -> tuple[pa.DataType, str] | None:
    """Return the type of an index's values, and the name of its expression in the filter; None if that has none."""
    column, function = index.columns[0], index.function.lower()
    columns = find_ranged_columns(request)
    if column not in columns:
        return None
    if function in IDENTITY:
        return columns[column], column
    name = f"{function}({column})"
    if function not in _CASES or not pa.types.is_string(columns[column]) or not _has_plain_texts(request):
        return None
    names: Mapping[str | None, pa.DataType] = {
        name_expression(node): node.type
        for node in iterate_nodes(request.predicate.root)
        if name_expression(node) is not None
    }
    return (names[name], name) if name in names else None


def _has_plain_texts(request: FilterRequest) -> bool:
    """Say whether all texts in the filter are of ASCII."""
    texts: list[object] = []
    for node in iterate_nodes(request.predicate.root):
        texts += [node.value] if isinstance(node, Literal) else node.values if isinstance(node, InList) else []
        texts += [node.pattern] if isinstance(node, Like) else []
    return all(each.isascii() for each in texts if isinstance(each, str))
