"""Base files under the names and types of a read, and which row groups of them a filter needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.base.mapped_file import MappedBaseFile
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.schema_evolution.by_id import ColumnMapper
from hoodie_py.reader.schema_evolution.file_mappings import Source
from hoodie_py.table.filter.row_groups import choose_row_groups
from hoodie_py.table.filter.sql_parser import parse_sql

STORED = {"a": [1, 2, 3, 4, 5, 6], "b": [10, 20, 30, 40, 50, 60], "c": ["u", "v", "w", "x", "y", "z"]}
READ = pa.schema([("new", pa.int64()), ("a", pa.string()), ("b", pa.string()), ("c", pa.string())])
MAPPING = {"new": Source("a"), "a": Source(None)}  # a was renamed to new; another a was added; b was retyped


def mapped(root: Path, mapping: Mapping[str, Source] = MAPPING, schema: pa.Schema = READ) -> MappedBaseFile:
    pq.write_table(pa.table(STORED), root / "f.parquet", row_group_size=2)
    size = (root / "f.parquet").stat().st_size
    inner = BaseFileReader(TableFiles.open(str(root)), BaseFile("f.parquet", size, "1", "f"))
    return MappedBaseFile(inner, ColumnMapper(mapping, schema), schema)


def test_columns_types_and_rows(tmp_path: Path) -> None:
    base = mapped(tmp_path)
    assert base.columns == {"new", "b", "c"}
    assert base.schema == pa.schema([("new", pa.int64()), ("b", pa.string()), ("c", pa.string())])
    batches = list(base.read_batches(READ, 4, coded=READ.names))
    assert sum(batch.num_rows for batch in batches) == base.num_rows == 6
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows[1] == {"new": 2, "a": None, "b": "20", "c": "v"}
    assert [batch.num_columns for batch in base.read_batches(pa.schema([]), 100, [1])] == [0]
    only_added = list(base.read_batches(pa.schema([READ.field("a")]), 100, [0, 2]))
    assert [row for batch in only_added for row in batch.to_pylist()] == [{"a": None}] * 4


FILTERS = [
    ("new = 3", [1]),
    ("new > 4", [2]),
    ("c >= 'y'", [2]),
    ("a = '3'", [0, 1, 2]),  # the statistics of the stored a are those of another column
    ("b > '5'", [0, 1, 2]),  # numbers order otherwise than texts
    ("b > '5' and new < 3", [0]),
]


@pytest.mark.parametrize(("text", "wanted"), FILTERS)
def test_row_groups_are_chosen_by_statistics_that_hold(text: str, wanted: list[int], tmp_path: Path) -> None:
    assert choose_row_groups(mapped(tmp_path), parse_sql(text, READ), READ, READ.names, [], 100) == wanted


def test_files_that_contradict_the_mapping(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="'gone'"):
        mapped(tmp_path, {"a": Source("gone")}, pa.schema([("a", pa.int64())]))


def test_a_type_change_that_hudi_does_not_know_names_file_and_column(tmp_path: Path) -> None:
    schema = pa.schema([("c", pa.int64())])
    with pytest.raises(UnsupportedFeatureError) as caught:
        list(mapped(tmp_path, {}, schema).read_batches(schema, 100))
    assert caught.value.where == {"column": "c", "path": "f.parquet"}
