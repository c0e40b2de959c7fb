"""What the record index and the secondary indexes of a table have, and what they should have by its rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import HoodieTable
from hoodie_py.formats.indexes.keys import (
    RECORD_INDEX_TYPE,
    SECONDARY_INDEX_TYPE,
    format_secondary_values,
    make_secondary_keys,
    read_file_ids,
)
from hoodie_py.formats.indexes.record_schema import RECORD_INDEX_COLUMN

Location = tuple[str, str, str]


def read_index(base: Path) -> list[Location]:
    """Key, partition path and file id of all records of the record index."""
    records = HoodieTable.open(base / ".hoodie/metadata").scan().to_arrow()
    records = records.filter(pc.equal(records["type"], RECORD_INDEX_TYPE))
    if not records.num_rows:
        return []
    stored = pa.concat_arrays(records[RECORD_INDEX_COLUMN].chunks)
    names, numbers = read_file_ids(stored)
    keys, paths = records["key"].to_pylist(), stored.field("partitionName").to_pylist()
    return sorted(zip(keys, paths, [names[i] for i in numbers], strict=True))


def read_places(base: Path) -> list[Location]:
    """Key, partition path and file id of all rows."""
    rows = HoodieTable.open(base).scan().to_arrow()
    ids = [name.partition("_")[0] for name in rows["_hoodie_file_name"].to_pylist()]
    keys, paths = rows["_hoodie_record_key"].to_pylist(), rows["_hoodie_partition_path"].to_pylist()
    return sorted(zip(keys, paths, ids, strict=True))


def read_secondary(base: Path) -> list[str]:
    """Keys of the secondary index; the table has one."""
    records = HoodieTable.open(base / ".hoodie/metadata").scan().to_arrow()
    return sorted(records.filter(pc.equal(records["type"], SECONDARY_INDEX_TYPE))["key"].to_pylist())


def make_secondary(base: Path, column: str) -> list[str]:
    """The keys that a secondary index of a column should have."""
    rows = HoodieTable.open(base).scan().to_arrow().combine_chunks()
    values = [format_secondary_values(batch.column(column)) for batch in rows.to_batches()]
    keys = [batch.column("_hoodie_record_key") for batch in rows.to_batches()]
    return sorted(make_secondary_keys(pa.concat_arrays(values), pa.concat_arrays(keys)).to_pylist())
