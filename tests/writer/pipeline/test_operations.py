"""Bulk inserts in every sort mode: the order of rows in files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
ROWS = [{"id": each, "part": "ab"[int(each) % 2], "n": -int(each)} for each in "3514026"]
MODE = "hoodie.bulkinsert.sort.mode"
SORTED = {
    "hoodie.bulkinsert.user.defined.partitioner.class": "org.apache.hudi.execution.bulkinsert."
    "RowCustomColumnsSortPartitioner",
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "n",
}


def order(base: Path, options: dict[str, str]) -> dict[str, str]:
    table = HoodieTable.create(base, SCHEMA, record_key="id", partition_by="part")
    table.bulk_insert(ROWS, options={**QUICK, **options})
    files = [each.base_file for each in table.file_slices()]
    read = [pq.read_table(base / each.path) for each in files if each is not None]
    return {each["part"][0].as_py(): "".join(each["id"].to_pylist()) for each in read}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {"a": "4026", "b": "351"}),
        ({MODE: "GLOBAL_SORT"}, {"a": "0246", "b": "135"}),
        ({MODE: "PARTITION_SORT"}, {"a": "0246", "b": "135"}),
        ({MODE: "PARTITION_PATH_REPARTITION"}, {"a": "4026", "b": "351"}),
        ({MODE: "PARTITION_PATH_REPARTITION_AND_SORT"}, {"a": "4026", "b": "351"}),
        (SORTED, {"a": "6420", "b": "531"}),
    ],
)
def test_sort_modes(options: dict[str, str], wanted: dict[str, str], tmp_path: Path) -> None:
    assert order(tmp_path, options) == wanted


def test_a_sort_column_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError, match="cannot be sorted"):
        order(tmp_path, {**SORTED, "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "nope"})
