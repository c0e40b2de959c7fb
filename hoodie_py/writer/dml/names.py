"""Find the columns that expressions of an update or a merge name, on the side of the target or of the source.

A bound column's path begins with its side. Rows of both sides form one batch with a struct column for each side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.binding import find_column, find_names_alike, map_children
from hoodie_py.table.filter.predicate import Column, Node, iterate_nodes
from hoodie_py.table.filter.sql_settings import UTC_SESSION, SqlSettings

TARGET, SOURCE = "target", "source"


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of both sides, and the prefixes that callers write for them; an update has no source.

    ``settings`` define whether names match by case.
    """

    target: pa.Schema
    source: pa.Schema | None = None
    target_alias: str = TARGET
    source_alias: str = SOURCE
    settings: SqlSettings = UTC_SESSION

    def find(self, path: Sequence[str]) -> Column:
        """Find a column.

        Raises:
            InvalidQueryError: there is no such column, or it is on both sides.
        """
        sides = {self.target_alias: (TARGET, self.target)}
        if self.source is not None:
            sides[self.source_alias] = (SOURCE, self.source)
        aliases = find_names_alike(path[0], list(sides), self.settings) if len(path) > 1 else []
        if len(aliases) == 1:
            side, schema = sides[aliases[0]]
            return find_on_side(side, path[1:], schema, self.settings)
        having = [
            (side, schema) for side, schema in sides.values() if find_names_alike(path[0], schema.names, self.settings)
        ]
        if len(having) > 1:
            raise InvalidQueryError(
                f"The column {path[0]!r} is in the target and in the source.",
                hint=f"Write {self.target_alias}.{path[0]} or {self.source_alias}.{path[0]}.",
                column=path[0],
            )
        side, schema = having[0] if having else (TARGET, self.target)
        return find_on_side(side, path, schema, self.settings)


def find_on_side(side: str, path: Sequence[str], schema: pa.Schema, settings: SqlSettings) -> Column:
    """Find a column of one side; errors as for ``find_column``."""
    found = find_column(path, schema, settings)
    return Column((side, *found.path), found.type)


def list_sides(node: Node) -> set[str]:
    """Return the sides that an expression reads."""
    return {each.path[0] for each in iterate_nodes(node) if isinstance(each, Column)}


def list_columns(nodes: Iterable[Node], side: str) -> set[str]:
    """Return the names of the columns of one side that expressions read."""
    columns = (each for node in nodes for each in iterate_nodes(node) if isinstance(each, Column))
    return {each.path[1] for each in columns if each.path[0] == side}


def drop_side(node: Node) -> Node:
    """Return an expression that reads one side only, in terms of that side's own rows."""
    if isinstance(node, Column):
        return Column(node.path[1:], node.type)
    return map_children(node, drop_side)


def join_sides(count: int, target: pa.RecordBatch | None, source: pa.RecordBatch | None) -> pa.RecordBatch:
    """Make the batch that expressions are computed on. Row i of the target belongs to row i of the source."""
    columns = {"": pa.nulls(count)}
    for side, batch in ((TARGET, target), (SOURCE, source)):
        if batch is not None and batch.num_columns:
            columns[side] = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return pa.RecordBatch.from_pydict(columns)
