"""Tables for tests of data skipping: Java Hudi 1.2.0 wrote them, with all indexes and columns of all types.

``types_mor_v9``, ``types_mor_v6``: a hundred rows in four partitions, with NaN, zeros of both signs, long texts, texts
of other planes, nulls, log files with updates and log files with deletes. ``expressions_mor_v9``: partial updates, an
added column, and indexes on expressions. ``nested_mor_v9``: fields of structs are indexed, and a column only since the
second write. ``evolved_mor_v9``: columns that were widened, and one that was added.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.scan.scan import Scan

DATA = Path(__file__).parents[2] / "data" / "skipping"
ON = {"hoodie.enable.data.skipping": "true"}
OFF = {"hoodie.enable.data.skipping": "false"}


def unpack(name: str, into: Path) -> Path:
    """Unpack a table below a folder and return its folder."""
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into / name


@dataclass(frozen=True)
class SliceRows:
    """A slice and its merged rows."""

    file_slice: FileSlice
    rows: pa.RecordBatch


def read_slices(scan: Scan) -> list[SliceRows]:
    """Read each slice of a scan without filter."""
    found = []
    for task in scan.tasks():
        table = pa.Table.from_batches(task.to_batches(), scan.schema).combine_chunks()
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], scan.schema)]
        found.append(SliceRows(task.file_slice, batches[0]))
    return found


def open_scan(path: Path, where: str | None = None, **options: Any) -> Scan:
    """Return a scan that asks all indexes."""
    return HoodieTable.open(path).scan(filter=where, options=ON, **options)


def filters(schema: pa.Schema, rows: pa.Table) -> st.SearchStrategy[str]:
    """Random SQL conditions on a table's columns, with values that are in it or near."""
    names = [field.name for field in schema if _make_literal(field.type, None) is not None]
    leaf = st.sampled_from(names).flatmap(lambda name: _leaves(name, schema.field(name).type, _sample(rows, name)))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(("and", "or")), inner).map(lambda each: f"({' '.join(each)})"),
            inner.map(lambda each: f"(not {each})"),
        ),
        max_leaves=4,
    )


def _sample(rows: pa.Table, name: str) -> list[Any]:
    column = rows[name]
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.string()) if pa.types.is_date(column.type) else column.cast(pa.timestamp("us"))
    return [value for value in column.unique().to_pylist() if value is not None][:200]


def _leaves(name: str, type_: pa.DataType, sample: list[Any]) -> st.SearchStrategy[str]:
    values = [text for value in sample for text in _make_literals(type_, value)]
    values = values or [_make_literal(type_, None) or "null"]
    literal = st.sampled_from([*values, "null"])
    compare = st.tuples(st.sampled_from(("=", "<", "<=", ">", ">=", "<>", "<=>")), literal)
    leaves = [
        compare.map(lambda each: f"{name} {each[0]} {each[1]}"),
        st.lists(literal, min_size=1, max_size=12).map(lambda each: f"{name} in ({', '.join(each)})"),
        st.sampled_from((f"{name} is null", f"{name} is not null")),
    ]
    if pa.types.is_string(type_) and sample:
        prefixes = st.sampled_from(sample).map(lambda text: text[:3].replace("'", "").replace("%", "").replace("_", ""))
        leaves.append(prefixes.map(lambda prefix: f"{name} like '{prefix}%'"))
    return st.one_of(leaves)


def _make_literals(type_: pa.DataType, value: Any) -> list[str]:
    """Return a value, and its neighbours, as SQL."""
    if pa.types.is_floating(type_) and value == value:
        return [f"cast('{each!r}' as double)" for each in (value, value + 0.5, value - 0.5)]
    if pa.types.is_integer(type_):
        return [str(each) for each in (value, value + 1, value - 1)]
    found = _make_literal(type_, value)
    return [] if found is None else [found]


def _make_literal(type_: pa.DataType, value: Any) -> str | None:
    if pa.types.is_string(type_):
        return "'" + (value or "x").replace("\\", "").replace("'", "") + "'"
    if pa.types.is_boolean(type_):
        return str(bool(value)).lower()
    if pa.types.is_floating(type_):
        return "cast('nan' as double)" if value is None or value != value else f"cast('{value!r}' as double)"
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return str(value or 0)
    if pa.types.is_binary(type_):
        return f"X'{(value or b'').hex()}'"
    if pa.types.is_date(type_):
        return f"date'{value or '2026-01-01'}'"
    if pa.types.is_timestamp(type_):
        kind = "timestamp" if type_.tz else "timestamp_ntz"
        return f"{kind}'{value or '2026-01-01 00:00:00'}{'Z' if type_.tz else ''}'"
    return None
