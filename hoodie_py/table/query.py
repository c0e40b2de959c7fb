"""Chooses the query that Java Hudi's options ask for: snapshot, base files alone, incremental or changes.

It agrees with Hudi's ``DefaultSource``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.read import INCREMENTAL_FORMAT, QUERY_TYPE, RANGE_END, RANGE_START
from hoodie_py.table.scan.arguments import ScanArguments, read_option_texts
from hoodie_py.table.scan.scan import Scan, make_scan
from hoodie_py.table.snapshot import Snapshot


def make_query(
    snapshot: Snapshot,
    *,
    query_type: str | None = None,
    options: Mapping[str, Any] | None = None,
    **arguments: Unpack[ScanArguments],
) -> Scan:
    """Return a scan of the type given by ``query_type``, or else by the options.

    The other arguments are those of ``make_query_scan``.

    Raises:
        InvalidQueryError: a range without a start, or an argument or option that is not valid.
        UnsupportedFeatureError: a kind of query that is not handled.
    """
    texts = read_option_texts(options)
    kind = QUERY_TYPE.read_given(texts) if query_type is None else query_type.lower()
    if kind != "incremental":
        return make_scan(snapshot, query_type=query_type, options=texts, **arguments)
    start = RANGE_START.find_text(texts)
    if start is None:
        raise InvalidQueryError(
            "An incremental query has no start.", hint=f"Set {RANGE_START}, to 000 for the beginning."
        )
    if INCREMENTAL_FORMAT.read(texts) == "cdc":
        from hoodie_py.table.changes.query import make_changes_scan

        return make_changes_scan(snapshot, start, RANGE_END.find_text(texts), options=texts, **arguments)
    from hoodie_py.table.incremental.query import make_incremental_scan

    return make_incremental_scan(snapshot, start, RANGE_END.find_text(texts), options=texts, **arguments)
