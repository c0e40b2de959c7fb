"""Java bootstraps folders of Parquet files. Both go on writing, and read every state alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hoodie_py import HoodieTable
from integration.corpus_compare import differences
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import SCHEMA, make_row

ROWS = 20  # in a source file
SIMPLE, NONE = "org.apache.hudi.keygen.SimpleKeyGenerator", "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
SELECTORS = "org.apache.hudi.client.bootstrap.selector"
PLAIN = {"hoodie.datasource.write.hive_style_partitioning": "false"}
ONE_REGION = {
    "hoodie.bootstrap.mode.selector": f"{SELECTORS}.BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": ".*p0.*",
    "hoodie.bootstrap.mode.selector.regex.mode": "METADATA_ONLY",
    "hoodie.bootstrap.full.input.provider": "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
}
ORC = {
    "hoodie.table.base.file.format": "ORC",
    "hoodie.base.file.format": "ORC",
    "hoodie.bootstrap.full.input.provider": "org.apache.hudi.bootstrap.SparkOrcBootstrapDataProvider",
}


@dataclass(frozen=True)
class Kind:
    """A bootstrap: the table's version and type, the source's folders, whether its files have the partition column.

    Of ORC files Java bootstraps only those without timestamps. With ``numbers`` the partition column has whole numbers.
    """

    version: int
    table_type: str = "MERGE_ON_READ"
    folders: tuple[str, ...] = ("part=p0", "part=p1")
    stored: bool = False
    options: dict[str, str] = field(default_factory=dict)
    completed: str = "00000000000001"
    orc: bool = False
    numbers: bool = False

    @property
    def is_partitioned(self) -> bool:
        return self.folders != ("",)

    @property
    def any_part(self) -> str | None:
        """A value of the partition column, of which Java takes the type alone."""
        if not self.is_partitioned:
            return None
        return "7" if self.numbers else "x"

    def make_rows(self, numbers: Iterable[int], part: str | None, ts: int = 1) -> pa.Table:
        """Rows as they are written: the partition column is the last, if there is a value for it.

        Java's full-record bootstrap silently loses all rows if another column is the last of the table.
        """
        value = int(part) if self.numbers and part is not None else part
        at = SCHEMA.get_field_index("part")
        schema = SCHEMA.set(at, pa.field("part", pa.int32())) if self.numbers else SCHEMA
        rows = pa.Table.from_pylist([make_row(number, ts, name=f"at {ts}", part=value) for number in numbers], schema)
        others = [name for name in SCHEMA.names if name != "part" and not (self.orc and name == "at")]
        return rows.select(others if part is None else [*others, "part"])

    def write_source(self, folder: Path, first: int, part: str | None) -> None:
        """Write a file of ROWS rows."""
        folder.mkdir(parents=True)
        rows = self.make_rows(range(first, first + ROWS), part)
        if self.orc:
            orc.write_table(rows, folder / "data.orc")
        else:
            pq.write_table(rows, folder / "data.parquet", store_schema=False, row_group_size=7)


KINDS = {
    "v9": Kind(9),
    "v9-cow": Kind(9, "COPY_ON_WRITE"),
    "v8": Kind(8),
    "v6": Kind(6),
    "v6-cow": Kind(6, "COPY_ON_WRITE"),
    "flat": Kind(9, folders=("",)),
    "odd-names": Kind(9, folders=("part=a b", "part=c%2Fd", "part=__HIVE_DEFAULT_PARTITION__")),
    "column-in-files": Kind(9, folders=("p0", "p1"), stored=True, options=PLAIN),
    "days": Kind(9, folders=("2020/01/01", "2020/01/02"), stored=True, options=PLAIN),
    "some-partitions": Kind(9, options=ONE_REGION, completed="00000000000002"),
    "numbers": Kind(9, folders=("part=1", "part=2"), numbers=True),
    "orc": Kind(9, options=ORC, orc=True),
    "orc-v8": Kind(8, options=ORC, orc=True),
}


WITH_METADATA = ("v9", "v9-cow", "v8", "v6", "some-partitions")
WITHOUT = ("v9", "v6-cow", "flat", "column-in-files", "days", "numbers")
OURS = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.parquet.small.file.limit": "0"}
SERVICES = (
    "hoodie.write.table.version", "hoodie.write.auto.upgrade", "hoodie.metadata.enable",
    "hoodie.metadata.index.column.stats.enable",
)  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_state_of_a_bootstrapped_table_reads_as_in_java(java: JavaSession, name: str, tmp_path: Path) -> None:
    kind, table = KINDS[name], tmp_path / "table"
    for number, folder in enumerate(kind.folders):
        kind.write_source(tmp_path / "source" / folder, number * ROWS, folder if kind.stored else None)
    options = make_options(kind, tmp_path / "source")
    java.write(
        table,
        kind.make_rows(range(2), kind.any_part),
        options,
        operation="bootstrap",
        mode="overwrite",
    )
    bootstrapped = java.read(table)
    assert len(bootstrapped) == ROWS * len(kind.folders)
    compare(java, table, kind)
    first = kind.folders[0].rpartition("=")[2] if kind.is_partitioned else None
    java.write(table, kind.make_rows(range(ROWS - 3, ROWS), first, ts=9), options)
    compare(java, table, kind)
    java.write(table, kind.make_rows([ROWS - 1], first, ts=10), options, operation="delete")
    compare(java, table, kind)
    as_of = HoodieTable.open(table).scan(as_of=kind.completed)
    assert differences(as_of.to_arrow(), bootstrapped) == []


@pytest.mark.parametrize(
    ("name", "metadata"), [*((name, True) for name in WITH_METADATA), *((name, False) for name in WITHOUT)]
)
def test_java_goes_on_from_what_we_wrote(java: JavaSession, name: str, metadata: bool, tmp_path: Path) -> None:
    """A rewrite of ours, or a compaction, turns skeletons into whole files; Java reads, writes and compacts them."""
    kind, table = KINDS[name], tmp_path / "table"
    for number, folder in enumerate(kind.folders):
        kind.write_source(tmp_path / "source" / folder, number * ROWS, folder if kind.stored else None)
    before = read_files(tmp_path / "source")
    options = make_options(kind, tmp_path / "source") | {"hoodie.metadata.enable": str(metadata).lower()}
    services = {name: options[name] for name in SERVICES}
    column = kind.any_part
    java.write(table, kind.make_rows(range(2), column), options, operation="bootstrap", mode="overwrite")
    first = kind.folders[0].rpartition("=")[2] if kind.is_partitioned else None

    def upsert(numbers: Iterable[int], ts: int) -> None:
        HoodieTable.open(table, timezone="UTC").upsert(kind.make_rows(numbers, first, ts), options=OURS)
        compare(java, table, kind)

    upsert([1, 2, 3, 200], 9)
    HoodieTable.open(table, timezone="UTC").delete(["k004", "k200"], options=OURS)
    compare(java, table, kind)
    java.write(table, kind.make_rows([5, 6], first, 10), options)
    compare(java, table, kind)
    if kind.table_type == "MERGE_ON_READ":
        java.schedule_compaction(table, services)
        assert HoodieTable.open(table, timezone="UTC").run_compaction(options=OURS).rows_written
        compare(java, table, kind)
        upsert(range(7, 9), 11)
        instant = HoodieTable.open(table, timezone="UTC").schedule_compaction(options=OURS)
        assert java.run_compaction(table, services, instant) == instant
        compare(java, table, kind)
    java.write(table, kind.make_rows([1, 8, 201], first, 12), options)
    compare(java, table, kind)
    HoodieTable.open(table, timezone="UTC").clean(1, options=OURS)
    compare(java, table, kind)
    upsert([9, 202], 13)
    java.clean(table, services)
    compare(java, table, kind)
    if metadata:
        assert java.wrong_metadata(table) == []
    assert read_files(tmp_path / "source") == before


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compare(java: JavaSession, base: Path, kind: Kind) -> None:
    table = HoodieTable.open(base)
    whole = java.read(base)
    for rows in (None, 3):
        assert differences(table.scan(batch_rows=rows).to_arrow(), whole) == []
    assert table.scan(integrity="strict").count() == len(whole)
    few = java.read(base, where="price > 12.0").select(["_hoodie_record_key", "tags"])
    assert differences(table.scan(["_hoodie_record_key", "tags"], "price > 12.0").to_arrow(), few) == []
    optimized = java.read(base, hoodie__datasource__query__type="read_optimized")
    assert differences(table.scan(query_type="read_optimized").to_arrow(), optimized) == []
    if "part=c%2Fd" in kind.folders:  # Java's incremental queries do not unescape the partition's value, all others do
        return
    written = java.read(
        base, hoodie__datasource__query__type="incremental", hoodie__datasource__read__begin__instanttime="000"
    )
    assert differences(table.incremental().to_arrow(), written) == []


def make_options(kind: Kind, source: Path) -> dict[str, str]:
    keys = SIMPLE if kind.is_partitioned else NONE
    options = {
        "hoodie.write.table.version": str(kind.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.metadata.index.column.stats.enable": "false",  # which Java's bootstrap does not support
        "hoodie.table.name": "bootstrapped",
        "hoodie.datasource.write.table.type": kind.table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": keys,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.keygen.class": keys,
        "hoodie.bootstrap.mode.selector": f"{SELECTORS}.MetadataOnlyBootstrapModeSelector",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.compact.inline": "false",  # else the fifth delta commit is compacted by its writer
    }
    if kind.is_partitioned:
        options["hoodie.datasource.write.partitionpath.field"] = "part"
    return options | kind.options
