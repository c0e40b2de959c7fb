"""A small Hive Metastore that speaks Thrift, with its tables in memory."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any


class ThriftMetastore:
    """What of a metastore the client calls: tables and partitions in dicts."""

    def __init__(self, types: Any) -> None:
        self.types = types
        self.tables: dict[tuple[str, str], Any] = {}
        self.partitions: dict[tuple[str, str], dict[tuple[str, ...], Any]] = {}
        self.databases = {"default"}
        self.calls: list[str] = []
        self.uri = ""

    def get_all_databases(self) -> list[str]:
        return sorted(self.databases)

    def get_database(self, name: str) -> Any:
        if name not in self.databases:
            raise self.types.NoSuchObjectException(message=name)
        return self.types.Database(name=name)

    def create_database(self, database: Any) -> None:
        self.databases.add(database.name)

    def get_all_tables(self, db_name: str) -> list[str]:
        return [name for database, name in self.tables if database == db_name]

    def get_table_req(self, req: Any) -> Any:
        found = self.tables.get((req.dbName, req.tblName))
        if found is None:
            raise self.types.NoSuchObjectException(message=req.tblName)
        return self.types.GetTableResult(table=found)

    def get_table_objects_by_name_req(self, req: Any) -> Any:
        return self.types.GetTablesResult(tables=[self.tables[req.dbName, name] for name in req.tblNames])

    def create_table(self, tbl: Any) -> None:
        self.calls.append("create_table")
        self.tables[tbl.dbName, tbl.tableName] = tbl
        self.partitions[tbl.dbName, tbl.tableName] = {}

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: Any, environment_context: Any
    ) -> None:
        self.calls.append(f"alter_table {sorted(environment_context.properties)}")
        before = [each.type for each in self.tables[dbname, tbl_name].sd.cols]
        if [each.type for each in new_tbl.sd.cols][: len(before)] != before:
            raise self.types.InvalidOperationException(message="columns have types incompatible")
        self.tables[dbname, tbl_name] = new_tbl

    def get_partitions(self, db_name: str, tbl_name: str, max_parts: int) -> list[Any]:
        return list(self.partitions[db_name, tbl_name].values())

    def get_partition(self, db_name: str, tbl_name: str, part_vals: list[str]) -> Any:
        found = self.partitions[db_name, tbl_name].get(tuple(part_vals))
        if found is None:
            raise self.types.NoSuchObjectException(message="none")
        return found

    def add_partitions_req(self, request: Any) -> Any:
        self.partitions[request.dbName, request.tblName] |= {tuple(each.values): each for each in request.parts}
        return self.types.AddPartitionsResult()

    def alter_partitions(self, db_name: str, tbl_name: str, new_parts: list[Any]) -> None:
        self.partitions[db_name, tbl_name] |= {tuple(each.values): each for each in new_parts}

    def drop_partition(self, db_name: str, tbl_name: str, part_vals: list[str], deleteData: bool) -> bool:
        assert deleteData is False
        del self.partitions[db_name, tbl_name][tuple(part_vals)]
        return True


def _wait_for(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 60):
            return
        time.sleep(0.05)


@contextmanager
def run_metastore() -> Iterator[ThriftMetastore]:
    """Run one on a free port of 127.0.0.1; ``uri`` of what is given is its address. Needs thriftpy2."""
    from thriftpy2.rpc import make_server

    from hoodie_py.metastore.hive import _load_types

    types = _load_types()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    handler = ThriftMetastore(types)
    running = make_server(types.ThriftHiveMetastore, handler, "127.0.0.1", port, client_timeout=None)
    Thread(target=running.serve, daemon=True).start()
    _wait_for(port)
    handler.uri = f"thrift://127.0.0.1:{port}"
    try:
        yield handler
    finally:
        running.close()
