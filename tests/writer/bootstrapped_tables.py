"""Tables of a metadata-only bootstrap, made here as Java Hudi makes them, beside the folder of their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py import HoodieTable
from hoodie_py.formats.config.properties import update_properties
from hoodie_py.formats.names import META_FIELDS, METADATA_BOOTSTRAP_INSTANT
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.writers import write_commit_metadata
from tests.bootstrap import make_index

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("part", pa.string())])
ROWS = 6  # in each source file
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
COMPLETED = "20200101000000000"


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """What kind of table. Sources lack the partition column unless it is ``stored``."""

    version: int = 9
    merge_on_read: bool = True
    partitions: tuple[str, ...] = ("p0", "p1")
    stored: bool = False
    type: pa.DataType = SCHEMA.field("part").type

    def __str__(self) -> str:
        kind = "mor" if self.merge_on_read else "cow"
        return f"v{self.version}-{kind}-{'part' if self.is_partitioned else 'flat'}{'-stored' if self.stored else ''}"

    @property
    def is_partitioned(self) -> bool:
        return self.partitions != ("",)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        at = SCHEMA.get_field_index("part")
        return SCHEMA.set(at, pa.field("part", self.type)) if self.is_partitioned else SCHEMA.remove(at)

    def create(self, root: Path, properties: Mapping[str, str] | None = None) -> Path:
        """Make the table ``root/table`` of the sources ``root/source``, and return it."""
        base, source = root / "table", root / "source"
        HoodieTable.create(
            base,
            self.schema,
            record_key="id",
            ordering="ts",
            partition_by=["part"] if self.is_partitioned else (),
            table_type="MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            table_version=self.version,
            properties={"hoodie.datasource.write.hive_style_partitioning": "true", **(properties or {})},
        )
        path = base / ".hoodie/hoodie.properties"
        path.write_bytes(update_properties(path.read_bytes(), {"hoodie.bootstrap.base.path": str(source)}))
        stats: dict[str, tuple[WriteStat, ...]] = {}
        sources: dict[str, dict[str, tuple[str | None, int | None]]] = {}
        for number, value in enumerate(self.partitions):
            folder = f"part={value}" if self.is_partitioned else ""
            (base / folder).mkdir(exist_ok=True)
            (source / folder).mkdir(parents=True, exist_ok=True)
            file_id = f"group{number}"
            stats[folder] = (self._write_skeleton(base, folder, file_id, number),)
            data = source / folder / "data.parquet"
            pq.write_table(self._make_source(number, value), data, row_group_size=4, store_schema=False)
            sources[folder] = {file_id: (f"file:{data}", data.stat().st_size)}
        for name, content in make_index(sources).items():
            (base / name).parent.mkdir(parents=True)
            (base / name).write_bytes(content)
        self._commit(base, stats)
        return base

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of the bootstrap by record key."""
        return {
            row["id"]: row for number, value in enumerate(self.partitions) for row in self._make_rows(number, value)
        }

    def row(self, number: int, ts: int = 1, name: str = "a", at: int | None = None) -> dict[str, Any]:
        """A row to write: of the key's own partition, or of the at-th."""
        found = {"id": f"k{number}", "ts": ts, "name": name}
        value = self.partitions[min(number // ROWS, len(self.partitions) - 1) if at is None else at]
        return {**found, "part": self._to_value(value)} if self.is_partitioned else found

    def _to_value(self, text: str) -> Any:
        if text == NO_VALUE:
            return None
        return int(text) if pa.types.is_integer(self.type) else text

    def _make_rows(self, number: int, value: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {"id": f"k{number * ROWS + i}", "ts": 1, "name": f"n{i}"} for i in range(ROWS)
        ]  # fmt: skip
        return [{**row, "part": self._to_value(value)} for row in rows] if self.is_partitioned else rows

    def _make_source(self, number: int, value: str) -> pa.Table:
        rows = pa.Table.from_pylist(self._make_rows(number, value), self.schema)
        return rows if self.stored or not self.is_partitioned else rows.drop_columns(["part"])

    def _write_skeleton(self, base: Path, folder: str, file_id: str, number: int) -> WriteStat:
        name = f"{file_id}_{number}-1-1_{METADATA_BOOTSTRAP_INSTANT}.parquet"
        values = [
            [METADATA_BOOTSTRAP_INSTANT] * ROWS,
            [f"{METADATA_BOOTSTRAP_INSTANT}_{number}_{i}" for i in range(ROWS)],
            [f"k{number * ROWS + i}" for i in range(ROWS)],
            [folder] * ROWS,
            [name] * ROWS,
        ]
        pq.write_table(pa.table(values, names=META_FIELDS), base / folder / name)
        metafile = f"commitTime={METADATA_BOOTSTRAP_INSTANT}\npartitionDepth={int(bool(folder))}\n"
        (base / folder / ".hoodie_partition_metadata").write_text(metafile)
        size = (base / folder / name).stat().st_size
        return WriteStat(
            file_id=file_id, path=f"{folder}/{name}" if folder else name, prev_commit="null", num_writes=ROWS,
            num_inserts=ROWS, total_write_bytes=size, partition_path=folder, file_size_in_bytes=size,
        )  # fmt: skip

    def _commit(self, base: Path, stats: Mapping[str, tuple[WriteStat, ...]]) -> None:
        config = HoodieTable.open(base).config
        commit = CommitMetadata(
            operation_type="BOOTSTRAP", extra_metadata={"schema": config.create_schema or ""}, write_stats=stats
        )
        action = "deltacommit" if self.merge_on_read else "commit"
        name = METADATA_BOOTSTRAP_INSTANT if self.version == 6 else f"{METADATA_BOOTSTRAP_INSTANT}_{COMPLETED}"
        path = base / config.find_timeline_folder() / f"{name}.{action}"
        path.write_bytes(write_commit_metadata(commit, config.timeline_layout))


KINDS = [
    *(Bootstrapped(version, mor) for version in (9, 8, 6) for mor in (True, False)),
    Bootstrapped(partitions=("",)),
    Bootstrapped(merge_on_read=False, partitions=("",)),
    Bootstrapped(stored=True),
    Bootstrapped(merge_on_read=False, partitions=(NO_VALUE, "p1")),
    Bootstrapped(merge_on_read=False, partitions=("2020", "2021"), type=pa.int32()),
]


def contents(table: HoodieTable | Path) -> dict[str, dict[str, Any]]:
    """Rows by record key, without meta columns."""
    opened = HoodieTable.open(table) if isinstance(table, Path) else table
    rows = opened.scan().to_arrow()
    found = rows.select([name for name in rows.schema.names if name not in META_FIELDS]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row for row in found}


def read_sources(root: Path) -> dict[str, bytes]:
    """The files of the source folder, and the skeletons of the table, with their bytes."""
    skeletons = f"table/**/*_{METADATA_BOOTSTRAP_INSTANT}.parquet"
    found = [path for pattern in ("source/**/*", skeletons) for path in root.glob(pattern) if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}
