"""The arguments that every kind of scan takes, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from hoodie_py.arrow.fields import check_columns
from hoodie_py.errors import InvalidQueryError

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.table.filter.predicate import Predicate
    from hoodie_py.table.filter.sql_settings import SqlSettings


class ScanArguments(TypedDict, total=False):
    """The arguments of every kind of scan but its options; ``HoodieTable.scan`` says what they mean."""

    columns: Sequence[str] | None
    filter: str | pc.Expression | Predicate | None
    limit: int | None
    merger: Merger | None
    memory_limit: int | None
    batch_rows: int | None
    integrity: str
    sql: SqlSettings | None


def read_option_texts(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the options as texts, without options whose value is None.

    Raises:
        InvalidQueryError: an option is misspelt or its value is not valid.
        UnsupportedFeatureError: an option asks for rows that a read does not return.
    """
    texts = {str(key): str(value) for key, value in (options or {}).items() if value is not None}
    if texts:
        from hoodie_py.options.check import check_read_options  # it imports the options of everything else

        check_read_options(texts)
    return texts


def choose_columns(columns: Sequence[str] | None, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns of a result; all of them if ``columns`` is None.

    Raises:
        InvalidQueryError: a column is unknown or repeated.
    """
    if columns is None:
        return tuple(schema.names)
    if isinstance(columns, str):
        raise InvalidQueryError(f"The columns must be a list of names, not the text {columns!r}.")
    check_columns(columns, schema)
    return tuple(columns)


def check_positive(name: str, value: int | None) -> None:
    """Raise InvalidQueryError if a value is given that is not a positive number."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value <= 0):
        raise InvalidQueryError(f"{name} must be a positive number, not {value!r}.")
