"""The clauses of a merge, as callers write them: what happens to a row, and under which condition.

Among the clauses of one kind, the first whose condition holds counts, as in SQL. Expressions are Spark SQL; columns are
named ``source.price`` and ``target.price``, or without a prefix if only one side has the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Update:
    """Update the row.

    Attributes:
        set: an expression for each column to change; a value other than text is a literal. None: all columns get the
            source's values.
        where: condition; None for all rows.

    Examples:
        >>> news = [{"id": "a", "price": 15.0}]
        >>> update = Update({"price": "source.price"}, where="source.price > target.price")
        >>> trips.merge(news, on="id", when_matched=update).rows_updated
        1
    """

    set: Mapping[str, Any] | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the row. ``where`` is a condition; None for all rows.

    Examples:
        >>> result = trips.merge([{"id": "a"}], on="id", when_matched=Delete(where="target.price < 20"))
        >>> result.rows_deleted
        1
    """

    where: str | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert a row.

    Attributes:
        values: an expression for each column; other columns are null. None: all columns get the source's values.
        where: condition; None for all rows.

    Examples:
        >>> news = [{"id": "e", "city": "la", "price": 9.0, "ts": 4}, {"id": "f", "city": "la", "price": -1.0, "ts": 4}]
        >>> trips.merge(news, on="id", when_not_matched=Insert(where="source.price > 0")).rows_inserted
        1
    """

    values: Mapping[str, Any] | None = None
    where: str | None = None


Clause = Update | Delete | Insert
Clauses = str | Clause | Sequence[str | Clause] | None
"""Clauses as an argument: one or several. The texts "update", "delete" and "insert" are clauses for all rows."""
