"""Make a scan: check every argument, and apply Hudi's reader options where no argument says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.options.check import check_read_options
from hoodie_py.options.read import AS_OF_INSTANT, AS_READ_OPTIMIZED, QUERY_TYPE
from hoodie_py.reader.fields import check_columns
from hoodie_py.reader.read_info import DEFAULT_BATCH_ROWS, ReadOptions
from hoodie_py.table.scan import Scan
from hoodie_py.table.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from hoodie_py.reader.merger import Merger
    from hoodie_py.table.predicate import Predicate

_QUERY_TYPES = ("snapshot", "read_optimized")
_LATER_QUERY_TYPES = ("incremental", "cdc")

_BATCH_VALUES = 1 << 18
_LEAST_BATCH_ROWS = 16_384


def make_scan(
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    filter: str | pc.Expression | Predicate | None = None,  # noqa: A002 - users know the name
    query_type: str | None = None,
    limit: int | None = None,
    merger: Merger | None = None,
    memory_limit: int | None = None,
    batch_rows: int | None = None,
    integrity: str = "default",
    options: Mapping[str, Any] | None = None,
) -> Scan:
    """Return a scan of a snapshot; see ``HoodieTable.scan`` for the arguments.

    Raises:
        InvalidQueryError: an unknown or repeated column, a bad filter, a number or word out of range.
        UnsupportedFeatureError: a kind of query that is not handled.
    """
    texts = {str(key): str(value) for key, value in (options or {}).items() if value is not None}
    check_read_options(texts)
    travel = texts.get(AS_OF_INSTANT)
    if travel is not None and not snapshot.is_time_travel:
        snapshot = snapshot.travel_to(travel)
    kind = _check_query_type(query_type or _find_asked_type(texts))
    if integrity not in ("default", "strict"):
        raise InvalidQueryError(f"integrity must be 'default' or 'strict', not {integrity!r}.")
    _check_positive("batch_rows", batch_rows)
    _check_positive("memory_limit", memory_limit)
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidQueryError(f"limit must be a number of rows, not {limit!r}.")
    if merger is not None:
        from hoodie_py.reader.registry import as_merger

        as_merger(merger)
    schema = snapshot.schema.arrow
    predicate = None
    if filter is not None:
        from hoodie_py.table.filters import as_predicate

        predicate = as_predicate(filter, schema)
    wanted = _choose_columns(columns, schema)
    settings = ReadOptions(
        batch_rows or choose_batch_rows(len(wanted)),
        "strict" if integrity == "strict" else "default",
        memory_limit,
        texts,
    )
    return Scan(snapshot, wanted, predicate, kind, settings, limit, merger)


def choose_batch_rows(columns: int) -> int:
    """Return how many rows to read at once: fewer of wide rows, so that batches fit the processor's caches."""
    return max(_LEAST_BATCH_ROWS, min(DEFAULT_BATCH_ROWS, _BATCH_VALUES // max(1, columns)))


def _find_asked_type(options: Mapping[str, str]) -> str:
    """Return the query type that options name; as in Java, the option of Hive-synchronized tables counts last."""
    return QUERY_TYPE.read_given(options) or ("read_optimized" if AS_READ_OPTIMIZED.read(options) else "snapshot")


def _check_query_type(text: str) -> str:
    kind = text.lower()
    if kind in _LATER_QUERY_TYPES:
        raise UnsupportedFeatureError(f"Queries of type {kind}.", hint=f"Supported: {', '.join(_QUERY_TYPES)}.")
    if kind not in _QUERY_TYPES:
        raise InvalidQueryError(f"Unknown query type {text!r}.", hint=f"Use one of: {', '.join(_QUERY_TYPES)}.")
    return kind


def _choose_columns(columns: Sequence[str] | None, schema: pa.Schema) -> tuple[str, ...]:
    if columns is None:
        return tuple(schema.names)
    if isinstance(columns, str):
        raise InvalidQueryError(f"columns must be a list of names, not the text {columns!r}.")
    check_columns(columns, schema)
    return tuple(columns)


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value <= 0):
        raise InvalidQueryError(f"{name} must be a positive number, not {value!r}.")
