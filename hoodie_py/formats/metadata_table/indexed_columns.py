"""Which columns have statistics (Hudi ``HoodieTableMetadataUtil.getColumnsToIndex``).

Three meta columns always, unless the table has none. Then those that a list names, or else the first 32 of the top
level whose type can have statistics. The definition of ``column_stats`` in ``.hoodie/.index_defs`` names the columns of
the last commit, but not whether a list chose them. A file that lacks statistics of one column, and has those of others,
counts for Java as all null in it. So a writer without a list has at least the columns of the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hoodie_py.formats.avro.schema import AvroType, Record
from hoodie_py.formats.metadata_table.record_ranges import find_field
from hoodie_py.formats.metadata_table.stat_values import DECIMAL_PRECISION, DECIMAL_SCALE
from hoodie_py.formats.metadata_table.value_kinds import V1, ValueType, find_avro_kind

MOST_COLUMNS: Final = 32
META_COLUMNS: Final = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_NEVER_FIRST = frozenset(
    {
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "_hoodie_operation",
    }
)


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns that have statistics, as paths with dots, and the version of the index."""

    names: tuple[str, ...]
    version: int


def can_have_statistics(node: AvroType, version: int) -> bool:
    """Whether columns of a type can have statistics of an index version.

    Version 1 wraps decimals with 15 digits behind the point, and has room for 30 in all.
    """
    kind = find_avro_kind(node)
    if kind is None:
        return False
    if version == V1 and kind.type == ValueType.DECIMAL:
        return kind.scale <= DECIMAL_SCALE and kind.precision + DECIMAL_SCALE - kind.scale <= DECIMAL_PRECISION
    return True


def choose_first_columns(schema: Record, version: int, most: int = MOST_COLUMNS) -> tuple[str, ...]:
    """Return the columns that have statistics if no list chooses them, without meta columns."""
    names = (
        field.name
        for field in schema.fields
        if field.name not in _NEVER_FIRST and can_have_statistics(field.type, version)
    )
    return tuple(names)[:most]


def choose_columns(
    schema: Record,
    version: int,
    *,
    meta_columns: bool,
    listed: Sequence[str] = (),
    most: int = MOST_COLUMNS,
    defined: Sequence[str] | None = None,
    before: Record | None = None,
) -> tuple[str, ...]:
    """Return the columns to have statistics of, as paths with dots, those of META_COLUMNS first.

    Args:
        schema: of the records that are written.
        version: of the index.
        meta_columns: whether the table has meta columns.
        listed: what the option lists; empty if it is not given.
        most: how many columns there are without a list.
        defined: the columns of the index's definition; None if there is none.
        before: the schema of the table before this write, None if it is the same: where the definition has the first
            columns of it, no list chose them, and new columns count, too. Columns of the definition that it does not
            have are of a write that did not complete.
    """
    chosen: Sequence[str] = listed
    if not listed:
        chosen = choose_first_columns(schema, version, most)
        if defined is not None:
            plain = tuple(name for name in defined if name not in META_COLUMNS)
            was_first = before is not None and _are_first(plain, before, version, most)
            chosen = (*plain, *(chosen if was_first else ()))
    found = (name for name in dict.fromkeys(chosen) if name not in META_COLUMNS)
    known = tuple(name for name in found if _is_known(schema, name, version))
    return (*META_COLUMNS, *known) if meta_columns else known


def _are_first(names: Sequence[str], schema: Record, version: int, most: int) -> bool:
    known = {name for name in names if _is_known(schema, name, version)}
    return known == set(choose_first_columns(schema, version, most))


def _is_known(schema: Record, name: str, version: int) -> bool:
    node = find_field(schema, name)
    return node is not None and can_have_statistics(node, version)
