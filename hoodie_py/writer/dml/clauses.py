"""The clauses of a merge, as users write them: what happens to a row, and under which condition.

Of the clauses of one kind the first whose condition holds counts, as in SQL. Expressions are Spark SQL; columns are
named ``source.price`` and ``target.price``, or without a prefix where only one side has the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Update:
    """Update the row.

    Attributes:
        set: an expression for each column to change; a value that is no text is taken as it is. None: all columns take
            the source's values.
        where: condition; None for all rows.
    """

    set: Mapping[str, Any] | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the row. ``where`` is a condition; None for all rows."""

    where: str | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert a row.

    Attributes:
        values: an expression for each column; other columns are null. None: all columns take the source's values.
        where: condition; None for all rows.
    """

    values: Mapping[str, Any] | None = None
    where: str | None = None


Clause = Update | Delete | Insert
Clauses = str | Clause | Sequence[str | Clause] | None
"""Clauses as an argument: one or several; the texts "update", "delete" and "insert" are clauses for all rows."""
