"""The engines that ``formats`` compares: how each creates, appends to, upserts into and reads a table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

KEY = "id"
Condition = tuple[str, str, Any]


class Engine:
    """A table format's library. Tables lie in local folders."""

    name: str
    modules: tuple[str, ...] = ()

    @property
    def stored_as(self) -> str:
        """Name of the engine that writes the tables which this one reads."""
        return self.name

    def load(self) -> None:
        """Import what a user's program imports before its first call."""
        for module in self.modules:
            import_module(module)

    def create(self, path: str, rows: pa.Table) -> None:
        """Make a table of rows, whose keys are unique."""
        raise NotImplementedError

    def append(self, path: str, rows: pa.Table) -> None:
        """Add rows with new keys."""
        raise NotImplementedError

    def upsert(self, path: str, rows: pa.Table) -> None:
        """Replace rows by key, and add the others."""
        raise NotImplementedError

    def read(self, path: str, columns: list[str] | None = None, where: Sequence[Condition] = ()) -> int:
        """Read rows into Arrow and return their number."""
        raise NotImplementedError


class Hoodie(Engine):
    """hoodie_py, with tables of one type."""

    modules = ("hoodie_py",)

    def __init__(self, name: str, table_type: str) -> None:
        self.name = name
        self._type = table_type

    def create(self, path: str, rows: pa.Table) -> None:
        from hoodie_py import HoodieTable

        keys: dict[str, Any] = {"record_key": KEY, "ordering": "ts", "table_type": self._type}
        HoodieTable.create(path, rows.schema, **keys).bulk_insert(rows)

    def append(self, path: str, rows: pa.Table) -> None:
        from hoodie_py import HoodieTable

        HoodieTable.open(path).insert(rows)

    def upsert(self, path: str, rows: pa.Table) -> None:
        from hoodie_py import HoodieTable

        HoodieTable.open(path).upsert(rows)

    def read(self, path: str, columns: list[str] | None = None, where: Sequence[Condition] = ()) -> int:
        from hoodie_py import HoodieTable

        text = " and ".join(f"{column} {'=' if sign == '==' else sign} {value!r}" for column, sign, value in where)
        return HoodieTable.open(path).scan(columns=columns, filter=text or None).to_arrow().num_rows


class DeltaLake(Engine):
    """deltalake."""

    name = "deltalake"
    modules = ("deltalake",)

    def create(self, path: str, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(path, rows)

    def append(self, path: str, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(path, rows, mode="append")

    def upsert(self, path: str, rows: pa.Table) -> None:
        from deltalake import DeltaTable

        merge = DeltaTable(path).merge(rows, f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def read(self, path: str, columns: list[str] | None = None, where: Sequence[Condition] = ()) -> int:
        from deltalake import DeltaTable

        return int(DeltaTable(path).to_pyarrow_table(columns=columns, filters=list(where) or None).num_rows)


class PyIceberg(Engine):
    """pyiceberg, with a catalog in SQLite beside the table."""

    name = "pyiceberg"
    modules = ("pyiceberg.catalog", "pyiceberg.catalog.sql")

    def _open_catalog(self, path: str) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        Path(path).mkdir(parents=True, exist_ok=True)
        # Files are named by absolute paths, so the warehouse is one place that every copy of a table shares.
        uri = f"sqlite:///{path}/catalog.db"
        return SqlCatalog("bench", uri=uri, warehouse=f"file://{Path(path).parent.parent / 'iceberg_files'}")

    def create(self, path: str, rows: pa.Table) -> None:
        catalog = self._open_catalog(path)
        catalog.create_namespace("bench")
        catalog.create_table("bench.t", rows.schema).append(rows)

    def append(self, path: str, rows: pa.Table) -> None:
        self._open_catalog(path).load_table("bench.t").append(rows)

    def upsert(self, path: str, rows: pa.Table) -> None:
        self._open_catalog(path).load_table("bench.t").upsert(rows, join_cols=[KEY])

    def read(self, path: str, columns: list[str] | None = None, where: Sequence[Condition] = ()) -> int:
        table = self._open_catalog(path).load_table("bench.t")
        text = " and ".join(f"{column} {sign} {value!r}" for column, sign, value in where)
        names = tuple(columns) if columns else ("*",)
        scan = table.scan(row_filter=text, selected_fields=names) if text else table.scan(selected_fields=names)
        return int(scan.to_arrow().num_rows)


class PyArrow(Engine):
    """The limit: pyarrow alone, on the Parquet files of hoodie_py's copy-on-write table."""

    name = "pyarrow"
    modules = ("pyarrow.dataset", "pyarrow.parquet")
    stored_as = "hoodie_py COW"  # type: ignore[assignment]

    def create(self, path: str, rows: pa.Table) -> None:
        import pyarrow.parquet as pq

        Path(path).mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, f"{path}/rows.parquet")

    def read(self, path: str, columns: list[str] | None = None, where: Sequence[Condition] = ()) -> int:
        import pyarrow.dataset as ds

        files = [str(each) for each in Path(path).glob("*.parquet")]
        chosen = columns or [name for name in ds.dataset(files).schema.names if not name.startswith("_hoodie")]
        condition = None
        for column, sign, value in where:
            one = ds.field(column) == value if sign == "==" else ds.field(column) < value
            condition = one if condition is None else condition & one
        return int(ds.dataset(files).to_table(columns=chosen, filter=condition).num_rows)


class Polars(Engine):
    """The other limit: polars on the same files."""

    name = "polars"
    modules = ("polars",)
    stored_as = "hoodie_py COW"  # type: ignore[assignment]

    def read(self, path: str, columns: list[str] | None = None, where: Sequence[Condition] = ()) -> int:
        import polars as pl

        frame = pl.scan_parquet(f"{path}/*.parquet")
        for column, sign, value in where:
            frame = frame.filter(pl.col(column) == value if sign == "==" else pl.col(column) < value)
        names = columns or [name for name in frame.collect_schema().names() if not name.startswith("_hoodie")]
        return int(frame.select(names).collect().height)


ENGINES: dict[str, Engine] = {
    each.name: each
    for each in (
        Hoodie("hoodie_py MOR", "MERGE_ON_READ"),
        Hoodie("hoodie_py COW", "COPY_ON_WRITE"),
        DeltaLake(),
        PyIceberg(),
        PyArrow(),
        Polars(),
    )
}
