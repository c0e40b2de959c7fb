"""A table with one base file of a metadata-only bootstrap, and its source file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.files import TableFiles
from hoodie_py.formats.names import META_FIELDS, METADATA_BOOTSTRAP_INSTANT
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.base.bootstrap import open_base_file
from hoodie_py.reader.file_slice import BaseFile, BlockRules, InstantRange, SourceFile
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from tests.table.tables import make_table, open_view

KEY, TIME = "_hoodie_record_key", "_hoodie_commit_time"
SCHEMA = pa.schema([*((name, pa.string()) for name in META_FIELDS), ("id", pa.int64()), ("name", pa.string())])


@dataclass(frozen=True)
class Pair:
    """A table with one skeleton, and its source."""

    root: Path
    base: BaseFile

    @property
    def table(self) -> Path:
        return self.root / "table"

    def open(self, instants: InstantRange | None = None, **options: str) -> BaseFileReader:
        files = TableFiles.open(self.table)
        info = ReadInfo(files, open_view(self.table).config, SCHEMA, {}, BlockRules())
        return open_base_file(
            info, self.base, ReadOptions(options={k.replace("__", "."): v for k, v in options.items()}), instants
        )

    def read(self, names: list[str], rows: int = 100, groups: list[int] | None = None) -> list[dict[str, Any]]:
        schema = pa.schema([SCHEMA.field(name) for name in names])
        batches = list(self.open().read_batches(schema, rows, groups))
        assert all(0 < batch.num_rows <= rows and batch.schema.names == names for batch in batches)
        return [row for batch in batches for row in batch.to_pylist()]


def make_pair(
    root: Path, rows: int = 7, skeleton_group: int = 100, source_group: int = 100, source: pa.Table | None = None
) -> Pair:
    meta = {name: [f"{name}-{number}" for number in range(rows)] for name in META_FIELDS}
    meta[TIME] = ["1" if number % 2 else "2" for number in range(rows)]
    data = source if source is not None else make_data(rows)
    make_table(root / "table")
    name = f"a-0_0-0-0_{METADATA_BOOTSTRAP_INSTANT}.parquet"
    pq.write_table(pa.table(meta), root / "table" / name, row_group_size=skeleton_group)
    (root / "source").mkdir(exist_ok=True)
    pq.write_table(data, root / "source" / "x.parquet", row_group_size=source_group)
    size = (root / "source" / "x.parquet").stat().st_size
    place = SourceFile(str(root / "source"), "x.parquet", size)
    return Pair(root, BaseFile(name, (root / "table" / name).stat().st_size, METADATA_BOOTSTRAP_INSTANT, "a-0", place))


def make_data(rows: int) -> pa.Table:
    return pa.table({"id": pa.array(range(rows), pa.int64()), "name": [f"n{number % 3}" for number in range(rows)]})
