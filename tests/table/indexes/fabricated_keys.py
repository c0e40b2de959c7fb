"""Adds a record index to a table with a fabricated metadata table: any number of keys, spread over its file groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.hfile.reader import HFile
from hoodie_py.formats.indexes.definitions import RECORD_INDEX
from hoodie_py.formats.indexes.keys import RECORD_INDEX_TYPE, find_file_groups, make_group_id, make_locations
from hoodie_py.formats.indexes.record_schema import RECORD_INDEX_COLUMN
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.indexes.commit import encode_entries, make_hfile
from tests.table.indexes.fabricated import FIRST


def add_record_index(table: Path, keys: pa.Array, groups: int) -> None:
    """Give a table a global record index: key n is in its n-th slice, counted round and round."""
    slices = open_snapshot(str(table)).view.list_slices()
    numbers = np.arange(len(keys)) % len(slices)
    paths, file_ids = [each.partition_path for each in slices], [each.file_id for each in slices]
    locations = make_locations(paths, file_ids, numbers, 1_700_000_000_000, None)
    types = pa.array(np.full(len(keys), RECORD_INDEX_TYPE, np.int32))
    records = pa.table({"key": keys, "type": types, RECORD_INDEX_COLUMN: locations})
    metadata = table / ".hoodie" / "metadata"
    text = HFile.from_bytes(next((metadata / "files").glob("*.hfile")).read_bytes()).schema_text
    assert text is not None
    folder = metadata / RECORD_INDEX
    folder.mkdir()
    (folder / ".hoodie_partition_metadata").write_text("commitTime=0\npartitionDepth=1\n")
    of = find_file_groups(keys, groups)
    for number in range(groups):
        entries = encode_entries(records.filter(pa.array(of == number)), AvroSchema.parse(text))
        (folder / f"{make_group_id(number)}_0-0-0_{FIRST}.hfile").write_bytes(make_hfile(*entries, text))
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(
        properties.read_text().replace("metadata.partitions=files", "metadata.partitions=files,record_index")
    )
