"""Turn the arguments of ``HoodieTable.create`` into the form that ``NewTable`` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.reader.merger import Merger


def make_default_name(files: TableFiles) -> str:
    """Return the last part of the base path: the name of a table that gets no other."""
    return files.uri.rstrip("/").rsplit("/", 1)[-1]


def to_arrow_schema(schema: Any) -> pa.Schema:
    """Convert a schema, or anything that exports one.

    Raises:
        InvalidQueryError: it is neither a schema nor exports one.
    """
    if isinstance(schema, pa.Schema):
        return schema
    if hasattr(schema, "__arrow_c_schema__"):
        return pa.schema(schema)
    raise InvalidQueryError(f"schema must be an Arrow schema, not {type(schema).__name__}.")


def split_field_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return field names; a single text may list them with commas."""
    names = given.split(",") if isinstance(given, str) else given
    return tuple(each.strip() for each in names if each.strip())


def resolve_strategy_id(merger: Merger | None, strategy_id: str | None) -> str | None:
    """Return the merge strategy id of a merger, or ``strategy_id`` if there is no merger.

    Raises:
        InvalidQueryError: the merger has no strategy id, or another one than ``strategy_id``.
    """
    if merger is None:
        return strategy_id
    named = getattr(merger, "strategy_id", None)
    if not named:
        raise InvalidQueryError(f"The merger {merger!r} has no strategy_id, so the table cannot name it.")
    if strategy_id not in (None, named):
        raise InvalidQueryError("merger and merge_strategy_id name different mergers.", hint="Give one of them.")
    return str(named)


def to_property_texts(properties: Mapping[str, Any] | None) -> dict[str, str]:
    """Convert property values to the texts that are stored; booleans in lower case."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (properties or {}).items()
    }
