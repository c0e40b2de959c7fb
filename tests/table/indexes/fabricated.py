"""Adds a metadata table to a table: the partition ``files``, as Java makes it, with what the folders have."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.config.table_config import METADATA_PARTITIONS, compute_table_checksum
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.indexes.commit import encode_entries, make_hfile
from hoodie_py.writer.indexes.files import list_files

FIRST = "0" * 17
_PROPERTIES = """\
hoodie.compaction.payload.class=org.apache.hudi.metadata.HoodieMetadataPayload
hoodie.table.keygenerator.type=HOODIE_TABLE_METADATA
hoodie.table.type=MERGE_ON_READ
hoodie.archivelog.folder=history
hoodie.timeline.layout.version=2
hoodie.timeline.history.path=history
hoodie.timeline.path=timeline
hoodie.record.merge.strategy.id=00000000-0000-0000-0000-000000000000
hoodie.record.merge.mode=CUSTOM
hoodie.table.recordkey.fields=key
hoodie.populate.meta.fields=false
hoodie.table.base.file.format=HFILE
hoodie.table.version=9
"""


def add_metadata_table(table: Path, sample: Path, leave_out: Collection[str] = ()) -> None:
    """Give a table of version 9 a metadata table, without some files; ``sample`` has one, for its schema."""
    snapshot = open_snapshot(str(table))
    sizes = {
        each.partition.path: {
            file.name: file.size
            for file in each.files
            if not file.name.startswith(".hoodie") and file.path not in leave_out
        }
        for each in snapshot.view.list_partitions()
    }
    model = open_snapshot(str(sample)).metadata.open()
    assert model is not None
    commit = next(iter(sorted((sample / ".hoodie/metadata/.hoodie/timeline").glob(f"{FIRST}_*.deltacommit"))))
    text = model.timeline.read_metadata(model.timeline.list_completed_writes()[-1]).schema
    assert text is not None
    keys, values = encode_entries(_sort(list_files(sizes, {})), AvroSchema.parse(text))
    place = table / ".hoodie" / "metadata"
    (place / "files").mkdir(parents=True)
    (place / ".hoodie" / "timeline").mkdir(parents=True)
    name = f"{snapshot.config.name}_metadata"
    properties = f"hoodie.table.name={name}\nhoodie.table.checksum={compute_table_checksum(name)}\n{_PROPERTIES}"
    (place / ".hoodie" / "hoodie.properties").write_text(properties)
    (place / "files" / ".hoodie_partition_metadata").write_text("commitTime=0\npartitionDepth=1\n")
    (place / "files" / f"files-0000-0_0-0-0_{FIRST}.hfile").write_bytes(make_hfile(keys, values, text))
    for each in (f"{FIRST}.deltacommit.requested", f"{FIRST}.deltacommit.inflight"):
        (place / ".hoodie" / "timeline" / each).write_bytes(b"")
    done = max(each.completion_time or each.request_time for each in snapshot.timeline.list_completed_writes())
    completed = place / ".hoodie" / "timeline" / f"{FIRST}_{int(done) + 1}.deltacommit"
    completed.write_bytes(commit.read_bytes())
    with (table / ".hoodie" / "hoodie.properties").open("a") as file:
        file.write(f"{METADATA_PARTITIONS}=files\n")


def _sort(rows: pa.Table) -> pa.Table:
    return rows.sort_by("key")
