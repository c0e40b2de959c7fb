"""Comparison of a stored range with a file's values (Hudi ``HoodieMetadataTableValidator``).

A range is right if it holds for the data: its bounds include the file's values, it does not record "no nulls" for a
column with nulls, nor "only nulls" for one with values. It may be wider. If Java 1.2.0 itself writes a range that does
not hold (``formats/indexes/ranges.py``), that range counts as right: readers do not trust it. Dates that Java stores
ten days late are counted separately, as nothing else shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.formats.indexes.bounds import ValueKind, ValueType
from hoodie_py.formats.indexes.ranges import (
    ColumnRange,
    make_java_key,
    make_widest_range,
    promote_range,
    read_statistics,
    shift_range,
    simplify_range,
)
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.indexes.verify_report import PartReport


def is_known(data: ColumnRange) -> bool:
    """Whether a range describes values.

    It does not if a file is from before its column was added or became one of doubles. Readers ignore the range of the
    partition then.
    """
    return data != make_widest_range(data.column, data.kind)


def holds(
    found: ColumnRange, data: ColumnRange, version: int, *, key: Callable[[Any, ValueKind], Any] = make_java_key
) -> bool:
    """Whether a stored range holds for the range of the data; ``key`` defines how values compare."""
    if found.kind != data.kind and data.kind.type is ValueType.STRING:
        return True  # the column has become a text, and readers use no bounds of another kind
    if data.nulls and not found.nulls and found.values:
        return False
    if data.values > data.nulls and found.values and found.nulls >= found.values:
        return False
    if data.least is None or data.greatest is None:
        return True
    if found.least is None or found.greatest is None:
        return False
    one, other = simplify_range(found, version), simplify_range(data, version)
    if one.kind != other.kind:
        promoted = _promote_either(one, other)
        if promoted is None:  # readers ignore ranges of floats if the column has become one of doubles
            return (found.kind.type, data.kind.type) == (ValueType.FLOAT, ValueType.DOUBLE)
        one, other = promoted
    least, greatest = (key(each, one.kind) for each in (one.least, one.greatest))
    low, high = (key(each, one.kind) for each in (other.least, other.greatest))
    return bool(least <= low and high <= greatest)


def _promote_either(one: ColumnRange, other: ColumnRange) -> tuple[ColumnRange, ColumnRange] | None:
    """Return two ranges of one kind; None if neither kind includes the other.

    Entries keep the type from before a column was widened until their partition is written again, and readers promote
    them.
    """
    for promoted, pair in (
        (promote_range(other, one.kind), lambda each: (one, each)),
        (promote_range(one, other.kind), lambda each: (each, other)),
    ):
        if promoted is not None and promoted.least is not None and promoted.greatest is not None:
            return pair(promoted)
    return None


def check_range(
    report: PartReport, place: str, found: ColumnRange | None, expected: Sequence[ColumnRange], version: int
) -> None:
    """Check a stored range: it is right if it holds for one of the ``expected`` ones, of which the first is true."""
    if not expected:
        return
    report.checked += 1
    data = expected[0]
    if found is None:
        if data.values:
            report.note("missing", place, f"there is no entry; it should say {format_range(data)}")
    elif not any(holds(found, each, version) for each in expected):
        text = f"the metadata table says {format_range(found)}; the data has {format_range(data)}"
        note_wrong_range(report, place, text, is_shifted=any(holds_shifted(found, each, version) for each in expected))


def holds_shifted(
    found: ColumnRange, data: ColumnRange, version: int, *, key: Callable[[Any, ValueKind], Any] = make_java_key
) -> bool:
    """Whether a range holds for the data if its dates are shifted as Java stores them; ``key`` as for ``holds``."""
    shifted = shift_range(data, version)
    return shifted is not None and holds(found, shifted, version, key=key)


def note_wrong_range(report: PartReport, place: str, text: str, *, is_shifted: bool) -> None:
    """Note a range that does not hold. ``is_shifted``: whether it is one that Java writes."""
    if is_shifted:
        report.note_shifted(place, text)
    else:
        report.note("wrong", place, text)


def format_range(found: ColumnRange) -> str:
    """Return a range as findings show it."""
    return f"{str(found.least)[:60]} to {str(found.greatest)[:60]}, {found.nulls} nulls of {found.values} values"


def read_ranges(view: MetadataView, partition: str, keys: Iterable[str], version: int) -> dict[str, ColumnRange]:
    """Return the stored ranges by key."""
    records = view.read_keys(partition, keys)
    ranges = read_statistics(join_chunks(records[STATISTICS_COLUMN]), version) if records.num_rows else []
    return dict(zip(records["key"].to_pylist(), ranges, strict=True))
