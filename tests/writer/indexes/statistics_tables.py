"""Tables with statistics in the metadata table, and what those statistics should be by the files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.indexes.bounds import NO_VALUES
from hoodie_py.formats.indexes.definitions import COLUMN_STATS, IndexedColumns, find_index_version
from hoodie_py.formats.indexes.ranges import make_statistics, read_statistics
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.indexes.column_ranges import measure_file
from hoodie_py.writer.indexes.partition_ranges import merge_parts
from tests.corpus import unpack_indexed

TYPES = ("types_mor_v9", "types_mor_v6")
Row = dict[str, Any]


def unpacked(name: str, into: Path) -> Path:
    """Unpack a table that Java made: ``types_mor_v9`` and ``types_mor_v6`` have columns of all types."""
    return unpack_indexed(name, into / name)


def list_files(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield partition path and path of each file that readers see."""
    paths = [listing.partition.path for listing in snapshot.view.list_partitions()]
    for each in snapshot.view.list_slices(None, paths):
        if each.base_file is not None:
            yield each.partition_path, each.base_file.path
        for log in each.log_files:
            yield each.partition_path, log.path


def read_partition(base: Path, kind: int) -> dict[str, Row]:
    """Return the merged statistics of a type of record, by key."""
    records = HoodieTable.open(base / ".hoodie/metadata").scan().to_arrow()
    found = records.filter(pc.equal(records["type"], kind))
    return dict(zip(found["key"].to_pylist(), found["ColumnStatsMetadata"].to_pylist(), strict=True))


def plain(row: Row) -> Row:
    """Return statistics with the wrapper that has the value, and NaN as a text, for comparing."""
    found = {**row, "valueType": row.get("valueType"), "isTightBound": row.get("isTightBound", False)}
    for name in ("minValue", "maxValue"):
        if row[name] is not None:
            [(wrapper, inner)] = [(key, each["value"]) for key, each in row[name].items() if each is not None]
            found[name] = wrapper, repr(inner)
    return found


def check_columns(base: Path, *, as_java: bool) -> int:
    """Check that each file's records are what we, or Java, make of its content, and return their number."""
    snapshot = open_snapshot(base)
    files, count = TableFiles.open(base), 0
    stored: dict[str, dict[str, Row]] = {}
    for row in read_partition(base, 3).values():
        stored.setdefault(row["fileName"], {})[row["columnName"]] = row
    version = find_index_version(COLUMN_STATS, read_definitions(files, snapshot.config), snapshot.config.version)
    for _, path in list_files(snapshot):
        name = path.rpartition("/")[2]
        java = _measure(files, path, IndexedColumns(tuple(stored[name]), version), as_java=True)
        found = _measure(files, path, IndexedColumns(tuple(stored[name]), version), as_java=as_java)
        for column, row in stored[name].items():
            assert plain(row) in (found[column], java.get(column)), (name, column)
        count += len(found)
    return count


def _measure(files: TableFiles, path: str, indexed: IndexedColumns, *, as_java: bool) -> dict[str, Row]:
    found = measure_file(files, path, indexed, as_java=as_java)
    assert found is not None
    names = [path.rpartition("/")[2]] * len(found.ranges)
    made = make_statistics(names, found.ranges, indexed.version).to_pylist()
    return {row["columnName"]: plain(row) for row in made}


def check_partitions(base: Path) -> int:
    """Check that each partition's records are merged from those of its files, and return their number."""
    snapshot = open_snapshot(base)
    version = find_index_version(
        COLUMN_STATS, read_definitions(snapshot.files, snapshot.config), snapshot.config.version
    )
    stored: dict[str, list[Any]] = {}
    rows = [*read_partition(base, 3).values()]
    statistics = pa.array(rows, make_statistics([], [], version).type)
    for row, each in zip(rows, read_statistics(statistics, version), strict=True):
        stored.setdefault(row["fileName"], []).append(each)
    parts: dict[str, dict[str, list[Any]]] = {}
    for partition, path in list_files(snapshot):
        for each in stored[path.rpartition("/")[2]]:
            parts.setdefault(partition, {}).setdefault(each.column, []).append(each)
    found = [*read_partition(base, 6).values()]
    merged = read_statistics(pa.array(found, make_statistics([], [], version).type), version)
    for row, each in zip(found, merged, strict=True):
        expected = merge_parts(parts[row["fileName"]], {each.column: each.kind}, version)[each.column]
        assert same(each, expected), (row["fileName"], each, expected)
        assert row["isTightBound"]
    return len(found)


def same(one: Any, other: Any) -> bool:
    """Whether ranges are equal; a NaN equals itself."""
    for name in ("column", "least", "greatest", "nulls", "values"):
        left, right = getattr(one, name), getattr(other, name)
        both_nan = all(isinstance(each, float) and math.isnan(each) for each in (left, right))
        if left != right and not both_nan:
            return False
    return bool(one.kind == other.kind or NO_VALUES in (one.kind, other.kind))
