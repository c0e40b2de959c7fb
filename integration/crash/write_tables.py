"""Small tables that writes are cut short on: made by this package, and by Java Hudi with a metadata table."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from integration.crash.children import DONE, Child
from integration.crash.operations import QUICK
from integration.crash.stores import State
from integration.crash.tables import table
from tests.writer.bootstrapped_tables import Bootstrapped

MADE = tuple(f"made {kind} {version}" for kind in ("mor", "cow") for version in (6, 8, 9))
CAPTURING = ("made cow 9 cdc", "made cow 6 cdc", "made mor 9 cdc")
VIRTUAL = ("made mor 6 virtual", "made cow 9 virtual", "made mor 9 virtual")
RINGS = ("made mor 6 ring", "made mor 9 ring", "made mor 9 ring indexed")
KEYLESS = ("made mor 9 keyless", "made cow 6 keyless")
EMPTY = ("empty mor 6", "empty cow 8", "empty mor 9")
WITH_METADATA = ("old15_metadata_mor", "mdt_files_mor_v9 as 8", "mdt_files_mor_v9", "mdt_all_cow_v9")
EVERY_INDEX = ("made mor 9 indexed", "made cow 8 indexed")
INDEXED = ("indexed global_sql_mor_v9", "indexed partitioned_mor_v9", "indexed global_mor_v6")
WRITE_TABLES = (*MADE, *CAPTURING, *VIRTUAL, *WITH_METADATA, *INDEXED, *EVERY_INDEX, *KEYLESS, *EMPTY)

_RING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
}
_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("name", pa.string())])


_sources = tempfile.TemporaryDirectory()  # as long as this process lives, all copies of a table have the same sources


@cache
def write_table(name: str) -> State:
    """Return a table: "made cow 8" is one of this package's, "empty ..." has no commit yet, "... cdc" captures changes,
    "... virtual" has no meta fields, "... keyless" no record key, "... indexed" has every index, "... ring" has
    consistent hashing, "bootstrapped ..." names sources on the local disk, others are Java's.
    """
    words = name.split()
    if words[0] == "bootstrapped":
        root = Path(_sources.name) / name
        return State.of_folder(Bootstrapped(int(words[2]), words[1] == "mor").create(root))
    if words[0] not in ("made", "empty"):
        return table(name)
    how, state = Child(lambda: _made(*words[1:], empty=words[0] == "empty")).result()
    assert how == DONE, state
    made: State = state
    return made


def _made(kind: str, version: str, *traits: str, empty: bool) -> State:
    with tempfile.TemporaryDirectory() as folder:
        made = HoodieTable.create(
            f"{folder}/t",
            _SCHEMA,
            record_key=None if "keyless" in traits else "id",
            ordering="ts",
            partition_by=["part"],
            table_type="MERGE_ON_READ" if kind == "mor" else "COPY_ON_WRITE",
            table_version=int(version),
            name="t",
            properties={
                "hoodie.table.cdc.enabled": str("cdc" in traits).lower(),
                "hoodie.populate.meta.fields": str("virtual" not in traits).lower(),
            },
        )
        if not empty:
            made.upsert([_row(number, 1) for number in range(8)], {**QUICK, **(_RING if "ring" in traits else {})})
            if "keyless" in traits:
                made.update({"name": "concat(name, '-2')", "ts": "2"}, "ts = 1 and id in ('k0', 'k2')", options=QUICK)
            else:
                made.upsert([_row(number, 2) for number in range(0, 8, 2)], QUICK)
        if "indexed" in traits:
            _build_all(made)
        return State.of_folder(Path(folder) / "t")


def _build_all(table: HoodieTable) -> None:
    for name in ("record_index", "column_stats", "partition_stats", "bloom_filters"):
        table.index.build(name, options=QUICK)
    table.index.build("by_name", "name", options=QUICK)
    table.index.build("up", "name", function="upper", options=QUICK)


def _row(number: int, ts: int) -> dict[str, Any]:
    return {"id": f"k{number}", "part": f"p{number % 3 % 2}", "ts": ts, "name": f"n{number}-{ts}"}
